//! A first look at a library, in a process that may die of it.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::toolchain::{CRC32, UNKNOWN};

use super::library::{Database, Library, Options, ReadOptions, Status, WriteOptions};
use super::server::read_back;
use crate::{EngineError, Probed};

/// Loads a library into this process, and opens, writes and reads a database in `dir`, which is
/// empty.
pub(super) fn probe(
    path: &Path,
    companions: Option<&Path>,
    dir: &Path,
) -> Result<Probed, EngineError> {
    let library = Library::load(path, companions)?;
    let options = Options::new(library);
    let failed = |doing: &'static str| move |status: Status| status.of_store(doing);
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
    let crc32 = match told("fast_crc32").as_deref() {
        Some(text) if text.starts_with("Supported") => "hardware",
        Some(text) if text.starts_with("Not supported") => "software",
        _ => UNKNOWN,
    };
    let mut toolchain = BTreeMap::from([(CRC32.to_owned(), crc32.to_owned())]);
    // The commit it was built from, where it knows.
    toolchain.extend(told("git_sha").map(|sha| ("commit".to_owned(), sha)));
    Ok(Probed { version, toolchain })
}
