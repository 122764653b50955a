//! One worker's session over the thin client.

use std::borrow::Cow;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Opts;

use super::error::WireError;
use super::execute::Execute;
use super::link::Link;
use crate::deadline::within;
use crate::mysql::failure;
use crate::mysql::session::RECONNECT_PAUSE;
use crate::{Argument, Counts, Parameter, Prepared, RECONNECT_LIMIT, SqlError, SqlSession};

const TOO_MANY_CONNECTIONS: u16 = 1040;

/// A connection and its prepared statements. A lost connection is told as such for the operation
/// that met it, whether or not that may have taken place; the next call connects again.
pub(in crate::mysql) struct WireSession {
    opts: Opts,
    link: Option<Link>,
    statements: Vec<Known>,
}

/// A statement's text, and its request on the present connection.
struct Known {
    sql: Box<str>,
    execute: Option<Execute>,
}

impl WireSession {
    /// Connects within `limit`.
    pub fn connect(opts: Opts, limit: Duration) -> Result<Self, WireError> {
        let link = connect_by(Instant::now() + limit, &opts)?;
        Ok(Self {
            opts,
            link: Some(link),
            statements: Vec::new(),
        })
    }

    /// Runs on the connection, which is made anew when it was lost. What this call loses is
    /// forgotten here.
    fn on_link<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut Link) -> Result<T, WireError>,
    ) -> Result<T, SqlError> {
        let link = live(&mut self.link, &self.opts)
            .map_err(|error| failure::wire_error(&error, sql).before_sending())?;
        run(link).map_err(|error| self.heed(failure::wire_error(&error, sql)))
    }

    fn on_prepared<T>(
        &mut self,
        prepared: Prepared,
        run: impl FnOnce(&mut Link, &mut Execute) -> Result<T, WireError>,
    ) -> Result<T, SqlError> {
        let Some(known) = self.statements.get_mut(prepared.0) else {
            return Err(failure::not_prepared(prepared));
        };
        let mut is_sent = false;
        let outcome = live(&mut self.link, &self.opts).and_then(|link| {
            let execute = match &mut known.execute {
                Some(execute) => execute,
                None => known.execute.insert(link.prepare(&known.sql)?),
            };
            is_sent = true;
            run(link, execute)
        });
        let error = match outcome {
            Ok(answer) => return Ok(answer),
            Err(error) if is_sent => failure::wire_error(&error, &known.sql),
            Err(error) => failure::wire_error(&error, &known.sql).before_sending(),
        };
        Err(self.heed(error))
    }

    /// Forgets a connection that is lost with this error.
    #[cold]
    fn heed(&mut self, error: SqlError) -> SqlError {
        if error.class.is_disconnected() {
            self.link = None;
            for known in &mut self.statements {
                known.execute = None;
            }
        }
        error
    }
}

/// The connection, or a new one.
fn live<'a>(link: &'a mut Option<Link>, opts: &Opts) -> Result<&'a mut Link, WireError> {
    match link {
        Some(link) => Ok(link),
        None => Ok(link.insert(reconnect(opts)?)),
    }
}

#[cold]
fn reconnect(opts: &Opts) -> Result<Link, WireError> {
    let deadline = Instant::now() + RECONNECT_LIMIT;
    loop {
        match connect_by(deadline, opts) {
            // The server may not have noticed yet that the old connection is gone, and have no room
            // for another.
            Err(WireError::Server {
                code: TOO_MANY_CONNECTIONS,
                ..
            }) if Instant::now() < deadline => thread::sleep(RECONNECT_PAUSE),
            answer => return answer,
        }
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

impl SqlSession for WireSession {
    fn write(&mut self, sql: &str, _expected_rows: u64) -> Result<u64, SqlError> {
        self.on_link(sql, |link| link.write(sql))
    }

    fn define(&mut self, sql: &str) -> Result<(), SqlError> {
        self.on_link(sql, |link| link.write(sql).map(drop))
    }

    fn prepare(&mut self, sql: &str) -> Result<Prepared, SqlError> {
        let execute = self.on_link(sql, |link| link.prepare(sql))?;
        self.statements.push(Known {
            sql: sql.into(),
            execute: Some(execute),
        });
        Ok(Prepared(self.statements.len() - 1))
    }

    fn query_prepared(&mut self, statement: Prepared, arguments: &[i64]) -> Result<u64, SqlError> {
        self.on_prepared(statement, |link, execute| {
            link.count_prepared(execute, arguments)
        })
    }

    fn write_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[i64],
        _expected_rows: u64,
    ) -> Result<u64, SqlError> {
        self.on_prepared(statement, |link, execute| {
            link.write_prepared(execute, arguments)
        })
    }

    fn query(&mut self, sql: &str) -> Result<u64, SqlError> {
        self.on_link(sql, |link| link.count(sql))
    }

    fn prepare_as(&mut self, sql: &str, _parameters: &[Parameter]) -> Result<Prepared, SqlError> {
        // The types go with the values.
        self.prepare(sql)
    }

    fn perform(&mut self, sql: &str) -> Result<Counts, SqlError> {
        self.on_link(sql, |link| link.perform(sql))
    }

    fn perform_prepared(
        &mut self,
        statement: Prepared,
        arguments: &[Argument<'_>],
    ) -> Result<Counts, SqlError> {
        self.on_prepared(statement, |link, execute| {
            link.perform_prepared(execute, arguments)
        })
    }

    fn query_integer(&mut self, sql: &str) -> Result<Option<i64>, SqlError> {
        self.on_link(sql, |link| link.integer(sql))
    }

    fn for_each_row(&mut self, sql: &str, row: &mut dyn FnMut(&[&str])) -> Result<(), SqlError> {
        self.on_link(sql, |link| {
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

impl Drop for WireSession {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.quit();
        }
    }
}
