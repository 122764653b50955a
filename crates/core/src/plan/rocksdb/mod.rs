//! The benchmark of RocksDB as a plan describes it: the sequence of db_bench steps, and what one
//! operation of each is.
//!
//! Names are those of the published tables, clients included: `fillseq.wal_disabled.v400`,
//! `readwhilewriting.t24`.

use serde::{Deserialize, Serialize};

mod read;

use crate::plan::{Step, StepKind, TestRate, WaitRule};

/// Bytes of a key: its number, 8 bytes big-endian, then ASCII zeros.
pub const KEY_BYTES: u32 = 20;
/// Bytes of a value.
pub const VALUE_BYTES: u32 = 400;
/// Keys of one `MultiGet`.
pub const MULTIGET_KEYS: u32 = 10;
/// Values that a range reads at most.
pub const RANGE_KEYS: u32 = 10;

/// Sizes and settings of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RocksdbBench {
    /// Keys, loaded by the first step. No other step adds or removes one.
    pub keys: u64,
    /// Threads of every step but the load.
    pub clients: u32,
    /// Whether each step has a process of its own.
    pub process: StepProcess,
    /// Whether all keys are read once before each step.
    pub warm_cache: bool,
    /// The pause after the steps that have a drain; the drain itself lasts until the engine is
    /// idle.
    pub wait: WaitRule,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// Where a step runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepProcess {
    /// In a process of its own, as with db_bench: caches and statistics are empty when it begins.
    #[default]
    Step,
    /// In the trial's process, like those before it: a step finds the caches that they left.
    Trial,
}

/// One step of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KvStep {
    /// What an operation is.
    pub work: KvWork,
    /// When it ends.
    pub end: KvEnd,
    /// Time before the measured one that is not recorded, in nanoseconds.
    pub warm_up_ns: u64,
    /// Bytes of keys and values that a thread of its own writes per second meanwhile.
    pub background_bytes_per_s: Option<u64>,
    /// Operations per second of all clients together; without it each sends the next one when the
    /// last is done.
    pub rate: Option<TestRate>,
    /// Whether the step goes on until no flush and no compaction is left to do.
    pub waits: bool,
}

/// What an operation of a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvWork {
    /// Put of the next key, without the write-ahead log.
    Fill,
    /// Put of a random key.
    Overwrite,
    /// Get of a random key.
    Get,
    /// One `MultiGet` of [`MULTIGET_KEYS`] random keys.
    MultiGet,
    /// A new iterator, placed at a random key; up to [`RANGE_KEYS`] values are read.
    Range {
        /// Prev instead of Next.
        is_backward: bool,
    },
}

/// When a step ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvEnd {
    /// After this many operations of each client.
    Operations(u64),
    /// After this many nanoseconds.
    Time(u64),
}

impl KvWork {
    /// The operation's kind.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Fill | Self::Overwrite => "put",
            Self::Get => "get",
            Self::MultiGet => "multiget",
            Self::Range { .. } => "range",
        }
    }

    /// Whether it writes.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Fill | Self::Overwrite)
    }

    /// Keys that one operation asks for or writes. Of a range it is one: the key that it begins at.
    pub fn keys(self) -> u32 {
        match self {
            Self::MultiGet => MULTIGET_KEYS,
            _ => 1,
        }
    }
}

impl KvStep {
    /// Whether nothing of it changes the tree, so that the steps after it do not miss it.
    pub fn only_reads(&self) -> bool {
        !self.work.is_write() && self.background_bytes_per_s.is_none()
    }

    /// Whether it writes a number of times that the plan fixes: later steps count on them.
    pub fn makes_data(&self) -> bool {
        self.work.is_write() && matches!(self.end, KvEnd::Operations(_))
    }

    /// Its measured time in nanoseconds, where it ends by time.
    pub fn duration_ns(&self) -> Option<u64> {
        match self.end {
            KvEnd::Time(ns) => Some(ns),
            KvEnd::Operations(_) => None,
        }
    }

    /// Background writes per second of a step that has them, as a fraction: so many in so many
    /// nanoseconds.
    pub fn background_writes(&self) -> Option<(u64, u64)> {
        Some((
            self.background_bytes_per_s?,
            u64::from(KEY_BYTES + VALUE_BYTES) * 1_000_000_000,
        ))
    }
}

impl RocksdbBench {
    /// The sequence, without what single steps set.
    pub(in crate::plan) fn sequence(
        keys: u64,
        clients: u32,
        timed: KvStep,
        background_bytes_per_s: u64,
    ) -> Vec<Step> {
        let quiet = |work: KvWork| KvStep {
            work,
            background_bytes_per_s: None,
            ..timed
        };
        let beside_writes = |work: KvWork| KvStep {
            work,
            background_bytes_per_s: Some(background_bytes_per_s),
            ..timed
        };
        let counted = |work: KvWork, operations: u64| KvStep {
            end: KvEnd::Operations(operations),
            warm_up_ns: 0,
            ..quiet(work)
        };
        let t = clients;
        // To the nearest, as the original rounds.
        let some = ((keys as f64 / f64::from(t) / 10.0).round() as u64).max(1);
        let forward = KvWork::Range { is_backward: false };
        let backward = KvWork::Range { is_backward: true };
        [
            (
                format!("fillseq.wal_disabled.v{VALUE_BYTES}"),
                1,
                counted(KvWork::Fill, keys),
                true,
            ),
            (format!("readrandom.t{t}"), t, quiet(KvWork::Get), false),
            (format!("fwdrange.t{t}"), t, quiet(forward), false),
            (
                format!("multireadrandom.t{t}"),
                t,
                quiet(KvWork::MultiGet),
                false,
            ),
            (
                format!("overwritesome.t{t}.s0"),
                t,
                counted(KvWork::Overwrite, some),
                true,
            ),
            (
                format!("revrangewhilewriting.t{t}"),
                t,
                beside_writes(backward),
                false,
            ),
            (
                format!("fwdrangewhilewriting.t{t}"),
                t,
                beside_writes(forward),
                false,
            ),
            (
                format!("readwhilewriting.t{t}"),
                t,
                beside_writes(KvWork::Get),
                false,
            ),
            (
                format!("overwriteandwait.t{t}.s0"),
                t,
                KvStep {
                    waits: true,
                    ..quiet(KvWork::Overwrite)
                },
                false,
            ),
        ]
        .into_iter()
        .map(|(name, clients, step, drain_after)| Step {
            name,
            kind: StepKind::Kv(step),
            clients,
            batch: 1,
            drain_after,
            wait_ns: None,
            max_failed: None,
        })
        .collect()
    }
}

impl Step {
    /// Whether this is its name; a step of RocksDB's benchmark may be called without its threads,
    /// too.
    pub fn is_called(&self, text: &str) -> bool {
        self.name == text
            || (matches!(self.kind, StepKind::Kv(_)) && self.name.split('.').next() == Some(text))
    }
}
