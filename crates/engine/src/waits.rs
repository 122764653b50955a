//! What the sessions of a load wait for, seen from a connection of its own.

use crate::SqlError;

/// What a session that is at work and waits for nothing is counted as.
pub const RUNNING: &str = "running";

/// Looks at the sessions of a load. Each look is one short question on a connection of its own.
pub trait WaitSampler: Send {
    /// Where the server has the events from: the name of a view or statement.
    fn source(&self) -> &'static str;

    /// Calls `seen` once for each session that is at work at this moment: with the event that it
    /// waits for, or the state that its server gives it, or [`RUNNING`]. Idle sessions and this one
    /// are left out, and so is whoever works in another database.
    ///
    /// # Errors
    /// If the server does not answer the question.
    fn sample(&mut self, seen: &mut dyn FnMut(&str)) -> Result<(), SqlError>;
}
