//! Connections with deadlines.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{ExternalServer, ServerPlace, TlsMode};
use postgres::config::SslMode;
use postgres::{CancelToken, Client, Config, NoTls, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failure;
use super::wire::Login;
use crate::deadline::within;
use crate::external::{NETWORK_LIMIT, PROBE_AFTER, PROBE_INTERVAL, PROGRAM};
use crate::process::ServerProcess;
use crate::wire::Place;
use crate::{EngineError, Health, Password, tls};

/// The superuser that `initdb` makes.
pub(super) const SUPERUSER: &str = "postgres";

/// How long opening a connection may take. A server that is writing a checkpoint answers late, a
/// hung one never.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(30);

/// Between two tries to reach a server.
const PAUSE: Duration = Duration::from_millis(20);

/// Where a server's sockets are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Address<'a> {
    /// The folder of the unix socket, and the port that names its file.
    Socket(&'a Path, u16),
    /// A port of 127.0.0.1.
    Tcp(u16),
}

/// The port that names the socket's file; with a folder of its own for each server it need not be
/// free.
pub(super) const SOCKET_PORT: u16 = 5432;

/// Where servers of our own listen.
const LOOPBACK: &str = "127.0.0.1";

/// How to reach one database of a server.
#[derive(Clone)]
pub(super) struct Link {
    config: Config,
    /// The same for the thin client.
    login: Login,
    /// How connections are protected, when they are.
    tls: Option<MakeRustlsConnect>,
    /// The server's process, when it is ours.
    process: Option<Weak<ServerProcess>>,
}

/// No connection was made.
pub(super) enum ConnectError {
    /// The server said so, or nobody listens.
    Refused(postgres::Error),
    /// It did not answer in time.
    Late,
}

impl Link {
    /// A link to `database`, as the superuser.
    pub fn new(address: Address<'_>, database: &str, process: Weak<ServerProcess>) -> Self {
        let mut config = Config::new();
        config
            .user(SUPERUSER)
            .dbname(database)
            .application_name(PROGRAM)
            .ssl_mode(SslMode::Disable);
        match address {
            Address::Socket(folder, port) => config.host_path(folder).port(port),
            Address::Tcp(port) => config.host(LOOPBACK).port(port),
        };
        let place = match address {
            Address::Socket(folder, port) => socket(folder, port),
            Address::Tcp(port) => Place::Tcp(LOOPBACK.to_owned(), port),
        };
        let login = Login {
            place,
            user: SUPERUSER.to_owned(),
            database: database.to_owned(),
            password: None,
        };
        Self {
            config,
            login,
            tls: None,
            process: Some(process),
        }
    }

    /// A link to a server that is not ours. Nothing weaker than what its table says is ever tried.
    pub fn external(
        server: &ExternalServer,
        password: Option<&Password>,
    ) -> Result<Self, EngineError> {
        let mut config = Config::new();
        config
            .user(&server.user)
            .dbname(&server.database)
            .application_name(PROGRAM)
            .connect_timeout(CONNECT_LIMIT);
        config
            .keepalives_idle(PROBE_AFTER)
            .keepalives_interval(PROBE_INTERVAL)
            .tcp_user_timeout(NETWORK_LIMIT);
        if let Some(password) = password {
            config.password(password.reveal());
        }
        match &server.place {
            ServerPlace::Socket { path, port } => config.host_path(path).port(*port),
            ServerPlace::Tcp { host, port } => config.host(host).port(*port),
        };
        let tls = match server.tls {
            TlsMode::Off => {
                config.ssl_mode(SslMode::Disable);
                None
            }
            TlsMode::VerifyFull => {
                config.ssl_mode(SslMode::Require);
                Some(MakeRustlsConnect::new(tls::client_config(server)?))
            }
        };
        let place = match &server.place {
            ServerPlace::Socket { path, port } => socket(path.as_ref(), *port),
            ServerPlace::Tcp { host, port } => Place::Tcp(host.clone(), *port),
        };
        let login = Login {
            place,
            user: server.user.clone(),
            database: server.database.clone(),
            password: password.cloned(),
        };
        Ok(Self {
            config,
            login,
            tls,
            process: None,
        })
    }

    /// Asks the server to cancel what the session of `token` runs, within `limit`. It fails for
    /// what has just ended, or when the server is gone, which the statement itself tells.
    pub fn cancel(&self, token: &CancelToken, limit: Duration) {
        let (token, tls) = (token.clone(), self.tls.clone());
        within(Instant::now() + limit, move || match tls {
            Some(tls) => token.cancel_query(tls).is_ok(),
            None => token.cancel_query(NoTls).is_ok(),
        });
    }

    /// The same server's other database.
    pub fn to(&self, database: &str) -> Self {
        let mut link = self.clone();
        link.config.dbname(database);
        database.clone_into(&mut link.login.database);
        link
    }

    /// Where and as whom the thin client logs in; it does not speak TLS.
    pub fn login(&self) -> Option<&Login> {
        self.tls.is_none().then_some(&self.login)
    }

    /// One try.
    pub fn try_connect(&self, deadline: Instant) -> Result<Client, ConnectError> {
        let (config, tls) = (self.config.clone(), self.tls.clone());
        let connect = move || match tls {
            Some(tls) => config.connect(tls),
            None => config.connect(NoTls),
        };
        match within(deadline, connect) {
            Some(answer) => answer.map_err(ConnectError::Refused),
            None => Err(ConnectError::Late),
        }
    }

    /// A connection for something other than load.
    pub fn connect(&self) -> Result<Client, EngineError> {
        self.try_connect(Instant::now() + CONNECT_LIMIT)
            .map_err(|error| match error {
                ConnectError::Refused(error) => {
                    failure::engine_error("connect to postgres", &error)
                }
                ConnectError::Late => EngineError::new(format!(
                    "connect to postgres: no answer within {CONNECT_LIMIT:?}; see the server's log \
                    for what it does"
                )),
            })
    }

    /// Tries until there is a connection, `deadline` has passed or the server's process has ended.
    /// `Err` says why there is none.
    pub fn reconnect(&self, deadline: Instant) -> Result<Client, String> {
        self.persist(deadline, || match self.try_connect(deadline) {
            Ok(client) => Ok(client),
            Err(ConnectError::Refused(error)) => {
                Err(format!("{error}, SQLSTATE {}", failure::sqlstate(&error)))
            }
            Err(ConnectError::Late) => Err("no answer".to_owned()),
        })
    }

    /// The same for connections that `attempt` makes, whose error is a reason.
    pub fn persist<T>(
        &self,
        deadline: Instant,
        attempt: impl Fn() -> Result<T, String>,
    ) -> Result<T, String> {
        loop {
            let reason = match attempt() {
                Ok(connection) => return Ok(connection),
                Err(reason) => reason,
            };
            match self
                .process
                .as_ref()
                .map(|process| process.upgrade().map(|process| process.health()))
            {
                // Not ours to know.
                None => {}
                Some(Some(Health::Running)) => {}
                Some(Some(Health::Crashed { status, .. })) => {
                    return Err(format!("the server has ended with {status}"));
                }
                Some(None) => return Err("the server was stopped".to_owned()),
            }
            if Instant::now() >= deadline {
                return Err(format!("no connection until the deadline: {reason}"));
            }
            thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
        }
    }

    /// A connection whose messages of the server are appended to `notices`, a line each.
    pub fn connect_with_notices(
        &self,
        notices: &Arc<Mutex<String>>,
    ) -> Result<Client, EngineError> {
        let mut link = self.clone();
        let notices = Arc::clone(notices);
        link.config.notice_callback(move |notice| {
            let mut notices = notices.lock().unwrap_or_else(PoisonError::into_inner);
            notices.push_str(notice.message());
            notices.push('\n');
            if let Some(detail) = notice.detail() {
                notices.push_str(detail);
                notices.push('\n');
            }
        });
        link.connect()
    }

    /// Asks on a connection of its own, so that a long statement elsewhere is not in the way.
    /// `doing` begins an error.
    pub fn ask<T: Send + 'static>(
        &self,
        doing: &str,
        limit: Duration,
        question: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T, EngineError> {
        let mut client = self.connect()?;
        match within(Instant::now() + limit, move || question(&mut client)) {
            Some(answer) => answer.map_err(|error| failure::engine_error(doing, &error)),
            None => Err(EngineError::new(format!(
                "{doing}: no answer within {limit:?}; see the server's log for what it does"
            ))),
        }
    }
}

/// The file of a unix socket in its folder.
fn socket(folder: &Path, port: u16) -> Place {
    Place::Unix(folder.join(format!(".s.PGSQL.{port}")))
}

/// The rows of a query, as text.
pub(super) fn rows(client: &mut Client, sql: &str) -> Result<Vec<SimpleQueryRow>, postgres::Error> {
    let messages = client.simple_query(sql)?;
    Ok(messages
        .into_iter()
        .filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        })
        .collect())
}
