//! A step whose workers are on client hosts. A thread per host puts what it reports where workers
//! at home put what they do, so that one watcher, one log and one outcome serve both.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use plimsoll_core::clock::Clock;
use plimsoll_core::units::SECOND_NS;

use super::outcome::{TaskEnd, TaskInfo, infos};
use super::part_report::PartReport;
use super::watcher::Watcher;
use super::workers::{self, Message, StepWorkers};
use super::{StepError, StepOptions, StepOutcome, StepOutputs, oversee};
use crate::control::{Command, Control};
use crate::intervals::Intervals;
use crate::worker::{Failure, Task};

/// The start must have reached every host before it comes; what is measured on the server begins so
/// much earlier than the operations. Where hosts answer slowly it is longer.
const LEAD_NS: u64 = 150_000_000;
/// So many of the longest round trip that a host has shown: of 50 the longest is not the longest
/// there is.
const LEAD_ROUND_TRIPS: u64 = 4;
/// A host that needs longer does not start with the others.
const MOST_LEAD_NS: u64 = 5 * SECOND_NS;

/// A host that cannot connect its workers in time has so much longer to say so itself.
const OPEN_GRACE: Duration = Duration::from_secs(30);

/// No second of a report is so far ahead of the step: what comes of it takes memory for each one.
const MOST_AHEAD_NS: u64 = 600 * SECOND_NS;

/// The class of the failure of a step that lost a client host.
const LOST: &str = "client_host";

/// A client host, as the step sees it. No call may last much longer than it says.
pub trait PartHost: Send {
    /// What it is called.
    fn name(&self) -> &str;

    /// Has it connect its workers, and waits until they are.
    ///
    /// # Errors
    /// Why they are not, with the client whose connection failed where it is one.
    fn open(&mut self) -> Result<(), (Option<u32>, String)>;

    /// The longest round trip to it that `open` has seen, in nanoseconds; 0 if it has seen none.
    fn longest_round_trip_ns(&self) -> u64 {
        0
    }

    /// Tells it to begin at this instant of the clock here.
    fn start(&mut self, begin_ns: u64);

    /// What it reports next, waited for some 100 ms at most.
    ///
    /// # Errors
    /// Why it is lost.
    fn next(&mut self) -> Result<Option<PartReport>, String>;

    /// Asks it to end its workers after the operation in flight.
    fn stop(&mut self);

    /// Lets its workers disconnect, and takes what is still to come of it.
    fn leave(&mut self);
}

/// The clients that a host has.
pub struct StepPart {
    /// By number, from 1.
    pub clients: RangeInclusive<u32>,
    /// Who has them.
    pub host: Box<dyn PartHost>,
}

/// Runs a step whose workers are elsewhere; see [`run_step`](super::run_step). `tasks` are those of
/// the whole step, each client in one of the `parts`: their schedules are what is accounted for,
/// their workers are not used.
///
/// A host that is lost fails the step: what the others did does not measure the whole load.
///
/// # Errors
/// If nothing can be counted.
pub fn run_step_in_parts<C: Clock + 'static>(
    (clock, control): (&Arc<C>, &Arc<Control>),
    kinds: &[impl AsRef<str>],
    tasks: Vec<Task>,
    parts: Vec<StepPart>,
    options: &StepOptions,
    mut outputs: StepOutputs<'_>,
) -> Result<StepOutcome, StepError> {
    let kinds: Vec<&str> = kinds.iter().map(AsRef::as_ref).collect();
    let infos = infos(&tasks);
    let intervals = Intervals::new(workers::interval_s(tasks.len()), parts.len());
    let workers = StepWorkers::new(clock, control, options, &tasks, intervals);
    drop(tasks);
    let options = &StepOptions {
        open_timeout: options.open_timeout + OPEN_GRACE,
        ..options.clone()
    };
    let watcher = Watcher {
        workers: &workers,
        kinds: &kinds,
        infos: &infos,
        options,
    };
    let lead_ns = AtomicU64::new(LEAD_NS);
    thread::scope(|scope| {
        let start = |sender: Sender<Message>| {
            for (index, part) in parts.into_iter().enumerate() {
                let feeder = Feeder {
                    workers: &workers,
                    infos: &infos,
                    index,
                    of_part: workers_of(&infos, &part.clients),
                    lead_ns: &lead_ns,
                    sender: sender.clone(),
                };
                let first = *part.clients.start();
                let name = format!("part {index}");
                let thread = thread::Builder::new().name(name);
                let body = move || feeder.run(part);
                thread
                    .spawn_scoped(scope, body)
                    .map_err(|error| StepError::Open {
                        client: first,
                        message: format!("no thread for its host: {error}; end other programs"),
                    })?;
            }
            Ok(())
        };
        oversee(&watcher, &lead_ns, start, &mut outputs)
    })
}

/// The workers of these clients, by their place among all.
fn workers_of(infos: &[TaskInfo], clients: &RangeInclusive<u32>) -> Vec<usize> {
    let of_part = |(_, info): &(usize, &TaskInfo)| clients.contains(&info.client);
    let workers = infos.iter().enumerate().filter(of_part);
    workers.map(|(index, _)| index).collect()
}

/// Stands for the workers of one host.
struct Feeder<'a, C> {
    workers: &'a StepWorkers<C>,
    infos: &'a [TaskInfo],
    /// The host's place among the parts.
    index: usize,
    /// Its workers' places among those of the step.
    of_part: Vec<usize>,
    /// How far ahead the start will be.
    lead_ns: &'a AtomicU64,
    sender: Sender<Message>,
}

impl<C: Clock> Feeder<'_, C> {
    fn run(self, part: StepPart) {
        let StepPart { clients, mut host } = part;
        if let Err((client, message)) = host.open() {
            let client = client.unwrap_or(*clients.start());
            let message = format!("client host {}: {message}", host.name());
            let _ = self.sender.send(Message::NotOpened(client, message));
            host.leave();
            return;
        }
        let lead_ns = LEAD_ROUND_TRIPS.saturating_mul(host.longest_round_trip_ns());
        // Before it is counted as open: all that are have said theirs.
        self.lead_ns
            .fetch_max(lead_ns.min(MOST_LEAD_NS), Ordering::SeqCst);
        for _ in &self.of_part {
            let _ = self.sender.send(Message::Opened);
        }
        if let Some(begin_ns) = self.workers.start.wait() {
            host.start(begin_ns);
            self.feed(&mut *host, begin_ns + self.workers.warm_up_ns);
            self.workers.leave.wait();
        }
        host.leave();
    }

    /// Passes on what the host reports until all of its workers have ended, or nobody waits for
    /// them any longer.
    fn feed(&self, host: &mut dyn PartHost, start_ns: u64) {
        let mut left: BTreeSet<usize> = (0..self.of_part.len()).collect();
        let mut is_asked_to_stop = false;
        while !left.is_empty() && !self.workers.leave.is_given() {
            let must_stop = self.workers.control.command() == Command::Stop
                || self.workers.is_aborted.load(Ordering::Relaxed);
            if must_stop && !is_asked_to_stop {
                is_asked_to_stop = true;
                host.stop();
            }
            let passed_on = match host.next() {
                Ok(None) => Ok(()),
                Ok(Some(report)) => {
                    let so_far_ns = self.workers.clock.now_ns().saturating_sub(start_ns);
                    match report.latest_ns(self.workers.intervals.interval_s()) {
                        latest_ns if latest_ns > so_far_ns.saturating_add(MOST_AHEAD_NS) => {
                            Err("it reports of times that are far ahead of the step".to_owned())
                        }
                        _ => self.pass_on(report, &mut left),
                    }
                }
                Err(reason) => Err(reason),
            };
            if let Err(reason) = passed_on {
                self.lose(host.name(), &reason, &left, start_ns);
                return;
            }
        }
    }

    fn pass_on(&self, report: PartReport, left: &mut BTreeSet<usize>) -> Result<(), String> {
        let live = report.live.iter().zip(&self.of_part);
        for ((ok, rows, unsuccessful), &worker) in live {
            let live = &self.workers.live[worker];
            live.ok.store(*ok, Ordering::Relaxed);
            live.rows.store(*rows, Ordering::Relaxed);
            live.unsuccessful.store(*unsuccessful, Ordering::Relaxed);
        }
        let times = report.intervals.iter().map(|interval| interval.times());
        let times = times
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        let is_known = |kind: usize| self.infos.iter().any(|info| info.kinds.contains(&kind));
        if times.iter().any(|times| !is_known(times.kind)) {
            return Err("it reports of a kind of operation that the step does not have".into());
        }
        let seconds = report.seconds.iter();
        let seconds = seconds.map(|second| second.of_step(&self.of_part, self.infos));
        let seconds: Option<Vec<_>> = seconds.collect();
        let seconds = seconds.ok_or("it reports of a worker that it does not have")?;
        self.workers
            .intervals
            .add_part(self.index, report.next_interval, times, seconds);
        for end in report.ends {
            let place = end.worker;
            if !left.remove(&place) {
                return Err("it reports of a worker that it does not have".into());
            }
            let worker = self.of_part[place];
            let end = end.task_end(&self.infos[worker]);
            self.end(worker, end.map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn end(&self, worker: usize, end: TaskEnd) {
        if end.result.is_err() {
            self.workers.is_aborted.store(true, Ordering::Relaxed);
        }
        self.workers.live[worker]
            .has_ended
            .store(1, Ordering::Relaxed);
        let _ = self.sender.send(Message::Ended(worker, Box::new(end)));
    }

    /// What is left of a host's workers counts for nothing, and the others stop.
    fn lose(&self, name: &str, reason: &str, left: &BTreeSet<usize>, start_ns: u64) {
        let ended_ns = self.workers.clock.now_ns().saturating_sub(start_ns);
        let message = format!(
            "lost client host {name} {:.1} s after the step's start: {reason}",
            ended_ns as f64 / 1e9
        );
        for &place in left {
            let worker = self.of_part[place];
            let failure = Failure {
                class: LOST,
                message: message.clone(),
            };
            let end = TaskEnd {
                result: Err(failure),
                is_interrupted: true,
                schedule: self.infos[worker].arrival.due(),
                ended_ns,
                kinds: Vec::new(),
                first_failure: None,
            };
            self.end(worker, end);
        }
    }
}
