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
use crate::postgres::{copied, failure, placeholder};
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SqlError, SqlSession,
};

/// Of a row that should be one integer so much is looked at.
const INTEGER_ROW: usize = 4096;

/// A connection, and what it takes to make it again.
pub(in crate::postgres) struct WireSession {
    link: Link,
    login: Login,
    /// `None` after it was lost.
    connection: Option<Connection>,
    statements: Vec<Statement>,
}

/// A prepared statement and its text, from which it is prepared again on a new connection.
struct Statement {
    sql: String,
    form: Form,
}

/// How its arguments go.
enum Form {
    /// As integers of the types that the server inferred.
    Inferred(Request),
    /// As the types that it was prepared with.
    Typed(Vec<Parameter>, TypedRequest),
}

impl WireSession {
    /// A session on a fresh connection, made as `login` says; `link` is to the same server.
    pub fn open(link: Link, login: Login) -> Result<Self, EngineError> {
        let connection = connect(&login, CONNECT_LIMIT)
            .map_err(|fault| fault.engine_error("connect to postgres"))?;
        Ok(Self {
            link,
            login,
            connection: Some(connection),
            statements: Vec::new(),
        })
    }

    /// The connection, which is made again when it was lost.
    #[inline]
    fn connection(&mut self, sql: &str) -> Result<&mut Connection, SqlError> {
        if self.connection.is_none() {
            self.reconnect(sql)?;
        }
        Ok(self.connection.as_mut().expect("it has just been ensured"))
    }

    /// Connects and prepares all statements again; `sql` is what the connection is wanted for.
    #[cold]
    fn reconnect(&mut self, sql: &str) -> Result<(), SqlError> {
        let deadline = Instant::now() + RECONNECT_LIMIT;
        let login = &self.login;
        let attempt = || {
            let left = deadline.saturating_duration_since(Instant::now());
            connect(login, left)
                .map_err(|fault| format!("{}, SQLSTATE {}", fault.message(), fault.sqlstate()))
        };
        let mut connection = self
            .link
            .persist(deadline, attempt)
            .map_err(|reason| failure::unreachable(sql, reason))?;
        for (position, Statement { sql, form }) in self.statements.iter_mut().enumerate() {
            let (name, text) = (name(position), placeholder::numbered(sql));
            let prepared = match form {
                Form::Inferred(request) => connection
                    .prepare(&name, &text)
                    .map(|again| *request = again),
                Form::Typed(parameters, request) => connection
                    .prepare_as(&name, &text, parameters)
                    .map(|again| *request = again),
            };
            prepared.map_err(|fault| fault.sql_error(sql).before_sending())?;
        }
        self.connection = Some(connection);
        Ok(())
    }

    /// Runs `work` on the connection, and gives the connection up when that was the end of it.
    #[inline]
    fn run<T>(
        &mut self,
        sql: &str,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault>,
    ) -> Result<T, SqlError> {
        match work(self.connection(sql)?) {
            Ok(answer) => Ok(answer),
            Err(fault) => Err(given_up(&mut self.connection, &fault, sql)),
        }
    }

    /// Runs a statement in text, and passes over its rows.
    #[inline]
    fn run_text(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.run(sql, |connection| connection.query(sql, Connection::skip))
    }

    #[inline]
    fn run_prepared(
        &mut self,
        prepared: Prepared,
        arguments: &[i64],
        run: impl FnOnce(&mut Connection, &[u8]) -> Result<u64, Fault>,
    ) -> Result<u64, SqlError> {
        if self.connection.is_none() {
            self.reconnect_for(prepared)?;
        }
        let (
            Some(connection),
            Some(Statement {
                sql,
                form: Form::Inferred(request),
            }),
        ) = (&mut self.connection, self.statements.get_mut(prepared.0))
        else {
            return Err(unknown(prepared));
        };
        match request
            .with(arguments)
            .and_then(|request| run(connection, request))
        {
            Ok(rows) => Ok(rows),
            Err(fault) => Err(given_up(&mut self.connection, &fault, sql)),
        }
    }

    #[cold]
    fn reconnect_for(&mut self, prepared: Prepared) -> Result<(), SqlError> {
        let sql = self
            .statements
            .get(prepared.0)
            .map(|statement| statement.sql.clone())
            .ok_or_else(|| unknown(prepared))?;
        self.reconnect(&sql)
    }
}

/// The error of a statement. A connection that is of no use any more is dropped.
#[cold]
fn given_up(connection: &mut Option<Connection>, fault: &Fault, sql: &str) -> SqlError {
    let error = fault.sql_error(sql);
    if fault.is_over() || error.class.is_disconnected() {
        *connection = None;
    }
    error
}

#[cold]
fn unknown(prepared: Prepared) -> SqlError {
    let name = format!("prepared statement {}", prepared.0);
    failure::refused(
        &name,
        "this session did not prepare the statement; prepare it here first",
    )
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

/// What the server knows a statement by.
fn name(position: usize) -> String {
    format!("s{position}")
}

impl SqlSession for WireSession {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.run_text(sql).map(|counts| counts.affected)
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.run_text(sql).map(drop)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        let position = self.statements.len();
        let request = self.run(sql, |connection| {
            connection.prepare(&name(position), &placeholder::numbered(sql))
        })?;
        self.statements.push(Statement {
            sql: sql.to_owned(),
            form: Form::Inferred(request),
        });
        Ok(Prepared(position))
    }

    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        let position = self.statements.len();
        let request = self.run(sql, |connection| {
            connection.prepare_as(&name(position), &placeholder::numbered(sql), parameters)
        })?;
        self.statements.push(Statement {
            sql: sql.to_owned(),
            form: Form::Typed(parameters.to_owned(), request),
        });
        Ok(Prepared(position))
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.run_text(sql)
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        if self.connection.is_none() {
            self.reconnect_for(statement)?;
        }
        let (
            Some(connection),
            Some(Statement {
                sql,
                form: Form::Typed(_, request),
            }),
        ) = (&mut self.connection, self.statements.get_mut(statement.0))
        else {
            return Err(unknown(statement));
        };
        match request
            .with(arguments)
            .and_then(|request| connection.execute(request))
        {
            Ok(counts) => Ok(counts),
            Err(fault) => Err(given_up(&mut self.connection, &fault, sql)),
        }
    }

    fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, SqlError> {
        self.run(sql, |connection| connection.copy_in(sql, rows))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.run_prepared(statement, arguments, Connection::count_rows)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.run_prepared(statement, arguments, |connection, request| {
            Ok(connection.execute(request)?.affected)
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.run_text(sql).map(|counts| counts.rows)
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
                    copied::split(line, &mut columns);
                    row(&columns.iter().map(String::as_str).collect::<Vec<_>>());
                }
                _ => is_text = false,
            })
        })?;
        if is_text {
            Ok(())
        } else {
            Err(failure::refused(sql, copied::NOT_TEXT))
        }
    }
}
