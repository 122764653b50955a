//! One worker's connection.

use std::hint::black_box;

use super::library::{Connection, Failure, Statement};
use super::{failure, query, text};
use crate::{Argument, Counts, ErrorClass, Parameter, Prepared, SqlError, SqlSession};

const NONE: &[i64] = &[];

/// A connection, and the texts of the statements that it keeps: its own, then the prepared ones.
pub(super) struct SqliteSession {
    connection: Connection,
    texts: Vec<Box<str>>,
}

/// Statements of every session, by their numbers.
const BEGIN: usize = 0;
const COMMIT: usize = 1;
const ROLLBACK: usize = 2;
const OWN_STATEMENTS: [&str; 3] = ["BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"];

impl SqliteSession {
    /// A session on a connection whose settings are applied.
    pub(super) fn new(connection: Connection) -> Result<Self, Failure> {
        let mut session = Self {
            connection,
            texts: Vec::new(),
        };
        for sql in OWN_STATEMENTS {
            session.keep(sql)?;
        }
        Ok(session)
    }

    /// The connection, for what the trait does not offer.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    fn keep(&mut self, sql: &str) -> Result<usize, Failure> {
        let number = self.connection.keep(sql)?;
        self.texts.push(sql.into());
        Ok(number)
    }

    /// Runs something with a prepared statement. An error quotes its text.
    fn with<T>(
        &self,
        prepared: Prepared,
        run: impl FnOnce(Statement<'_>) -> Result<T, Failure>,
    ) -> Result<T, SqlError> {
        let Some(statement) = self.connection.kept(prepared.0) else {
            return Err(SqlError {
                class: ErrorClass::Statement,
                code: i64::from(libsqlite3_sys::SQLITE_MISUSE),
                message: "this session did not prepare the statement; prepare it here first"
                    .to_owned(),
                statement: format!("prepared statement {}", prepared.0),
            });
        };
        run(statement).map_err(|error| failure::sql_error(&error, &self.texts[prepared.0]))
    }

    /// Runs something with a text that never comes again.
    fn once<T>(
        &self,
        sql: &str,
        run: impl FnOnce(Statement<'_>) -> Result<T, Failure>,
    ) -> Result<T, SqlError> {
        let result = self.connection.prepare(sql).and_then(run);
        result.map_err(|error| failure::sql_error(&error, sql))
    }
}

impl SqlSession for SqliteSession {
    /// The text is compiled before the lock is taken, as a server would do it, so that writers wait
    /// for each other's changes but not for each other's parsing.
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.once(sql, |mut statement| {
            in_transaction(&self.connection, || statement.execute(NONE))
        })
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.once(sql, |mut statement| fetch_all(&mut statement, NONE))
            .map(drop)
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.keep(sql)
            .map(Prepared)
            .map_err(|error| failure::sql_error(&error, sql))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.with(statement, |mut statement| {
            fetch_all(&mut statement, arguments)
        })
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.with(statement, |mut statement| {
            in_transaction(&self.connection, || statement.execute(arguments))
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.once(sql, |mut statement| fetch_all(&mut statement, NONE))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // Placeholders have no types here.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.once(sql, |mut statement| perform(&mut statement, &[]))
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        self.with(statement, |mut statement| {
            perform(&mut statement, arguments)
        })
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        query::integer(&self.connection, sql).map_err(|error| failure::sql_error(&error, sql))
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        self.once(sql, |mut statement| render_rows(&mut statement, row))
    }
}

/// Runs one statement between BEGIN IMMEDIATE and COMMIT. Whatever fails, the transaction is over
/// afterwards.
fn in_transaction(
    connection: &Connection,
    statement: impl FnOnce() -> Result<u64, Failure>,
) -> Result<u64, Failure> {
    let run = |own| {
        let kept = connection.kept(own);
        kept.expect("a session keeps its own statements from its beginning")
            .execute(NONE)
    };
    run(BEGIN)?;
    let answer = statement().and_then(|rows| run(COMMIT).map(|_| rows));
    // Some errors (a full disk, for one) have ended the transaction already.
    if answer.is_err() && !connection.is_autocommit() {
        run(ROLLBACK)?;
    }
    answer
}

/// Runs a statement of either kind.
fn perform(statement: &mut Statement<'_>, arguments: &[Argument<'_>]) -> Result<Counts, Failure> {
    if statement.column_count() > 0 {
        return Ok(Counts {
            rows: fetch_all(statement, arguments)?,
            affected: 0,
        });
    }
    Ok(Counts {
        rows: 0,
        affected: statement.execute(arguments)?,
    })
}

/// Steps through all rows and looks at every column where it lies; the optimiser must not find out
/// that nobody uses them.
fn fetch_all(
    statement: &mut Statement<'_>,
    arguments: &[impl super::library::Bound],
) -> Result<u64, Failure> {
    let mut rows = statement.rows(arguments)?;
    let mut count = 0;
    while let Some(row) = rows.step()? {
        for value in row.values() {
            black_box(value);
        }
        count += 1;
    }
    Ok(count)
}

fn render_rows(
    statement: &mut Statement<'_>,
    each: &mut dyn FnMut(&[&str]),
) -> Result<(), Failure> {
    let mut texts = vec![String::new(); statement.column_count()];
    let mut rows = statement.rows(NONE)?;
    while let Some(row) = rows.step()? {
        for (value, text) in row.values().zip(&mut texts) {
            text::render(value, text);
        }
        each(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    }
    Ok(())
}
