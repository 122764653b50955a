//! Slices: all servers of a start are up at once, and turns go from one to the next.

mod order;
mod rounds;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use plimsoll_core::plan::{Cell, Step};
use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_core::units::format_duration_ns;
use plimsoll_host::directory_bytes;
use plimsoll_load::Patience;
use plimsoll_store::{Confirm, TrialRecord, seal};

use self::order::order_of_round;
use self::rounds::Rounds;
use super::states::States;
use crate::error::LabError;
use crate::message::{Direction, STOP, TrialMessage, TurnDone, TurnOrder};
use crate::observer::{CampaignEnd, Notice, Observer, StepTurns, TurnsProgress};
use crate::trial_process::{
    END_LIMIT, Runner, STOP_PATIENCE, TrialProcess, remove_data, write_trial_failed,
};

/// Each candidate's first turn of a step, which is not recorded.
const WARM_UP_NS: u64 = 500_000_000;
/// What counts of a turn begins behind its first tenth, unless operations are longer than that.
const DISCARDED: u64 = 10;
/// Servers must be up, data read and workers connected by then; the data takes its own time on top.
const READY_LIMIT: Duration = Duration::from_secs(300);
/// No machine is expected to read and check data more slowly than this, in bytes per second.
const SLOWEST_READ: u64 = 4 << 20;
/// Whoever is awaited for so long is named, and again after as long.
const AWAITED: Duration = Duration::from_secs(10);
/// A turn's report may be so late, beside what the trial itself waits for a worker in an operation.
const REPORT_PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// Runs the starts that are not complete yet, each whole: candidates that were not up together are
/// no pairs.
pub(crate) fn run_starts(
    runner: &Runner<'_>,
    done: &[TrialRecord],
    states: &mut States<'_>,
    campaign_data: &Path,
    observer: &mut dyn Observer,
) -> Result<CampaignEnd, LabError> {
    let header = &runner.campaign.header;
    let Some(confirm) = &header.confirm else {
        return Ok(CampaignEnd::Complete);
    };
    let mut broken = 0;
    let starts = confirm.starts.unwrap_or(1);
    for start in 1..=starts {
        let trials: Vec<&ScheduledTrial> = header
            .schedule
            .iter()
            .filter(|trial| trial.block == start)
            .collect();
        let attempts: Vec<&TrialRecord> = done
            .iter()
            .filter(|record| trials.iter().any(|trial| trial.number == record.number))
            .collect();
        let is_complete = |trial: &&ScheduledTrial| {
            attempts
                .iter()
                .any(|record| record.number == trial.number && record.is_complete())
        };
        if trials.iter().all(is_complete) {
            continue;
        }
        let attempt = attempts
            .iter()
            .map(|record| record.attempt)
            .max()
            .unwrap_or(0)
            + 1;
        let cells: Vec<&Cell> = trials.iter().map(|trial| runner.cell(trial.cell)).collect();
        observer.notice(Notice::StartBegins {
            start,
            starts,
            cells: &cells,
            attempt,
        });
        let mut stage = Stage::set(
            runner,
            confirm,
            start,
            &trials,
            attempt,
            states,
            campaign_data,
            observer,
        )?;
        stage.run_steps();
        broken += stage.strike()?;
        if observer.stop_requests().load(Ordering::SeqCst) > 0 {
            return Ok(CampaignEnd::Interrupted);
        }
        if start < starts && observer.is_enough(runner.campaign, start) {
            return Ok(CampaignEnd::Decided { block: start });
        }
    }
    Ok(if broken == 0 {
        CampaignEnd::Complete
    } else {
        CampaignEnd::Incomplete { broken }
    })
}

/// One candidate of a start.
struct Candidate<'a> {
    cell: &'a Cell,
    data_dir: PathBuf,
    /// None for one that could not start.
    process: Option<TrialProcess>,
    /// The step it is ready for.
    ready: Option<String>,
    /// Its server's processes.
    servers: Vec<u32>,
    /// Its output has ended: it is out, or done.
    is_out: bool,
    /// Why it is out, as far as it is known here.
    reason: Option<String>,
}

/// Who a message is from, and what it says; nothing at the end of its output.
type Heard = (usize, Option<TrialMessage>);

/// All candidates of a start.
struct Stage<'a, 'o> {
    confirm: &'a Confirm,
    seed: u64,
    watchdog: Duration,
    /// Of the candidate that has the most.
    data_bytes: u64,
    start: u32,
    starts: u32,
    steps: &'a [Step],
    candidates: Vec<Candidate<'a>>,
    base: usize,
    control: usize,
    inbox: Receiver<Heard>,
    observer: &'o mut dyn Observer,
    asked_at: Option<Instant>,
    last_progress: Instant,
    /// When it began, the making of the data left out: the next start has it.
    began: Instant,
    /// So long it took until the first step began.
    setup: Duration,
}

impl<'a, 'o> Stage<'a, 'o> {
    /// Copies the data and starts all trials. Whoever cannot start is out.
    #[expect(
        clippy::too_many_arguments,
        reason = "the one place where everything meets"
    )]
    fn set(
        runner: &Runner<'a>,
        confirm: &'a Confirm,
        start: u32,
        trials: &[&'a ScheduledTrial],
        attempt: u32,
        states: &mut States<'_>,
        campaign_data: &Path,
        observer: &'o mut dyn Observer,
    ) -> Result<Self, LabError> {
        let header = &runner.campaign.header;
        let (began, made_before) = (Instant::now(), states.making());
        let (sender, inbox) = channel();
        let mut candidates = Vec::new();
        let mut orders = Vec::new();
        for trial in trials {
            let cell = &header.plan.cells[trial.cell];
            let data_dir = campaign_data.join(format!("{}-a{attempt}", trial.number));
            let is_stopped = observer.stop_requests().load(Ordering::SeqCst) > 0;
            let restored = if is_stopped {
                Err("interrupted".to_owned())
            } else {
                states.restore(trial.cell, &data_dir, observer)?
            };
            let dir = runner.make_dir(trial, attempt)?;
            let order = restored.and_then(|()| runner.order(trial, attempt, &dir, &data_dir));
            let is_stopped = observer.stop_requests().load(Ordering::SeqCst) > 0;
            let reason = order.as_ref().err().cloned();
            if let Some(reason) = &reason {
                write_trial_failed(&dir, reason, is_stopped)?;
                seal(&dir)?;
            }
            orders.push(order.ok());
            candidates.push(Candidate {
                cell,
                data_dir,
                process: None,
                ready: None,
                servers: Vec::new(),
                is_out: reason.is_some(),
                reason,
            });
        }
        let data_bytes = candidates
            .iter()
            .filter_map(|candidate| directory_bytes(&candidate.data_dir).ok())
            .max()
            .unwrap_or(0);
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
        let (base, control) = (position(&confirm.base), position(&confirm.control));
        Ok(Self {
            confirm,
            seed: header.seed,
            watchdog: Duration::from_nanos(header.plan.watchdog_ns),
            data_bytes,
            start,
            starts: confirm.starts.unwrap_or(1),
            steps: candidates[base].cell.workload.steps(),
            candidates,
            base,
            control,
            inbox,
            observer,
            asked_at: None,
            last_progress: Instant::now(),
            began: began + (states.making() - made_before),
            setup: Duration::ZERO,
        })
    }

    /// All steps, as long as there is a base and somebody to hold against it.
    fn run_steps(&mut self) {
        for index in 0..self.steps.len() {
            let step = &self.steps[index];
            if !self.wait_until_ready(&step.name) || !self.can_go_on() {
                break;
            }
            if index == 0 {
                self.setup = self.began.elapsed();
            }
            self.introduce();
            self.run_step(index, step);
            self.tell_all(&Direction::Finish);
            self.candidates
                .iter_mut()
                .for_each(|candidate| candidate.ready = None);
            if !self.can_go_on() {
                break;
            }
        }
        if !self.can_go_on() {
            if self.observer.stop_requests().load(Ordering::SeqCst) == 0 {
                let why = "stopped: the base is out, or nobody is left to be held against it";
                let left = self
                    .candidates
                    .iter_mut()
                    .filter(|candidate| !candidate.is_out);
                left.for_each(|candidate| candidate.reason = Some(why.to_owned()));
            }
            self.stop();
        }
        self.wait("end", |candidate| candidate.is_out);
    }

    fn can_go_on(&self) -> bool {
        let others = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(index, candidate)| *index != self.base && !candidate.is_out);
        self.asked_at.is_none() && !self.candidates[self.base].is_out && others.count() > 0
    }

    fn wait_until_ready(&mut self, step: &str) -> bool {
        let what = format!("be ready for {step}");
        let is_ready = |candidate: &Candidate<'_>| {
            candidate.is_out || candidate.ready.as_deref() == Some(step)
        };
        self.wait(&what, is_ready)
    }

    /// How long a candidate may take to start its server, to check and read its data, and to
    /// connect.
    fn ready_limit(&self) -> Duration {
        READY_LIMIT + self.watchdog + Duration::from_secs(self.data_bytes / SLOWEST_READ)
    }

    /// Tells everybody who the others are.
    fn introduce(&mut self) {
        let present: Vec<usize> = (0..self.candidates.len())
            .filter(|&index| !self.candidates[index].is_out)
            .collect();
        for &index in &present {
            let others = || {
                present
                    .iter()
                    .filter(move |&&other| other != index)
                    .map(|&other| &self.candidates[other])
            };
            let servers: Vec<u32> = others()
                .flat_map(|other| other.servers.iter().copied())
                .collect();
            let clients = others()
                .filter_map(|other| other.process.as_ref().map(TrialProcess::pid))
                .filter(|pid| !servers.contains(pid));
            let others = clients.chain([std::process::id()]).collect();
            let peers = Direction::Peers { servers, others };
            self.tell(index, &peers);
        }
    }

    fn run_step(&mut self, index: usize, step: &Step) {
        let is_writing = step.is_writing();
        let length_ns = if is_writing {
            self.confirm.turn_ns_write
        } else {
            self.confirm.turn_ns_read
        };
        let limit = Duration::from_nanos(self.confirm.time_ns / u64::from(self.starts));
        let mut longest_operation_ns = 0;
        for candidate in order_of_round(self.candidates.len(), self.seed, &step.name, self.start, 1)
        {
            let warmed = self.turn(
                candidate,
                TurnOrder {
                    round: 0,
                    position: 0,
                    length_ns: WARM_UP_NS,
                    discarded_ns: 0,
                },
            );
            let operation_ns = warmed.map_or(0, |turn| turn.operation_ns.unwrap_or(WARM_UP_NS));
            longest_operation_ns = longest_operation_ns.max(operation_ns);
        }
        // The same for all of them, and not by what a turn brings: otherwise turns with long
        // operations would be counted in another way than those without.
        let tenth_ns = length_ns / DISCARDED;
        let discarded_ns = if longest_operation_ns <= tenth_ns {
            tenth_ns
        } else {
            0
        };
        let mut rounds = Rounds::new(
            self.candidates.len(),
            self.base,
            self.control,
            is_writing,
            self.starts,
        );
        let begin = Instant::now();
        let mut round = 0;
        let mut until = limit;
        let mut is_repeated = false;
        loop {
            while self.can_go_on() && begin.elapsed() < until {
                round += 1;
                self.round(round, step, (length_ns, discarded_ns), &mut rounds);
                rounds.look();
                self.show(index, step, round, begin.elapsed(), until, &rounds);
                if !is_repeated && rounds.are_enough() {
                    break;
                }
            }
            // One repetition of what there was: the pairs of both count.
            if is_repeated || !self.can_go_on() || rounds.control_holds() != Some(false) {
                break;
            }
            is_repeated = true;
            until = begin.elapsed() * 2;
        }
        let turns = self.sum_up(step, round, begin.elapsed(), is_repeated, &rounds);
        self.observer.notice(Notice::StepTurns(&turns));
    }

    fn round(
        &mut self,
        round: u32,
        step: &Step,
        (length_ns, discarded_ns): (u64, u64),
        rounds: &mut Rounds,
    ) {
        let order = order_of_round(
            self.candidates.len(),
            self.seed,
            &step.name,
            self.start,
            round,
        );
        for (position, candidate) in (1..).zip(order) {
            let turn = self.turn(
                candidate,
                TurnOrder {
                    round,
                    position,
                    length_ns,
                    discarded_ns,
                },
            );
            rounds.book(candidate, turn);
        }
    }

    /// One turn; none from whoever is out, or goes out now.
    fn turn(&mut self, candidate: usize, order: TurnOrder) -> Option<TurnDone> {
        if self.candidates[candidate].is_out || self.asked_at.is_some() {
            return None;
        }
        self.tell(candidate, &Direction::Turn(order));
        let mut patience =
            Patience::new(Duration::from_nanos(order.length_ns) + self.watchdog + REPORT_PATIENCE);
        while !self.candidates[candidate].is_out && self.asked_at.is_none() {
            if let Some((from, TrialMessage::TurnDone(done))) = self.hear()
                && from == candidate
                && done.round == order.round
            {
                if let Some(servers) = &done.new_servers {
                    self.candidates[candidate].servers.clone_from(servers);
                    self.introduce();
                }
                return Some(done);
            }
            if patience.is_over() {
                self.end(candidate, "its turn did not end");
            }
        }
        None
    }

    fn show(
        &mut self,
        index: usize,
        step: &Step,
        round: u32,
        elapsed: Duration,
        until: Duration,
        rounds: &Rounds,
    ) {
        if self.last_progress.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.last_progress = Instant::now();
        let (elapsed_s, limit_s) = (elapsed.as_secs_f64(), until.as_secs_f64());
        let per_step_s = self.confirm.time_ns as f64 / 1e9 / f64::from(self.starts);
        let starts_left = self.starts - self.start;
        let steps_left = self.steps.len() - index - 1 + self.steps.len() * starts_left as usize;
        let progress = TurnsProgress {
            step: step.name.clone(),
            index: index + 1,
            steps: self.steps.len(),
            start: self.start,
            starts: self.starts,
            rounds: round,
            elapsed_s,
            limit_s,
            half_width: rounds.half_width(),
            eta_s: (limit_s - elapsed_s).max(0.0)
                + per_step_s * steps_left as f64
                + self.setup.as_secs_f64() * f64::from(starts_left),
        };
        self.observer.notice(Notice::Turns(&progress));
    }

    fn sum_up(
        &self,
        step: &Step,
        round: u32,
        elapsed: Duration,
        is_repeated: bool,
        rounds: &Rounds,
    ) -> StepTurns {
        let others = (0..self.candidates.len()).filter(|&index| index != self.base);
        let mut warnings = Vec::new();
        if is_repeated {
            let now = if rounds.control_holds() == Some(false) {
                "and it still does not"
            } else {
                "and now it does"
            };
            warnings.push(format!(
                "the A/A control's 99 % interval did not hold 1; the rounds were repeated, {now}"
            ));
        }
        warnings.extend(rounds.leaks().map(|(candidate, leakage)| {
            let label = &self.candidates[candidate].cell.label;
            let of_base = if candidate == self.base {
                "all ratios of this start"
            } else {
                "its \
                ratio in this start"
            };
            format!(
                "{label}: {leakage}; {of_base} will be left out; `plimsoll confirm --blocks 12` \
                has one server up at a time"
            )
        }));
        StepTurns {
            step: step.name.clone(),
            start: self.start,
            starts: self.starts,
            rounds: round,
            seconds: elapsed.as_secs_f64(),
            ratios: others
                .map(|index| {
                    (
                        self.candidates[index].cell.label.clone(),
                        rounds.ratio(index),
                    )
                })
                .collect(),
            warnings,
        }
    }

    fn tell(&mut self, candidate: usize, direction: &Direction) {
        let line = serde_json::to_string(direction).unwrap_or_default();
        if let Some(process) = &mut self.candidates[candidate].process {
            process.say(&line);
        }
    }

    fn tell_all(&mut self, direction: &Direction) {
        (0..self.candidates.len()).for_each(|candidate| self.tell(candidate, direction));
    }

    /// Asks all trials to stop.
    fn stop(&mut self) {
        if self.asked_at.is_none() {
            self.asked_at = Some(Instant::now());
            self.candidates
                .iter_mut()
                .filter_map(|candidate| candidate.process.as_mut())
                .for_each(|process| process.say(STOP));
        }
    }

    /// Ends a trial that cannot be waited for.
    fn end(&mut self, candidate: usize, why: &str) {
        let candidate = &mut self.candidates[candidate];
        candidate.reason.get_or_insert_with(|| why.to_owned());
        if let Some(process) = &mut candidate.process {
            process.kill();
        }
    }

    /// The next message, if there is one soon. What it says about who is where is kept.
    fn hear(&mut self) -> Option<(usize, TrialMessage)> {
        let requests = self.observer.stop_requests().load(Ordering::SeqCst);
        if requests > 0 {
            self.stop();
        }
        if requests >= 2
            || self
                .asked_at
                .is_some_and(|asked| asked.elapsed() > STOP_PATIENCE)
        {
            self.candidates
                .iter_mut()
                .filter_map(|candidate| candidate.process.as_mut())
                .for_each(TrialProcess::kill);
        }
        let (from, message) = match self.inbox.recv_timeout(POLL) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return None,
            // Nobody is left to say anything.
            Err(RecvTimeoutError::Disconnected) => {
                self.candidates
                    .iter_mut()
                    .for_each(|candidate| candidate.is_out = true);
                return None;
            }
        };
        let candidate = &mut self.candidates[from];
        match message {
            None => {
                candidate.is_out = true;
                None
            }
            Some(message) => {
                match &message {
                    TrialMessage::Ready { step, servers } => {
                        candidate.ready = Some(step.clone());
                        candidate.servers.clone_from(servers);
                    }
                    TrialMessage::Failed { reason } => {
                        candidate.reason.get_or_insert_with(|| reason.clone());
                    }
                    _ => {}
                }
                Some((from, message))
            }
        }
    }

    /// Waits until all candidates are so. Whoever is waited for is named from time to time, and
    /// ended after [`ready_limit`](Self::ready_limit). False when the user stops it.
    fn wait(&mut self, what: &str, is_so: impl Fn(&Candidate<'_>) -> bool) -> bool {
        let limit = self.ready_limit();
        let mut patience = Patience::new(limit);
        let mut next_notice = AWAITED;
        loop {
            let awaited: Vec<usize> = (0..self.candidates.len())
                .filter(|&index| !is_so(&self.candidates[index]))
                .collect();
            if awaited.is_empty() {
                return self.asked_at.is_none();
            }
            if patience.is_over() {
                for &candidate in &awaited {
                    self.end(
                        candidate,
                        &format!(
                            "it did not {what} within {}",
                            format_duration_ns(limit.as_nanos() as u64)
                        ),
                    );
                    // Something that the kernel holds may keep the output open: nothing is to be
                    // heard any more.
                    self.candidates[candidate].is_out |= patience.spent() > limit + END_LIMIT;
                }
            } else if patience.spent() >= next_notice {
                next_notice += AWAITED;
                let labels = awaited
                    .iter()
                    .map(|&candidate| self.candidates[candidate].cell.label.as_str())
                    .collect();
                self.observer.notice(Notice::Awaited {
                    labels,
                    what,
                    seconds: patience.spent().as_secs(),
                    limit_s: limit.as_secs(),
                });
            }
            self.hear();
        }
    }

    /// Closes all trials. How many are not complete.
    fn strike(self) -> Result<usize, LabError> {
        let is_stopped = self.observer.stop_requests().load(Ordering::SeqCst) > 0;
        let mut broken = 0;
        for candidate in self.candidates {
            let end = match candidate.process {
                // One that was only asked to stop because the others are gone is told apart by its
                // reason.
                Some(process) => process.conclude(is_stopped)?,
                None => Err(candidate.reason.clone().unwrap_or_default()),
            };
            if let Err(reason) = &end {
                broken += 1;
                let reason = candidate.reason.as_ref().unwrap_or(reason);
                self.observer.notice(Notice::TrialBroken {
                    cell: candidate.cell,
                    reason,
                });
            }
            remove_data(&candidate.data_dir, self.observer);
        }
        Ok(broken)
    }
}

/// Passes on what a trial says.
fn listen(index: usize, process: &mut TrialProcess, sender: Sender<Heard>) {
    let Some(output) = process.take_output() else {
        return;
    };
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(message) = serde_json::from_str(&line)
                && sender.send((index, Some(message))).is_err()
            {
                return;
            }
        }
        let _ = sender.send((index, None));
    });
}
