//! One attempt at one trial, as its folder shows it.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::events::event::{Event, StepDone, TrialStart};
use crate::events::log::{EventLog, Stamped, read_events};
use crate::files::durable::read_file;
use crate::files::seal::was_longer;
use crate::layout::{EVENTS_FILE, as_file_name};
use crate::series::{
    HostSeries, LevelSample, OperationSecond, Turn, WaitProfile, host_path, levels_path,
    operations_path, read_host, read_levels, read_operations, read_operations_together, read_turns,
    read_waits, turns_path, waits_path,
};

const ENVIRONMENT_FILE: &str = "env.json";

/// An attempt at a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRecord {
    /// The trial's number in the schedule, from 1.
    pub number: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// Its folder.
    pub dir: PathBuf,
    /// What happened, in order. Empty when its process ended before it wrote anything.
    pub events: Vec<Stamped>,
    /// True when its events end inside a line: it was killed, or is writing now.
    pub is_torn: bool,
    /// `env.json`, where there is one.
    pub environment: Option<serde_json::Value>,
    /// Why nothing in this folder is believed: a file of it was edited or damaged. It has no events
    /// and no environment then.
    pub damage: Option<String>,
}

/// Where an attempt at a trial ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialPlace<'a> {
    /// The name of the machine, where the campaign runs on several.
    pub host: Option<&'a str>,
    /// See [`TrialStart::machine_id`].
    pub machine_id: Option<&'a str>,
}

impl TrialPlace<'_> {
    /// Whether two attempts ran on one machine: what is not known of one of them, as of trials of
    /// earlier versions, speaks against nothing.
    pub fn is_same_machine(&self, other: &Self) -> bool {
        let ids = self.machine_id.zip(other.machine_id);
        self.host == other.host && ids.is_none_or(|(a, b)| a == b)
    }
}

impl TrialRecord {
    /// Reads the folder of an attempt. What is damaged costs this attempt and no other.
    pub(crate) fn read(
        dir: PathBuf,
        number: u32,
        attempt: u32,
        seed: u64,
    ) -> Result<Self, StoreError> {
        match Self::read_whole(&dir, number, attempt, seed) {
            Err(error) => match error.damage() {
                Some(damage) => Ok(Self::damaged(dir, number, attempt, damage)),
                None => Err(error),
            },
            read => read,
        }
    }

    pub(crate) fn damaged(dir: PathBuf, number: u32, attempt: u32, damage: String) -> Self {
        Self {
            number,
            attempt,
            dir,
            events: Vec::new(),
            is_torn: false,
            environment: None,
            damage: Some(damage),
        }
    }

    fn read_whole(dir: &Path, number: u32, attempt: u32, seed: u64) -> Result<Self, StoreError> {
        let EventLog { events, is_torn } = match read_events(dir.join(EVENTS_FILE)) {
            Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                EventLog::default()
            }
            log => log?,
        };
        if was_longer(dir, EVENTS_FILE) {
            let reason = "it was longer when its trial ended".to_owned();
            let line = events.len() + 1;
            return Err(StoreError::corrupt(&dir.join(EVENTS_FILE), line, reason));
        }
        if was_longer(dir, ENVIRONMENT_FILE) {
            let reason = "it was longer, or was there, when its trial ended".to_owned();
            return Err(StoreError::corrupt(&dir.join(ENVIRONMENT_FILE), 0, reason));
        }
        let environment = read_environment(&dir.join(ENVIRONMENT_FILE))?;
        let trial = Self {
            number,
            attempt,
            dir: dir.to_owned(),
            events,
            is_torn,
            environment,
            damage: None,
        };
        if let Some(start) = trial.start()
            && (start.trial, start.attempt, start.seed) != (number, attempt, seed)
        {
            let TrialStart {
                trial: of,
                attempt: at,
                seed: with,
                ..
            } = start;
            let reason = format!(
                "its events are those of trial {of}, attempt {at}, seed {with}, but here belongs \
                trial {number}, attempt {attempt}, seed {seed}"
            );
            return Err(StoreError::StrangeFolder {
                path: trial.dir,
                reason,
            });
        }
        Ok(trial)
    }

    /// Who ran what.
    pub fn start(&self) -> Option<&TrialStart> {
        self.events.iter().find_map(|stamped| match &stamped.event {
            Event::TrialStart(start) => Some(start),
            _ => None,
        })
    }

    /// Where it ran.
    pub fn place(&self) -> TrialPlace<'_> {
        let start = self.start();
        TrialPlace {
            host: start.and_then(|start| start.host.as_deref()),
            machine_id: start.and_then(|start| start.machine_id.as_deref()),
        }
    }

    /// True when it went through to its end.
    pub fn is_complete(&self) -> bool {
        self.events
            .iter()
            .any(|stamped| matches!(stamped.event, Event::TrialDone(_)))
    }

    /// The finished steps, in order.
    pub fn steps_done(&self) -> impl Iterator<Item = &StepDone> {
        self.events
            .iter()
            .filter_map(|stamped| match &stamped.event {
                Event::StepDone(done) => Some(done.as_ref()),
                _ => None,
            })
    }

    /// What each client did in each second of a step. A missing file is an error.
    pub fn series(&self, step: &str) -> Result<Vec<OperationSecond>, StoreError> {
        read_operations(operations_path(&self.dir, step))
    }

    /// What all clients did in each second of a step: see [`read_operations_together`].
    pub fn series_together(&self, step: &str) -> Result<Vec<OperationSecond>, StoreError> {
        read_operations_together(operations_path(&self.dir, step))
    }

    /// What was done in each turn of a step of a confirm campaign by slices. A missing file is an
    /// error.
    pub fn turns(&self, step: &str) -> Result<Vec<Turn>, StoreError> {
        read_turns(turns_path(&self.dir, step))
    }

    /// The levels of the tree in each second of a step. A missing file is an error.
    pub fn levels(&self, step: &str) -> Result<Vec<LevelSample>, StoreError> {
        read_levels(levels_path(&self.dir, step))
    }

    /// What the sessions of a step waited for; `None` where they were not looked at.
    pub fn waits(&self, step: &str) -> Result<Option<WaitProfile>, StoreError> {
        let path = waits_path(&self.dir, step);
        if !path.exists() {
            return Ok(None);
        }
        read_waits(path).map(Some)
    }

    /// What the host did in each second of a step. A missing file is an error.
    pub fn host_series(&self, step: &str) -> Result<HostSeries, StoreError> {
        read_host(host_path(&self.dir, step))
    }
}

fn read_environment(path: &Path) -> Result<Option<serde_json::Value>, StoreError> {
    let text = match read_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read.map_err(StoreError::io("read", path))?,
    };
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|error| StoreError::corrupt(path, error.line(), error.to_string()))
}

/// The last attempt at a start by slices in which all of its trials went through, of which so many
/// are scheduled: candidates that were not up together make no pairs.
pub fn complete_attempt<'a>(
    scheduled: usize,
    attempts: impl IntoIterator<Item = &'a TrialRecord>,
) -> Option<u32> {
    let attempts = attempts.into_iter();
    let mut complete: BTreeMap<u32, usize> = BTreeMap::new();
    for record in attempts.filter(|record| record.is_complete()) {
        *complete.entry(record.attempt).or_default() += 1;
    }
    let all = complete
        .into_iter()
        .rfind(|(_, trials)| *trials == scheduled);
    all.map(|(attempt, _)| attempt)
}

/// `<number>-<cell>-a<attempt>`, with `_` for what would lead out of the folder.
pub(crate) fn folder_name(number: u32, cell_label: &str, attempt: u32) -> String {
    format!("{number}-{}-a{attempt}", as_file_name(cell_label))
}

/// Number and attempt of a folder's name.
pub(crate) fn read_folder_name(name: &str) -> Option<(u32, u32)> {
    let (number, rest) = name.split_once('-')?;
    let (_, attempt) = rest.rsplit_once("-a")?;
    let count = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|count| *count > 0 && count.to_string() == text)
    };
    Some((count(number)?, count(attempt)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_are_read_back() {
        for (number, cell, attempt, name) in [
            (
                1,
                "sqlite.wal_full.default",
                1,
                "1-sqlite.wal_full.default-a1",
            ),
            (
                12,
                "mysql@8.0.33+x.cz10a-a7.s",
                3,
                "12-mysql@8.0.33+x.cz10a-a7.s-a3",
            ),
            (3, "../a\\b", 10, "3-.._a_b-a10"),
        ] {
            assert_eq!(folder_name(number, cell, attempt), name);
            assert_eq!(read_folder_name(name), Some((number, attempt)), "{name}");
        }
        for name in [
            "",
            "x",
            "1-cell",
            "1-cell-a",
            "1-cell-a0",
            "0-cell-a1",
            "01-cell-a1",
            "1-cell-a1 (copy)",
            "+1-cell-a1",
            "1-a1",
            "a-cell-a1",
        ] {
            assert_eq!(read_folder_name(name), None, "{name}");
        }
    }

    /// A campaign of one machine names none: the id tells what was resumed on another.
    #[test]
    fn machines_are_told_by_name_and_by_id() {
        fn place(
            host: Option<&'static str>,
            machine_id: Option<&'static str>,
        ) -> TrialPlace<'static> {
            TrialPlace { host, machine_id }
        }
        for (a, b, is_same) in [
            (place(None, Some("1")), place(None, Some("1")), true),
            (place(None, Some("1")), place(None, Some("2")), false),
            (place(None, None), place(None, Some("2")), true),
            (
                place(Some("h1"), Some("1")),
                place(Some("h2"), Some("1")),
                false,
            ),
            (
                place(Some("h1"), Some("1")),
                place(Some("h1"), Some("2")),
                false,
            ),
            (place(Some("h1"), None), place(Some("h2"), None), false),
        ] {
            assert_eq!(a.is_same_machine(&b), is_same, "{a:?} {b:?}");
            assert_eq!(b.is_same_machine(&a), is_same, "{b:?} {a:?}");
        }
    }
}
