//! Benchmarks: their tables, data, statements, steps and roles. A workload makes workers; the load
//! loop runs them.

mod check;
mod client;
mod elsewhere;
pub mod file;
mod filling;
mod index_scan;
pub mod insert_benchmark;
pub mod kv;
mod run;
mod session;
mod step_tasks;
pub mod sysbench;
mod timing;
mod values;

pub use elsewhere::{CountsPart, RunState};
pub use run::WorkloadRun;
pub use session::SharedServer;
pub use step_tasks::{ExtraCounts, StepTasks};
