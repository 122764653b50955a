//! Statistics and outputs of RocksDB.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::{db_bench, rocksdb_stats};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let _ = rocksdb_stats::parse(&text).notes();
    let _ = db_bench::parse(&text);
});
