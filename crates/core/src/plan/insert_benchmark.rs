//! The Insert Benchmark as a plan describes it: sizes in, steps out.

use serde::{Deserialize, Serialize};

/// Which definition of the benchmark: table, indexes, values, statements and steps changed over the years.
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

/// A definition of the benchmark as plans name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresetInfo {
    /// The value of the plan's `workload`.
    pub name: &'static str,
    /// The definition.
    pub era: Era,
    /// One line for people.
    pub description: &'static str,
}

/// All presets.
pub fn presets() -> &'static [PresetInfo] {
    &[
        PresetInfo {
            name: "insert-benchmark",
            era: Era::Current,
            description: "Insert Benchmark as it is since 2024-04: l.i0 l.x l.i1 l.i2, then range and point queries at 100, 500, 1000 writes/s",
        },
        PresetInfo {
            name: "insert-benchmark-2023-05",
            era: Era::May2023,
            description: "as from 2023-05 to 2023-12: two-column indexes, float price, deletes by range of ids, q100 q500 q1000",
        },
        PresetInfo {
            name: "insert-benchmark-2017",
            era: Era::Year2017,
            description: "as in 2017: load with indexes in place, five scans, no deletes, q1000 q100",
        },
    ]
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
    /// The pause after the last pure write step, while the engine works off its debt.
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

    /// Connections of the busiest step.
    pub fn connections(&self) -> u32 {
        self.steps.iter().map(|step| step.connections_per_client() * step.clients).max().unwrap_or(0)
    }
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

/// How long to wait for the engine after the last pure write step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitRule {
    /// min(1200, 60 + loaded rows / 1,000,000) seconds, as the original's code does.
    Classic,
    /// max(1200, 60 + loaded rows / 1,000,000) seconds, as prose about the original says.
    ClassicMax,
    /// This long.
    Fixed {
        /// Nanoseconds.
        ns: u64,
    },
}

impl WaitRule {
    /// The wait in nanoseconds for this many rows loaded over all clients.
    pub fn ns(self, loaded_rows: u64) -> u64 {
        match self {
            Self::Classic => (60 + loaded_rows / 1_000_000).min(1200) * 1_000_000_000,
            Self::ClassicMax => (60 + loaded_rows / 1_000_000).max(1200) * 1_000_000_000,
            Self::Fixed { ns } => ns,
        }
    }
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

/// One step of the sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `l.i0`, `qr100`, ...
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// Clients of this step; the cell's unless the plan overrides it.
    pub clients: u32,
    /// Rows per transaction.
    pub batch: u32,
    /// Whether the engine works off its debt, and the plan waits, after this step.
    pub drain_after: bool,
    /// Wait of this step instead of the plan's, in nanoseconds.
    pub wait_ns: Option<u64>,
}

/// The kinds of steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// Create the tables and insert in primary key order.
    Load {
        /// Rows per client.
        rows: u64,
        /// Create the secondary indexes first (2017).
        indexes_first: bool,
    },
    /// Insert one batch per client, then create the secondary indexes.
    CreateIndexes {
        /// Rows per client.
        rows: u64,
    },
    /// Insert, and delete as many, as fast as possible.
    Write {
        /// Rows inserted per client, and deleted when `deletes`.
        rows: u64,
        /// Delete as many rows as are inserted.
        deletes: bool,
    },
    /// Query flat out while background writers keep a rate.
    ReadWrite {
        /// The query.
        query: QueryKind,
        /// Rows inserted per second and client, and deleted when `deletes`.
        rate: u64,
        /// Length in nanoseconds at that rate.
        duration_ns: u64,
        /// When it ends.
        end: StepEnd,
        /// Delete as many rows as are inserted.
        deletes: bool,
    },
    /// Five scans of every table that match no row (2017).
    Scan,
}

impl Step {
    /// Busy connections that one client has in this step.
    pub fn connections_per_client(&self) -> u32 {
        match self.kind {
            StepKind::Load { .. } | StepKind::CreateIndexes { .. } | StepKind::Scan => 1,
            StepKind::Write { deletes, .. } => 1 + u32::from(deletes),
            StepKind::ReadWrite { deletes, .. } => 2 + u32::from(deletes),
        }
    }

    /// Rows one client inserts: a whole number of batches.
    pub fn inserted_rows(&self) -> u64 {
        let rows = match self.kind {
            StepKind::Load { rows, .. } | StepKind::CreateIndexes { rows } | StepKind::Write { rows, .. } => rows,
            StepKind::ReadWrite { rate, duration_ns, .. } => (u128::from(rate) * u128::from(duration_ns) / 1_000_000_000) as u64,
            StepKind::Scan => 0,
        };
        rows.next_multiple_of(u64::from(self.batch))
    }

    /// The operation whose rate and latency stand for the step: `insert`, `index`, `query` or `scan`.
    pub fn primary_operation(&self) -> &'static str {
        match self.kind {
            StepKind::Load { .. } | StepKind::Write { .. } => "insert",
            StepKind::CreateIndexes { .. } => "index",
            StepKind::ReadWrite { .. } => "query",
            StepKind::Scan => "scan",
        }
    }

    /// The background rate per client in rows per second, for the steps that have one.
    pub fn background_rate(&self) -> Option<u64> {
        match self.kind {
            StepKind::ReadWrite { rate, .. } => Some(rate),
            _ => None,
        }
    }
}
