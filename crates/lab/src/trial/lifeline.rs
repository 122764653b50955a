//! A trial lives no longer than its orchestrator.

use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_core::buggify::{self, Point};
use plimsoll_load::{Command, Control};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::spawn_vital;
use crate::error::LabError;
use crate::input::{Input, wait_for_input};
use crate::message::{STOP, TurnCommand};

/// The tie between a trial and its orchestrator.
pub(super) struct Lifeline {
    /// What the orchestrator says to a trial in turns.
    pub commands: Mutex<Receiver<TurnCommand>>,
    input: Arc<Mutex<Input>>,
}

impl Lifeline {
    /// Sets the parent-death signal and listens on standard input: `stop` ends the step in flight;
    /// the end of input, and silence for longer than `patience`, end the process at once. Each
    /// closes a gap of the others: the signal does not reach a child of a wrapper command, the pipe
    /// can be inherited, and a connection to another machine may break without an end. Nobody's
    /// number is looked for: that of a process elsewhere is not visible here.
    pub fn tie_to_parent(
        patience: Duration,
        control: Arc<Control>,
        input: Input,
    ) -> Result<Self, LabError> {
        set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| LabError::io("failed to set the parent-death signal", error))?;
        let (sender, commands) = channel();
        let input = Arc::new(Mutex::new(input));
        let listened = input.clone();
        let listen = move || {
            loop {
                let mut input = lock(&listened);
                while let Some(line) = input.whole_line() {
                    buggify::pause(Point::LateCommand, Duration::from_millis(2));
                    let line = String::from_utf8_lossy(&line);
                    if line.trim() == STOP {
                        control.give(Command::Stop);
                    } else if let Ok(command) = serde_json::from_str(&line) {
                        // Nobody listens in a trial without turns.
                        let _ = sender.send(command);
                    }
                }
                drop(input);
                if !wait_for_input(io::stdin().as_fd(), patience) {
                    eprintln!(
                        "the orchestrator has said nothing for {} s: it is gone",
                        patience.as_secs()
                    );
                    std::process::exit(1);
                }
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
