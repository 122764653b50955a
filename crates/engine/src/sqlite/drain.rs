//! Working off debt: fresh statistics, and the log taken back into the database file.

use std::time::{Duration, Instant};

use super::library::{Connection, Row};
use super::{failure, query};
use crate::{DrainAction, DrainEnd, DrainLimits, EngineError};

/// Between two tries of a checkpoint.
const PAUSE: Duration = Duration::from_millis(10);

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// ANALYZE for each table, then a checkpoint. An action that the deadline or a stop leaves no time
/// for is listed as left out; one that runs is not cut short.
pub(super) fn drain(
    connection: &Connection,
    tables: &[String],
    limits: &DrainLimits<'_>,
    wal_bytes: impl Fn() -> Result<u64, EngineError>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut actions = Vec::new();
    for table in tables {
        let sql = format!("ANALYZE \"{}\"", table.replace('"', "\"\""));
        actions.push(timed(&sql, limits, || {
            analyze(connection, &sql, limits.limit)
        })?);
    }
    let mode = query::texts(connection, "PRAGMA journal_mode")
        .map_err(|error| failure::engine_error("PRAGMA journal_mode", &error))?
        .concat();
    actions.push(if mode == "wal" {
        timed(CHECKPOINT, limits, || {
            checkpoint(connection, limits.limit, wal_bytes)
        })?
    } else {
        let result =
            format!("nothing to do: journal_mode is {mode}, which has no log to take back");
        DrainAction {
            action: CHECKPOINT.to_owned(),
            seconds: 0.0,
            result,
        }
    });
    Ok(actions)
}

fn timed(
    action: &str,
    limits: &DrainLimits<'_>,
    work: impl FnOnce() -> Result<String, EngineError>,
) -> Result<DrainAction, EngineError> {
    let start = Instant::now();
    let result = match limits.end() {
        None => work()?,
        Some(DrainEnd::Stopped) => "left out: the trial is to stop".to_owned(),
        Some(DrainEnd::LimitReached) => "left out: the deadline had passed".to_owned(),
    };
    Ok(DrainAction {
        action: action.to_owned(),
        seconds: start.elapsed().as_secs_f64(),
        result,
    })
}

fn analyze(connection: &Connection, sql: &str, deadline: Instant) -> Result<String, EngineError> {
    match failure::wait_while_busy(deadline, || query::run(connection, sql)) {
        Ok(()) => Ok(String::new()),
        Err(error) if failure::is_busy(&error) => {
            Ok("left out: another writer held the lock until the deadline".to_owned())
        }
        Err(error) => Err(failure::engine_error(sql, &error)),
    }
}

/// Tries until nobody is in the way. The answer has SQLite's three numbers of the last try (after a
/// complete one the log is empty, hence 0 frames) and the log's size before and after.
fn checkpoint(
    connection: &Connection,
    deadline: Instant,
    wal_bytes: impl Fn() -> Result<u64, EngineError>,
) -> Result<String, EngineError> {
    let bytes_before = wal_bytes()?;
    loop {
        let read = |row: &Row<'_>| {
            let number = |column| query::number_of(row.value(column));
            Ok((number(0)?, number(1)?, number(2)?))
        };
        let answer = match query::first(connection, CHECKPOINT, read) {
            Err(error) if failure::is_busy(&error) => None,
            answer => answer.map_err(|error| failure::engine_error(CHECKPOINT, &error))?,
        };
        let (busy, log, checkpointed) = answer.unwrap_or((1, -1, -1));
        let is_over = busy == 0 || Instant::now() >= deadline;
        if is_over {
            let numbers = format!(
                "busy {busy}, log {log}, checkpointed {checkpointed}; wal bytes {bytes_before} -> \
                {}",
                wal_bytes()?
            );
            return Ok(if busy == 0 {
                numbers
            } else {
                format!("{numbers}; stayed busy until the deadline, debt is left")
            });
        }
        std::thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
    }
}
