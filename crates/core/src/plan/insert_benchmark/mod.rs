//! The Insert Benchmark as a plan describes it: sizes in, steps out.

pub(super) mod read;
pub(super) mod steps;
mod words;

use serde::{Deserialize, Serialize};

use steps::Sequence;

use crate::plan::{Step, WaitRule};

/// Which definition of the benchmark: table, indexes, values, statements and steps changed over the
/// years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Era {
    /// Since 2024-04: three-column indexes, integer price, exact deletes, ten steps.
    #[serde(rename = "current")]
    Current,
    /// 2023-05 to 2023-12: two-column indexes, float price, deletes by id range, six steps.
    #[serde(rename = "2023-05")]
    May2023,
    /// 2017: loaded with indexes in place, five scans, no deletes.
    #[serde(rename = "2017")]
    Year2017,
}

/// Sizes and settings of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertBenchmark {
    /// The definition.
    pub era: Era,
    /// Clients. Each has an inserter, and where the step wants them a deleter and a reader.
    pub clients: u32,
    /// A table for each client, or one for all.
    pub tables: TablePlacement,
    /// Rows loaded per client in the first step.
    pub rows: u64,
    /// How background writes arrive in the read-write steps.
    pub arrival: WriteArrival,
    /// The pause after the last pure write step, while the engine drains.
    pub wait: WaitRule,
    /// How the tables are partitioned, when they are.
    #[serde(default)]
    pub partitions: Option<Partitions>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

impl InsertBenchmark {
    /// Tables in the database.
    pub fn table_count(&self) -> u32 {
        match self.tables {
            TablePlacement::PerClient => self.clients,
            TablePlacement::Shared => 1,
        }
    }
}

/// What a step of the Insert Benchmark does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsertWork {
    /// Creates the tables and inserts in primary key order.
    Load {
        /// Whether the secondary indexes are created first (2017).
        indexes_first: bool,
    },
    /// Inserts one batch per client, then creates the secondary indexes.
    CreateIndexes {
        /// Rows per client.
        rows: u64,
    },
    /// Inserts, and may delete as many, as fast as possible.
    Write,
    /// Queries flat out while background writers keep a rate.
    ReadWrite {
        /// What readers ask for.
        query: QueryKind,
        /// Rows inserted per second and client.
        rate: u64,
    },
    /// Five scans of every table that match no row (2017).
    Scan,
}

/// Range partitions of a table by `transactionid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partitions {
    /// How many.
    pub count: u32,
    /// Ids in each; the last one takes all that are above.
    pub rows: u64,
}

/// Where a client's rows go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TablePlacement {
    /// `pi1 ... piN`.
    PerClient,
    /// All clients use `pi1`.
    Shared,
}

/// The arrival process of background writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteArrival {
    /// Transactions due at equal distances, clients out of phase.
    Even,
    /// A second's transactions due at its start, as the original's limiter sends them.
    ClassicBurst,
    /// Exponential gaps.
    Poisson,
}

/// What a reader asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
    /// Ten rows by a secondary index; the index is drawn per query.
    Range,
    /// Ten rows by primary key.
    Point,
}

/// When a read-write step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// When `rate x duration` rows are inserted, however long that takes. The original's rule.
    Rows,
    /// After `duration`.
    Time,
}
