//! `events.jsonl`, with right checksums where the input asks for them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_store::read_events;

fuzz_target!(|bytes: &[u8]| {
    let dir = tempfile::tempdir_in("/dev/shm").expect("there is room");
    let file = dir.path().join("events.jsonl");
    std::fs::write(&file, bytes).expect("there is room");
    if let Ok(log) = read_events(&file) {
        for (at, stamped) in log.events.iter().enumerate() {
            assert_eq!(stamped.seq, at as u64 + 1, "without holes");
        }
    }
});
