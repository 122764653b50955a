//! What `work` says to its desk. Whoever measures must not wait for a desk that is gone: every write
//! has an end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::wire::WorkLine;
use crate::input::wait_for_room;

/// What a pipe that has room takes without waiting.
const CHUNK_BYTES: usize = 4096;
/// So often is looked whether the desk is lost meanwhile.
const POLL: Duration = Duration::from_millis(200);
/// A desk that takes nothing for this long is lost.
const FULL_LIMIT: Duration = Duration::from_secs(60);

/// Standard output, for all threads of `work`.
#[derive(Default)]
pub(super) struct Voice {
    /// One writer at a time: a tar stream must not be cut by a beat.
    turn: Mutex<()>,
    is_mute: AtomicBool,
}

impl Voice {
    /// Says a line. That nobody listens shows on standard input.
    pub fn say(&self, line: &WorkLine) {
        let Ok(text) = serde_json::to_string(line) else {
            return;
        };
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(format!("{text}\n").as_bytes());
    }

    /// Says a line and what follows it.
    pub fn say_with(&self, line: &WorkLine, file: &mut File) -> io::Result<()> {
        let text = serde_json::to_string(line)?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(format!("{text}\n").as_bytes());
        let mut buffer = vec![0; 64 << 10];
        loop {
            match file.read(&mut buffer)? {
                0 => return Ok(()),
                bytes => self.write(&buffer[..bytes]),
            }
        }
    }

    /// Nobody listens any more.
    pub fn mute(&self) {
        self.is_mute.store(true, Ordering::SeqCst);
    }

    pub fn is_mute(&self) -> bool {
        self.is_mute.load(Ordering::SeqCst)
    }

    fn write(&self, mut bytes: &[u8]) {
        let mut full_since = Instant::now();
        while !bytes.is_empty() && !self.is_mute() {
            if !wait_for_room(io::stdout().as_fd(), POLL) {
                if full_since.elapsed() > FULL_LIMIT {
                    self.mute();
                }
                continue;
            }
            let chunk = &bytes[..bytes.len().min(CHUNK_BYTES)];
            match rustix::io::write(io::stdout(), chunk) {
                Ok(written) => {
                    bytes = &bytes[written..];
                    full_since = Instant::now();
                }
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => self.mute(),
            }
        }
    }
}
