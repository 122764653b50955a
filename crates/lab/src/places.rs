//! Where data directories are, and the mark that says a folder is ours.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// The file that marks a data folder as ours.
const MARKER: &str = ".plimsoll-data";
const MARKER_TEXT: &str =
    "This folder belongs to Plimsoll. It makes and removes data directories here; do not keep anything of your own in it.\n";

/// The data folder when none is given: in the user's cache folder.
pub fn default_data_dir() -> Result<PathBuf, LabError> {
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
        .ok_or_else(|| LabError::Usage("neither XDG_CACHE_HOME nor HOME is set: say where data directories go with --data DIR".into()))?;
    Ok(cache.join("plimsoll").join("data"))
}

/// Makes a folder ours, or refuses one that holds somebody else's files.
pub fn prepare_data_root(dir: &Path) -> Result<PathBuf, LabError> {
    check_data_root(dir)?;
    fs::create_dir_all(dir).map_err(|error| {
        LabError::Usage(format!("the data folder {} cannot be made: {error}; choose another with --data DIR", dir.display()))
    })?;
    let marker = dir.join(MARKER);
    if !marker.exists() {
        fs::write(&marker, MARKER_TEXT).map_err(|error| {
            LabError::Usage(format!("the data folder {} cannot be written: {error}; choose another with --data DIR", dir.display()))
        })?;
    }
    dir.canonicalize().map_err(|error| LabError::io(dir.display(), error))
}

/// Takes a data folder for one campaign: two at a time on one machine would measure each other.
pub(crate) fn take_data_root(dir: &Path) -> Result<File, LabError> {
    prepare_data_root(dir)?;
    let marker = dir.join(MARKER);
    let file = File::open(&marker).map_err(|error| LabError::io(marker.display(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(LabError::Machine(format!(
            "another campaign is running with its data in {}; two at a time would disturb each other: wait until it is done",
            dir.display()
        ))),
        Err(TryLockError::Error(error)) => Err(LabError::io(marker.display(), error)),
    }
}

/// Refuses a folder that holds somebody else's files; changes nothing.
pub(crate) fn check_data_root(dir: &Path) -> Result<(), LabError> {
    let foreign = |problem: &str| {
        LabError::Usage(format!("the data folder {} {problem}; choose an empty or new folder with --data DIR", dir.display()))
    };
    match fs::read_dir(dir).map(|mut entries| entries.next().is_none()) {
        Ok(is_empty) if is_empty || dir.join(MARKER).is_file() => Ok(()),
        Ok(_) => Err(foreign("is not empty and is not ours (no .plimsoll-data in it)")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(foreign(&format!("cannot be read: {error}"))),
    }
}

/// Removes a data directory below a data folder of ours.
pub(crate) fn remove_data_dir(dir: &Path) -> Result<(), LabError> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(LabError::io(format!("failed to remove {}", dir.display()), error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_folder_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("thesis.tex"), "precious").unwrap();
        let error = prepare_data_root(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is not empty and is not ours"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_empty_or_new_folder_becomes_ours_and_stays_it() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("a/b");
        prepare_data_root(&new).unwrap();
        fs::write(new.join("x"), "").unwrap();
        prepare_data_root(&new).unwrap();
    }
}
