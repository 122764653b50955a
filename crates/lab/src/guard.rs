//! The process between orchestrator and trial: it takes in whatever loses its parent below it, and
//! outlives nothing of that.
//!
//! The kernel gives every orphan below a subreaper to it. So whatever of a trial dies, how and when
//! (the trial, a wrapper, a server, all of them), what is left becomes a child of the guard, which
//! kills it: no list of process ids can miss one or name a stranger. The guard learns of its
//! orchestrator's end by a signal. It ends when the kernel knows of no child of it any more.

use std::ffi::{CStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::signal::SigSet;
use plimsoll_engine::process::{child_command, end_children};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, getppid, set_child_subreaper,
    set_parent_process_death_signal, wait,
};
use rustix::thread::set_name;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::LabError;

/// The internal verb.
const VERB: &str = "guard";
/// Shown for its name: who ends everything that is called `plimsoll` leaves somebody to tidy up.
const NAME: &CStr = c"plimsoll-guard";
/// Shells add the number of a signal that ended a program to this.
pub(crate) const BY_SIGNAL: i32 = 128;

/// A command under a guard. `program` is this program's binary. To end it, signal the guard with
/// SIGTERM; its standard output is closed when nothing of it is left. Its exit status is the
/// command's, or [`BY_SIGNAL`] and the number of the signal that ended that.
pub(crate) fn guarded(program: &std::path::Path, command: &[OsString]) -> Command {
    let mut guard = child_command(program);
    // A group of its own: Ctrl-C reaches the orchestrator alone.
    guard
        .arg(VERB)
        .arg("--parent")
        .arg(std::process::id().to_string())
        .arg("--")
        .args(command)
        .process_group(0);
    guard
}

/// Has every signal reach this process as if a shell had started it. A parent's mask, and that it
/// ignores the ends of its children, are inherited: then a guard would learn of nothing, and nobody
/// could wait for one. Call it first, when there is one thread.
pub fn unblock_signals() -> Result<(), LabError> {
    SigSet::empty()
        .thread_set_mask()
        .map_err(|error| LabError::io("failed to unblock signals", error))?;
    if ignored_signals().contains(&SIGCHLD) {
        // Who listens does not ignore it; children begin with what is usual.
        let listened = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
        listened.map_err(|error| LabError::io("failed to listen for signals", error))?;
    }
    Ok(())
}

/// The signals that this process ignores.
pub fn ignored_signals() -> Vec<i32> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok())
        .unwrap_or(0);
    (1..=64)
        .filter(|signal| mask >> (signal - 1) & 1 == 1)
        .collect()
}

/// The body of the internal `guard` verb: runs a command, ends all that is left of it, and returns
/// the exit status. `parent` is who must live.
pub fn main(parent: u32, command: &[OsString]) -> Result<u8, LabError> {
    let failed = |what: &'static str| {
        move |error: io::Error| LabError::io(format!("failed to {what}"), error)
    };
    let Some((program, arguments)) = command.split_first() else {
        return Err(LabError::Usage(
            "`guard` is internal: `plimsoll run` starts it".into(),
        ));
    };
    let _ = set_name(NAME);
    let mut signals = Signals::new([SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM])
        .map_err(failed("listen for signals"))?;
    set_child_subreaper(Some(getpid())).map_err(|error| failed("take in orphans")(error.into()))?;
    // Sent when the thread ends that started us, too: whether the process is gone is looked at.
    set_parent_process_death_signal(Some(Signal::HUP))
        .map_err(|error| failed("set the parent-death signal")(error.into()))?;
    let is_alone = || getppid().is_none_or(|now| now.as_raw_pid() as u32 != parent);
    if is_alone() {
        return Err(LabError::Io("the orchestrator is gone".into()));
    }
    let mut command = child_command(program);
    let child = command
        .args(arguments)
        .process_group(0)
        .spawn()
        .map_err(|error| {
            LabError::Usage(format!(
                "failed to start {}: {error}; check that it is there, and the config's prefix",
                program.to_string_lossy()
            ))
        })?;
    let mut status = None;
    for signal in signals.forever() {
        match signal {
            SIGCHLD => {
                status = reap(child.id())?;
                if status.is_some() {
                    break;
                }
            }
            SIGHUP if !is_alone() => {}
            _ => break,
        }
    }
    end_children();
    Ok(exit_code(status))
}

/// Takes away whoever has ended, and gives the status of `child` if that is among them.
fn reap(child: u32) -> Result<Option<WaitStatus>, LabError> {
    let child = i32::try_from(child).ok().and_then(Pid::from_raw);
    let mut found = None;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if Some(pid) == child => found = Some(status),
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(Errno::CHILD) => return Ok(found),
            Err(error) => return Err(LabError::io("failed to wait for the trial", error)),
        }
    }
}

/// One that was killed by us counts as killed.
fn exit_code(status: Option<WaitStatus>) -> u8 {
    let killed = BY_SIGNAL + Signal::KILL.as_raw();
    let code = status.map_or(Some(killed), |status| {
        status
            .exit_status()
            .or(status.terminating_signal().map(|signal| BY_SIGNAL + signal))
    });
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
