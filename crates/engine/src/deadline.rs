//! Deadlines for what blocks: it runs in a thread of its own.

use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Runs `work` in a thread and waits for its answer until `deadline`. A thread that is late is left
/// alone: it ends with its server, its connection or this process.
pub(crate) fn within<T: Send + 'static>(
    deadline: Instant,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Fails when nobody waits any more.
        let _ = sender.send(work());
    });
    receiver
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_late_answer_is_not_waited_for() {
        let (go, wait) = mpsc::channel::<()>();
        assert_eq!(
            within(Instant::now() + Duration::from_millis(5), move || wait
                .recv()),
            None
        );
        drop(go);
        assert_eq!(
            within(Instant::now() + Duration::from_secs(60), || 7),
            Some(7)
        );
    }
}
