//! The workloads that plans can name, and what they have in common.

use serde::{Deserialize, Serialize};

use super::{
    Era, Family, FileWorkload, InsertBenchmark, RocksdbBench, Step, Sysbench, SysbenchPreset,
    WaitRule,
};

/// A definition of a workload as plans name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetInfo {
    /// The value of the plan's `workload`.
    pub name: &'static str,
    pub definition: Definition,
    /// One line for people.
    pub description: &'static str,
}

/// What a preset's name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The Insert Benchmark of these years.
    InsertBenchmark(Era),
    /// The sysbench microbenchmarks of these years.
    Sysbench(SysbenchPreset),
    /// RocksDB's benchmark, as it was in 2023-12.
    Rocksdb,
}

pub fn presets() -> &'static [PresetInfo] {
    &[
        PresetInfo {
            name: "insert-benchmark",
            definition: Definition::InsertBenchmark(Era::Current),
            description: "Insert Benchmark as it is since 2024-04: l.i0 l.x l.i1 l.i2, then range \
                         and point queries at 100, 500, 1000 writes/s",
        },
        PresetInfo {
            name: "insert-benchmark-2023-05",
            definition: Definition::InsertBenchmark(Era::May2023),
            description: "as from 2023-05 to 2023-12: two-column indexes, float price, deletes by \
                         range of ids, q100 q500 q1000",
        },
        PresetInfo {
            name: "insert-benchmark-2017",
            definition: Definition::InsertBenchmark(Era::Year2017),
            description: "as in 2017: load with indexes in place, five scans, no deletes, q1000 \
                         q100",
        },
        PresetInfo {
            name: "sysbench-2025",
            definition: Definition::Sysbench(SysbenchPreset::Year2025),
            description: "sysbench microbenchmarks as they are since 2025-04: 38 tests on one \
                         load, 32 of them reported",
        },
        PresetInfo {
            name: "sysbench-2023",
            definition: Definition::Sysbench(SysbenchPreset::Year2023),
            description: "sysbench microbenchmarks as in 2023: 42 tests, 15 of them before the \
                         writes and again after",
        },
        PresetInfo {
            name: "rocksdb",
            definition: Definition::Rocksdb,
            description: "the db_bench sequence as in 2023-12: fillseq, reads, overwritesome, \
                         reads during writes, overwriteandwait",
        },
    ]
}

/// What a cell runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    InsertBenchmark(InsertBenchmark),
    /// The sysbench microbenchmarks.
    Sysbench(Sysbench),
    /// Tables and statements that the user wrote.
    File(FileWorkload),
    Rocksdb(RocksdbBench),
}

impl Workload {
    /// The benchmark it is.
    pub fn family(&self) -> Family {
        match self {
            Self::InsertBenchmark(_) => Family::InsertBenchmark,
            Self::Sysbench(_) => Family::Sysbench,
            Self::File(_) => Family::File,
            Self::Rocksdb(_) => Family::Rocksdb,
        }
    }

    /// For titles.
    pub fn title(&self) -> &str {
        match self {
            Self::InsertBenchmark(_) => "Insert Benchmark",
            Self::Sysbench(_) => "sysbench",
            Self::File(workload) => &workload.title,
            Self::Rocksdb(_) => "RocksDB",
        }
    }

    /// The Insert Benchmark, if it is that.
    pub fn insert_benchmark(&self) -> Option<&InsertBenchmark> {
        match self {
            Self::InsertBenchmark(workload) => Some(workload),
            Self::Sysbench(_) | Self::File(_) | Self::Rocksdb(_) => None,
        }
    }

    /// The sysbench microbenchmarks, if it is them.
    pub fn sysbench(&self) -> Option<&Sysbench> {
        match self {
            Self::Sysbench(workload) => Some(workload),
            Self::InsertBenchmark(_) | Self::File(_) | Self::Rocksdb(_) => None,
        }
    }

    /// RocksDB's benchmark, if it is that.
    pub fn rocksdb(&self) -> Option<&RocksdbBench> {
        match self {
            Self::Rocksdb(workload) => Some(workload),
            Self::InsertBenchmark(_) | Self::Sysbench(_) | Self::File(_) => None,
        }
    }

    /// The steps, in order.
    pub fn steps(&self) -> &[Step] {
        match self {
            Self::InsertBenchmark(workload) => &workload.steps,
            Self::Sysbench(workload) => &workload.steps,
            Self::File(workload) => &workload.steps,
            Self::Rocksdb(workload) => &workload.steps,
        }
    }

    /// The full name of the step that is called so; a text that calls none stays as it is.
    pub fn step_name(&self, text: &str) -> String {
        let step = self.steps().iter().find(|step| step.is_called(text));
        step.map_or(text, |step| step.name.as_str()).to_owned()
    }

    /// The same with other steps.
    pub fn with_steps(&self, steps: Vec<Step>) -> Self {
        let mut workload = self.clone();
        match &mut workload {
            Self::InsertBenchmark(workload) => workload.steps = steps,
            Self::Sysbench(workload) => workload.steps = steps,
            Self::File(workload) => workload.steps = steps,
            Self::Rocksdb(workload) => workload.steps = steps,
        }
        workload
    }

    /// Connections of the busiest step.
    pub fn connections(&self) -> u32 {
        self.steps()
            .iter()
            .map(Step::connections)
            .max()
            .unwrap_or(0)
    }

    /// Rows that are loaded over all tables, for the wait rule.
    pub fn loaded_rows(&self) -> u64 {
        match self {
            Self::InsertBenchmark(workload) => workload.rows * u64::from(workload.clients),
            Self::Sysbench(workload) => workload.rows * u64::from(workload.tables),
            Self::File(workload) => workload.rows,
            Self::Rocksdb(workload) => workload.keys,
        }
    }

    /// The wait after a step with a drain, in nanoseconds.
    pub fn wait_ns(&self, step: &Step) -> u64 {
        let rule: WaitRule = match self {
            Self::InsertBenchmark(workload) => workload.wait,
            Self::Sysbench(workload) => workload.wait,
            Self::File(workload) => workload.wait,
            Self::Rocksdb(workload) => workload.wait,
        };
        step.wait_ns.unwrap_or_else(|| rule.ns(self.loaded_rows()))
    }
}
