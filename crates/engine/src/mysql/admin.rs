//! Questions about a server as a whole, on a connection of their own.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, OptsBuilder};

use super::{failure, state};
use crate::EngineError;

/// A server that has not answered a small question for this long does not answer.
pub(super) const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// The same way to a server, on which no answer is waited for longer. For questions: a statement
/// that works for longer is cut.
pub(super) fn with_limit(opts: &Opts, limit: Duration) -> Opts {
    OptsBuilder::from_opts(opts.clone())
        .read_timeout(Some(limit))
        .write_timeout(Some(limit))
        .into()
}

/// How to reach a server, and a connection for questions, which is made again when it was lost.
pub(super) struct Admin {
    opts: Opts,
    /// The same for questions.
    hasty: Opts,
    connection: Mutex<Option<Conn>>,
}

impl Admin {
    /// Connects with the first question.
    pub fn new(opts: Opts) -> Self {
        Self {
            hasty: with_limit(&opts, ANSWER_LIMIT),
            opts,
            connection: Mutex::new(None),
        }
    }

    /// How to reach the server, with the workload's database and for statements that may take long.
    pub fn opts(&self) -> &Opts {
        &self.opts
    }

    /// A new connection for questions.
    pub fn connection(&self) -> Result<Conn, EngineError> {
        Conn::new(self.hasty.clone()).map_err(|error| failure::engine_error("connect", &error))
    }

    /// Asks; once more on a new connection when the first was lost, which is harmless for a
    /// question.
    pub fn ask<T>(
        &self,
        what: &str,
        question: impl Fn(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T, EngineError> {
        let mut kept = self.kept();
        for may_retry in [true, false] {
            let connection = match kept.as_mut() {
                Some(connection) => connection,
                None => kept.insert(self.connection()?),
            };
            match question(connection) {
                Ok(answer) => return Ok(answer),
                Err(mysql::Error::MySqlError(error)) => {
                    let error = mysql::Error::MySqlError(error);
                    return Err(failure::engine_error(what, &error));
                }
                Err(error) => {
                    *kept = None;
                    if !may_retry {
                        return Err(failure::engine_error(what, &error));
                    }
                }
            }
        }
        unreachable!("the second try returns")
    }

    /// What a statement with two columns answers, names in small letters.
    pub fn pairs(&self, sql: &str) -> Result<BTreeMap<String, String>, EngineError> {
        self.ask(sql, |connection| state::pairs(connection, sql))
    }

    pub fn variables(&self) -> Result<BTreeMap<String, String>, EngineError> {
        self.pairs("show global variables")
    }

    /// All whole numbers of SHOW GLOBAL STATUS, and RocksDB's compaction statistics.
    pub fn counters(&self, is_rocksdb: bool) -> Result<BTreeMap<String, i64>, EngineError> {
        let pairs = self.pairs("show global status")?;
        let mut counters: BTreeMap<String, i64> = pairs
            .into_iter()
            .filter_map(|(name, value)| Some((name, state::whole_number(&value)?)))
            .collect();
        if is_rocksdb {
            let sql = "show engine rocksdb status";
            let text = self.ask(sql, |connection| state::status_text(connection, sql))?;
            counters.extend(state::compaction_counters(&text));
        }
        Ok(counters)
    }

    /// Reads back which storage engine the tables have.
    pub fn check_tables(&self, tables: &[String], storage_engine: &str) -> Result<(), EngineError> {
        let sql = "select table_name, engine from information_schema.tables where table_schema = \
                  database()";
        let found: Vec<(String, Option<String>)> =
            self.ask(sql, |connection| connection.query(sql))?;
        for table in tables {
            let engine = found
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(table))
                .and_then(|(_, engine)| engine.as_deref());
            if !engine.is_some_and(|engine| engine.eq_ignore_ascii_case(storage_engine)) {
                return Err(EngineError::new(format!(
                    "the table {table} should be {storage_engine}'s and is {}; check the server's \
                    sql_mode and its log",
                    engine.map_or_else(|| "not there".to_owned(), |engine| format!("{engine}'s"))
                )));
            }
        }
        Ok(())
    }

    /// Ends the connection for questions.
    pub fn close(&self) {
        self.kept().take();
    }

    fn kept(&self) -> MutexGuard<'_, Option<Conn>> {
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks the server for its storage engines. `server` names it in the error.
pub(super) fn check_storage_engine(
    connection: &mut Conn,
    server: &str,
    wanted: &str,
) -> Result<(), EngineError> {
    let sql = "show engines";
    let rows: Vec<mysql::Row> = connection
        .query(sql)
        .map_err(|error| failure::engine_error(sql, &error))?;
    let there: Vec<String> = rows
        .iter()
        .filter_map(|row| Some((row.get::<String, _>(0)?, row.get::<String, _>(1)?)))
        .filter(|(_, support)| support == "YES" || support == "DEFAULT")
        .map(|(name, _)| name)
        .collect();
    if there.iter().any(|name| name.eq_ignore_ascii_case(wanted)) {
        return Ok(());
    }
    Err(EngineError::new(format!(
        "{server} has no storage engine \"{wanted}\"; it has {}: set another storage_engine, or \
        take a build that has it",
        there.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_server_that_takes_connections_and_says_nothing_is_an_error() {
        let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = silent.local_addr().unwrap().port();
        let opts: Opts = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .prefer_socket(false)
            .into();
        let mut admin = Admin::new(opts);
        assert_eq!(
            (
                admin.hasty.get_read_timeout(),
                admin.opts.get_read_timeout()
            ),
            (Some(&ANSWER_LIMIT), None)
        );
        admin.hasty = with_limit(&admin.opts, Duration::from_millis(20));
        let started = Instant::now();
        let message = admin.variables().unwrap_err().message;
        assert!(
            started.elapsed() < ANSWER_LIMIT && message.contains("no answer in time"),
            "{message}"
        );
    }
}
