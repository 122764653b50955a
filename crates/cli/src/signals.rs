//! The signals that mean us.

use plimsoll_lab::guard::ignored_signals;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

/// The signals that ask us to stop: Ctrl-C, `kill`, a terminal that was closed, and Ctrl-\, which
/// wants it at once as a second Ctrl-C does. `nohup` and shells have us ignore those of the
/// terminal where it does not mean us.
pub fn stop_signals() -> Vec<i32> {
    let ignored = ignored_signals();
    let of_terminal = [SIGHUP, SIGQUIT]
        .into_iter()
        .filter(|signal| !ignored.contains(signal));
    [SIGINT, SIGTERM].into_iter().chain(of_terminal).collect()
}
