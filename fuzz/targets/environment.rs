//! `env.json` of a trial's folder: what is read is written so that it is read back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_host::Environment;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(environment) = serde_json::from_slice::<Environment>(bytes) {
        let text = serde_json::to_string(&environment).expect("it was read");
        let again: Environment = serde_json::from_str(&text).expect("it was written by us");
        assert_eq!(again, environment);
    }
});
