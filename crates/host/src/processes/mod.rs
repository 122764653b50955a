//! Processes: which one a pid means, what CPU one, a known set or a whole tree used, and the
//! servers that are stopped between their turns.

mod activity;
mod clocks;
mod others;
mod process;
mod servers;
mod tree;

#[cfg(test)]
pub(crate) use process::burn_cpu;
pub(crate) use process::{thread_cpu_ns, tick_ns};
pub(crate) use tree::ProcessTrees;

pub use activity::Activity;
pub use clocks::{CpuClocks, tree_pids};
pub use others::OtherProcesses;
pub use process::{boot_id, process_cpu_ns, process_start_ticks};
pub use servers::ServerProcesses;
