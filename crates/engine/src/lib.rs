//! Database engines behind three traits: an [`Engine`] is what can be started, a [`Server`] is what
//! is running on one data state, an [`SqlSession`] is what one worker talks to. No engine knows a
//! workload.

mod build;
mod deadline;
mod drain;
mod driver;
mod error;
mod external;
mod foreign_folder;
mod guest;
mod kv;
pub mod mysql;
pub mod null;
mod password;
pub mod postgres;
pub mod process;
mod reconnecting;
pub mod rocksdb;
mod sql;
pub mod sqlite;
mod tls;
mod waits;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_core::engines::EngineName;

pub use build::{DataInit, InstalledBuild, Link, link_name};
pub use drain::{DrainAction, DrainEnd, DrainLimits};
use driver::Driver;
pub use driver::{Probed, bytes_at_start, engine, external_engine, is_built_in, probe};
pub use error::{EngineError, ErrorClass, SqlError};
pub use external::External;
pub use guest::{GuestOrder, Guests, guest_server};
pub use kv::{Direction, Found, KvSession, KvStore, Level, WriteMode};
pub use password::Password;
pub use plimsoll_core::plan::{SessionClient, Transport};
pub use sql::{AutoKey, KeyPlace, Partitioned, SqlForms, SqlServer};
pub use waits::{RUNNING, WaitSampler};

/// The code of each engine. Its facts are in [`plimsoll_core::engines`].
pub(crate) fn driver(name: EngineName) -> &'static Driver {
    match name {
        EngineName::Sqlite => &sqlite::DRIVER,
        EngineName::Mysql | EngineName::Mariadb => &mysql::DRIVER,
        EngineName::Postgres => &postgres::DRIVER,
        EngineName::Rocksdb => &rocksdb::DRIVER,
        EngineName::Null => &null::DRIVER,
    }
}

/// Who built the engine, and how.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct BuildInfo {
    /// `sqlite`, `mysql`, ...
    pub engine: String,
    /// The version the binary itself states.
    pub version: String,
    /// Where it comes from: `bundled`, a package, a folder.
    pub origin: String,
    /// Compiler and compile options, as far as the engine tells.
    pub options: Vec<String>,
}

/// Settings by name, as text.
pub type Settings = BTreeMap<String, String>;

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The empty or existing data directory. It belongs to the trial.
    pub data_dir: PathBuf,
    pub settings: Settings,
    /// A folder for what the server leaves behind and people read: its log, statistics. Kept in the
    /// trial's folder.
    pub log_dir: PathBuf,
    /// A command to run the server under. An embedded engine has its whole process run under it
    /// instead.
    pub prefix: Vec<String>,
    /// Environment variables of the server's process.
    pub env: BTreeMap<String, String>,
    /// How sessions reach the server.
    pub transport: Transport,
    /// Which client the workers' sessions go through where TLS does not decide it.
    pub client: SessionClient,
    /// Who connects from other machines; nobody if there are none. Sessions of this machine go
    /// through the socket then, whatever the transport.
    pub guests: Option<Guests>,
}

impl StartOptions {
    /// A start without a prefix, an environment or a choice of transport and client; the server's
    /// log goes to the data directory.
    pub fn new(data_dir: impl Into<PathBuf>, settings: Settings) -> Self {
        let data_dir = data_dir.into();
        let (prefix, env) = (Vec::new(), BTreeMap::new());
        let (transport, client) = (Transport::default(), SessionClient::default());
        Self {
            log_dir: data_dir.clone(),
            data_dir,
            settings,
            prefix,
            env,
            transport,
            client,
            guests: None,
        }
    }
}

/// A build that can be started.
pub trait Engine: Send + Sync {
    fn build(&self) -> BuildInfo;

    /// Checks a config without starting anything: unknown settings, impossible values.
    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError>;

    /// Starts a server (or opens an embedded engine) on the data directory.
    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError>;

    /// True when the engine lives in the process of its client: their CPU and memory cannot be told
    /// apart.
    fn is_embedded(&self) -> bool;
}

/// What the workers of a server talk to.
pub enum Sessions<'a> {
    Sql(&'a dyn SqlServer),
    Kv(&'a dyn KvStore),
}

/// A running engine on one data state.
pub trait Server: Send + Sync {
    /// What its workers talk to.
    fn sessions(&self) -> Sessions<'_>;

    /// Its SQL. Plans refuse workloads of SQL on engines that have none.
    fn sql(&self) -> Result<&dyn SqlServer, EngineError> {
        match self.sessions() {
            Sessions::Sql(server) => Ok(server),
            Sessions::Kv(_) => Err(EngineError::new(
                "the engine has no SQL; give its cells a workload of keys and values",
            )),
        }
    }

    /// Its keys and values. Plans refuse workloads of them on engines that have SQL.
    fn kv(&self) -> Result<&dyn KvStore, EngineError> {
        match self.sessions() {
            Sessions::Kv(store) => Ok(store),
            Sessions::Sql(_) => Err(EngineError::new(
                "the engine has no keys and values; take a build of rocksdb",
            )),
        }
    }

    /// Opens one connection of SQL.
    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        self.sql()?.connect()
    }

    /// The settings the engine really runs with, read back from it.
    fn effective_settings(&self) -> Result<Settings, EngineError>;

    /// The engine's own counters since it started; a step's part is the difference of two calls.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError>;

    /// What a step needs done before it starts and after it ends, outside the measured window:
    /// binary logs dropped. Says what was done.
    fn reset_between_steps(&self) -> Result<Vec<DrainAction>, EngineError> {
        Ok(Vec::new())
    }

    /// Writes what the server reports about itself (status texts, statistics views) to files in
    /// `dir` named after `moment`.
    fn save_state(&self, _dir: &Path, _moment: &str) -> Result<(), EngineError> {
        Ok(())
    }

    /// Ends maintenance that the engine begins by the clock and not because of a statement, for as
    /// long as the server runs, and returns when none of it is under way. The name of what is held;
    /// none if the engine has none.
    fn hold_maintenance(&self) -> Result<Option<&'static str>, EngineError> {
        Ok(None)
    }

    /// Whether the server still runs. Cheap: called ten times a second.
    fn health(&self) -> Health {
        Health::Running
    }

    /// Works off debt: writeback, checkpoints, statistics. An engine that writes faster only while
    /// settings are changed keeps them so until the plan's wait is over, and restores them; the
    /// others return when their work is done. Ends at the limit even when debt is left, and soon
    /// after a stop, and reports that it did.
    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError>;

    /// Bytes of tables and indexes, without logs.
    fn database_bytes(&self) -> Result<u64, EngineError>;

    /// The port at which client hosts are let in; none without [`StartOptions::guests`].
    fn guest_port(&self) -> Option<u16> {
        None
    }

    /// Lets client hosts do to the workload's tables what they like: those that are there by now.
    fn give_tables_to_guests(&self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Process ids of the server; empty for an embedded engine.
    fn processes(&self) -> Vec<u32>;

    /// Shuts down cleanly within `timeout`.
    fn stop(self: Box<Self>, timeout: Duration) -> Result<(), EngineError>;
}

/// Whether a server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Its process is there.
    Running,
    /// Its process has ended.
    Crashed {
        /// The exit status or signal; an out-of-memory kill where the kernel tells.
        status: String,
        /// The end of its log.
        log_tail: String,
    },
}

/// A statement that was prepared on a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared(pub usize);

/// What a placeholder takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// An integer of 64 bits.
    Integer,
    Text,
}

/// The value of a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument<'a> {
    /// An integer of 64 bits.
    Integer(i64),
    Text(&'a str),
}

/// What a statement touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows that were fetched.
    pub rows: u64,
    /// Rows that were changed, as the engine says. Without meaning for a statement that fetches
    /// rows.
    pub affected: u64,
}

/// How long one call of a session tries to replace a lost connection. A server that takes none for
/// that long has more than a hiccup.
const RECONNECT_LIMIT: Duration = Duration::from_secs(2);

/// One worker's connection. Not shared between threads.
///
/// A call that meets the end of the connection says so ([`ErrorClass::is_disconnected`]); the next
/// one, whichever it is, first makes a new connection, and gives up after 2 s. A running statement
/// has no deadline: a hang is for others to notice.
///
/// A write is one transaction of its own (autocommit); where the engine wants it, the session wraps
/// it so. Whoever needs a transaction of several statements performs its beginning and its end like
/// any other statement. The per-operation calls format nothing and copy no row; what they allocate
/// does not grow with the rows.
pub trait SqlSession: Send {
    /// Runs one writing statement as a transaction and returns the affected rows. `expected_rows`
    /// is what the caller counts on; only the null engine, which has no rows, answers with it.
    fn write(&mut self, sql: &str, expected_rows: u64) -> Result<u64, SqlError>;

    /// Runs one statement that defines or maintains something. A lock is reported like any other
    /// error: the caller knows how long to wait.
    fn define(&mut self, sql: &str) -> Result<(), SqlError>;

    /// Prepares a statement with `?` placeholders for integers.
    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError>;

    /// Runs a prepared query, fetches all of its rows, and returns their number.
    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError>;

    /// Runs a prepared writing statement as a transaction and returns the affected rows.
    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        expected_rows: u64,
    ) -> Result<u64, SqlError>;

    /// Runs a query, fetches all of its rows, and returns their number.
    fn query(&mut self, sql: &str) -> Result<u64, SqlError>;

    /// Prepares a statement with `?` placeholders of these types. A server gets the types, and
    /// infers none.
    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError>;

    /// Runs a statement as it is, in the transaction that is open or as one of its own, and fetches
    /// all of its rows. For statements that begin and end transactions, and those between them.
    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError>;

    /// The same with a statement of [`prepare_as`](Self::prepare_as).
    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError>;

    /// Runs a statement that copies rows in, `copy t from stdin`, and hands it `rows`. Only
    /// PostgreSQL has such statements.
    fn copy_in(&mut self, sql: &str, _rows: &[u8]) -> Result<u64, SqlError> {
        Err(SqlError {
            class: ErrorClass::Statement,
            code: 0,
            message: "this engine copies no rows in; insert them".to_owned(),
            statement: sql.chars().take(200).collect(),
        })
    }

    /// The single integer a query returns; `None` for NULL or no row.
    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError>;

    /// Runs a query and hands each row's columns, rendered as text in a stable way, to `row`. For
    /// checks, not for load.
    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError>;
}

/// Bytes of all files below `dir`, as their sizes say.
pub fn directory_bytes(dir: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        // A file may vanish between the listing and the look at it: an engine removes its logs when
        // it likes.
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => bytes += directory_bytes(&entry.path())?,
            Ok(metadata) => bytes += metadata.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}
