//! Lines of standard input, and how long nothing comes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use plimsoll_core::buggify::{self, Point};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use zeroize::Zeroizing;

const CHUNK_BYTES: usize = 4096;
/// Of a piece, when input comes in some.
const PIECE_BYTES: usize = 7;

/// The lines of standard input. What was read of a line that is not whole yet can be handed on.
#[derive(Default)]
pub(crate) struct Input {
    /// It may hold a password.
    pending: Zeroizing<Vec<u8>>,
}

impl Input {
    /// Goes on behind what another image of this process has read.
    pub fn behind(pending: Vec<u8>) -> Self {
        Self {
            pending: Zeroizing::new(pending),
        }
    }

    /// What was read and is not a whole line.
    pub fn pending(&self) -> &[u8] {
        &self.pending
    }

    /// The next line, waited for.
    pub fn next_line(&mut self) -> io::Result<Zeroizing<Vec<u8>>> {
        loop {
            if let Some(line) = self.whole_line() {
                return Ok(line);
            }
            if self.read()? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// The next line of what was read.
    pub fn whole_line(&mut self) -> Option<Zeroizing<Vec<u8>>> {
        let end = self.pending.iter().position(|&byte| byte == b'\n')?;
        Some(Zeroizing::new(self.pending.drain(..=end).collect()))
    }

    /// Reads what is there; 0 bytes at the end.
    pub fn read(&mut self) -> io::Result<usize> {
        let mut chunk = Zeroizing::new([0; CHUNK_BYTES]);
        let most = match buggify::happens(Point::InputInPieces) {
            true => PIECE_BYTES,
            false => CHUNK_BYTES,
        };
        let bytes = loop {
            match rustix::io::read(io::stdin(), &mut chunk[..most]) {
                Err(Errno::INTR) => {}
                read => break read?,
            }
        };
        self.pending.extend_from_slice(&chunk[..bytes]);
        Ok(bytes)
    }
}

/// Whether there is something to read, the end included, before patience is over.
pub(crate) fn wait_for_input(input: BorrowedFd<'_>, patience: Duration) -> bool {
    is_ready(input, PollFlags::IN, patience)
}

/// Whether a write is taken, or fails at once, before patience is over.
pub(crate) fn wait_for_room(output: BorrowedFd<'_>, patience: Duration) -> bool {
    is_ready(output, PollFlags::OUT, patience)
}

fn is_ready(fd: BorrowedFd<'_>, what: PollFlags, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    let mut fds = [PollFd::from_borrowed_fd(fd.as_fd(), what)];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).ok();
        match poll(&mut fds, left.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return ready != Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_is_told_from_input_and_from_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let patience = Duration::from_millis(50);
        let begin = Instant::now();
        assert!(!wait_for_input(reader.as_fd(), patience));
        assert!(begin.elapsed() >= patience);
        io::Write::write_all(&mut writer, b"beat\n").unwrap();
        assert!(wait_for_input(reader.as_fd(), Duration::from_secs(60)));
        drop(writer);
        assert!(wait_for_input(reader.as_fd(), Duration::from_secs(60)));
    }

    #[test]
    fn lines_are_whole_and_the_rest_is_handed_on() {
        let mut input = Input::behind(b"one\ntwo\nthr".to_vec());
        let next = |input: &mut Input| {
            input
                .whole_line()
                .map(|line| String::from_utf8(line.to_vec()).unwrap())
        };
        assert_eq!(
            [next(&mut input), next(&mut input), next(&mut input)],
            [Some("one\n".into()), Some("two\n".into()), None]
        );
        assert_eq!(input.pending(), b"thr");
    }
}
