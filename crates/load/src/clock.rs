//! The real clock.

use std::num::NonZeroU64;

use plimsoll_core::clock::Clock;
use plimsoll_core::units::SECOND_NS;
use rustix::thread::{ClockId as SleepClock, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// `CLOCK_MONOTONIC`, with absolute sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

impl MonotonicClock {
    /// Asks the kernel to wake this thread as exactly as it can: the default timer slack of 50 us
    /// would be the lateness of every operation of an open loop.
    pub fn set_finest_slack() {
        // A kernel that refuses leaves us with the default slack; the lag histogram shows it.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now_ns(&self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
    }

    fn sleep_until_ns(&self, deadline_ns: u64) {
        let deadline = Timespec {
            tv_sec: (deadline_ns / SECOND_NS) as i64,
            tv_nsec: (deadline_ns % SECOND_NS) as i64,
        };
        // Interrupted by a signal: sleep on. The deadline is absolute, so nothing adds up.
        while clock_nanosleep_absolute(SleepClock::Monotonic, &deadline).is_err()
            && self.now_ns() < deadline_ns
        {}
    }
}

#[cfg(test)]
mod tests {
    use rustix::thread::current_timer_slack;

    use super::*;

    #[test]
    fn a_thread_is_woken_as_exactly_as_the_kernel_can() {
        // Some sandboxes do not know it.
        if current_timer_slack().is_err() {
            return;
        }
        MonotonicClock::set_finest_slack();
        assert_eq!(current_timer_slack().unwrap(), 1);
    }
}
