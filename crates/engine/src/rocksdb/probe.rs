//! A first look at a library, in a process that may die of it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::library::{Database, Library, Options, ReadOptions, WriteOptions};
use super::server::read_back;
use crate::EngineError;

/// What a library says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// As its option files state it: `8.9.1`.
    pub version: String,
    /// Whether CRC32C is computed with an instruction, in its own words.
    pub fast_crc32: String,
    /// The commit it was built from, where it knows.
    pub git_sha: Option<String>,
}

/// Loads a library into this process, and opens, writes and reads a database in `dir`, which is
/// empty.
pub fn probe(path: &Path, companions: Option<&Path>, dir: &Path) -> Result<Probe, EngineError> {
    let library = Library::load(path, companions)?;
    let options = Options::new(library);
    let failed = |doing: &'static str| move |status: super::library::Status| status.of_store(doing);
    let database = Database::open(library, dir, &options).map_err(failed("open a new database"))?;
    let (key, value) = (b"key", b"value");
    database
        .put(&WriteOptions::new(library, true, false), key, value)
        .map_err(failed("write a key"))?;
    database.flush().map_err(failed("flush the memtable"))?;
    let found = database
        .value_bytes(&ReadOptions::new(library, true, true), key)
        .map_err(failed("read a key"))?;
    if found != Some(value.len()) {
        return Err(EngineError::new(format!(
            "{} does not find a key that was written; it is damaged",
            path.display()
        )));
    }
    drop(database);
    let settings = read_back(dir)?;
    let told = |name: &str| settings.get(name).cloned();
    let version = told("rocksdb_version").ok_or_else(|| {
        EngineError::new(format!("{} does not state its version", path.display()))
    })?;
    Ok(Probe {
        version,
        fast_crc32: told("fast_crc32").unwrap_or_else(|| "unknown".to_owned()),
        git_sha: told("git_sha"),
    })
}
