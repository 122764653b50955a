//! What root in a container may not do.

use std::thread;

pub use rustix::thread::CapabilitySet;
use rustix::thread::{capabilities, set_capabilities};

/// Does something without these capabilities, in a thread, whose own they are.
///
/// # Panics
/// When `action` does, or if the kernel does not let a capability go.
pub fn without_capabilities<T: Send>(
    denied: CapabilitySet,
    action: impl FnOnce() -> T + Send,
) -> T {
    thread::scope(|scope| {
        let denied = scope.spawn(|| {
            let mut mine = capabilities(None).expect("a thread knows its capabilities");
            mine.effective.remove(denied);
            set_capabilities(None, mine).expect("capabilities can be given up");
            action()
        });
        denied.join().expect("it does not panic")
    })
}
