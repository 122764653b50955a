//! `seal.json`: the length and SHA-256 of every file of a finished trial.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use plimsoll_core::planted::{self, Bug};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::StoreError;
use crate::files::durable::{read_file, write_json_atomically};

const FILE_NAME: &str = "seal.json";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seal {
    format: u32,
    files: Vec<SealedFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealedFile {
    path: String,
    bytes: u64,
    sha256: String,
}

/// A file that is not as it was when its folder was sealed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mismatch {
    /// Relative to the sealed folder, with `/`.
    pub path: String,
    /// What happened to it.
    pub change: Change,
}

/// What happened to a file since its folder was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// Its content is another.
    Changed,
    /// It is gone.
    Missing,
    /// It was not there.
    Added,
}

/// Seals a folder: makes every regular file below it durable and writes their paths, lengths and
/// checksums to `seal.json`. Sockets, pipes and links hold no data of a trial and are left out.
pub fn seal(dir: impl AsRef<Path>) -> Result<(), StoreError> {
    let dir = dir.as_ref();
    let mut files = Vec::new();
    for (path, place) in files_below(dir)? {
        let file = File::open(&place).map_err(StoreError::io("read", &place))?;
        let (bytes, sha256) = digest(&file).map_err(StoreError::io("read", &place))?;
        if !planted::is(Bug::SealedBeforeSynced) {
            file.sync_all().map_err(StoreError::io("sync", &place))?;
        }
        files.push(SealedFile {
            path,
            bytes,
            sha256,
        });
    }
    write_json_atomically(
        dir.join(FILE_NAME),
        &Seal {
            format: FORMAT,
            files,
        },
    )
}

/// Compares a folder with its seal: nothing when it has none, else the files that differ, sorted by
/// path.
pub fn check_seal(dir: impl AsRef<Path>) -> Result<Option<Vec<Mismatch>>, StoreError> {
    let dir = dir.as_ref();
    let Some(sealed) = seal_of(dir)? else {
        return Ok(None);
    };
    let mut mismatches = Vec::new();
    let mut found = files_below(dir)?;
    for file in sealed.files {
        let change = match found.remove(&file.path) {
            None => Some(Change::Missing),
            Some(place) => {
                let now = File::open(&place)
                    .and_then(|file| digest(&file))
                    .map_err(StoreError::io("read", &place))?;
                (now != (file.bytes, file.sha256)).then_some(Change::Changed)
            }
        };
        mismatches.extend(change.map(|change| Mismatch {
            path: file.path,
            change,
        }));
    }
    mismatches.extend(found.into_keys().map(|path| Mismatch {
        path,
        change: Change::Added,
    }));
    mismatches.sort();
    Ok(Some(mismatches))
}

/// Whether a file of a sealed folder was longer, or was there, when the folder was sealed. Where
/// there is no seal, or none that can be read, nothing is known of it.
pub(crate) fn was_longer(dir: &Path, name: &str) -> bool {
    let seal = seal_of(dir).ok().flatten();
    let sealed = seal.and_then(|seal| seal.files.into_iter().find(|file| file.path == name));
    // Looked at after the seal: what is sealed grows no more.
    sealed
        .is_some_and(|file| fs::metadata(dir.join(name)).map_or(0, |file| file.len()) < file.bytes)
}

/// The seal of a folder; nothing when it has none.
fn seal_of(dir: &Path) -> Result<Option<Seal>, StoreError> {
    let path = dir.join(FILE_NAME);
    match read_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io("read", &path)(error)),
        Ok(text) => read_seal(&path, &text).map(Some),
    }
}

fn read_seal(path: &Path, text: &[u8]) -> Result<Seal, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let damaged =
        |error: serde_json::Error| StoreError::corrupt(path, error.line(), error.to_string());
    let Version { format } = serde_json::from_slice(text).map_err(damaged)?;
    if format > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    serde_json::from_slice(text).map_err(damaged)
}

/// Every regular file below `dir` but the seal itself, by its path relative to it.
fn files_below(dir: &Path) -> Result<BTreeMap<String, PathBuf>, StoreError> {
    let mut files = BTreeMap::new();
    collect(dir, "", &mut files)?;
    files.remove(FILE_NAME);
    Ok(files)
}

fn collect(
    dir: &Path,
    prefix: &str,
    files: &mut BTreeMap<String, PathBuf>,
) -> Result<(), StoreError> {
    for entry in fs::read_dir(dir).map_err(StoreError::io("read", dir))? {
        let entry = entry.map_err(StoreError::io("read", dir))?;
        let place = entry.path();
        let name = entry.file_name().into_string().map_err(|_| {
            StoreError::io("read", &place)(io::Error::new(
                io::ErrorKind::InvalidFilename,
                "its name is not UTF-8, rename or remove it",
            ))
        })?;
        let kind = entry.file_type().map_err(StoreError::io("read", &place))?;
        let path = format!("{prefix}{name}");
        if kind.is_dir() {
            collect(&place, &format!("{path}/"), files)?;
        } else if kind.is_file() {
            files.insert(path, place);
        }
    }
    Ok(())
}

/// Length and SHA-256 in hex.
fn digest(mut file: &File) -> io::Result<(u64, String)> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut bytes = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => {
                hasher.update(&buffer[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok((
        bytes,
        hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed_folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in [
            ("events.jsonl", "{}\n"),
            ("series/l.i0.operations.tsv", "second\n"),
            ("server/empty.log", ""),
        ] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        std::os::unix::fs::symlink("nowhere", dir.path().join("server/link")).unwrap();
        seal(dir.path()).unwrap();
        dir
    }

    fn mismatch(path: &str, change: Change) -> Mismatch {
        Mismatch {
            path: path.to_owned(),
            change,
        }
    }

    #[test]
    fn holds_paths_lengths_and_checksums_in_order() {
        let dir = sealed_folder();
        let text = fs::read_to_string(dir.path().join(FILE_NAME)).unwrap();
        let seal: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            seal,
            serde_json::json!({"format": 1, "files": [
                // The checksums are those of sha256sum.
                {"path": "events.jsonl", "bytes": 3, "sha256": "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"},
                {"path": "series/l.i0.operations.tsv", "bytes": 7, "sha256": "480c2336b410f1ad5f8bf1b28944490255804b65350c527787e74ebdd511e3a4"},
                {"path": "server/empty.log", "bytes": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
            ]})
        );
        assert_eq!(check_seal(dir.path()).unwrap(), Some(vec![]));
        seal_again_is_equal(dir.path(), &text);
    }

    fn seal_again_is_equal(dir: &Path, text: &str) {
        seal(dir).unwrap();
        assert_eq!(fs::read_to_string(dir.join(FILE_NAME)).unwrap(), text);
    }

    #[test]
    fn names_every_file_that_differs() {
        let dir = sealed_folder();
        fs::write(dir.path().join("events.jsonl"), "{ \n").unwrap();
        fs::remove_file(dir.path().join("server/empty.log")).unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/new"), "").unwrap();
        let expected = [
            mismatch("a/b/new", Change::Added),
            mismatch("events.jsonl", Change::Changed),
            mismatch("server/empty.log", Change::Missing),
        ];
        assert_eq!(check_seal(dir.path()).unwrap().unwrap(), expected);
    }

    #[test]
    fn a_folder_without_a_seal_has_none_and_a_bad_seal_is_an_error() {
        let dir = sealed_folder();
        let path = dir.path().join(FILE_NAME);
        let text = fs::read_to_string(&path).unwrap();
        for (bad, expected) in [
            (text.replace("\"bytes\": 3", "\"bytes\": x"), "line 6"),
            (text.replace("\"format\": 1", "\"format\": 2"), "format 2"),
            (text[..text.len() / 2].to_owned(), "damaged"),
            (text.replace("\"bytes\"", "\"size\""), "size"),
        ] {
            fs::write(&path, bad).unwrap();
            let error = check_seal(dir.path()).unwrap_err().to_string();
            assert!(
                error.contains(expected) && error.contains("seal.json"),
                "{error}"
            );
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(check_seal(dir.path()).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_read_is_neither_unsealed_nor_empty() {
        let dir = sealed_folder();
        let path = dir.path().join(FILE_NAME);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        let error = check_seal(dir.path()).unwrap_err().to_string();
        assert!(error.contains("seal.json: it is not a file"), "{error}");
        assert!(digest(&File::open(dir.path()).unwrap()).is_err());
    }
}
