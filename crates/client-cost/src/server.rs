//! A server with sysbench's table.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::engines::EngineName;
use plimsoll_engine::{InstalledBuild, Settings, StartOptions, engine};
use plimsoll_host::EngineUnderLoad;
use plimsoll_testkit::{build_record, cached_build};
use plimsoll_workload::SharedServer;
use tempfile::TempDir;

use crate::Failed;

/// Rows of the table `sbtest1`.
pub const ROWS: u64 = 100_000;
/// The database that the servers' own sessions use.
pub const DATABASE: &str = "ib";

const ROWS_PER_INSERT: u64 = 1000;
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// A running server. One that is dropped is killed.
pub struct Target {
    pub server: SharedServer,
    /// The exact name of its build.
    pub name: String,
    data: TempDir,
    _logs: TempDir,
}

impl Target {
    /// Starts a build of the cache, under settings that keep the server out of the way: everything
    /// in memory, nothing synced.
    pub fn start(wanted: &str) -> Result<Self, Failed> {
        let found = cached_build("client_cost", wanted)
            .ok_or("the build is not in the cache; `make servers` fetches those of the tests")?;
        let build: InstalledBuild =
            serde_json::from_str(&build_record(&found.cache.join(&found.name))?)?;
        let settings: &[(&str, &str)] = if build.engine == EngineName::Postgres {
            &[
                ("shared_buffers", "512MB"),
                ("synchronous_commit", "off"),
                ("max_connections", "1100"),
                ("jit", "off"),
            ]
        } else {
            &[
                ("innodb_buffer_pool_size", "512M"),
                ("innodb_flush_log_at_trx_commit", "2"),
                ("performance_schema", "0"),
                ("max_connections", "1100"),
            ]
        };
        // PostgreSQL 9.6 has no jit.
        let settings = settings
            .iter()
            .filter(|(name, _)| *name != "jit" || !found.name.starts_with("postgres@9."));
        let settings: Settings = settings
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let (data, logs) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let options = StartOptions {
            log_dir: logs.path().to_owned(),
            ..StartOptions::new(data.path(), settings)
        };
        let server = Arc::new(engine(&found.name.parse()?, Some(&build))?.start(&options)?);
        let target = Self {
            server,
            name: found.name,
            data,
            _logs: logs,
        };
        target.load()?;
        Ok(target)
    }

    /// Whether it is PostgreSQL, and no MySQL or MariaDB.
    pub fn is_postgres(&self) -> bool {
        self.name.starts_with("postgres")
    }

    /// Who its own sessions are.
    pub fn user(&self) -> &'static str {
        if self.is_postgres() {
            "postgres"
        } else {
            "root"
        }
    }

    /// The file of its unix socket.
    pub fn socket(&self) -> Result<PathBuf, Failed> {
        let mut folders = vec![self.data.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let kind = entry.file_type()?;
                // MySQL 5.7 and later have another one, for its other protocol.
                if kind.is_socket() && entry.file_name() != "mysqlx.sock" {
                    return Ok(entry.path());
                }
                if kind.is_dir() {
                    folders.push(entry.path());
                }
            }
        }
        Err("the server has no socket in its data directory".into())
    }

    /// What readings of the machine are about.
    pub fn watch(&self) -> EngineUnderLoad<'_> {
        EngineUnderLoad {
            data_dir: self.data_dir(),
            server_pids: self.server.processes(),
            is_embedded: false,
        }
    }

    fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// The table of sysbench's oltp tests, filled.
    fn load(&self) -> Result<(), Failed> {
        let mut session = self.server.connect()?;
        let suffix = self.server.sql()?.table_suffix();
        session.define(&format!(
            "create table sbtest1 (id int primary key, k int not null, c char(120) not null, pad \
            char(60) not null){suffix}"
        ))?;
        for first in (1..=ROWS).step_by(ROWS_PER_INSERT as usize) {
            let tuples: Vec<String> = (first..first + ROWS_PER_INSERT)
                .map(|id| {
                    format!(
                        "({id},{},'{}','{}')",
                        id * 7 % ROWS,
                        "c".repeat(119),
                        "p".repeat(59)
                    )
                })
                .collect();
            session.write(
                &format!("insert into sbtest1 values {}", tuples.join(",")),
                ROWS_PER_INSERT,
            )?;
        }
        if self.is_postgres() {
            session.define("vacuum analyze sbtest1")?;
        }
        Ok(())
    }

    /// Stops the server.
    pub fn stop(self) -> Result<(), Failed> {
        Ok(Arc::into_inner(self.server)
            .ok_or("a session is still open")?
            .stop(STOP_TIMEOUT)?)
    }
}
