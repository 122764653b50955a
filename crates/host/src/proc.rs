//! Where `/proc` is, and its files.

use std::borrow::Cow;
use std::fs::{File, ReadDir};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::Answer;

/// A `/proc` tree: the kernel's, or one that a test made.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
}

impl Default for Proc {
    fn default() -> Self {
        Self::new()
    }
}

impl Proc {
    /// The kernel's, at `/proc`.
    pub fn new() -> Self {
        Self::at("/proc")
    }

    /// The tree at `root`. Anything but `/proc` is taken to describe other processes than those
    /// running here: CPU of the server is then read from its `stat` files (clock ticks), not from
    /// process clocks.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// True when the pids in this tree are those of the kernel's clocks.
    pub(crate) fn has_clocks(&self) -> bool {
        self.root == Path::new("/proc")
    }

    /// The whole text of a file.
    pub(crate) fn read(&self, name: &str) -> Answer<String> {
        match std::fs::read(self.root.join(name)) {
            Ok(bytes) => Ok(lossy(bytes)),
            Err(error) => Err(unreadable(name, &error)),
        }
    }

    /// The whole text of a file of a process or thread; none of one that has ended, which is no
    /// error.
    pub(crate) fn read_if_there(&self, name: &str) -> Answer<Option<String>> {
        match std::fs::read(self.root.join(name)) {
            Ok(bytes) => Ok(Some(lossy(bytes))),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(unreadable(&of_any_process(name), &error)),
        }
    }

    /// A file that will be read many times.
    pub(crate) fn keep(&self, name: &'static str) -> KeptFile {
        KeptFile {
            file: File::open(self.root.join(name)).map_err(|error| unreadable(name, &error)),
            name: format!("/proc/{name}"),
            bytes: Vec::new(),
        }
    }

    /// The threads of a process; none of one that has ended.
    pub(crate) fn threads(&self, pid: u32) -> Answer<Vec<u32>> {
        match std::fs::read_dir(self.root.join(format!("{pid}/task"))) {
            Ok(entries) => Ok(numbers(entries)),
            Err(error) if is_gone(&error) => Ok(Vec::new()),
            Err(error) => Err(unreadable("PID/task", &error)),
        }
    }

    /// All process ids.
    pub(crate) fn pids(&self) -> Answer<Vec<u32>> {
        let entries = std::fs::read_dir(&self.root).map_err(|error| unreadable("", &error))?;
        Ok(numbers(entries))
    }
}

/// The entries whose names are numbers.
fn numbers(entries: ReadDir) -> Vec<u32> {
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error())
}

/// A process's file without its numbers, which say nothing to a reader of a report.
fn of_any_process(name: &str) -> String {
    let is_number = |part: &str| part.parse::<u32>().is_ok();
    let parts = name.split('/').enumerate().map(|(i, part)| match i {
        0 if is_number(part) => "PID",
        _ if is_number(part) => "TID",
        _ => part,
    });
    parts.collect::<Vec<_>>().join("/")
}

fn lossy(bytes: Vec<u8>) -> String {
    // Command names and mount points may hold any bytes.
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Named as on a real system, so that no path of a test or a user gets into a report.
fn unreadable(name: &str, error: &io::Error) -> String {
    format!("cannot read /proc/{name}: {error}")
}

/// An open file that is read again from its start each time: no path lookup, no new buffer.
#[derive(Debug)]
pub(crate) struct KeptFile {
    /// As on a real system.
    name: String,
    file: Answer<File>,
    bytes: Vec<u8>,
}

impl KeptFile {
    /// That of `/sys` which is at `path`.
    pub(crate) fn of_sys(path: &Path) -> Self {
        let file = path.file_name().unwrap_or_default();
        let name = format!("/sys/.../{}", file.display());
        Self {
            file: File::open(path).map_err(|error| format!("cannot read {name}: {error}")),
            name,
            bytes: Vec::new(),
        }
    }

    /// Its text now.
    pub(crate) fn read(&mut self) -> Answer<Cow<'_, str>> {
        let file = self.file.as_ref().map_err(String::clone)?;
        let mut length = 0;
        loop {
            if self.bytes.len() < length + 4096 {
                self.bytes.resize(length + 16 * 1024, 0);
            }
            match file.read_at(&mut self.bytes[length..], length as u64) {
                Ok(0) => return Ok(String::from_utf8_lossy(&self.bytes[..length])),
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("cannot read {}: {error}", self.name)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_file_is_read_afresh_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stat");
        let long = "x".repeat(50_000);
        std::fs::write(&path, &long).unwrap();
        let mut file = Proc::at(dir.path()).keep("stat");
        assert_eq!(file.read().unwrap(), long);
        std::fs::write(&path, "short").unwrap();
        assert_eq!(file.read().unwrap(), "short");
    }

    #[test]
    fn reasons_name_the_file_but_not_where_a_test_put_it() {
        let dir = tempfile::tempdir().unwrap();
        let proc = Proc::at(dir.path());
        for reason in [
            proc.read("pressure/io").unwrap_err(),
            proc.keep("pressure/io").read().unwrap_err(),
        ] {
            assert!(
                reason.starts_with("cannot read /proc/pressure/io: "),
                "{reason}"
            );
            assert!(!reason.contains(dir.path().to_str().unwrap()));
        }
    }

    #[test]
    fn a_process_that_ended_is_no_error_and_has_no_number_in_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let proc = Proc::at(dir.path());
        assert_eq!(proc.read_if_there("7/io"), Ok(None));
        assert_eq!(proc.threads(7), Ok(Vec::new()));
        // A folder in a file's place cannot be read.
        std::fs::create_dir_all(dir.path().join("7/task/8/status")).unwrap();
        assert_eq!(proc.threads(7), Ok(vec![8]));
        let reason = proc.read_if_there("7/task/8/status").unwrap_err();
        assert!(
            reason.starts_with("cannot read /proc/PID/task/TID/status: "),
            "{reason}"
        );
    }

    #[test]
    fn pids_are_the_folders_with_numbers() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["1", "42", "self", "sys", "7x"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let mut pids = Proc::at(dir.path()).pids().unwrap();
        pids.sort_unstable();
        assert_eq!(pids, [1, 42]);
    }
}
