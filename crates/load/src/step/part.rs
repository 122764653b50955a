//! A part of a step on a client host: its workers run as they would at home, and what the watcher
//! there would read is reported.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use plimsoll_core::clock::Clock;

use super::outcome::{TaskEnd, infos};
use super::part_report::{PartEnd, PartInterval, PartReport, PartSecond};
use super::workers::{self, Message, ReleaseOnDrop, StepWorkers};
use super::{StepError, StepOptions};
use crate::control::Control;
use crate::intervals::Intervals;
use crate::worker::Task;

/// Between two reports.
const REPORT_EVERY: Duration = Duration::from_millis(250);

/// Where a part's reports go.
pub trait PartLink {
    /// All workers are connected and idle. Returns the instant at which they begin, by the clock of
    /// this host; `None` when the step is given up.
    fn connected(&mut self) -> Option<u64>;

    /// Something happened.
    fn report(&mut self, report: PartReport);

    /// All workers have ended and are still connected. Returns when they may disconnect.
    fn ended(&mut self);
}

/// Runs the tasks of this host with histogram intervals of `interval_s` seconds. What comes of them
/// is in the reports; the step's own watcher decides about it, and about hangs.
///
/// # Errors
/// [`StepError::Open`] if a worker cannot connect, [`StepError::Hung`] if not all are connected in
/// time or a thread died.
pub fn run_part<C: Clock + 'static>(
    clock: &Arc<C>,
    tasks: Vec<Task>,
    interval_s: u64,
    control: &Arc<Control>,
    options: &StepOptions,
    link: &mut dyn PartLink,
) -> Result<(), StepError> {
    let infos = infos(&tasks);
    let intervals = Intervals::new(interval_s, tasks.len());
    let workers = StepWorkers::new(clock, control, options, &tasks, intervals);
    let workers = Arc::new(workers);
    let (sender, receiver) = channel();
    let release = ReleaseOnDrop(&workers);
    let spawn: workers::Spawn<'_> = &mut |builder, body| builder.spawn(body).map(drop);
    workers::start(&workers, &infos, tasks, options, spawn, sender)?;
    workers::await_open(&receiver, infos.len(), options.open_timeout)?;
    if let Some(begin_ns) = link.connected() {
        workers.start.give(Some(begin_ns));
        follow(&workers, infos.len(), &receiver, link)?;
        link.ended();
    }
    drop(release);
    workers::await_leave(&receiver, options.stop_timeout);
    Ok(())
}

/// Reports until all workers have ended.
fn follow<C: Clock>(
    workers: &StepWorkers<C>,
    count: usize,
    receiver: &Receiver<Message>,
    link: &mut dyn PartLink,
) -> Result<(), StepError> {
    let mut left = count;
    while left > 0 {
        let first = match receiver.recv_timeout(REPORT_EVERY) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                return Err(StepError::Hung("a worker's thread died".into()));
            }
        };
        let ended = |message| match message {
            Message::Ended(worker, end) => Some((worker, end)),
            Message::Opened | Message::NotOpened(..) => None,
        };
        let messages = first.into_iter().chain(receiver.try_iter());
        let ends: Vec<(usize, Box<TaskEnd>)> = messages.filter_map(ended).collect();
        left -= ends.len();
        link.report(report(workers, &ends));
    }
    Ok(())
}

fn report<C: Clock>(workers: &StepWorkers<C>, ends: &[(usize, Box<TaskEnd>)]) -> PartReport {
    let live = workers.live.iter().map(|live| {
        let read = |count: &crate::sync::AtomicU64| count.load(Ordering::Relaxed);
        (read(&live.ok), read(&live.rows), read(&live.unsuccessful))
    });
    let live = live.collect();
    // Before the intervals are taken: what is handed over meanwhile belongs to this one or later.
    let next_interval = workers.intervals.position();
    let mut intervals = Vec::new();
    while let Some((interval, pairs)) = workers.intervals.next_complete().interval {
        let of_kind = |(&kind, times)| PartInterval::new(interval, kind, times);
        intervals.extend(pairs.iter().map(of_kind));
    }
    let seconds = workers.intervals.take_seconds();
    PartReport {
        live,
        next_interval,
        intervals,
        seconds: seconds.iter().map(PartSecond::new).collect(),
        ends: ends
            .iter()
            .map(|(worker, end)| PartEnd::new(*worker, end))
            .collect(),
    }
}
