//! A running server: started as our child, asked on connections of their own, and stopped by
//! signal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::drain;
use super::forms::PostgresForms;
use super::link::{Address, ConnectError, Link, rows};
use super::options::{Config, Major};
use super::start::account::Account;
use super::start::init::{Cluster, text};
use super::start::process::Postmaster;
use super::{failure, guest, maintenance, readback, session, state};
use crate::external::MARKER;
use crate::external::SESSION_CLIENT;
use crate::process::{Program, ServerProcess, free_loopback_port};
use crate::{
    DrainAction, DrainLimits, EngineError, Health, InstalledBuild, Server, SessionClient, Sessions,
    Settings, SqlForms, SqlServer, SqlSession, StartOptions, Transport,
};

/// The database of the workload's tables.
pub(super) const DATABASE: &str = "ib";

/// Recovery after a crash may take minutes.
const READY_LIMIT: Duration = Duration::from_secs(600);

/// How long one try of a starting server may take.
const TRY_LIMIT: Duration = Duration::from_secs(10);

/// How long a question to the server may take where nothing is measured.
pub(super) const ASK_LIMIT: Duration = Duration::from_secs(60);

pub(super) struct PostgresServer {
    postmaster: Postmaster,
    cluster: Cluster,
    /// To the workload's database.
    link: Link,
    version_num: u32,
    not_applied: Settings,
    /// Names of custom parameters.
    custom: Vec<String>,
    /// Of the workers' sessions.
    client: SessionClient,
}

impl PostgresServer {
    /// Makes the data directory where there is none, starts the server on it and waits until it
    /// answers.
    pub fn start(
        build: &InstalledBuild,
        config: Config,
        major: Major,
        options: &StartOptions,
    ) -> Result<Self, EngineError> {
        fs::create_dir_all(&options.log_dir).map_err(|error| {
            EngineError::new(format!(
                "make {}: {error}; check its parent's permissions",
                options.log_dir.display()
            ))
        })?;
        let account = Account::of_servers();
        let cluster = Cluster::prepare(options, build, account)?;
        cluster.init(options, build, &config, major)?;
        let has_socket = options.transport == Transport::Socket || options.guests.is_some();
        let address = match options.transport {
            Transport::Tcp if !has_socket => Address::Tcp(free_loopback_port()?),
            Transport::Socket | Transport::Tcp => cluster.address(),
        };
        let is_scram = guest::has_scram(major);
        cluster.write_config(&config, address, &options.log_dir, is_scram)?;

        let mut arguments = vec!["-D".to_owned(), text(&cluster.data_dir())?];
        arguments.extend(build.server_options.iter().cloned());
        let mut env = build.env.clone();
        env.extend(options.env.clone());
        let program = Program {
            path: build.server.clone(),
            arguments,
            prefix: options.prefix.clone(),
            env,
            user: account.user(),
            working_dir: Some(cluster.folder().to_owned()),
        };
        let log = options.log_dir.join("server.log");
        let process = ServerProcess::spawn(&program, &log)?;
        let postmaster = Postmaster::new(process, &cluster.data_dir());
        // Our own database is made on the first start; until then `initdb`'s answers.
        let admin = Link::new(address, "postgres", postmaster.watch());
        wait_until_ready(postmaster.process(), &admin, &cluster, has_socket)?;
        postmaster.find_main();
        let link = admin.to(DATABASE);
        let version_num = make_database(&admin, &link)?;
        if let Some(guests) = &options.guests {
            guest::make_account(&admin, version_num, guests)?;
        }
        let wanted = config.clone();
        // A setting that did not take would be a measurement of something else.
        let found = link.ask("read pg_settings", ASK_LIMIT, move |client| {
            let mut found = readback::read(client)?;
            found.extend(readback::read_custom(client, &wanted, &found)?);
            Ok(found)
        })?;
        readback::check(&config, &found, &build.version)?;
        let custom = found
            .iter()
            .filter_map(|found| found.custom_name().map(str::to_owned))
            .collect();
        Ok(Self {
            postmaster,
            cluster,
            link,
            version_num,
            not_applied: config.not_applied,
            custom,
            client: options.client,
        })
    }
}

/// Waits until a connection answers, and checks that it is this server that does.
fn wait_until_ready(
    process: &ServerProcess,
    admin: &Link,
    cluster: &Cluster,
    has_socket: bool,
) -> Result<(), EngineError> {
    let data_dir = text(&cluster.data_dir())?;
    process.wait_until_ready(READY_LIMIT, || {
        if has_socket && !cluster.socket().exists() {
            return Ok(false);
        }
        let mut client = match admin.try_connect(Instant::now() + TRY_LIMIT) {
            Ok(client) => client,
            // It says so while it starts; nobody listens before that.
            Err(ConnectError::Refused(error))
                if failure::class_of(failure::sqlstate(&error)).is_disconnected() =>
            {
                return Ok(false);
            }
            Err(ConnectError::Refused(error)) => {
                return Err(failure::engine_error(
                    "connect to \
                postgres",
                    &error,
                ));
            }
            Err(ConnectError::Late) => return Ok(false),
        };
        // The port was free a moment ago: somebody else may have taken it.
        let found = rows(&mut client, "show data_directory")
            .map_err(|error| failure::engine_error("ask postgres where it is", &error))?;
        match found.first().and_then(|row| row.get(0)) {
            Some(found) if found == data_dir => Ok(true),
            found => Err(EngineError::new(format!(
                "another server, on {}, answers in place of the one on {data_dir}; its port was \
                taken, try again",
                found.unwrap_or("an unknown data directory")
            ))),
        }
    })
}

/// Makes and marks the workload's database, or checks that the one that is there is ours or empty.
/// Returns `server_version_num`.
fn make_database(admin: &Link, link: &Link) -> Result<u32, EngineError> {
    let doing = format!("make database {DATABASE}");
    let version = admin.ask(&doing, ASK_LIMIT, |client| {
        if rows(
            client,
            &format!("select 1 from pg_database where datname = '{DATABASE}'"),
        )?
        .is_empty()
        {
            client.batch_execute(&format!("create database {DATABASE}"))?;
        }
        Ok(rows(client, "show server_version_num")?
            .first()
            .and_then(|row| row.get(0)?.parse().ok()))
    })?;
    let is_foreign = link.ask(&doing, ASK_LIMIT, |client| {
        let tables = "select relname from pg_stat_user_tables";
        let found = rows(client, tables)?;
        let is_foreign = !found.is_empty() && !found.iter().any(|row| row.get(0) == Some(MARKER));
        if !is_foreign {
            client.batch_execute(&format!(
                "create table if not exists {MARKER} (made_by text)"
            ))?;
        }
        Ok(is_foreign)
    })?;
    if is_foreign {
        return Err(EngineError::new(format!(
            "database {DATABASE} holds tables that this program did not make (there is no \
            {MARKER}); give it an empty data directory"
        )));
    }
    version.ok_or_else(|| {
        EngineError::new(
            "read server_version_num: it is not a number; use a build of PostgreSQL itself",
        )
    })
}

impl SqlServer for PostgresServer {
    fn forms(&self) -> &'static dyn SqlForms {
        &PostgresForms
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        session::open(&self.link, self.client)
    }
}

impl Server for PostgresServer {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    /// All parameters, and `session_client`: what the workers' sessions speak through.
    fn effective_settings(&self) -> Result<Settings, EngineError> {
        let (not_applied, custom) = (self.not_applied.clone(), self.custom.clone());
        let mut settings = self
            .link
            .ask("read pg_settings", ASK_LIMIT, move |client| {
                readback::effective(client, &not_applied, &custom)
            })?;
        settings.insert(
            SESSION_CLIENT.to_owned(),
            session::client_name(&self.link, self.client).to_owned(),
        );
        Ok(settings)
    }

    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        let version_num = self.version_num;
        self.link
            .ask("read the statistics views", ASK_LIMIT, move |client| {
                state::counters(client, version_num)
            })
    }

    fn save_state(&self, dir: &Path, moment: &str) -> Result<(), EngineError> {
        let (moment, version_num) = (moment.to_owned(), self.version_num);
        let has_build = dir.join(state::build_file()).exists();
        let question = move |client: &mut postgres::Client| {
            state::state(client, &moment, version_num, has_build, true)
        };
        let files = self
            .link
            .ask("read the statistics views", ASK_LIMIT, question)?;
        state::write(dir, &files)
    }

    fn hold_maintenance(&self) -> Result<Option<&'static str>, EngineError> {
        self.cluster.add_parameters(maintenance::OFF)?;
        maintenance::hold(&self.link, self.version_num).map(Some)
    }

    fn health(&self) -> Health {
        self.postmaster.process().health()
    }

    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        drain::drain(&self.link, self.version_num, tables, limits)
    }

    fn database_bytes(&self) -> Result<u64, EngineError> {
        let sql = format!("select pg_database_size('{DATABASE}')");
        let bytes = self.link.ask(&sql.clone(), ASK_LIMIT, move |client| {
            Ok(rows(client, &sql)?
                .first()
                .and_then(|row| row.get(0)?.parse().ok()))
        })?;
        bytes.ok_or_else(|| {
            EngineError::new("read the database's size: it is not a number; see the server's log")
        })
    }

    fn guest_port(&self) -> Option<u16> {
        self.cluster.guest_port()
    }

    fn give_tables_to_guests(&self) -> Result<(), EngineError> {
        guest::give_tables(&self.link)
    }

    fn processes(&self) -> Vec<u32> {
        vec![self.postmaster.process().main_pid()]
    }

    fn stop(self: Box<Self>, timeout: Duration) -> Result<(), EngineError> {
        self.postmaster.stop(timeout)
    }
}
