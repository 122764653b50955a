//! RocksDB's benchmark in words.

use plimsoll_core::plan::{
    KEY_BYTES, KvEnd, KvStep, KvWork, MULTIGET_KEYS, RANGE_KEYS, RocksdbBench, Step, StepProcess,
    VALUE_BYTES,
};
use plimsoll_core::units::{format_bytes, format_count, format_duration_ns};

use crate::words::describe::count;

/// What a cell runs.
pub(crate) fn describe_rocksdb(workload: &RocksdbBench) -> String {
    let caches = match (workload.process, workload.warm_cache) {
        (_, true) => "all keys read before each step",
        (StepProcess::Step, false) => "a process for each step, which begins with cold caches",
        (StepProcess::Trial, false) => "one process for all steps, which keep their caches",
    };
    format!(
        "{}, {} keys of {KEY_BYTES} bytes with values of {VALUE_BYTES}, {caches}",
        count(workload.clients, "thread"),
        format_count(workload.keys)
    )
}

/// What a step does.
pub(crate) fn describe_kv(step: &Step, kv: &KvStep) -> String {
    let what = match kv.work {
        KvWork::Fill => "puts of all keys in their order, without the write-ahead log".to_owned(),
        KvWork::Overwrite => {
            "puts of random keys, with the write-ahead log and without sync".to_owned()
        }
        KvWork::Get => "gets of random keys".to_owned(),
        KvWork::MultiGet => format!("gets of {MULTIGET_KEYS} random keys at once"),
        KvWork::Range { is_backward } => {
            format!(
                "a new iterator at a random key and up to {RANGE_KEYS} {}",
                if is_backward { "prevs" } else { "nexts" }
            )
        }
    };
    let duration = |ns| {
        format_duration_ns(ns)
            .replace(".0s", "s")
            .replace("m00s", "m")
            .replace("h00m", "h")
    };
    let until = match kv.end {
        KvEnd::Operations(operations) => format!("{} per thread", format_count(operations)),
        KvEnd::Time(ns) => format!("for {}", duration(ns)),
    };
    let loop_ = match kv.rate {
        Some(rate) => format!("at {} per second (open loop)", format_count(rate.per_s)),
        None => "flat out (closed loop)".to_owned(),
    };
    let beside = kv.background_bytes_per_s.map_or(String::new(), |bytes| {
        format!(
            ", while one thread puts {} of random keys per second (open loop)",
            format_bytes(bytes)
        )
    });
    let waits = if kv.waits {
        ", then a wait until no compaction is left to do"
    } else {
        ""
    };
    format!(
        "{what} by {} {loop_}, {until}{beside}{waits}",
        count(step.clients, "thread")
    )
}
