//! The events of a trial and their file, `events.jsonl`.

pub mod event;
pub(crate) mod line;
pub(crate) mod log;
#[cfg(test)]
pub(crate) mod samples;
pub(crate) mod writer;
