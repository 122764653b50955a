//! A trial lives no longer than its orchestrator.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_load::{Command, Control};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use zeroize::Zeroizing;

use super::spawn_vital;
use crate::error::LabError;
use crate::message::{STOP, TurnCommand};

const CHUNK_BYTES: usize = 4096;

/// The lines of standard input. What was read of a line that is not whole yet can be handed on.
#[derive(Default)]
pub(super) struct Input {
    /// It may hold a password.
    pending: Zeroizing<Vec<u8>>,
}

impl Input {
    /// Goes on behind what another image of this process has read.
    pub fn behind(pending: Vec<u8>) -> Self {
        Self {
            pending: Zeroizing::new(pending),
        }
    }

    /// What was read and is not a whole line.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// The next line, waited for.
    pub fn next_line(&mut self) -> io::Result<Zeroizing<Vec<u8>>> {
        loop {
            if let Some(line) = self.whole_line() {
                return Ok(line);
            }
            if self.read()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next line of what was read.
    fn whole_line(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        let end = self.pending.iter().position(|&byte| byte == b'\n')?;
        Some(Zeroizing::new(self.pending.drain(..=end).collect()))
    }

    /// Reads what is there; 0 bytes at the end.
    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = Zeroizing::new([0; CHUNK_BYTES]);
        let bytes = loop {
            match rustix::io::read(io::stdin(), &mut chunk[..]) {
                Err(Errno::INTR) => {}
                read => break read?,
            }
        };
        self.pending.extend_from_slice(&chunk[..bytes]);
        Ok(bytes)
    }
}

/// The tie between a trial and its orchestrator.
pub(super) struct Lifeline {
    /// What the orchestrator says to a trial in turns.
    pub commands: Mutex<Receiver<TurnCommand>>,
    input: Arc<Mutex<Input>>,
}

impl Lifeline {
    /// Sets the parent-death signal and listens on standard input: `stop` ends the step in flight,
    /// the end of input ends the process at once. Either alone would leave a gap: the signal does
    /// not reach a child of a wrapper command, the pipe can be inherited.
    pub fn tie_to_parent(
        parent_pid: u32,
        control: Arc<Control>,
        input: Input,
    ) -> Result<Self, LabError> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| LabError::io("failed to set the parent-death signal", error))?;
        let is_child = getppid().is_some_and(|parent| parent.as_raw_pid() == parent_pid as i32);
        let is_wrapped = !is_child && std::path::Path::new(&format!("/proc/{parent_pid}")).exists();
        if !is_child && !is_wrapped {
            return Err(LabError::Io("the orchestrator is gone".into()));
        }
        let (sender, commands) = channel();
        let input = Arc::new(Mutex::new(input));
        let listened = input.clone();
        let listen = move || {
            loop {
                let mut input = lock(&listened);
                while let Some(line) = input.whole_line() {
                    let line = String::from_utf8_lossy(&line);
                    if line.trim() == STOP {
                        control.give(Command::Stop);
                    } else if let Ok(command) = serde_json::from_str(&line) {
                        // Nobody listens in a trial without turns.
                        let _ = sender.send(command);
                    }
                }
                drop(input);
                wait_for_input();
                // Whoever holds the input keeps what comes now for another image of this process.
                if !lock(&listened).read().is_ok_and(|bytes| bytes > 0) {
                    std::process::exit(1);
                }
            }
        };
        spawn_vital("lifeline", listen)
            .map_err(|error| LabError::io("failed to start a thread", error))?;
        Ok(Self {
            commands: Mutex::new(commands),
            input,
        })
    }

    /// Stops listening until it is dropped: every line that was read is obeyed, every other is
    /// still to be read.
    pub fn hold(&self) -> MutexGuard<'_, Input> {
        lock(&self.input)
    }
}

fn lock(input: &Mutex<Input>) -> MutexGuard<'_, Input> {
    input.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait_for_input() {
    let stdin = io::stdin();
    let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN)];
    while poll(&mut fds, None) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_and_the_rest_is_handed_on() {
        let mut input = Input::behind(b"one\ntwo\nthr".to_vec());
        let next = |input: &mut Input| {
            input
                .whole_line()
                .map(|line| String::from_utf8(line.to_vec()).unwrap())
        };
        assert_eq!(
            [next(&mut input), next(&mut input), next(&mut input)],
            [Some("one\n".into()), Some("two\n".into()), None]
        );
        assert_eq!(input.pending(), b"thr");
    }
}
