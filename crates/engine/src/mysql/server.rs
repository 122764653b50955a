//! A running server of the family.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};
use rustix::process::Signal;

use super::admin::{self, Admin};
use super::files::Files;
use super::forms::MysqlForms;
use super::options::{ServerConfig, ServerOption};
use super::readback::{self, Standing};
use super::start::{init, launch, log};
use super::version::Version;
use super::{drain, failure, guest, session, state};
use crate::external::MARKER;
use crate::external::SESSION_CLIENT;
use crate::process::ServerProcess;
use crate::{
    DrainAction, DrainLimits, EngineError, Health, InstalledBuild, Server, SessionClient, Sessions,
    Settings, SqlForms, SqlServer, SqlSession, StartOptions, directory_bytes,
};

/// The database with the tables of a workload.
pub(super) const DATABASE: &str = "ib";

/// Variables that differ from start to start and say nothing about how a server runs.
pub(super) const VOLATILE: &[&str] = &[
    "gtid_binlog_pos",
    "gtid_binlog_state",
    "gtid_current_pos",
    "gtid_executed",
    "gtid_purged",
    "hostname",
    "port",
    "server_uid",
    "server_uuid",
];

/// One server and its data directory.
pub(super) struct MysqlServer {
    process: ServerProcess,
    files: Files,
    version: Version,
    config: ServerConfig,
    /// The build's folder, as its server names it.
    basedir: String,
    admin: Admin,
    /// Of the workers' sessions.
    client: SessionClient,
    guest_port: Option<u16>,
}

impl MysqlServer {
    /// Makes the data directory when there is none, starts the server, and checks that it is what
    /// build and config say.
    pub(super) fn start(
        build: &InstalledBuild,
        version: Version,
        options: &StartOptions,
    ) -> Result<Self, EngineError> {
        let config = ServerConfig::parse(&options.settings)?;
        let files = Files::new(options)?;
        init::make_data(build, version, &config, &files)?;
        let launched = launch::launch(build, version, &config, &files, options)?;
        let hasty = admin::with_limit(&launched.opts, admin::ANSWER_LIMIT);
        let mut admin = Conn::new(hasty)
            .map_err(|error| failure::engine_error("connect to the new server", &error))?;
        check_version(&mut admin, build, version)?;
        check_storage_engine(&mut admin, build, &config, &files)?;
        claim_database(&mut admin, &config)?;
        if let Some(guests) = &options.guests {
            guest::make_accounts(&mut admin, guests)?;
        }
        let opts: Opts = OptsBuilder::from_opts(launched.opts)
            .db_name(Some(DATABASE))
            .into();
        let basedir = build.basedir.display().to_string();
        let admin = Admin::new(opts);
        let server = Self {
            process: launched.process,
            files,
            version,
            config,
            basedir,
            admin,
            client: options.client,
            guest_port: launched.guest_port,
        };
        server.check_options(build)?;
        Ok(server)
    }

    /// Compares every option of the config with what the server says.
    fn check_options(&self, build: &InstalledBuild) -> Result<(), EngineError> {
        let variables = self.admin.variables()?;
        let problem = |option: &ServerOption| match readback::standing(option, &variables) {
            Standing::Taken => None,
            Standing::Unknown if option.is_loose => None,
            Standing::Unknown => Some(format!(
                "{0}: accepted, and without effect, as there is no such variable; take it out, or \
                write loose_{0} when only some versions have it",
                option.name
            )),
            Standing::Differs { found } => Some(format!(
                "{}: wanted {}, found {found}",
                option.name,
                option.value.as_deref().unwrap_or("on")
            )),
        };
        let problems: Vec<String> = self.config.options.iter().filter_map(problem).collect();
        if problems.is_empty() {
            return Ok(());
        }
        Err(EngineError::new(format!(
            "{} ({}) does not run with the config's settings: {}; set what it can do, its reasons \
            are in {}",
            build.name,
            self.version,
            problems.join("; "),
            self.files.log.display()
        )))
    }

    /// The folder of RocksDB's files: MariaDB's name, FB MySQL's name.
    fn rocksdb_dir(&self) -> Option<std::path::PathBuf> {
        ["#rocksdb", ".rocksdb"]
            .iter()
            .map(|name| self.files.data.join(name))
            .find(|dir| dir.is_dir())
    }
}

/// The server must be the one that its build describes.
fn check_version(
    connection: &mut Conn,
    build: &InstalledBuild,
    version: Version,
) -> Result<(), EngineError> {
    let sql = "select version()";
    let stated: Option<String> = connection
        .query_first(sql)
        .map_err(|error| failure::engine_error(sql, &error))?;
    let stated = stated.unwrap_or_default();
    if Version::parse(&stated, false) == Some(version) {
        return Ok(());
    }
    Err(EngineError::new(format!(
        "{} should be {version}, but the server says \"{stated}\"; its files were changed: remove \
        the build and add it again",
        build.name
    )))
}

/// The server must have the storage engine before anything is made with it: some put InnoDB in
/// place of one they lack.
fn check_storage_engine(
    connection: &mut Conn,
    build: &InstalledBuild,
    config: &ServerConfig,
    files: &Files,
) -> Result<(), EngineError> {
    admin::check_storage_engine(connection, &build.name, &config.storage_engine).map_err(|error| {
        // A plugin that fails over one of its settings is not a reason for the server not to start.
        let log = std::fs::read_to_string(&files.log).unwrap_or_default();
        match log::errors(&log, 3).as_slice() {
            [] => error,
            errors => EngineError::new(format!("{error}; its log says: {}", errors.join("; "))),
        }
    })
}

/// Makes and marks the database; refuses one that is not ours and holds tables.
fn claim_database(connection: &mut Conn, config: &ServerConfig) -> Result<(), EngineError> {
    let find_tables = format!(
        "select table_name from information_schema.tables where table_schema = '{DATABASE}'"
    );
    let tables: Vec<String> = connection
        .query(&find_tables)
        .map_err(|error| failure::engine_error(&find_tables, &error))?;
    if tables.iter().any(|table| table == MARKER) {
        return Ok(());
    }
    if let Some(table) = tables.first() {
        return Err(EngineError::new(format!(
            "the database {DATABASE} holds {table} and does not carry our mark: give the trial an \
            empty data directory"
        )));
    }
    let statements = [
        format!("create database if not exists {DATABASE}"),
        format!(
            "create table {DATABASE}.{MARKER} (made_by varchar(100) not null) engine={}",
            config.storage_engine
        ),
        format!("insert into {DATABASE}.{MARKER} values ('plimsoll')"),
    ];
    for sql in &statements {
        connection
            .query_drop(sql)
            .map_err(|error| failure::engine_error(sql, &error))?;
    }
    Ok(())
}

impl SqlServer for MysqlServer {
    fn forms(&self) -> &'static dyn SqlForms {
        MysqlForms::of_tables(self.config.is_rocksdb())
    }

    fn table_suffix(&self) -> String {
        format!(" engine={}", self.config.storage_engine)
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        session::open(self.admin.opts().clone(), self.client)
    }

    fn check_tables(&self, tables: &[String]) -> Result<(), EngineError> {
        self.admin.check_tables(tables, &self.config.storage_engine)
    }
}

impl Server for MysqlServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    /// All global variables but those that say nothing about how the server runs. The path of the
    /// trial's data is shortened to `DATA`, that of the build to `BUILD`. An option marked as loose
    /// that this version lacks is there as `loose_NAME`, and the client of the workers' sessions as
    /// `session_client`.
    fn effective_settings(&self) -> Result<Settings, EngineError> {
        let data = self.files.dir.display().to_string();
        let mut settings = self.admin.variables()?;
        let missing: Vec<String> = self
            .config
            .options
            .iter()
            .filter(|option| readback::standing(option, &settings) == Standing::Unknown)
            .map(|option| format!("loose_{}", option.name))
            .collect();
        settings.retain(|name, _| !VOLATILE.contains(&name.as_str()));
        for value in settings.values_mut() {
            *value = value.replace(&data, "DATA").replace(&self.basedir, "BUILD");
        }
        settings.extend(
            missing
                .into_iter()
                .map(|name| (name, format!("not known to {}", self.version))),
        );
        settings.insert(
            SESSION_CLIENT.to_owned(),
            session::client_name(self.admin.opts(), self.client).to_owned(),
        );
        // What our tables are made with, by their own word; the server's default is for tables that
        // say nothing.
        settings.insert(
            "storage_engine".to_owned(),
            self.config.storage_engine.clone(),
        );
        Ok(settings)
    }

    /// All whole numbers of SHOW GLOBAL STATUS under their names in small letters, counters and
    /// levels alike. With RocksDB also `rocksdb_compaction_cpu_us`, `rocksdb_compaction_us` and
    /// `rocksdb_compactions` of its compaction statistics.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        self.admin.counters(self.config.is_rocksdb())
    }

    fn reset_between_steps(&self) -> Result<Vec<DrainAction>, EngineError> {
        if !self.config.has_binlog {
            return Ok(Vec::new());
        }
        let sql = self.version.reset_binlogs();
        // The logs of a long step take their time to be removed.
        let mut connection = drain::connect(self.admin.opts())?;
        Ok(vec![drain::run(&mut connection, sql)?])
    }

    fn save_state(&self, dir: &Path, moment: &str) -> Result<(), EngineError> {
        state::save(
            &mut self.admin.connection()?,
            dir,
            moment,
            self.config.is_rocksdb(),
            true,
        )
    }

    fn health(&self) -> Health {
        self.process.health()
    }

    /// The drain of the Insert Benchmark: binary logs reset, ANALYZE for all tables at once, and
    /// meanwhile the storage engine's own part. InnoDB writes pages back under changed settings
    /// until the plan's wait is over; the settings are restored whatever happens, unless the server
    /// is gone, and with it the settings.
    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        let mut actions = self.reset_between_steps()?;
        let is_gone = || self.process.health() != Health::Running;
        let wait = drain::DrainWait {
            limits,
            is_gone: &is_gone,
        };
        let drained = drain::drain(
            self.admin.opts(),
            tables,
            &self.config,
            &self.files.log_dir,
            &wait,
        );
        if let Health::Crashed { status, log_tail } = self.process.health() {
            return Err(EngineError::new(format!(
                "the server ended during the drain ({status}); see {}, which ends \
                with:\n{log_tail}",
                self.files.log.display()
            )));
        }
        actions.extend(drained?);
        Ok(actions)
    }

    /// InnoDB's files of the database, and the shared tablespace when tables are in it
    /// (innodb_file_per_table off); RocksDB's files but its logs; for any other engine the files of
    /// the database.
    fn database_bytes(&self) -> Result<u64, EngineError> {
        let unreadable = |error| {
            EngineError::new(format!(
                "measure the tables in {}: {error}",
                self.files.data.display()
            ))
        };
        if self.config.is_rocksdb()
            && let Some(dir) = self.rocksdb_dir()
        {
            return state::rocksdb_bytes(&dir).map_err(unreadable);
        }
        let mut bytes = directory_bytes(&self.files.data.join(DATABASE)).map_err(unreadable)?;
        let is_shared = self
            .admin
            .variables()?
            .get("innodb_file_per_table")
            .is_some_and(|value| value == "OFF");
        if is_shared {
            bytes +=
                std::fs::metadata(self.files.data.join("ibdata1")).map_or(0, |file| file.len());
        }
        Ok(bytes)
    }

    fn guest_port(&self) -> Option<u16> {
        self.guest_port
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.process.main_pid()]
    }

    fn stop(self: Box<Self>, timeout: Duration) -> Result<(), EngineError> {
        self.admin.close();
        self.process.stop(Signal::TERM, timeout)
    }
}
