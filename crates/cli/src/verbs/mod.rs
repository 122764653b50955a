//! One file a verb, or a few that belong together.

pub mod bisect;
pub mod build;
pub mod campaign;
pub mod confirm;
pub mod exchange;
pub mod gate;
pub mod machine;
pub mod plan;
pub mod results;
mod running;
pub mod verdicts;
pub mod workload;
