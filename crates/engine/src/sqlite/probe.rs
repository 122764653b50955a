//! A first look at a library, in a process that may die of it.

use std::collections::BTreeMap;
use std::path::Path;

use super::library::{Connection, Failure, Library};
use super::{Facts, failure, query};
use crate::{EngineError, Probed};

/// Of the toolchain: the check-in that the library was made of, and its compile options.
pub(super) const SOURCE_ID: &str = "source_id";
pub(super) const COMPILE_OPTIONS: &str = "compile_options";

/// Rows that the trial run writes and finds again: enough for several pages.
const ROWS: i64 = 1000;

/// Loads a library into this process, and makes, writes, reads and checks a database in `dir`,
/// which is empty. It needs no companions.
pub(super) fn probe(
    path: &Path,
    _companions: Option<&Path>,
    dir: &Path,
) -> Result<Probed, EngineError> {
    let library = Library::load(path)?;
    let facts = Facts::ask(library)?;
    let found = write_and_read(library, &dir.join("probe.db"))
        .map_err(|error| failure::engine_error("write and read a new database", &error))?;
    if found != (ROWS, "ok".to_owned()) {
        return Err(EngineError::new(format!(
            "{} wrote {ROWS} rows, finds {} and says of its file: {}; it is damaged",
            path.display(),
            found.0,
            found.1
        )));
    }
    let told = [
        (SOURCE_ID, facts.source_id),
        (COMPILE_OPTIONS, facts.compile_options.join(" ")),
    ];
    Ok(Probed {
        version: facts.version,
        toolchain: BTreeMap::from(told.map(|(name, text)| (name.to_owned(), text))),
    })
}

/// The number of rows that are found, and what the library says of the file.
fn write_and_read(library: &'static Library, path: &Path) -> Result<(i64, String), Failure> {
    let mut connection = Connection::open(library, path, true)?;
    for sql in [
        "PRAGMA journal_mode = wal",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, s TEXT)",
        "BEGIN IMMEDIATE",
    ] {
        query::run(&connection, sql)?;
    }
    let insert = connection.keep("INSERT INTO t VALUES (?, hex(randomblob(20)))")?;
    for id in 0..ROWS {
        let statement = connection.kept(insert);
        statement
            .expect("the statement is kept since the last line but one")
            .execute(&[id])?;
    }
    query::run(&connection, "COMMIT")?;
    let rows = query::number(&connection, "SELECT count(*) FROM t WHERE length(s) = 40")?;
    let verdict = query::texts(&connection, "PRAGMA integrity_check")?.join("; ");
    connection.close()?;
    Ok((rows, verdict))
}
