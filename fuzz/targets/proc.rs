//! Texts of `/proc` and `/sys`: the first byte says of which file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((which, text)) = bytes.split_first() {
        plimsoll_host::fuzz_proc_text(*which, &String::from_utf8_lossy(text));
    }
});
