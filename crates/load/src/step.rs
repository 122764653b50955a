//! One step: all workers start together, one thread each; the calling thread watches, writes the log and tells how it goes.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use plimsoll_core::clock::Clock;
use plimsoll_core::record::{ClientRecord, OperationRecord};
use thiserror::Error;

use crate::arrival::Arrival;
use crate::clock::MonotonicClock;
use crate::control::Control;
use crate::drive::{RetryPolicy, Shared, drive};
use crate::histogram;
use crate::intervals::Intervals;
use crate::pacing::{Paced, account};
use crate::patience::Patience;
use crate::recorder::{KindRecord, Live, Recorder, Second};
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
    /// The step hangs when no operation has been done for this long. `None` for steps of few long operations.
    pub watchdog: Option<Duration>,
    /// So long the workers perform operations that are not recorded; the step starts when it is over. Schedules begin anew then. For
    /// steps that end by time.
    pub warm_up_ns: u64,
    /// The share of the operations that may fail for the step to go on and be good. Without it the first one that fails is the end.
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

/// How a step is going. Counts are over all workers of a kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// The workers warm up; nothing is recorded yet.
    pub is_warming: bool,
    /// Seconds since the common start, which is the end of the warm-up where there is one.
    pub elapsed_s: f64,
    /// Per kind of operation: operations done and their rows.
    pub kinds: Vec<(u64, u64)>,
    /// 99th percentile of the service time of the primary kind in the last complete interval, in nanoseconds.
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
            start = self.changed.wait(start).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

enum Message {
    Opened,
    NotOpened(u32, String),
    Ended(usize, Box<TaskEnd>),
}

struct TaskEnd {
    result: Result<(), Failure>,
    ended_ns: u64,
    kinds: Vec<KindRecord>,
    /// Of those that may be.
    first_failure: Option<Failure>,
}

/// What the watching thread must know about a task after the task itself has moved to its thread.
struct TaskInfo {
    client: u32,
    arrival: Arrival,
    stop: Stop,
    kinds: Vec<usize>,
}

/// Runs one step.
///
/// `kinds` names the kinds of operations; the first is the one whose latency `progress` tells. `log` receives a HdrHistogram
/// interval log with the tags `KIND.service` and, for open loops, `KIND.response`. `progress` is called about ten times a second.
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
    let interval_s = if tasks.len() > FINE_INTERVAL_WORKERS { 10 } else { 1 };
    let intervals = Arc::new(Intervals::new(interval_s, tasks.len()));
    let live: Arc<[Live]> = tasks.iter().map(|_| Live::default()).collect();
    let clients = tasks.iter().map(|task| task.client).max().unwrap_or(0) as usize;
    let leaders: Arc<[AtomicU32]> = (0..clients).map(|_| AtomicU32::new(0)).collect();
    for task in tasks.iter().filter(|task| task.stop != Stop::WithClient) {
        leaders[task.client as usize - 1].fetch_add(1, Ordering::Relaxed);
    }
    let infos: Vec<TaskInfo> = tasks
        .iter()
        .map(|task| TaskInfo { client: task.client, arrival: task.arrival.clone(), stop: task.stop, kinds: task.kinds.clone() })
        .collect();
    // Before the board shows workers they are waited for: otherwise all of none would be parked.
    control.expect(infos.len());
    if let Some(board) = &options.board {
        let primary = infos.iter().enumerate().filter(|(_, info)| info.kinds.contains(&0));
        let post = |(index, info): (usize, &TaskInfo)| Post { index, client: info.client, is_open: info.arrival.is_open() };
        board.put_up(live.clone(), primary.map(post).collect());
    }
    let gate = Arc::new(Gate::default());
    let is_aborted = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = channel();
    for (index, mut task) in tasks.into_iter().enumerate() {
        let (clock, control, gate, is_aborted) = (clock.clone(), control.clone(), gate.clone(), is_aborted.clone());
        let (leaders, live, sender) = (leaders.clone(), live.clone(), sender.clone());
        let mut recorder = Recorder::new(index, &task.kinds, task.arrival.is_open(), intervals.clone(), live.clone());
        let (retry, warm_up_ns, may_fail) = (options.retry, options.warm_up_ns, options.max_failed.is_some());
        let body = move || {
            let _seat = control.seat();
            MonotonicClock::set_finest_slack();
            if let Err(message) = task.worker.open() {
                task.worker.close();
                let _ = sender.send(Message::NotOpened(task.client, message));
                return;
            }
            let _ = sender.send(Message::Opened);
            let Some(begin_ns) = gate.wait() else {
                task.worker.close();
                return;
            };
            let start_ns = begin_ns + warm_up_ns;
            recorder.start(start_ns, begin_ns < start_ns);
            let shared = Shared { control: &control, retry, may_fail, is_aborted: &is_aborted, leaders: &leaders };
            // A panic in a worker must end the step like any other failure, not leave the others waiting for it.
            let driven = catch_unwind(AssertUnwindSafe(|| drive(&*clock, &mut task, (begin_ns, start_ns), &mut recorder, &shared)));
            let result =
                driven.unwrap_or_else(|_| Err(Failure { class: "panic", message: "the worker panicked: see the trial's log".into() }));
            let ended_ns = clock.now_ns().saturating_sub(start_ns);
            if result.is_err() {
                is_aborted.store(true, Ordering::Relaxed);
            }
            task.worker.close();
            let (client, is_leader) = (task.client as usize - 1, task.stop != Stop::WithClient);
            // The worker is gone before the step ends: whoever waits for the end may take the server down.
            drop(task);
            if is_leader {
                leaders[client].fetch_sub(1, Ordering::Release);
            }
            live[index].has_ended.store(1, Ordering::Relaxed);
            let first_failure = recorder.take_first_failure();
            let end = TaskEnd { result, ended_ns, kinds: recorder.finish(), first_failure };
            let _ = sender.send(Message::Ended(index, Box::new(end)));
        };
        thread::Builder::new().name(format!("worker {index}")).spawn(body).map_err(|error| StepError::Open {
            client: infos[index].client,
            message: format!("no thread for it: {error}; lower the number of clients or raise the limit of processes"),
        })?;
    }
    drop(sender);
    await_open(&receiver, infos.len(), options.open_timeout).inspect_err(|_| gate.open(None))?;
    let begin_ns = clock.now_ns() + LEAD_NS;
    gate.open(Some(begin_ns));
    let watch = Watch {
        clock: &**clock,
        kinds: &kinds,
        infos: &infos,
        control,
        options,
        intervals: &intervals,
        live: &live,
        is_aborted: &is_aborted,
    };
    watch.run(&receiver, begin_ns + options.warm_up_ns, log, progress)
}

fn await_open(receiver: &Receiver<Message>, tasks: usize, timeout: Duration) -> Result<(), StepError> {
    let deadline = Instant::now() + timeout;
    for _ in 0..tasks {
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Message::NotOpened(client, message)) => return Err(StepError::Open { client, message }),
            Ok(_) => {}
            Err(_) => return Err(StepError::Hung(format!("not all clients were connected after {} s", timeout.as_secs()))),
        }
    }
    Ok(())
}

impl TaskInfo {
    /// Operations of the schedule and its length in nanoseconds; nothing in a closed loop. A step that was finished after `finished_ns` cut
    /// off the schedules of those that end by time.
    fn schedule(&self, finished_ns: Option<u64>) -> (u64, u64) {
        let cut = |length_ns: u64| finished_ns.filter(|&finished_ns| finished_ns < length_ns);
        match self.stop {
            _ if !self.arrival.is_open() => (0, 0),
            Stop::Operations(count) => (count, self.arrival.length_ns(count)),
            Stop::Worker { planned, length_ns } => match cut(length_ns) {
                Some(length_ns) => (self.arrival.count_before(length_ns), length_ns),
                None => (planned, length_ns),
            },
            Stop::Time(length_ns) => {
                let length_ns = cut(length_ns).unwrap_or(length_ns);
                (self.arrival.count_before(length_ns), length_ns)
            }
            Stop::WithClient => (0, 0),
        }
    }
}

/// What a worker did in each second, over its kinds.
fn merge_seconds(kinds: &[KindRecord]) -> Vec<Second> {
    let mut merged: Vec<Second> = Vec::new();
    for record in kinds {
        merged.resize(merged.len().max(record.seconds.len()), Second::default());
        for (sum, second) in merged.iter_mut().zip(&record.seconds) {
            sum.ok += second.ok;
            sum.rows += second.rows;
            sum.unsuccessful += second.unsuccessful;
        }
    }
    merged
}

struct Totals {
    service: Histogram<u64>,
    response: Option<Histogram<u64>>,
}

struct Watch<'a, C> {
    clock: &'a C,
    kinds: &'a [&'a str],
    infos: &'a [TaskInfo],
    control: &'a Control,
    options: &'a StepOptions,
    intervals: &'a Intervals,
    live: &'a [Live],
    is_aborted: &'a AtomicBool,
}

impl<C: Clock> Watch<'_, C> {
    fn run(
        &self,
        receiver: &Receiver<Message>,
        start_ns: u64,
        mut log: &mut dyn Write,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<StepOutcome, StepError> {
        let mut serializer = V2DeflateSerializer::new();
        let until_start = |now_ns: u64| Duration::from_nanos(start_ns.saturating_sub(now_ns));
        let now = SystemTime::now() + if self.options.warm_up_ns > 0 { until_start(self.clock.now_ns()) } else { Duration::ZERO };
        let log_error = |error: &dyn std::fmt::Display| StepError::Log(error.to_string());
        // Java's filters work only when both times are absolute and intervals are relative to them.
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("Values are nanoseconds; the Interval_Max column is in milliseconds.")
            .with_start_time(now)
            .with_base_time(now)
            .with_max_value_divisor(1e6)
            .begin_log_with(&mut log, &mut serializer)
            .map_err(|e| log_error(&e))?;
        let mut totals: BTreeMap<usize, Totals> = BTreeMap::new();
        let mut latest = Progress { is_warming: self.options.warm_up_ns > 0, ..Progress::default() };
        let mut ends: Vec<Option<TaskEnd>> = self.infos.iter().map(|_| None).collect();
        let mut remaining = self.infos.len();
        let mut last_count = 0;
        // Without a watchdog it is never asked.
        let mut patience = Patience::new(self.options.watchdog.unwrap_or_default());
        let mut stop_asked: Option<Instant> = None;
        while remaining > 0 {
            // The end of the warm-up is told at once.
            let next_look = if latest.is_warming { WATCH.min(until_start(self.clock.now_ns())) } else { WATCH };
            match receiver.recv_timeout(next_look) {
                Ok(Message::Ended(index, end)) => {
                    ends[index] = Some(*end);
                    remaining -= 1;
                    patience.renew();
                    if remaining > 0 {
                        continue;
                    }
                }
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(StepError::Hung("a worker's thread died: see the trial's log".into()));
                }
            }
            while let Some((interval, pairs)) = self.intervals.next_complete() {
                let at = Duration::from_secs(interval * self.intervals.interval_s());
                let whole = Duration::from_secs(self.intervals.interval_s());
                // The last one ends with the step.
                let ended_ns = ends.iter().flatten().map(|end| end.ended_ns).max().filter(|_| remaining == 0);
                let length = ended_ns.map_or(whole, |ended_ns| whole.min(Duration::from_nanos(ended_ns).saturating_sub(at)));
                for (kind, pair) in &pairs {
                    if *kind == 0 {
                        latest.p99_ns = Some(pair.service.value_at_quantile(0.99));
                    }
                    let total = totals.entry(*kind).or_insert_with(|| Totals { service: histogram::empty(), response: None });
                    histogram::add(&mut total.service, &pair.service);
                    let tag = format!("{}.service", self.kinds[*kind]);
                    log.write_histogram(&pair.service, at, length, Tag::new(&tag)).map_err(|e| log_error(&e))?;
                    if let Some(response) = &pair.response {
                        let total = total.response.get_or_insert_with(histogram::empty);
                        histogram::add(total, response);
                        let tag = format!("{}.response", self.kinds[*kind]);
                        log.write_histogram(response, at, length, Tag::new(&tag)).map_err(|e| log_error(&e))?;
                    }
                }
            }
            self.update(&mut latest, start_ns);
            progress(&latest);
            let count: u64 = self.live.iter().map(|live| live.ok.load(Ordering::Relaxed) + live.unsuccessful.load(Ordering::Relaxed)).sum();
            if count != last_count || latest.is_warming || self.control.command() == crate::Command::Park {
                last_count = count;
                patience.renew();
            }
            let is_stopping = self.control.command() == crate::Command::Stop || self.is_aborted.load(Ordering::Relaxed);
            if is_stopping && stop_asked.get_or_insert_with(Instant::now).elapsed() > self.options.stop_timeout {
                return Err(StepError::Hung(self.hung("after the step was asked to stop", self.options.stop_timeout)));
            }
            if let Some(watchdog) = self.options.watchdog.filter(|_| patience.is_over() && !is_stopping) {
                return Err(StepError::Hung(self.hung("and no operation has been done", watchdog)));
            }
        }
        let ends: Vec<TaskEnd> = ends.into_iter().flatten().collect();
        Ok(self.outcome(&ends, &totals))
    }

    fn hung(&self, what: &str, limit: Duration) -> String {
        let running = self.live.iter().filter(|live| live.has_ended.load(Ordering::Relaxed) == 0).count();
        format!("{running} of {} workers are still in an operation {} s {what}", self.infos.len(), limit.as_secs())
    }

    fn update(&self, progress: &mut Progress, start_ns: u64) {
        let now_ns = self.clock.now_ns();
        progress.is_warming = now_ns < start_ns;
        progress.elapsed_s = now_ns.saturating_sub(start_ns) as f64 / 1e9;
        progress.kinds = vec![(0, 0); self.kinds.len()];
        progress.unsuccessful = 0;
        for (info, live) in self.infos.iter().zip(self.live) {
            // A worker's live counters are not split by kind: those of several kinds count for the last.
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
        let class = classes().max_by_key(|(_, count)| **count).map_or("failed", |(class, _)| class);
        let first = ends
            .iter()
            .find_map(|end| end.first_failure.as_ref())
            .map_or(String::new(), |failure| format!("; the first: {}", failure.message));
        let share = failed as f64 / operations as f64 * 100.0;
        let message =
            format!("{failed} of {operations} operations failed, {share:.3} %, and {} % may{first}", (allowed * 1e5).round() / 1e3);
        Some(Failure { class, message })
    }

    fn outcome(&self, ends: &[TaskEnd], totals: &BTreeMap<usize, Totals>) -> StepOutcome {
        let failure = ends.iter().find_map(|end| end.result.as_ref().err().cloned()).or_else(|| self.too_many_failures(ends));
        let ended = match failure {
            Some(failure) => Ended::Failed(failure),
            None if self.control.command() == crate::Command::Stop => Ended::Stopped,
            None => Ended::Finished,
        };
        let by_time = self.infos.iter().zip(ends).filter(|(info, _)| matches!(info.stop, Stop::Time(_)));
        let finished_ns = by_time.map(|(_, end)| end.ended_ns).max().filter(|_| self.control.command() == crate::Command::Finish);
        let mut clients = Vec::new();
        let mut seconds = Vec::new();
        let mut operations = Vec::new();
        for (kind, name) in self.kinds.iter().enumerate() {
            let workers: Vec<(&TaskInfo, &TaskEnd, &KindRecord)> = self
                .infos
                .iter()
                .zip(ends)
                .flat_map(|(info, end)| end.kinds.iter().filter(|record| record.kind == kind).map(move |record| (info, end, record)))
                .collect();
            if workers.is_empty() {
                continue;
            }
            let mut operation = OperationRecord { kind: (*name).to_owned(), ..OperationRecord::default() };
            let mut lag: Option<Histogram<u64>> = None;
            let mut unsuccessful: Option<Histogram<u64>> = None;
            let mut paced = Vec::new();
            // The schedule of a worker of several kinds is one for all of them: it is accounted for with the first.
            let merged: Vec<Vec<Second>> = workers.iter().map(|(_, end, _)| merge_seconds(&end.kinds)).collect();
            for ((info, end, record), all_seconds) in workers.iter().zip(&merged) {
                operation.ok += record.ok;
                operation.retried += record.retried;
                operation.failed += record.failed;
                operation.rows += record.rows;
                operation.wait_ns += record.wait_ns;
                operation.worker_ns += end.ended_ns;
                for (class, count) in &record.errors {
                    *operation.errors.entry((*class).to_owned()).or_default() += count;
                }
                for (from, to) in [(&record.lag, &mut lag), (&record.unsuccessful, &mut unsuccessful)] {
                    if let Some(from) = from {
                        let to = to.get_or_insert_with(histogram::empty);
                        histogram::add(to, from);
                    }
                }
                let (planned, length_ns) = info.schedule(finished_ns);
                // A worker that ends by time performs its kinds in turn all the while. A kind that another comes to after others, such as
                // index creation after the inserts, starts then.
                let is_mixed = matches!(info.stop, Stop::Time(_));
                let from_ns = if info.kinds.len() > 1 && !is_mixed { record.first_sent_ns } else { 0 };
                let last_done_ns = || end.kinds.iter().map(|record| record.last_done_ns).max().unwrap_or(0);
                let to_ns = if is_mixed { last_done_ns() } else { record.last_done_ns }.max(length_ns);
                let active_ns = to_ns - from_ns;
                let ok = end.kinds.iter().map(|record| record.ok).sum();
                let paced_here = Paced { arrival: &info.arrival, planned, length_ns, seconds: all_seconds, ok, active_ns };
                if !is_mixed || info.kinds.len() == 1 {
                    paced.push(Paced { seconds: &record.seconds, ok: record.ok, ..paced_here });
                } else if kind == info.kinds[0] {
                    paced.push(paced_here);
                }
                clients.push(ClientRecord {
                    client: info.client,
                    kind: (*name).to_owned(),
                    ok: record.ok,
                    rows: record.rows,
                    from_ns,
                    to_ns,
                    turns: None,
                });
                seconds.extend(record.seconds.iter().enumerate().map(|(second, counts)| SecondRow {
                    second: second as u64,
                    client: info.client,
                    kind,
                    counts: *counts,
                }));
            }
            operation.attempts = operation.ok + operation.retried + operation.failed;
            operation.pacing = account(&paced);
            operation.lag = lag.as_ref().map(histogram::encode);
            operation.unsuccessful = unsuccessful.as_ref().map(histogram::encode);
            let none = histogram::empty();
            operation.service = histogram::encode(totals.get(&kind).map_or(&none, |total| &total.service));
            operation.response = totals.get(&kind).and_then(|total| total.response.as_ref()).map(histogram::encode);
            operations.push(operation);
        }
        let elapsed_ns = ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
        StepOutcome { ended, elapsed_ns, operations, clients, seconds }
    }
}
