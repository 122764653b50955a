//! The Insert Benchmark's files.

pub mod client;
pub mod metrics_lines;
pub mod step_result;
