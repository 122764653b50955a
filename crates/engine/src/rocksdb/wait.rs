//! Waiting until a tree is at rest.

use std::thread;
use std::time::{Duration, Instant};

use super::library::{Database, Status};
use super::readback::{newest_option_file, parse_option_file};
use crate::{DrainLimits, EngineError};

/// How long one call of the library waits before a limit or a stop is looked at.
const SLICE: Duration = Duration::from_millis(100);

/// Between two looks at the properties.
const POLL: Duration = Duration::from_millis(50);

/// So many looks in a row must find nothing: between the end of a flush and the start of the
/// compaction that it makes due there is a gap.
const QUIET_LOOKS: u32 = 6;

/// What is going on or due while these are not 0.
const WORK: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];

const TRIGGER: &str = "level0_file_num_compaction_trigger";

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// Nothing is running or due.
    AtRest,
    /// Somebody wants to stop.
    Stopped,
    /// Time was over; what was still going on.
    Late(String),
}

impl Ended {
    /// The same as a result, where a wait that came too late is a failure.
    pub(super) fn in_time(self) -> Result<(), EngineError> {
        match self {
            Self::AtRest | Self::Stopped => Ok(()),
            Self::Late(work) => Err(EngineError::new(format!(
                "wait for compaction: time was over with {work}; give the wait a longer limit, or \
                the options more max_background_jobs"
            ))),
        }
    }
}

/// Waits with the library's own function where there is one, else by looking at properties.
pub(super) fn until_at_rest(
    database: &Database,
    limits: &DrainLimits<'_>,
) -> Result<Ended, EngineError> {
    let mut quiet_looks = 0;
    loop {
        if (limits.is_stopped)() {
            return Ok(Ended::Stopped);
        }
        let left = limits.limit.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Ended::Late(work(database)));
        }
        match database.wait_for_compaction(SLICE.min(left)) {
            Some(Ok(())) => return Ok(Ended::AtRest),
            Some(Err(status)) if status.is_timeout() => {}
            Some(Err(status)) => return Err(status.of_store("wait for compaction")),
            None => {
                quiet_looks = if is_at_rest(database) {
                    quiet_looks + 1
                } else {
                    0
                };
                if quiet_looks == QUIET_LOOKS {
                    return Ok(Ended::AtRest);
                }
                thread::sleep(POLL.min(left));
            }
        }
    }
}

fn is_at_rest(database: &Database) -> bool {
    WORK.iter()
        .all(|property| database.number(property) == Some(0))
}

fn work(database: &Database) -> String {
    let told = |property: &&str| {
        let name = property.trim_start_matches("rocksdb.");
        database
            .number(property)
            .filter(|number| *number > 0)
            .map(|number| format!("{name} {number}"))
    };
    let told: Vec<String> = WORK
        .iter()
        .chain(&["rocksdb.estimate-pending-compaction-bytes"])
        .filter_map(told)
        .collect();
    if told.is_empty() {
        "nothing that its properties tell".to_owned()
    } else {
        told.join(", ")
    }
}

/// Makes any file in level 0 reason enough for a compaction, waits for it, and puts the trigger
/// back. Every version can do this; files cannot be named for compaction before 11.
pub(super) fn until_level0_is_empty(
    database: &Database,
    dir: &std::path::Path,
    limits: &DrainLimits<'_>,
) -> Result<Ended, EngineError> {
    let file = newest_option_file(dir)?;
    let text = std::fs::read_to_string(&file)
        .map_err(|error| EngineError::new(format!("read {}: {error}", file.display())))?;
    let options = parse_option_file(&text);
    // Other styles' sorted runs have no other place to go to.
    if options
        .get("compaction_style")
        .is_none_or(|style| style != "kCompactionStyleLevel")
        || level0_files(database) == 0
    {
        return Ok(Ended::AtRest);
    }
    let trigger = options
        .get(TRIGGER)
        .cloned()
        .ok_or_else(|| EngineError::new(format!("{} does not have {TRIGGER}", file.display())))?;
    let failed = |status: Status| status.of_store(&format!("change {TRIGGER}"));
    database.set_option(TRIGGER, "1").map_err(failed)?;
    let ended = loop {
        match until_at_rest(database, limits) {
            Ok(Ended::AtRest) if level0_files(database) > 0 && Instant::now() < limits.limit => {
                thread::sleep(POLL)
            }
            Ok(Ended::AtRest) if level0_files(database) > 0 => {
                break Ok(Ended::Late(format!(
                    "{} files left in level 0",
                    level0_files(database)
                )));
            }
            ended => break ended,
        }
    };
    database.set_option(TRIGGER, &trigger).map_err(failed)?;
    ended
}

fn level0_files(database: &Database) -> usize {
    database
        .table_files()
        .iter()
        .filter(|(level, _)| *level == 0)
        .count()
}
