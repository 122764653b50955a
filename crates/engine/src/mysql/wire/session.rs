//! One worker's session over the thin client.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use mysql::Opts;

use super::error::WireError;
use super::execute::Execute;
use super::link::Link;
use crate::deadline::within;
use crate::mysql::failure;
use crate::mysql::session::{TOO_MANY_CONNECTIONS, until_there_is_room};
use crate::reconnecting::{Connection, Reconnecting};
use crate::{Argument, Counts, Parameter, Prepared, RECONNECT_LIMIT, SqlError, SqlSession};

/// Opens a session. Connects within `limit`.
pub(in crate::mysql) fn open(
    opts: Opts,
    limit: Duration,
) -> Result<Box<dyn SqlSession>, WireError> {
    let link = connect_by(Instant::now() + limit, &opts)?;
    Ok(Box::new(Reconnecting::new(opts, link)))
}

impl Connection for Link {
    type Target = Opts;
    type Handle = Execute;
    type Error = WireError;

    const PREPARES_ALL_AT_ONCE: bool = false;

    fn connect_again(opts: &Opts, sql: &str) -> Result<Self, SqlError> {
        let deadline = Instant::now() + RECONNECT_LIMIT;
        let is_full = |error: &WireError| match error {
            WireError::Server { code, .. } => *code == TOO_MANY_CONNECTIONS,
            _ => false,
        };
        until_there_is_room(deadline, || connect_by(deadline, opts), is_full)
            .map_err(|error| failure::wire_error(&error, sql).before_sending())
    }

    fn prepare(
        &mut self,
        _position: usize,
        sql: &str,
        _parameters: Option<&[Parameter]>,
    ) -> Result<Execute, WireError> {
        Link::prepare(self, sql)
    }

    fn sql_error(error: &WireError, sql: &str) -> SqlError {
        failure::wire_error(error, sql)
    }

    fn not_prepared(statement: Prepared) -> SqlError {
        failure::not_prepared(statement)
    }

    fn close(self) {
        self.quit();
    }
}

/// A server that says something now and then, but never enough, is not waited for longer than one
/// that is silent.
fn connect_by(deadline: Instant, opts: &Opts) -> Result<Link, WireError> {
    let patience = deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1));
    let opts = opts.clone();
    within(deadline, move || Link::connect(&opts, patience))
        .unwrap_or_else(|| Err(WireError::Unreachable(io::ErrorKind::TimedOut.into())))
}

impl SqlSession for Reconnecting<Link> {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.run(sql, |link| link.write(sql))
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.run(sql, |link| link.write(sql).map(drop))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        self.prepare_statement(sql, None)
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.run_prepared(statement, |link, execute| {
            link.count_prepared(execute, arguments)
        })
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.run_prepared(statement, |link, execute| {
            link.write_prepared(execute, arguments)
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.run(sql, |link| link.count(sql))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // The types go with the values.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.run(sql, |link| link.perform(sql))
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        self.run_prepared(statement, |link, execute| {
            link.perform_prepared(execute, arguments)
        })
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        self.run(sql, |link| link.integer(sql))
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        self.run(sql, |link| {
            link.each_row(sql, |columns| {
                let texts: Vec<Cow<'_, str>> = columns
                    .iter()
                    .map(|column| column.map_or(Cow::Borrowed("\\N"), String::from_utf8_lossy))
                    .collect();
                row(&texts.iter().map(AsRef::as_ref).collect::<Vec<_>>());
            })
        })
    }
}
