//! Processes that a broken trial leaves behind: ended by pid, start time and boot, and by nothing else.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_engine::process::{IDENTITY_FILE, ProcessIdentity};
use plimsoll_host::is_same_process;
use plimsoll_store::TrialRecord;
use rustix::process::{Pid, Signal, kill_process};

use crate::trial::SERVER_FOLDER;

const POLL: Duration = Duration::from_millis(20);
/// A killed process has this long to be gone.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

/// Ends trial processes of an earlier run that are still there. Only what the store proves to be ours: pid, start time and boot.
pub(crate) fn end_leftovers(trials: &[TrialRecord]) {
    for trial in trials.iter().filter(|trial| !trial.is_complete()) {
        let Some(start) = trial.start() else { continue };
        end_process(start.pid, || is_same_process(start.pid, start.pid_start_ticks, &start.boot_id));
        end_server(&trial.dir);
    }
}

/// Ends the server of a trial that is broken, by the identity that was written down at its start. Its data is thrown away, so it needs no
/// clean end. A server that somebody else started has no such identity and is left alone.
pub(crate) fn end_server(trial_dir: &Path) {
    let text = fs::read_to_string(trial_dir.join(SERVER_FOLDER).join(IDENTITY_FILE)).unwrap_or_default();
    let Ok(server) = serde_json::from_str::<ProcessIdentity>(&text) else { return };
    server.kill_group();
}

/// Kills a process and waits until it has ended. `is_there` says whether the number still means the process that is meant.
fn end_process(pid: u32, is_there: impl Fn() -> bool) {
    let Some(pid) = Pid::from_raw(pid as i32).filter(|_| is_there()) else { return };
    let _ = kill_process(pid, Signal::KILL);
    let deadline = Instant::now() + KILL_PATIENCE;
    while is_there() && !is_zombie(pid) && Instant::now() < deadline {
        std::thread::sleep(POLL);
    }
}

/// Whether a process has ended and only waits for its parent to ask how.
fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}
