//! Which metrics a step has.

use plimsoll_core::plan::{Family, Operation, Step};

use super::{CATALOGUE, CLASSIC_COLUMNS, Metric, rocksdb, sysbench};

/// The metrics of one kind of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricSet {
    /// Rows inserted and indexed, and the queries of the Insert Benchmark. Steps that make the
    /// tables of other benchmarks and imported steps have these, too.
    Classic,
    /// Statements of sysbench's tests and of workload files.
    Statements,
    /// Keys that RocksDB reads and writes.
    Keys,
}

/// The metric that is a step's throughput.
pub(crate) fn rate_of(step: &Step) -> &'static Metric {
    match (step.operation, step.family()) {
        (Operation::Insert | Operation::Index, _) => super::IPS,
        (Operation::Scan, Family::Sysbench) => sysbench::KRPS,
        (_, Family::Sysbench | Family::File) => sysbench::QPS,
        (_, Family::Rocksdb) => rocksdb::QPS,
        (_, Family::InsertBenchmark) => super::QPS,
    }
}

impl MetricSet {
    /// That of a step of a benchmark, by its operation.
    pub fn of(family: Family, operation: Operation) -> Self {
        match (family, operation) {
            (_, Operation::Insert | Operation::Delete | Operation::Index)
            | (Family::InsertBenchmark, _) => Self::Classic,
            (Family::Sysbench | Family::File, _) => Self::Statements,
            (Family::Rocksdb, _) => Self::Keys,
        }
    }

    /// All of them, in the order of the tables.
    pub fn metrics(self) -> &'static [&'static Metric] {
        match self {
            Self::Classic => CATALOGUE,
            Self::Statements => sysbench::METRICS,
            Self::Keys => rocksdb::METRICS,
        }
    }

    /// Those that the catalogue does not have.
    pub fn own(self) -> &'static [&'static Metric] {
        match self {
            Self::Classic => &[],
            Self::Statements => sysbench::OWN,
            Self::Keys => rocksdb::OWN,
        }
    }

    /// Those that are columns of a step's table, in its order.
    pub fn columns(self) -> &'static [&'static Metric] {
        match self {
            Self::Classic => &CLASSIC_COLUMNS,
            Self::Statements => &sysbench::COLUMNS,
            Self::Keys => &rocksdb::COLUMNS,
        }
    }
}
