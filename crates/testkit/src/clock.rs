//! Time that passes only when somebody sleeps.

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
