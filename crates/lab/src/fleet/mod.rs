//! Campaigns on other machines: blocks over hosts that are reached by ssh, or by Slurm.
//!
//! A block never leaves its host, and a trial's folder has one writer. The desk, where the user
//! types, holds the campaign; hosts hold the folder of a trial until the desk has it.
//!
//! ```text
//! hosts     hosts.toml: which machines there are
//! ssh       the system's ssh as a child process, and why it failed
//! wire      the lines between a desk and `plimsoll work`
//! link      the desk's end of them
//! work      the host's end: runs blocks in a spool folder
//! voice     what work says, and how it notices that nobody listens
//! transfer  a sealed folder as a tar stream, and back
//! whose     which trial a sealed folder is, and whose; pure but for its events
//! blocks    whose a block is, and what is left of it; pure
//! board     which block is whose; pure
//! reach     who answers, and whether it can be used
//! desk      a thread per host
//! push      this program and builds, copied to a host
//! slurm     the same blocks as an array of jobs
//! ```

mod blocks;
mod board;
mod desk;
mod hosts;
mod link;
mod push;
mod reach;
mod slurm;
mod spool;
mod ssh;
mod transfer;
mod voice;
mod whose;
mod wire;
mod work;

pub use desk::run_over_hosts;
pub use hosts::{Host, Hosts, check_name, default_hosts_file};
pub(crate) use push::program_on;
pub use push::{clean_here, clean_host, machine_check, push_builds, push_program, receive_build};
pub use reach::{Desk, Reach, check_host, check_hosts};
pub use slurm::{Scripts, SlurmJob, Submission, open_jobs, scripts, submit, work_in_job};
pub use ssh::ask_for_host_key;
pub(crate) use ssh::{HostInput, Piped, Words, end_within, ssh, start_piped, why};
pub use wire::{Hello, HostBuild};
pub use work::{WorkPlaces, work};
