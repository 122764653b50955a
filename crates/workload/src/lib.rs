//! Benchmarks: their tables, data, statements, steps and roles. A workload makes workers; the load loop runs them.

mod check;
pub mod insert_benchmark;
mod run;
mod session;
pub mod sysbench;

pub use run::{SharedServer, StepFacts, StepTasks, WorkloadRun};
