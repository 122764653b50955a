//! A server of the family that the plan gives by its address, and that is not ours.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, DriverError, Opts, OptsBuilder, SslOpts};
use mysql_common::proto::codec::error::PacketCodecError;
use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{ExternalServer, ServerPlace, TlsMode};

use super::admin::{self, ANSWER_LIMIT, Admin};
use super::drain::{self, DrainWait};
use super::forms::MysqlForms;
use super::options::ServerConfig;
use super::server::VOLATILE;
use super::start::launch;
use super::version::{Flavor, Version};
use super::{failure, session, state};
use crate::external::{self, Claim, DatabaseLock, Entrance, External, MARKER};
use crate::{
    DrainAction, DrainLimits, EngineError, Password, Server, SessionClient, Sessions, Settings,
    SqlForms, SqlServer, SqlSession, tls,
};

/// A host that does not answer for this long does not answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// In which texts travel: every server since 5.5.3 knows it, and no character is lost on the way.
const CHARSET: &str = "utf8mb4";
/// A table that a forgotten session holds is not waited for longer.
const DROP_LOCK_S: u32 = 30;

/// How an external MySQL or MariaDB is entered.
#[derive(Clone, Copy)]
pub(super) struct MysqlEntrance;

impl Entrance for MysqlEntrance {
    /// Nothing but the tables' storage engine.
    fn check_settings(settings: &Settings) -> Result<(), EngineError> {
        config(settings).map(drop)
    }

    fn enter(
        &self,
        external: &External,
        client: SessionClient,
    ) -> Result<(Box<dyn Server>, String), EngineError> {
        let (server, version) = ExternalMysql::enter(external, client)?;
        Ok((Box::new(server), version))
    }
}

fn config(settings: &Settings) -> Result<ServerConfig, EngineError> {
    let config = ServerConfig::parse(settings)?;
    match config.options.first() {
        None if !config.has_binlog => Ok(config),
        option => Err(external::setting_refused(
            option.map_or("log_bin", |option| &option.name),
        )),
    }
}

/// Somebody's server, with a database that is ours for a while.
struct ExternalMysql {
    server: ExternalServer,
    config: ServerConfig,
    campaign: String,
    admin: Admin,
    /// Of the workers' sessions.
    client: SessionClient,
    claim: Claim<Conn>,
}

impl ExternalMysql {
    fn enter(external: &External, client: SessionClient) -> Result<(Self, String), EngineError> {
        let config = config(&external.settings)?;
        let server = external.server.clone();
        // An unusable file is reported before anybody is asked.
        tls::roots(&server)?;
        let opts: Opts = opts(&server, external.password.as_ref()).into();
        session::check_plugin(&opts).map_err(|why| {
            EngineError::new(format!("connect to the server {}: {why}", server.label))
        })?;
        let mut first = Conn::new(admin::with_limit(&opts, ANSWER_LIMIT))
            .map_err(|error| refusal(&error, &server, external.password.is_some()))?;
        let version = check_version(&mut first, &server)?;
        admin::check_storage_engine(
            &mut first,
            &format!("the server {}", server.label),
            &config.storage_engine,
        )?;
        drop(first);
        let locked = Conn::new(opts.clone())
            .map_err(|error| refusal(&error, &server, external.password.is_some()))?;
        let entered = Self {
            config,
            campaign: external.campaign.clone(),
            admin: Admin::new(opts),
            client,
            claim: Claim::take(locked, &server.database)?,
            server,
        };
        entered.claim_tables(&[MARKER.to_owned()])?;
        Ok((entered, version))
    }

    /// Drops our tables and the marker, within `limit`.
    fn leave(&self, limit: Duration) -> Result<(), EngineError> {
        self.admin.close();
        let opts = self.admin.opts().clone();
        let connect =
            move || Conn::new(opts).map_err(|error| failure::engine_error("connect", &error));
        self.claim.leave(&self.server, limit, connect)
    }
}

/// How to reach the server. Nothing weaker is ever tried: no plain text password, and no connection
/// without TLS where it is asked for.
pub(super) fn opts(server: &ExternalServer, password: Option<&Password>) -> OptsBuilder {
    let opts = OptsBuilder::new()
        .user(Some(&server.user))
        .pass(password.map(Password::reveal))
        .db_name(Some(&server.database))
        .prefer_socket(false)
        .stmt_cache_size(0)
        .tcp_connect_timeout(Some(CONNECT_LIMIT))
        .tcp_keepalive_time_ms(Some(external::PROBE_AFTER.as_millis() as u32))
        .tcp_keepalive_probe_interval_secs(Some(external::PROBE_INTERVAL.as_secs() as u32))
        .tcp_user_timeout_ms(Some(external::NETWORK_LIMIT.as_millis() as u32))
        .init(launch::session_init(CHARSET));
    let opts = match &server.place {
        ServerPlace::Tcp { host, port } => opts.ip_or_hostname(Some(host)).tcp_port(*port),
        ServerPlace::Socket { path, .. } => opts.socket(Some(path)),
    };
    match server.tls {
        TlsMode::Off => opts,
        TlsMode::VerifyFull => opts
            .ssl_opts(Some(SslOpts::default().with_root_cert_path(
                server.tls_ca.clone().map(std::path::PathBuf::from),
            ))),
    }
}

/// Why there is no connection, and what to do.
fn refusal(error: &mysql::Error, server: &ExternalServer, has_password: bool) -> EngineError {
    const ACCESS_DENIED: [u16; 3] = [1045, 1698, 1130];
    const NO_DATABASE: u16 = 1049;
    const DATABASE_DENIED: u16 = 1044;
    const TLS_REQUIRED: u16 = 3159;
    let (place, label, database) = (&server.place, &server.label, &server.database);
    let reason = match error {
        mysql::Error::MySqlError(error) if ACCESS_DENIED.contains(&error.code) => {
            let reason = external::access_denied(server, &error.message, has_password);
            match server.tls {
                TlsMode::Off => format!(
                    "{reason}; an account that demands TLS is refused like this too: then set tls \
                    = \"verify-full\""
                ),
                TlsMode::VerifyFull => reason,
            }
        }
        mysql::Error::MySqlError(error) if error.code == NO_DATABASE => {
            format!("{place} has no database {database}; make an empty one for this")
        }
        mysql::Error::MySqlError(error) if error.code == DATABASE_DENIED => {
            format!(
                "{place} does not let {} into {database}; grant it all rights on that database, \
                and no others",
                server.user
            )
        }
        mysql::Error::MySqlError(error) if error.code == TLS_REQUIRED => {
            format!(
                "{place} takes no connection without TLS; set tls = \"verify-full\" in \
                [server.{label}]"
            )
        }
        mysql::Error::MySqlError(error) => {
            format!("{place} says: {} (code {})", error.message, error.code)
        }
        mysql::Error::DriverError(DriverError::TlsNotSupported) => {
            format!(
                "{place} offers no TLS; give it a certificate, or set tls = \"off\" in \
                [server.{label}] where the network is safe"
            )
        }
        // The cause may be an error of TLS, wrapped once or twice.
        error => match io_error(error).map_or_else(
            || tls::explain(error, server),
            |error| tls::explain(error, server),
        ) {
            Some(reason) => reason,
            // A server without a protocol version that we speak says nothing and hangs up.
            None if server.tls == TlsMode::VerifyFull && io_error(error).is_some_and(is_hangup) => {
                format!(
                    "{place} ended the TLS handshake ({error}); {}",
                    tls::too_old(label)
                )
            }
            None => format!(
                "nobody answers at {place} ({error}); check that the server runs and that the dsn \
                of [server.{label}] is its address"
            ),
        },
    };
    EngineError::new(format!("connect to the server {label}: {reason}"))
}

/// The error of the system, or of TLS, that the client library holds without naming it as the
/// cause.
fn io_error(error: &mysql::Error) -> Option<&std::io::Error> {
    match error {
        mysql::Error::IoError(error) | mysql::Error::CodecError(PacketCodecError::Io(error)) => {
            Some(error)
        }
        _ => None,
    }
}

/// Whether the other side ended the connection, rather than never took it.
fn is_hangup(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// The server must be of the engine that the plan says.
fn check_version(connection: &mut Conn, server: &ExternalServer) -> Result<String, EngineError> {
    let sql = "select version()";
    let stated: Option<String> = connection
        .query_first(sql)
        .map_err(|error| failure::engine_error(sql, &error))?;
    let stated = stated.unwrap_or_default();
    let wanted = if server.engine == EngineName::Mariadb {
        Flavor::Mariadb
    } else {
        Flavor::Mysql
    };
    match Version::parse(&stated, false) {
        Some(version) if version.flavor == wanted => Ok(stated),
        _ => Err(EngineError::new(format!(
            "the server {} should be {}, and says it is \"{stated}\"; write what it is in its dsn \
            and in builds",
            server.label, server.engine
        ))),
    }
}

impl DatabaseLock for Conn {
    fn lock(&mut self, database: &str) -> Result<(), EngineError> {
        // It is held for a whole trial, and nothing is sent on it meanwhile.
        run(self, "set session wait_timeout = 2147483")?;
        run(
            self,
            &format!("set session lock_wait_timeout = {DROP_LOCK_S}"),
        )?;
        let sql = format!(
            "select get_lock(left(concat('{}:', database()), 64), 0)",
            external::PROGRAM
        );
        let got: Option<Option<i64>> = self
            .query_first(&sql)
            .map_err(|error| failure::engine_error(&sql, &error))?;
        if got.flatten() == Some(1) {
            Ok(())
        } else {
            Err(external::in_use(database))
        }
    }

    fn is_alive(&mut self) -> bool {
        self.ping().is_ok()
    }

    /// Tables, views, sequences, routines and events.
    fn contents(&mut self) -> Result<Vec<String>, EngineError> {
        let questions = [
            "select table_name from information_schema.tables where table_schema = database()",
            "select concat('routine ', routine_name) from information_schema.routines where \
            routine_schema = database()",
            "select concat('event ', event_name) from information_schema.events where \
            event_schema = database()",
        ];
        let mut all = Vec::new();
        for sql in questions {
            let found: Vec<String> = self
                .query(sql)
                .map_err(|error| failure::engine_error(sql, &error))?;
            all.extend(found);
        }
        Ok(all)
    }

    fn marked(&mut self, database: &str) -> Result<Vec<String>, EngineError> {
        let sql = format!(
            "select table_name from {MARKER} where made_by = '{}' and campaign <> ''",
            external::PROGRAM
        );
        self.query(sql)
            .map_err(|error| external::unreadable_marker(database, &error.to_string()))
    }

    fn make_marker(&mut self) -> Result<(), EngineError> {
        let sql = format!(
            "create table if not exists {MARKER} (table_name varchar(64) not null primary key, \
            campaign varchar(100) not null, made_by varchar(20) not null)"
        );
        run(self, &sql)
    }

    fn drop_tables(&mut self, tables: &[String]) -> Result<(), EngineError> {
        tables.iter().try_for_each(|table| {
            let sql = format!("drop table `{}`", table.replace('`', "``"));
            run(self, &sql)
        })
    }
}

fn run(connection: &mut Conn, sql: &str) -> Result<(), EngineError> {
    connection
        .query_drop(sql)
        .map_err(|error| failure::engine_error(sql, &error))
}

impl SqlServer for ExternalMysql {
    fn forms(&self) -> &'static dyn SqlForms {
        MysqlForms::of_tables(self.config.is_rocksdb())
    }

    fn table_suffix(&self) -> String {
        format!(" engine={}", self.config.storage_engine)
    }

    fn connect(&self) -> Result<Box<dyn SqlSession>, EngineError> {
        let (opts, client) = (self.admin.opts().clone(), self.client);
        external::limited("connect to", &self.server, ANSWER_LIMIT, move || {
            session::open(opts, client)
        })
    }

    fn claim_tables(&self, tables: &[String]) -> Result<(), EngineError> {
        let sql = format!(
            "replace into {MARKER} (table_name, campaign, made_by) values (?, ?, '{}')",
            external::PROGRAM
        );
        // One by one: with TLS, MariaDB does not take the batches that the client library makes for
        // it.
        tables.iter().try_for_each(|table| {
            self.admin.ask(&sql, |connection| {
                connection.exec_drop(&sql, (table, &self.campaign))
            })
        })
    }

    fn check_tables(&self, tables: &[String]) -> Result<(), EngineError> {
        self.admin.check_tables(tables, &self.config.storage_engine)
    }
}

impl Server for ExternalMysql {
    fn sessions(&self) -> Sessions<'_> {
        Sessions::Sql(self)
    }

    /// All global variables but secrets, `session_tls`: the protocol and cipher of our connections,
    /// or `off`, and `session_client`: the client of the workers' sessions.
    fn effective_settings(&self) -> Result<Settings, EngineError> {
        let mut settings = self.admin.variables()?;
        settings.retain(|name, _| !VOLATILE.contains(&name.as_str()));
        state::hide_secrets(&mut settings);
        let session = self.admin.pairs("show session status like 'Ssl%'")?;
        let tls = |name: &str| session.get(name).cloned().unwrap_or_default();
        settings.insert(
            external::SESSION_TLS.to_owned(),
            external::session_tls(&tls("ssl_version"), &tls("ssl_cipher")),
        );
        settings.insert(
            external::SESSION_CLIENT.to_owned(),
            session::client_name(self.admin.opts(), self.client).to_owned(),
        );
        Ok(settings)
    }

    /// Of the whole server, whoever uses it.
    fn counters(&self) -> Result<BTreeMap<String, i64>, EngineError> {
        self.admin.counters(self.config.is_rocksdb())
    }

    fn save_state(&self, dir: &Path, moment: &str) -> Result<(), EngineError> {
        state::save(
            &mut self.admin.connection()?,
            dir,
            moment,
            self.config.is_rocksdb(),
            false,
        )
    }

    /// Our tables are analysed. The server's own work is watched; its settings and its binary logs
    /// stay as they are.
    fn drain(
        &self,
        tables: &[String],
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        let mut actions = vec![external::left_out("reset of the binary logs")];
        let wait = DrainWait {
            limits,
            is_gone: &|| false,
        };
        actions.extend(drain::watch(
            self.admin.opts(),
            tables,
            &self.config,
            &wait,
        )?);
        Ok(actions)
    }

    /// What the server says of our tables and their indexes.
    fn database_bytes(&self) -> Result<u64, EngineError> {
        let sql = "select cast(coalesce(sum(data_length + index_length), 0) as unsigned) from \
                  information_schema.tables where table_schema = database()";
        let bytes: Option<u64> = self.admin.ask(sql, |connection| {
            // Since 8.0 the answer is otherwise up to a day old. Older servers do not know the
            // variable.
            let _ = connection.query_drop("set session information_schema_stats_expiry = 0");
            connection.query_first(sql)
        })?;
        Ok(bytes.unwrap_or(0))
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The server goes on; our tables and the marker are dropped.
    fn stop(self: Box<Self>, timeout: Duration) -> Result<(), EngineError> {
        self.leave(timeout)
    }
}

impl Drop for ExternalMysql {
    fn drop(&mut self) {
        // After an error that is reported. What cannot be dropped now the next campaign on this
        // database drops.
        let _ = self.leave(external::LEAVE_LIMIT);
    }
}
