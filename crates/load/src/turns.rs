//! A step in turns: a clock that stands still while the workers are parked, and how far the workers
//! are.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_core::clock::Clock;

use crate::clock::MonotonicClock;
use crate::control::Control;
use crate::intervals::Intervals;
use crate::recorder::LiveCounts;
use crate::sync::AtomicU64;

/// A monotonic clock that stands still between two turns.
///
/// The loop reads schedules, the ends of steps and seconds from it, so all of them advance in turns
/// only: an open loop is due as often per active second as it would be without turns, and nothing
/// is owed for the time in which others had theirs.
#[derive(Debug)]
pub struct TurnClock<C = MonotonicClock> {
    machine: C,
    control: Arc<Control>,
    /// What the clock lags behind the machine's, in nanoseconds; with [`STANDS`] set, the instant
    /// at which it stands.
    state_ns: AtomicU64,
}

/// Marks a clock that stands still. No instant in nanoseconds since boot comes near it.
const STANDS: u64 = 1 << 63;

impl TurnClock {
    /// A running clock. Whoever sleeps on it is woken by commands of this control.
    pub fn new(control: Arc<Control>) -> Self {
        Self::of(MonotonicClock, control)
    }
}

impl<C: Clock> TurnClock<C> {
    /// A running clock that goes as the machine's does.
    pub(crate) fn of(machine: C, control: Arc<Control>) -> Self {
        Self {
            machine,
            control,
            state_ns: AtomicU64::new(0),
        }
    }

    /// Stands still from now on. For when all workers are parked.
    pub fn pause(&self) {
        if self.state_ns.load(Ordering::SeqCst) & STANDS == 0 {
            self.state_ns
                .store(self.now_ns() | STANDS, Ordering::SeqCst);
        }
    }

    /// Goes on from where it stood.
    pub fn resume(&self) {
        let state_ns = self.state_ns.load(Ordering::SeqCst);
        if state_ns & STANDS != 0 {
            self.state_ns.store(
                self.machine.now_ns() - (state_ns & !STANDS),
                Ordering::SeqCst,
            );
        }
    }
}

impl<C: Clock> Clock for TurnClock<C> {
    #[inline]
    fn now_ns(&self) -> u64 {
        match self.state_ns.load(Ordering::Acquire) {
            stood if stood & STANDS != 0 => stood & !STANDS,
            lag_ns => self.machine.now_ns() - lag_ns,
        }
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        let rest_ns = deadline_ns.saturating_sub(self.now_ns());
        self.control.sleep(Duration::from_nanos(rest_ns));
    }
}

/// How far the workers of a step are.
#[derive(Debug, Default)]
pub struct TurnProgress(OnceLock<Workers>);

#[derive(Debug)]
struct Workers {
    live: Arc<[LiveCounts]>,
    intervals: Arc<Intervals>,
    primary: Vec<PrimaryWorker>,
}

/// A worker that performs the step's first kind of operations, and perhaps others too.
#[derive(Debug)]
pub(crate) struct PrimaryWorker {
    /// Among the step's workers, from 0.
    pub index: usize,
    /// From 1.
    pub client: u32,
    pub is_open: bool,
}

/// How far one worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerProgress {
    /// The worker's client, from 1.
    pub client: u32,
    /// Whether its operations are due by a schedule: it may have none in flight.
    pub is_open: bool,
    /// Operations done since the step's start, of all its kinds.
    pub ok: u64,
    /// The instant at which the last operation ended, on the step's clock; 0 before the first. In a
    /// closed loop also one that failed for good.
    pub last_done_ns: u64,
    /// Where counting begins in the present turn (see [`TurnProgress::begin_turn`]).
    pub turn_start: TurnStart,
}

/// Counting begins in a turn after an operation: its own length has no part in what is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnStart {
    /// Operations done up to this one, itself included where it did not fail.
    pub ok: u64,
    /// The instant at which it ended, on the step's clock.
    pub done_ns: u64,
}

impl TurnProgress {
    pub(crate) fn add_workers(
        &self,
        live: Arc<[LiveCounts]>,
        intervals: Arc<Intervals>,
        primary: Vec<PrimaryWorker>,
    ) {
        // This is for one step; of another one it would show nothing.
        let _ = self.0.set(Workers {
            live,
            intervals,
            primary,
        });
    }

    /// Leaves all operations so far out of the step's histograms of times: they were for warming
    /// up. Counts of operations stay. For between two turns, while all workers are parked.
    pub fn leave_out_times(&self) {
        let Some(workers) = self.0.get() else { return };
        workers.intervals.restart();
        for live in workers.live.iter() {
            live.times_left_out.fetch_add(1, Ordering::Release);
        }
    }

    /// Whether the step's workers are known: from then on [`Control::wait_until_parked`] waits for
    /// all of them.
    pub fn has_workers(&self) -> bool {
        self.0.get().is_some()
    }

    /// Leaves the times of operations out of the step's histograms, or does not, until this is
    /// called again: whether they are in the discarded part of a turn. For while all workers are
    /// parked.
    pub fn discard_times(&self, is_discarded: bool) {
        for live in self.0.get().iter().flat_map(|workers| workers.live.iter()) {
            live.is_discarded
                .store(u64::from(is_discarded), Ordering::Release);
        }
    }

    /// Has each worker note the first operation that it ends at `from_ns` or later, on the step's
    /// clock. For between two turns, while all workers are parked.
    pub fn begin_turn(&self, from_ns: u64) {
        for live in self.0.get().iter().flat_map(|workers| workers.live.iter()) {
            live.turn_from_ns.store(from_ns, Ordering::Release);
        }
    }

    /// How far each worker is that performs the step's first kind of operations. Nothing before the
    /// step's workers are there.
    pub fn of_workers(&self) -> Vec<WorkerProgress> {
        let progress_of = |workers: &Workers, worker: &PrimaryWorker| {
            let live = &workers.live[worker.index];
            let turn_start = TurnStart {
                ok: live.turn_start_ok.load(Ordering::Acquire),
                done_ns: live.turn_start_done_ns.load(Ordering::Acquire),
            };
            loop {
                let ok = live.ok.load(Ordering::Acquire);
                let last_done_ns = live.last_done_ns.load(Ordering::Acquire);
                if live.ok.load(Ordering::Acquire) == ok {
                    return WorkerProgress {
                        client: worker.client,
                        is_open: worker.is_open,
                        ok,
                        last_done_ns,
                        turn_start,
                    };
                }
            }
        };
        self.0.get().map_or_else(Vec::new, |workers| {
            workers
                .primary
                .iter()
                .map(|worker| progress_of(workers, worker))
                .collect()
        })
    }

    /// Tries of all workers that did not succeed, since the step's start.
    pub fn unsuccessful(&self) -> u64 {
        self.0.get().map_or(0, |workers| {
            workers
                .live
                .iter()
                .map(|live| live.unsuccessful.load(Ordering::Relaxed))
                .sum()
        })
    }
}
