//! Single processes: which one a pid means, and what CPU it took.

use std::io;

use nix::unistd::Pid;

use crate::parse::{ProcessStat, parse_process_stat};
use plimsoll_core::units::SECOND_NS;

/// When a process started, in clock ticks since boot. With the pid and the boot id it names one
/// process for ever.
///
/// # Errors
/// When there is no such process, or its `stat` file cannot be read.
pub fn process_start_ticks(pid: u32) -> io::Result<u64> {
    Ok(process_stat(pid)?.start_ticks)
}

fn process_stat(pid: u32) -> io::Result<ProcessStat> {
    let text = std::fs::read(format!("/proc/{pid}/stat"))?;
    parse_process_stat(&String::from_utf8_lossy(&text))
        .map_err(|reason| io::Error::new(io::ErrorKind::InvalidData, reason))
}

/// The id of this boot of the machine.
///
/// # Errors
/// When the kernel does not show it.
pub fn boot_id() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?
        .trim()
        .to_owned())
}

/// CPU time of a process since its start, in nanoseconds: all its threads, ended ones too, but not
/// its children.
///
/// # Errors
/// When there is no such process.
pub fn process_cpu_ns(pid: u32) -> io::Result<u64> {
    /// The kernel's own limit. A clock id has room for 29 bits of pid only: a larger number, like
    /// 0, would mean another process or the caller.
    const PID_LIMIT: i32 = 1 << 22;
    let pid = i32::try_from(pid)
        .ok()
        .filter(|pid| (1..=PID_LIMIT).contains(pid))
        .ok_or(io::ErrorKind::NotFound)?;
    let time = nix::time::clock_getcpuclockid(Pid::from_raw(pid))?.now()?;
    Ok(nanoseconds(time.tv_sec(), time.tv_nsec()))
}

/// CPU time of the ended children that a process has waited for, and of theirs, in nanoseconds; in
/// steps of a clock tick.
///
/// # Errors
/// When there is no such process, or its `stat` file cannot be read.
pub(crate) fn process_reaped_ns(pid: u32) -> io::Result<u64> {
    Ok(process_stat(pid)?.reaped_ticks.saturating_mul(tick_ns()))
}

/// CPU time of the calling thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    nanoseconds(time.tv_sec, time.tv_nsec)
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> u64 {
    u64::try_from(
        seconds
            .saturating_mul(SECOND_NS as i64)
            .saturating_add(nanoseconds),
    )
    .unwrap_or(0)
}

/// The length of a clock tick, the unit of CPU time in `/proc`.
pub(crate) fn tick_ns() -> u64 {
    SECOND_NS / rustix::param::clock_ticks_per_second().max(1)
}

/// Uses this thread's CPU until the process's clock went on by `ns`.
#[cfg(test)]
pub(crate) fn burn_cpu(ns: u64) {
    let start = process_cpu_ns(std::process::id()).unwrap();
    while process_cpu_ns(std::process::id()).unwrap() < start + ns {
        std::hint::black_box((0..1000u64).fold(0, |sum, i| sum ^ i));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_process_is_a_zombie_until_it_is_waited_for() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let start = process_start_ticks(pid).unwrap();
        child.kill().unwrap();
        let (id, ended) = (
            rustix::process::Pid::from_child(&child),
            rustix::process::WaitIdOptions::EXITED,
        );
        rustix::process::waitid(
            rustix::process::WaitId::Pid(id),
            ended | rustix::process::WaitIdOptions::NOWAIT,
        )
        .unwrap();
        assert_eq!(process_start_ticks(pid).unwrap(), start, "still a zombie");
        assert!(!process_stat(pid).unwrap().is_running);
        child.wait().unwrap();
        assert!(process_cpu_ns(pid).is_err());
    }

    #[test]
    fn the_clock_counts_ended_threads() {
        let pid = std::process::id();
        let before = process_cpu_ns(pid).unwrap();
        let thread = std::thread::spawn(|| {
            let start = thread_cpu_ns();
            while thread_cpu_ns() < start + 20_000_000 {}
        });
        thread.join().unwrap();
        assert!(process_cpu_ns(pid).unwrap() >= before + 20_000_000);
    }

    #[test]
    fn there_is_no_clock_without_a_process() {
        for pid in [0, u32::MAX, i32::MAX as u32, 1 << 29] {
            assert!(process_cpu_ns(pid).is_err(), "{pid}");
        }
    }
}
