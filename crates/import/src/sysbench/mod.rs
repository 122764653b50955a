//! Sysbench's own output, and what the microbenchmark scripts make of it.

pub mod load;
pub mod metrics;
pub mod output;
pub mod per_test;
pub mod perf;
pub mod published;
pub mod time;
