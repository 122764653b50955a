//! What the machine does while a step runs: CPU, storage, pressure, processes, the environment, and
//! whether it is fit to measure on.
//!
//! Everything is read from `/proc`, `/sys` and process clocks; nothing needs root or hardware
//! counters. A number that cannot be read is unavailable with a reason, never an error and never a
//! zero. Reasons and facts go into reports, so they name no host, no user and no path.
//!
//! # Readings of a step
//! A [`Collector`] gives the differences between its start and its stop, maxima over its samples, and sizes at its stop:
//!
//! | name | unit, meaning | source |
//! |---|---|---|
//! | `seconds` | of the window, or from start to stop | monotonic clock |
//! | `late_s` | by how much the first look at the server was later than the window, where that began under load | monotonic clock |
//! | `cpus` | CPUs online at the stop | `/proc/stat` |
//! | `cpu_user_s` `cpu_system_s` `cpu_iowait_s` `cpu_steal_s` `cpu_idle_s` `cpu_total_s` | CPU seconds of the whole host: user + nice, system + irq + softirq, ..., the sum of all | `/proc/stat` |
//! | `context_switches` | of the whole host | `/proc/stat` |
//! | `disk_reads` `disk_read_bytes` `disk_writes` `disk_write_bytes` | requests completed and bytes of the data directory's device, by all processes | `/proc/diskstats` |
//! | `psi_cpu_some_s` `psi_io_some_s` `psi_memory_some_s` | time in which some task waited | `/proc/pressure` |
//! | `client_cpu_s` | CPU of this process, the collector included; unavailable with an embedded engine | process clock |
//! | `server_cpu_s` | CPU of the server's process trees; unavailable with an embedded engine | process clocks, `/proc/PID/stat` |
//! | `process_cpu_s` | CPU of this process with the embedded engine in it; unavailable otherwise | process clock |
//! | `rss_max_bytes` | largest sample: VmRSS of this process with an embedded engine, else of the server's process trees: every process's own memory, shared memory and files once | `/proc/PID/status` |
//! | `data_dir_bytes` | sizes of the files in the data directory at the stop | directory walk |
//! | `voluntary_switches` `involuntary_switches` `client_major_faults` | of this process, all threads | `getrusage` |
//! | `own_user_s` `own_system_s` | CPU of this process by mode, all threads | `getrusage` |
//! | `collector_cpu_s` | CPU of the sampling thread | thread clock |
//! | `series` | rows written to the series file, when one was asked for | |

mod affinity;
mod awake;
mod busy;
mod canary;
mod clocks;
mod collector;
mod disk;
mod environment;
mod parse;
mod proc;
mod process;
mod readiness;
mod readings;
mod sampler;
mod series;
mod server_processes;
mod space;
mod tree;

pub use affinity::{Cpus, pin_thread};
pub use awake::AwakeCpus;
pub use busy::busy_ns;
pub use canary::{Canary, run_canary, speed_witness};
pub use clocks::{CpuClocks, tree_pids};
pub use collector::{Collector, PreparedCollector, Watch};
pub use environment::{Environment, Fact, capture_environment};
pub use proc::Proc;
pub use process::{boot_id, is_same_process, process_cpu_ns, process_start_ticks};
pub use readiness::{Check, Status, check_machine};
pub use sampler::{ChildUsage, child_usage};
pub use server_processes::ServerProcesses;
pub use space::{DiskSpace, directory_bytes, disk_space, free_bytes};

/// A value, or the reason there is none: a lowercase fragment without paths, host or user names.
type Answer<T> = Result<T, String>;
