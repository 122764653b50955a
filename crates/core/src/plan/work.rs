//! What a workload does in a step. The workloads read it, and nobody else: the others ask for the
//! step's facts.

use serde::{Deserialize, Serialize};

use super::{FileWork, InsertWork, KvStep, SysbenchWork};

/// The benchmark that a workload or a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    InsertBenchmark,
    /// The sysbench microbenchmarks.
    Sysbench,
    /// Tables and statements that the user wrote.
    File,
    /// RocksDB's benchmark.
    Rocksdb,
}

/// What a step does, in the words of its benchmark.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Of the Insert Benchmark.
    InsertBenchmark(InsertWork),
    Sysbench(SysbenchWork),
    /// Of a workload file.
    File(FileWork),
    /// Of RocksDB's benchmark.
    Rocksdb(KvStep),
}

impl Work {
    /// The benchmark it belongs to.
    pub fn family(&self) -> Family {
        match self {
            Self::InsertBenchmark(_) => Family::InsertBenchmark,
            Self::Sysbench(_) => Family::Sysbench,
            Self::File(_) => Family::File,
            Self::Rocksdb(_) => Family::Rocksdb,
        }
    }

    /// What a step of the Insert Benchmark does, if it is one.
    pub fn insert_benchmark(&self) -> Option<InsertWork> {
        match self {
            Self::InsertBenchmark(work) => Some(*work),
            _ => None,
        }
    }
}
