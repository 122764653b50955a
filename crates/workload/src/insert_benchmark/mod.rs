//! The Insert Benchmark: load in primary key order, index, then insert at the head while deleting
//! at the tail, then query meanwhile.
//!
//! The definition is that of the original (github.com/mdcallag/mytools, `bench/ibench`) as of
//! 2024-04 and later; two older eras are kept for comparison with their results.
//! `docs/workloads/insert-benchmark.md` lists where this implementation differs and why.

mod bound;
mod data;
mod delete;
mod index;
mod insert;
mod pairing;
mod query;
mod scan;
mod statements;
mod steps;

pub use data::RandomText;
pub(crate) use delete::MinIdCost;
pub use steps::InsertBenchmarkRun;

pub use crate::session::SharedServer;
pub use crate::step_tasks::StepTasks;
