//! RocksDB's benchmark in words.

use super::{
    KEY_BYTES, KvStep, KvWork, MULTIGET_KEYS, RANGE_KEYS, RocksdbBench, StepProcess, VALUE_BYTES,
};
use crate::plan::words::length;
use crate::plan::{Ends, Step};
use crate::units::{count, format_bytes, format_count};

impl RocksdbBench {
    pub(in crate::plan) fn description(&self) -> String {
        let caches = match (self.process, self.warm_cache) {
            (_, true) => "all keys read before each step",
            (StepProcess::Step, false) => "a process for each step, which begins with cold caches",
            (StepProcess::Trial, false) => "one process for all steps, which keep their caches",
        };
        format!(
            "{}, {} keys of {KEY_BYTES} bytes with values of {VALUE_BYTES}, {caches}",
            count(self.clients, "thread"),
            format_count(self.keys)
        )
    }
}

impl KvStep {
    pub(in crate::plan) fn description(self, step: &Step) -> String {
        let what = match self.work {
            KvWork::Fill => {
                "puts of all keys in their order, without the write-ahead log".to_owned()
            }
            KvWork::Overwrite => {
                "puts of random keys, with the write-ahead log and without sync".to_owned()
            }
            KvWork::Get => "gets of random keys".to_owned(),
            KvWork::MultiGet => format!("gets of {MULTIGET_KEYS} random keys at once"),
            KvWork::Range { is_backward } => format!(
                "a new iterator at a random key and up to {RANGE_KEYS} {}",
                if is_backward { "prevs" } else { "nexts" }
            ),
        };
        let until = match step.ends {
            Ends::Operations { per_client } => format!("{} per thread", format_count(per_client)),
            _ => format!("for {}", length(step.duration_ns().unwrap_or(0))),
        };
        let pace = match step.arrival {
            Some(rate) => format!("at {} per second (open loop)", format_count(rate.per_s)),
            None => "flat out (closed loop)".to_owned(),
        };
        let beside = self.background_bytes_per_s.map_or(String::new(), |bytes| {
            format!(
                ", while one thread puts {} of random keys per second (open loop)",
                format_bytes(bytes)
            )
        });
        let waits = if self.waits {
            ", then a wait until no compaction is left to do"
        } else {
            ""
        };
        format!(
            "{what} by {} {pace}, {until}{beside}{waits}",
            count(step.clients, "thread")
        )
    }

    /// What `workload show` has for it.
    pub(in crate::plan) fn summary(self) -> String {
        let what = match self.work {
            KvWork::Fill => "put the next key, without the log".to_owned(),
            KvWork::Overwrite => "put a random key".to_owned(),
            KvWork::Get => "get a random key".to_owned(),
            KvWork::MultiGet => format!("get {MULTIGET_KEYS} random keys at once"),
            KvWork::Range { is_backward } => format!(
                "seek a random key, then up to {RANGE_KEYS} {}",
                if is_backward { "prev" } else { "next" }
            ),
        };
        let beside = self.background_bytes_per_s.map_or(String::new(), |bytes| {
            format!(", with {} of writes a second", format_bytes(bytes))
        });
        let waits = if self.waits {
            ", then wait for compaction"
        } else {
            ""
        };
        format!("{what}{beside}{waits}")
    }
}
