//! What a server's sessions waited for in a step.

use std::collections::BTreeMap;
use std::path::Path;

use super::table::{TableWriter, read_lines};
use crate::StoreError;

const COLUMNS: [&str; 6] = [
    "event",
    "sessions",
    "looks",
    "active_ns",
    "operations",
    "source",
];

/// The row of all events together. It is the first, and there without any other.
const ALL: &str = "(all)";
/// The row in place of all others if nothing could be seen; `source` says why.
const UNAVAILABLE: &str = "(unavailable)";

/// How often sessions were seen in each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitProfile {
    /// Where the server has the events from; or why there are none.
    pub source: Result<String, String>,
    /// Looks at the sessions, at random moments while the workers worked.
    pub looks: u64,
    /// How long the workers worked while it was looked.
    pub active_ns: u64,
    /// Operations of the step's own kind in that time.
    pub operations: u64,
    /// By event: sessions that were seen in it, over all looks.
    pub sessions: BTreeMap<String, u64>,
}

impl WaitProfile {
    /// One that could not be taken.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            source: Err(reason.into()),
            looks: 0,
            active_ns: 0,
            operations: 0,
            sessions: BTreeMap::new(),
        }
    }

    /// Seconds that sessions spent in an event per 1,000 operations: the mean number of sessions in
    /// it, times the active time, by operations. `None` without looks or operations.
    pub fn seconds_per_1000(&self, event: &str) -> Option<f64> {
        if self.looks == 0 || self.operations == 0 {
            return None;
        }
        let sessions = self.sessions.get(event).copied().unwrap_or(0) as f64 / self.looks as f64;
        Some(sessions * self.active_ns as f64 / 1e9 / self.operations as f64 * 1000.0)
    }
}

/// Writes the waits of a step, see [`super::waits_path`].
pub fn write_waits(path: impl AsRef<Path>, profile: &WaitProfile) -> Result<(), StoreError> {
    let mut table = TableWriter::create(path.as_ref(), &COLUMNS)?;
    let (source, is_there) = match &profile.source {
        Ok(source) => (source, true),
        Err(reason) => (reason, false),
    };
    let mut row = |event: &str, sessions: u64| {
        table.append([
            one_cell(event),
            sessions.to_string(),
            profile.looks.to_string(),
            profile.active_ns.to_string(),
            profile.operations.to_string(),
            one_cell(source),
        ])
    };
    if is_there {
        row(ALL, profile.sessions.values().sum())?;
        for (event, sessions) in &profile.sessions {
            row(event, *sessions)?;
        }
    } else {
        row(UNAVAILABLE, 0)?;
    }
    table.finish()
}

/// Text that takes one cell.
fn one_cell(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// Reads what [`write_waits`] wrote.
pub fn read_waits(path: impl AsRef<Path>) -> Result<WaitProfile, StoreError> {
    let path = path.as_ref();
    let mut profile: Option<WaitProfile> = None;
    read_lines(path, &COLUMNS, |place, line, cells| {
        let whole = |column| place.whole::<u64>(line, cells, &COLUMNS, column);
        let (event, sessions, source) = (cells[0], whole(1)?, cells[5].to_owned());
        match &mut profile {
            None => {
                let source = match event {
                    ALL => Ok(source),
                    UNAVAILABLE => Err(source),
                    _ => return Err(place.corrupt(line, &format!("the first row is not {ALL}"))),
                };
                profile = Some(WaitProfile {
                    source,
                    looks: whole(2)?,
                    active_ns: whole(3)?,
                    operations: whole(4)?,
                    sessions: BTreeMap::new(),
                });
            }
            Some(profile) => {
                profile.sessions.insert(event.to_owned(), sessions);
            }
        }
        Ok(())
    })?;
    profile.ok_or_else(|| StoreError::corrupt(path, 1, "there is no row"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn profile() -> WaitProfile {
        WaitProfile {
            source: Ok("pg_stat_activity".to_owned()),
            looks: 20,
            active_ns: 2_000_000_000,
            operations: 500,
            sessions: BTreeMap::from([("IO: WALSync".to_owned(), 30), ("running".to_owned(), 10)]),
        }
    }

    #[test]
    fn round_trip_and_seconds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let refused = WaitProfile::unavailable("no\tright");
        for (written, read) in [
            (profile(), profile()),
            (
                WaitProfile {
                    sessions: BTreeMap::new(),
                    ..profile()
                },
                WaitProfile {
                    sessions: BTreeMap::new(),
                    ..profile()
                },
            ),
            (refused, WaitProfile::unavailable("no right")),
        ] {
            write_waits(&path, &written).unwrap();
            assert_eq!(read_waits(&path).unwrap(), read);
        }
        // One and a half sessions for 2 s in 500 operations.
        let seconds = profile().seconds_per_1000("IO: WALSync").unwrap();
        assert!((seconds - 6.0).abs() < 1e-9, "{seconds}");
        assert_eq!(profile().seconds_per_1000("IO: DataFileRead"), Some(0.0));
        let none = WaitProfile {
            operations: 0,
            ..profile()
        };
        assert_eq!(none.seconds_per_1000("running"), None);
    }

    #[test]
    fn what_is_not_of_this_form_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        write_waits(&path, &profile()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for (bad, reason) in [
            (
                text.replace("(all)", "all"),
                "line 2: the first row is not (all)",
            ),
            (text.replace("\t30\t", "\tx\t"), "line 3"),
            (
                text.replace("looks", "samples"),
                "line 1: the columns are not",
            ),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read_waits(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("x.tsv"), "{error}");
        }
    }
}
