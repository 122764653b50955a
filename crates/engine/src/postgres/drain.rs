//! Working off debt: the log flushed, every table vacuumed and analysed at the same time, then a
//! checkpoint.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use postgres::CancelToken;

use super::failure;
use super::link::{Link, rows};
use super::server::ASK_LIMIT;
use crate::external::left_out;
use crate::{DrainAction, DrainEnd, DrainLimits, EngineError};

/// Between two looks at the clock and at whether somebody wants to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// A cancelled statement has this long to end.
const CANCEL_LIMIT: Duration = Duration::from_secs(30);

/// What is kept of the server's words about one statement.
const RESULT_CHARS: usize = 4000;

/// Commits in a way that waits for the log, and so for all that was committed before it. Without
/// `synchronous_commit` a vacuum soon after a load cannot yet mark rows as committed, nor pages as
/// visible to all: scans of an index alone then look into the table for ever.
const FLUSH: &str =
    "set synchronous_commit = local; select pg_logical_emit_message(true, 'plimsoll', '')";

/// The version that [`FLUSH`] needs.
const FLUSH_FROM: u32 = 90_600;

/// SQLSTATE `query_canceled`.
const CANCELLED: &str = "57014";

/// The word for why statements were given up.
fn reason(end: DrainEnd) -> &'static str {
    match end {
        DrainEnd::Stopped => "stopped",
        DrainEnd::LimitReached => "the limit was over",
    }
}

/// Vacuums the tables concurrently and waits for all of them, then writes a checkpoint. What is not
/// done when the drain must end is cancelled and says so.
pub(super) fn drain(
    link: &Link,
    version_num: u32,
    tables: &[String],
    limits: &DrainLimits<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut actions = vacuum_all(link, version_num, tables, limits)?;
    actions.extend(run_all(link, &["checkpoint".to_owned()], limits)?);
    Ok(actions)
}

/// The drain of a server that is not ours: our tables are vacuumed, and a checkpoint is
/// everybody's.
pub(super) fn watch(
    link: &Link,
    version_num: u32,
    tables: &[String],
    limits: &DrainLimits<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut actions = vacuum_all(link, version_num, tables, limits)?;
    actions.push(left_out("checkpoint"));
    Ok(actions)
}

/// All tables at the same time, when what was committed is in the log.
fn vacuum_all(
    link: &Link,
    version_num: u32,
    tables: &[String],
    limits: &DrainLimits<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let flush = (version_num >= FLUSH_FROM).then(|| FLUSH.to_owned());
    let mut actions = run_all(link, flush.as_slice(), limits)?;
    let vacuums = tables.iter().map(|table| vacuum(table, version_num));
    let mut vacuums = run_all(link, &vacuums.collect::<Vec<_>>(), limits)?;
    if limits.end().is_none() {
        for (vacuum, table) in vacuums.iter_mut().zip(tables) {
            vacuum.result.push_str(&unmarked(link, table)?);
        }
    }
    actions.extend(vacuums);
    Ok(actions)
}

/// What a vacuum left unmarked, which whoever reads an index alone pays for: rows that were younger
/// than a transaction of somebody else.
fn unmarked(link: &Link, table: &str) -> Result<String, EngineError> {
    let name = quoted(table).replace('\'', "''");
    let sql =
        format!("select relallvisible, relpages from pg_class where oid = '{name}'::regclass");
    let pages = link.ask(
        "count the pages that are visible to all",
        ASK_LIMIT,
        move |client| {
            let rows = rows(client, &sql)?;
            let number = |at: usize| rows.first()?.get(at)?.parse::<u64>().ok();
            Ok(number(0).zip(number(1)))
        },
    )?;
    Ok(match pages {
        Some((marked, all)) if marked < all => format!(
            "\n{marked} of {all} pages are visible to all: another transaction was open, or work \
            went on"
        ),
        _ => String::new(),
    })
}

fn quoted(table: &str) -> String {
    format!("\"{}\"", table.replace('"', "\"\""))
}

/// The statement for one table. From 12 on the server skips the indexes of a table with few dead
/// rows unless told otherwise.
fn vacuum(table: &str, version_num: u32) -> String {
    let index_cleanup = if version_num >= 120_000 {
        ", index_cleanup ON"
    } else {
        ""
    };
    format!("vacuum (verbose, analyze{index_cleanup}) {}", quoted(table))
}

/// Runs each statement on a connection of its own, all at once.
fn run_all(
    link: &Link,
    statements: &[String],
    limits: &DrainLimits<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut running = Running::new(link, limits);
    let mut actions: Vec<Option<DrainAction>> = statements.iter().map(|_| None).collect();
    for (index, sql) in statements.iter().enumerate() {
        match limits.end() {
            None => running.start(index, sql)?,
            Some(end) => {
                actions[index] = Some(DrainAction {
                    action: sql.clone(),
                    seconds: 0.0,
                    result: format!("left out: {}; debt is left", reason(end)),
                });
            }
        }
    }
    while let Some(ended) = running.next_ended()? {
        let sql = &statements[ended.index];
        let (index, seconds) = (ended.index, ended.elapsed.as_secs_f64());
        actions[index] = Some(DrainAction {
            action: sql.clone(),
            seconds,
            result: running.result(ended, sql)?,
        });
    }
    Ok(actions.into_iter().flatten().collect())
}

/// Statements that run, each in a thread of its own.
struct Running<'a> {
    link: &'a Link,
    limits: &'a DrainLimits<'a>,
    sender: Sender<Ended>,
    receiver: Receiver<Ended>,
    tokens: Vec<CancelToken>,
    /// Statements whose end has not been taken yet.
    left: usize,
    /// Why and since when all of them are to end.
    given_up: Option<(&'static str, Instant)>,
}

/// A statement that has ended.
struct Ended {
    index: usize,
    elapsed: Duration,
    answer: Result<(), postgres::Error>,
    /// The server's messages about it.
    notices: String,
}

impl<'a> Running<'a> {
    fn new(link: &'a Link, limits: &'a DrainLimits<'a>) -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            link,
            limits,
            sender,
            receiver,
            tokens: Vec::new(),
            left: 0,
            given_up: None,
        }
    }

    fn start(&mut self, index: usize, sql: &str) -> Result<(), EngineError> {
        let notices = Arc::new(Mutex::new(String::new()));
        let mut client = self.link.connect_with_notices(&notices)?;
        self.tokens.push(client.cancel_token());
        let (sql, sender) = (sql.to_owned(), self.sender.clone());
        thread::spawn(move || {
            let start = Instant::now();
            let answer = client.batch_execute(&sql);
            let notices = notices
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone();
            // Fails when nobody waits any more.
            let _ = sender.send(Ended {
                index,
                elapsed: start.elapsed(),
                answer,
                notices,
            });
        });
        self.left += 1;
        Ok(())
    }

    /// Waits for the next end of a statement; `None` after the last. Cancels them all once the
    /// drain must end.
    fn next_ended(&mut self) -> Result<Option<Ended>, EngineError> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            match self.receiver.recv_timeout(PAUSE) {
                Ok(ended) => {
                    self.left -= 1;
                    return Ok(Some(ended));
                }
                Err(RecvTimeoutError::Disconnected) => unreachable!("`self` holds a sender"),
                Err(RecvTimeoutError::Timeout) => {}
            }
            match (self.given_up, self.limits.end()) {
                (None, Some(end)) => {
                    self.given_up = Some((reason(end), Instant::now()));
                    for token in &self.tokens {
                        self.link.cancel(token, CANCEL_LIMIT);
                    }
                }
                (Some((reason, since)), _) if since.elapsed() >= CANCEL_LIMIT => {
                    return Err(EngineError::new(format!(
                        "drain: {reason}, and the server did not cancel the statements within \
                         {CANCEL_LIMIT:?}; see its log for what it does"
                    )));
                }
                _ => {}
            }
        }
    }

    /// What the action's result says of a statement that has ended.
    fn result(&self, ended: Ended, sql: &str) -> Result<String, EngineError> {
        match (ended.answer, self.given_up) {
            (Ok(()), _) => Ok(ended
                .notices
                .trim_end()
                .chars()
                .take(RESULT_CHARS)
                .collect()),
            (Err(error), Some((reason, _))) if failure::sqlstate(&error) == CANCELLED => {
                Ok(format!("cancelled: {reason}; debt is left"))
            }
            (Err(error), _) => Err(failure::engine_error(sql, &error)),
        }
    }
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
}
