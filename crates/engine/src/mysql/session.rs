//! One worker's connection: over the thin client, or over the full one where TLS or the plan wants
//! it.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, DriverError, Opts, Params, QueryResult, Statement, Value};

use super::admin::ANSWER_LIMIT;
use super::wire::{self, WireError};
use super::{failure, text};
use crate::deadline::within;
use crate::reconnecting::{Connection, Reconnecting};
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SessionClient, SqlError,
    SqlSession,
};

/// The server's error when it has no room for another connection.
pub(super) const TOO_MANY_CONNECTIONS: u16 = 1040;

/// Between two tries to connect again.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Opens a worker's session.
pub(super) fn open(opts: Opts, wanted: SessionClient) -> Result<Box<dyn SqlSession>, EngineError> {
    Ok(match client(&opts, wanted) {
        SessionClient::Thin => wire::open(opts, ANSWER_LIMIT)
            .map_err(|error| failure::wire_engine_error("connect", &error))?,
        SessionClient::Full => {
            let connection = Conn::new(opts.clone())
                .map_err(|error| failure::engine_error("connect", &error))?;
            Box::new(Reconnecting::new(opts, connection))
        }
    })
}

/// Says when the account needs an authentication that the thin client does not speak. The full
/// client is not fit to be asked: for some it ends its thread. Whatever else is wrong it tells
/// better.
pub(super) fn check_plugin(opts: &Opts) -> Result<(), String> {
    if has_tls(opts) {
        return Ok(());
    }
    match wire::open(
        opts.clone(),
        opts.get_tcp_connect_timeout().unwrap_or(ANSWER_LIMIT),
    ) {
        Err(WireError::Unsupported(why)) => Err(why),
        _ => Ok(()),
    }
}

/// Which client the sessions go through.
fn client(opts: &Opts, wanted: SessionClient) -> SessionClient {
    if has_tls(opts) {
        SessionClient::Full
    } else {
        wanted
    }
}

/// The same in words, for the effective settings.
pub(super) fn client_name(opts: &Opts, wanted: SessionClient) -> &'static str {
    match client(opts, wanted) {
        SessionClient::Thin => "thin",
        SessionClient::Full => "mysql crate",
    }
}

fn has_tls(opts: &Opts) -> bool {
    opts.get_ssl_opts().is_some()
}

impl Connection for Conn {
    type Target = Opts;
    type Handle = Statement;
    type Error = mysql::Error;

    const PREPARES_ALL_AT_ONCE: bool = false;

    fn connect_again(opts: &Opts, sql: &str) -> Result<Self, SqlError> {
        let deadline = Instant::now() + RECONNECT_LIMIT;
        let connect = || {
            let opts = opts.clone();
            within(deadline, || Conn::new(opts))
                .unwrap_or_else(|| Err(DriverError::ConnectTimeout.into()))
        };
        let is_full = |error: &mysql::Error| match error {
            mysql::Error::MySqlError(error) => error.code == TOO_MANY_CONNECTIONS,
            _ => false,
        };
        until_there_is_room(deadline, connect, is_full)
            .map_err(|error| failure::sql_error(&error, sql).before_sending())
    }

    fn prepare(
        &mut self,
        _position: usize,
        sql: &str,
        _parameters: Option<&[Parameter]>,
    ) -> mysql::Result<Statement> {
        self.prep(sql)
    }

    fn sql_error(error: &mysql::Error, sql: &str) -> SqlError {
        failure::sql_error(error, sql)
    }

    fn not_prepared(statement: Prepared) -> SqlError {
        failure::not_prepared(statement)
    }
}

/// Connects until the server has room for another connection or the deadline has passed. A server
/// that has not noticed yet that the old connection is gone may have none.
pub(super) fn until_there_is_room<T, E>(
    deadline: Instant,
    connect: impl Fn() -> Result<T, E>,
    is_full: impl Fn(&E) -> bool,
) -> Result<T, E> {
    loop {
        match connect() {
            Err(error) if is_full(&error) && Instant::now() < deadline => {
                thread::sleep(RECONNECT_PAUSE);
            }
            answer => return answer,
        }
    }
}

/// Runs a prepared statement and takes its answer with `read`.
fn execute<T>(
    session: &mut Reconnecting<Conn>,
    statement: Prepared,
    arguments: Vec<Value>,
    read: impl FnOnce(QueryResult<'_, '_, '_, mysql::Binary>) -> mysql::Result<T>,
) -> Result<T, SqlError> {
    session.run_prepared(statement, |connection, handle| {
        read(connection.exec_iter(&*handle, Params::Positional(arguments))?)
    })
}

impl SqlSession for Reconnecting<Conn> {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.run(sql, |connection| {
            connection
                .query_iter(sql)
                .map(|result| result.affected_rows())
        })
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.run(sql, |connection| connection.query_drop(sql))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, None)
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        execute(self, statement, integers(arguments), count_rows)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        execute(self, statement, integers(arguments), |result| {
            Ok(result.affected_rows())
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.run(sql, |connection| count_rows(connection.query_iter(sql)?))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // The types go with the values.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.run(sql, |connection| count(connection.query_iter(sql)?))
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        let value = |argument: &Argument<'_>| match *argument {
            Argument::Integer(number) => Value::Int(number),
            Argument::Text(text) => Value::Bytes(text.into()),
        };
        execute(
            self,
            statement,
            arguments.iter().map(value).collect(),
            count,
        )
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        self.run(sql, |connection| {
            Ok(connection.query_first::<Option<i64>, _>(sql)?.flatten())
        })
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        self.run(sql, |connection| {
            let mut result = connection.query_iter(sql)?;
            let Some(rows) = result.iter() else {
                return Ok(());
            };
            let mut texts = Vec::new();
            for found in rows {
                let values = found?.unwrap();
                texts.resize_with(values.len(), String::new);
                for (value, text) in values.iter().zip(&mut texts) {
                    text.clear();
                    text::render(value, text);
                }
                row(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Ok(())
        })
    }
}

fn integers(arguments: &[i64]) -> Vec<Value> {
    arguments.iter().map(|&number| Value::Int(number)).collect()
}

/// Fetches all rows, and says what was affected.
fn count<T: Protocol>(result: QueryResult<'_, '_, '_, T>) -> mysql::Result<Counts> {
    let affected = result.affected_rows();
    Ok(Counts {
        rows: count_rows(result)?,
        affected,
    })
}

/// Fetches all rows; the optimiser must not find out that nobody uses them.
fn count_rows<T: Protocol>(mut result: QueryResult<'_, '_, '_, T>) -> mysql::Result<u64> {
    let mut count = 0;
    if let Some(rows) = result.iter() {
        for row in rows {
            black_box(row?);
            count += 1;
        }
    }
    Ok(count)
}
