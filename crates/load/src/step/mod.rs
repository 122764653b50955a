//! One step: all workers start together, one thread each; the calling thread watches, writes the
//! log and tells how it goes.

mod outcome;
mod pacing;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriter, IntervalLogWriterBuilder, Tag};
use hdrhistogram::{Counter, Histogram};
use plimsoll_core::clock::Clock;
use plimsoll_core::record::{ClientRecord, OperationRecord};
use thiserror::Error;

use self::outcome::{Ledger, TaskEnd, TaskInfo, Totals, unsent};
use crate::clock::MonotonicClock;
use crate::control::Control;
use crate::drive::drive;
use crate::histogram;
use crate::intervals::{Intervals, Pair};
use crate::loop_state::{Assignment, Ending, LoopState, Shared};
use crate::patience::Patience;
use crate::recorder::{Live, Recorder, Second};
use crate::retry::RetryPolicy;
use crate::turns::{Board, Post};
use crate::worker::{Failure, Stop, Task};

const WATCH: Duration = Duration::from_millis(100);
/// Enough for every worker to be asleep on its first due instant when the step starts.
const LEAD_NS: u64 = 2_000_000;
/// More workers than this get 10-s histogram intervals, so that handing them over stays cheap.
const FINE_INTERVAL_WORKERS: usize = 64;

/// Settings of a step that do not belong to a single worker.
#[derive(Clone, Debug)]
pub struct StepOptions {
    /// What to do when an operation meets a lock.
    pub retry: RetryPolicy,
    /// All workers must be connected by then.
    pub open_timeout: Duration,
    /// The step hangs when no operation has been done for this long. `None` for steps of few long
    /// operations.
    pub watchdog: Option<Duration>,
    /// So long the workers perform operations that are not recorded; the step starts when it is
    /// over. Schedules begin anew then. For steps that end by time.
    pub warm_up_ns: u64,
    /// The share of the operations that may fail for the step to go on and be good. Without it the
    /// first one that fails is the end.
    pub max_failed: Option<f64>,
    /// Where the workers show how far they are, for whoever gives them turns.
    pub board: Option<Arc<Board>>,
    /// After a stop command or a failure the workers have this long to end the operation in flight.
    pub stop_timeout: Duration,
}

impl Default for StepOptions {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            open_timeout: Duration::from_secs(60),
            watchdog: Some(Duration::from_secs(60)),
            warm_up_ns: 0,
            max_failed: None,
            board: None,
            stop_timeout: Duration::from_secs(30),
        }
    }
}

/// Where a step is. Whoever measures beside the operations goes by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// All workers are connected and idle; they begin when the call returns. Told once.
    #[default]
    Connected,
    /// The workers warm up; nothing is recorded yet. Told first just before they begin.
    WarmingUp {
        /// Until the step's start.
        left: Duration,
    },
    /// Operations are recorded.
    Measuring,
    /// The last worker has ended; connections are closed when the call returns. Told once, and not
    /// when the step is given up.
    Ended,
}

/// How a step is going. Counts are over all workers of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Where it is.
    pub phase: Phase,
    /// Seconds since the common start, which is the end of the warm-up where there is one.
    pub elapsed_s: f64,
    /// Per kind of operation: operations done and their rows.
    pub kinds: Vec<(u64, u64)>,
    /// 99th percentile of the service time of the primary kind in the last complete interval, in
    /// nanoseconds.
    pub p99_ns: Option<u64>,
    /// Tries that were retried or failed, over all workers.
    pub unsuccessful: u64,
}

/// How a step ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every worker reached its stop rule.
    Finished,
    /// A stop command came first.
    Stopped,
    /// A worker failed, and the others were stopped.
    Failed(Failure),
}

/// One second of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecondRow {
    /// Seconds since the start.
    pub second: u64,
    /// The client, from 1.
    pub client: u32,
    /// Index into the step's kinds.
    pub kind: usize,
    /// What happened.
    pub counts: Second,
}

/// What a step leaves behind.
#[derive(Clone, Debug)]
pub struct StepOutcome {
    /// How it ended.
    pub ended: Ended,
    /// From the common start to the end of the last worker.
    pub elapsed_ns: u64,
    /// Totals per kind, for the kinds that workers had.
    pub operations: Vec<OperationRecord>,
    /// Totals per client and kind.
    pub clients: Vec<ClientRecord>,
    /// The series, ordered by client, kind and second.
    pub seconds: Vec<SecondRow>,
}

/// A step that left nothing to count.
#[derive(Debug, Error)]
pub enum StepError {
    /// A worker could not connect.
    #[error("client {client} could not start: {message}")]
    Open {
        /// The client.
        client: u32,
        /// Why.
        message: String,
    },
    /// A deadline passed.
    #[error("{0}")]
    Hung(String),
    /// The histogram log could not be written.
    #[error("failed to write the histogram log: {0}")]
    Log(String),
}

/// The instant all workers wait for.
#[derive(Default)]
struct Gate {
    /// `None`: not yet; `Some(None)`: never; `Some(Some(ns))`: then.
    start: Mutex<Option<Option<u64>>>,
    changed: Condvar,
}

impl Gate {
    fn open(&self, start_ns: Option<u64>) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start_ns);
        self.changed.notify_all();
    }

    fn wait(&self) -> Option<u64> {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(start) = *start {
                return start;
            }
            start = self
                .changed
                .wait(start)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Lets go of the workers, however the step ends: those that wait leave, those that work end with
/// their operation.
struct LetGo<'a, C>(&'a Crew<C>);

impl<C> Drop for LetGo<'_, C> {
    fn drop(&mut self) {
        self.0.is_aborted.store(true, Ordering::Relaxed);
        self.0.start.open(None);
        self.0.leave.open(None);
    }
}

enum Message {
    Opened,
    NotOpened(u32, String),
    Ended(usize, Box<TaskEnd>),
}

/// What the workers of a step share.
struct Crew<C> {
    clock: Arc<C>,
    control: Arc<Control>,
    retry: RetryPolicy,
    may_fail: bool,
    warm_up_ns: u64,
    /// Opens with the instant at which all begin.
    start: Gate,
    /// Opens when all have ended and may disconnect.
    leave: Gate,
    is_aborted: AtomicBool,
    finished_ns: AtomicU64,
    leaders: Vec<AtomicU32>,
    live: Arc<[Live]>,
    intervals: Arc<Intervals>,
}

impl<C: Clock> Crew<C> {
    fn new(clock: &Arc<C>, control: &Arc<Control>, options: &StepOptions, tasks: &[Task]) -> Self {
        let clients = tasks.iter().map(|task| task.client).max().unwrap_or(0) as usize;
        let leaders: Vec<AtomicU32> = (0..clients).map(|_| AtomicU32::new(0)).collect();
        for task in tasks.iter().filter(|task| task.stop != Stop::WithClient) {
            leaders[task.client as usize - 1].fetch_add(1, Ordering::Relaxed);
        }
        let interval_s = if tasks.len() > FINE_INTERVAL_WORKERS {
            10
        } else {
            1
        };
        Self {
            clock: clock.clone(),
            control: control.clone(),
            retry: options.retry,
            may_fail: options.max_failed.is_some(),
            warm_up_ns: options.warm_up_ns,
            start: Gate::default(),
            leave: Gate::default(),
            is_aborted: AtomicBool::new(false),
            finished_ns: AtomicU64::new(u64::MAX),
            leaders,
            live: tasks.iter().map(|_| Live::default()).collect(),
            intervals: Arc::new(Intervals::new(interval_s, tasks.len())),
        }
    }

    /// What a worker's thread does.
    fn work(&self, index: usize, mut task: Task, recorder: Recorder, sender: &Sender<Message>) {
        let seat = self.control.seat();
        MonotonicClock::set_finest_slack();
        if let Err(message) = task.worker.open() {
            task.worker.close();
            let _ = sender.send(Message::NotOpened(task.client, message));
            return;
        }
        let _ = sender.send(Message::Opened);
        let Some(begin_ns) = self.start.wait() else {
            task.worker.close();
            return;
        };
        let start_ns = begin_ns + self.warm_up_ns;
        let shared = Shared {
            control: &self.control,
            retry: self.retry,
            may_fail: self.may_fail,
            is_aborted: &self.is_aborted,
            finished_ns: &self.finished_ns,
            leaders: &self.leaders,
        };
        let assignment = Assignment {
            client: task.client,
            arrival: task.arrival,
            stop: task.stop,
            begin_ns,
            start_ns,
        };
        let mut state = LoopState::new(assignment, recorder, &shared);
        // A panic in a worker must end the step like any other failure, not leave the others
        // waiting for it.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            drive(&*self.clock, &mut *task.worker, &mut state);
        }))
        .is_err();
        let ended_ns = self.clock.now_ns().saturating_sub(start_ns);
        if panicked {
            state.fail(Failure {
                class: "panic",
                message: "the worker panicked: see the trial's log".into(),
            });
        }
        if state.has_failed() {
            self.is_aborted.store(true, Ordering::Relaxed);
        }
        task.worker.close();
        if task.stop != Stop::WithClient {
            self.leaders[task.client as usize - 1].fetch_sub(1, Ordering::Release);
        }
        self.live[index].has_ended.store(1, Ordering::Relaxed);
        drop(seat);
        let parts = state.into_parts();
        let end = TaskEnd {
            is_cut: parts.result != Ok(Ending::ByRule),
            result: parts.result.map(drop),
            schedule: parts.schedule,
            ended_ns,
            kinds: parts.kinds,
            first_failure: parts.first_failure,
        };
        let _ = sender.send(Message::Ended(index, Box::new(end)));
        // Connected until all have ended and the last look at the server was taken: some servers'
        // processes end with their connections.
        self.leave.wait();
        // The worker is gone before the thread is: whoever waits for the end may take the server
        // down.
        drop(task.worker);
    }
}

/// How threads are made.
type Spawn<'a> = &'a mut dyn FnMut(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// Runs one step.
///
/// `kinds` names the kinds of operations; the first is the one whose latency `progress` tells.
/// `log` receives a HdrHistogram interval log with the tags `KIND.service` and, for open loops,
/// `KIND.response`. `progress` is called about ten times a second, and once in the phases that say
/// so.
///
/// # Errors
/// Where nothing can be counted. No worker is left behind then but one that does not come back from its operation.
pub fn run_step<C: Clock + 'static>(
    clock: &Arc<C>,
    kinds: &[impl AsRef<str>],
    tasks: Vec<Task>,
    control: &Arc<Control>,
    options: &StepOptions,
    log: &mut dyn Write,
    progress: &mut dyn FnMut(&Progress),
) -> Result<StepOutcome, StepError> {
    let kinds: Vec<&str> = kinds.iter().map(AsRef::as_ref).collect();
    let crew = Arc::new(Crew::new(clock, control, options, &tasks));
    perform(
        &crew,
        &kinds,
        tasks,
        options,
        &mut |builder, body| builder.spawn(body).map(drop),
        log,
        progress,
    )
}

fn perform<C: Clock + 'static>(
    crew: &Arc<Crew<C>>,
    kinds: &[&str],
    tasks: Vec<Task>,
    options: &StepOptions,
    spawn: Spawn<'_>,
    log: &mut dyn Write,
    progress: &mut dyn FnMut(&Progress),
) -> Result<StepOutcome, StepError> {
    let infos: Vec<TaskInfo> = tasks
        .iter()
        .map(|task| TaskInfo {
            client: task.client,
            arrival: task.arrival.clone(),
            stop: task.stop,
            kinds: task.kinds.clone(),
        })
        .collect();
    let (sender, receiver) = channel();
    let let_go = LetGo(crew);
    let started = start_workers(crew, &infos, tasks, options, spawn, sender);
    let outcome = started.and_then(|()| {
        await_open(&receiver, infos.len(), options.open_timeout)?;
        let mut first = Progress {
            kinds: vec![(0, 0); kinds.len()],
            ..Progress::default()
        };
        progress(&first);
        let begin_ns = crew.clock.now_ns() + LEAD_NS;
        if options.warm_up_ns > 0 {
            // Before anybody works: on a machine that is full of work this thread may come to its
            // turn when the warm-up is over.
            first.phase = Phase::WarmingUp {
                left: Duration::from_nanos(LEAD_NS + options.warm_up_ns),
            };
            progress(&first);
        }
        let start = (
            begin_ns + options.warm_up_ns,
            SystemTime::now() + Duration::from_nanos(LEAD_NS + options.warm_up_ns),
        );
        crew.start.open(Some(begin_ns));
        Watch {
            crew,
            kinds,
            infos: &infos,
            options,
        }
        .run(&receiver, start, log, progress)
    });
    drop(let_go);
    // Who hangs has had its time.
    if !matches!(outcome, Err(StepError::Hung(_))) {
        await_leave(&receiver, options.stop_timeout);
    }
    outcome
}

fn start_workers<C: Clock + 'static>(
    crew: &Arc<Crew<C>>,
    infos: &[TaskInfo],
    tasks: Vec<Task>,
    options: &StepOptions,
    spawn: Spawn<'_>,
    sender: Sender<Message>,
) -> Result<(), StepError> {
    let control = &crew.control;
    // Before the board shows workers they are waited for: otherwise all of none would be parked.
    control.expect(infos.len());
    if let Some(board) = &options.board {
        let primary = infos
            .iter()
            .enumerate()
            .filter(|(_, info)| info.kinds.contains(&0));
        let post = |(index, info): (usize, &TaskInfo)| Post {
            index,
            client: info.client,
            is_open: info.arrival.is_open(),
        };
        board.put_up(crew.live.clone(), primary.map(post).collect());
    }
    for (index, task) in tasks.into_iter().enumerate() {
        let recorder = Recorder::new(
            index,
            &task.kinds,
            task.arrival.is_open(),
            crew.intervals.clone(),
            crew.live.clone(),
        );
        let (crew, sender) = (crew.clone(), sender.clone());
        let body = Box::new(move || crew.work(index, task, recorder, &sender));
        spawn(thread::Builder::new().name(format!("worker {index}")), body).map_err(|error| {
            // Nobody takes the places of those that are not there.
            (index..infos.len()).for_each(|_| drop(control.seat()));
            StepError::Open {
                client: infos[index].client,
                message: format!(
                    "no thread for it: {error}; lower the number of clients or raise the limit of \
                    processes"
                ),
            }
        })?;
    }
    Ok(())
}

fn await_open(
    receiver: &Receiver<Message>,
    tasks: usize,
    timeout: Duration,
) -> Result<(), StepError> {
    let deadline = Instant::now() + timeout;
    for _ in 0..tasks {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Message::NotOpened(client, message)) => {
                return Err(StepError::Open { client, message });
            }
            Ok(_) => {}
            Err(_) => {
                return Err(StepError::Hung(format!(
                    "not all clients were connected after {} s",
                    timeout.as_secs()
                )));
            }
        }
    }
    Ok(())
}

/// Waits until the workers' threads have ended.
fn await_leave(receiver: &Receiver<Message>, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    // The channel ends with the last of them.
    while receiver
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .is_ok()
    {}
}

/// The histogram log, and the sums of what is written to it.
struct Log<'a, 'b, W: Write> {
    writer: IntervalLogWriter<'b, 'b, W, V2DeflateSerializer>,
    kinds: &'a [&'a str],
    totals: BTreeMap<usize, Totals>,
}

impl<W: Write> Log<'_, '_, W> {
    /// Writes the histograms of an interval that begins `at` after the start.
    fn add(
        &mut self,
        at: Duration,
        length: Duration,
        pairs: &BTreeMap<usize, Pair>,
    ) -> Result<(), StepError> {
        for (&kind, pair) in pairs {
            let total = self.totals.entry(kind).or_insert_with(Totals::new);
            histogram::add(&mut total.service, &pair.service);
            self.write(kind, "service", at, length, &pair.service)?;
            if let Some(response) = &pair.response {
                let total = self.totals.entry(kind).or_insert_with(Totals::new);
                histogram::add(
                    total.response.get_or_insert_with(histogram::empty),
                    response,
                );
                self.write(kind, "response", at, length, response)?;
            }
        }
        Ok(())
    }

    /// The same for what was never sent.
    fn add_unsent(
        &mut self,
        at: Duration,
        length: Duration,
        unsent: &BTreeMap<usize, Histogram<u64>>,
    ) -> Result<(), StepError> {
        for (&kind, responses) in unsent {
            let total = self
                .totals
                .entry(kind)
                .or_insert_with(Totals::new)
                .response
                .get_or_insert_with(histogram::empty);
            total
                .add(responses)
                .expect("all histograms have the same bounds");
            self.write(kind, "response", at, length, responses)?;
        }
        Ok(())
    }

    fn write<T: Counter>(
        &mut self,
        kind: usize,
        what: &str,
        at: Duration,
        length: Duration,
        of: &Histogram<T>,
    ) -> Result<(), StepError> {
        let tag = format!("{}.{what}", self.kinds[kind]);
        self.writer
            .write_histogram(of, at, length, Tag::new(&tag))
            .map_err(|error| StepError::Log(error.to_string()))
    }
}

struct Watch<'a, C> {
    crew: &'a Crew<C>,
    kinds: &'a [&'a str],
    infos: &'a [TaskInfo],
    options: &'a StepOptions,
}

/// When the workers were last seen to do something.
struct Life {
    count: u64,
    /// Renewed by each operation. Without a watchdog it is never asked.
    patience: Patience,
    stop_asked: Option<Instant>,
}

impl<C: Clock> Watch<'_, C> {
    fn run(
        &self,
        receiver: &Receiver<Message>,
        (start_ns, start_time): (u64, SystemTime),
        mut log: &mut dyn Write,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<StepOutcome, StepError> {
        let mut serializer = V2DeflateSerializer::new();
        let until_start =
            || Duration::from_nanos(start_ns.saturating_sub(self.crew.clock.now_ns()));
        // Java's filters work only when both times are absolute and intervals are relative to them.
        let writer = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("Values are nanoseconds; the Interval_Max column is in milliseconds.")
            .with_start_time(start_time)
            .with_base_time(start_time)
            .with_max_value_divisor(1e6)
            .begin_log_with(&mut log, &mut serializer)
            .map_err(|error| StepError::Log(error.to_string()))?;
        let mut log = Log {
            writer,
            kinds: self.kinds,
            totals: BTreeMap::new(),
        };
        let mut latest = Progress::default();
        self.update(&mut latest, start_ns);
        let mut ends: Vec<Option<TaskEnd>> = self.infos.iter().map(|_| None).collect();
        let patience = Patience::new(self.options.watchdog.unwrap_or_default());
        let mut life = Life {
            count: 0,
            patience,
            stop_asked: None,
        };
        while ends.iter().any(Option::is_none) {
            // The end of the warm-up is told at once.
            let next_look = if latest.is_warming() {
                WATCH.min(until_start())
            } else {
                WATCH
            };
            match receiver.recv_timeout(next_look) {
                Ok(Message::Ended(index, end)) => {
                    ends[index] = Some(*end);
                    life.patience.renew();
                    continue;
                }
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StepError::Hung(
                        "a worker's thread died: see the trial's log".into(),
                    ));
                }
            }
            self.write_complete(&mut log, None, &mut latest)?;
            self.update(&mut latest, start_ns);
            progress(&latest);
            self.check(&mut life, &latest)?;
        }
        let ends: Vec<TaskEnd> = ends.into_iter().flatten().collect();
        self.update(&mut latest, start_ns);
        latest.phase = Phase::Ended;
        progress(&latest);
        self.conclude(&mut log, &mut latest, start_ns, &ends)
    }
    /// Writes the intervals to which nobody adds any more. The last one ends with the step.
    fn write_complete(
        &self,
        log: &mut Log<'_, '_, impl Write>,
        elapsed_ns: Option<u64>,
        latest: &mut Progress,
    ) -> Result<(), StepError> {
        let whole = Duration::from_secs(self.crew.intervals.interval_s());
        while let Some((interval, pairs)) = self.crew.intervals.next_complete() {
            let at = Duration::from_secs(interval * self.crew.intervals.interval_s());
            let length = elapsed_ns.map_or(whole, |elapsed_ns| {
                whole.min(Duration::from_nanos(elapsed_ns).saturating_sub(at))
            });
            log.add(at, length, &pairs)?;
            if let Some(pair) = pairs.get(&0) {
                latest.p99_ns = Some(pair.service.value_at_quantile(0.99));
            }
        }
        Ok(())
    }

    /// Whether the step goes on.
    fn check(&self, life: &mut Life, latest: &Progress) -> Result<(), StepError> {
        let live = self.crew.live.iter();
        let count: u64 = live
            .map(|live| live.ok.load(Ordering::Relaxed) + live.unsuccessful.load(Ordering::Relaxed))
            .sum();
        let command = self.crew.control.command();
        if count != life.count || latest.is_warming() || command == crate::Command::Park {
            life.count = count;
            life.patience.renew();
        }
        let is_stopping =
            command == crate::Command::Stop || self.crew.is_aborted.load(Ordering::Relaxed);
        if is_stopping
            && life.stop_asked.get_or_insert_with(Instant::now).elapsed()
                > self.options.stop_timeout
        {
            return Err(StepError::Hung(self.hung(&format!(
                "{} s after the step was asked to stop",
                self.options.stop_timeout.as_secs()
            ))));
        }
        let is_silent = life.patience.is_over() && !is_stopping;
        match self.options.watchdog.filter(|_| is_silent) {
            Some(watchdog) => Err(StepError::Hung(self.hung(&format!(
                "and none has been done for {} s",
                watchdog.as_secs()
            )))),
            None => Ok(()),
        }
    }

    fn hung(&self, what: &str) -> String {
        let running = self
            .crew
            .live
            .iter()
            .filter(|live| live.has_ended.load(Ordering::Relaxed) == 0)
            .count();
        format!(
            "{running} of {} workers are still in an operation, {what}",
            self.infos.len()
        )
    }

    fn update(&self, progress: &mut Progress, start_ns: u64) {
        let now_ns = self.crew.clock.now_ns();
        let is_warming = self.options.warm_up_ns > 0 && now_ns < start_ns;
        progress.phase = if is_warming {
            Phase::WarmingUp {
                left: Duration::from_nanos(start_ns - now_ns),
            }
        } else {
            Phase::Measuring
        };
        progress.elapsed_s = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        progress.kinds = vec![(0, 0); self.kinds.len()];
        progress.unsuccessful = 0;
        for (info, live) in self.infos.iter().zip(&*self.crew.live) {
            // A worker's live counters are not split by kind: those of several kinds count for the
            // last.
            if let Some((ok, rows)) = info.kinds.last().map(|&kind| &mut progress.kinds[kind]) {
                *ok += live.ok.load(Ordering::Relaxed);
                *rows += live.rows.load(Ordering::Relaxed);
            }
            progress.unsuccessful += live.unsuccessful.load(Ordering::Relaxed);
        }
    }

    /// Why a step whose operations may fail has failed: more of them did than may.
    fn too_many_failures(&self, ends: &[TaskEnd]) -> Option<Failure> {
        let allowed = self.options.max_failed?;
        let records = || ends.iter().flat_map(|end| &end.kinds);
        let failed: u64 = records().map(|record| record.failed).sum();
        let operations = failed + records().map(|record| record.ok).sum::<u64>();
        if failed as f64 <= operations as f64 * allowed {
            return None;
        }
        let classes = || records().flat_map(|record| &record.errors);
        let class = classes()
            .max_by_key(|(_, count)| **count)
            .map_or("failed", |(class, _)| class);
        let first = ends
            .iter()
            .find_map(|end| end.first_failure.as_ref())
            .map_or(String::new(), |failure| {
                format!("; the first: {}", failure.message)
            });
        let share = failed as f64 / operations as f64 * 100.0;
        let message = format!(
            "{failed} of {operations} operations failed, {share:.3} %, and {} % may{first}",
            (allowed * 1e5).round() / 1e3
        );
        Some(Failure { class, message })
    }

    /// What is left goes to the log, with what open loops still owe.
    fn conclude(
        &self,
        log: &mut Log<'_, '_, impl Write>,
        latest: &mut Progress,
        start_ns: u64,
        ends: &[TaskEnd],
    ) -> Result<StepOutcome, StepError> {
        let elapsed_ns = ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
        self.write_complete(log, Some(elapsed_ns), latest)?;
        let finished_ns = Some(self.crew.finished_ns.load(Ordering::Relaxed))
            .filter(|&finished_ns| finished_ns != u64::MAX);
        let finished_ns = finished_ns.map(|finished_ns| finished_ns.saturating_sub(start_ns));
        let unsent = unsent(self.infos, ends, finished_ns);
        let interval_ns = self.crew.intervals.interval_s() * 1_000_000_000;
        let at_ns = elapsed_ns.saturating_sub(1) / interval_ns * interval_ns;
        log.add_unsent(
            Duration::from_nanos(at_ns),
            Duration::from_nanos(elapsed_ns - at_ns),
            &unsent,
        )?;
        let failure = ends
            .iter()
            .find_map(|end| end.result.as_ref().err().cloned())
            .or_else(|| self.too_many_failures(ends));
        let ended = match failure {
            Some(failure) => Ended::Failed(failure),
            None if self.crew.control.command() == crate::Command::Stop => Ended::Stopped,
            None => Ended::Finished,
        };
        let ledger = Ledger {
            kinds: self.kinds,
            infos: self.infos,
            ends,
            totals: &log.totals,
            unsent: &unsent,
            finished_ns,
        };
        Ok(ledger.outcome(ended))
    }
}

impl Progress {
    fn is_warming(&self) -> bool {
        matches!(self.phase, Phase::WarmingUp { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Arrival;
    use crate::worker::{Next, Outcome, Worker};

    struct Idle(Arc<AtomicU32>);

    impl Worker for Idle {
        fn open(&mut self) -> Result<(), String> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
        fn prepare(&mut self) -> Result<Next, String> {
            Ok(Next::Operation(0))
        }
        fn execute(&mut self) -> Outcome {
            Outcome::Done { rows: 1 }
        }
    }

    impl Drop for Idle {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The system has threads for two of four workers.
    #[test]
    fn workers_that_have_no_thread_send_the_others_home() {
        let here = Arc::new(AtomicU32::new(2));
        let task = |client| Task {
            client,
            kinds: vec![0],
            arrival: Arrival::Closed,
            stop: Stop::Time(3_600_000_000_000),
            worker: Box::new(Idle(here.clone())),
        };
        let tasks: Vec<Task> = (1..=4).map(task).collect();
        let control = Arc::new(Control::default());
        let crew = Arc::new(Crew::new(
            &Arc::new(MonotonicClock),
            &control,
            &StepOptions::default(),
            &tasks,
        ));
        let mut threads = Vec::new();
        let mut spawn = |builder: thread::Builder, body: Box<dyn FnOnce() + Send>| {
            if threads.len() == 2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            threads.push(builder.spawn(body)?);
            Ok(())
        };
        let outcome = perform(
            &crew,
            &["op"],
            tasks,
            &StepOptions::default(),
            &mut spawn,
            &mut io::sink(),
            &mut |_: &Progress| {},
        )
        .unwrap_err();
        assert!(
            outcome
                .to_string()
                .starts_with("client 3 could not start: no thread for it"),
            "{outcome}"
        );
        // Four were made, of which none is left; two had connected.
        assert_eq!(
            here.load(Ordering::SeqCst),
            0,
            "nobody waits with a connection"
        );
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        control.give(crate::Command::Park);
        assert!(
            control.wait_until_parked(Duration::ZERO),
            "nor does anybody wait for them"
        );
    }
}
