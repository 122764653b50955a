//! Processes that a broken trial leaves behind.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use plimsoll_engine::process::{IDENTITY_FILE, ProcessIdentity};
use plimsoll_store::layout::SERVER_FOLDER;
use rustix::fs::OFlags;

/// An identity is some numbers.
const MOST_BYTES: u64 = 4096;

/// Ends the servers that earlier runs of a campaign have left behind, by the identities below these
/// folders of trials. Those are believed only of processes that work below `data`, the campaign's
/// data folder: campaign folders may come from anybody.
///
/// Where the environments of other users' processes may be read, which root in a container may not,
/// nobody is left to be found here.
pub(crate) fn end_servers(trials: &Path, data: &Path) {
    for trial in fs::read_dir(trials).into_iter().flatten().flatten() {
        if let Some(server) = server_of(&trial.path()) {
            server.end_if_below(data);
        }
    }
}

/// Ends the server of a trial that this process has made, by the identity that was written down at
/// its start. Its data is thrown away, so it needs no clean end. A server that somebody else
/// started has no such identity and is left alone.
pub(crate) fn end_server(trial_dir: &Path) {
    if let Some(server) = server_of(trial_dir) {
        server.kill_group();
    }
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
