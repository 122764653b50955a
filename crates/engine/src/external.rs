//! Servers that a plan gives by their address. They are not ours: nothing is set, reset, started or
//! stopped there, and in their database only tables that our marker lists are ever dropped.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_core::plan::{ExternalServer, SessionClient};
use plimsoll_core::planted::{self, Bug};

use crate::deadline::within;
use crate::{
    BuildInfo, DrainAction, Engine, EngineError, Password, Server, Settings, StartOptions,
};

/// The table that says that a database is ours. On an external server it lists our tables, too.
pub(crate) const MARKER: &str = "plimsoll_marker";

/// Whom the connections of a campaign say they are.
pub(crate) const PROGRAM: &str = "plimsoll";

/// The version of an external server before it was asked.
const UNASKED: &str = "known after the start";

/// The name among the effective settings of how our connections are protected.
pub(crate) const SESSION_TLS: &str = "session_tls";

/// The name among the effective settings of which client the workers' sessions go through.
pub(crate) const SESSION_CLIENT: &str = "session_client";

/// The first use of a server and all that it takes may last this long: what an earlier campaign
/// left is dropped then.
const ENTER_LIMIT: Duration = Duration::from_secs(300);

/// How long the end may take when nobody has said so: after an error that is reported.
pub(crate) const LEAVE_LIMIT: Duration = Duration::from_secs(60);

/// A network that carries nothing is noticed, however long a statement may take: after this long
/// without traffic it is probed, ...
pub(crate) const PROBE_AFTER: Duration = Duration::from_secs(60);
/// ... so often, ...
pub(crate) const PROBE_INTERVAL: Duration = Duration::from_secs(15);
/// ... and given up when nothing was acknowledged for this long.
pub(crate) const NETWORK_LIMIT: Duration = Duration::from_secs(120);

/// An external server and what it takes to use it.
#[derive(Clone, Debug)]
pub struct External {
    pub server: ExternalServer,
    /// Of its user; `None` where there is none.
    pub password: Option<Password>,
    /// The campaign's id, for the marker.
    pub campaign: String,
    /// Nothing but the storage engine of the tables.
    pub settings: Settings,
}

/// The engine of an external server: what it is and how it is entered, in one engine's words.
pub(crate) trait Entrance: Clone + Send + Sync + 'static {
    /// What a config may set: at most something of our own tables.
    fn check_settings(settings: &Settings) -> Result<(), EngineError>;

    /// Connects, looks at everything, and only then makes the database ours. Returns the version
    /// too.
    fn enter(
        &self,
        external: &External,
        client: SessionClient,
    ) -> Result<(Box<dyn Server>, String), EngineError>;
}

/// An engine whose server somebody else runs.
pub(crate) struct ExternalEngine<E> {
    external: External,
    entrance: E,
    version: OnceLock<String>,
}

impl<E> ExternalEngine<E> {
    /// Nobody is asked before the start.
    pub fn new(external: External, entrance: E) -> Self {
        Self {
            external,
            entrance,
            version: OnceLock::new(),
        }
    }
}

impl<E: Entrance> Engine for ExternalEngine<E> {
    /// The version is known after the start.
    fn build(&self) -> BuildInfo {
        let server = &self.external.server;
        let version = self.version.get().map_or(UNASKED, String::as_str);
        BuildInfo {
            engine: server.engine.to_string(),
            version: version.to_owned(),
            origin: format!("external server {}", server.label),
            options: Vec::new(),
        }
    }

    fn check_settings(&self, settings: &Settings) -> Result<(), EngineError> {
        E::check_settings(settings)
    }

    fn start(&self, options: &StartOptions) -> Result<Box<dyn Server>, EngineError> {
        self.check_settings(&self.external.settings)?;
        let (external, entrance) = (self.external.clone(), self.entrance.clone());
        let client = options.client;
        let enter = move || entrance.enter(&external, client);
        let (server, version) = limited("enter", &self.external.server, ENTER_LIMIT, enter)?;
        // It was asked before when a start is tried again.
        let _ = self.version.set(version);
        Ok(server)
    }

    fn is_embedded(&self) -> bool {
        false
    }
}

/// A connection to somebody's database that can hold a lock on it.
pub(crate) trait DatabaseLock: Send + Sized + 'static {
    /// One campaign at a time: the lock is the server's, and ends with the connection.
    fn lock(&mut self, database: &str) -> Result<(), EngineError>;

    /// Whether the connection, and the lock with it, is still there.
    fn is_alive(&mut self) -> bool;

    /// All that is in the database, tables or not.
    fn contents(&mut self) -> Result<Vec<String>, EngineError>;

    /// The tables that the marker lists.
    fn marked(&mut self, database: &str) -> Result<Vec<String>, EngineError>;

    fn make_marker(&mut self) -> Result<(), EngineError>;

    fn drop_tables(&mut self, tables: &[String]) -> Result<(), EngineError>;

    /// Lets go of the lock, if the end of the connection alone may be too late.
    fn unlock(&mut self) -> Result<(), EngineError> {
        Ok(())
    }
}

/// Somebody's database, ours for a while: the connection that holds its lock, or `None` after the
/// end.
pub(crate) struct Claim<C>(Mutex<Option<C>>);

impl<C: DatabaseLock> Claim<C> {
    /// Takes the lock, drops what an earlier campaign left, and makes the marker.
    pub fn take(mut connection: C, database: &str) -> Result<Self, EngineError> {
        connection.lock(database)?;
        let found = connection.contents()?;
        let marked = if found.iter().any(|name| name == MARKER) {
            Some(connection.marked(database)?)
        } else {
            None
        };
        let leftovers = leftovers(database, &found, marked.as_deref())?;
        connection.drop_tables(&leftovers)?;
        connection.make_marker()?;
        Ok(Self(Mutex::new(Some(connection))))
    }

    /// Drops our tables and the marker, within `limit`. Nothing is done when it is done already.
    pub fn leave(
        &self,
        server: &ExternalServer,
        limit: Duration,
        connect: impl FnOnce() -> Result<C, EngineError> + Send + 'static,
    ) -> Result<(), EngineError> {
        let Some(mut connection) = self.connection().take() else {
            return Ok(());
        };
        let database = server.database.clone();
        limited("leave", server, limit, move || {
            if !connection.is_alive() {
                // With the connection the lock is gone: somebody else may have come.
                connection = connect()?;
                connection.lock(&database)?;
            }
            let marked = connection.marked(&database)?;
            let mut ours = connection.contents()?;
            ours.retain(|name| name != MARKER && marked.contains(name));
            // The marker last: without it what is left would be somebody's.
            ours.push(MARKER.to_owned());
            connection.drop_tables(&ours)?;
            connection.unlock()
        })
    }

    fn connection(&self) -> MutexGuard<'_, Option<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for what is done with a server, at most for `limit`. `doing` begins the error.
pub(crate) fn limited<T: Send + 'static>(
    doing: &str,
    server: &ExternalServer,
    limit: Duration,
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    within(Instant::now() + limit, work).unwrap_or_else(|| {
        Err(EngineError::new(format!(
            "{doing} the server {}: {} did not answer within {limit:?}; check the server, and the \
            network. What is left of our tables the next campaign on {} drops",
            server.label, server.place, server.database
        )))
    })
}

/// Which tables of a database are to be dropped before its first use: those that the marker of an
/// earlier campaign lists and that are there. Anything else in it is somebody's, and an error.
/// `marked` is what the marker lists, and `None` when there is no marker.
fn leftovers(
    database: &str,
    found: &[String],
    marked: Option<&[String]>,
) -> Result<Vec<String>, EngineError> {
    let ours: BTreeSet<&str> = marked
        .unwrap_or_default()
        .iter()
        .map(String::as_str)
        .chain(marked.map(|_| MARKER))
        .collect();
    let foreign: Vec<&str> = found
        .iter()
        .map(String::as_str)
        .filter(|name| !ours.contains(name) && !planted::is(Bug::MarkerIgnored))
        .collect();
    if foreign.is_empty() {
        return Ok(found
            .iter()
            .filter(|name| *name != MARKER)
            .cloned()
            .collect());
    }
    let first = foreign[..foreign.len().min(3)].join(", ");
    let more = if foreign.len() > 3 {
        format!(" and {} more", foreign.len() - 3)
    } else {
        String::new()
    };
    let mark = if marked.is_some() {
        "are not in its marker"
    } else {
        "there is no Plimsoll marker"
    };
    Err(EngineError::new(format!(
        "the database {database} holds what is not ours ({first}{more}; {mark}), and nothing was \
        touched; give the plan an empty database"
    )))
}

/// The marker cannot be read as ours.
pub(crate) fn unreadable_marker(database: &str, error: &str) -> EngineError {
    EngineError::new(format!(
        "the database {database} has a table {MARKER} that is not as ours are ({error}), and \
        nothing was touched; give the plan an empty database"
    ))
}

/// Somebody else uses the database now.
pub(crate) fn in_use(database: &str) -> EngineError {
    EngineError::new(format!(
        "another campaign uses the database {database} now (it holds our lock); wait until it is \
        done, or give the plan another database"
    ))
}

/// A config tries to set something up.
pub(crate) fn setting_refused(name: &str) -> EngineError {
    EngineError::new(format!(
        "setting {name} is for servers of our own; an external server runs as it is: take it out \
        of the config"
    ))
}

/// The server knows the user or the password otherwise.
pub(crate) fn access_denied(server: &ExternalServer, says: &str, has_password: bool) -> String {
    let next = if has_password {
        "check the user in the dsn, and the password"
    } else {
        "check the user in the dsn, and name a password_file or a password_env if it needs a \
        password"
    };
    format!(
        "{} refuses us: {says}; {next} ([server.{}])",
        server.place, server.label
    )
}

/// How a connection is protected, in a word; without a protocol it is not.
pub(crate) fn session_tls(protocol: &str, cipher: &str) -> String {
    if protocol.is_empty() {
        "off".to_owned()
    } else {
        format!("{protocol} {cipher}").trim_end().to_owned()
    }
}

/// What a drain does not do on an external server, for the log of the drain.
pub(crate) fn left_out(action: &str) -> DrainAction {
    DrainAction {
        action: action.to_owned(),
        seconds: 0.0,
        result: "left out: the server is not ours".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_marker_lists_is_dropped() {
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        type Row<'a> = (
            &'a [&'a str],
            Option<&'a [&'a str]>,
            Result<&'a [&'a str], &'a str>,
        );
        let table: [Row<'_>; 8] = [
            (&[], None, Ok(&[])),
            (&[MARKER], Some(&[]), Ok(&[])),
            (
                &[MARKER, "pi1", "pi2"],
                Some(&["pi1", "pi2", "pi3"]),
                Ok(&["pi1", "pi2"]),
            ),
            (&["pi1"], None, Err("(pi1; there is no Plimsoll marker)")),
            (
                &[MARKER, "pi1", "payroll"],
                Some(&["pi1"]),
                Err("(payroll; are not in its marker)"),
            ),
            (
                &[MARKER, "pi1"],
                Some(&[]),
                Err("(pi1; are not in its marker)"),
            ),
            (
                &["a", "b", "c", "d", "e"],
                None,
                Err("(a, b, c and 2 more; there is no Plimsoll marker)"),
            ),
            // A marker that we did not read as one is as foreign as anything.
            (
                &[MARKER],
                None,
                Err("(plimsoll_marker; there is no Plimsoll marker)"),
            ),
        ];
        for (found, marked, expected) in table {
            let marked = marked.map(names);
            match (leftovers("ib", &names(found), marked.as_deref()), expected) {
                (Ok(dropped), Ok(expected)) => assert_eq!(dropped, names(expected), "{found:?}"),
                (Err(error), Err(expected)) => {
                    assert!(
                        error.message.contains(expected)
                            && error.message.contains("nothing was touched"),
                        "{}",
                        error.message
                    );
                }
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        }
    }
}
