//! What a connection does in a step, as the loop sees it.

use crate::Arrival;

/// What a worker has next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// An operation of this kind (an index into the step's kinds) is ready to execute.
    Operation(usize),
    /// Nothing yet: another worker must get on first. The loop looks at its commands and asks
    /// again.
    Later,
    /// There is no connection: the loop pauses and asks again, until
    /// [`RetryPolicy::reconnect_deadline_ns`] is over.
    ///
    /// [`RetryPolicy::reconnect_deadline_ns`]: crate::RetryPolicy::reconnect_deadline_ns
    Lost {
        /// The error with its statement.
        message: String,
    },
    /// Nothing more, ever.
    Finished,
}

/// How one try of an operation went.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is done and touched this many rows.
    Done {
        /// Rows written, deleted or fetched.
        rows: u64,
    },
    /// It met a lock or lost a deadlock: try the same operation again.
    Retry {
        /// The class of the error.
        class: &'static str,
    },
    /// The connection is gone, and the operation certainly has not taken place or does no harm if
    /// it does so twice: try it again on a new connection. A write of which nobody knows whether it
    /// took place is [`Outcome::Failed`] instead.
    Lost {
        /// The error with its statement.
        message: String,
    },
    /// It cannot be done.
    Failed(Failure),
}

/// Why an operation cannot be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The class of the error.
    pub class: &'static str,
    /// The error with its statement.
    pub message: String,
}

impl Failure {
    /// Whether nobody knows what the operation did: its connection ended without an answer, or it
    /// touched other rows than it should.
    pub fn is_uncertain(&self) -> bool {
        matches!(self.class, "lost" | "rows" | "io" | "full")
    }
}

/// One connection with its generator. The loop calls `prepare` off the clock and `execute` on it.
pub trait Worker: Send {
    /// Connects and prepares statements, before the common start.
    fn open(&mut self) -> Result<(), String>;

    /// Makes the next operation ready: draws values, writes the statement. Not timed. May block for
    /// some milliseconds; for up to 2 s while the session makes a lost connection again.
    fn prepare(&mut self) -> Result<Next, String>;

    /// The step's warm-up is over: what the worker itself counts of its operations counts from
    /// here. Called once in a step with a warm-up, at the end for a worker that was not done with
    /// it; not called in a step without one.
    fn begin_measuring(&mut self) {}

    /// Executes the prepared operation, once. Called again after [`Outcome::Retry`] and
    /// [`Outcome::Lost`], when it connects again.
    fn execute(&mut self) -> Outcome;

    /// The worker performs no more operations: others that wait for it must not wait any longer.
    /// Its connection ends when it is dropped, after the last worker has come to its end.
    fn close(&mut self) {}
}

/// When a worker has done enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many operations; an open loop also lasts to the end of its schedule.
    Operations(u64),
    /// This many nanoseconds after the start.
    Time(u64),
    /// When every worker of its client with one of the other rules has ended.
    WithClient,
    /// When the worker says [`Next::Finished`].
    Worker {
        /// Operations of its schedule, if it has one: what its pacing is held against.
        planned: u64,
        /// The length of that schedule in nanoseconds.
        length_ns: u64,
    },
}

/// One worker with its schedule.
pub struct Task {
    /// The client it belongs to, from 1.
    pub client: u32,
    /// The kinds of operations it performs, as indexes into the step's kinds. Their histograms are
    /// made before the start.
    pub kinds: Vec<usize>,
    /// When operations are due.
    pub arrival: Arrival,
    /// When there are no more.
    pub stop: Stop,
    /// Who performs them.
    pub worker: Box<dyn Worker>,
}
