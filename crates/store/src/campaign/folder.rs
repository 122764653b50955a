//! One campaign's folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::campaign::format_1;
use crate::campaign::header::{CampaignHeader, CellHeader, FORMAT};
use crate::campaign::imported::{IMPORTED_FILE, Imported, read_imported};
use crate::error::RESTORE_HEADER;
use crate::files::durable::{read_file, write_in_folder, write_json_atomically};
use crate::files::lock::{CampaignLock, is_held};
use crate::trial::{TrialRecord, complete_attempt, folder_name, read_folder_name};
use crate::{Design, StoreError};

pub(crate) const HEADER_FILE: &str = "campaign.json";
/// Where the attempts at a campaign's trials are, in its folder.
pub const TRIALS_FOLDER: &str = "trials";
const REPORT_FOLDER: &str = "report";
const PAGE_FILE: &str = "index.html";
/// What a campaign has that ended before its last block, because what it had was enough.
const DECIDED_FILE: &str = "decided.json";

/// A campaign's folder and what it is to run.
#[derive(Clone, Debug, PartialEq)]
pub struct CampaignDir {
    /// The folder.
    pub path: PathBuf,
    /// Its `campaign.json`.
    pub header: CampaignHeader,
}

/// A campaign as it is on disk now.
#[derive(Clone, Debug)]
pub struct CampaignRecord {
    /// The folder.
    pub path: PathBuf,
    /// Its `campaign.json`.
    pub header: CampaignHeader,
    /// Every attempt at every trial, by number and attempt.
    pub trials: Vec<TrialRecord>,
    /// How far it is.
    pub state: CampaignState,
    /// What another tool measured; `None` for a native campaign.
    pub imported: Option<Imported>,
    /// Folders among the trials that are not called like trials, which nobody reads.
    pub strangers: Vec<String>,
}

/// How far a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CampaignState {
    /// A process holds its lock.
    Running,
    /// Every scheduled trial has an attempt that was finished.
    Complete,
    /// It ended with a block before its last one, because what it had was enough:
    /// [`CampaignDir::end_decided`].
    Decided,
    /// None of these: `plimsoll resume` finishes it.
    Broken,
}

impl CampaignDir {
    /// Reads `campaign.json` in this folder.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let path = path.into();
        let header = read_header(&path.join(HEADER_FILE))?;
        Ok(Self { path, header })
    }

    /// What another tool measured; `None` for a native campaign.
    pub fn imported(&self) -> Result<Option<Imported>, StoreError> {
        read_imported(&self.path)
    }

    /// Takes the right to run this campaign, or says at once which process has it. Refused of a
    /// folder that is not called as its campaign is, and of one with links in it: whoever runs it
    /// removes data by that name, and writes into these folders.
    pub fn lock(&self) -> Result<CampaignLock, StoreError> {
        self.check_name()?;
        self.check_links()?;
        CampaignLock::take(&self.path)
    }

    fn check_name(&self) -> Result<(), StoreError> {
        let path = self
            .path
            .canonicalize()
            .map_err(StoreError::io("read", &self.path))?;
        // A file name has one part, and is never empty or `..`.
        if path
            .file_name()
            .is_some_and(|name| name == self.header.id.as_str())
        {
            return Ok(());
        }
        Err(StoreError::Renamed {
            path: self.path.clone(),
            id: self.header.id.clone(),
        })
    }

    fn check_links(&self) -> Result<(), StoreError> {
        for entry in fs::read_dir(&self.path).map_err(StoreError::io("read", &self.path))? {
            let entry = entry.map_err(StoreError::io("read", &self.path))?;
            if entry
                .file_type()
                .map_err(StoreError::io("read", &entry.path()))?
                .is_symlink()
            {
                return Err(StoreError::Link { path: entry.path() });
            }
        }
        Ok(())
    }

    /// Writes its page for people, `report/index.html`: a reader sees the old one or the whole new
    /// one. Never through a link.
    pub fn write_page(&self, text: &str) -> Result<PathBuf, StoreError> {
        write_in_folder(&self.path, REPORT_FOLDER, PAGE_FILE, text.as_bytes())
    }

    /// Where its page is, if it has one.
    pub fn page(&self) -> Option<PathBuf> {
        let page = self.path.join(REPORT_FOLDER).join(PAGE_FILE);
        page.is_file().then_some(page)
    }

    /// True while a process, this one included, holds [`CampaignDir::lock`].
    pub fn is_running(&self) -> bool {
        is_held(&self.path)
    }

    /// Says that the campaign is over after so many blocks of its schedule, because what they
    /// showed is enough.
    pub fn end_decided(&self, _lock: &CampaignLock, blocks: u32) -> Result<(), StoreError> {
        write_json_atomically(self.path.join(DECIDED_FILE), &Decided { blocks })
    }

    /// It goes on: what [`CampaignDir::end_decided`] said no longer holds.
    pub fn reopen(&self, _lock: &CampaignLock) -> Result<(), StoreError> {
        let file = self.path.join(DECIDED_FILE);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::io("remove", &file)(error))
            }
            _ => Ok(()),
        }
    }

    /// Replaces what is known of a cell whose build could not be fetched before: all of
    /// `campaign.json` is written again, or nothing.
    pub fn replace_cell(
        &mut self,
        _lock: &CampaignLock,
        cell: usize,
        found: CellHeader,
    ) -> Result<(), StoreError> {
        let mut header = self.header.clone();
        header.cells[cell] = found;
        write_json_atomically(self.path.join(HEADER_FILE), &header)?;
        self.header = header;
        Ok(())
    }

    /// Every attempt at every trial, by number and attempt. One that cannot be believed is there,
    /// and says why: [`TrialRecord::damage`].
    pub fn trials(&self) -> Result<Vec<TrialRecord>, StoreError> {
        Ok(self.trials_besides(Vec::new())?.0)
    }

    /// The same, without reading complete attempts again that are `known`, and the names of folders
    /// that are not called like trials.
    fn trials_besides(
        &self,
        known: Vec<TrialRecord>,
    ) -> Result<(Vec<TrialRecord>, Vec<String>), StoreError> {
        let mut known: BTreeMap<PathBuf, TrialRecord> = known
            .into_iter()
            .filter(TrialRecord::is_complete)
            .map(|trial| (trial.dir.clone(), trial))
            .collect();
        let folder = self.path.join(TRIALS_FOLDER);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Default::default()),
            entries => entries.map_err(StoreError::io("read", &folder))?,
        };
        let (mut trials, mut strangers) = (Vec::new(), Vec::new());
        for entry in entries {
            let entry = entry.map_err(StoreError::io("read", &folder))?;
            let (name, dir) = (entry.file_name(), entry.path());
            let name = name.to_string_lossy();
            if name.starts_with('.') || !dir.is_dir() {
                continue;
            }
            let Some((number, attempt)) = read_folder_name(&name) else {
                strangers.push(name.into_owned());
                continue;
            };
            trials.push(match known.remove(&dir) {
                Some(trial) => trial,
                None => TrialRecord::read(dir, number, attempt, self.header.seed)?,
            });
        }
        trials.sort_by_key(|trial| (trial.number, trial.attempt));
        let same =
            |a: &TrialRecord, b: &TrialRecord| (a.number, a.attempt) == (b.number, b.attempt);
        for twins in trials.chunk_by_mut(same).filter(|twins| twins.len() > 1) {
            let damage = format!(
                "{} folders are the same attempt at the same trial",
                twins.len()
            );
            for twin in twins {
                let dir = twin.dir.clone();
                *twin = TrialRecord::damaged(dir, twin.number, twin.attempt, damage.clone());
            }
        }
        strangers.sort();
        Ok((trials, strangers))
    }

    /// The folder of an attempt, from 1, at the trial of this number in the schedule. `cell_label`
    /// is `build.config.shape`.
    pub fn trial_dir(&self, trial: u32, cell_label: &str, attempt: u32) -> PathBuf {
        self.path
            .join(TRIALS_FOLDER)
            .join(folder_name(trial, cell_label, attempt))
    }

    /// Reads header, trials and state. Series are read when they are asked for; whether sealed
    /// files are as they were, [`crate::check_seal`] tells.
    pub fn load(&self) -> Result<CampaignRecord, StoreError> {
        self.load_besides(Vec::new())
    }

    /// The same for a campaign that goes on: of the trials in `before` those that are complete are
    /// taken over, and the others read again.
    pub fn load_after(&self, before: CampaignRecord) -> Result<CampaignRecord, StoreError> {
        self.load_besides(before.trials)
    }

    /// Whether each trial has a complete attempt; by slices all of a start the same one.
    fn is_all_done(&self, trials: &[TrialRecord]) -> bool {
        let confirm = self.header.confirm.as_ref();
        let is_in_turns = confirm.is_some_and(|confirm| confirm.design == Design::Slices);
        let mut together: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for trial in &self.header.schedule {
            let key = if is_in_turns {
                trial.block
            } else {
                trial.number
            };
            together.entry(key).or_default().insert(trial.number);
        }
        together.values().all(|numbers| {
            let attempts = trials.iter().filter(|of| numbers.contains(&of.number));
            complete_attempt(numbers.len(), attempts).is_some()
        })
    }

    fn load_besides(&self, known: Vec<TrialRecord>) -> Result<CampaignRecord, StoreError> {
        // Asked first: a campaign that ends while its trials are read is then complete, or still
        // called running, never broken.
        let is_running = self.is_running();
        let (trials, strangers) = self.trials_besides(known)?;
        let state = if self.is_all_done(&trials) {
            CampaignState::Complete
        } else if is_running {
            CampaignState::Running
        } else if self.path.join(DECIDED_FILE).is_file() {
            CampaignState::Decided
        } else {
            CampaignState::Broken
        };
        Ok(CampaignRecord {
            path: self.path.clone(),
            header: self.header.clone(),
            trials,
            state,
            imported: self.imported()?,
            strangers,
        })
    }
}

/// `decided.json`.
#[derive(Serialize)]
struct Decided {
    /// The last block that ran.
    blocks: u32,
}

fn read_header(path: &Path) -> Result<CampaignHeader, StoreError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let text = read_file(path).map_err(StoreError::io("read", path))?;
    let corrupt = |line, reason| StoreError::Corrupt {
        path: path.to_owned(),
        line,
        reason,
        remedy: RESTORE_HEADER,
    };
    let damaged = |error: serde_json::Error| corrupt(error.line(), error.to_string());
    let Version { format } = serde_json::from_slice(&text).map_err(damaged)?;
    if format > FORMAT {
        return Err(StoreError::Newer {
            path: path.to_owned(),
            found: format,
            known: FORMAT,
        });
    }
    let header: CampaignHeader = if format == 1 {
        let header = serde_json::from_slice(&text).map_err(damaged)?;
        format_1::upgraded(header)
            .and_then(serde_json::from_value)
            .map_err(damaged)?
    } else {
        serde_json::from_slice(&text).map_err(damaged)?
    };
    let is_imported = || path.with_file_name(IMPORTED_FILE).exists();
    if header.plan.cells.is_empty() && !is_imported() {
        return Err(corrupt(1, "its plan has no cell".to_owned()));
    }
    if header
        .confirm
        .as_ref()
        .is_some_and(|of| of.starts == Some(0))
    {
        return Err(corrupt(1, "its confirm has 0 starts".to_owned()));
    }
    if !header.is_consistent() {
        let reason = "its schedule, base or list of cells names a cell that is not in its plan";
        return Err(corrupt(1, reason.to_owned()));
    }
    Ok(header)
}
