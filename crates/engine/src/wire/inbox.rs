//! Bytes that have come and are not looked at yet.

use std::io;

use super::Socket;

/// Room for an answer of many rows; what is longer is walked through it piece by piece.
const CAPACITY: usize = 64 << 10;

/// A server that sends more than this for something that must be looked at as a whole (an error, a greeting) sends nonsense.
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
        Self { bytes: vec![0; CAPACITY].into(), start: 0, end: 0 }
    }

    /// Waits until `length` bytes are there and shows all that are. They stay there until they are consumed.
    pub fn peek(&mut self, socket: &mut Socket, length: usize) -> io::Result<&[u8]> {
        if self.end - self.start < length {
            self.fill(socket, length)?;
        }
        Ok(&self.bytes[self.start..self.end])
    }

    /// Drops `length` bytes that a [`Inbox::peek`] has shown.
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

    /// Whether something came that nobody asked for.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    #[cold]
    fn grow(&mut self, length: usize) -> io::Result<()> {
        if length > LONGEST_WHOLE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes where a short one was due")));
        }
        let mut bytes = vec![0; length.next_power_of_two()];
        bytes[..self.end].copy_from_slice(&self.bytes[..self.end]);
        self.bytes = bytes.into();
        Ok(())
    }

    fn fill(&mut self, socket: &mut Socket, length: usize) -> io::Result<()> {
        // What is left of the last answer moves to the front; most often that is nothing.
        if self.start > 0 {
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
