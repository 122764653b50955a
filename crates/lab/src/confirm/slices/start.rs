//! One start: the trials of all candidates, from their data to their end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Step, Workload, order_in_turns};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_core::units::format_bytes;
use plimsoll_host::directory_bytes;
use plimsoll_store::{Confirm, seal};

use super::budget::{BudgetWatch, Cost, StepTime};
use super::candidates::{Candidate, Candidates, listen};
use crate::campaign_run::CampaignRun;
use crate::confirm::memory::{server_bytes, usable_bytes};
use crate::error::LabError;
use crate::message::{TrialOrder, TurnCommand};
use crate::observer::{Notice, Observer};
use crate::states::{PageCache, even_out};
use crate::trial_process::{remove_data, write_trial_failed};

/// Servers must be up, data read and workers connected by then; the data takes its own time on top.
const READY_LIMIT: Duration = Duration::from_secs(300);
/// No machine is expected to read and check data more slowly than this, in bytes per second.
const SLOWEST_READ: u64 = 4 << 20;

/// All candidates of a start, and where the start is.
pub(super) struct Start<'a, 'o> {
    pub candidates: Candidates<'a, 'o>,
    pub confirm: &'a Confirm,
    pub seed: u64,
    pub watchdog: Duration,
    /// See [`plimsoll_core::witness::Limits::leak`].
    pub leak_limit: f64,
    /// From 1.
    pub number: u32,
    /// Starts in all.
    pub starts: u32,
    /// Those that have not been measured enough.
    pub steps: Vec<Step>,
    /// With a budget, what is left of it.
    pub until: Option<Instant>,
    pub base: usize,
    pub last_progress: Instant,
    /// When it began, the making of the data left out: the next start has it.
    began: Instant,
    load: Option<u32>,
    /// How long it took until the first step began.
    pub setup: Duration,
    /// How long its steps have turns.
    pub times: StepTime,
    /// What is left of its share of a budget, for steps whose operations are long.
    pub spare: Duration,
    /// How many times as long as usual steps asked for, because of their operations.
    pub longer: BTreeMap<String, f64>,
    /// Of the steps that are over, how many there are and how long they had turns.
    pub in_turns: (u32, Duration),
}

impl<'a, 'o> Start<'a, 'o> {
    /// Copies the data and starts all trials. A candidate that cannot start is out.
    pub fn open(
        run: &'o mut CampaignRun<'a, '_>,
        confirm: &'a Confirm,
        which: &Which<'_, 'a>,
        kept: &mut KeptData,
    ) -> Result<Self, LabError> {
        let runner = run.runner;
        let header = &runner.campaign.header;
        let (began, made_before) = (Instant::now(), run.states.making());
        let mut candidates = Vec::new();
        let mut orders = Vec::new();
        if !run.is_stopped() {
            let cells: Vec<usize> = which.trials.iter().map(|trial| trial.cell).collect();
            run.states.make_all(&cells, which.load, run.observer)?;
        }
        for trial in which.trials {
            let (candidate, order) = prepare(run, trial, which, kept)?;
            candidates.push(candidate);
            orders.push(order);
        }
        let making = run.states.making() - made_before;
        let data_bytes = candidates
            .iter()
            .filter_map(|candidate| directory_bytes(&candidate.data_dir).ok())
            .max()
            .unwrap_or(0);
        even_out_caches(run, &candidates, which.number);
        let (sender, inbox) = channel();
        // No server is up before the last copy is made: it would work while data is copied.
        for (index, order) in orders.iter().enumerate() {
            let Some(order) = order else { continue };
            match runner.start(order) {
                Ok(mut process) => {
                    listen(index, &mut process, sender.clone());
                    candidates[index].process = Some(process);
                }
                Err(error) => candidates[index].leave_out(error.of_one_trial()?),
            }
        }
        let position = |label: &str| {
            candidates
                .iter()
                .position(|candidate| candidate.cell.label == *label)
                .unwrap_or(0)
        };
        let base = position(&confirm.base);
        let watchdog = Duration::from_nanos(header.plan.watchdog_ns);
        let cell = candidates[base].cell;
        let steps = which.open_steps(cell);
        let waits = steps
            .iter()
            .filter(|step| step.drain_after)
            .map(|step| wait_in_turns(&cell.workload, step));
        // To start a server, to check and read its data, and to connect; or to wait behind a drain.
        let ready_limit = READY_LIMIT
            + watchdog
            + Duration::from_secs(data_bytes / SLOWEST_READ)
            + waits.max().unwrap_or_default();
        Ok(Self {
            times: which.times(confirm, cell),
            spare: which
                .watch
                .map_or(Duration::ZERO, |watch| watch.spare(&steps)),
            longer: BTreeMap::new(),
            in_turns: (0, Duration::ZERO),
            confirm,
            seed: header.seed,
            watchdog,
            leak_limit: header.plan.limits.leak,
            number: which.number,
            starts: confirm.starts.unwrap_or(1),
            steps,
            until: which.watch.map(|watch| Instant::now() + watch.left()),
            load: which.load,
            candidates: Candidates::new(candidates, inbox, run.observer, ready_limit),
            base,
            last_progress: Instant::now(),
            began: began + making,
            setup: Duration::ZERO,
        })
    }

    /// All steps, as long as there is a base and a candidate to compare with it.
    pub fn run_steps(&mut self) {
        let steps = self.steps.clone();
        for (index, step) in steps.iter().enumerate() {
            if !self.candidates.wait_until_ready(&step.name) || !self.can_go_on() {
                break;
            }
            if index == 0 {
                self.setup = self.began.elapsed();
            }
            self.candidates.send_peers();
            self.run_step(index, step);
            self.candidates.send_all(&TurnCommand::Finish);
            self.candidates.forget_ready();
            if !self.can_go_on() {
                break;
            }
        }
        if !self.can_go_on() {
            self.candidates
                .stop_because("stopped: the base is out, or nobody is left to be held against it");
        }
        self.candidates.wait("end", |candidate| candidate.is_out);
    }

    /// What it took until now; `None` if no step is over.
    pub fn cost(&self) -> Option<Cost> {
        let (steps, turns) = self.in_turns;
        let of_steps = self.began.elapsed().saturating_sub(self.setup + turns);
        (steps > 0).then(|| Cost {
            setup: self.setup,
            step: of_steps / steps,
        })
    }

    pub fn can_go_on(&self) -> bool {
        !self.candidates.are_stopped()
            && !self.candidates[self.base].is_out
            && (0..self.candidates.len())
                .any(|index| index != self.base && !self.candidates[index].is_out)
    }

    /// Closes all trials and leaves their data to the next start. How many are not complete.
    pub fn close_trials(self, kept: &mut KeptData) -> Result<usize, LabError> {
        let is_as_it_was = !self.steps.iter().any(Step::changes_data);
        self.candidates
            .close(kept, is_as_it_was.then_some(self.load))
    }
}

/// Data directories that a start leaves to the next one, by label.
#[derive(Default)]
pub(super) struct KeptData(BTreeMap<String, Kept>);

/// One of them.
struct Kept {
    data_dir: PathBuf,
    /// Which load it is a copy of, if the start's steps only read.
    as_it_was: Option<Option<u32>>,
}

impl KeptData {
    pub fn keep(&mut self, label: &str, as_it_was: Option<Option<u32>>, data_dir: PathBuf) {
        let kept = Kept {
            data_dir,
            as_it_was,
        };
        self.0.insert(label.to_owned(), kept);
    }

    /// Removes them.
    pub fn remove(self, observer: &mut dyn Observer) {
        let dirs = self.0.into_values().map(|kept| kept.data_dir);
        dirs.for_each(|dir| remove_data(&dir, observer));
    }

    /// Moves a cell's directory to where it is wanted. True if it is a copy of that load as it is.
    fn take(&mut self, label: &str, load: Option<u32>, into: &Path) -> bool {
        let kept = self.0.remove(label);
        kept.is_some_and(|kept| {
            let is_moved = fs::rename(kept.data_dir, into).is_ok();
            is_moved && kept.as_it_was == Some(load)
        })
    }
}

/// All candidates begin with all of their data in the page cache, or with nothing of it: copies are
/// made one after another, and the last would have what the first has lost.
fn even_out_caches(run: &mut CampaignRun<'_, '_>, candidates: &[Candidate<'_>], start: u32) {
    let cells = &run.runner.campaign.header.cells;
    let settings = |label: &str| cells.iter().find(|cell| cell.label == *label);
    let servers = candidates.iter().filter_map(|candidate| {
        let header = settings(&candidate.cell.label)?;
        Some(server_bytes(candidate.cell, &header.settings))
    });
    let dirs: Vec<&Path> = candidates
        .iter()
        .filter(|candidate| !candidate.is_out && candidate.data_dir.exists())
        .map(|candidate| candidate.data_dir.as_path())
        .collect();
    let data = dirs.iter().filter_map(|dir| directory_bytes(dir).ok());
    let wanted = servers.sum::<u64>() + data.sum::<u64>();
    let to = match usable_bytes() {
        Some(usable) if wanted > usable => PageCache::Cold,
        _ => PageCache::Warm,
    };
    if to == PageCache::Cold && start == 1 {
        run.observer.notice(Notice::Warning(&format!(
            "data and servers of all candidates take {} together, more than there is memory: \
            servers start with nothing of their data in the page cache",
            format_bytes(wanted)
        )));
    }
    if let Err(error) = even_out(&dirs, to) {
        run.observer.notice(Notice::Warning(&format!(
            "candidates may begin with different parts of their data in the page cache: {error}"
        )));
    }
}

/// How long the plan waits behind a drain of a step in a start. Not at all behind tests of sysbench:
/// no step reads behind them, and servers stand still between their turns.
pub(crate) fn wait_in_turns(workload: &Workload, step: &Step) -> Duration {
    match step.is_late_in_turns() {
        true => Duration::ZERO,
        false => Duration::from_nanos(workload.wait_ns(step)),
    }
}

/// How long a step has turns in a start, as planned.
pub(super) fn per_step(confirm: &Confirm) -> Duration {
    Duration::from_nanos(confirm.time_ns / u64::from(confirm.starts.unwrap_or(1)))
}

/// Which start it is.
pub(super) struct Which<'t, 'a> {
    /// From 1.
    pub number: u32,
    pub attempt: u32,
    pub trials: &'t [&'a ScheduledTrial],
    /// Which load of their data all candidates begin with.
    pub load: Option<u32>,
    /// With a budget, what goes on.
    pub watch: Option<&'t BudgetWatch<'t>>,
    /// The steps of an attempt before; empty if there was none.
    pub again: &'t [String],
}

impl Which<'_, '_> {
    fn open_steps(&self, cell: &Cell) -> Vec<Step> {
        order_in_turns(match self.watch {
            _ if !self.again.is_empty() => named(&cell.workload, self.again),
            Some(watch) => watch.open_steps(&cell.workload),
            None => cell.workload.steps().to_vec(),
        })
    }

    fn times(&self, confirm: &Confirm, cell: &Cell) -> StepTime {
        match self.watch {
            Some(watch) => watch.times(&self.open_steps(cell)),
            None => StepTime::of_all(per_step(confirm)),
        }
    }
}

/// The steps of a workload that have these names.
pub(super) fn named(workload: &Workload, names: &[String]) -> Vec<Step> {
    let steps = workload.steps().iter();
    steps
        .filter(|step| names.contains(&step.name))
        .cloned()
        .collect()
}

/// Copies a candidate's data, and makes its trial's folder and order; no order for one that is out.
fn prepare<'a>(
    run: &mut CampaignRun<'a, '_>,
    trial: &ScheduledTrial,
    which: &Which<'_, 'a>,
    kept: &mut KeptData,
) -> Result<(Candidate<'a>, Option<TrialOrder>), LabError> {
    let attempt = which.attempt;
    let data_dir = run.trial_data_dir(trial, attempt);
    let cell = run.runner.cell(trial.cell);
    // All candidates of a start begin with the same load.
    let load = which.load;
    let restored = if run.is_stopped() {
        Err("interrupted".to_owned())
    } else if kept.take(&cell.label, load, &data_dir) {
        Ok(())
    } else {
        LabError::costs_one_trial(
            run.states
                .restore(trial.cell, load, &data_dir, run.observer),
        )?
    };
    let dir = match LabError::costs_one_trial(run.runner.make_dir(trial, attempt).map(Ok))? {
        Ok(dir) => dir,
        Err(reason) => return Ok((Candidate::new(cell, data_dir, Some(reason)), None)),
    };
    let order = restored.and_then(|()| run.runner.order(trial, attempt, &dir, &data_dir));
    if let Err(reason) = &order {
        // A folder that takes no reason has none, and the reason is reported.
        let written = write_trial_failed(&dir, reason, run.is_stopped());
        if let Err(error) = written.and_then(|()| Ok(seal(&dir)?)) {
            error.of_one_trial()?;
        }
    }
    let (order, reason) = match order {
        Ok(mut order) => {
            let open = which.open_steps(cell);
            order.cell.workload = order.cell.workload.with_steps(open);
            order.load = load;
            (Some(order), None)
        }
        Err(reason) => (None, Some(reason)),
    };
    Ok((Candidate::new(cell, data_dir, reason), order))
}
