//! RocksDB: the memtable is flushed and level 0 compacted. Which way depends on what the server
//! has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, Opts};

use super::{DrainWait, connect, run, waited};
use crate::external::left_out;
use crate::mysql::failure;
use crate::mysql::{files, state};
use crate::{DrainAction, EngineError};

const ACTIVE_COMPACTIONS: &str = "rocksdb_active_compaction_stats";
const COMPACT_LZERO: &str = "rocksdb_compact_lzero_now";
const FLUSH: &str = "rocksdb_force_flush_memtable_now";
const FLUSH_AND_LZERO: &str = "rocksdb_force_flush_memtable_and_lzero_now";

/// Between two questions whether compaction is over.
const INTERVAL: Duration = Duration::from_secs(1);
/// What the original gives a flushed memtable to get to level 0, and a server without the list of
/// compactions to end them.
const SETTLE: Duration = Duration::from_secs(20);
const BLIND_WAIT: Duration = Duration::from_secs(30);
/// A server whose statistics are waited for gets at least this long, when the plan's wait is
/// shorter.
const QUIET_WAIT: Duration = Duration::from_secs(60);

/// The ways to drain, by what a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// FB MySQL since 2023: wait for compactions, flush, compact level 0.
    CompactLzero {
        /// Whether running compactions can be seen.
        lists_compactions: bool,
    },
    /// FB MySQL before: wait for compactions, flush with level 0 in one.
    FlushAndLzero,
    /// MariaDB: flush, flush with level 0, wait for its statistics to be quiet. The combined flush
    /// is unsafe beside other load; our own server has none now.
    FlushThenQuiet,
    /// Nothing but the flush.
    FlushAlone,
}

impl Method {
    fn choose(has_variable: impl Fn(&str) -> bool, lists_compactions: bool) -> Self {
        match (
            has_variable(COMPACT_LZERO),
            lists_compactions,
            has_variable(FLUSH_AND_LZERO),
        ) {
            (true, lists_compactions, _) => Self::CompactLzero { lists_compactions },
            (false, true, true) => Self::FlushAndLzero,
            (false, false, true) => Self::FlushThenQuiet,
            (false, _, false) => Self::FlushAlone,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::CompactLzero {
                lists_compactions: true,
            } => "wait for compactions, flush, compact level 0",
            Self::CompactLzero {
                lists_compactions: false,
            } => "wait blindly (no list of compactions), flush, compact level 0",
            Self::FlushAndLzero => "wait for compactions, flush with level 0",
            Self::FlushThenQuiet => "flush, flush with level 0, wait for quiet statistics",
            Self::FlushAlone => "flush only: the server can do nothing about level 0",
        }
    }
}

/// Works off the debt in the server's way, whose name is the first action.
pub(super) fn drain(
    opts: &Opts,
    log_dir: &Path,
    wait: &DrainWait<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut connection = connect(opts)?;
    let variables = numbers(&mut connection, "show global variables like 'rocksdb%'")?;
    let method = Method::choose(
        |name| variables.contains_key(name),
        lists_compactions(&mut connection)?,
    );
    let mut actions = vec![DrainAction {
        action: format!("rocksdb: {}", method.name()),
        seconds: 0.0,
        result: String::new(),
    }];
    save_status(&mut connection, log_dir, "before")?;
    let set = |name: &str| format!("set global {name} = 1");
    match method {
        Method::CompactLzero { lists_compactions } => {
            if lists_compactions {
                actions.push(wait_for_compactions(&mut connection, wait)?);
            } else {
                actions.push(pause(BLIND_WAIT, wait));
            }
            actions.push(run(&mut connection, &set(FLUSH))?);
            actions.push(pause(SETTLE, wait));
            actions.push(run(&mut connection, &set(COMPACT_LZERO))?);
        }
        Method::FlushAndLzero => {
            actions.push(wait_for_compactions(&mut connection, wait)?);
            actions.push(run(&mut connection, &set(FLUSH_AND_LZERO))?);
        }
        Method::FlushThenQuiet => {
            actions.push(run(&mut connection, &set(FLUSH))?);
            actions.push(run(&mut connection, &set(FLUSH_AND_LZERO))?);
            actions.push(wait_for_quiet(&mut connection, wait)?);
        }
        Method::FlushAlone => actions.push(run(&mut connection, &set(FLUSH))?),
    }
    save_status(&mut connection, log_dir, "after")?;
    Ok(actions)
}

/// Waits until the server's compactions have ended by themselves, and asks for none.
pub(super) fn watch(opts: &Opts, wait: &DrainWait<'_>) -> Result<Vec<DrainAction>, EngineError> {
    let mut connection = connect(opts)?;
    let wait_for_engine = if lists_compactions(&mut connection)? {
        wait_for_compactions
    } else {
        wait_for_quiet
    };
    Ok(vec![
        left_out(&format!(
            "set global {FLUSH} = 1; set global {COMPACT_LZERO} = 1"
        )),
        wait_for_engine(&mut connection, wait)?,
    ])
}

fn lists_compactions(connection: &mut Conn) -> Result<bool, EngineError> {
    let sql = format!(
        "select count(*) from information_schema.tables where table_schema = 'information_schema' \
        and lower(table_name) = '{ACTIVE_COMPACTIONS}'"
    );
    Ok(number(connection, &sql)? > 0)
}

/// Until no compaction runs; like the original without a time of its own.
fn wait_for_compactions(
    connection: &mut Conn,
    wait: &DrainWait<'_>,
) -> Result<DrainAction, EngineError> {
    let started = Instant::now();
    let sql = format!("select count(*) from information_schema.{ACTIVE_COMPACTIONS}");
    let mut left = 0;
    let end = wait.until_done(wait.limits.limit, INTERVAL, || {
        left = number(connection, &sql)?;
        Ok(left == 0)
    })?;
    Ok(waited(
        "wait for compactions".to_owned(),
        started,
        end,
        &format!("{left} running"),
    ))
}

/// Until no column family has a flush or a compaction pending, in two answers one after the other;
/// bounded by the plan's wait, or [`QUIET_WAIT`] when that is longer.
fn wait_for_quiet(connection: &mut Conn, wait: &DrainWait<'_>) -> Result<DrainAction, EngineError> {
    let started = Instant::now();
    let sql = "select coalesce(sum(value), 0) from information_schema.rocksdb_cfstats where \
              stat_type in ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING', \
              'NUM_IMMUTABLE_MEM_TABLE')";
    let (mut pending, mut quiet) = (0, 0);
    let end = wait.until_done(
        wait.limits.wait_until.max(started + QUIET_WAIT),
        INTERVAL,
        || {
            pending = number(connection, sql)?;
            quiet = if pending == 0 { quiet + 1 } else { 0 };
            Ok(quiet == 2)
        },
    )?;
    Ok(waited(
        "wait for rocksdb_cfstats to be quiet".to_owned(),
        started,
        end,
        &format!("{pending} pending"),
    ))
}

fn pause(length: Duration, wait: &DrainWait<'_>) -> DrainAction {
    let started = Instant::now();
    let end = wait.sleep(started + length);
    waited(format!("sleep {} s", length.as_secs()), started, end, "")
}

fn number(connection: &mut Conn, sql: &str) -> Result<i64, EngineError> {
    let found: Option<i64> = connection
        .query_first(sql)
        .map_err(|error| failure::engine_error(sql, &error))?;
    Ok(found.unwrap_or(0))
}

fn numbers(connection: &mut Conn, sql: &str) -> Result<BTreeMap<String, String>, EngineError> {
    state::pairs(connection, sql).map_err(|error| failure::engine_error(sql, &error))
}

fn save_status(connection: &mut Conn, log_dir: &Path, moment: &str) -> Result<(), EngineError> {
    let sql = "show engine rocksdb status";
    let text =
        state::status_text(connection, sql).map_err(|error| failure::engine_error(sql, &error))?;
    files::write(
        &log_dir.join(format!("drain-{moment}.rocksdb-status.txt")),
        &text,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_follows_from_what_the_server_has() {
        let table: [(&[&str], bool, Method); 5] = [
            (
                &[FLUSH, COMPACT_LZERO, FLUSH_AND_LZERO],
                true,
                Method::CompactLzero {
                    lists_compactions: true,
                },
            ),
            (
                &[FLUSH, COMPACT_LZERO],
                false,
                Method::CompactLzero {
                    lists_compactions: false,
                },
            ),
            (&[FLUSH, FLUSH_AND_LZERO], true, Method::FlushAndLzero),
            (&[FLUSH, FLUSH_AND_LZERO], false, Method::FlushThenQuiet),
            (&[FLUSH], false, Method::FlushAlone),
        ];
        for (variables, lists_compactions, method) in table {
            assert_eq!(
                Method::choose(|name| variables.contains(&name), lists_compactions),
                method,
                "{variables:?}"
            );
        }
    }
}
