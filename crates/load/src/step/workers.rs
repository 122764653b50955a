//! The workers of a step: their threads, and what these share.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_core::clock::Clock;

use super::outcome::{TaskEnd, TaskInfo};
use super::{StepError, StepOptions};
use crate::clock::MonotonicClock;
use crate::control::Control;
use crate::drive::drive;
use crate::intervals::Intervals;
use crate::loop_state::{Assignment, Ending, LoopState, Shared};
use crate::recorder::{LiveCounts, Recorder};
use crate::retry::RetryPolicy;
use crate::turns::PrimaryWorker;
use crate::worker::{Failure, Stop, Task};

/// More workers than this get 10-s histogram intervals, so that handing them over stays cheap.
const FINE_INTERVAL_WORKERS: usize = 64;

/// The length of histogram intervals of a step with so many workers, in seconds.
pub fn interval_s(workers: usize) -> u64 {
    if workers > FINE_INTERVAL_WORKERS {
        10
    } else {
        1
    }
}

/// An instant that all workers wait for.
#[derive(Default)]
pub(super) struct Signal {
    /// `None`: not yet; `Some(None)`: never; `Some(Some(ns))`: then.
    start: Mutex<Option<Option<u64>>>,
    changed: Condvar,
}

impl Signal {
    pub fn give(&self, start_ns: Option<u64>) {
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start_ns);
        self.changed.notify_all();
    }

    pub fn is_given(&self) -> bool {
        let start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        start.is_some()
    }

    pub fn wait(&self) -> Option<u64> {
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

/// Releases the workers when it is dropped, however the step ends: those that wait leave, those
/// that work end after their operation.
pub(super) struct ReleaseOnDrop<'a, C>(pub &'a StepWorkers<C>);

impl<C> Drop for ReleaseOnDrop<'_, C> {
    fn drop(&mut self) {
        self.0.is_aborted.store(true, Ordering::Relaxed);
        self.0.start.give(None);
        self.0.leave.give(None);
    }
}

/// The failure of a worker whose code has a bug.
const PANICKED: &str = "the worker panicked: see the trial's log";

/// What a worker's thread reports.
pub(super) enum Message {
    Opened,
    NotOpened(u32, String),
    Ended(usize, Box<TaskEnd>),
}

/// What the workers of a step share.
pub(super) struct StepWorkers<C> {
    pub clock: Arc<C>,
    pub control: Arc<Control>,
    retry: RetryPolicy,
    may_fail: bool,
    pub warm_up_ns: u64,
    /// Given with the instant at which all begin.
    pub start: Signal,
    /// Given when all have ended and may disconnect.
    pub leave: Signal,
    pub is_aborted: AtomicBool,
    pub finished_ns: AtomicU64,
    leaders: Vec<AtomicU32>,
    pub live: Arc<[LiveCounts]>,
    pub intervals: Arc<Intervals>,
}

impl<C: Clock> StepWorkers<C> {
    pub fn new(
        clock: &Arc<C>,
        control: &Arc<Control>,
        options: &StepOptions,
        tasks: &[Task],
        intervals: Intervals,
    ) -> Self {
        let clients = tasks.iter().map(|task| task.client).max().unwrap_or(0) as usize;
        let leaders: Vec<AtomicU32> = (0..clients).map(|_| AtomicU32::new(0)).collect();
        for task in tasks.iter().filter(|task| task.stop != Stop::WithClient) {
            leaders[task.client as usize - 1].fetch_add(1, Ordering::Relaxed);
        }
        Self {
            clock: clock.clone(),
            control: control.clone(),
            retry: options.retry,
            may_fail: options.max_failed.is_some(),
            warm_up_ns: options.warm_up_ns,
            start: Signal::default(),
            leave: Signal::default(),
            is_aborted: AtomicBool::new(false),
            finished_ns: AtomicU64::new(u64::MAX),
            leaders,
            live: tasks.iter().map(|_| LiveCounts::default()).collect(),
            intervals: Arc::new(intervals),
        }
    }

    /// What a worker's thread does.
    fn work(&self, index: usize, mut task: Task, recorder: Recorder, sender: &Sender<Message>) {
        let presence = self.control.presence();
        MonotonicClock::set_finest_slack();
        // A panic must end the step like any other failure, not leave the others waiting for it.
        let opened = catch_unwind(AssertUnwindSafe(|| task.worker.open()));
        if let Err(message) = opened.unwrap_or_else(|_| Err(PANICKED.to_owned())) {
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
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            drive(&*self.clock, &mut *task.worker, &mut state);
        }))
        .is_err();
        let ended_ns = self.clock.now_ns().saturating_sub(start_ns);
        if panicked {
            state.fail(Failure {
                class: "panic",
                message: PANICKED.into(),
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
        drop(presence);
        let parts = state.into_parts();
        let end = TaskEnd {
            is_interrupted: parts.result != Ok(Ending::ByRule),
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
pub(super) type Spawn<'a> =
    &'a mut dyn FnMut(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<()>;

/// Starts a thread for each task.
pub(super) fn start<C: Clock + 'static>(
    workers: &Arc<StepWorkers<C>>,
    infos: &[TaskInfo],
    tasks: Vec<Task>,
    options: &StepOptions,
    spawn: Spawn<'_>,
    sender: Sender<Message>,
) -> Result<(), StepError> {
    let control = &workers.control;
    // Workers are expected before anybody can see them: otherwise all of none would be parked.
    control.expect(infos.len());
    if let Some(progress) = &options.turn_progress {
        let primary = infos
            .iter()
            .enumerate()
            .filter(|(_, info)| info.kinds.contains(&0));
        let worker = |(index, info): (usize, &TaskInfo)| PrimaryWorker {
            index,
            client: info.client,
            is_open: info.arrival.is_open(),
        };
        progress.add_workers(
            workers.live.clone(),
            workers.intervals.clone(),
            primary.map(worker).collect(),
        );
    }
    for (index, task) in tasks.into_iter().enumerate() {
        let recorder = Recorder::new(
            index,
            &task.kinds,
            task.arrival.is_open(),
            workers.intervals.clone(),
            workers.live.clone(),
        );
        let (workers, sender) = (workers.clone(), sender.clone());
        let body = Box::new(move || workers.work(index, task, recorder, &sender));
        spawn(thread::Builder::new().name(format!("worker {index}")), body).map_err(|error| {
            // Those that have no thread are not waited for.
            (index..infos.len()).for_each(|_| drop(control.presence()));
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

/// Waits until all workers are connected.
pub(super) fn await_open(
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
pub(super) fn await_leave(receiver: &Receiver<Message>, timeout: Duration) {
    let deadline = Instant::now() + timeout;
    // The channel ends with the last of them.
    while receiver
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .is_ok()
    {}
}
