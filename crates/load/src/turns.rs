//! A step in turns: a clock that stands still while the workers are parked, and a board on which they show how far they are.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plimsoll_core::clock::Clock;

use crate::clock::MonotonicClock;
use crate::control::Control;
use crate::recorder::Live;

/// A monotonic clock that stands still between two turns.
///
/// The loop reads schedules, the ends of steps and seconds from it, so all of them advance in turns only: an open loop is due as often per
/// active second as it would be without turns, and nothing is owed for the time in which others had theirs.
#[derive(Debug)]
pub struct TurnClock {
    control: Arc<Control>,
    /// The sum of all pauses that are over.
    paused_ns: AtomicU64,
    /// When the pause began that is not over; 0 outside of pauses.
    pause_ns: AtomicU64,
}

impl TurnClock {
    /// A running clock. Whoever sleeps on it is woken by commands of this control.
    pub fn new(control: Arc<Control>) -> Self {
        Self { control, paused_ns: AtomicU64::new(0), pause_ns: AtomicU64::new(0) }
    }

    /// Stands still from now on. For when all workers are parked.
    pub fn pause(&self) {
        let _ = self.pause_ns.compare_exchange(0, MonotonicClock.now_ns(), Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Goes on from where it stood.
    pub fn resume(&self) {
        let pause_ns = self.pause_ns.load(Ordering::SeqCst);
        if pause_ns != 0 {
            self.paused_ns.fetch_add(MonotonicClock.now_ns() - pause_ns, Ordering::SeqCst);
            self.pause_ns.store(0, Ordering::SeqCst);
        }
    }
}

impl Clock for TurnClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        let now_ns = match self.pause_ns.load(Ordering::Acquire) {
            0 => MonotonicClock.now_ns(),
            pause_ns => pause_ns,
        };
        now_ns - self.paused_ns.load(Ordering::Acquire)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        let rest_ns = deadline_ns.saturating_sub(self.now_ns());
        self.control.sleep(Duration::from_nanos(rest_ns));
    }
}

/// Where the workers of a step show how far they are.
#[derive(Debug, Default)]
pub struct Board(OnceLock<Posts>);

#[derive(Debug)]
struct Posts {
    live: Arc<[Live]>,
    /// The workers whose last kind of operations is the step's primary one.
    primary: Vec<usize>,
}

/// How far one worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations done since the step's start.
    pub ok: u64,
    /// The instant at which the last of them was done, on the step's clock; 0 before the first.
    pub last_done_ns: u64,
}

impl Board {
    pub(crate) fn put_up(&self, live: Arc<[Live]>, primary: Vec<usize>) {
        // A board is for one step; of another one it would show nothing.
        let _ = self.0.set(Posts { live, primary });
    }

    /// How far each worker of the primary kind is. Nothing before the step's workers are there.
    pub fn tallies(&self) -> Vec<Tally> {
        let tally = |posts: &Posts, index: usize| {
            let live = &posts.live[index];
            loop {
                let ok = live.ok.load(Ordering::Acquire);
                let last_done_ns = live.last_done_ns.load(Ordering::Acquire);
                if live.ok.load(Ordering::Acquire) == ok {
                    return Tally { ok, last_done_ns };
                }
            }
        };
        self.0.get().map_or_else(Vec::new, |posts| posts.primary.iter().map(|&index| tally(posts, index)).collect())
    }

    /// Tries of all workers that did not succeed, since the step's start.
    pub fn unsuccessful(&self) -> u64 {
        self.0.get().map_or(0, |posts| posts.live.iter().map(|live| live.unsuccessful.load(Ordering::Relaxed)).sum())
    }
}
