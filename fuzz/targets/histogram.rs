//! The payload of a `.hlog` line, from its bytes and from its text. What is believed here, the
//! library's own reader has to read as the same.
#![no_main]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use libfuzzer_sys::fuzz_target;
use plimsoll_core::histogram::EncodedHistogram;

/// As the library reads it, which believes every length: ask it only for what has been believed.
fn twin(text: &str) -> Option<Histogram<u64>> {
    let bytes = STANDARD.decode(text).ok()?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).ok()
}

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let Ok(histogram) = EncodedHistogram(text.clone()).decode() else {
        return;
    };
    if let Some(twin) = twin(&text) {
        assert_eq!(twin, histogram);
    }
    // What was read can be asked, and written so that it is read back.
    let _ = (histogram.value_at_quantile(0.99), histogram.mean(), histogram.max());
    let again = EncodedHistogram::of(&histogram).decode().expect("it was written by us");
    assert_eq!(again.len(), histogram.len());
});
