//! Working off debt between the writing and the reading steps, as the Insert Benchmark does it.

mod changed;
mod innodb;
mod rocksdb;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts, Row};

use super::admin::{self, ANSWER_LIMIT};
use super::failure;
use super::options::ServerConfig;
use super::text;
use crate::{DrainAction, DrainLimits, EngineError, ErrorClass};

/// Between two looks at the clock, the server and the user.
const PAUSE: Duration = Duration::from_millis(20);

/// The waits of a drain.
pub(super) struct DrainWait<'a> {
    pub limits: &'a DrainLimits<'a>,
    /// Whether the server's process has ended.
    pub is_gone: &'a dyn Fn() -> bool,
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// The time was over.
    ToTheEnd,
    /// What was waited for is there.
    Done,
    /// The user, the limit or the server's end cut it short.
    CutShort,
}

impl DrainWait<'_> {
    fn is_over(&self) -> bool {
        self.limits.end().is_some() || (self.is_gone)()
    }

    /// Waits until `until` or until `is_done` says so, which is asked each `interval`.
    fn until_done(
        &self,
        until: Instant,
        interval: Duration,
        mut is_done: impl FnMut() -> Result<bool, EngineError>,
    ) -> Result<Waited, EngineError> {
        let mut asked: Option<Instant> = None;
        loop {
            if self.is_over() {
                return Ok(Waited::CutShort);
            }
            if asked.is_none_or(|asked| asked.elapsed() >= interval) {
                if is_done()? {
                    return Ok(Waited::Done);
                }
                asked = Some(Instant::now());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Waited::ToTheEnd);
            }
            std::thread::sleep(PAUSE.min(left));
        }
    }

    fn sleep(&self, until: Instant) -> Waited {
        while !self.is_over() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::ToTheEnd;
            }
            std::thread::sleep(PAUSE.min(left));
        }
        Waited::CutShort
    }
}

/// The drain of a server that Plimsoll started.
pub(super) fn drain(
    opts: &Opts,
    tables: &[String],
    config: &ServerConfig,
    log_dir: &Path,
    wait: &DrainWait<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    analyze_beside(opts, tables, wait, || {
        match config.storage_engine.to_ascii_lowercase().as_str() {
            "innodb" => innodb::drain(opts, log_dir, wait),
            "rocksdb" => rocksdb::drain(opts, log_dir, wait),
            _ => Ok(Vec::new()),
        }
    })
}

/// The drain of an external server: our tables are analysed, and its own work is watched but not
/// hurried.
pub(super) fn watch(
    opts: &Opts,
    tables: &[String],
    config: &ServerConfig,
    wait: &DrainWait<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let hasty = admin::with_limit(opts, ANSWER_LIMIT);
    analyze_beside(opts, tables, wait, || {
        match config.storage_engine.to_ascii_lowercase().as_str() {
            "innodb" => innodb::watch(&hasty, wait),
            "rocksdb" => rocksdb::watch(&hasty, wait),
            _ => Ok(Vec::new()),
        }
    })
}

/// ANALYZE of all tables at once, the storage engine's part meanwhile, then what ANALYZE answered.
/// The order of the actions is that of their ends.
fn analyze_beside(
    opts: &Opts,
    tables: &[String],
    wait: &DrainWait<'_>,
    engines_part: impl FnOnce() -> Result<Vec<DrainAction>, EngineError>,
) -> Result<Vec<DrainAction>, EngineError> {
    let patient = admin::with_limit(
        opts,
        wait.limits.limit.saturating_duration_since(Instant::now()) + ANSWER_LIMIT,
    );
    let connections = tables
        .iter()
        .map(|_| connect(&patient))
        .collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| {
        let analyses: Vec<Analysis<'_>> = tables
            .iter()
            .zip(connections)
            .map(|(table, mut connection)| {
                let sql = format!("analyze table `{}`", table.replace('`', "``"));
                let (connection_id, is_cut) =
                    (connection.connection_id(), Arc::new(AtomicBool::new(false)));
                let seen = Arc::clone(&is_cut);
                Analysis {
                    connection_id,
                    is_cut,
                    thread: scope.spawn(move || analyze(&mut connection, sql, &seen)),
                }
            })
            .collect();
        let own = engines_part();
        // The threads end before any error of the other part does, so that none outlives the drain.
        let analyzed: Result<Vec<DrainAction>, EngineError> = analyses
            .into_iter()
            .map(|analysis| analysis.finish(opts, wait))
            .collect();
        let mut actions = own?;
        actions.extend(analyzed?);
        Ok(actions)
    })
}

/// An ANALYZE that runs.
struct Analysis<'scope> {
    connection_id: u32,
    /// Whether it is we who end its connection.
    is_cut: Arc<AtomicBool>,
    thread: ScopedJoinHandle<'scope, Result<DrainAction, EngineError>>,
}

impl Analysis<'_> {
    /// Waits for its end; when the time is over, ends it. Not all versions can give a statement a
    /// limit of its own.
    fn finish(self, opts: &Opts, wait: &DrainWait<'_>) -> Result<DrainAction, EngineError> {
        while !self.thread.is_finished() {
            if wait.is_over() && !self.is_cut.swap(true, Ordering::Relaxed) {
                kill_connection(opts, self.connection_id);
            }
            std::thread::sleep(PAUSE);
        }
        self.thread.join().unwrap_or_else(|_| {
            Err(EngineError::new(
                "analyze: its thread panicked; this is a bug",
            ))
        })
    }
}

/// Ends a connection, and with it the statement that runs on it. One that has ended by itself, or a
/// server that is gone, is as good.
fn kill_connection(opts: &Opts, connection_id: u32) {
    if let Ok(mut connection) = connect(&admin::with_limit(opts, ANSWER_LIMIT)) {
        let _ = connection.query_drop(format!("kill {connection_id}"));
    }
}

/// A connection with the limits of `opts`.
pub(super) fn connect(opts: &Opts) -> Result<Conn, EngineError> {
    Conn::new(opts.clone()).map_err(|error| failure::engine_error("connect", &error))
}

/// A statement that answers with rows about its success, which become the result: `status: OK`.
/// `is_cut` says whether we have ended the connection; nobody else may.
fn analyze(
    connection: &mut Conn,
    sql: String,
    is_cut: &AtomicBool,
) -> Result<DrainAction, EngineError> {
    let started = Instant::now();
    let result = match connection.query::<Row, _>(&sql) {
        Ok(rows) => rows
            .into_iter()
            .map(|row| message(&row.unwrap()))
            .collect::<Vec<_>>()
            .join("; "),
        Err(error)
            if is_cut.load(Ordering::Relaxed) && is_end(failure::sql_error(&error, &sql).class) =>
        {
            "cut short: the time was over".to_owned()
        }
        Err(error) => return Err(failure::engine_error(&sql, &error)),
    };
    Ok(DrainAction {
        action: sql,
        seconds: started.elapsed().as_secs_f64(),
        result,
    })
}

/// Whether a statement whose connection is ended ends so: the server may still say that it was
/// interrupted.
fn is_end(class: ErrorClass) -> bool {
    class.is_disconnected() || class == ErrorClass::Cancelled
}

/// `Msg_type: Msg_text`, the last two of the four columns.
fn message(values: &[mysql::Value]) -> String {
    let last_two = &values[values.len().saturating_sub(2)..];
    let render = |value| {
        let mut all = String::new();
        text::render(value, &mut all);
        all
    };
    last_two.iter().map(render).collect::<Vec<_>>().join(": ")
}

/// Runs a statement and says how long it took.
pub(super) fn run(connection: &mut Conn, sql: &str) -> Result<DrainAction, EngineError> {
    let started = Instant::now();
    connection
        .query_drop(sql)
        .map_err(|error| failure::engine_error(sql, &error))?;
    Ok(DrainAction {
        action: sql.to_owned(),
        seconds: started.elapsed().as_secs_f64(),
        result: String::new(),
    })
}

/// A wait as an action.
fn waited(action: String, started: Instant, waited: Waited, found: &str) -> DrainAction {
    let end = match waited {
        Waited::Done => "done",
        Waited::ToTheEnd => "the time was over",
        Waited::CutShort => "cut short",
    };
    let result = if found.is_empty() {
        end.to_owned()
    } else {
        format!("{end}; {found}")
    };
    DrainAction {
        action,
        seconds: started.elapsed().as_secs_f64(),
        result,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_statement_whose_connection_we_end_may_be_told_to_be_interrupted() {
        for (code, expected) in [
            (1317, true),
            (1927, true),
            (2013, true),
            (1053, true),
            (1146, false),
            (1205, false),
        ] {
            assert_eq!(is_end(failure::class_of(code, "")), expected, "{code}");
        }
    }

    #[test]
    fn a_wait_ends_with_its_time_its_goal_and_all_that_is_over() {
        let now = Instant::now();
        let far = now + Duration::from_secs(3600);
        let (no, yes): (&dyn Fn() -> bool, &dyn Fn() -> bool) = (&|| false, &|| true);
        let table = [
            (far, no, no, now, Waited::ToTheEnd),
            (now, no, no, far, Waited::CutShort),
            (far, yes, no, far, Waited::CutShort),
            (far, no, yes, far, Waited::CutShort),
        ];
        for (limit, is_stopped, is_gone, until, expected) in table {
            let limits = &DrainLimits::new(far, limit, is_stopped);
            let wait = DrainWait { limits, is_gone };
            assert_eq!(wait.sleep(until), expected);
            assert_eq!(
                wait.until_done(until, Duration::ZERO, || Ok(false))
                    .unwrap(),
                expected
            );
        }
        let limits = &DrainLimits::new(far, far, no);
        let wait = DrainWait {
            limits,
            is_gone: no,
        };
        let asked = Cell::new(0);
        let third = || {
            asked.set(asked.get() + 1);
            Ok(asked.get() == 3)
        };
        assert_eq!(
            wait.until_done(far, Duration::ZERO, third).unwrap(),
            Waited::Done
        );
        assert!(
            wait.until_done(far, Duration::ZERO, || Err(EngineError::new("no")))
                .is_err()
        );
    }
}
