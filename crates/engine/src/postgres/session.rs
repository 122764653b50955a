//! One worker's connection, over the `postgres` crate: for sessions that TLS protects, and where
//! the plan wants it.

use std::hint::black_box;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use bytes::BytesMut;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, SimpleQueryMessage, Statement};

use super::link::Link;
use super::wire::{self, Login};
use super::{failure, placeholder, text};
use crate::reconnecting::{Connection, Reconnecting};
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SessionClient, SqlError,
    SqlSession,
};

/// A session on a fresh connection of `link`.
pub(super) fn open(link: &Link, wanted: SessionClient) -> Result<Box<dyn SqlSession>, EngineError> {
    Ok(match thin_login(link, wanted) {
        Some(login) => wire::open(link.clone(), login.clone())?,
        None => Box::new(Reconnecting::new(link.clone(), FullClient(link.connect()?))),
    })
}

/// Which client the sessions of `link` use, for the effective settings.
pub(super) fn client_name(link: &Link, wanted: SessionClient) -> &'static str {
    if thin_login(link, wanted).is_some() {
        "thin"
    } else {
        "postgres crate"
    }
}

/// How the thin client logs in, where sessions go through it.
fn thin_login(link: &Link, wanted: SessionClient) -> Option<&Login> {
    link.login().filter(|_| wanted == SessionClient::Thin)
}

/// A connection of the `postgres` crate.
struct FullClient(Client);

/// What can go wrong with it.
enum ClientError {
    Server(postgres::Error),
    /// Of the rows that a `copy` streams.
    Stream(io::Error),
    /// What came is of no use.
    Refused(&'static str),
}

impl From<postgres::Error> for ClientError {
    fn from(error: postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<io::Error> for ClientError {
    fn from(error: io::Error) -> Self {
        Self::Stream(error)
    }
}

impl Connection for FullClient {
    type Target = Link;
    type Handle = Statement;
    type Error = ClientError;

    const PREPARES_ALL_AT_ONCE: bool = true;

    fn connect_again(link: &Link, sql: &str) -> Result<Self, SqlError> {
        link.reconnect(Instant::now() + RECONNECT_LIMIT)
            .map(Self)
            .map_err(|reason| failure::unreachable(sql, reason))
    }

    fn prepare(
        &mut self,
        _position: usize,
        sql: &str,
        parameters: Option<&[Parameter]>,
    ) -> Result<Statement, ClientError> {
        Ok(prepare(&mut self.0, sql, parameters)?)
    }

    fn sql_error(error: &ClientError, sql: &str) -> SqlError {
        match error {
            ClientError::Server(error) => failure::sql_error(error, sql),
            ClientError::Stream(error) => failure::stream_error(error, sql),
            ClientError::Refused(why) => failure::refused(sql, *why),
        }
    }

    fn not_prepared(statement: Prepared) -> SqlError {
        failure::not_prepared(statement)
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }
}

/// Runs a statement in text.
fn run_text(
    session: &mut Reconnecting<FullClient>,
    sql: &str,
) -> Result<Vec<SimpleQueryMessage>, SqlError> {
    session.run(sql, |client| Ok(client.0.simple_query(sql)?))
}

/// Runs a prepared statement to its end: the rows it fetched and the rows it affected.
fn execute(
    session: &mut Reconnecting<FullClient>,
    statement: Prepared,
    arguments: &[impl ToSql + Sync],
) -> Result<Counts, SqlError> {
    session.run_prepared(statement, |client, handle| {
        Ok(fetch_all(&mut client.0, handle, arguments)?)
    })
}

/// Prepares a text with `?` placeholders. The server infers the type of each from what it is
/// compared with, as it did for the original's `PREPARE name (int)`, so that an `int` column meets
/// an `int` and the plan is the same. If it infers something else (a `float` column, nothing to
/// compare with), it gets the type `bigint`.
fn prepare(
    client: &mut Client,
    sql: &str,
    parameters: Option<&[Parameter]>,
) -> Result<Statement, postgres::Error> {
    let sql = placeholder::numbered(sql);
    if let Some(parameters) = parameters {
        let kind = |parameter: &Parameter| match parameter {
            Parameter::Integer => Type::INT8,
            Parameter::Text => Type::VARCHAR,
        };
        return client.prepare_typed(&sql, &parameters.iter().map(kind).collect::<Vec<_>>());
    }
    let inferred = client.prepare(&sql)?;
    if inferred.params().iter().all(Integer::accepts) {
        return Ok(inferred);
    }
    let types: Vec<Type> = inferred
        .params()
        .iter()
        .map(|kind| {
            if Integer::accepts(kind) {
                kind.clone()
            } else {
                Type::INT8
            }
        })
        .collect();
    client.prepare_typed(&sql, &types)
}

fn fetch_all(
    client: &mut Client,
    statement: &Statement,
    arguments: &[impl ToSql + Sync],
) -> Result<Counts, postgres::Error> {
    let mut rows = client.query_raw(
        statement,
        arguments
            .iter()
            .map(|argument| argument as &(dyn ToSql + Sync)),
    )?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        black_box(&row);
        count += 1;
    }
    Ok(Counts {
        rows: count,
        affected: rows.rows_affected().unwrap_or(0),
    })
}

/// An argument, sent as the integer type that the statement has in its place. One that does not fit
/// is an error.
#[derive(Debug)]
struct Integer(i64);

impl ToSql for Integer {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match *kind {
            Type::INT2 => i16::try_from(self.0)?.to_sql(kind, out),
            Type::INT4 => i32::try_from(self.0)?.to_sql(kind, out),
            _ => self.0.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT2 | Type::INT4 | Type::INT8)
    }

    to_sql_checked!();
}

impl ToSql for Argument<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Integer(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::VARCHAR)
    }

    to_sql_checked!();
}

fn integers(arguments: &[i64]) -> Vec<Integer> {
    arguments.iter().map(|&number| Integer(number)).collect()
}

impl SqlSession for Reconnecting<FullClient> {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        let messages = run_text(self, sql)?;
        let affected = |message: &SimpleQueryMessage| {
            if let SimpleQueryMessage::CommandComplete(rows) = message {
                *rows
            } else {
                0
            }
        };
        Ok(messages.iter().map(affected).sum())
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.run(sql, |client| Ok(client.0.batch_execute(sql)?))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, None)
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        execute(self, statement, &integers(arguments)).map(|counts| counts.rows)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        execute(self, statement, &integers(arguments)).map(|counts| counts.affected)
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        let messages = run_text(self, sql)?;
        Ok(messages
            .iter()
            .filter(|message| matches!(message, SimpleQueryMessage::Row(_)))
            .count() as u64)
    }

    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, Some(parameters))
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        let mut counts = Counts::default();
        for message in run_text(self, sql)? {
            match message {
                SimpleQueryMessage::Row(_) => counts.rows += 1,
                SimpleQueryMessage::CommandComplete(affected) => counts.affected += affected,
                _ => {}
            }
        }
        Ok(counts)
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        execute(self, statement, arguments)
    }

    fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, SqlError> {
        self.run(sql, |client| {
            let mut writer = client.0.copy_in(sql)?;
            writer.write_all(rows)?;
            Ok(writer.finish()?)
        })
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        let messages = run_text(self, sql)?;
        let row = messages.iter().find_map(|message| {
            if let SimpleQueryMessage::Row(row) = message {
                Some(row)
            } else {
                None
            }
        });
        let Some(text) = row.filter(|row| !row.is_empty()).and_then(|row| row.get(0)) else {
            return Ok(None);
        };
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
        self.run(sql, |client| {
            let copy = format!("copy ({sql}) to stdout");
            let mut lines = client.0.copy_out(&copy)?;
            let (mut line, mut columns) = (Vec::new(), Vec::new());
            while lines.read_until(b'\n', &mut line)? > 0 {
                let text =
                    std::str::from_utf8(&line).map_err(|_| ClientError::Refused(text::NOT_TEXT))?;
                text::split(text.strip_suffix('\n').unwrap_or(text), &mut columns);
                row(&columns.iter().map(String::as_str).collect::<Vec<_>>());
                line.clear();
            }
            Ok(())
        })
    }
}
