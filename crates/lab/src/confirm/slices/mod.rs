//! Slices: all servers of a start are up at once, and turns go from one to the next.

mod budget;
mod candidates;
mod forms;
mod order;
mod rounds;
mod start;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::mem;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Workload};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::event::Event;
use plimsoll_store::layout::EVENTS_FILE;
use plimsoll_store::{Confirm, Reserve, Stamped, TrialRecord, complete_attempt, read_events};

use self::budget::{BudgetWatch, Cost};
pub(crate) use self::start::wait_in_turns;
use self::start::{KeptData, Start, Which, named, per_step};
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
    let all: Vec<Scheduled<'_, '_>> = (1..=starts)
        .map(|number| Scheduled::of(number, &header.schedule, done))
        .collect();
    let watch = confirm.budget.as_ref().map(|budget| {
        BudgetWatch::new(budget, per_step(confirm), starts, workload.steps()).go_on(
            earlier.time,
            all.iter().filter_map(Scheduled::took).collect(),
        )
    });
    let broken = all
        .iter()
        .filter_map(|start| Some((start.number, start.broken()?)));
    let mut books = Books {
        watch,
        broken: broken.collect(),
        has_time: true,
        last_start: last_start(&all),
    };
    for start in all.iter().filter(|start| !start.is_complete()) {
        match books.look(run, workload, start) {
            Next::Begins => {}
            Next::StaysOpen => continue,
            Next::EndsCampaign(end) => return Ok(end),
        }
        books.run(run, confirm, start, kept)?;
        if run.is_stopped() {
            return Ok(CampaignEnd::Interrupted);
        }
        let number = start.number;
        if number < starts && run.observer.is_enough(runner.campaign, number) {
            return Ok(books.decided(number, books.has_time));
        }
    }
    Ok(books.end())
}

/// What a campaign has used of its budget, and what broke in it.
struct Books<'a> {
    watch: Option<BudgetWatch<'a>>,
    /// By start, how many of its trials broke in its last attempt.
    broken: BTreeMap<u32, usize>,
    /// Whether starts that are open can be repeated within the budget.
    has_time: bool,
    /// The last start that earlier runs of the campaign came to.
    last_start: u32,
}

/// What becomes of a start.
enum Next {
    Begins,
    /// There is no time to repeat it.
    StaysOpen,
    EndsCampaign(CampaignEnd),
}

impl Books<'_> {
    /// Whether a start may begin.
    fn look(
        &mut self,
        run: &mut CampaignRun<'_, '_>,
        workload: &Workload,
        start: &Scheduled<'_, '_>,
    ) -> Next {
        let (number, again) = (start.number, start.steps());
        let is_first = number == 1 && again.is_empty();
        // What was there and is damaged runs again, however much else there is.
        let watch = self.watch.as_mut();
        let Some(watch) = watch.filter(|_| !is_first && !start.is_damaged()) else {
            return Next::Begins;
        };
        let behind = self.last_start.max(number - 1);
        watch.expect_load(run.states.loading_of(number));
        if again.is_empty() {
            return match end_behind(run, workload, watch, behind) {
                None => Next::Begins,
                Some(end) => {
                    let has_time = self.has_time && end == BudgetEnd::Done;
                    Next::EndsCampaign(self.decided(behind, has_time))
                }
            };
        }
        if self.has_time
            && let Some(line) = watch.why_no_time(&named(workload, again), behind)
        {
            run.observer.notice(Notice::Remark(&line));
            self.has_time = false;
        }
        match self.has_time {
            true => Next::Begins,
            false => Next::StaysOpen,
        }
    }

    /// Runs a start, and notes what it took.
    fn run<'r>(
        &mut self,
        run: &mut CampaignRun<'r, '_>,
        confirm: &'r Confirm,
        scheduled: &Scheduled<'r, '_>,
        kept: &mut KeptData,
    ) -> Result<(), LabError> {
        let runner = run.runner;
        let number = scheduled.number;
        let trials = &scheduled.trials;
        let attempt = scheduled.next_attempt();
        let cells: Vec<&Cell> = trials.iter().map(|trial| runner.cell(trial.cell)).collect();
        run.observer.notice(Notice::StartBegins {
            start: number,
            starts: confirm.starts.unwrap_or(1),
            cells: &cells,
            attempt,
        });
        let which = Which {
            number,
            attempt,
            trials,
            load: run.states.load_of(number),
            watch: self.watch.as_ref(),
            again: scheduled.steps(),
        };
        // The room of the start before may be used up.
        let _reserve = Reserve::take(&runner.campaign.path);
        let mut start = Start::open(run, confirm, &which, kept)?;
        start.run_steps();
        let (cost, longer) = (start.cost(), mem::take(&mut start.longer));
        let closing = Instant::now();
        match start.close_trials(kept)? {
            0 => self.broken.remove(&number),
            some => self.broken.insert(number, some),
        };
        if let (Some(watch), Some(cost)) = (&mut self.watch, cost) {
            watch.book(Cost {
                setup: cost.setup + closing.elapsed(),
                ..cost
            });
            watch.note_longer(longer);
        }
        Ok(())
    }

    fn decided(&self, block: u32, has_time: bool) -> CampaignEnd {
        CampaignEnd::Decided {
            block,
            broken: self.broken.values().sum(),
            has_time,
        }
    }

    /// All starts were looked at.
    fn end(&self) -> CampaignEnd {
        match self.has_time {
            true => CampaignEnd::of_broken(self.broken.values().sum()),
            false => self.decided(self.last_start, false),
        }
    }
}

/// A start of the schedule, with what earlier runs of the campaign did of it.
struct Scheduled<'a, 'd> {
    number: u32,
    trials: Vec<&'a ScheduledTrial>,
    attempts: Vec<&'d TrialRecord>,
}

impl<'a, 'd> Scheduled<'a, 'd> {
    fn of(number: u32, schedule: &'a [ScheduledTrial], done: &'d [TrialRecord]) -> Self {
        let trials = schedule.iter().filter(|trial| trial.block == number);
        let trials: Vec<&ScheduledTrial> = trials.collect();
        let is_of_it =
            |record: &&TrialRecord| trials.iter().any(|trial| trial.number == record.number);
        Self {
            number,
            attempts: done.iter().filter(is_of_it).collect(),
            trials,
        }
    }

    /// Whether all candidates went through one attempt: those that were not up together are no
    /// pairs.
    fn is_complete(&self) -> bool {
        self.complete_attempt().is_some()
    }

    fn complete_attempt(&self) -> Option<u32> {
        complete_attempt(self.trials.len(), self.attempts.iter().copied())
    }

    fn of_attempt(&self, attempt: u32) -> impl Iterator<Item = &&'d TrialRecord> {
        let attempts = self.attempts.iter();
        attempts.filter(move |record| record.attempt == attempt)
    }

    fn next_attempt(&self) -> u32 {
        let attempts = self.attempts.iter().map(|record| record.attempt);
        attempts.max().unwrap_or(0) + 1
    }

    /// How many trials of its last attempt broke; none if it never began, was interrupted, or is
    /// complete.
    fn broken(&self) -> Option<usize> {
        let last = self.of_attempt(self.next_attempt() - 1);
        let is_broken = |record: &&&TrialRecord| !record.is_complete() && !was_stopped(record);
        let broken = last.filter(is_broken).count();
        (broken > 0 && !self.is_complete()).then_some(broken)
    }

    /// Whether files of an attempt are damaged, or were removed because they are.
    fn is_damaged(&self) -> bool {
        let is_damaged = self.attempts.iter().any(|record| record.damage.is_some());
        let last = self.of_attempt(self.next_attempt() - 1).count();
        is_damaged || (last > 0 && last < self.trials.len())
    }

    /// What its first attempt was to run, in order, which another one repeats whole; empty if it
    /// has none, or of earlier versions.
    fn steps(&self) -> &'d [String] {
        let mut starts = self.attempts.iter().filter_map(|record| record.start());
        starts.next().map_or(&[], |start| &start.steps)
    }

    /// How long a complete one took.
    fn took(&self) -> Option<Duration> {
        let attempt = self.complete_attempt()?;
        let spans = self.of_attempt(attempt);
        let spans = spans.filter_map(|record| span(&record.events));
        Some(Duration::from_nanos(covered(spans.collect())))
    }
}

/// Whether the user ended a trial.
fn was_stopped(record: &TrialRecord) -> bool {
    record
        .events
        .iter()
        .any(|stamped| matches!(&stamped.event, Event::TrialFailed(failed) if failed.interrupted))
}

/// Why a campaign with a budget ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetEnd {
    /// Nothing is left to measure.
    Done,
    NoTime,
}

/// Whether a campaign with a budget ends behind this start. What has been reached is reported.
fn end_behind(
    run: &mut CampaignRun<'_, '_>,
    workload: &Workload,
    watch: &mut BudgetWatch<'_>,
    start: u32,
) -> Option<BudgetEnd> {
    let campaign = run.runner.campaign;
    let settled = run.observer.settled(campaign);
    let summary = watch.look(campaign, workload, start, settled.as_ref());
    let is_done = watch.is_done();
    let open = watch.open_steps(workload);
    let no_time = watch.why_no_time(&open, start).filter(|_| !is_done);
    for line in summary.iter().chain(&no_time) {
        run.observer.notice(Notice::Remark(line));
    }
    match is_done {
        true => Some(BudgetEnd::Done),
        false => no_time.map(|_| BudgetEnd::NoTime),
    }
}

/// How long earlier runs of the campaign took: what its trials cover together, the making of the
/// data that they began with, and what is between them.
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

/// A campaign that is silent for longer, in nanoseconds, is taken not to have been running: between
/// two starts it copies data, which is in no event and mostly takes less.
const SILENT_NS: u64 = 10_000_000_000;

/// How much these spans of time cover together, with the short breaks between them.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let Some((first, _)) = spans.first() else {
        return 0;
    };
    let mut until = *first;
    let new = spans.into_iter().map(|(from, to)| {
        let is_silent = from.saturating_sub(until) > SILENT_NS;
        let new = to.saturating_sub(if is_silent { from } else { until });
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

/// The last start that a trial of was complete; 0 without one.
fn last_start(all: &[Scheduled<'_, '_>]) -> u32 {
    let has_one =
        |start: &&Scheduled<'_, '_>| start.attempts.iter().any(|record| record.is_complete());
    let last = all.iter().rfind(has_one);
    last.map_or(0, |start| start.number)
}

#[cfg(test)]
mod tests {
    use plimsoll_core::schedule::schedule;

    use super::*;
    use crate::sample_trials::{DONE, started, stopped};

    /// A start of two trials, by their ends in its attempts: not begun, cut off, stopped, done.
    fn with_attempts(attempts: &[[&str; 2]], check: impl Fn(&Scheduled<'_, '_>)) {
        let schedule = schedule(2, 1, 7);
        let mut done = Vec::new();
        for (attempt, ends) in (1..).zip(attempts) {
            for (of, end) in schedule.iter().zip(ends) {
                let events = match *end {
                    "done" => vec![DONE],
                    "stopped" => vec![stopped()],
                    "cut off" => Vec::new(),
                    _ => continue,
                };
                done.push(started(of.number, attempt, None, &events));
            }
        }
        check(&Scheduled::of(1, &schedule, &done));
    }

    #[test]
    fn a_start_is_complete_if_all_of_one_attempt_are() {
        for (attempts, is_complete, broken, is_damaged) in [
            (&[][..], false, None, false),
            (&[["done", "done"]], true, None, false),
            (&[["done", "cut off"]], false, Some(1), false),
            // Each was complete once, and never both.
            (
                &[["done", "cut off"], ["cut off", "done"]],
                false,
                Some(1),
                false,
            ),
            (&[["done", "cut off"], ["done", "done"]], true, None, false),
            (
                &[["done", "done"], ["cut off", "cut off"]],
                true,
                None,
                false,
            ),
            // Nothing broke: the user stopped it.
            (&[["stopped", "stopped"]], false, None, false),
            (
                &[["done", "cut off"], ["stopped", "stopped"]],
                false,
                None,
                false,
            ),
            // A folder that was removed, because files of it were damaged.
            (&[["done", "gone"]], false, None, true),
        ] {
            with_attempts(attempts, |start| {
                let found = (start.is_complete(), start.broken(), start.is_damaged());
                assert_eq!(found, (is_complete, broken, is_damaged), "{attempts:?}");
                assert_eq!(start.next_attempt() as usize, attempts.len() + 1);
                let steps = start.steps().first().map(String::as_str);
                assert_eq!(steps, (!attempts.is_empty()).then_some("point-query"));
            });
        }
    }

    /// Only complete trials counted, one start after the other: loads, and starts that broke, were
    /// free in a campaign that went on.
    #[test]
    fn time_is_counted_once_whatever_covers_it() {
        assert_eq!(covered(Vec::new()), 0);
        // Two trials of a start side by side, and a load before it.
        assert_eq!(covered(vec![(10, 20), (12, 25), (0, 10)]), 25);
        // One within another, and a break between runs.
        let later = 31 + SILENT_NS;
        assert_eq!(covered(vec![(0, 30), (5, 6), (later, later + 1)]), 31);
        // What comes between two starts is of the campaign, and a pause of its user is not.
        assert_eq!(covered(vec![(7, 30), (35, 40)]), 33);
        let s = 1_000_000_000;
        assert_eq!(covered(vec![(0, 22 * s), (59 * s, 62 * s)]), 25 * s);
    }
}
