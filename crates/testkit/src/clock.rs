//! Time that passes only when somebody sleeps.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_core::clock::Clock;

/// A clock whose sleepers move it. Meant for one working thread; others may look at it.
#[derive(Debug, Default)]
pub struct FakeClock(AtomicU64);

impl FakeClock {
    /// Lets `ns` nanoseconds pass.
    pub fn advance(&self, ns: u64) {
        self.0.fetch_add(ns, Ordering::SeqCst);
    }
}

impl Clock for FakeClock {
    fn now_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        self.0.fetch_max(deadline_ns, Ordering::SeqCst);
    }
}

thread_local! {
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
}

/// A clock that stands at 0 when a thread begins and that each thread moves for itself: workers
/// side by side, each in a time of its own that no other disturbs.
#[derive(Debug, Default)]
pub struct ClockPerThread {
    /// Sleepers wake so many nanoseconds too late.
    pub oversleep_ns: u64,
}

impl ClockPerThread {
    /// Lets `ns` nanoseconds pass for this thread.
    pub fn advance(&self, ns: u64) {
        NOW_NS.set(NOW_NS.get() + ns);
    }
}

impl Clock for ClockPerThread {
    fn now_ns(&self) -> u64 {
        NOW_NS.get()
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        if deadline_ns > NOW_NS.get() {
            NOW_NS.set(deadline_ns + self.oversleep_ns);
        }
    }
}
