//! Messages to the server and from it: a letter, the length of itself and what follows in four
//! bytes, and the body.

use std::io::IoSlice;
use std::time::{Duration, Instant};

use super::Login;
use super::fault::Fault;
use super::whole::WholeAnswer;
use crate::wire::{Inbox, Socket};

/// Of each message: its letter and its length.
pub(super) const HEADER_BYTES: usize = 5;

/// No message of a server is longer: its own buffers end there, and so does what it takes.
pub(super) const LONGEST: usize = 1 << 30;

/// What is looked at of an error. SQLSTATE and message are at its beginning.
const LOOKED_AT: usize = 32 << 10;

/// How long a server that takes nothing any more is listened to for what it says about that.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Its letter.
    pub kind: u8,
    /// Bytes of the body.
    pub length: usize,
}

impl Header {
    /// `None` when it cannot be the beginning of a message.
    #[inline]
    pub fn read(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let [kind, length @ ..] = *bytes;
        // The length counts itself; a negative one is larger than any.
        let length = (u32::from_be_bytes(length) as usize).wrapping_sub(4);
        (length <= LONGEST).then_some(Self { kind, length })
    }

    /// A message that the server sends when it likes: a notice, a changed parameter, a
    /// notification.
    #[inline]
    pub fn is_aside(self) -> bool {
        matches!(self.kind, b'N' | b'S' | b'A')
    }

    /// The error of a message that should not be here.
    #[cold]
    pub fn unexpected(self) -> Fault {
        Fault::nonsense(format!(
            "a message {:?} of {} bytes out of turn",
            char::from(self.kind),
            self.length
        ))
    }
}

/// A connection to a server: bytes out, messages in.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    inbox: Inbox,
    /// Whether the server knows us, and a good-bye.
    is_logged_in: bool,
}

impl Connection {
    /// Connects and logs in. Each wait takes at most `patience`, and none begins after it is over.
    pub fn open(login: &Login, patience: Duration) -> Result<Self, Fault> {
        let socket =
            Socket::connect(&login.place, patience).map_err(|error| Fault::unreachable(&error))?;
        let mut connection = Self::on(socket);
        login.perform(&mut connection, patience)?;
        connection.is_logged_in = true;
        connection.socket.wait_for_ever()?;
        Ok(connection)
    }

    /// A connection on which nothing was sent yet.
    pub fn on(socket: Socket) -> Self {
        Self {
            socket,
            inbox: Inbox::new(),
            is_logged_in: false,
        }
    }

    /// Sends a request. What a server may say unasked is taken in before.
    #[inline]
    pub fn send(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), Fault> {
        if !self.inbox.is_empty() {
            self.settle()?;
        }
        self.send_on(parts).map_err(Fault::unsent)
    }

    /// Sends more in the middle of an answer.
    #[inline]
    pub fn send_on(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), Fault> {
        self.socket.send(parts).map_err(|error| {
            self.last_words()
                .unwrap_or_else(|| Fault::lost(&error))
                .over()
        })
    }

    /// Waits for a prepared query's answer and takes it, if it has come at once. Returns the number
    /// of its rows.
    #[inline]
    pub fn whole_answer(&mut self) -> Result<Option<u64>, Fault> {
        let Some(answer) = WholeAnswer::read(self.inbox.peek(&mut self.socket, HEADER_BYTES)?)
        else {
            return Ok(None);
        };
        self.inbox.consume(answer.length);
        Ok(Some(answer.rows))
    }

    /// The header of the next message that is a part of an answer.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Header, Fault> {
        loop {
            let header = self.header()?;
            if !header.is_aside() {
                return Ok(header);
            }
            self.skip(header.length)?;
        }
    }

    /// The header of the next message.
    #[inline(always)]
    pub fn header(&mut self) -> Result<Header, Fault> {
        // Most often a whole answer has come at once.
        if let Some(header) = self.inbox.shown().first_chunk().and_then(Header::read) {
            self.inbox.consume(HEADER_BYTES);
            return Ok(header);
        }
        self.awaited_header()
    }

    #[inline(never)]
    fn awaited_header(&mut self) -> Result<Header, Fault> {
        let bytes = self.inbox.peek(&mut self.socket, HEADER_BYTES)?;
        let header = bytes
            .first_chunk()
            .and_then(Header::read)
            .ok_or_else(|| absurd(bytes))?;
        self.inbox.consume(HEADER_BYTES);
        Ok(header)
    }

    /// Passes over so much of a body.
    #[inline(always)]
    pub fn skip(&mut self, length: usize) -> Result<(), Fault> {
        if self.inbox.shown().len() >= length {
            self.inbox.consume(length);
            return Ok(());
        }
        self.skip_awaited(length)
    }

    #[inline(never)]
    fn skip_awaited(&mut self, length: usize) -> Result<(), Fault> {
        Ok(self.inbox.skip(&mut self.socket, length)?)
    }

    /// Hands the next `length` bytes, a body or the beginning of one, to `look`. They have to fit
    /// into memory.
    #[inline]
    pub fn take<T>(&mut self, length: usize, look: impl FnOnce(&[u8]) -> T) -> Result<T, Fault> {
        if self.inbox.shown().len() < length {
            self.inbox.peek(&mut self.socket, length)?;
        }
        let seen = look(&self.inbox.shown()[..length]);
        self.inbox.consume(length);
        Ok(seen)
    }

    /// Appends the next `length` bytes to `text`, however many they are.
    pub fn take_into(&mut self, mut length: usize, text: &mut Vec<u8>) -> Result<(), Fault> {
        while length > 0 {
            let here = self.inbox.peek(&mut self.socket, 1)?;
            let here = &here[..here.len().min(length)];
            text.extend_from_slice(here);
            let taken = here.len();
            self.inbox.consume(taken);
            length -= taken;
        }
        Ok(())
    }

    /// What an error of so many bytes says.
    pub fn complaint(&mut self, length: usize) -> Result<Fault, Fault> {
        let looked_at = length.min(LOOKED_AT);
        let fault = self.take(looked_at, Fault::said)?;
        match self.skip(length - looked_at) {
            Ok(()) => Ok(fault),
            Err(_) => Err(fault.over()),
        }
    }

    /// Passes over what came since the last answer: there can be nothing in it but what a server
    /// says unasked. A server that ends the session says so.
    #[cold]
    fn settle(&mut self) -> Result<(), Fault> {
        loop {
            let here = self.inbox.shown();
            let Some(bytes) = here.first_chunk() else {
                // The beginning of a header is looked at with the answer.
                return Ok(());
            };
            let header = Header::read(bytes).ok_or_else(|| absurd(here).unsent())?;
            let is_whole = here.len() >= HEADER_BYTES + header.length;
            if header.kind == b'E' && is_whole {
                self.inbox.consume(HEADER_BYTES);
                return Err(self.complaint(header.length)?.over().unsent());
            }
            if header.kind != b'E' && !header.is_aside() {
                return Err(header.unexpected().unsent());
            }
            if !is_whole {
                return Ok(());
            }
            self.inbox.consume(HEADER_BYTES + header.length);
        }
    }

    /// Why the server takes nothing any more, when it has said so.
    #[cold]
    fn last_words(&mut self) -> Option<Fault> {
        let deadline = Instant::now() + LAST_WORDS;
        self.socket.wait_at_most(LAST_WORDS).ok()?;
        while Instant::now() < deadline {
            let header = self.header().ok()?;
            if header.kind == b'E' {
                return self.complaint(header.length).ok();
            }
            self.skip(header.length).ok()?;
        }
        None
    }
}

impl Drop for Connection {
    /// Says good-bye, which a server that is gone does not hear.
    fn drop(&mut self) {
        if self.is_logged_in {
            let _ = self.socket.send(&mut [IoSlice::new(b"X\0\0\0\x04")]);
        }
    }
}

#[cold]
fn absurd(bytes: &[u8]) -> Fault {
    Fault::nonsense(format!(
        "a message that begins with {:02x?}",
        &bytes[..HEADER_BYTES.min(bytes.len())]
    ))
}
