//! Data that trials begin with: made once per cell by the plan's own steps, kept below the
//! campaign's data folder, copied for each trial.

mod bring_back;
mod copy;
mod holes;
mod loads;
mod page_cache;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_engine::directory_bytes;
use plimsoll_store::{Confirm, Design, TrialRecord, create_new_folder};

use self::bring_back::{Contents, bring_back};
use self::copy::copy_to_disk;
use self::holes::make_sparse;
use self::loads::{FEW, Loads, Took, load_of};
pub(crate) use self::page_cache::{PageCache, even_out};
use crate::error::LabError;
use crate::message::TrialOrder;
use crate::observer::{Notice, Observer};
use crate::places::remove_data_dir;
use crate::trial_process::{Ended, Runner, make_dir, remove_data};

/// Where the trials that make data keep their logs, in the campaign's folder.
pub(crate) const STATES_FOLDER: &str = "states";

const LOADS_PER_CPU: usize = 2;

/// The data states of a campaign.
pub(crate) struct States<'a> {
    runner: &'a Runner<'a>,
    folder: PathBuf,
    /// By cell and load: its data, or why there is none.
    made: BTreeMap<(usize, u32), Result<State, String>>,
    /// How long making them took, and the first copy of each, by load.
    making: BTreeMap<u32, Took>,
    /// Which load each block or start begins with: all of its trials with the same one.
    chosen: BTreeMap<u32, u32>,
    earlier: Earlier,
}

/// What earlier runs of the campaign have used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Earlier {
    /// Of its budget.
    pub time: Duration,
    /// How many loads.
    pub loads: u32,
}

struct State {
    dir: PathBuf,
    is_copied: bool,
    /// What is in it, where copies are brought back.
    contents: Option<Contents>,
}

impl<'a> States<'a> {
    /// Nothing is made before it is needed.
    pub fn new(runner: &'a Runner<'a>, campaign_data: &Path) -> Self {
        Self {
            runner,
            folder: campaign_data.to_owned(),
            made: BTreeMap::new(),
            making: BTreeMap::new(),
            chosen: BTreeMap::new(),
            earlier: Earlier::default(),
        }
    }

    /// Goes on where earlier runs ended: with what they left of the budget, and no more loads than
    /// they had, or than a short campaign has.
    pub fn go_on(&mut self, earlier: Earlier) {
        self.earlier = earlier;
    }

    /// Blocks that were begun go on with the load of their complete trials.
    pub fn go_on_with_blocks(&mut self, done: &[TrialRecord]) {
        let schedule = &self.runner.campaign.header.schedule;
        self.chosen.extend(loads_of_blocks(schedule, done));
    }

    /// How long it took to make those that are made, and the first copy of each.
    pub fn making(&self) -> Duration {
        let all = self.making.values();
        all.map(|took| took.loading + took.copying).sum()
    }

    /// Which load of its data a trial of this block or start begins with, from 1; none if there is
    /// one only.
    pub fn load_of(&mut self, block: u32) -> Option<u32> {
        if let Some(chosen) = self.chosen.get(&block) {
            return Some(*chosen);
        }
        let confirm = self.runner.campaign.header.confirm.as_ref()?;
        let asked = confirm.loads.filter(|loads| *loads > 1)?;
        let budget = confirm.budget.as_ref();
        let budget = budget.map(|budget| Duration::from_nanos(budget.time_ns));
        let (asked, budget) = match (self.earlier.loads, budget) {
            (0, _) | (_, None) => (asked, budget),
            (had, Some(budget)) => (
                asked.min(had.max(FEW as u32)),
                Some(budget.saturating_sub(self.earlier.time)),
            ),
        };
        let placements = confirm.placements().count() as u32;
        let load = load_of(block, asked, placements, &self.loads(), budget);
        self.chosen.insert(block, load);
        Some(load)
    }

    /// How long the load takes that a start begins with; nothing if it is there.
    pub fn loading_of(&mut self, start: u32) -> Duration {
        let load = self.load_of(start).unwrap_or(1);
        let last = self.making.values().last();
        match self.making.contains_key(&load) {
            true => Duration::ZERO,
            false => last.map_or(Duration::ZERO, |last| last.loading),
        }
    }

    /// The loads that all cells have, or will have, and those that some cell cannot have.
    fn loads(&self) -> Loads {
        let failed = self.made.iter().filter(|(_, made)| made.is_err());
        let failed: BTreeSet<u32> = failed.map(|((_, load), _)| *load).collect();
        let made = self
            .making
            .iter()
            .filter(|(load, _)| !failed.contains(load));
        let made = made.map(|(load, took)| (*load, *took)).collect();
        Loads { made, failed }
    }

    /// Puts a copy of the cell's data into a directory; nothing where trials begin without data. A
    /// copy that is there, of any load, is brought back. `load` is the one of [`States::load_of`].
    /// The inner error says why it cannot be had.
    pub fn restore(
        &mut self,
        cell: usize,
        load: Option<u32>,
        into: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Result<(), String>, LabError> {
        let Some(confirm) = &self.runner.campaign.header.confirm else {
            return Ok(Ok(()));
        };
        let Some(owner) = self.owner(confirm, cell) else {
            return Ok(Ok(()));
        };
        let is_brought_back = confirm.design == Design::Slices;
        self.make_all(&[cell], load, observer)?;
        let load = load.unwrap_or(1);
        let begin = Instant::now();
        let mut is_first = false;
        let put = match self.made.get_mut(&(owner, load)) {
            Some(Ok(state)) => {
                is_first = !std::mem::replace(&mut state.is_copied, true);
                state.put(into, is_brought_back).map_err(|error| {
                    format!(
                        "the data could not be copied to {}: {error}; free space there and resume",
                        into.display()
                    )
                })
            }
            Some(Err(reason)) => Err(reason.clone()),
            None => Ok(()),
        };
        if is_first {
            self.making.entry(load).or_default().copying += begin.elapsed();
        }
        Ok(put)
    }

    /// Makes the data of these cells that is not there, that of several cells side by side: nothing
    /// is measured meanwhile. `load` is the one of [`States::load_of`].
    ///
    /// # Errors
    /// One that ends the campaign, once all have ended.
    pub fn make_all(
        &mut self,
        cells: &[usize],
        load: Option<u32>,
        observer: &mut dyn Observer,
    ) -> Result<(), LabError> {
        let Some(confirm) = &self.runner.campaign.header.confirm else {
            return Ok(());
        };
        let load = load.unwrap_or(1);
        let owners = cells.iter().filter_map(|cell| self.owner(confirm, *cell));
        let missing: BTreeSet<usize> = owners
            .filter(|owner| !self.made.contains_key(&(*owner, load)))
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let begin = Instant::now();
        let mut orders: Vec<(usize, TrialOrder)> = Vec::new();
        for owner in missing {
            observer.notice(Notice::StateStart {
                cell: self.runner.cell(owner),
                load,
            });
            match LabError::costs_one_trial(self.order(owner, load))? {
                Ok(order) => orders.push((owner, order)),
                Err(reason) => _ = self.made.insert((owner, load), Err(reason)),
            }
        }
        let (owners, orders): (Vec<usize>, Vec<TrialOrder>) = orders.into_iter().unzip();
        let (made, mut fatal) = (&mut self.made, None);
        let mut on_end = |at: usize, end: Ended, observer: &mut dyn Observer| {
            // One that never began has written nothing there.
            let _ = fs::remove_dir(&orders[at].dir);
            match LabError::costs_one_trial(end) {
                Ok(end) => {
                    let state = keep(&orders[at].data_dir, end, observer);
                    made.insert((owners[at], load), state);
                }
                Err(error) => _ = fatal.get_or_insert(error),
            }
        };
        match &orders[..] {
            [order] => on_end(0, self.runner.run(order, observer), observer),
            several => self.runner.run_all(several, at_once(), observer, on_end),
        }
        self.making.entry(load).or_default().loading += begin.elapsed();
        fatal.map_or(Ok(()), Err)
    }

    /// The cell that loads the data of this one; none where trials begin without data.
    fn owner(&self, confirm: &Confirm, cell: usize) -> Option<usize> {
        let before = confirm.before.get(cell);
        before.filter(|before| !before.is_empty())?;
        let own = &self.runner.cell(cell).label;
        let is_of_base = *own == confirm.control && confirm.loads.is_none();
        Some(match is_of_base {
            true => self.position(&confirm.base),
            false => cell,
        })
    }

    fn position(&self, label: &str) -> usize {
        self.runner
            .campaign
            .header
            .plan
            .cells
            .iter()
            .position(|cell| cell.label == *label)
            .unwrap_or(0)
    }

    /// The order for a trial that runs the steps that make a cell's data, and stops the server
    /// cleanly.
    fn order(&self, cell: usize, load: u32) -> Result<Result<TrialOrder, String>, LabError> {
        let name = match load {
            1 => cell.to_string(),
            more => format!("{cell}-load{more}"),
        };
        let header = &self.runner.campaign.header;
        let last = header.schedule.iter().map(|trial| trial.number).max();
        let state = self.folder.join(folder_of(cell, load, last.unwrap_or(1)));
        let logs = self.runner.campaign.path.join(STATES_FOLDER);
        // A resumed campaign makes its data again, and keeps what was reported before.
        let attempt = (1..)
            .find(|attempt| !logs.join(format!("{name}-a{attempt}")).exists())
            .unwrap_or(1);
        let dir = logs.join(format!("{name}-a{attempt}"));
        create_new_folder(&dir)?;
        let scheduled = ScheduledTrial {
            number: 0,
            block: 0,
            part: None,
            cell,
        };
        let order = self.runner.order(&scheduled, attempt, &dir, &state);
        if order.is_err() {
            let _ = fs::remove_dir(&dir);
        }
        Ok(order.map(|mut order| {
            let before = std::mem::take(&mut order.before);
            order.cell.workload = order.cell.workload.with_steps(before);
            TrialOrder {
                makes_state: true,
                has_turns: false,
                has_canary: false,
                placement: None,
                ..order
            }
        }))
    }
}

/// As long as the folder of the last trial, `192-a1`: the path of a socket may have no more than 107
/// bytes, and what is too long is to be known with the first server.
fn folder_of(cell: usize, load: u32, last_trial: u32) -> String {
    let prefix = format!("s{cell}-");
    let wanted = format!("{last_trial}-a1").len();
    let digits = wanted.saturating_sub(prefix.len());
    format!("{prefix}{load:0digits$}")
}

/// How many loads are made side by side. For half of its time a short one has the server start, or
/// waits behind its drain.
pub(crate) fn at_once() -> usize {
    LOADS_PER_CPU * std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// What a trial that made data has left, or why there is nothing.
fn keep(dir: &Path, end: Result<(), String>, observer: &mut dyn Observer) -> Result<State, String> {
    match end {
        Ok(()) => {
            if let Err(error) = make_sparse(dir) {
                observer.notice(Notice::Warning(&format!(
                    "{} takes more room than it needs: {error}",
                    dir.display()
                )));
            }
            Ok(State {
                dir: dir.to_owned(),
                is_copied: false,
                contents: None,
            })
        }
        Err(reason) => {
            // What there is of it may be what filled the disk.
            remove_data(dir, observer);
            Err(match observer.stop_requests().load(Ordering::SeqCst) {
                0 => format!("the data that its trials begin with could not be made: {reason}"),
                _ => reason,
            })
        }
    }
}

impl State {
    /// Makes a folder what this is: from a copy that is there, or by a new one.
    fn put(&mut self, into: &Path, is_brought_back: bool) -> Result<(), String> {
        let wanted = directory_bytes(&self.dir).map_err(|error| error.to_string())?;
        if into.exists() && !(is_brought_back && self.bring_back(into).is_ok()) {
            remove_data_dir(into).map_err(|error| error.to_string())?;
        }
        if !into.exists() {
            let parent = into.parent().unwrap_or(Path::new("/"));
            make_dir(parent).map_err(|error| error.to_string())?;
            copy_to_disk(&self.dir, into).map_err(|error| error.to_string())?;
            // The copy is in the page cache, and the original may have left it.
            if is_brought_back && self.contents.is_none() {
                self.contents = Contents::of(into).ok();
            }
        }
        let found = directory_bytes(into).map_err(|error| error.to_string())?;
        match found == wanted {
            true => Ok(()),
            false => Err(format!("{found} of {wanted} bytes arrived")),
        }
    }

    fn bring_back(&mut self, copy: &Path) -> io::Result<()> {
        let contents = match &self.contents {
            Some(contents) => contents,
            None => self.contents.insert(Contents::of(&self.dir)?),
        };
        bring_back(contents, &self.dir, copy)
    }
}

/// The load that complete trials of each block began with.
fn loads_of_blocks(schedule: &[ScheduledTrial], done: &[TrialRecord]) -> BTreeMap<u32, u32> {
    let complete = done.iter().filter(|record| record.is_complete());
    let of_block = complete.filter_map(|record| {
        let of = schedule.iter().find(|of| of.number == record.number)?;
        Some((of.block, record.start()?.load?))
    });
    of_block.collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_core::schedule::schedule;

    use super::*;
    use crate::sample_trials::{DONE, started};

    /// A campaign ran well up to its tenth trial, whose path of a socket had one byte more.
    #[test]
    fn a_socket_that_is_too_long_is_known_with_the_first_load() {
        for (cell, load, last) in [(0, 1, 9), (2, 3, 48), (0, 16, 192), (11, 1, 768)] {
            let folder = folder_of(cell, load, last);
            assert!(folder.len() >= format!("{last}-a1").len(), "{folder}");
        }
        assert_eq!(folder_of(0, 1, 192), "s0-001");
        assert_ne!(folder_of(1, 11, 9), folder_of(11, 1, 9));
    }

    /// The second block had load 1 because the second could not be made. When it went on all loads
    /// were made, and its last trial was to begin with the second.
    #[test]
    fn a_block_goes_on_with_the_load_that_it_began_with() {
        let schedule = schedule(2, 2, 7);
        let number = |block: u32, place: usize| {
            let mut of_block = schedule.iter().filter(|of| of.block == block);
            of_block.nth(place).unwrap().number
        };
        let done = [
            started(number(1, 0), 1, Some(1), &[DONE]),
            started(number(1, 1), 1, Some(1), &[DONE]),
            started(number(2, 0), 1, Some(2), &[]),
            started(number(2, 1), 1, Some(1), &[DONE]),
        ];
        let loads = loads_of_blocks(&schedule, &done);
        assert_eq!(loads, BTreeMap::from([(1, 1), (2, 1)]));
    }
}
