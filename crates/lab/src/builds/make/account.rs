//! Whom a build's commands run as. Root is not needed, so root's builds run as `nobody` if that
//! user can reach the workshop.

use std::fs;
use std::os::unix::fs::lchown;
use std::path::Path;
use std::time::Duration;

use plimsoll_engine::process::{child_command, output_within};

use crate::builds::error::BuildError;

/// `nobody` and its group.
const NOBODY: u32 = 65534;
/// A look at a folder.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
const SETPRIV: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

/// Whom commands run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    Ourselves,
    Nobody,
}

impl Account {
    /// Whom commands run as that write in `folders`, which are handed to them. What lies beside
    /// those stays ours: we write there, and would follow links of theirs.
    pub fn of(folders: &[&Path]) -> Result<Self, BuildError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        for folder in folders {
            chown_all(folder, NOBODY)?;
        }
        let is_reached = folders.iter().all(|folder| {
            let mut probe = child_command(SETPRIV[0]);
            probe.args(&SETPRIV[1..]).args(["test", "-w"]).arg(folder);
            let said = output_within(&mut probe, PROBE_LIMIT);
            said.is_ok_and(|said| said.status.success())
        });
        if is_reached {
            return Ok(Self::Nobody);
        }
        for folder in folders {
            chown_all(folder, 0)?;
        }
        Ok(Self::Ourselves)
    }

    /// What goes before a command.
    pub fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::Ourselves => &[],
            Self::Nobody => &SETPRIV,
        }
    }

    /// Hands a folder that commands need to them.
    pub fn give(self, folder: &Path) -> Result<(), BuildError> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Nobody => chown_all(folder, NOBODY),
        }
    }

    /// Takes back what commands made: nobody may change a build.
    pub fn take_back(self, folder: &Path) -> Result<(), BuildError> {
        match self {
            Self::Ourselves => Ok(()),
            Self::Nobody => chown_all(folder, 0),
        }
    }
}

fn chown_all(path: &Path, id: u32) -> Result<(), BuildError> {
    let io = || BuildError::io("hand over", path);
    lchown(path, Some(id), Some(id)).map_err(io())?;
    if path.symlink_metadata().map_err(io())?.is_dir() {
        for entry in fs::read_dir(path).map_err(io())? {
            chown_all(&entry.map_err(io())?.path(), id)?;
        }
    }
    Ok(())
}
