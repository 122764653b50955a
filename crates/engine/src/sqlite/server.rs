//! The database file as a server: opens sessions, answers for the whole, and is closed at the end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::forms::SqliteForms;
use super::library::{Connection, Failure, Library};
use super::pragma::Kept;
use super::session::SqliteSession;
use super::{drain, failure, pragma, query};
use crate::{
    DrainAction, DrainLimits, EngineError, Server, Sessions, Settings, SqlForms, SqlServer,
    SqlSession, StartOptions,
};

/// The database's file in the data directory.
const FILE_NAME: &str = "ib.db";

/// Marks a database as ours, in the header field that SQLite leaves to applications: "Plim".
const APPLICATION_ID: i64 = 0x506c_696d;

/// How long opening a connection waits for locks.
const OPEN_PATIENCE: Duration = Duration::from_secs(10);

/// One database file, opened.
pub(super) struct SqliteServer {
    library: &'static Library,
    path: PathBuf,
    settings: Settings,
    /// Stays open from start to stop: SQLite checkpoints when the last connection closes, and that
    /// must not happen at the end of whichever step closes its sessions.
    admin: Mutex<Connection>,
}

impl SqliteServer {
    /// Opens the database file, or makes and marks it; refuses one that is not ours.
    pub(super) fn start(
        library: &'static Library,
        options: &StartOptions,
    ) -> Result<Self, EngineError> {
        pragma::check(&options.settings)?;
        let path = options.data_dir.join(FILE_NAME);
        let admin = open(library, &path, true)?;
        if is_foreign(&admin).map_err(|error| {
            failure::engine_error(&format!("look into {}", path.display()), &error)
        })? {
            return Err(EngineError::new(format!(
                "{} is a database that this program did not make: give it an empty data directory",
                path.display()
            )));
        }
        let settings = &options.settings;
        pragma::apply(&admin, settings, Kept::File)?;
        // Writes the first page of a new file, so that no later connection can give it another
        // shape.
        let mark = format!("PRAGMA application_id = {APPLICATION_ID}");
        query::run(&admin, &mark).map_err(|error| failure::engine_error(&mark, &error))?;
        pragma::apply(&admin, settings, Kept::Connection)?;
        set_impatient(&admin)?;
        Ok(Self {
            library,
            path,
            settings: settings.clone(),
            admin: Mutex::new(admin),
        })
    }

    fn session(&self) -> Result<SqliteSession, EngineError> {
        let connection = open(self.library, &self.path, false)?;
        pragma::apply(&connection, &self.settings, Kept::Connection)?;
        set_impatient(&connection)?;
        SqliteSession::new(connection)
            .map_err(|error| failure::engine_error("prepare a session's statements", &error))
    }

    fn admin(&self) -> MutexGuard<'_, Connection> {
        self.admin.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the admin connection answers to a pragma of one number.
    fn number(&self, pragma: &str) -> Result<i64, EngineError> {
        let admin = self.admin();
        let sql = format!("PRAGMA {pragma}");
        failure::wait_while_busy(Instant::now() + OPEN_PATIENCE, || {
            query::number(&admin, &sql)
        })
        .map_err(|error| failure::engine_error(&sql, &error))
    }
}

/// Opens a connection that waits for locks until [`set_impatient`].
fn open(library: &'static Library, path: &Path, is_made: bool) -> Result<Connection, EngineError> {
    let open = || {
        let connection = Connection::open(library, path, is_made)?;
        connection.wait_for_locks(OPEN_PATIENCE)?;
        Ok(connection)
    };
    open().map_err(|error| failure::engine_error(&format!("open {}", path.display()), &error))
}

/// From here on a taken lock is an error at once: the load loop counts it, waits and tries again.
fn set_impatient(connection: &Connection) -> Result<(), EngineError> {
    connection
        .wait_for_locks(Duration::ZERO)
        .map_err(|error| failure::engine_error("set the busy timeout", &error))
}

fn is_foreign(connection: &Connection) -> Result<bool, Failure> {
    let number = |sql| query::number(connection, sql);
    Ok(number("PRAGMA page_count")? > 0 && number("PRAGMA application_id")? != APPLICATION_ID)
}

/// Bytes of the write-ahead log, 0 when there is none.
fn wal_bytes(database: &Path) -> Result<u64, EngineError> {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    match std::fs::metadata(&path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(EngineError::new(format!(
            "look at {}: {error}; check the data directory's permissions",
            path.display()
        ))),
    }
}

impl SqlServer for SqliteServer {
    fn forms(&self) -> &'static dyn SqlForms {
        &SqliteForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        Ok(Box::new(self.session()?))
    }
}

impl Server for SqliteServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    fn effective_settings(&self) -> Result<Settings, EngineError> {
        pragma::read_all(self.session()?.connection())
    }

    /// `page_count`, `freelist_count` (pages of the database file, all and unused) and `wal_bytes`
    /// (size of the log file). All are levels, so the difference over a step is their growth. The
    /// library counts nothing else that all connections share.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        let wal_bytes = i64::try_from(wal_bytes(&self.path)?).unwrap_or(i64::MAX);
        Ok(BTreeMap::from([
            ("page_count".to_owned(), self.number("page_count")?),
            ("freelist_count".to_owned(), self.number("freelist_count")?),
            ("wal_bytes".to_owned(), wal_bytes),
        ]))
    }

    /// Returns when the log is taken back; nothing it does lasts until the plan's wait is over. A
    /// statement that runs is not cut short.
    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        // On a connection of its own: ANALYZE may take long, and the questions to the admin
        // connection should not wait for it.
        drain::drain(self.session()?.connection(), tables, limits, || {
            wal_bytes(&self.path)
        })
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        let bytes = self.number("page_count")? * self.number("page_size")?;
        Ok(bytes.unsigned_abs())
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Closes the server's connection. The last one to close takes the log back into the database,
    /// and nothing can hurry that, so the timeout has no effect.
    fn stop(self: Box<Self>, _timeout: Duration) -> Result<(), EngineError> {
        let admin = self
            .admin
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        admin.close().map_err(|error| {
            failure::engine_error(&format!("close {}", self.path.display()), &error)
        })
    }
}
