//! One worker's connection, over the thin client.

use std::time::{Duration, Instant};

use super::answer::first_column;
use super::connection::Connection;
use super::fault::Fault;
use super::login::Login;
use super::request::Request;
use super::typed::TypedRequest;
use crate::deadline::within;
use crate::postgres::link::{CONNECT_LIMIT, Link};
use crate::postgres::{failure, placeholder, text};
use crate::reconnecting::{self, Reconnecting};
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SqlError, SqlSession,
};

/// Of a row that should be one integer so much is looked at.
const INTEGER_ROW: usize = 4096;

/// How a prepared statement's arguments go.
pub(super) enum Form {
    /// As integers of the types that the server inferred.
    Inferred(Request),
    /// As the types that it was prepared with.
    Typed(TypedRequest),
}

impl Form {
    #[inline]
    fn inferred(&mut self) -> Result<&mut Request, Fault> {
        match self {
            Self::Inferred(request) => Ok(request),
            Self::Typed(_) => Err(Fault::refused("the statement was prepared with types")),
        }
    }

    #[inline]
    fn typed(&mut self) -> Result<&mut TypedRequest, Fault> {
        match self {
            Self::Typed(request) => Ok(request),
            Self::Inferred(_) => Err(Fault::refused("the statement was prepared without types")),
        }
    }
}

/// Opens a session on a fresh connection, made as `login` says; `link` is to the same server.
pub(in crate::postgres) fn open(
    link: Link,
    login: Login,
) -> Result<Box<dyn SqlSession>, EngineError> {
    let connection = connect(&login, CONNECT_LIMIT)
        .map_err(|fault| fault.engine_error("connect to postgres"))?;
    Ok(Box::new(Reconnecting::new((link, login), connection)))
}

impl reconnecting::Connection for Connection {
    type Target = (Link, Login);
    type Handle = Form;
    type Error = Fault;

    const PREPARES_ALL_AT_ONCE: bool = true;

    fn connect_again((link, login): &(Link, Login), sql: &str) -> Result<Self, SqlError> {
        let deadline = Instant::now() + RECONNECT_LIMIT;
        let attempt = || {
            let left = deadline.saturating_duration_since(Instant::now());
            connect(login, left)
                .map_err(|fault| format!("{}, SQLSTATE {}", fault.message(), fault.sqlstate()))
        };
        link.persist(deadline, attempt)
            .map_err(|reason| failure::unreachable(sql, reason))
    }

    fn prepare(
        &mut self,
        position: usize,
        sql: &str,
        parameters: Option<&[Parameter]>,
    ) -> Result<Form, Fault> {
        // What the server knows the statement by.
        let name = format!("s{position}");
        let text = placeholder::numbered(sql);
        match parameters {
            None => Connection::prepare(self, &name, &text).map(Form::Inferred),
            Some(parameters) => self.prepare_as(&name, &text, parameters).map(Form::Typed),
        }
    }

    fn sql_error(fault: &Fault, sql: &str) -> SqlError {
        fault.sql_error(sql)
    }

    fn not_prepared(statement: Prepared) -> SqlError {
        failure::not_prepared(statement)
    }

    fn is_end(fault: &Fault) -> bool {
        fault.is_over()
    }
}

/// Runs a statement in text, and passes over its rows.
#[inline]
fn run_text(session: &mut Reconnecting<Connection>, sql: &str) -> Result<Counts, SqlError> {
    session.run(sql, |connection| connection.query(sql, Connection::skip))
}

/// One try, within `limit`. A server's name that is looked up for too long is left alone.
fn connect(login: &Login, limit: Duration) -> Result<Connection, Fault> {
    let login = login.clone();
    let limit = limit.max(Duration::from_millis(1));
    within(Instant::now() + limit, move || {
        Connection::open(&login, limit)
    })
    .unwrap_or_else(|| Err(Fault::late()))
}

impl SqlSession for Reconnecting<Connection> {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        run_text(self, sql).map(|counts| counts.affected)
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        run_text(self, sql).map(drop)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, None)
    }

    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, Some(parameters))
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        run_text(self, sql)
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        self.run_prepared(statement, |connection, form| {
            connection.execute(form.typed()?.with(arguments)?)
        })
    }

    fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, SqlError> {
        self.run(sql, |connection| connection.copy_in(sql, rows))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.run_prepared(statement, |connection, form| {
            connection.count_rows(form.inferred()?.with(arguments)?)
        })
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.run_prepared(statement, |connection, form| {
            Ok(connection
                .execute(form.inferred()?.with(arguments)?)?
                .affected)
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        run_text(self, sql).map(|counts| counts.rows)
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        let (mut text, mut is_first) = (None, true);
        self.run(sql, |connection| {
            connection.query(sql, |connection, length| {
                if !std::mem::take(&mut is_first) {
                    return connection.skip(length);
                }
                let looked_at = length.min(INTEGER_ROW);
                let column = |row: &[u8]| {
                    first_column(row).map(|text| String::from_utf8_lossy(text).into_owned())
                };
                text = connection.take(looked_at, column)?;
                connection.skip(length - looked_at)
            })
        })?;
        let Some(text) = text else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            failure::refused(
                sql,
                format!("\"{text}\" is not a whole number; ask for one"),
            )
        })
    }

    /// Columns are the server's own text, NULL is `\N`. Rows come one by one, as a whole table need
    /// not fit into memory; so `sql` must be something that `copy` takes: `select` or `values`.
    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        let (mut columns, mut is_text) = (Vec::new(), true);
        self.run(sql, |connection| {
            connection.copy_out(sql, |line| match std::str::from_utf8(line) {
                Ok(line) if is_text => {
                    text::split(line, &mut columns);
                    row(&columns.iter().map(String::as_str).collect::<Vec<_>>());
                }
                _ => is_text = false,
            })
        })?;
        if is_text {
            Ok(())
        } else {
            Err(failure::refused(sql, text::NOT_TEXT))
        }
    }
}
