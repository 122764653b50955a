//! Workloads that users write: their tables, statements and events on the mechanism that sysbench's
//! tests run on.

mod compile;
mod steps;
mod tables;

pub use steps::FileRun;
