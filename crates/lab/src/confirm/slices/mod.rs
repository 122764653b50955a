//! Slices: all servers of a start are up at once, and turns go from one to the next.

mod candidates;
mod order;
mod rounds;
mod start;
mod turns;

use plimsoll_core::plan::Cell;
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::TrialRecord;

use self::start::Start;
use crate::campaign_run::CampaignRun;
use crate::error::LabError;
use crate::observer::{CampaignEnd, Notice};

/// Runs the starts that are not complete yet, each whole: candidates that were not up together are
/// no pairs.
pub(crate) fn run_starts(
    run: &mut CampaignRun<'_, '_>,
    done: &[TrialRecord],
) -> Result<CampaignEnd, LabError> {
    let runner = run.runner;
    let header = &runner.campaign.header;
    let Some(confirm) = &header.confirm else {
        return Ok(CampaignEnd::Complete);
    };
    let mut broken = 0;
    let starts = confirm.starts.unwrap_or(1);
    for number in 1..=starts {
        let trials: Vec<&ScheduledTrial> = header
            .schedule
            .iter()
            .filter(|trial| trial.block == number)
            .collect();
        let Some(attempt) = next_attempt(&trials, done) else {
            continue;
        };
        let cells: Vec<&Cell> = trials.iter().map(|trial| runner.cell(trial.cell)).collect();
        run.observer.notice(Notice::StartBegins {
            start: number,
            starts,
            cells: &cells,
            attempt,
        });
        let mut start = Start::open(run, confirm, number, &trials, attempt)?;
        start.run_steps();
        broken += start.close_trials()?;
        if run.is_stopped() {
            return Ok(CampaignEnd::Interrupted);
        }
        if number < starts && run.observer.is_enough(runner.campaign, number) {
            return Ok(CampaignEnd::Decided { block: number });
        }
    }
    Ok(CampaignEnd::of_broken(broken))
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
