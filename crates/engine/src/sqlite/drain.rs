//! Working off debt: fresh statistics, and the log taken back into the database file.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::failure;
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
    let mode: String = connection
        .query_row("PRAGMA journal_mode", [], |row| row.get(0))
        .map_err(|error| failure::engine_error("PRAGMA journal_mode", &error))?;
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
    match failure::wait_while_busy(deadline, || connection.execute_batch(sql)) {
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
        let answer = connection.query_row(CHECKPOINT, [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        });
        let (busy, log, checkpointed): (i64, i64, i64) = match answer {
            Err(error) if failure::is_busy(&error) => (1, -1, -1),
            answer => answer.map_err(|error| failure::engine_error(CHECKPOINT, &error))?,
        };
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
