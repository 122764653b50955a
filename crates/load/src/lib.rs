//! How load is made: an [`Arrival`] says when an operation is due, a [`Stop`] when there are no
//! more, a [`Worker`] performs it, a recorder keeps what happened. One loop composes the four; it
//! knows no engine and no benchmark.
//!
//! ```text
//! due    the instant the schedule wants          lag      = sent - due
//! sent   just before the worker executes         service  = done - sent
//! done   just after                              response = done - due
//! ```
//!
//! A slot of an open loop is never skipped: when the worker is late its operations queue, and their
//! response time counts from the instant they were due. What is still owed when a step ends is
//! never sent, and its response time is known to be at least what it has waited. A closed loop has
//! no schedule and therefore no response time.

mod arrival;
mod clock;
mod control;
mod drive;
mod intervals;
mod loop_state;
mod patience;
mod recorder;
mod retry;
mod step;
mod sync;
mod turns;
mod worker;

pub use arrival::{Arrival, Due};
pub use clock::MonotonicClock;
pub use control::{Command, Control};
pub use patience::Patience;
pub use recorder::Second;
pub use retry::RetryPolicy;
pub use step::{
    Ended, PartHost, PartLink, PartReport, Phase, Progress, SecondRow, StepError, StepOptions,
    StepOutcome, StepOutputs, StepPart, interval_s, no_series, run_part, run_step,
    run_step_in_parts,
};
pub use turns::{TurnClock, TurnProgress, TurnStart, WorkerProgress};
pub use worker::{Failure, Next, Outcome, Stop, Task, Worker};
