//! One worker's connection.

use std::hint::black_box;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use super::{failure, text};
use crate::{Argument, Counts, ErrorClass, Parameter, Prepared, SqlError, SqlSession};

/// BEGIN, COMMIT and ROLLBACK.
const OWN_STATEMENTS: usize = 3;

/// A connection and the texts of its prepared statements. The compiled statements live in the
/// connection's cache under these texts: holding them here would make the session borrow from
/// itself. Looking one up costs a hash and a copy of its text.
pub(super) struct SqliteSession {
    connection: Connection,
    statements: Vec<Box<str>>,
}

impl SqliteSession {
    /// A session on a connection whose settings are applied.
    pub(super) fn new(connection: Connection) -> Self {
        Self {
            connection,
            statements: Vec::new(),
        }
    }

    /// The connection, for what the trait does not offer.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn prepared(&self, statement: Prepared) -> Result<&str, SqlError> {
        self.statements
            .get(statement.0)
            .map(|sql| &**sql)
            .ok_or_else(|| SqlError {
                class: ErrorClass::Statement,
                code: i64::from(rusqlite::ffi::SQLITE_MISUSE),
                message: "this session did not prepare the statement; prepare it here first"
                    .to_owned(),
                statement: format!("prepared statement {}", statement.0),
            })
    }
}

impl SqlSession for SqliteSession {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        write(&self.connection, sql).map_err(|error| failure::sql_error(&error, sql))
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        let result = self
            .connection
            .prepare(sql)
            .and_then(|mut statement| fetch_all(&mut statement, NONE));
        result
            .map(drop)
            .map_err(|error| failure::sql_error(&error, sql))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.connection
            .set_prepared_statement_cache_capacity(OWN_STATEMENTS + self.statements.len() + 1);
        self.connection
            .prepare_cached(sql)
            .map_err(|error| failure::sql_error(&error, sql))?;
        self.statements.push(sql.into());
        Ok(Prepared(self.statements.len() - 1))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        let sql = self.prepared(statement)?;
        let rows = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| fetch_all(&mut statement, arguments));
        rows.map_err(|error| failure::sql_error(&error, sql))
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        let sql = self.prepared(statement)?;
        let rows = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| {
                in_transaction(&self.connection, || {
                    statement.execute(params_from_iter(arguments))
                })
            });
        rows.map_err(|error| failure::sql_error(&error, sql))
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        let rows = self
            .connection
            .prepare(sql)
            .and_then(|mut statement| fetch_all(&mut statement, NONE));
        rows.map_err(|error| failure::sql_error(&error, sql))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // Placeholders have no types here.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        let counts = self
            .connection
            .prepare(sql)
            .and_then(|mut statement| perform(&mut statement, NONE));
        counts.map_err(|error| failure::sql_error(&error, sql))
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        let sql = self.prepared(statement)?;
        let counts = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| perform(&mut statement, arguments));
        counts.map_err(|error| failure::sql_error(&error, sql))
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        match self.connection.query_row(sql, [], |row| row.get(0)) {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            answer => answer.map_err(|error| failure::sql_error(&error, sql)),
        }
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        render_rows(&self.connection, sql, row).map_err(|error| failure::sql_error(&error, sql))
    }
}

/// Compiles a fresh text and runs it as a transaction. The text is compiled before the lock is
/// taken, as a server would do it, so that writers wait for each other's changes but not for each
/// other's parsing; and it is not cached, as it never comes again.
fn write(connection: &Connection, sql: &str) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare(sql)?;
    in_transaction(connection, || statement.execute([]))
}

/// Runs one statement between BEGIN IMMEDIATE and COMMIT. Whatever fails, the transaction is over
/// afterwards.
fn in_transaction(
    connection: &Connection,
    statement: impl FnOnce() -> rusqlite::Result<usize>,
) -> rusqlite::Result<u64> {
    let run = |sql| connection.prepare_cached(sql)?.execute([]);
    run("BEGIN IMMEDIATE")?;
    let answer = statement().and_then(|rows| run("COMMIT").map(|_| rows as u64));
    // Some errors (a full disk, for one) have ended the transaction already.
    if answer.is_err() && !connection.is_autocommit() {
        run("ROLLBACK")?;
    }
    answer
}

const NONE: &[i64] = &[];

impl ToSql for Argument<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Self::Integer(number) => ValueRef::Integer(number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// Runs a statement of either kind.
fn perform(statement: &mut Statement<'_>, arguments: &[impl ToSql]) -> rusqlite::Result<Counts> {
    if statement.column_count() > 0 {
        return Ok(Counts {
            rows: fetch_all(statement, arguments)?,
            affected: 0,
        });
    }
    Ok(Counts {
        rows: 0,
        affected: statement.execute(params_from_iter(arguments))? as u64,
    })
}

/// Steps through all rows and looks at every column where it lies; the optimiser must not find out
/// that nobody uses them.
fn fetch_all(statement: &mut Statement<'_>, arguments: &[impl ToSql]) -> rusqlite::Result<u64> {
    let columns = statement.column_count();
    let mut rows = statement.query(params_from_iter(arguments))?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        for column in 0..columns {
            black_box(row.get_ref(column)?);
        }
        count += 1;
    }
    Ok(count)
}

fn render_rows(
    connection: &Connection,
    sql: &str,
    each: &mut dyn FnMut(&[&str]),
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(sql)?;
    let mut texts = vec![String::new(); statement.column_count()];
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        for (column, text) in texts.iter_mut().enumerate() {
            text::render(row.get_ref(column)?, text);
        }
        each(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    Ok(())
}
