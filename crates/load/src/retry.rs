//! Pauses between the tries of an operation, and how long a worker keeps trying.

use crate::worker::Failure;
use plimsoll_core::units::SECOND_NS;

/// The class of operations that had no connection.
pub(crate) const LOST: &str = "lost";

/// What to do when an operation meets a lock or loses its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The first pause; each further one is twice as long.
    pub first_pause_ns: u64,
    pub longest_pause_ns: u64,
    /// An operation that has been tried for this long has failed.
    pub deadline_ns: u64,
    /// The longest pause between two tries to get a new connection.
    pub longest_reconnect_pause_ns: u64,
    /// A worker that has been without a connection for this long has failed.
    pub reconnect_deadline_ns: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            first_pause_ns: 50_000,
            longest_pause_ns: 1_000_000,
            deadline_ns: 60_000_000_000,
            longest_reconnect_pause_ns: 250_000_000,
            reconnect_deadline_ns: 30_000_000_000,
        }
    }
}

/// The time for which a worker has had no connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outage {
    pub since_ns: Option<u64>,
    pause_ns: u64,
}

impl Outage {
    #[inline]
    pub fn none(policy: &RetryPolicy) -> Self {
        Self {
            since_ns: None,
            pause_ns: policy.first_pause_ns,
        }
    }

    /// The instant of the next try after one that ended at `now_ns`; a failure once the deadline
    /// has passed.
    pub fn next_try_ns(
        &mut self,
        now_ns: u64,
        message: &str,
        policy: &RetryPolicy,
    ) -> Result<u64, Failure> {
        if now_ns - *self.since_ns.get_or_insert(now_ns) >= policy.reconnect_deadline_ns {
            let seconds = policy.reconnect_deadline_ns / SECOND_NS;
            return Err(Failure {
                class: LOST,
                message: format!(
                    "the connection was lost and did not come back in {seconds} s: {message}"
                ),
            });
        }
        let pause_ns = self.pause_ns;
        self.pause_ns = (pause_ns * 2).min(policy.longest_reconnect_pause_ns);
        Ok(now_ns + pause_ns)
    }
}
