//! Where a server's CPU time went in a step, by stacks of functions: `server/STEP.profile.json` and
//! `server/STEP.folded` of a trial below `profiles/`.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use plimsoll_core::name::natural_cmp;
use plimsoll_core::readings::Reading;
use serde::{Deserialize, Serialize};

use crate::StoreError;
use crate::files::durable::{read_file, write_json_atomically};

/// The folder of a campaign with the trials that were profiled: nothing in them was measured.
pub const PROFILES_FOLDER: &str = "profiles";

const ABOUT: &str = ".profile.json";
const FOLDED: &str = ".folded";

/// What a profile is of, and how it was taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProfileAbout {
    /// 1.
    pub format: u32,
    /// The cell's label.
    pub cell: String,
    pub step: String,
    /// What was sampled: `cycles`, or `cpu-clock` where the machine has no counters.
    pub event: String,
    /// Samples a second that were asked for.
    pub frequency_hz: u32,
    /// Samples that were taken.
    pub samples: u64,
    /// Samples whose own function has no name: its symbols are missing.
    pub nameless_samples: u64,
    /// CPU of the server per operation in the profiled step, in microseconds.
    pub server_cpu_us_per_op: Option<f64>,
    /// Events of the processor per operation, `ipc` in instructions per cycle.
    pub counters: BTreeMap<String, Reading>,
    /// Why there is no profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// What it is of.
    pub about: ProfileAbout,
    /// The pass it was taken in, from 1: the server is started for each.
    pub pass: u32,
    /// Samples by stack: functions from the outermost inwards, separated by `;`.
    pub stacks: BTreeMap<String, u64>,
}

impl Profile {
    /// Writes both files into a trial's `server` folder.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self, server_dir: &Path) -> Result<(), StoreError> {
        let folded = server_dir.join(format!("{}{FOLDED}", self.about.step));
        let text: String = self
            .stacks
            .iter()
            .map(|(stack, samples)| format!("{stack} {samples}\n"))
            .collect();
        fs::write(&folded, text).map_err(StoreError::io("write", &folded))?;
        write_json_atomically(
            server_dir.join(format!("{}{ABOUT}", self.about.step)),
            &self.about,
        )
    }

    fn read(about: &Path) -> Result<Self, StoreError> {
        let text = read_file(about).map_err(StoreError::io("read", about))?;
        let found: ProfileAbout = serde_json::from_slice(&text)
            .map_err(|error| StoreError::corrupt(about, error.line(), error.to_string()))?;
        let folded = about.with_file_name(format!("{}{FOLDED}", found.step));
        let text = fs::read_to_string(&folded).map_err(StoreError::io("read", &folded))?;
        let mut stacks = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let read = line
                .rsplit_once(' ')
                .and_then(|(stack, samples)| Some((stack, samples.parse::<u64>().ok()?)));
            let Some((stack, samples)) = read else {
                return Err(StoreError::corrupt(
                    &folded,
                    number,
                    "a line is a stack and a number of samples".to_owned(),
                ));
            };
            *stacks.entry(stack.to_owned()).or_default() += samples;
        }
        Ok(Self {
            about: found,
            pass: 1,
            stacks,
        })
    }

    fn key(&self) -> (&str, &str, u32) {
        (&self.about.cell, &self.about.step, self.pass)
    }
}

/// All profiles of a campaign's folder: of each cell, step and pass the last that was taken. None
/// where there are none.
///
/// # Errors
/// When one cannot be read.
pub fn read_profiles(campaign: &Path) -> Result<Vec<Profile>, StoreError> {
    let mut found: Vec<Profile> = Vec::new();
    for trial in entries(&campaign.join(PROFILES_FOLDER))? {
        for about in entries(&trial.join("server"))?
            .into_iter()
            .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ABOUT)))
        {
            let profile = Profile {
                pass: pass_of(&trial),
                ..Profile::read(&about)?
            };
            found.retain(|other| other.key() != profile.key());
            found.push(profile);
        }
    }
    Ok(found)
}

/// The name of the folder of an attempt at a cell's profile: `2-p1-a1`.
pub fn profile_folder(cell: usize, pass: u32, attempt: u32) -> String {
    format!("{cell}-p{pass}-a{attempt}")
}

/// The pass of such a folder. Campaigns before methodology version 10 have one, and no number of it.
fn pass_of(folder: &Path) -> u32 {
    let name = folder.file_name().and_then(|name| name.to_str());
    let mut parts = name.unwrap_or_default().split('-');
    parts
        .find_map(|part| part.strip_prefix('p')?.parse().ok())
        .unwrap_or(1)
}

/// What is in a folder, in natural order; nothing where there is no folder.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.map_err(StoreError::io("read", dir))?,
    };
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(StoreError::io("read", dir))?.path());
    }
    paths.sort_by(|a, b| natural_cmp(&a.to_string_lossy(), &b.to_string_lossy()));
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(cell: &str, step: &str, samples: u64) -> Profile {
        Profile {
            about: ProfileAbout {
                format: 1,
                cell: cell.to_owned(),
                step: step.to_owned(),
                event: "cpu-clock".to_owned(),
                frequency_hz: 499,
                samples,
                nameless_samples: 1,
                server_cpu_us_per_op: Some(12.5),
                counters: BTreeMap::from([(
                    "ipc".to_owned(),
                    Reading::Unavailable("no counters".to_owned()),
                )]),
                unavailable: None,
            },
            pass: 1,
            stacks: BTreeMap::from([
                ("main;run query".to_owned(), samples - 1),
                ("main;[unknown: server]".to_owned(), 1),
            ]),
        }
    }

    #[test]
    fn the_last_profile_of_a_cell_and_step_counts() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read_profiles(dir.path()).unwrap(), []);
        for (trial, profile) in [
            ("0-a1", profile("a", "qr100", 7)),
            ("1-a1", profile("b", "qr100", 8)),
            ("0-a10", profile("a", "qr100", 9)),
            (&profile_folder(0, 2, 1), profile("a", "qr100", 6)),
        ] {
            let server = dir.path().join(PROFILES_FOLDER).join(trial).join("server");
            fs::create_dir_all(&server).unwrap();
            profile.write(&server).unwrap();
        }
        let found = read_profiles(dir.path()).unwrap();
        let second = Profile {
            pass: 2,
            ..profile("a", "qr100", 6)
        };
        assert_eq!(
            found,
            [profile("a", "qr100", 9), second, profile("b", "qr100", 8)]
        );

        fs::write(
            dir.path().join("profiles/0-a1/server/qr100.folded"),
            "main;run\n",
        )
        .unwrap();
        let error = read_profiles(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("qr100.folded") && error.contains("number of samples"),
            "{error}"
        );
    }
}
