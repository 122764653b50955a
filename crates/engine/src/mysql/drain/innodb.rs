//! InnoDB: pages are written back while its settings allow next to no dirty ones.

use std::path::Path;
use std::time::{Duration, Instant};

use mysql::{Conn, Opts};

use super::changed::{Changed, change, set};
use super::{DrainWait, connect, waited};
use crate::external::left_out;
use crate::mysql::failure;
use crate::mysql::{files, state};
use crate::{DrainAction, EngineError};

const PCT: &str = "innodb_max_dirty_pages_pct";
const LWM: &str = "innodb_max_dirty_pages_pct_lwm";
const IDLE: &str = "innodb_idle_flush_pct";

/// In the order they are put back: the low mark must not be above the other at any time.
const SAVED: [&str; 3] = [PCT, LWM, IDLE];
/// In the order they are changed, for the same reason.
const WANTED: [(&str, &str); 3] = [(LWM, "1"), (PCT, "1"), (IDLE, "100")];

/// Between two looks at a counter.
const INTERVAL: Duration = Duration::from_secs(1);

/// Changes the settings, waits until the plan's wait is over, and restores them. A version without
/// one of the settings (5.5 has no low mark, before 8.0.18 there is no idle rate) goes without it.
pub(super) fn drain(
    opts: &Opts,
    log_dir: &Path,
    wait: &DrainWait<'_>,
) -> Result<Vec<DrainAction>, EngineError> {
    let mut connection = connect(opts)?;
    let mut actions = Vec::new();
    save_status(&mut connection, log_dir, "before")?;
    let dirty_before = dirty_pages(&mut connection)?;
    let changed = Changed::save(opts, log_dir, &SAVED)?;
    for (name, value) in WANTED {
        if changed.has(name) {
            actions.push(change(opts, name, value)?);
        }
    }
    let started = Instant::now();
    let end = wait.sleep(wait.limits.wait_until);
    if (wait.is_gone)() {
        return Err(EngineError::new("the server ended during the drain"));
    }
    let dirty_after = dirty_pages(&mut connection)?;
    actions.push(waited(
        "wait for writeback".to_owned(),
        started,
        end,
        &format!("dirty pages {dirty_before} -> {dirty_after}"),
    ));
    actions.extend(changed.restore()?);
    save_status(&mut connection, log_dir, "after")?;
    Ok(actions)
}

/// Waits until no page is dirty or the plan's wait is over, and changes nothing. Other people's
/// pages count too.
pub(super) fn watch(opts: &Opts, wait: &DrainWait<'_>) -> Result<Vec<DrainAction>, EngineError> {
    let mut connection = connect(opts)?;
    let wanted: Vec<String> = WANTED
        .iter()
        .map(|(name, value)| set(name, value))
        .collect();
    let mut actions = vec![left_out(&wanted.join("; "))];
    let before = dirty_pages(&mut connection)?;
    let mut now = before.clone();
    let started = Instant::now();
    let end = wait.until_done(wait.limits.wait_until, INTERVAL, || {
        now = dirty_pages(&mut connection)?;
        Ok(now == "0")
    })?;
    actions.push(waited(
        "wait for writeback".to_owned(),
        started,
        end,
        &format!("dirty pages {before} -> {now}"),
    ));
    Ok(actions)
}

fn dirty_pages(connection: &mut Conn) -> Result<String, EngineError> {
    let sql = "show global status like 'Innodb_buffer_pool_pages_dirty'";
    let mut pairs =
        state::pairs(connection, sql).map_err(|error| failure::engine_error(sql, &error))?;
    Ok(pairs
        .remove("innodb_buffer_pool_pages_dirty")
        .unwrap_or_else(|| "unknown".to_owned()))
}

fn save_status(connection: &mut Conn, log_dir: &Path, moment: &str) -> Result<(), EngineError> {
    let sql = "show engine innodb status";
    let text =
        state::status_text(connection, sql).map_err(|error| failure::engine_error(sql, &error))?;
    files::write(
        &log_dir.join(format!("drain-{moment}.innodb-status.txt")),
        &text,
    )
}
