//! What goes wrong on the wire.

use std::io;

/// Why a call of the thin client failed.
#[derive(Debug)]
pub(in crate::mysql) enum WireError {
    /// The server's answer is an error.
    Server { code: u16, message: String },
    /// Nobody took the connection, or not in time.
    Unreachable(io::Error),
    /// The connection ended, or an answer was late.
    Io(io::Error),
    /// The answer is none of the protocol's; what follows it cannot be understood either.
    Malformed(&'static str),
    /// Before something was sent, the server had sent more than the last answer.
    Unasked,
    /// The statement is longer than the server allows; it was not sent.
    TooLong {
        /// Of the statement, as it would be sent.
        bytes: usize,
        /// The server's `max_allowed_packet`.
        allowed: usize,
    },
    /// A prepared statement has another number of placeholders; it was not sent.
    Arguments {
        /// The statement's placeholders.
        wanted: usize,
        /// The call's values.
        given: usize,
    },
    /// The query's answer is not a whole number; this is.
    NoInteger(String),
    /// The server wants what this client does not speak.
    Unsupported(String),
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::InvalidData => {
                Self::Malformed("a long message where a short one was due")
            }
            _ => Self::Io(error),
        }
    }
}
