//! From the schedule and the attempts at each trial to one result per cell, step, block and
//! attempt.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Operation, Step};
use plimsoll_core::readings::{HostReading, Readings};
use plimsoll_core::record::OperationRecord;
use plimsoll_core::schedule::{ScheduledTrial, Unit};
use plimsoll_core::witness::{Leakage, LimitsHere};
use plimsoll_store::event::{DrainDone, Event, ServerCrashed, ServerReady, StepDone, StepFailed};
use plimsoll_store::{
    CampaignRecord, CampaignState, Design, HostSeries, OperationSecond, StoreError, TrialRecord,
    Turn, continuing,
};

use crate::metrics::facts::LONGEST_STEP_S;
use crate::metrics::measure::measure;
use crate::metrics::{self, Measure, Metric};
use crate::runs::status::Status;
use crate::words::brief::telling_line;
use crate::words::reasons::FOREIGN;

/// A step of one attempt at one trial.
pub(crate) struct Run<'a> {
    pub step: &'a Step,
    /// The block, or the part of one: what runs on one machine.
    pub unit: Unit,
    pub trial: u32,
    /// 0 when the trial never started.
    pub attempt: u32,
    /// Whether tables are made from this attempt.
    pub is_used: bool,
    pub status: Status,
    pub reason: Option<String>,
    /// Whether it says nothing, because of what a witness saw: by slices one-sided leakage, by
    /// blocks a canary before the trial that was far slower than usual.
    pub is_void: bool,
    /// The share of the machine that others took meanwhile, see [`taken`].
    pub taken: f64,
    /// When the machine counts as disturbed.
    pub limits: LimitsHere,
    /// What the server left, in the step it crashed in.
    pub crash: Option<&'a ServerCrashed>,
    pub record: Option<&'a TrialRecord>,
    pub done: Option<&'a StepDone>,
    pub operations: &'a [OperationRecord],
    pub series: Result<Vec<OperationSecond>, String>,
    pub host: Result<HostSeries, String>,
    pub measures: Vec<Measure>,
}

/// When the campaign's machine counts as disturbed.
pub(crate) fn limits_of(campaign: &CampaignRecord) -> LimitsHere {
    let events = campaign.trials.iter().flat_map(|trial| &trial.events);
    let mut steps = events.filter_map(|stamped| match &stamped.event {
        Event::StepDone(done) => Some(&done.host),
        _ => None,
    });
    let cpus = steps.find_map(|host| host.value(HostReading::Cpus));
    campaign.header.plan.limits.on(cpus)
}

/// Every run of one cell of the plan, by step, block and attempt.
pub(crate) fn runs_of_cell(campaign: &CampaignRecord, cell: usize) -> Vec<Run<'_>> {
    let plan = &campaign.header.plan;
    let steps = plan.cells[cell].workload.steps();
    let has_budget = campaign.header.budget().is_some();
    let confirm = campaign.header.confirm.as_ref();
    let is_in_turns = confirm.is_some_and(|confirm| confirm.design == Design::Slices);
    let turns = match is_in_turns {
        true => TogetherUp::of(campaign),
        false => TogetherUp::default(),
    };
    let limits = limits_of(campaign);
    let mut runs = Vec::new();
    for trial in campaign
        .header
        .schedule
        .iter()
        .filter(|trial| trial.cell == cell)
    {
        let of_trial = plan.steps_of(cell, trial.part);
        let attempts: Vec<&TrialRecord> = campaign
            .trials
            .iter()
            .filter(|record| record.number == trial.number)
            .collect();
        let is_last_running = campaign.state == CampaignState::Running;
        let used = last_that_says_something(&attempts, is_last_running);
        for (index, record) in attempts.iter().enumerate() {
            let is_running = is_last_running && index + 1 == attempts.len();
            let attempt = Attempt {
                record,
                unit: trial.unit(),
                is_running,
                has_budget,
                is_in_turns,
                to_run: steps_of_start(campaign, trial, record),
                limits,
            };
            let counts = |step: &str| match turns.attempt(trial.unit(), step) {
                Some(number) if attempts.iter().any(|record| record.attempt == number) => {
                    record.attempt == number
                }
                _ => Some(index) == used,
            };
            runs.extend(runs_of_attempt(&attempt, &of_trial, counts));
        }
        if attempts.is_empty() {
            let reason = match campaign.state {
                CampaignState::Running => "it has not run yet".to_owned(),
                CampaignState::Decided => "it was not needed: all was decided before".to_owned(),
                _ => format!(
                    "the campaign broke off before it; `{}` finishes it",
                    continuing(campaign.header.fleet.as_ref(), &campaign.path)
                ),
            };
            let missing = |step| Run::missing(step, trial.unit(), trial.number, limits, &reason);
            runs.extend(of_trial.into_iter().map(missing));
        }
    }
    let position = |run: &Run<'_>| steps.iter().position(|step| step.name == run.step.name);
    runs.sort_by_key(|run| (position(run), run.unit, run.trial, run.attempt));
    runs
}

/// By start, step and attempt, how many candidates did the step.
#[derive(Default)]
struct TogetherUp<'a>(BTreeMap<(Unit, &'a str), BTreeMap<u32, usize>>);

impl<'a> TogetherUp<'a> {
    fn of(campaign: &'a CampaignRecord) -> Self {
        let schedule = campaign.header.schedule.iter();
        let units: BTreeMap<u32, Unit> = schedule.map(|of| (of.number, of.unit())).collect();
        let mut all = Self::default();
        for trial in &campaign.trials {
            let Some(unit) = units.get(&trial.number) else {
                continue;
            };
            for done in trial.steps_done() {
                let attempts = all.0.entry((*unit, &done.step)).or_default();
                *attempts.entry(trial.attempt).or_default() += 1;
            }
        }
        all
    }

    /// The attempt that counts of a step in a start, for all candidates: they are compared turn by
    /// turn, and have to have been up together. The one in which most of them did it, of those the
    /// last; none if nobody ever did.
    fn attempt(&self, unit: Unit, step: &str) -> Option<u32> {
        let attempts = self.0.get(&(unit, step))?;
        let most = attempts
            .iter()
            .max_by_key(|(attempt, done)| (**done, **attempt));
        most.map(|(attempt, _)| *attempt)
    }
}

/// The last complete attempt at a trial. Without one the one that runs, or the last that has a
/// reason for its end: what broke an earlier one is not forgotten because the next was interrupted
/// or died with its machine.
fn last_that_says_something(attempts: &[&TrialRecord], is_last_running: bool) -> Option<usize> {
    let last = |is_wanted: &dyn Fn(&TrialRecord) -> bool| {
        attempts.iter().rposition(|record| is_wanted(record))
    };
    let newest = attempts.len().checked_sub(1);
    last(&TrialRecord::is_complete)
        .or(newest.filter(|_| is_last_running))
        .or_else(|| last(&|record| record.damage.is_some() || Ending::of(record).has_reason()))
        .or(newest)
}

/// The engine of an attempt, once it was ready; as its last step had it where steps open it again.
pub(crate) fn server_ready(record: &TrialRecord) -> Option<&ServerReady> {
    record
        .events
        .iter()
        .rev()
        .find_map(|stamped| match &stamped.event {
            Event::ServerReady(ready) => Some(ready),
            _ => None,
        })
}

/// The drain after a step.
pub(crate) fn drain_after<'a>(record: &'a TrialRecord, step: &str) -> Option<&'a DrainDone> {
    record
        .events
        .iter()
        .find_map(|stamped| match &stamped.event {
            Event::DrainDone(drain) if drain.step == step => Some(drain),
            _ => None,
        })
}

impl<'a> Run<'a> {
    /// A metric's value, where the run has it.
    pub fn number(&self, metric: &str) -> Option<f64> {
        self.measures
            .iter()
            .find(|measure| measure.metric.name == metric)?
            .value
            .value
    }

    /// Whether both ran on one machine, as far as that is known.
    pub fn is_on_machine_of(&self, other: &Self) -> bool {
        let places = self.record.zip(other.record);
        places.is_none_or(|(a, b)| a.place().is_same_machine(&b.place()))
    }

    fn missing(step: &'a Step, unit: Unit, trial: u32, limits: LimitsHere, reason: &str) -> Self {
        Self {
            step,
            unit,
            trial,
            attempt: 0,
            is_used: true,
            status: Status::Missing,
            reason: Some(reason.to_owned()),
            is_void: false,
            taken: 0.0,
            limits,
            crash: None,
            record: None,
            done: None,
            operations: &[],
            series: Err("the step did not finish".to_owned()),
            host: Err("the step did not finish".to_owned()),
            measures: Vec::new(),
        }
    }

    fn damaged(step: &'a Step, trial: u32, limits: LimitsHere, damage: &str) -> Self {
        Self {
            status: Status::Damaged,
            ..Self::missing(step, Unit::default(), trial, limits, damage)
        }
    }

    fn finished(
        record: &'a TrialRecord,
        step: &'a Step,
        done: &'a StepDone,
        has_turns: bool,
        limits: LimitsHere,
    ) -> Self {
        let series = record
            .series_together(&step.name)
            .map_err(|error| unreadable(&error))
            .and_then(|rows| {
                let last = rows
                    .iter()
                    .map(|row| f64::from(row.second))
                    .reduce(f64::max);
                within(last, rows.len()).map(|()| rows)
            });
        let host = record
            .host_series(&step.name)
            .map_err(|error| unreadable(&error))
            .and_then(|host| {
                let seconds = host.column("second").into_iter().flatten().flatten();
                within(seconds.reduce(f64::max), host.rows.len()).map(|()| host)
            });
        // Turns that cannot be read would leave the whole step, most of which belongs to others.
        let turns = match record.turns(&step.name) {
            Ok(turns) => turns,
            Err(error) if has_turns || error.damage().is_some() => {
                let damage = error
                    .damage()
                    .unwrap_or_else(|| "its turns cannot be read".to_owned());
                let remedy = "remove its trial's folder, and `plimsoll resume` runs it again";
                let damage = format!("{damage}; {remedy}");
                return Self::damaged(step, record.number, limits, &damage);
            }
            Err(_) => Vec::new(),
        };
        let measures = measure(
            step.family(),
            done,
            series.as_deref().map_err(String::as_str),
            &turns,
        );
        let (status, reason) = judge(done, &measures, &turns, &limits);
        let is_void = leakage(&turns).above(limits.leak_cores).is_some();
        let run = Self::missing(step, Unit::default(), record.number, limits, "");
        Self {
            status,
            reason,
            is_void,
            taken: taken(&done.host),
            record: Some(record),
            done: Some(done),
            operations: &done.operations,
            series,
            host,
            measures,
            ..run
        }
    }
}

/// What a chart says in place of a series. The store's own message names a path, which does not
/// belong into a report.
fn unreadable(error: &StoreError) -> String {
    match error {
        StoreError::Corrupt { line, reason, .. } => {
            format!("its 1-s series cannot be read, line {line}: {reason}")
        }
        StoreError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            "it has no 1-s series".to_owned()
        }
        StoreError::Io { source, .. } => format!("its 1-s series cannot be read: {source}"),
        _ => "its 1-s series cannot be read".to_owned(),
    }
}

/// A row may be missing now and then: a look comes late, or nothing was done.
const SECONDS_PER_ROW: usize = 20;
const SECONDS_WITHOUT_ROWS: usize = 3600;

/// Whether a series has about as many rows as seconds. What is drawn of it has a place for each
/// second.
fn within(last_second: Option<f64>, rows: usize) -> Result<(), String> {
    let end = (SECONDS_PER_ROW * rows + SECONDS_WITHOUT_ROWS).min(LONGEST_STEP_S as usize);
    match last_second.filter(|last| !(0.0..=end as f64).contains(last)) {
        None => Ok(()),
        Some(last) => Err(format!(
            "its 1-s series cannot be read: it has second {last} and {rows} rows"
        )),
    }
}

/// A finished step is judged by its background rate and by what witnesses saw, never by its own
/// numbers. If it ran in turns, its own turns count and not the whole step, most of which
/// belongs to the other candidates.
pub(crate) fn judge(
    done: &StepDone,
    measures: &[Measure],
    turns: &[Turn],
    limits: &LimitsHere,
) -> (Status, Option<String>) {
    let above = |metric: &Metric, limit: f64| {
        let measure = measures
            .iter()
            .find(|measure| measure.metric.name == metric.name);
        measure
            .and_then(|measure| measure.value.value)
            .filter(|value| *value > limit)
    };
    let seconds = done.host.value(HostReading::Seconds).unwrap_or(f64::MAX);
    let cpu_s = done.host.value(HostReading::CpuTotal).unwrap_or(f64::MAX);
    let is_stolen = |share: &f64| limits.is_stolen(*share, cpu_s);
    let steal = above(metrics::STEAL_SHARE, limits.steal).filter(is_stolen);
    let steal = steal.map(|share| {
        format!(
            "other guests took {:.1} % of all CPU time (steal), more than {} %",
            share * 100.0,
            limits.steal_percent()
        )
    });
    let most = limits.foreign_cores;
    let tell = |cores: f64| format!("{FOREIGN}{cores:.2} cores, more than {most}");
    let foreign = match turns {
        [] => above(metrics::FOREIGN_CPU_CORES, most)
            .filter(|cores| limits.is_foreign(*cores, seconds))
            .map(tell),
        turns => foreign_cores_in_turns(turns)
            .filter(|cores| *cores > most)
            .map(tell),
    };
    let leaked = leakage(turns).above(limits.leak_cores);
    let leaked = leaked.map(|leakage| format!("{leakage}; use blocks"));
    let disturbed = steal
        .into_iter()
        .chain(foreign)
        .chain(leaked)
        .reduce(|steal, foreign| format!("{steal}; {foreign}"));
    match done.sla_missed {
        Some(share) => {
            let who = if done.primary == Operation::Query {
                "background writers"
            } else {
                "clients"
            };
            let missed = format!(
                "the {who} reached {:.1} % of their rate, less than 95 %",
                share * 100.0
            );
            (
                Status::SlaMissed,
                Some(
                    disturbed.map_or(missed.clone(), |disturbed| format!("{missed}; {disturbed}")),
                ),
            )
        }
        None if disturbed.is_some() => (Status::Suspect, disturbed),
        None => (Status::Ok, None),
    }
}

/// What engines did while it was not their turn.
fn leakage(turns: &[Turn]) -> Leakage {
    let mut leakage = Leakage::default();
    turns.iter().for_each(|turn| {
        leakage.add(
            turn.round,
            turn.active_ns,
            turn.other_servers_cpu_ns,
            turn.left_cpu_ns,
        )
    });
    leakage
}

/// The share of a step's work that others may have taken: with `S` the CPU time stolen by other
/// guests, `B` that in use here, and `F` that of processes which are not part of the campaign,
/// `S / (S + B) + F / all`. An idle CPU is not stolen, so the first is the share of what the step
/// would have had. 0 where the host reports nothing.
fn taken(host: &Readings) -> f64 {
    let share = || {
        let of = |reading| host.value(reading);
        let (total, stolen) = (of(HostReading::CpuTotal)?, of(HostReading::CpuSteal)?);
        let idle = of(HostReading::CpuIdle)? + of(HostReading::CpuIowait)?;
        let busy = total - idle - stolen;
        let foreign = busy - host.cpu().map_or(busy, |cpu| cpu.total());
        let share = stolen / (stolen + busy) + foreign.max(0.0) / total;
        Some(share).filter(|share| share.is_finite())
    };
    share().unwrap_or(0.0)
}

/// CPU that other processes used during turns, in cores, where it is known.
fn foreign_cores_in_turns(turns: &[Turn]) -> Option<f64> {
    let known = turns.iter().filter_map(|turn| {
        Some((
            turn.foreign_cpu_ns?,
            turn.length_ns.unwrap_or(turn.active_ns),
        ))
    });
    let (used_ns, length_ns) = known.fold((0.0, 0), |(used_ns, length_ns), (used, length)| {
        (used_ns + used as f64, length_ns + length)
    });
    (length_ns > 0).then(|| used_ns / length_ns as f64)
}

/// What a watchdog says begins so: see `StepFailed::reason`.
fn is_hang(reason: &str) -> bool {
    reason.starts_with("hung")
}

/// How an attempt ended that did not go through.
struct Ending<'a> {
    done: BTreeMap<&'a str, &'a StepDone>,
    failed: BTreeMap<&'a str, &'a StepFailed>,
    started: Vec<&'a str>,
    crashed: Option<&'a ServerCrashed>,
    ended: Option<(&'a str, bool)>,
    suspect: Option<&'a str>,
}

impl<'a> Ending<'a> {
    fn of(record: &'a TrialRecord) -> Self {
        let mut ending = Self {
            done: BTreeMap::new(),
            failed: BTreeMap::new(),
            started: Vec::new(),
            crashed: None,
            ended: None,
            suspect: None,
        };
        for stamped in &record.events {
            match &stamped.event {
                Event::StepStart(start) => ending.started.push(&start.step),
                Event::StepDone(done) => {
                    ending.done.insert(&done.step, done);
                }
                Event::StepFailed(failed) => {
                    ending.failed.insert(&failed.step, failed);
                }
                Event::ServerCrashed(crashed) => ending.crashed = Some(crashed),
                Event::TrialFailed(failed) => {
                    ending.ended = Some((&failed.reason, failed.interrupted))
                }
                Event::Suspect(suspect) => ending.suspect = Some(&suspect.reason),
                Event::TrialStart(_)
                | Event::ServerReady(_)
                | Event::Canary(_)
                | Event::DrainDone(_)
                | Event::TrialDone(_) => {}
            }
        }
        ending
    }

    /// The steps in the order in which the trial ran them, and behind them those that it would have
    /// run, which by slices is not that of the plan.
    fn in_order(&self, steps: &[&'a Step], attempt: &Attempt<'_>) -> Vec<&'a Step> {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| {
            let began = self.started.iter().position(|name| *name == step.name);
            let planned = attempt.to_run.iter().position(|name| *name == step.name);
            let is_late = attempt.is_in_turns && step.is_late_in_turns();
            let [began, planned] = [began, planned].map(|place| place.unwrap_or(usize::MAX));
            (began, planned, is_late)
        });
        steps
    }

    /// Whether a step was begun at least.
    fn reached(&self, step: &str) -> bool {
        self.started.contains(&step)
            || self.done.contains_key(step)
            || self.failed.contains_key(step)
    }

    /// Whether it is known what it ended of, and that was not the user.
    fn has_reason(&self) -> bool {
        let has_one = self.crashed.is_some() || self.ended.is_some() || !self.failed.is_empty();
        has_one && !self.is_interrupted()
    }

    fn is_interrupted(&self) -> bool {
        self.ended.is_some_and(|(_, is_interrupted)| is_interrupted)
    }

    /// Status and reason of the first step that is neither done nor failed.
    fn of_first_open_step(&self, step: &str, is_running: bool) -> (Status, String) {
        if let Some(crashed) = self.crashed {
            let reason = match telling_line(&crashed.log_tail) {
                Some(line) => format!("{}; its log says: {line}", crashed.status),
                None => crashed.status.clone(),
            };
            return (
                if is_hang(&crashed.status) {
                    Status::Hung
                } else {
                    Status::Crashed
                },
                reason,
            );
        }
        if let Some((reason, is_interrupted)) = self.ended {
            let status = if is_interrupted {
                Status::Missing
            } else if is_hang(reason) {
                Status::Hung
            } else {
                Status::Failed
            };
            return (status, reason.to_owned());
        }
        let reason = match (is_running, self.started.contains(&step)) {
            (true, true) => "it is running now",
            (true, false) => "it has not run yet",
            (false, true) => "the trial broke off in this step",
            (false, false) => "the trial broke off before this step",
        };
        (Status::Missing, reason.to_owned())
    }
}

/// An attempt at a trial, and what its campaign makes of it.
struct Attempt<'a> {
    record: &'a TrialRecord,
    unit: Unit,
    is_running: bool,
    /// Whether steps leave the campaign when they have been measured enough.
    has_budget: bool,
    /// Whether its steps are done in turns, if they can be.
    is_in_turns: bool,
    /// See [`steps_of_start`].
    to_run: &'a [String],
    limits: LimitsHere,
}

impl Attempt<'_> {
    /// Whether it was to run a step: a start leaves out what had been measured enough before.
    fn was_to_run(&self, step: &str) -> bool {
        self.to_run.is_empty() || self.to_run.iter().any(|name| name == step)
    }
}

/// The steps that an attempt at a start by slices was to run, in their order; empty where no trial
/// says so. One that did not come so far was to run what the others were.
fn steps_of_start<'a>(
    campaign: &'a CampaignRecord,
    trial: &ScheduledTrial,
    record: &'a TrialRecord,
) -> &'a [String] {
    let is_of_start = |other: &&TrialRecord| {
        let mut schedule = campaign.header.schedule.iter();
        let of = schedule.find(|of| of.number == other.number);
        other.attempt == record.attempt && of.is_some_and(|of| of.unit() == trial.unit())
    };
    let mut all = [record]
        .into_iter()
        .chain(campaign.trials.iter().filter(is_of_start));
    all.find_map(|trial| trial.start())
        .map_or(&[], |start| &start.steps)
}

/// What the steps behind a first open one have as their reason.
fn why_not_reached(status: Status, name: &str, is_running: bool, reason: &str) -> String {
    match status {
        Status::Crashed => format!("not reached: the trial crashed in or before {name}"),
        Status::Hung => format!("not reached: the trial hung in or before {name}"),
        Status::Failed => format!("not reached: the trial failed in or before {name}"),
        _ if is_running => "it has not run yet".to_owned(),
        _ => reason.replace("in this step", "before this step"),
    }
}

/// One run per step whose tables are made from this attempt; of others only what finished or broke.
fn runs_of_attempt<'a>(
    attempt: &Attempt<'a>,
    steps: &[&'a Step],
    counts: impl Fn(&str) -> bool,
) -> Vec<Run<'a>> {
    let Attempt {
        record,
        unit,
        is_running,
        has_budget,
        is_in_turns,
        limits,
        ..
    } = *attempt;
    let ending = Ending::of(record);
    let steps = ending.in_order(steps, attempt);
    // Once a step did not finish, the steps after it have that as their reason.
    let mut cause: Option<String> = None;
    // Whether a step's own readings say why the trial is suspect. Else its canary did, and nobody
    // knows by how much it is wrong.
    let mut is_explained = false;
    let mut runs = Vec::new();
    for step in steps {
        let name = step.name.as_str();
        if !attempt.was_to_run(name) && !ending.reached(name) {
            continue;
        }
        let missing = |reason: &str| Run::missing(step, unit, record.number, limits, reason);
        let mut run = if let Some(damage) = &record.damage {
            let damage = format!("{damage}; `plimsoll resume` runs the trial again");
            Run::damaged(step, record.number, limits, &damage)
        } else if let Some(done) = ending.done.get(name) {
            let has_turns = is_in_turns && step.can_take_turns();
            let run = Run::finished(record, step, done, has_turns, limits);
            is_explained |= run.status == Status::Suspect;
            match ending.suspect.filter(|_| run.status == Status::Ok) {
                Some(reason) => Run {
                    status: Status::Suspect,
                    reason: Some(reason.to_owned()),
                    ..run
                },
                None => run,
            }
        } else if let Some(failed) = ending.failed.get(name) {
            // A step that the user ended says nothing about the engine.
            let (status, what) = if ending.is_interrupted() {
                (Status::Missing, "was interrupted")
            } else if is_hang(&failed.reason) {
                (Status::Hung, "hung")
            } else {
                (Status::Failed, "failed")
            };
            cause.get_or_insert_with(|| format!("not reached: {name} {what} before it"));
            let run = missing(&failed.reason);
            Run {
                status,
                operations: &failed.operations,
                ..run
            }
        } else if let Some(cause) = &cause {
            missing(cause)
        } else if record.is_complete() && has_budget {
            // Of earlier versions, which do not say what a trial was to run.
            continue;
        } else if record.is_complete() {
            missing("the trial left it out")
        } else {
            let (status, reason) = ending.of_first_open_step(name, is_running);
            cause = Some(why_not_reached(status, name, is_running, &reason));
            let crash = ending
                .crashed
                .filter(|_| matches!(status, Status::Crashed | Status::Hung));
            Run {
                status,
                crash,
                ..missing(&reason)
            }
        };
        run.record = Some(record);
        run.unit = unit;
        run.attempt = record.attempt;
        run.is_used = counts(name);
        // An attempt that was replaced is listed for what it did, not for what it left out.
        if run.is_used || run.status != Status::Missing {
            runs.push(run);
        }
    }
    if ending.suspect.is_some() && !is_explained {
        runs.iter_mut().for_each(|run| run.is_void = true);
    }
    runs
}

#[cfg(test)]
mod tests {
    use plimsoll_store::Stamped;
    use plimsoll_store::event::{TrialDone, TrialFailed};

    use super::*;

    fn attempt_with(events: &[Event]) -> TrialRecord {
        let stamped = |event: &Event| Stamped {
            seq: 1,
            t_ns: 0,
            event: event.clone(),
        };
        TrialRecord {
            number: 1,
            attempt: 1,
            dir: "d".into(),
            events: events.iter().map(stamped).collect(),
            is_torn: false,
            environment: None,
            damage: None,
        }
    }

    /// A crash was forgotten when the next attempt was interrupted, or died with its machine.
    #[test]
    fn what_broke_a_trial_is_not_forgotten_for_an_attempt_that_says_nothing() {
        let failed = |reason: &str, interrupted| {
            let reason = reason.to_owned();
            attempt_with(&[Event::TrialFailed(TrialFailed {
                reason,
                interrupted,
            })])
        };
        let broke = failed("the trial's process died", false);
        let stopped = failed("interrupted", true);
        let cut_off = attempt_with(&[]);
        let done = attempt_with(&[Event::TrialDone(TrialDone {
            seconds: 1.0,
            stop_problem: None,
        })]);
        for (attempts, is_running, used) in [
            (vec![], false, None),
            (vec![&broke, &stopped], false, Some(0)),
            (vec![&broke, &cut_off], false, Some(0)),
            (vec![&broke, &cut_off], true, Some(1)),
            (vec![&stopped, &broke], false, Some(1)),
            (vec![&stopped, &cut_off], false, Some(1)),
            (vec![&broke, &done, &cut_off], false, Some(1)),
        ] {
            let found = last_that_says_something(&attempts, is_running);
            assert_eq!(found, used, "{attempts:?}");
        }
    }

    #[test]
    fn a_series_has_about_as_many_rows_as_seconds() {
        let day = 86_400;
        for (last, rows, is_fine) in [
            (None, 0, true),
            (Some(0.0), 1, true),
            // Looks may come late for hours.
            (Some(3_000.0), 1, true),
            (Some(f64::from(2 * day)), 2 * day as usize, true),
            (Some(f64::from(2 * day)), day as usize / 10, true),
            (Some(f64::from(2 * day)), 2, false),
            (Some(4_000_001.0), 5_000_000, false),
            (Some(-1.0), 5, false),
        ] {
            assert_eq!(within(last, rows).is_ok(), is_fine, "{last:?} {rows}");
        }
    }
}
