//! One process at a time fetches a build. Locks are `flock`s: the kernel frees them when their
//! holder dies.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::builds::error::BuildError;
use crate::builds::progress::{Stage, Watch};

/// Longer than the one who has the lock may take for its download.
pub(crate) const DEADLINE: Duration = Duration::from_secs(40 * 60);
/// Longer than a build may take to be compiled.
pub(crate) const COMPILE_DEADLINE: Duration = Duration::from_secs(12 * 3600);
const POLL: Duration = Duration::from_millis(100);

/// A held lock; freed when dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock of a download.
    pub fn take(path: &Path, watch: &mut Watch<'_>) -> Result<Self, BuildError> {
        Self::take_within(DEADLINE, path, watch)
    }

    /// The lock, unless another has it.
    pub fn try_take(path: &Path) -> Result<Option<Self>, BuildError> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(BuildError::io("lock", path)(error)),
        }
    }

    /// Waits for the lock until `limit` has passed.
    pub fn take_within(
        limit: Duration,
        path: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<Self, BuildError> {
        let file = open(path)?;
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
            if started.elapsed() > limit {
                return Err(BuildError::Client(format!(
                    "another process has held {} for {} minutes; see what it does",
                    path.display(),
                    limit.as_secs() / 60
                )));
            }
            std::thread::sleep(POLL);
        }
        watch.stage = stage;
        Ok(Self { _file: file })
    }
}

/// The lock's file, made if it is not there.
fn open(path: &Path) -> Result<File, BuildError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BuildError::io("make", folder))?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(BuildError::io("open", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_compiles_is_waited_for_longer_than_who_fetches() {
        // A step of a recipe may take eight hours.
        assert!(COMPILE_DEADLINE > Duration::from_secs(8 * 3600));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x.lock");
        let mut watch = Watch {
            progress: &mut |_| {},
            is_cancelled: &|| false,
            name: "x".to_owned(),
            stage: Stage::Checking,
            started: Instant::now(),
        };
        let held = Lock::take(&path, &mut watch).unwrap();
        let error = Lock::take_within(Duration::ZERO, &path, &mut watch);
        assert!(error.is_err_and(|error| error.to_string().contains("has held")));
        drop(held);
        Lock::take_within(Duration::ZERO, &path, &mut watch).unwrap();
    }
}
