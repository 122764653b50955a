//! What the events of a trial come to: attempts, results of steps.

pub(crate) mod attempts;
pub(crate) mod cell_runs;
pub(crate) mod events;
pub(crate) mod results;
pub(crate) mod status;
