//! Processes that a broken trial leaves behind.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use plimsoll_engine::process::{IDENTITY_FILE, ProcessIdentity};
use plimsoll_store::layout::SERVER_FOLDER;
use rustix::fs::OFlags;

use crate::error::LabError;

/// An identity is some numbers.
const MOST_BYTES: u64 = 4096;

/// Ends the servers that earlier runs of a campaign have left behind, by the identities below these
/// folders of trials. Those are believed only of processes that work below `data`, the campaign's
/// data folder: campaign folders may come from anybody. Returns the numbers of processes that run
/// on.
///
/// Nobody is left to be found here, unless the environments of their processes may not be read.
pub(crate) fn end_servers(trials: &Path, data: &Path) -> Vec<u32> {
    let trials = fs::read_dir(trials).into_iter().flatten().flatten();
    trials
        .filter_map(|trial| server_of(&trial.path()))
        .flat_map(|server| server.end_if_below(data))
        .collect()
}

/// What is measured next would be measured beside these processes, and its data would be theirs.
pub(crate) fn refuse_busy(dir: &Path, pids: &[u32]) -> Result<(), LabError> {
    if pids.is_empty() {
        return Ok(());
    }
    Err(LabError::Processes(format!(
        "the data folder is in use: {} works in {} and is not ours to end, or does not end; \
         end it, or choose another folder with --data DIR",
        of_processes(pids),
        dir.display()
    )))
}

/// `process 7, 8`.
pub(crate) fn of_processes(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    format!("process {}", pids.join(", "))
}

/// Ends the server of a trial that this process has made, by the identity that was written down at
/// its start. Its data is thrown away, so it needs no clean end. A server that somebody else
/// started has no such identity and is left alone. Returns its number if it runs on.
pub(crate) fn end_server(trial_dir: &Path) -> Option<u32> {
    let server = server_of(trial_dir)?;
    (!server.kill_group()).then_some(server.pid)
}

/// Only from a file that is one, and short: no link is followed, no pipe waited for.
fn server_of(trial_dir: &Path) -> Option<ProcessIdentity> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let file = File::options()
        .read(true)
        .custom_flags(flags)
        .open(trial_dir.join(SERVER_FOLDER).join(IDENTITY_FILE))
        .ok()?;
    let mut text = String::new();
    file.metadata()
        .is_ok_and(|metadata| metadata.is_file())
        .then(|| file.take(MOST_BYTES).read_to_string(&mut text))?
        .ok()?;
    serde_json::from_str(&text).ok()
}
