//! The Insert Benchmark: load in primary key order, index, then insert at the head while deleting at the tail, then query meanwhile.
//!
//! The definition is that of the original (github.com/mdcallag/mytools, `bench/ibench`) as of 2024-04 and later; two older eras are
//! kept for comparison with their results. `docs/manual/insert-benchmark.md` lists where this implementation differs and why.

mod bound;
mod data;
mod delete;
mod index;
mod insert;
mod pairing;
mod query;
mod scan;
mod session;
mod statements;
mod steps;
mod verify;

pub use data::RandomText;
pub use steps::{InsertBenchmarkRun, SharedServer, StepTasks, StepTasksCost};
