//! Plans and workload files.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_core::plan::Plan;
use plimsoll_core::workload_file::WorkloadFile;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let plan = Plan::parse("plan.toml", &text);
    if let Err(error) = &plan {
        assert!(error.to_string().contains("plan.toml"), "{error}");
    }
    let _ = WorkloadFile::parse("work.toml", &text);
});
