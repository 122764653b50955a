//! Sysbench's own output, and what the microbenchmark scripts make of it.

pub mod load;
pub mod metrics;
pub mod output;
pub mod perf;
pub mod perf_join;
pub mod published;
pub mod rates_line;
pub mod time;
