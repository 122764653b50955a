//! What can go wrong with the store: every message names the place and the way out.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use thiserror::Error;

/// The way out when a file of one trial cannot be trusted.
pub(crate) const RUN_TRIAL_AGAIN: &str = "the file was edited or damaged: remove that trial's \
                                         folder, and `plimsoll resume` runs the trial again";

/// The way out when `campaign.json` cannot be trusted.
pub(crate) const RESTORE_HEADER: &str = "the file was edited or damaged: restore it from a copy, \
                                        or start the campaign again with `plimsoll run`";

/// The way out when `imported.json` cannot be trusted.
pub(crate) const IMPORT_AGAIN: &str =
    "the file was edited or damaged: remove the campaign's folder and import the results again";

/// A campaign or trial folder could not be found, written or believed. Messages are fragments that
/// fit after "failed to ".
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused something.
    #[error("{action} {}: {source}; {}", path.display(), advice(source))]
    Io {
        /// `read`, `write`, `create`, ...
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A file does not hold what was written to it.
    #[error("read {}{}: {reason}; {remedy}", path.display(), at_line(*line))]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The line, from 1; 0 if no line is known.
        line: usize,
        /// What is wrong with it.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// A file is of a later format than this program knows.
    #[error("read {}: it is of format {found}, and this version knows formats up to {known}; use \
            the plimsoll that wrote it, or a newer one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The latest known format.
        known: u32,
    },
    /// A line of `events.jsonl` is intact, but not an event that this program knows.
    #[error("read {}, line {line}: {reason}; the line is intact, so another version wrote it: use \
            the plimsoll that wrote it, or a newer one", path.display())]
    UnknownEvent {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is not understood.
        reason: String,
    },
    /// Another process runs this campaign.
    #[error("lock {}: {} runs this campaign; wait for it, or end it first",
        path.display(), process(*pid))]
    Running {
        /// The campaign's folder.
        path: PathBuf,
        /// The process, unless it is just starting or its lock file is not readable.
        pid: Option<u32>,
    },
    /// Another writer has this events file.
    #[error("write {}: {} is writing it; wait for it, or end it first",
        path.display(), process(*pid))]
    Writing {
        /// The events file.
        path: PathBuf,
        /// The process, where the kernel tells.
        pid: Option<u32>,
    },
    /// An earlier sync of this events file failed: what reached the disk is unknown.
    #[error("write {}: an earlier sync of it failed, so what reached the disk is unknown; check \
            the disk, then `plimsoll resume` runs the trial again", path.display())]
    Unsynced {
        /// The events file.
        path: PathBuf,
    },
    /// A value that the file format cannot hold.
    #[error("write {}: {reason}; nothing was written, report this as a bug", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What cannot be written.
        reason: String,
    },
    /// Something of that name is there already.
    #[error("create {}: it exists already; use another name or remove it", path.display())]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// A campaign id that cannot be a folder's name.
    #[error("create campaign \"{id}\" in {}: an id is the name of a folder, without '/' and not \
            starting with '.'; rename the plan", store.display())]
    BadId { id: String, store: PathBuf },
    /// No campaign answers to that name.
    #[error("{}", no_campaign(store, wanted.as_deref(), newest))]
    NoCampaign {
        store: PathBuf,
        /// What was asked for; nothing for the newest.
        wanted: Option<String>,
        /// Up to five ids, newest first.
        newest: Vec<String>,
    },
    /// A prefix fits several campaigns.
    #[error("find campaign \"{wanted}\" in {}: it fits {}; write more of the id",
        store.display(), ids.join(", "))]
    Ambiguous {
        store: PathBuf,
        /// The prefix.
        wanted: String,
        /// The ids it fits, newest first.
        ids: Vec<String>,
    },
    /// A link where a campaign has a file or folder of its own: what it leads to may be anybody's.
    #[error("write {}: it is a link, and campaigns have none; remove it, or move the campaign to a \
            folder without links", path.display())]
    Link {
        /// The link.
        path: PathBuf,
    },
    /// A campaign's folder that was copied or renamed.
    #[error("run {}: its campaign.json is that of \"{id}\"; to go on with it, give the folder that \
            name", path.display())]
    Renamed {
        /// The folder.
        path: PathBuf,
        /// The id in `campaign.json`.
        id: String,
    },
    /// A folder among the trials that is not what its name says.
    #[error("read {}: {reason}; move the folder away if it does not belong to this campaign, then \
            `plimsoll resume` runs what is missing", path.display())]
    StrangeFolder {
        /// The folder.
        path: PathBuf,
        /// What is strange.
        reason: String,
    },
}

impl StoreError {
    /// Wraps an error of the operating system, for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    /// What is wrong with what was read, without the folder that it is in, if its files or the disk
    /// are damaged. None if it is intact, or could not be read for another reason.
    pub fn damage(&self) -> Option<String> {
        let name = |path: &Path| {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        };
        match self {
            Self::Corrupt {
                path, line, reason, ..
            } => Some(format!("{}{}: {reason}", name(path), at_line(*line))),
            Self::StrangeFolder { reason, .. } => Some(reason.clone()),
            Self::Io { path, source, .. } if is_of_the_disk(source) => {
                Some(format!("{}: {source}", name(path)))
            }
            _ => None,
        }
    }

    /// Whether it is about one trial's folder, which the disk did not take, so that others can run.
    pub fn costs_one_trial(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::Unsynced { .. })
    }

    /// Whether there was no room to write.
    pub fn is_full(&self) -> bool {
        use ErrorKind::{QuotaExceeded, StorageFull};
        let kind = match self {
            Self::Io { source, .. } => source.kind(),
            _ => return false,
        };
        matches!(kind, StorageFull | QuotaExceeded)
    }

    /// A file of a trial that does not hold what was written to it.
    pub(crate) fn corrupt(path: &Path, line: usize, reason: impl Into<String>) -> Self {
        Self::Corrupt {
            path: path.to_owned(),
            line,
            reason: reason.into(),
            remedy: RUN_TRIAL_AGAIN,
        }
    }
}

/// Whether the disk or its filesystem is damaged, or something else is where a file was.
fn is_of_the_disk(error: &io::Error) -> bool {
    let of_disk = |of: &Errno| error.raw_os_error() == Some(of.raw_os_error());
    let damaged = [Errno::IO, Errno::BADMSG, Errno::UCLEAN];
    let another = [Errno::LOOP, Errno::NAMETOOLONG, Errno::NXIO, Errno::NOTDIR];
    error.kind() == ErrorKind::Other || damaged.iter().chain(&another).any(of_disk)
}

fn at_line(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(", line {line}"),
    }
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => "check the path, or restore the file from a copy",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check the owner and mode of the folder, or name another with --store"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "make room, then `plimsoll resume` continues"
        }
        _ => "check the disk and the folder, then try again",
    }
}

fn process(pid: Option<u32>) -> String {
    pid.map_or_else(
        || "another process".to_owned(),
        |pid| format!("process {pid}"),
    )
}

fn no_campaign(store: &Path, wanted: Option<&str>, newest: &[String]) -> String {
    if let Some(path) = wanted.map(Path::new).filter(|path| path.exists()) {
        return format!(
            "{} is not a campaign: it has no campaign.json",
            path.display()
        );
    }
    let what = wanted.map_or_else(
        || "the newest campaign".to_owned(),
        |wanted| format!("campaign \"{wanted}\""),
    );
    let store = store.display();
    if newest.is_empty() {
        format!(
            "find {what} in {store}: there are no campaigns; `plimsoll run` makes one, --store \
            names another folder"
        )
    } else {
        format!(
            "find {what} in {store}: it is not there; the newest are {}; --store names another \
            folder",
            newest.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_disk_did_not_take_costs_one_trial() {
        let of_disk = |kind: ErrorKind| StoreError::io("write", Path::new("x"))(kind.into());
        let path = || PathBuf::from("x");
        for (error, costs_one_trial, is_full) in [
            (of_disk(ErrorKind::StorageFull), true, true),
            (of_disk(ErrorKind::QuotaExceeded), true, true),
            (of_disk(ErrorKind::PermissionDenied), true, false),
            (StoreError::Unsynced { path: path() }, true, false),
            (StoreError::Exists { path: path() }, false, false),
            (
                StoreError::Running {
                    path: path(),
                    pid: None,
                },
                false,
                false,
            ),
        ] {
            assert_eq!(
                (error.costs_one_trial(), error.is_full()),
                (costs_one_trial, is_full),
                "{error}"
            );
        }
    }
}
