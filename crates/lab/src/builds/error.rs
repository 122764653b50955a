//! What can go wrong with builds, sorted by whose move is next.

use std::io::ErrorKind;
use std::path::Path;

use thiserror::Error;

use crate::error::LabError;

/// A build could not be found, fetched, unpacked, recognised or checked.
#[derive(Debug, Error)]
pub enum BuildError {
    /// No recipe and no label has this name; the message lists what exists.
    #[error("{0}")]
    Unknown(String),
    /// What was asked for cannot be: a label that is taken, a folder without a server.
    #[error("{0}")]
    Usage(String),
    /// The build is not here, and nothing may be fetched.
    #[error(
        "{name} is not here and may not be fetched; fetch it once with `plimsoll build add \
        {name}`, without --offline"
    )]
    NotHere { name: String },
    /// The build is not here, and nothing may be compiled.
    #[error(
        "{name} is not here and may not be compiled now; compile it once with `{command}`, or \
        leave out --offline"
    )]
    NotMade { name: String, command: String },
    /// The registry has this version no longer.
    #[error("{0}")]
    Gone(String),
    /// A package client is missing, failed, or took too long.
    #[error("{0}")]
    Client(String),
    /// What was fetched is not what the recipe says.
    #[error("{0}")]
    Unfit(String),
    /// The user asked to stop.
    #[error("fetching {name} was interrupted; nothing of it is kept")]
    Cancelled { name: String },
    /// The user asked to stop while a source was compiled.
    #[error("making {name} was interrupted; the same command goes on where it ended")]
    Stopped { name: String },
    /// A command that makes a build failed.
    #[error(
        "{step} failed: {line}\n  its log: {}\n  what is compiled by then stays next to it for \
        the next try; `plimsoll build clean` removes it",
        .log.display()
    )]
    Failed {
        /// The step of the recipe.
        step: String,
        /// The line of the log that says why.
        line: String,
        log: std::path::PathBuf,
    },
    /// A file could not be read or written.
    #[error("{what}: {source}{advice}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// Why it failed.
        source: std::io::Error,
        /// What to do next.
        advice: &'static str,
    },
}

impl BuildError {
    /// Turns an I/O error into one that says what was tried on which path.
    pub(crate) fn io<'a>(
        doing: &'a str,
        path: &'a Path,
    ) -> impl FnOnce(std::io::Error) -> Self + 'a {
        move |source| {
            let advice = match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "; make room, or choose another disk with --cache DIR"
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "; check the folder's rights, or choose another with --cache DIR"
                }
                _ => "",
            };
            Self::Io {
                what: format!("failed to {doing} {}", path.display()),
                source,
                advice,
            }
        }
    }

    /// Whether a disk or a quota is full.
    pub fn is_disk_full(&self) -> bool {
        match self {
            Self::Io { source, .. } => matches!(
                source.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            ),
            Self::Failed { line, .. } => ["No space left on device", "Disk quota exceeded"]
                .iter()
                .any(|said| line.contains(said)),
            _ => false,
        }
    }

    /// Whether the machine or the request is at fault, and not what was to be made.
    pub(crate) fn is_of_the_machine(&self) -> bool {
        let of_kind = matches!(self, Self::Client(_) | Self::Unknown(_) | Self::Io { .. });
        of_kind || self.is_disk_full()
    }
}

impl From<BuildError> for LabError {
    fn from(error: BuildError) -> Self {
        let message = error.to_string();
        match error {
            _ if error.is_disk_full() => Self::Machine(message),
            BuildError::Unknown(_)
            | BuildError::Usage(_)
            | BuildError::NotHere { .. }
            | BuildError::NotMade { .. }
            | BuildError::Gone(_) => Self::Usage(message),
            BuildError::Client(_)
            | BuildError::Unfit(_)
            | BuildError::Cancelled { .. }
            | BuildError::Stopped { .. }
            | BuildError::Failed { .. }
            | BuildError::Io { .. } => Self::Io(message),
        }
    }
}
