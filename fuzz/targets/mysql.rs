//! What a MySQL server says: its greeting, and answers of all kinds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| plimsoll_engine::mysql::fuzz_answer(bytes));
