//! Names of files and folders in a trial's folder.

use std::path::{Path, PathBuf};

/// What happened, one event a line.
pub const EVENTS_FILE: &str = "events.jsonl";
/// What the trial's server leaves behind: logs, statistics, profiles.
pub const SERVER_FOLDER: &str = "server";
/// What happened in each second or turn of a step.
const SERIES_FOLDER: &str = "series";

/// Where a trial keeps the [`series`](crate::series) of its steps.
pub fn series_dir(trial_dir: impl AsRef<Path>) -> PathBuf {
    trial_dir.as_ref().join(SERIES_FOLDER)
}

/// Where a trial keeps the histograms of a step's seconds.
pub fn histogram_log_path(trial_dir: impl AsRef<Path>, step: &str) -> PathBuf {
    trial_dir.as_ref().join(format!("{step}.hlog"))
}

/// The text without path separators.
pub(crate) fn as_file_name(text: &str) -> String {
    text.replace(['/', '\\', '\0'], "_")
}
