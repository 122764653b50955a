//! Space: what is free below a path, and what a folder holds.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes that an ordinary user may still write on the filesystem of `path`, or of its nearest
/// ancestor that exists.
///
/// # Errors
/// When the filesystem does not answer.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    disk_space(path).map(|space| space.free_bytes)
}

/// A filesystem's space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// What an ordinary user may still write.
    pub free_bytes: u64,
    /// All of it.
    pub total_bytes: u64,
}

/// The space of the filesystem of `path`, or of its nearest ancestor that exists.
///
/// # Errors
/// When the filesystem does not answer.
pub fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let statistics = rustix::fs::statvfs(&nearest_existing(path)?.0)?;
    let bytes = |blocks: u64| blocks.saturating_mul(statistics.f_frsize);
    Ok(DiskSpace {
        free_bytes: bytes(statistics.f_bavail),
        total_bytes: bytes(statistics.f_blocks),
    })
}

/// The path, made absolute, or its nearest ancestor that exists.
pub(crate) fn nearest_existing(path: &Path) -> io::Result<(PathBuf, Metadata)> {
    let path = std::path::absolute(path)?;
    let mut error = io::Error::from(io::ErrorKind::NotFound);
    for ancestor in path.ancestors() {
        match ancestor
            .canonicalize()
            .and_then(|real| Ok((real.metadata()?, real)))
        {
            Ok((metadata, real)) => return Ok((real, metadata)),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => error = cause,
            Err(cause) => return Err(cause),
        }
    }
    Err(error)
}

/// Sizes of all files below `dir`, links not followed. Files and folders that vanish meanwhile do
/// not count: an engine removes its logs when it likes.
///
/// # Errors
/// When a folder cannot be listed.
pub fn directory_bytes(dir: &Path) -> io::Result<u64> {
    let mut bytes = 0u64;
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder != dir => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => folders.push(entry.path()),
                Ok(metadata) if metadata.is_file() => bytes = bytes.saturating_add(metadata.len()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_does_not_exist_has_its_ancestors_space() {
        let dir = tempfile::tempdir().unwrap();
        let (ancestor, _) = nearest_existing(&dir.path().join("a/b/c")).unwrap();
        assert_eq!(ancestor, dir.path().canonicalize().unwrap());
        assert!(free_bytes(&dir.path().join("a/b/c")).unwrap() > 0);
        assert!(nearest_existing(Path::new("no such folder")).is_ok());
    }

    #[test]
    fn a_folder_holds_the_sizes_of_its_files() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("x"), [0; 100]).unwrap();
        std::fs::write(dir.path().join("a/b/y"), [0; 23]).unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("z"), [0; 4000]).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
        assert_eq!(directory_bytes(dir.path()).unwrap(), 123);
        assert!(directory_bytes(&dir.path().join("none")).is_err());
    }
}
