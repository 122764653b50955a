//! The benchmark of RocksDB as a plan describes it: the sequence of db_bench steps, and what one
//! operation of each is.
//!
//! Names are those of the published tables, clients included: `fillseq.wal_disabled.v400`,
//! `readwhilewriting.t24`.

pub(super) mod read;
pub(super) mod steps;
mod words;

use serde::{Deserialize, Serialize};

use steps::Sequence;

use crate::plan::{Operation, Step, WaitRule};

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
    /// Bytes of keys and values that a thread of its own writes per second meanwhile.
    pub background_bytes_per_s: Option<u64>,
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

impl KvWork {
    /// The operation's kind.
    pub fn operation(self) -> Operation {
        match self {
            Self::Fill | Self::Overwrite => Operation::Put,
            Self::Get => Operation::Get,
            Self::MultiGet => Operation::MultiGet,
            Self::Range { .. } => Operation::Range,
        }
    }

    /// Whether it writes.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Fill | Self::Overwrite)
    }
}
