//! One worker's connection, over the `postgres` crate: for sessions that TLS protects, and where
//! the plan wants it.

use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::Instant;

use bytes::BytesMut;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, SimpleQueryMessage, Statement};

use super::link::Link;
use super::wire::{Login, WireSession};
use super::{copied, failure, placeholder};
use crate::{
    Argument, Counts, EngineError, Parameter, Prepared, RECONNECT_LIMIT, SessionClient, SqlError,
    SqlSession,
};

/// A session on a fresh connection of `link`.
pub(super) fn open(link: &Link, wanted: SessionClient) -> Result<Box<dyn SqlSession>, EngineError> {
    Ok(match thin_login(link, wanted) {
        Some(login) => Box::new(WireSession::open(link.clone(), login.clone())?),
        None => Box::new(PostgresSession::new(link.clone(), link.connect()?)),
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

/// A connection, and what it takes to make it again.
pub(super) struct PostgresSession {
    link: Link,
    /// `None` after it was lost.
    client: Option<Client>,
    statements: Vec<PreparedText>,
}

/// A prepared statement and its text, from which it is prepared again on a new connection.
struct PreparedText {
    sql: String,
    /// The types of its placeholders, where the server was told them.
    parameters: Option<Vec<Type>>,
    statement: Statement,
}

impl PostgresSession {
    /// A session on a fresh connection of `link`.
    pub fn new(link: Link, client: Client) -> Self {
        Self {
            link,
            client: Some(client),
            statements: Vec::new(),
        }
    }

    /// Makes the connection again when it was lost; `sql` says what it is wanted for.
    fn ensure_connected(&mut self, sql: impl Fn(&Self) -> String) -> Result<(), SqlError> {
        if self
            .client
            .as_ref()
            .is_some_and(|client| !client.is_closed())
        {
            return Ok(());
        }
        self.client = None;
        let mut client = self
            .link
            .reconnect(Instant::now() + RECONNECT_LIMIT)
            .map_err(|reason| failure::unreachable(&sql(self), reason))?;
        for prepared in &mut self.statements {
            prepared.statement =
                prepare(&mut client, &prepared.sql, prepared.parameters.as_deref())
                    .map_err(|error| failure::sql_error(&error, &prepared.sql).before_sending())?;
        }
        self.client = Some(client);
        Ok(())
    }

    /// Runs `work` on the connection and says what its failure means. After a loss the next call
    /// connects again.
    fn run<T>(
        &mut self,
        sql: &str,
        work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, SqlError> {
        self.ensure_connected(|_| sql.to_owned())?;
        attempt(&mut self.client, |client| {
            work(client).map_err(|error| failure::sql_error(&error, sql))
        })
    }

    /// Runs a prepared statement to its end: the rows it fetched and the rows it affected.
    fn run_prepared(
        &mut self,
        prepared: Prepared,
        arguments: &[impl ToSql + Sync],
    ) -> Result<Counts, SqlError> {
        if self.statements.len() <= prepared.0 {
            let name = format!("prepared statement {}", prepared.0);
            return Err(failure::refused(
                &name,
                "this session did not prepare the statement; prepare it here first",
            ));
        }
        self.ensure_connected(|session| session.statements[prepared.0].sql.clone())?;
        let PreparedText { sql, statement, .. } = &self.statements[prepared.0];
        attempt(&mut self.client, |client| {
            fetch_all(client, statement, arguments).map_err(|error| failure::sql_error(&error, sql))
        })
    }
}

/// Runs `work` on a connection that is there, and gives the connection up when it was lost.
fn attempt<T>(
    connection: &mut Option<Client>,
    work: impl FnOnce(&mut Client) -> Result<T, SqlError>,
) -> Result<T, SqlError> {
    let client = connection
        .as_mut()
        .expect("the connection has just been ensured");
    work(client).inspect_err(|error| {
        if error.class.is_disconnected() {
            *connection = None;
        }
    })
}

/// Prepares a text with `?` placeholders. The server infers the type of each from what it is
/// compared with, as it did for the original's `PREPARE name (int)`, so that an `int` column meets
/// an `int` and the plan is the same. Where it infers something else (a `float` column, nothing to
/// compare with), it is told that a `bigint` comes.
fn prepare(
    client: &mut Client,
    sql: &str,
    parameters: Option<&[Type]>,
) -> Result<Statement, postgres::Error> {
    let sql = placeholder::numbered(sql);
    if let Some(parameters) = parameters {
        return client.prepare_typed(&sql, parameters);
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

impl SqlSession for PostgresSession {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        let messages = self.run(sql, |client| client.simple_query(sql))?;
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
        self.run(sql, |client| client.batch_execute(sql))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        let statement = self.run(sql, |client| prepare(client, sql, None))?;
        self.statements.push(PreparedText {
            sql: sql.to_owned(),
            parameters: None,
            statement,
        });
        Ok(Prepared(self.statements.len() - 1))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.run_prepared(statement, &integers(arguments))
            .map(|counts| counts.rows)
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.run_prepared(statement, &integers(arguments))
            .map(|counts| counts.affected)
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        let messages = self.run(sql, |client| client.simple_query(sql))?;
        Ok(messages
            .iter()
            .filter(|message| matches!(message, SimpleQueryMessage::Row(_)))
            .count() as u64)
    }

    fn prepare_as(&mut self, sql: &str, parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        let kind = |parameter: &Parameter| match parameter {
            Parameter::Integer => Type::INT8,
            Parameter::Text => Type::VARCHAR,
        };
        let parameters: Vec<Type> = parameters.iter().map(kind).collect();
        let statement = self.run(sql, |client| prepare(client, sql, Some(&parameters)))?;
        self.statements.push(PreparedText {
            sql: sql.to_owned(),
            parameters: Some(parameters),
            statement,
        });
        Ok(Prepared(self.statements.len() - 1))
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        let mut counts = Counts::default();
        for message in self.run(sql, |client| client.simple_query(sql))? {
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
        self.run_prepared(statement, arguments)
    }

    fn copy_in(&mut self, sql: &str, rows: &[u8]) -> Result<u64, SqlError> {
        self.ensure_connected(|_| sql.to_owned())?;
        attempt(&mut self.client, |client| {
            let mut writer = client
                .copy_in(sql)
                .map_err(|error| failure::sql_error(&error, sql))?;
            writer
                .write_all(rows)
                .map_err(|error| failure::stream_error(&error, sql))?;
            writer
                .finish()
                .map_err(|error| failure::sql_error(&error, sql))
        })
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        let messages = self.run(sql, |client| client.simple_query(sql))?;
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
        self.ensure_connected(|_| sql.to_owned())?;
        attempt(&mut self.client, |client| {
            let copy = format!("copy ({sql}) to stdout");
            let mut lines = client
                .copy_out(&copy)
                .map_err(|error| failure::sql_error(&error, sql))?;
            let (mut line, mut columns) = (Vec::new(), Vec::new());
            while lines
                .read_until(b'\n', &mut line)
                .map_err(|error| failure::stream_error(&error, sql))?
                > 0
            {
                let text = std::str::from_utf8(&line)
                    .map_err(|_| failure::refused(sql, copied::NOT_TEXT))?;
                copied::split(text.strip_suffix('\n').unwrap_or(text), &mut columns);
                row(&columns.iter().map(String::as_str).collect::<Vec<_>>());
                line.clear();
            }
            Ok(())
        })
    }
}
