//! Run, park, stop: what the world may ask of the workers.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A command to all workers of a step. They finish the operation in flight before they obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Perform operations.
    Run,
    /// Hold still, connections open.
    Park,
    /// End the step early.
    Stop,
}

/// The shared command. Reading it costs the loop one relaxed load.
#[derive(Debug, Default)]
pub struct Control {
    command: AtomicU8,
    parked: Mutex<()>,
    changed: Condvar,
}

impl Control {
    /// Gives a command. `Stop` is final.
    pub fn give(&self, command: Command) {
        let _guard = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if self.command() != Command::Stop {
            self.command.store(command as u8, Ordering::Release);
        }
        self.changed.notify_all();
    }

    /// The command in force.
    #[inline]
    pub fn command(&self) -> Command {
        match self.command.load(Ordering::Relaxed) {
            0 => Command::Run,
            1 => Command::Park,
            _ => Command::Stop,
        }
    }

    /// Blocks while parked.
    pub fn wait_while_parked(&self) {
        let mut guard = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        while self.command() == Command::Park {
            guard = self.changed.wait_timeout(guard, Duration::from_millis(100)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
