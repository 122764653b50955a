//! The payload of a `.hlog` line, from its bytes and from its text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::histogram::EncodedHistogram;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    if let Ok(histogram) = EncodedHistogram(text).decode() {
        // What was read can be asked, and written so that it is read back.
        let _ = (histogram.value_at_quantile(0.99), histogram.mean(), histogram.max());
        let again = EncodedHistogram::of(&histogram).decode().expect("it was written by us");
        assert_eq!(again.len(), histogram.len());
    }
});
