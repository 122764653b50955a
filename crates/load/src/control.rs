//! Run, park, finish, stop: what the world may ask of the workers.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::patience::Patience;
use crate::sync::{AtomicU8, Condvar, Mutex, MutexGuard};

/// Whoever waits for a change looks at the command this often all the same.
const LOOK: Duration = Duration::from_millis(100);

/// A command to all workers of a step. They finish the operation in flight before they obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Perform operations.
    Run,
    /// Hold still, connections open.
    Park,
    /// The step's time is over: those that end by time end now, the others by their own rules.
    Finish,
    /// End the step early.
    Stop,
}

/// The shared command. Reading it costs the loop one relaxed load.
#[derive(Debug, Default)]
pub struct Control {
    command: AtomicU8,
    workers: Mutex<Workers>,
    changed: Condvar,
    /// A worker parked or ended.
    settled: Condvar,
}

#[derive(Debug, Default)]
struct Workers {
    /// Workers of the step that have not ended; `None` before a step has said how many it has.
    present: Option<usize>,
    parked: usize,
}

/// A worker that a step waits for until this is dropped.
#[derive(Debug)]
pub(crate) struct Presence<'a>(&'a Control);

impl Drop for Presence<'_> {
    fn drop(&mut self) {
        let mut workers = self.0.workers();
        workers.present = workers.present.map(|present| present - 1);
        drop(workers);
        self.0.settled.notify_all();
    }
}

impl Control {
    /// Gives a command. `Stop` is final.
    pub fn give(&self, command: Command) {
        let _guard = self.workers();
        if self.command() != Command::Stop {
            self.command.store(command as u8, Ordering::Release);
        }
        self.changed.notify_all();
        self.settled.notify_all();
    }

    /// The command in force.
    #[inline]
    pub fn command(&self) -> Command {
        match self.command.load(Ordering::Relaxed) {
            0 => Command::Run,
            1 => Command::Park,
            2 => Command::Finish,
            _ => Command::Stop,
        }
    }

    /// Blocks while parked.
    pub fn wait_while_parked(&self) {
        let mut workers = self.workers();
        workers.parked += 1;
        self.settled.notify_all();
        while self.command() == Command::Park {
            workers = wait(&self.changed, workers, LOOK);
        }
        workers.parked -= 1;
    }

    /// Waits until every worker of the step is parked or has ended; false when it takes longer, or
    /// when a stop comes first. A freeze of the machine uses up no patience.
    pub fn wait_until_parked(&self, limit: Duration) -> bool {
        let mut patience = Patience::new(limit);
        let mut workers = self.workers();
        while self.command() == Command::Park
            && workers
                .present
                .is_none_or(|present| workers.parked < present)
        {
            if patience.is_over() {
                return false;
            }
            workers = wait(&self.settled, workers, LOOK);
        }
        self.command() == Command::Park
    }

    /// Workers that hold still now.
    pub fn parked(&self) -> usize {
        self.workers().parked
    }

    /// Sleeps this long or until another command is given, and not at all while the command is to
    /// park or to stop.
    pub(crate) fn sleep(&self, length: Duration) {
        let deadline = Instant::now() + length;
        let at_entry = self.command();
        let mut workers = self.workers();
        while self.command() == at_entry && !matches!(at_entry, Command::Park | Command::Stop) {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            workers = wait(&self.changed, workers, rest);
        }
    }

    /// This many workers are about to begin. Each needs a [`presence`](Self::presence), which is
    /// dropped at its end.
    pub(crate) fn expect(&self, workers: usize) {
        *self.workers() = Workers {
            present: Some(workers),
            parked: 0,
        };
    }

    /// The presence of a worker that [`expect`](Self::expect) has counted.
    pub(crate) fn presence(&self) -> Presence<'_> {
        Presence(self)
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a>(
    changed: &Condvar,
    workers: MutexGuard<'a, Workers>,
    limit: Duration,
) -> MutexGuard<'a, Workers> {
    changed
        .wait_timeout(workers, limit)
        .unwrap_or_else(PoisonError::into_inner)
        .0
}
