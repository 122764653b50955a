//! Slices: all servers of a start are up at once, and turns go from one to the next.

mod budget;
mod candidates;
mod forms;
mod order;
mod rounds;
mod start;
mod turns;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Workload};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{Reserve, Stamped, TrialRecord, read_events};

use self::budget::{BudgetWatch, Cost};
pub(crate) use self::start::wait_in_turns;
use self::start::{KeptData, Start, Which, per_step};
use crate::campaign_run::CampaignRun;
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice};
use crate::states::{Earlier, STATES_FOLDER};

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
    let earlier = Earlier {
        time: spent(&runner.campaign.path, done),
        loads: loads_of(done),
    };
    run.states.go_on(earlier);
    let mut watch = confirm.budget.as_ref().map(|budget| {
        BudgetWatch::new(
            budget,
            per_step(confirm),
            starts,
            earlier.time,
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
            watch.expect_load(run.states.loading_of(number));
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

/// How long earlier runs of the campaign took: what its trials cover together, and the making of the
/// data that they began with.
fn spent(campaign: &Path, done: &[TrialRecord]) -> Duration {
    let of_states = fs::read_dir(campaign.join(STATES_FOLDER))
        .into_iter()
        .flatten();
    let of_states = of_states
        .flatten()
        .filter_map(|folder| read_events(folder.path().join(EVENTS_FILE)).ok())
        .filter_map(|log| span(&log.events));
    let of_trials = done.iter().filter_map(|record| span(&record.events));
    Duration::from_nanos(covered(of_trials.chain(of_states).collect()))
}

/// From the first event to the last, in nanoseconds.
fn span(events: &[Stamped]) -> Option<(u64, u64)> {
    Some((events.first()?.t_ns, events.last()?.t_ns))
}

/// How much these spans of time cover together.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let mut until = 0;
    let new = spans.into_iter().map(|(from, to)| {
        let new = to.saturating_sub(from.max(until));
        until = until.max(to);
        new
    });
    new.sum()
}

/// How many loads of the data trials began with.
fn loads_of(done: &[TrialRecord]) -> u32 {
    let starts = done.iter().filter_map(TrialRecord::start);
    let loads: BTreeSet<u32> = starts.filter_map(|start| start.load).collect();
    loads.len() as u32
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Only complete trials counted, one start after the other: loads, and starts that broke, were
    /// free in a campaign that went on.
    #[test]
    fn time_is_counted_once_whatever_covers_it() {
        assert_eq!(covered(Vec::new()), 0);
        // Two trials of a start side by side, and a load before it.
        assert_eq!(covered(vec![(10, 20), (12, 25), (0, 10)]), 25);
        // One within another, and a break between runs.
        assert_eq!(covered(vec![(0, 30), (5, 6), (100, 101)]), 31);
    }
}
