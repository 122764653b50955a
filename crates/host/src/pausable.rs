//! Processes that do nothing while it is not their turn.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::Answer;

/// A set of processes that can be stopped and let go on. They go on when it is dropped, whatever happened. Each is held by its file descriptor, so a number that
/// has been given to another process stops no stranger.
pub struct Pausable {
    processes: Vec<OwnedFd>,
}

impl Pausable {
    /// These processes; those that have just ended are left out.
    ///
    /// # Errors
    /// When the kernel cannot open one (before Linux 5.3).
    pub fn new(pids: &[u32]) -> Answer<Self> {
        let mut processes = Vec::new();
        for &pid in pids {
            let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { continue };
            match pidfd_open(number, PidfdFlags::empty()) {
                Ok(process) => processes.push(process),
                Err(Errno::SRCH) => {}
                Err(error) => return Err(format!("open process {pid} to stop it between its turns: {error}; this needs Linux 5.3")),
            }
        }
        Ok(Self { processes })
    }

    /// Stops them (SIGSTOP).
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets them go on (SIGCONT).
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        for process in &self.processes {
            // Fails only for one that has ended.
            let _ = pidfd_send_signal(process, signal);
        }
    }
}

impl Drop for Pausable {
    fn drop(&mut self) {
        self.go_on();
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use super::*;

    /// The letter that `/proc` has for what the process is doing.
    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
    }

    fn wait_for(pid: u32, wanted: impl Fn(char) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !wanted(state(pid)) {
            assert!(Instant::now() < deadline, "still {}", state(pid));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn processes_stop_go_on_and_are_never_left_stopped() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = child.id();
        let pausable = Pausable::new(&[pid]).unwrap();
        for _ in 0..3 {
            pausable.pause();
            wait_for(pid, |state| state == 'T');
            pausable.go_on();
            wait_for(pid, |state| state != 'T');
        }
        pausable.pause();
        wait_for(pid, |state| state == 'T');
        drop(pausable);
        wait_for(pid, |state| state != 'T');
        child.kill().unwrap();
        child.wait().unwrap();
        // One that is gone is no error.
        let pausable = Pausable::new(&[pid]).unwrap();
        pausable.pause();
    }
}
