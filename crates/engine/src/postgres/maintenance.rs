//! Autovacuum, which looks for work by the clock.

use std::thread;
use std::time::{Duration, Instant};

use super::link::{Link, rows};
use super::server::ASK_LIMIT;
use crate::EngineError;

const NAME: &str = "autovacuum";

/// Workers that are cancelled have this long to end.
const WORKERS_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Turns autovacuum off and waits until none of its workers is left. Returns its name. What a vacuum
/// that is cancelled has done is kept.
pub(super) fn hold(link: &Link) -> Result<&'static str, EngineError> {
    let is_held = link.ask("turn autovacuum off", ASK_LIMIT, |client| {
        client.batch_execute("alter system set autovacuum = off")?;
        client.batch_execute("select pg_reload_conf()")?;
        let limit = Instant::now() + WORKERS_LIMIT;
        while Instant::now() < limit {
            // The launcher may have begun one before it read the new setting.
            let cancelled = rows(
                client,
                "select pg_cancel_backend(pid) from pg_stat_activity where query like \
                'autovacuum: %'",
            )?;
            let shown = rows(client, "show autovacuum")?;
            let is_off = shown.first().and_then(|row| row.get(0)) == Some("off");
            if is_off && cancelled.is_empty() {
                return Ok(true);
            }
            thread::sleep(PAUSE);
        }
        Ok(false)
    })?;
    if !is_held {
        return Err(EngineError::new(format!(
            "turn autovacuum off: its workers still run after {} s; see the server's log",
            WORKERS_LIMIT.as_secs()
        )));
    }
    Ok(NAME)
}
