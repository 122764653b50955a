//! The server's process: stopped by signal, and no process of it outlives it, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::process::ServerProcess;
use crate::{EngineError, Health};

/// A server that did not end cleanly has this long to end at once, without a checkpoint.
const QUIT_LIMIT: Duration = Duration::from_secs(20);

/// Sessions' processes notice within moments that the server is gone; one that sorts or writes
/// needs longer.
const ORPHAN_LIMIT: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(10);

/// The server's process, and the file where it says what is its.
pub(in crate::postgres) struct Postmaster {
    process: Arc<ServerProcess>,
    pid_file: PathBuf,
}

impl Postmaster {
    /// The owner of a server that was started on `data_dir`.
    pub fn new(process: ServerProcess, data_dir: &Path) -> Self {
        Self {
            process: Arc::new(process),
            pid_file: data_dir.join("postmaster.pid"),
        }
    }

    /// The process, for those who only look at it.
    pub fn process(&self) -> &ServerProcess {
        &self.process
    }

    /// The process, for those who may outlive it.
    pub fn watch(&self) -> Weak<ServerProcess> {
        Arc::downgrade(&self.process)
    }

    /// Takes the process id that the server wrote down for the server's: a prefix may stay above
    /// it.
    pub fn find_main(&self) {
        let text = fs::read_to_string(&self.pid_file).unwrap_or_default();
        if let Some(pid) = text
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok())
        {
            self.process.set_main(pid);
        }
    }

    /// Ends sessions and writes a checkpoint (SIGINT). What is not done by then ends at once
    /// (SIGQUIT) and is an error.
    pub fn stop(&self, timeout: Duration) -> Result<(), EngineError> {
        let is_running = || self.process.health() == Health::Running;
        if is_running() {
            self.process.signal(Signal::INT);
        }
        let deadline = Instant::now() + timeout;
        while is_running() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        if !is_running() {
            return self.process.stop(Signal::QUIT, QUIT_LIMIT);
        }
        let end = match self.process.stop(Signal::QUIT, QUIT_LIMIT) {
            Ok(()) => "it was made to end without a checkpoint".to_owned(),
            Err(error) => error.message,
        };
        Err(EngineError::new(format!(
            "stop postgres: it had not ended within {timeout:?}, {end}; see its log for what it did"
        )))
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        // An error only says that the end was not clean, which nobody asked for here.
        let _ = self.process.stop(Signal::QUIT, QUIT_LIMIT);
        // A server that was killed leaves its file behind, and for a moment the processes of its
        // sessions.
        let Some(id) = fs::read_to_string(&self.pid_file)
            .ok()
            .and_then(|text| shared_memory_id(&text))
        else {
            return;
        };
        let deadline = Instant::now() + ORPHAN_LIMIT;
        while Instant::now() < deadline && attached(id).is_some_and(|processes| processes > 0) {
            std::thread::sleep(PAUSE);
        }
    }
}

/// The id of the shared memory that all processes of a server are attached to: the second number in
/// line 7 of `postmaster.pid`.
fn shared_memory_id(pid_file: &str) -> Option<u64> {
    pid_file
        .lines()
        .nth(6)?
        .split_ascii_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

/// How many processes are attached to a shared memory; `None` when it is gone or the kernel does
/// not say.
fn attached(id: u64) -> Option<u64> {
    attached_in(&fs::read_to_string("/proc/sysvipc/shm").ok()?, id)
}

/// `shmid` is the second column of `/proc/sysvipc/shm`, and `nattch` the seventh.
fn attached_in(table: &str, id: u64) -> Option<u64> {
    let mut rows = table
        .lines()
        .skip(1)
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1).is_some_and(|found| found.parse() == Ok(id)))?;
    row.get(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_memory_is_found_in_both_files() {
        let pid_file = "17999\n/d/pgdata\n1795257600\n5432\n/d\n\n  4325393        17\nready   \n";
        assert_eq!(shared_memory_id(pid_file), Some(17));
        assert_eq!(shared_memory_id("17999\n/d/pgdata\n"), None);
        let table = "       key      shmid perms                  size  cpid  lpid nattch   uid   \
                    gid  cuid  cgid\n\
                     \x20  4325392         16   600                    56 17990 17990      0 65534 \
                    65534 65534 65534\n\
                     \x20  4325393         17   600                    56 17999 18005      6 65534 \
                    65534 65534 65534\n";
        assert_eq!(attached_in(table, 17), Some(6));
        assert_eq!(attached_in(table, 16), Some(0));
        assert_eq!(attached_in(table, 18), None);
    }
}
