//! Processes that a broken trial leaves behind: ended by pid, start time and boot, and by nothing else.

use std::fs;
use std::path::Path;

use plimsoll_engine::process::{IDENTITY_FILE, ProcessIdentity};
use plimsoll_store::TrialRecord;

use crate::trial::SERVER_FOLDER;

/// Ends trial processes of an earlier run that are still there. Only what the store proves to be ours: pid, start time and boot.
pub(crate) fn end_leftovers(trials: &[TrialRecord]) {
    for trial in trials.iter().filter(|trial| !trial.is_complete()) {
        let Some(start) = trial.start() else { continue };
        let (pid, start_ticks, boot_id) = (start.pid, start.pid_start_ticks, start.boot_id.clone());
        ProcessIdentity { pid, start_ticks, boot_id, group: None }.kill_group();
        end_server(&trial.dir);
    }
}

/// Ends the servers of an earlier run that made data for trials, if any are still there.
pub(crate) fn end_state_leftovers(states: &Path) {
    fs::read_dir(states).into_iter().flatten().flatten().for_each(|entry| end_server(&entry.path()));
}

/// Ends the server of a trial that is broken, by the identity that was written down at its start. Its data is thrown away, so it needs no
/// clean end. A server that somebody else started has no such identity and is left alone.
pub(crate) fn end_server(trial_dir: &Path) {
    let text = fs::read_to_string(trial_dir.join(SERVER_FOLDER).join(IDENTITY_FILE)).unwrap_or_default();
    let Ok(server) = serde_json::from_str::<ProcessIdentity>(&text) else { return };
    server.kill_group();
}
