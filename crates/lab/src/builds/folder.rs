//! Folders of the cache that come and go.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use crate::builds::error::BuildError;

/// Removes a folder with all that is in it, if it is there.
pub(crate) fn remove(folder: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(BuildError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Makes a folder and those above it.
pub(crate) fn make(folder: &Path) -> Result<(), BuildError> {
    fs::create_dir_all(folder).map_err(BuildError::io("make", folder))
}

/// A file's text; `None` if it is not there.
pub(crate) fn text_of(path: &Path) -> Result<Option<String>, BuildError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(BuildError::io("read", path)(error)),
    }
}
