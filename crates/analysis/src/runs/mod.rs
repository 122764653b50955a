//! What the events of a trial come to: attempts, results of steps, histograms.

pub(crate) mod attempts;
pub(crate) mod cell_runs;
pub(crate) mod events;
pub(crate) mod histogram;
pub(crate) mod results;
pub(crate) mod status;
