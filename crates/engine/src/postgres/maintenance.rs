//! Autovacuum, which looks for work by the clock.

use std::thread;
use std::time::{Duration, Instant};

use super::link::{Link, rows};
use super::server::ASK_LIMIT;
use crate::EngineError;

const NAME: &str = "autovacuum";

/// Behind the config's parameters in their file, of which the last counts. Each start writes the
/// file again, without it.
pub(super) const OFF: &str = "\nautovacuum = off\n";

/// The first version whose sessions say what they are for, as `server_version_num` has it.
const BACKEND_TYPES: u32 = 100_000;

/// Workers that are cancelled have this long to end.
const WORKERS_LIMIT: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Has the server read its files again, in which autovacuum is [`OFF`], and waits until none of its
/// workers is left. Returns its name. What a vacuum that is cancelled has done is kept.
pub(super) fn hold(link: &Link, version_num: u32) -> Result<&'static str, EngineError> {
    let is_worker = match version_num {
        BACKEND_TYPES.. => "backend_type = 'autovacuum worker'",
        _ => "query like 'autovacuum: %'",
    };
    let cancel = format!("select pg_cancel_backend(pid) from pg_stat_activity where {is_worker}");
    let is_held = link.ask("turn autovacuum off", ASK_LIMIT, move |client| {
        client.batch_execute("select pg_reload_conf()")?;
        let limit = Instant::now() + WORKERS_LIMIT;
        while Instant::now() < limit {
            // The launcher may have begun one before it read the new setting.
            let cancelled = rows(client, &cancel)?;
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
            "turn autovacuum off: it still works after {} s; see the server's log",
            WORKERS_LIMIT.as_secs()
        )));
    }
    Ok(NAME)
}
