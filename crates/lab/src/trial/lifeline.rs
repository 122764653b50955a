//! A trial lives no longer than its orchestrator.

use std::io::{BufRead, stdin};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use plimsoll_load::{Command, Control};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::error::LabError;
use crate::message::{Direction, STOP};

/// Sets the parent-death signal and listens on standard input: `stop` ends the step in flight, the end of input ends the process
/// at once. Either alone would leave a gap: the signal does not reach a child of a wrapper command, the pipe can be inherited.
///
/// What the orchestrator says to a trial in turns comes out of what is returned.
pub(super) fn tie_to_parent(parent_pid: u32, control: Arc<Control>) -> Result<Receiver<Direction>, LabError> {
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| LabError::io("failed to set the parent-death signal", error))?;
    let is_child = getppid().is_some_and(|parent| parent.as_raw_pid() == parent_pid as i32);
    let is_wrapped = !is_child && std::path::Path::new(&format!("/proc/{parent_pid}")).exists();
    if !is_child && !is_wrapped {
        return Err(LabError::Io("the orchestrator is gone".into()));
    }
    let (sender, directions) = channel();
    thread::Builder::new()
        .name("lifeline".into())
        .spawn(move || {
            let mut input = stdin().lock();
            let mut line = String::new();
            while input.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                if line.trim() == STOP {
                    control.give(Command::Stop);
                } else if let Ok(direction) = serde_json::from_str(&line) {
                    // Nobody listens in a trial without turns.
                    let _ = sender.send(direction);
                }
                line.clear();
            }
            std::process::exit(1);
        })
        .map_err(|error| LabError::io("failed to start a thread", error))?;
    Ok(directions)
}
