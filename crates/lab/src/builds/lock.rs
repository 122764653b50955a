//! One process at a time fetches a build. Locks are `flock`s: the kernel frees them when their
//! holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::builds::error::BuildError;
use crate::builds::progress::{Stage, Watch};

/// Longer than the one who has the lock may take for its download.
const DEADLINE: Duration = Duration::from_secs(40 * 60);
const POLL: Duration = Duration::from_millis(100);

/// A held lock; freed when dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock.
    pub fn take(path: &Path, watch: &mut Watch<'_>) -> Result<Self, BuildError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(BuildError::io("make", folder))?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(BuildError::io("open", path))?;
        let started = Instant::now();
        let stage = watch.stage;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(BuildError::io("lock", path)(error)),
                Err(TryLockError::WouldBlock) => {}
            }
            if watch.stage != Stage::Waiting {
                watch.begin(Stage::Waiting)?;
            }
            watch.check_cancelled()?;
            if started.elapsed() > DEADLINE {
                return Err(BuildError::Client(format!(
                    "another process has held {} for {} minutes; see what it does",
                    path.display(),
                    DEADLINE.as_secs() / 60
                )));
            }
            std::thread::sleep(POLL);
        }
        watch.stage = stage;
        Ok(Self { _file: file })
    }
}
