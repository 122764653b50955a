//! Slices: all servers of a start are up at once, and turns go from one to the next.

mod budget;
mod candidates;
mod forms;
mod order;
mod rounds;
mod start;
mod turns;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Workload};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::event::Event;
use plimsoll_store::{Reserve, TrialRecord};

use self::budget::{BudgetWatch, Cost};
use self::start::{KeptData, Start, Which, per_step};
use crate::campaign_run::CampaignRun;
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice};

/// Runs the starts that are not complete yet, each whole: candidates that were not up together are
/// no pairs.
pub(crate) fn run_starts(
    run: &mut CampaignRun<'_, '_>,
    done: &[TrialRecord],
) -> Result<CampaignEnd, LabError> {
    let mut kept = KeptData::default();
    let end = run_with(run, done, &mut kept);
    kept.remove(run.observer);
    end
}

fn run_with(
    run: &mut CampaignRun<'_, '_>,
    done: &[TrialRecord],
    kept: &mut KeptData,
) -> Result<CampaignEnd, LabError> {
    let runner = run.runner;
    let header = &runner.campaign.header;
    let Some(confirm) = &header.confirm else {
        return Ok(CampaignEnd::Complete);
    };
    let starts = confirm.starts.unwrap_or(1);
    let cells = &header.plan.cells;
    let Some(workload) = cells
        .iter()
        .find(|cell| cell.label == confirm.base)
        .map(|base| &base.workload)
    else {
        return Ok(CampaignEnd::Complete);
    };
    let mut watch = confirm.budget.as_ref().map(|budget| {
        BudgetWatch::new(
            budget,
            per_step(confirm),
            starts,
            spent(&header.schedule, done),
            workload.steps(),
        )
    });
    let mut broken = 0;
    for number in 1..=starts {
        let trials: Vec<&ScheduledTrial> = header
            .schedule
            .iter()
            .filter(|trial| trial.block == number)
            .collect();
        let Some(attempt) = next_attempt(&trials, done) else {
            continue;
        };
        // What was there and is damaged runs again, however much else there is.
        if number > 1
            && !is_damaged(&trials, done)
            && let Some(watch) = &mut watch
        {
            let block = last_start(&header.schedule, done).max(number - 1);
            if has_enough(run, workload, watch, block) {
                return Ok(CampaignEnd::Decided { block });
            }
        }
        let cells: Vec<&Cell> = trials.iter().map(|trial| runner.cell(trial.cell)).collect();
        run.observer.notice(Notice::StartBegins {
            start: number,
            starts,
            cells: &cells,
            attempt,
        });
        let which = Which {
            number,
            attempt,
            trials: &trials,
            load: run.states.load_of(number),
            watch: watch.as_ref(),
        };
        // The room of the start before may be used up.
        let _reserve = Reserve::take(&runner.campaign.path);
        let mut start = Start::open(run, confirm, &which, kept)?;
        start.run_steps();
        let cost = start.cost();
        let closing = Instant::now();
        broken += start.close_trials(kept)?;
        if let (Some(watch), Some(cost)) = (&mut watch, cost) {
            watch.book(Cost {
                setup: cost.setup + closing.elapsed(),
                ..cost
            });
        }
        if run.is_stopped() {
            return Ok(CampaignEnd::Interrupted);
        }
        if number < starts && run.observer.is_enough(runner.campaign, number) {
            return Ok(CampaignEnd::Decided { block: number });
        }
    }
    Ok(CampaignEnd::of_broken(broken))
}

/// Whether a campaign with a budget ends behind this start. What has been reached is reported.
fn has_enough(
    run: &mut CampaignRun<'_, '_>,
    workload: &Workload,
    watch: &mut BudgetWatch<'_>,
    start: u32,
) -> bool {
    let campaign = run.runner.campaign;
    let settled = run.observer.settled(campaign);
    let summary = watch.look(campaign, workload, start, settled.as_ref());
    let is_done = watch.is_done();
    let open = watch.open_steps(workload);
    let no_time = watch.why_no_time(&open, start).filter(|_| !is_done);
    for line in summary.iter().chain(&no_time) {
        run.observer.notice(Notice::Remark(line));
    }
    is_done || no_time.is_some()
}

/// How long the starts that are there took.
fn spent(schedule: &[ScheduledTrial], done: &[TrialRecord]) -> Duration {
    let mut by_start: BTreeMap<u32, f64> = BTreeMap::new();
    for trial in done {
        let scheduled = schedule.iter().find(|of| of.number == trial.number);
        let Some(start) = scheduled.map(|of| of.block) else {
            continue;
        };
        let seconds = trial
            .events
            .iter()
            .find_map(|stamped| match &stamped.event {
                Event::TrialDone(done) => Some(done.seconds),
                _ => None,
            });
        let longest = by_start.entry(start).or_default();
        *longest = longest.max(seconds.unwrap_or(0.0));
    }
    Duration::from_secs_f64(by_start.values().sum())
}

fn is_damaged(trials: &[&ScheduledTrial], done: &[TrialRecord]) -> bool {
    let of_start = |record: &&TrialRecord| trials.iter().any(|of| of.number == record.number);
    done.iter()
        .filter(of_start)
        .any(|record| record.damage.is_some())
}

/// The last start that a trial of was complete; 0 without one.
fn last_start(schedule: &[ScheduledTrial], done: &[TrialRecord]) -> u32 {
    let is_complete = |of: &&ScheduledTrial| {
        done.iter()
            .any(|record| record.number == of.number && record.is_complete())
    };
    let blocks = schedule.iter().filter(is_complete).map(|of| of.block);
    blocks.max().unwrap_or(0)
}

/// The number of the next attempt at a start; none when it is complete.
fn next_attempt(trials: &[&ScheduledTrial], done: &[TrialRecord]) -> Option<u32> {
    let attempts: Vec<&TrialRecord> = done
        .iter()
        .filter(|record| trials.iter().any(|trial| trial.number == record.number))
        .collect();
    let is_complete = |trial: &&ScheduledTrial| {
        attempts
            .iter()
            .any(|record| record.number == trial.number && record.is_complete())
    };
    let last = attempts.iter().map(|record| record.attempt).max();
    (!trials.iter().all(is_complete)).then(|| last.unwrap_or(0) + 1)
}
