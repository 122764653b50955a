//! One row a second: what was done (`series/<step>.operations.tsv`) and what the host did
//! (`series/<step>.host.tsv`). One row a turn of a step by slices: `series/<step>.turns.tsv`. One
//! row a second and level of a log-structured tree: `series/<step>.levels.tsv`. One row an event that
//! sessions waited for, if they were looked at: `series/<step>.waits.tsv`.
//!
//! Tab separated, a header line first, every line ended by a newline. A file appears when it is
//! complete.

mod host;
mod levels;
mod operations;
mod table;
mod turns;
mod waits;

use std::path::{Path, PathBuf};

pub use host::{HostSeries, read_host, write_host};
pub use levels::{LevelSample, read_levels, write_levels};
pub use operations::{
    OperationSecond, OperationsWriter, read_operations, read_operations_together, write_operations,
};
pub use turns::{Turn, read_turns, write_turns};
pub use waits::{WaitProfile, read_waits, write_waits};

use crate::layout::{as_file_name, series_dir};

/// Where a trial keeps what was done in each second of a step.
pub fn operations_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    path(trial_dir.as_ref(), step, "operations")
}

/// Where a trial keeps what the host did in each second of a step.
pub fn host_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    path(trial_dir.as_ref(), step, "host")
}

/// Where a trial keeps the levels of the tree in each second of a step.
pub fn levels_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    path(trial_dir.as_ref(), step, "levels")
}

/// Where a trial keeps what was done in each turn of a step by slices.
pub fn turns_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    path(trial_dir.as_ref(), step, "turns")
}

/// Where a trial keeps what the sessions of a step waited for.
pub fn waits_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    path(trial_dir.as_ref(), step, "waits")
}

fn path(trial_dir: &Path, step: &str, what: &str) -> PathBuf {
    series_dir(trial_dir).join(format!("{}.{what}.tsv", as_file_name(step)))
}
