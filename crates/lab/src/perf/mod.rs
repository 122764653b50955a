//! perf on a server: where its CPU time goes, and what the processor counts.

mod counters;
mod fold;
mod recorder;

pub(crate) use recorder::Recorder;
