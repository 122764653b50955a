//! The server's process: stopped by signal, and no process of it outlives it, however it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::postgres::shared_memory::{attached, note_segments, shared_memory_id};
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
            if let Some(data_dir) = self.pid_file.parent() {
                note_segments(data_dir, pid);
            }
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
