//! What the machine does while a step runs: CPU, storage, pressure, processes, the environment, and
//! whether it is fit to measure on.
//!
//! Everything is read from `/proc`, `/sys` and process clocks; nothing needs root or hardware
//! counters. A number that cannot be read is unavailable with a reason, never an error and never a
//! zero. Reasons and facts go into reports, so they name no host, no user and no path.
//!
//! A [`Collector`] gives the readings of a step, which [`plimsoll_core::readings::HostReading`]
//! lists: differences between its start and its stop, maxima over its samples, and sizes at its
//! stop.

mod affinity;
mod awake;
mod busy;
mod canary;
mod collector;
mod disk;
mod environment;
#[cfg(fuzzing)]
mod fuzzing;
mod machine_id;
mod memory;
mod parse;
mod proc;
mod processes;
mod readiness;
mod space;
mod sys;

pub use affinity::{Cpus, pin_thread};
pub use awake::AwakeCpus;
pub use busy::{MachineClocks, MachineCpu};
pub use canary::{Canary, run_canary, speed_witness};
pub use collector::{
    ChildUsage, Collector, EngineUnderLoad, Looks, PreparedCollector, child_usage,
};
pub use disk::InFlight;
pub use environment::{Environment, Fact, capture_environment};
#[cfg(fuzzing)]
pub use fuzzing::proc_text as fuzz_proc_text;
pub use machine_id::machine_id;
pub use memory::Memory;
pub use proc::Proc;
pub use processes::{
    Activity, CpuClocks, OtherProcesses, ServerProcesses, boot_id, process_cpu_ns,
    process_start_ticks, tree_pids,
};
pub use readiness::{Check, Remedy, Status, check_machine, remedy};
pub use space::{DiskSpace, directory_bytes, disk_space, free_bytes};

/// A value, or the reason there is none: a lowercase fragment without paths, host or user names.
type Answer<T> = Result<T, String>;
