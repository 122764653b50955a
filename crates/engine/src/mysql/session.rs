//! One worker's connection: over the thin client, or over the full one where TLS or the plan wants
//! it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use mysql::prelude::{Protocol, Queryable};
use mysql::{Conn, DriverError, Opts, Params, QueryResult, Statement, Value};

use super::admin::ANSWER_LIMIT;
use super::wire::{WireError, WireSession};
use super::{failure, text};
use crate::deadline::within;
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SessionClient, SqlError,
    SqlSession,
};

/// Between two tries to connect again.
pub(super) const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Opens a worker's session.
pub(super) fn open(opts: Opts, wanted: SessionClient) -> Result<Box<dyn SqlSession>, EngineError> {
    Ok(match client(&opts, wanted) {
        SessionClient::Thin => Box::new(
            WireSession::connect(opts, ANSWER_LIMIT)
                .map_err(|error| failure::wire_engine_error("connect", &error))?,
        ),
        SessionClient::Full => Box::new(
            MysqlSession::connect(opts)
                .map_err(|error| failure::engine_error("connect", &error))?,
        ),
    })
}

/// Says when the account needs an authentication that the thin client does not speak. The full
/// client is not fit to be asked: for some it ends its thread. Whatever else is wrong it tells
/// better.
pub(super) fn check_plugin(opts: &Opts) -> Result<(), String> {
    if has_tls(opts) {
        return Ok(());
    }
    match WireSession::connect(
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

/// A connection and its prepared statements. A lost connection is told as such for the operation
/// that met it, whether or not that may have taken place; the next call connects again.
struct MysqlSession {
    opts: Opts,
    connection: Option<Conn>,
    statements: Vec<Known>,
}

/// A statement's text, and its handle on the present connection.
struct Known {
    sql: Box<str>,
    handle: Option<Statement>,
}

impl MysqlSession {
    fn connect(opts: Opts) -> mysql::Result<Self> {
        let connection = Conn::new(opts.clone())?;
        Ok(Self {
            opts,
            connection: Some(connection),
            statements: Vec::new(),
        })
    }

    /// Runs on the connection, which is made anew when it was lost. What this call loses is
    /// forgotten here.
    fn on_connection<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut Conn) -> mysql::Result<T>,
    ) -> Result<T, SqlError> {
        let connection = live(&mut self.connection, &self.opts)
            .map_err(|error| failure::sql_error(&error, sql).before_sending())?;
        run(connection).map_err(|error| {
            let error = failure::sql_error(&error, sql);
            if error.class.is_disconnected() {
                self.forget();
            }
            error
        })
    }

    fn on_prepared<T>(
        &mut self,
        prepared: Prepared,
        arguments: Vec<Value>,
        run: impl FnOnce(QueryResult<'_, '_, '_, mysql::Binary>) -> mysql::Result<T>,
    ) -> Result<T, SqlError> {
        let Some(known) = self.statements.get_mut(prepared.0) else {
            return Err(failure::not_prepared(prepared));
        };
        let mut is_sent = false;
        let outcome = live(&mut self.connection, &self.opts).and_then(|connection| {
            let handle = match &known.handle {
                Some(handle) => handle,
                None => known.handle.insert(connection.prep(&*known.sql)?),
            };
            is_sent = true;
            run(connection.exec_iter(handle, Params::Positional(arguments))?)
        });
        let error = match outcome {
            Ok(answer) => return Ok(answer),
            Err(error) if is_sent => failure::sql_error(&error, &known.sql),
            Err(error) => failure::sql_error(&error, &known.sql).before_sending(),
        };
        if error.class.is_disconnected() {
            self.forget();
        }
        Err(error)
    }

    fn forget(&mut self) {
        self.connection = None;
        for known in &mut self.statements {
            known.handle = None;
        }
    }
}

/// The connection, or a new one.
fn live<'a>(connection: &'a mut Option<Conn>, opts: &Opts) -> mysql::Result<&'a mut Conn> {
    match connection {
        Some(connection) => Ok(connection),
        None => Ok(connection.insert(reconnect(opts)?)),
    }
}

fn reconnect(opts: &Opts) -> mysql::Result<Conn> {
    let deadline = Instant::now() + RECONNECT_LIMIT;
    loop {
        let opts = opts.clone();
        match within(deadline, || Conn::new(opts)) {
            // The server may not have noticed yet that the old connection is gone, and have no room
            // for another.
            Some(Err(mysql::Error::MySqlError(error)))
                if error.code == 1040 && Instant::now() < deadline =>
            {
                std::thread::sleep(RECONNECT_PAUSE);
            }
            Some(answer) => return answer,
            None => return Err(DriverError::ConnectTimeout.into()),
        }
    }
}

impl SqlSession for MysqlSession {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.on_connection(sql, |connection| {
            connection
                .query_iter(sql)
                .map(|result| result.affected_rows())
        })
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.on_connection(sql, |connection| connection.query_drop(sql))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        let handle = self.on_connection(sql, |connection| connection.prep(sql))?;
        self.statements.push(Known {
            sql: sql.into(),
            handle: Some(handle),
        });
        Ok(Prepared(self.statements.len() - 1))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.on_prepared(statement, integers(arguments), count_rows)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.on_prepared(statement, integers(arguments), |result| {
            Ok(result.affected_rows())
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.on_connection(sql, |connection| count_rows(connection.query_iter(sql)?))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // The types go with the values.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.on_connection(sql, |connection| count(connection.query_iter(sql)?))
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
        self.on_prepared(statement, arguments.iter().map(value).collect(), count)
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        self.on_connection(sql, |connection| {
            Ok(connection.query_first::<Option<i64>, _>(sql)?.flatten())
        })
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        self.on_connection(sql, |connection| {
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
