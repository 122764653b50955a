//! Run, park, finish, stop: what the world may ask of the workers.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::patience::Patience;

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
    seats: Mutex<Seats>,
    changed: Condvar,
    /// A worker parked or left.
    settled: Condvar,
}

#[derive(Debug, Default)]
struct Seats {
    /// Workers of the step that have not ended; none before a step has said how many it has.
    taken: Option<usize>,
    parked: usize,
}

/// A worker's place among those that park; it is free when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat<'a>(&'a Control);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut seats = self.0.seats();
        seats.taken = seats.taken.map(|taken| taken - 1);
        drop(seats);
        self.0.settled.notify_all();
    }
}

impl Control {
    /// Gives a command. `Stop` is final.
    pub fn give(&self, command: Command) {
        let _guard = self.seats();
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
        let mut seats = self.seats();
        seats.parked += 1;
        self.settled.notify_all();
        while self.command() == Command::Park {
            seats = wait(&self.changed, seats, LOOK);
        }
        seats.parked -= 1;
    }

    /// Waits until every worker of the step is parked or has ended; false when it takes longer, or
    /// when a stop comes first. A freeze of the machine uses up no patience.
    pub fn wait_until_parked(&self, limit: Duration) -> bool {
        let mut patience = Patience::new(limit);
        let mut seats = self.seats();
        while self.command() == Command::Park
            && seats.taken.is_none_or(|taken| seats.parked < taken)
        {
            if patience.is_over() {
                return false;
            }
            seats = wait(&self.settled, seats, LOOK);
        }
        self.command() == Command::Park
    }

    /// Workers that hold still now.
    pub fn parked(&self) -> usize {
        self.seats().parked
    }

    /// Sleeps for so long, or until another command is given; not at all while one says to park or
    /// stop.
    pub(crate) fn sleep(&self, length: Duration) {
        let deadline = Instant::now() + length;
        let at_entry = self.command();
        let mut seats = self.seats();
        while self.command() == at_entry && !matches!(at_entry, Command::Park | Command::Stop) {
            let rest = deadline.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return;
            }
            seats = wait(&self.changed, seats, rest);
        }
    }

    /// So many workers are about to begin. Each must be given a [`seat`](Self::seat), or its place
    /// be freed by one.
    pub(crate) fn expect(&self, workers: usize) {
        *self.seats() = Seats {
            taken: Some(workers),
            parked: 0,
        };
    }

    /// The place of a worker that [`expect`](Self::expect) has counted.
    pub(crate) fn seat(&self) -> Seat<'_> {
        Seat(self)
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wait<'a>(
    changed: &Condvar,
    seats: MutexGuard<'a, Seats>,
    limit: Duration,
) -> MutexGuard<'a, Seats> {
    changed
        .wait_timeout(seats, limit)
        .unwrap_or_else(PoisonError::into_inner)
        .0
}
