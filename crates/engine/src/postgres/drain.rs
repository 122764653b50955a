//! Working off debt: every table vacuumed and analysed at the same time, then a checkpoint.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use postgres::CancelToken;

use super::failure;
use super::link::Link;
use crate::external::left_out;
use crate::{DrainAction, EngineError};

/// Between two looks at the clock and at whether somebody wants to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// A cancelled statement has this long to end.
const CANCEL_LIMIT: Duration = Duration::from_secs(30);

/// What is kept of the server's words about one statement.
const RESULT_CHARS: usize = 4000;

/// SQLSTATE `query_canceled`.
const CANCELLED: &str = "57014";

/// When to give up.
pub(super) struct Patience<'a> {
    pub limit: Instant,
    pub is_stopped: &'a dyn Fn() -> bool,
}

impl Patience<'_> {
    /// Why to give up, once that is so.
    fn is_over(&self) -> Option<&'static str> {
        if (self.is_stopped)() {
            Some("stopped")
        } else if Instant::now() >= self.limit {
            Some("the limit was over")
        } else {
            None
        }
    }
}

/// Vacuums the tables concurrently and waits for all of them, then writes a checkpoint. What is not
/// done when patience ends is cancelled and says so.
pub(super) fn drain(
    link: &Link,
    version_num: u32,
    tables: &[String],
    patience: &Patience<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let vacuums: Vec<String> = tables
        .iter()
        .map(|table| vacuum(table, version_num))
        .collect();
    let mut actions = run_all(link, &vacuums, patience)?;
    actions.extend(run_all(link, &["checkpoint".to_owned()], patience)?);
    Ok(actions)
}

/// The drain of a server that is not ours: our tables are vacuumed, and a checkpoint is
/// everybody's.
pub(super) fn watch(
    link: &Link,
    version_num: u32,
    tables: &[String],
    patience: &Patience<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let vacuums: Vec<String> = tables
        .iter()
        .map(|table| vacuum(table, version_num))
        .collect();
    let mut actions = run_all(link, &vacuums, patience)?;
    actions.push(left_out("checkpoint"));
    Ok(actions)
}

/// The statement for one table. From 12 on the server skips the indexes of a table with few dead
/// rows unless told otherwise.
fn vacuum(table: &str, version_num: u32) -> String {
    let index_cleanup = if version_num >= 120_000 {
        ", index_cleanup ON"
    } else {
        ""
    };
    format!(
        "vacuum (verbose, analyze{index_cleanup}) \"{}\"",
        table.replace('"', "\"\"")
    )
}

/// Runs each statement on a connection of its own, all at once.
fn run_all(
    link: &Link,
    statements: &[String],
    patience: &Patience<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let (sender, receiver) = mpsc::channel();
    let mut running: Vec<CancelToken> = Vec::new();
    let mut actions: Vec<Option<DrainAction>> = Vec::new();
    actions.resize_with(statements.len(), || None);
    for (index, sql) in statements.iter().enumerate() {
        if let Some(reason) = patience.is_over() {
            actions[index] = Some(DrainAction {
                action: sql.clone(),
                seconds: 0.0,
                result: format!("left out: {reason}; debt is left"),
            });
            continue;
        }
        let notices = Arc::new(Mutex::new(String::new()));
        let mut client = link.connect_with_notices(&notices)?;
        running.push(client.cancel_token());
        let (sql, sender) = (sql.clone(), sender.clone());
        thread::spawn(move || {
            let start = Instant::now();
            let answer = client.batch_execute(&sql);
            let words = notices
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            // Fails when nobody waits any more.
            let _ = sender.send((index, start.elapsed(), answer, words));
        });
    }
    let mut given_up: Option<(&str, Instant)> = None;
    for _ in 0..running.len() {
        let (index, elapsed, answer, words) = loop {
            match receiver.recv_timeout(PAUSE) {
                Ok(answer) => break answer,
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    unreachable!("this function holds a sender")
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            match given_up {
                None => {
                    if let Some(reason) = patience.is_over() {
                        given_up = Some((reason, Instant::now()));
                        running
                            .iter()
                            .for_each(|token| link.cancel(token, CANCEL_LIMIT));
                    }
                }
                Some((reason, since)) if since.elapsed() >= CANCEL_LIMIT => {
                    return Err(EngineError::new(format!(
                        "drain: {reason}, and the server did not cancel the statements within \
                        {CANCEL_LIMIT:?}; see its log for what it does"
                    )));
                }
                Some(_) => {}
            }
        };
        let result = match (answer, given_up) {
            (Ok(()), _) => words.trim_end().chars().take(RESULT_CHARS).collect(),
            (Err(error), Some((reason, _))) if failure::sqlstate(&error) == CANCELLED => {
                format!("cancelled: {reason}; debt is left")
            }
            (Err(error), _) => return Err(failure::engine_error(&statements[index], &error)),
        };
        actions[index] = Some(DrainAction {
            action: statements[index].clone(),
            seconds: elapsed.as_secs_f64(),
            result,
        });
    }
    Ok(actions.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_follows_the_version() {
        assert_eq!(vacuum("pi1", 90_624), "vacuum (verbose, analyze) \"pi1\"");
        assert_eq!(vacuum("pi1", 119_999), "vacuum (verbose, analyze) \"pi1\"");
        assert_eq!(
            vacuum("pi1", 120_000),
            "vacuum (verbose, analyze, index_cleanup ON) \"pi1\""
        );
        assert_eq!(
            vacuum("a\"b", 90_624),
            "vacuum (verbose, analyze) \"a\"\"b\""
        );
    }

    #[test]
    fn patience_ends_with_the_limit_or_a_stop() {
        let later = Instant::now() + Duration::from_secs(60);
        let over = |limit, stopped| {
            Patience {
                limit,
                is_stopped: &|| stopped,
            }
            .is_over()
        };
        assert_eq!(over(later, false), None);
        assert_eq!(over(later, true), Some("stopped"));
        assert_eq!(over(Instant::now(), false), Some("the limit was over"));
    }
}
