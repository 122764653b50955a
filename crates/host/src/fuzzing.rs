//! Texts of the kernel, or of whatever stands in its place, for the fuzz targets.

use std::path::Path;

use crate::Cpus;
use crate::parse::{
    Mount, kib_field, parse_diskstats, parse_mountinfo, parse_pressure, parse_process_io,
    parse_process_stat, parse_stat, parse_switches, text_field,
};
use crate::sys::chosen;

/// Reads a text as the file of `/proc` or `/sys` that `which` says. With a NUL in it, what is
/// before that is an earlier reading of the same file, and the difference is taken.
///
/// # Panics
/// If a difference is not what its two readings say, or a set of CPUs is not read back as it was
/// written.
pub fn proc_text(which: u8, text: &str) {
    let (before, now) = text.split_once('\0').unwrap_or(("", text));
    match which % 9 {
        0 => host_cpu(before, now),
        1 => disks(before, now),
        2 => {
            if let Ok(mounts) = parse_mountinfo(now) {
                let _ = Mount::of(&mounts, Path::new("/var/lib/data"));
            }
        }
        3 => drop(parse_pressure(now)),
        4 => {
            if let Ok(stat) = parse_process_stat(now) {
                assert!(now.contains(&stat.command));
            }
        }
        5 => {
            if let (Ok(one), Ok(other)) = (parse_process_io(before), parse_process_io(now)) {
                assert_eq!(one.plus(&other), other.plus(&one));
            }
        }
        6 => drop(parse_switches(now)),
        7 => {
            for name in ["VmRSS", "VmHWM", "MemAvailable", "model name"] {
                let _ = text_field(now, name);
                if let Ok(bytes) = kib_field(now, name) {
                    assert_eq!(bytes % 1024, 0);
                }
            }
        }
        _ => {
            let _ = chosen(now);
            if let Some(cpus) = Cpus::parse(now) {
                assert_eq!(Cpus::parse(&cpus.to_string()), Some(cpus));
            }
        }
    }
}

fn host_cpu(before: &str, now: &str) {
    let (Ok(before), Ok(now)) = (parse_stat(before), parse_stat(now)) else {
        return;
    };
    if let Ok(added) = now.since(&before) {
        assert_eq!(before.user.checked_add(added.user), Some(now.user));
        assert!(added.busy() <= now.busy() && added.total() >= added.busy());
    }
}

fn disks(before: &str, now: &str) {
    let (Ok(before), Ok(now)) = (parse_diskstats(before), parse_diskstats(now)) else {
        return;
    };
    for (before, now) in before.iter().zip(&now) {
        if let Ok(added) = now.counters.since(&before.counters) {
            let written = before.counters.write_bytes.checked_add(added.write_bytes);
            assert_eq!(written, Some(now.counters.write_bytes));
        }
    }
}
