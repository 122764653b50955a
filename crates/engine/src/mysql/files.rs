//! Where a trial's files are.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::{EngineError, StartOptions};

/// A socket's path has this many characters at most (107 and a zero on Linux).
const SOCKET_PATH_CHARS: usize = 107;

/// The paths of one server.
#[derive(Clone, Debug)]
pub(super) struct Files {
    /// The trial's folder with the data directory and what belongs to it. Nobody else may enter:
    /// the socket in it is everybody's, and `root` has no password.
    pub dir: PathBuf,
    /// The server's own data directory.
    pub data: PathBuf,
    /// For the server's temporary files. Not shared: a MariaDB that starts removes what looks like
    /// leftovers of an earlier one, and several servers may run side by side.
    pub tmp: PathBuf,
    /// There when the data directory was made to the end.
    pub made: PathBuf,
    /// The file with the options, and what is kept of it.
    pub cnf: PathBuf,
    pub kept_cnf: PathBuf,
    pub socket: PathBuf,
    pub pid: PathBuf,
    /// What people read afterwards.
    pub log_dir: PathBuf,
    pub log: PathBuf,
    pub init_log: PathBuf,
}

impl Files {
    /// The paths below the folders of `options`, which exist afterwards.
    pub fn new(options: &StartOptions) -> Result<Self, EngineError> {
        make_dir(&options.data_dir)?;
        close_dir(&options.data_dir)?;
        make_dir(&options.log_dir)?;
        // Servers change into their data directory, so no path may depend on where we are.
        let absolute = |dir: &Path| {
            dir.canonicalize().map_err(|error| {
                EngineError::new(format!(
                    "find {}: {error}; check its permissions",
                    dir.display()
                ))
            })
        };
        let dir = absolute(&options.data_dir)?;
        let log_dir = absolute(&options.log_dir)?;
        let socket = dir.join("s.sock");
        let length = socket.as_os_str().len();
        if length > SOCKET_PATH_CHARS {
            return Err(EngineError::new(format!(
                "the socket {} has {length} characters and may have {SOCKET_PATH_CHARS}; take a \
                shorter folder with --data",
                socket.display()
            )));
        }
        Ok(Self {
            data: dir.join("data"),
            tmp: dir.join("tmp"),
            made: dir.join("made"),
            cnf: dir.join("my.cnf"),
            pid: dir.join("server.pid"),
            kept_cnf: log_dir.join("my.cnf"),
            log: log_dir.join("server.log"),
            init_log: log_dir.join("init.log"),
            socket,
            dir,
            log_dir,
        })
    }
}

/// Makes a folder, unless it is there.
pub(super) fn make_dir(dir: &Path) -> Result<(), EngineError> {
    fs::create_dir_all(dir).map_err(|error| {
        EngineError::new(format!(
            "make the folder {}: {error}; check its parent",
            dir.display()
        ))
    })
}

/// Lets nobody else (but root) into a folder.
fn close_dir(dir: &Path) -> Result<(), EngineError> {
    fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|error| {
        EngineError::new(format!(
            "close {} to others: {error}; choose a folder of yours, on a disk with permissions",
            dir.display()
        ))
    })
}

/// Writes a small file, and names it when that fails.
pub(super) fn write(path: &Path, text: &str) -> Result<(), EngineError> {
    fs::write(path, text).map_err(|error| {
        EngineError::new(format!(
            "write {}: {error}; check the disk and the folder",
            path.display()
        ))
    })
}
