//! One step of a workload: what runs after the step before it, on the data that that one left.
//!
//! A step carries its facts. They are worked out once, where the plan is checked, and they are all
//! that anybody but the workloads asks for; [`Work`] is the workloads' own.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use super::{
    Family, FileWork, InsertWork, KvWork, Operation, StatementMix, SysbenchWork, TestGroup,
    TestKind, Work,
};
use crate::units::SECOND_NS;

/// One step of the sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// `l.i0`, `qr100`, `point-query`, ...
    pub name: String,
    /// The operation whose rate and latency stand for the step.
    pub operation: Operation,
    /// When the step ends.
    pub ends: Ends,
    /// What the step's own operations do to the data.
    pub effect: Effect,
    /// When the operations of a step with a rate are due; without it (a closed loop) each client
    /// sends the next operation when the last is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrival: Option<Rate>,
    /// Writers that keep a rate alongside the step's own operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Whether as many rows are deleted as are inserted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub deletes: bool,
    /// Whether it is one of the workload's results; sysbench's tests that warm up are not.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub is_reported: bool,
    /// Clients of this step; the cell's unless the plan overrides it.
    pub clients: u32,
    /// Rows per transaction.
    pub batch: u32,
    /// Whether the engine is drained, and the plan waits, after this step.
    pub drain_after: bool,
    /// Wait of this step instead of the plan's, in nanoseconds.
    pub wait_ns: Option<u64>,
    /// The share of its operations, from 0 to 1, that may fail. Without it the step ends with the
    /// first operation that fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_failed: Option<f64>,
    /// What its workload does in it.
    pub work: Work,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_true(value: &bool) -> bool {
    *value
}

fn yes() -> bool {
    true
}

/// When a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ends {
    /// When the rows of its effect are there.
    Rows,
    /// When each client has done this many operations.
    Operations {
        /// Of each client.
        per_client: u64,
    },
    /// After a time.
    Time {
        /// The measured time in nanoseconds.
        ns: u64,
        /// Time before it that is not measured, in nanoseconds.
        warm_up_ns: u64,
    },
    /// When the background writers have inserted the rows that their rate brings in this time,
    /// however long that takes.
    RowsAtRate {
        /// Nanoseconds at the rate.
        ns: u64,
    },
    /// When its few long statements are done.
    Statements,
}

impl Ends {
    /// The measured time in nanoseconds, of a step that ends by time.
    pub fn duration_ns(self) -> Option<u64> {
        match self {
            Self::Time { ns, .. } | Self::RowsAtRate { ns } => Some(ns),
            Self::Rows | Self::Operations { .. } | Self::Statements => None,
        }
    }

    /// Time before the measured time, in nanoseconds.
    pub fn warm_up_ns(self) -> u64 {
        match self {
            Self::Time { warm_up_ns, .. } => warm_up_ns,
            _ => 0,
        }
    }
}

/// What a step's own operations do to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// They read.
    Reads,
    /// They write, or may, as much as there is time for. No later step counts on it.
    Writes,
    /// They make the data that later steps need.
    MakesData {
        /// Rows inserted.
        rows: Rows,
        /// Whether the tables have all of their indexes afterwards.
        is_indexed: bool,
    },
}

/// A number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rows {
    /// Of each client, rounded up to whole batches.
    PerClient(u64),
    /// Of all clients together, which share the work.
    InAll(u64),
}

/// An open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    /// Operations per second of all clients together.
    pub per_s: u64,
    /// Whether gaps are exponential instead of equal.
    pub is_poisson: bool,
}

/// Writers that keep a rate alongside a step's own operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    /// What they do.
    pub operation: Operation,
    /// How many there are.
    pub writers: Writers,
    /// Each writes this many rows or keys ...
    pub amount: u64,
    /// ... in this many nanoseconds.
    pub per_ns: NonZeroU64,
}

/// How many background writers a step has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writers {
    /// One for each client.
    OnePerClient,
    /// One.
    One,
}

impl Step {
    /// A step of few long statements that reads; what differs is set by the caller.
    pub(super) fn new(name: impl Into<String>, operation: Operation, work: Work) -> Self {
        Self {
            name: name.into(),
            operation,
            ends: Ends::Statements,
            effect: Effect::Reads,
            arrival: None,
            background: None,
            deletes: false,
            is_reported: true,
            clients: 1,
            batch: 1,
            drain_after: false,
            wait_ns: None,
            max_failed: None,
            work,
        }
    }

    /// The benchmark it belongs to.
    pub fn family(&self) -> Family {
        self.work.family()
    }

    /// The same step with this many clients, named after them.
    pub fn at_clients(&self, clients: u32) -> Self {
        Self {
            name: format!("{}@{clients}", self.name),
            clients,
            ..self.clone()
        }
    }

    /// Whether this is its name; a step of RocksDB's benchmark may be called without its threads,
    /// too.
    pub fn is_called(&self, text: &str) -> bool {
        self.name == text
            || (self.family() == Family::Rocksdb && self.name.split('.').next() == Some(text))
    }

    /// The clients of a step that is a level of a ramp, as its name has them.
    pub fn ramp_level(&self) -> Option<u32> {
        self.name.split_once('@')?.1.parse().ok()
    }

    /// Busy connections of the step.
    pub fn connections(&self) -> u32 {
        let writers = match self.background.map(|background| background.writers) {
            None => 0,
            Some(Writers::OnePerClient) => self.clients,
            Some(Writers::One) => 1,
        };
        let deleters = if self.deletes { self.clients } else { 0 };
        let clients = match self.work {
            // A table is filled by one of them.
            Work::Sysbench(SysbenchWork::Prepare { tables, .. })
            | Work::File(FileWork::Fill { tables, .. }) => self.clients.min(tables),
            _ => self.clients,
        };
        clients + writers + deleters
    }

    /// Rows that one client inserts: a whole number of batches. 0 if clients share the work, or if
    /// no plan knows.
    pub fn inserted_rows(&self) -> u64 {
        let rows = match (self.effect, self.background) {
            (Effect::MakesData { rows, .. }, _) => match rows {
                Rows::PerClient(rows) => rows,
                Rows::InAll(_) => 0,
            },
            (_, Some(background)) if background.operation == Operation::Insert => {
                let ns = self.ends.duration_ns().unwrap_or(0);
                let rows = u128::from(background.amount) * u128::from(ns);
                (rows / u128::from(background.per_ns.get())) as u64
            }
            _ => 0,
        };
        rows.next_multiple_of(u64::from(self.batch))
    }

    /// Rows that all clients of the step insert.
    pub fn all_inserted_rows(&self) -> u64 {
        match self.effect {
            Effect::MakesData {
                rows: Rows::InAll(rows),
                ..
            } => rows,
            _ => self.inserted_rows().saturating_mul(self.clients.into()),
        }
    }

    /// What is due per second over all clients: background rows of a read-write step, background
    /// writes alongside RocksDB's reads, events or operations of a step with a rate.
    pub fn rate_per_s(&self) -> Option<u64> {
        if let Some(rate) = self.arrival {
            return Some(rate.per_s);
        }
        let background = self.background?;
        let each = background.amount.saturating_mul(SECOND_NS) / background.per_ns;
        Some(each * u64::from(self.background_writers(background)))
    }

    /// What the background writers should do per second together.
    pub fn background_per_s(&self) -> Option<f64> {
        let background = self.background?;
        let each = background.amount as f64 * 1e9 / background.per_ns.get() as f64;
        Some(each * f64::from(self.background_writers(background)))
    }

    fn background_writers(&self, background: Background) -> u32 {
        match background.writers {
            Writers::OnePerClient => self.clients,
            Writers::One => 1,
        }
    }

    /// Whether later steps need what it leaves in the tables: it loads, indexes, or writes a number
    /// of rows that the plan fixes.
    pub fn makes_data(&self) -> bool {
        matches!(self.effect, Effect::MakesData { .. })
    }

    /// Whether it creates the tables and fills them for the first time.
    pub fn is_load(&self) -> bool {
        match &self.work {
            Work::InsertBenchmark(work) => matches!(work, InsertWork::Load { .. }),
            Work::Sysbench(work) => matches!(work, SysbenchWork::Prepare { .. }),
            Work::File(work) => matches!(work, FileWork::Fill { .. }),
            Work::Rocksdb(work) => work.work == KvWork::Fill,
        }
    }

    /// Whether its clients share one load, table by table.
    pub fn shares_load(&self) -> bool {
        let rows = match self.effect {
            Effect::MakesData { rows, .. } => Some(rows),
            _ => None,
        };
        matches!(rows, Some(Rows::InAll(_)))
    }

    /// Whether its own operations write. Events of a workload file may.
    pub fn is_writing(&self) -> bool {
        self.effect != Effect::Reads
    }

    /// Whether the data may be another behind it: by its own operations, or by background writers and
    /// deletes.
    pub fn changes_data(&self) -> bool {
        self.is_writing() || self.background.is_some() || self.deletes
    }

    /// Whether it comes behind the others in a start by slices: tests of sysbench that write do, else
    /// what the others read would depend on which writes are in the start.
    pub fn is_late_in_turns(&self) -> bool {
        self.family() == Family::Sysbench && self.is_writing()
    }

    /// Whether it is a test of sysbench that writes and that plans have before reads: all but deletes
    /// and inserts.
    pub(crate) fn is_early_write(&self) -> bool {
        match self.work {
            Work::Sysbench(SysbenchWork::Test(test)) => {
                test.kind.is_write() && !matches!(test.kind, TestKind::Delete | TestKind::Insert)
            }
            _ => false,
        }
    }

    /// Whether it goes on, after its operations, until no flush and no compaction is left to do.
    pub fn waits(&self) -> bool {
        matches!(&self.work, Work::Rocksdb(work) if work.waits)
    }

    /// Events of a step whose events are drawn, and their weights.
    pub fn events(&self) -> &[(String, u32)] {
        match &self.work {
            Work::File(FileWork::Mix { events }) => events,
            _ => &[],
        }
    }

    /// The section of the published table that a test of sysbench is in.
    pub fn test_group(&self) -> Option<TestGroup> {
        match &self.work {
            Work::Sysbench(SysbenchWork::Test(test)) => Some(test.kind.group()),
            _ => None,
        }
    }

    /// Statements of one event of a test of sysbench.
    pub fn statements(&self) -> Option<StatementMix> {
        match &self.work {
            Work::Sysbench(SysbenchWork::Test(test)) => Some(test.kind.statements()),
            _ => None,
        }
    }

    /// Whether it can be cut into turns: a step that ends by time can, one that does a number of
    /// things cannot.
    pub fn can_take_turns(&self) -> bool {
        self.duration_ns().is_some()
    }

    /// The measured time of a step that ends by time, in nanoseconds.
    pub fn duration_ns(&self) -> Option<u64> {
        self.ends.duration_ns()
    }

    /// Gives a step that ends by time another length, in nanoseconds; its warm-up too. Others stay
    /// as they are.
    pub fn set_duration(&mut self, length_ns: u64, warm_up: Option<u64>) {
        self.ends = match self.ends {
            // The Insert Benchmark has no warm-up.
            Ends::RowsAtRate { .. } => Ends::Time {
                ns: length_ns,
                warm_up_ns: 0,
            },
            Ends::Time { warm_up_ns, .. } => Ends::Time {
                ns: length_ns,
                warm_up_ns: match warm_up {
                    Some(ns) if self.family() != Family::InsertBenchmark => ns,
                    _ => warm_up_ns,
                },
            },
            others => others,
        };
    }
}

/// How long to wait for the engine after a step that leaves a backlog.
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
        let seconds = 60 + loaded_rows / 1_000_000;
        match self {
            Self::Classic => seconds.min(1200) * SECOND_NS,
            Self::ClassicMax => seconds.max(1200) * SECOND_NS,
            Self::Fixed { ns } => ns,
        }
    }
}
