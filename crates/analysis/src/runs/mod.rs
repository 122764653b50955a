//! What the events of a trial come to: attempts, results of steps, histograms.

pub(crate) mod attempts;
pub(crate) mod events;
pub(crate) mod histogram;
