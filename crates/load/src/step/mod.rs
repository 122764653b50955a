//! One step: all workers start together, one thread each; the calling thread watches, writes the
//! log and reports progress.

mod log;
mod outcome;
mod pacing;
mod part;
mod part_report;
mod parts;
mod watcher;
mod workers;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, SystemTime};

use plimsoll_core::clock::Clock;
use plimsoll_core::record::{ClientRecord, OperationRecord};
use thiserror::Error;

use self::watcher::Watcher;
use self::workers::{Message, ReleaseOnDrop, Spawn, StepWorkers};
use crate::control::Control;
use crate::intervals::Intervals;
use crate::recorder::Second;
use crate::retry::RetryPolicy;
use crate::turns::TurnProgress;
use crate::worker::{Failure, Task};

pub use self::part::{PartLink, run_part};
pub use self::part_report::PartReport;
pub use self::parts::{PartHost, StepPart, run_step_in_parts};
pub use self::workers::interval_s;

/// Enough for every worker to be asleep on its first due instant when the step starts.
const LEAD_NS: u64 = 2_000_000;

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
    /// How long the workers perform operations that are not recorded. The step starts afterwards,
    /// and so do the schedules. For steps that end by time.
    pub warm_up_ns: u64,
    /// The share of the operations that may fail for the step to go on and be good. Without it the
    /// first one that fails is the end.
    pub max_failed: Option<f64>,
    /// How far the workers are, for steps that are run in turns.
    pub turn_progress: Option<Arc<TurnProgress>>,
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
            turn_progress: None,
            stop_timeout: Duration::from_secs(30),
        }
    }
}

/// Where a step is. What is measured alongside the operations follows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// All workers are connected and idle; they begin when the call returns. Reported once.
    #[default]
    Connected,
    /// The workers warm up; nothing is recorded yet. Reported first just before they begin.
    WarmingUp {
        /// Until the step's start.
        left: Duration,
    },
    /// Operations are recorded.
    Measuring,
    /// The last worker has ended; connections are closed when the call returns. Reported once, and
    /// not when the step is given up.
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

/// Where a step's log and its progress go.
pub struct StepOutputs<'a> {
    /// Receives a HdrHistogram interval log with the tags `KIND.service` and, for open loops,
    /// `KIND.response`.
    pub log: &'a mut dyn Write,
    /// Called about ten times a second, and once in the phases that say so.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Receives the series: each second of each kind of each worker once, those of a worker in their
    /// order. What it returns as an error ends the step.
    pub seconds: &'a mut dyn FnMut(&SecondRow) -> Result<(), String>,
}

/// For [`StepOutputs::seconds`], if nobody wants the series.
pub fn no_series(_: &SecondRow) -> Result<(), String> {
    Ok(())
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
}

/// A step that left nothing to count.
#[derive(Debug, Error)]
pub enum StepError {
    /// A worker could not connect.
    #[error("client {client} could not start: {message}")]
    Open {
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
    /// The series could not be written.
    #[error("failed to write the series: {0}")]
    Series(String),
}

/// Runs one step.
///
/// `kinds` names the kinds of operations; the first is the one whose latency progress reports.
///
/// # Errors
/// If nothing can be counted. The only worker that may be left behind then is one that does not
/// return from its operation.
pub fn run_step<C: Clock + 'static>(
    clock: &Arc<C>,
    kinds: &[impl AsRef<str>],
    tasks: Vec<Task>,
    control: &Arc<Control>,
    options: &StepOptions,
    mut outputs: StepOutputs<'_>,
) -> Result<StepOutcome, StepError> {
    let kinds: Vec<&str> = kinds.iter().map(AsRef::as_ref).collect();
    let intervals = Intervals::new(interval_s(tasks.len()), tasks.len());
    let workers = StepWorkers::new(clock, control, options, &tasks, intervals);
    let workers = Arc::new(workers);
    perform(
        &workers,
        &kinds,
        tasks,
        options,
        &mut |builder, body| builder.spawn(body).map(drop),
        &mut outputs,
    )
}

fn perform<C: Clock + 'static>(
    workers: &Arc<StepWorkers<C>>,
    kinds: &[&str],
    tasks: Vec<Task>,
    options: &StepOptions,
    spawn: Spawn<'_>,
    outputs: &mut StepOutputs<'_>,
) -> Result<StepOutcome, StepError> {
    let infos = outcome::infos(&tasks);
    let watcher = Watcher {
        workers,
        kinds,
        infos: &infos,
        options,
    };
    let start = |sender| workers::start(workers, &infos, tasks, options, spawn, sender);
    oversee(&watcher, &AtomicU64::new(LEAD_NS), start, outputs)
}

/// Has workers started, wherever they are, lets all begin at one instant and watches them to their
/// end. The instant is `lead_ns` ahead, as that is when all are open.
fn oversee<C: Clock>(
    watcher: &Watcher<'_, C>,
    lead_ns: &AtomicU64,
    start: impl FnOnce(Sender<Message>) -> Result<(), StepError>,
    outputs: &mut StepOutputs<'_>,
) -> Result<StepOutcome, StepError> {
    let (workers, options) = (watcher.workers, watcher.options);
    let (sender, receiver) = channel();
    let release = ReleaseOnDrop(workers);
    let outcome = start(sender).and_then(|()| {
        workers::await_open(&receiver, watcher.infos.len(), options.open_timeout)?;
        let mut first = Progress {
            kinds: vec![(0, 0); watcher.kinds.len()],
            ..Progress::default()
        };
        (outputs.progress)(&first);
        let lead_ns = lead_ns.load(Ordering::SeqCst);
        let begin_ns = workers.clock.now_ns() + lead_ns;
        if options.warm_up_ns > 0 {
            // Before anybody works: on a machine that is full of work this thread may come to its
            // turn when the warm-up is over.
            first.phase = Phase::WarmingUp {
                left: Duration::from_nanos(lead_ns + options.warm_up_ns),
            };
            (outputs.progress)(&first);
        }
        let start = (
            begin_ns + options.warm_up_ns,
            SystemTime::now() + Duration::from_nanos(lead_ns + options.warm_up_ns),
        );
        workers.start.give(Some(begin_ns));
        watcher.run(&receiver, start, outputs)
    });
    drop(release);
    // Who hangs has had its time.
    if !matches!(outcome, Err(StepError::Hung(_))) {
        workers::await_leave(&receiver, options.stop_timeout);
    }
    outcome
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;
    use crate::arrival::Arrival;
    use crate::clock::MonotonicClock;
    use crate::worker::{Next, Outcome, Stop, Worker};

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
        let workers = Arc::new(StepWorkers::new(
            &Arc::new(MonotonicClock),
            &control,
            &StepOptions::default(),
            &tasks,
            Intervals::new(1, tasks.len()),
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
            &workers,
            &["op"],
            tasks,
            &StepOptions::default(),
            &mut spawn,
            &mut StepOutputs {
                log: &mut io::sink(),
                progress: &mut |_| {},
                seconds: &mut no_series,
            },
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
