//! One start: the trials of all candidates, from their data to their end.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Step};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_host::directory_bytes;
use plimsoll_store::{Confirm, seal};

use super::budget::BudgetWatch;
use super::candidates::{Candidate, Candidates, listen};
use crate::campaign_run::CampaignRun;
use crate::error::LabError;
use crate::message::{TrialOrder, TurnCommand};
use crate::trial_process::write_trial_failed;

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
    /// How long the making of the data took.
    pub making: Duration,
    load: Option<u32>,
    /// How long it took until the first step began.
    pub setup: Duration,
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
        let (sender, inbox) = channel();
        // No server is up before the last copy is made: it would work while data is copied.
        for (index, order) in orders.iter().enumerate() {
            let Some(order) = order else { continue };
            let mut process = runner.start(order)?;
            listen(index, &mut process, sender.clone());
            candidates[index].process = Some(process);
        }
        let position = |label: &str| {
            candidates
                .iter()
                .position(|candidate| candidate.cell.label == *label)
                .unwrap_or(0)
        };
        let base = position(&confirm.base);
        let watchdog = Duration::from_nanos(header.plan.watchdog_ns);
        // To start a server, to check and read its data, and to connect.
        let ready_limit = READY_LIMIT + watchdog + Duration::from_secs(data_bytes / SLOWEST_READ);
        Ok(Self {
            confirm,
            seed: header.seed,
            watchdog,
            number: which.number,
            starts: confirm.starts.unwrap_or(1),
            steps: which.open_steps(candidates[base].cell),
            until: which.watch.map(|watch| Instant::now() + watch.left()),
            making,
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

    pub fn can_go_on(&self) -> bool {
        !self.candidates.are_stopped()
            && !self.candidates[self.base].is_out
            && (0..self.candidates.len())
                .any(|index| index != self.base && !self.candidates[index].is_out)
    }

    /// Closes all trials and removes their data, unless nothing has written to it. How many are not
    /// complete.
    pub fn close_trials(self, kept: &mut KeptData) -> Result<usize, LabError> {
        let is_as_it_was = !self.steps.iter().any(Step::is_writing);
        self.candidates
            .close(is_as_it_was.then_some((kept, self.load)))
    }
}

/// Data directories that a start leaves to the next one, because its steps only read: by label
/// and load.
#[derive(Default)]
pub(super) struct KeptData(BTreeMap<(String, Option<u32>), PathBuf>);

impl KeptData {
    pub fn keep(&mut self, label: &str, load: Option<u32>, data_dir: PathBuf) {
        self.0.insert((label.to_owned(), load), data_dir);
    }

    /// Moves a cell's directory to where it is wanted. False where there is none.
    fn take(&mut self, label: &str, load: Option<u32>, into: &Path) -> bool {
        self.0
            .remove(&(label.to_owned(), load))
            .is_some_and(|from| fs::rename(from, into).is_ok())
    }
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
}

impl Which<'_, '_> {
    fn open_steps(&self, cell: &Cell) -> Vec<Step> {
        match self.watch {
            Some(watch) => watch.open_steps(&cell.workload),
            None => cell.workload.steps().to_vec(),
        }
    }
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
    let restored = match () {
        () if run.is_stopped() => Err("interrupted".to_owned()),
        () if kept.take(&cell.label, load, &data_dir) => Ok(()),
        () => run
            .states
            .restore(trial.cell, load, &data_dir, run.observer)?,
    };
    let dir = run.runner.make_dir(trial, attempt)?;
    let order = restored.and_then(|()| run.runner.order(trial, attempt, &dir, &data_dir));
    if let Err(reason) = &order {
        write_trial_failed(&dir, reason, run.is_stopped())?;
        seal(&dir)?;
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
