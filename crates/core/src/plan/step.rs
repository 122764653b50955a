//! The steps of a workload: what runs one after the other on one data state.

use serde::{Deserialize, Serialize};

use super::{KvEnd, KvStep, KvWork, LoadMode, MixStep, QueryKind, StepEnd, Test, TestKind};

/// What stands for a step that has several kinds of events: all of them together.
pub const ALL_EVENTS: &str = "event";
const SECOND_NS: u64 = 1_000_000_000;

/// One step of the sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `l.i0`, `qr100`, `point-query`, ...
    pub name: String,
    /// What it does.
    pub kind: StepKind,
    /// Clients of this step; the cell's unless the plan overrides it.
    pub clients: u32,
    /// Rows per transaction.
    pub batch: u32,
    /// Whether the engine drains, and the plan waits, after this step.
    pub drain_after: bool,
    /// Wait of this step instead of the plan's, in nanoseconds.
    pub wait_ns: Option<u64>,
    /// The share of its operations that may fail without the step. Without it one that fails is the
    /// step's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failed: Option<f64>,
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
    /// sysbench: create the tables, load them and index them.
    Prepare {
        /// Tables.
        tables: u32,
        /// Rows per table.
        rows: u64,
        /// How.
        load: LoadMode,
    },
    /// sysbench: one of its microbenchmarks.
    Test(Test),
    /// Of a workload file: create the tables, load them and index them.
    Fill {
        /// Tables.
        tables: u32,
        /// Rows of all tables.
        rows: u64,
        /// How.
        load: LoadMode,
    },
    /// Of a workload file: events of it.
    Mix(MixStep),
    /// RocksDB: one of db_bench's benchmarks.
    Kv(KvStep),
}

impl Step {
    /// The same with so many clients, called after them.
    pub fn at_clients(&self, clients: u32) -> Self {
        Self {
            name: format!("{}@{clients}", self.name),
            clients,
            ..self.clone()
        }
    }

    /// Busy connections that one client has in this step.
    pub fn connections_per_client(&self) -> u32 {
        match self.kind {
            StepKind::Load { .. } | StepKind::CreateIndexes { .. } | StepKind::Scan => 1,
            StepKind::Prepare { .. }
            | StepKind::Test(_)
            | StepKind::Fill { .. }
            | StepKind::Mix(_)
            | StepKind::Kv(_) => 1,
            StepKind::Write { deletes, .. } => 1 + u32::from(deletes),
            StepKind::ReadWrite { deletes, .. } => 2 + u32::from(deletes),
        }
    }

    /// Rows one client inserts: a whole number of batches. Tests insert as many as they can, which
    /// no plan knows.
    pub fn inserted_rows(&self) -> u64 {
        let rows = match self.kind {
            StepKind::Load { rows, .. }
            | StepKind::CreateIndexes { rows }
            | StepKind::Write { rows, .. } => rows,
            StepKind::ReadWrite {
                rate, duration_ns, ..
            } => (u128::from(rate) * u128::from(duration_ns) / 1_000_000_000) as u64,
            StepKind::Kv(KvStep {
                work: KvWork::Fill,
                end: KvEnd::Operations(keys),
                ..
            }) => keys,
            StepKind::Scan
            | StepKind::Prepare { .. }
            | StepKind::Test(_)
            | StepKind::Fill { .. }
            | StepKind::Mix(_)
            | StepKind::Kv(_) => 0,
        };
        rows.next_multiple_of(u64::from(self.batch))
    }

    /// Rows that all clients of the step insert.
    pub fn all_inserted_rows(&self) -> u64 {
        match self.kind {
            StepKind::Prepare { tables, rows, .. } => rows.saturating_mul(tables.into()),
            StepKind::Fill { rows, .. } => rows,
            _ => self.inserted_rows().saturating_mul(self.clients.into()),
        }
    }

    /// The operation whose rate and latency stand for the step: `insert`, `index`, `query`, `scan`,
    /// `transaction`, `put`, `get`, `multiget`, `range`, or `event` for all kinds of events
    /// together.
    pub fn primary_operation(&self) -> &'static str {
        match self.kind {
            StepKind::Load { .. }
            | StepKind::Write { .. }
            | StepKind::Prepare { .. }
            | StepKind::Fill { .. } => "insert",
            StepKind::CreateIndexes { .. } => "index",
            StepKind::ReadWrite { .. } => "query",
            StepKind::Scan
            | StepKind::Test(Test {
                kind: TestKind::Scan,
                ..
            }) => "scan",
            StepKind::Test(_) => "transaction",
            StepKind::Mix(_) => ALL_EVENTS,
            StepKind::Kv(KvStep { work, .. }) => work.operation(),
        }
    }

    /// What is due per second over all clients: background rows of a read-write step, background
    /// writes beside reads of RocksDB, events or operations of a step with a rate.
    pub fn rate_per_s(&self) -> Option<u64> {
        match &self.kind {
            StepKind::Test(Test { rate, .. }) | StepKind::Mix(MixStep { rate, .. }) => {
                rate.map(|rate| rate.per_s)
            }
            StepKind::Kv(KvStep {
                rate: Some(rate), ..
            }) => Some(rate.per_s),
            StepKind::Kv(step) => step
                .background_writes()
                .map(|(writes, ns)| writes.saturating_mul(SECOND_NS) / ns),
            _ => self
                .background_rate()
                .map(|rate| rate * u64::from(self.clients)),
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

/// How long to wait for the engine after a step that leaves debt.
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
