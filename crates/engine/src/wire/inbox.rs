//! Bytes that have come and are not looked at yet.

use std::io;

use super::Socket;

/// Room for an answer of many rows; what is longer is walked through it piece by piece.
const CAPACITY: usize = 64 << 10;

/// A server that sends more than this for something that must be looked at as a whole (an error, a
/// greeting) sends nonsense.
const LONGEST_WHOLE: usize = 1 << 24;

/// The buffer that answers are read into.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    /// What was received and not consumed is `bytes[start..end]`.
    start: usize,
    end: usize,
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            bytes: vec![0; CAPACITY].into(),
            start: 0,
            end: 0,
        }
    }

    /// Waits until `length` bytes are there and shows all that are. They stay there until they are
    /// consumed.
    pub fn peek(&mut self, socket: &mut Socket, length: usize) -> io::Result<&[u8]> {
        if self.end - self.start < length {
            self.fill(socket, length)?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// Drops `length` bytes that a [`Inbox::peek`] has shown.
    #[inline]
    pub fn consume(&mut self, length: usize) {
        self.start += length;
        debug_assert!(self.start <= self.end, "more is consumed than was shown");
    }

    /// Passes over the next `length` bytes, however many they are.
    pub fn skip(&mut self, socket: &mut Socket, mut length: usize) -> io::Result<()> {
        loop {
            let here = length.min(self.end - self.start);
            self.start += here;
            length -= here;
            if length == 0 {
                return Ok(());
            }
            self.receive(socket)?;
        }
    }

    /// Whether all that came is consumed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// What came and is not consumed. Waits for nothing.
    #[inline]
    pub fn shown(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    #[cold]
    fn grow(&mut self, length: usize) -> io::Result<()> {
        if length > LONGEST_WHOLE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a message of {length} bytes where a short one was due"),
            ));
        }
        let mut bytes = vec![0; length.next_power_of_two()];
        bytes[..self.end].copy_from_slice(&self.bytes[..self.end]);
        self.bytes = bytes.into();
        Ok(())
    }

    fn fill(&mut self, socket: &mut Socket, length: usize) -> io::Result<()> {
        // What is left of the last answer moves to the front; most often that is nothing.
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if length > self.bytes.len() {
            self.grow(length)?;
        }
        while self.end < length {
            self.receive(socket)?;
        }
        Ok(())
    }

    /// One `recv` into the free end.
    fn receive(&mut self, socket: &mut Socket) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        match socket.receive(&mut self.bytes[self.end..])? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            received => {
                self.end += received;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::wire::Place;

    /// Nothing waits this long unless it fails.
    const LIMIT: Duration = Duration::from_secs(60);

    fn pair() -> (Socket, UnixStream) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let socket = Socket::connect(&Place::Unix(path), LIMIT).unwrap();
        (socket, listener.accept().unwrap().0)
    }

    #[test]
    fn what_comes_in_pieces_is_shown_whole() {
        let (mut socket, mut peer) = pair();
        let mut inbox = Inbox::new();
        assert!(inbox.is_empty() && inbox.shown().is_empty());
        let message: Vec<u8> = (0..=255).collect();
        let sent = message.clone();
        let sender = thread::spawn(move || {
            for byte in sent {
                peer.write_all(&[byte]).unwrap();
            }
            peer
        });
        assert_eq!(inbox.peek(&mut socket, 10).unwrap()[..10], message[..10]);
        inbox.consume(3);
        assert_eq!(inbox.peek(&mut socket, 253).unwrap(), &message[3..]);
        assert_eq!(inbox.shown(), &message[3..]);
        inbox.consume(253);
        assert!(inbox.is_empty());
        drop(sender.join().unwrap());
        assert_eq!(
            inbox.peek(&mut socket, 1).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        // What is asked for and never was there is no end.
        assert_eq!(inbox.peek(&mut socket, 0).unwrap(), b"");
    }

    #[test]
    fn more_than_the_buffer_is_passed_over_or_makes_it_grow() {
        let (mut socket, mut peer) = pair();
        let bytes: Vec<u8> = (0..5 * CAPACITY).map(|at| (at % 251) as u8).collect();
        let sent = bytes.clone();
        let sender = thread::spawn(move || peer.write_all(&sent).map(|()| peer));
        let mut inbox = Inbox::new();
        inbox.peek(&mut socket, 1).unwrap();
        inbox.skip(&mut socket, 3 * CAPACITY + 5).unwrap();
        let seen = inbox.peek(&mut socket, CAPACITY + 1).unwrap();
        assert_eq!(
            seen[..CAPACITY + 1],
            bytes[3 * CAPACITY + 5..4 * CAPACITY + 6]
        );
        inbox.consume(CAPACITY + 1);
        inbox.skip(&mut socket, CAPACITY - 7).unwrap();
        assert_eq!(
            inbox.peek(&mut socket, 1).unwrap()[0],
            bytes[5 * CAPACITY - 1]
        );
        inbox.consume(1);
        inbox.skip(&mut socket, 0).unwrap();
        drop(sender.join().unwrap());
        assert_eq!(
            inbox.skip(&mut socket, 1).unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert_eq!(
            inbox
                .peek(&mut socket, LONGEST_WHOLE + 1)
                .unwrap_err()
                .kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn a_peer_that_says_nothing_is_late() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let listener = UnixListener::bind(&path).unwrap();
        let mut socket = Socket::connect(&Place::Unix(path), Duration::from_millis(20)).unwrap();
        let _peer = listener.accept().unwrap();
        assert_eq!(
            Inbox::new().peek(&mut socket, 1).unwrap_err().kind(),
            io::ErrorKind::TimedOut
        );
    }
}
