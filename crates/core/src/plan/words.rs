//! Workloads and steps in words, for reports.

use super::{Step, Work, Workload};
use crate::units::{count, format_duration_ns};

impl Workload {
    /// What a cell runs: clients, tables, sizes.
    pub fn description(&self) -> String {
        match self {
            Self::InsertBenchmark(workload) => workload.description(),
            Self::Sysbench(workload) => workload.description(),
            Self::File(workload) => workload.description(),
            Self::Rocksdb(workload) => workload.description(),
        }
    }
}

impl Step {
    /// What the step does, with its clients, pace and length as they are now.
    pub fn description(&self) -> String {
        match &self.work {
            Work::InsertBenchmark(work) => work.description(self),
            Work::Sysbench(work) => work.description(self),
            Work::File(work) => work.description(self),
            Work::Rocksdb(work) => work.description(self),
        }
    }

    /// What the step does in a few words, beside columns that have its numbers.
    pub fn summary(&self) -> String {
        match &self.work {
            Work::InsertBenchmark(work) => work.summary(self),
            Work::Sysbench(work) => work.summary(self),
            Work::File(work) => work.description(self),
            Work::Rocksdb(work) => work.summary(),
        }
    }

    /// What comes behind the kind of a timed step: clients, pace, time. `what` is what is due.
    pub(super) fn timing(&self, what: &str) -> String {
        let pace = match self.arrival {
            None => "flat out (closed loop)".to_owned(),
            Some(rate) => {
                let gaps = if rate.is_poisson {
                    "with exponential gaps"
                } else {
                    "evenly spaced"
                };
                format!("{} {what}/s {gaps} (open loop)", rate.per_s)
            }
        };
        let warm_up = match self.ends.warm_up_ns() {
            0 => String::new(),
            ns => format!(" after {} of warm-up", whole(ns)),
        };
        let failures = match self.max_failed {
            Some(share) => format!("; up to {} % of them may fail", share * 100.0),
            None => String::new(),
        };
        format!(
            "{}, {pace} for {}{warm_up}{failures}",
            count(self.clients, "client"),
            whole(self.duration_ns().unwrap_or(0))
        )
    }
}

/// A time without the digits that are zero: `10s`, `30m`.
fn whole(ns: u64) -> String {
    format_duration_ns(ns)
        .replace(".0s", "s")
        .replace("m00s", "m")
}

/// The same, with whole hours.
pub(super) fn length(ns: u64) -> String {
    whole(ns).replace("h00m", "h")
}

/// How a workload's clients send their statements.
pub(super) fn form_of_statements(is_prepared: bool) -> &'static str {
    if is_prepared {
        "prepared statements"
    } else {
        "statements in text"
    }
}
