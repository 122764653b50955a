//! Packets: a length in three bytes, a number that counts up within an exchange, and a payload. A
//! payload of the greatest length goes on in the next packet.

use std::io::IoSlice;

use super::error::WireError;
use super::fields::Fields;
use super::whole::WholeAnswer;
use crate::mysql::failure::class_of;
use crate::wire::{Inbox, Socket};

/// A payload of this length goes on in the next packet.
pub(super) const FULL: usize = 0xff_ffff;
/// Length and number.
pub(super) const HEADER_BYTES: usize = 4;

/// Errors, greetings and their like are shorter than this.
const LONGEST_MESSAGE: usize = 64 << 10;

/// The first byte of an error.
pub(super) const ERROR: u8 = 0xff;

/// A connection as packets.
#[derive(Debug)]
pub(super) struct Packets {
    pub socket: Socket,
    inbox: Inbox,
    /// Of the next packet, from whichever side.
    number: u8,
}

impl Packets {
    pub fn new(socket: Socket) -> Self {
        Self {
            socket,
            inbox: Inbox::new(),
            number: 0,
        }
    }

    /// Begins an exchange with a command and its text, which is not copied.
    pub fn send_command(&mut self, command: u8, text: &[u8]) -> Result<(), WireError> {
        self.begin()?;
        let length = 1 + text.len();
        if length >= FULL {
            return self.send_long(command, text);
        }
        let [low, middle, high, _] = (length as u32).to_le_bytes();
        let header = [low, middle, high, 0, command];
        self.number = 1;
        Ok(self
            .socket
            .send(&mut [IoSlice::new(&header), IoSlice::new(text)])?)
    }

    /// Begins an exchange with a command that is a whole packet already.
    pub fn send_request(&mut self, packet: &[u8]) -> Result<(), WireError> {
        self.begin()?;
        self.number = 1;
        Ok(self.socket.send(&mut [IoSlice::new(packet)])?)
    }

    /// Goes on in an exchange.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.send_parts(&[], payload)
    }

    fn send_parts(&mut self, start: &[u8], rest: &[u8]) -> Result<(), WireError> {
        let [low, middle, high, _] = ((start.len() + rest.len()) as u32).to_le_bytes();
        let header = [low, middle, high, self.number];
        self.number = self.number.wrapping_add(1);
        Ok(self.socket.send(&mut [
            IoSlice::new(&header),
            IoSlice::new(start),
            IoSlice::new(rest),
        ])?)
    }

    #[cold]
    fn send_long(&mut self, command: u8, text: &[u8]) -> Result<(), WireError> {
        self.number = 0;
        let (first, mut rest) = text.split_at(FULL - 1);
        self.send_parts(&[command], first)?;
        // The last packet is shorter, if need be empty.
        loop {
            let (next, after) = rest.split_at(rest.len().min(FULL));
            self.send(next)?;
            if next.len() < FULL {
                return Ok(());
            }
            rest = after;
        }
    }

    /// Nothing may be left of the last exchange: it would be taken for an answer to the next.
    fn begin(&mut self) -> Result<(), WireError> {
        if self.inbox.is_empty() {
            Ok(())
        } else {
            Err(self.unasked())
        }
    }

    /// Why the server ended the session, if it said so in full.
    #[cold]
    fn unasked(&self) -> WireError {
        let said = self
            .inbox
            .shown()
            .split_at_checked(HEADER_BYTES)
            .and_then(|(header, rest)| {
                let payload = rest.get(..header.first_chunk().map(self::header)?.0)?;
                if payload.first() == Some(&ERROR) {
                    server_error(payload)
                } else {
                    None
                }
            });
        said.filter(is_goodbye).unwrap_or(WireError::Unasked)
    }

    /// Waits for a query's answer and takes it, if it is one result set and has come at once.
    /// Returns the number of its rows.
    #[inline]
    pub fn whole_answer(&mut self, is_row: impl Fn(u8) -> bool) -> Result<Option<u64>, WireError> {
        let seen = self.inbox.peek(&mut self.socket, HEADER_BYTES)?;
        let Some(answer) = WholeAnswer::read(seen, self.number, is_row) else {
            return Ok(None);
        };
        self.inbox.consume(answer.length);
        self.number = answer.next_number;
        Ok(Some(answer.rows))
    }

    /// Waits for the next packet. Returns the length of its payload, which comes next.
    #[inline(always)]
    pub fn next(&mut self) -> Result<usize, WireError> {
        // Most often a whole answer has come at once.
        let (length, number) = match self.inbox.shown().first_chunk().map(header) {
            Some(header) => header,
            None => self.awaited_header()?,
        };
        self.inbox.consume(HEADER_BYTES);
        if number != self.number {
            return Err(self.out_of_order(length));
        }
        self.number = number.wrapping_add(1);
        Ok(length)
    }

    #[inline(never)]
    fn awaited_header(&mut self) -> Result<(usize, u8), WireError> {
        let seen = self.inbox.peek(&mut self.socket, HEADER_BYTES)?;
        Ok(header(
            seen.first_chunk().expect("so many bytes were asked for"),
        ))
    }

    /// A server that ends a session says so outside any exchange.
    #[cold]
    fn out_of_order(&mut self, length: usize) -> WireError {
        let said = match self.show(length.min(1)) {
            Ok([ERROR]) => self.error(length),
            Ok(_) => WireError::Unasked,
            Err(error) => return error,
        };
        if is_goodbye(&said) {
            said
        } else {
            WireError::Malformed("packets are out of order")
        }
    }

    /// Waits for the next packet, and for the first byte of its payload, which is not consumed.
    #[inline(always)]
    pub fn next_kind(&mut self) -> Result<(usize, u8), WireError> {
        let length = self.next()?;
        if length == 0 {
            return Err(WireError::Malformed("an empty packet"));
        }
        Ok((length, self.show(1)?[0]))
    }

    /// Exactly the next `length` bytes, which stay.
    #[inline(always)]
    pub fn show(&mut self, length: usize) -> Result<&[u8], WireError> {
        if self.inbox.shown().len() < length {
            self.inbox.peek(&mut self.socket, length)?;
        }
        Ok(&self.inbox.shown()[..length])
    }

    /// Passes over a payload that begins with `length` bytes.
    #[inline(always)]
    pub fn skip(&mut self, length: usize) -> Result<(), WireError> {
        if length < FULL && length <= self.inbox.shown().len() {
            self.inbox.consume(length);
            return Ok(());
        }
        self.skip_awaited(length)
    }

    #[inline(never)]
    fn skip_awaited(&mut self, length: usize) -> Result<(), WireError> {
        self.inbox.skip(&mut self.socket, length)?;
        if length == FULL {
            self.skip_rest()
        } else {
            Ok(())
        }
    }

    #[cold]
    fn skip_rest(&mut self) -> Result<(), WireError> {
        loop {
            let length = self.next()?;
            self.inbox.skip(&mut self.socket, length)?;
            if length < FULL {
                return Ok(());
            }
        }
    }

    /// Copies a payload that begins with `length` bytes.
    pub fn copy(&mut self, mut length: usize, payload: &mut Vec<u8>) -> Result<(), WireError> {
        payload.clear();
        loop {
            let mut left = length;
            while left > 0 {
                let seen = self.inbox.peek(&mut self.socket, 1)?;
                let here = left.min(seen.len());
                payload.extend_from_slice(&seen[..here]);
                self.inbox.consume(here);
                left -= here;
            }
            if length < FULL {
                return Ok(());
            }
            length = self.next()?;
        }
    }

    /// Waits for the next packet and copies its payload, which is never empty. An error is one.
    pub fn message(&mut self, payload: &mut Vec<u8>) -> Result<(), WireError> {
        let (length, kind) = self.next_kind()?;
        if kind == ERROR {
            return Err(self.error(length));
        }
        if length > LONGEST_MESSAGE {
            return Err(WireError::Malformed(
                "a long message where a short one was due",
            ));
        }
        self.copy(length, payload)
    }

    /// The error whose payload of `length` bytes comes next.
    #[cold]
    pub fn error(&mut self, length: usize) -> WireError {
        if length > LONGEST_MESSAGE {
            return WireError::Malformed("an error of such a length");
        }
        let mut payload = Vec::new();
        match self.copy(length, &mut payload) {
            Ok(()) => server_error(&payload).unwrap_or(WireError::Malformed("half an error")),
            Err(error) => error,
        }
    }
}

/// Length and number that a header says.
#[inline]
pub(super) fn header(&[low, middle, high, number]: &[u8; HEADER_BYTES]) -> (usize, u8) {
    (u32::from_le_bytes([low, middle, high, 0]) as usize, number)
}

/// Whether the server says with this that the session is over.
fn is_goodbye(error: &WireError) -> bool {
    match error {
        WireError::Server { code, message } => class_of((*code).into(), message).is_disconnected(),
        _ => false,
    }
}

/// Number, SQLSTATE, which an error before the handshake lacks, and words.
fn server_error(payload: &[u8]) -> Option<WireError> {
    let mut fields = Fields(payload);
    fields.byte()?;
    let code = fields.u16()?;
    let words = match fields.0 {
        [b'#', _, _, _, _, _, words @ ..] => words,
        words => words,
    };
    Some(WireError::Server {
        code,
        message: String::from_utf8_lossy(words).into_owned(),
    })
}
