//! What a PostgreSQL server says: its login, and answers of all kinds.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| plimsoll_engine::postgres::fuzz_answer(bytes));
