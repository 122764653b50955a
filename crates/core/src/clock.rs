//! Time as the load loop sees it.

/// A monotonic clock in nanoseconds since an arbitrary origin that is the same for all threads of a
/// process.
///
/// The load loop is generic over this trait, so that a test can run hours of schedule in
/// milliseconds.
pub trait Clock: Send + Sync {
    /// Nanoseconds since the origin.
    fn now_ns(&self) -> u64;

    /// Returns when `now_ns() >= deadline_ns`, as little later as the clock can do.
    fn sleep_until_ns(&self, deadline_ns: u64);
}
