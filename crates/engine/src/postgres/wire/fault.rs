//! Why a request has no answer.

use std::io;

use crate::postgres::failure::{self, CONNECTION_FAILURE, REFUSED_BY_CLIENT};
use crate::{EngineError, SqlError};

/// What came is not the protocol: `protocol_violation`. Whether the statement took place is
/// unknown.
pub(super) const PROTOCOL_VIOLATION: &str = "08P01";

#[derive(Debug)]
pub(super) struct Fault {
    sqlstate: String,
    message: String,
    /// The connection cannot be used any more.
    is_over: bool,
    /// The statement is known not to have taken place: its end never left.
    is_unsent: bool,
}

impl Fault {
    fn new(sqlstate: &str, message: String, is_over: bool) -> Self {
        Self {
            sqlstate: sqlstate.to_owned(),
            message,
            is_over,
            is_unsent: false,
        }
    }

    /// This side does not send it.
    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(REFUSED_BY_CLIENT, message.into(), false)
    }

    /// The connection ended before the answer did.
    pub fn lost(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                Self::new(CONNECTION_FAILURE, "connection closed".to_owned(), true)
            }
            io::ErrorKind::InvalidData => Self::nonsense(error.to_string()),
            // What a limit for one wait is called where the socket itself has it.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::new(
                CONNECTION_FAILURE,
                "the server did not answer in time".to_owned(),
                true,
            ),
            _ => Self::new(
                CONNECTION_FAILURE,
                format!("error communicating with the server: {error}"),
                true,
            ),
        }
    }

    /// No connection was made.
    pub fn unreachable(error: &io::Error) -> Self {
        Self::new(
            CONNECTION_FAILURE,
            format!("error connecting to server: {error}"),
            true,
        )
    }

    /// What came cannot be an answer.
    pub fn nonsense(what: impl Into<String>) -> Self {
        let what = what.into();
        Self::new(
            PROTOCOL_VIOLATION,
            format!(
                "the server does not speak PostgreSQL's protocol ({what}); check what listens there"
            ),
            true,
        )
    }

    /// No connection was made in time.
    pub fn late() -> Self {
        Self::new(CONNECTION_FAILURE, "no answer".to_owned(), true)
    }

    /// What the server says in the body of an `ErrorResponse`, which may be cut off at its end:
    /// fields of a letter and a text that ends with a zero, SQLSTATE and message among the first.
    pub fn said(body: &[u8]) -> Self {
        let (mut sqlstate, mut message, mut detail, mut severity) = (None, None, None, None);
        let mut rest = body;
        while let Some((&field, text)) = rest.split_first().filter(|(field, _)| **field != 0) {
            let end = text
                .iter()
                .position(|&byte| byte == 0)
                .unwrap_or(text.len());
            let value = String::from_utf8_lossy(&text[..end]);
            match field {
                b'C' => sqlstate = Some(value),
                b'M' => message = Some(value),
                b'D' => detail = Some(value),
                // Not translated, as that of `S` may be.
                b'V' => severity = Some(value),
                b'S' => severity = severity.or(Some(value)),
                _ => {}
            }
            rest = text.get(end + 1..).unwrap_or_default();
        }
        let is_sqlstate =
            |text: &str| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let (Some(sqlstate), Some(message)) = (sqlstate.filter(|text| is_sqlstate(text)), message)
        else {
            return Self::nonsense("an error without SQLSTATE or message");
        };
        let is_over = severity.is_some_and(|severity| severity == "FATAL" || severity == "PANIC");
        Self::new(
            &sqlstate,
            detail.map_or_else(
                || message.to_string(),
                |detail| format!("{message}: {detail}"),
            ),
            is_over,
        )
    }

    /// The same with what to do about it.
    pub fn advised(mut self, next: &str) -> Self {
        self.message = format!("{}; {next}", self.message);
        self
    }

    /// The same on a connection that is in the middle of an answer.
    pub fn over(self) -> Self {
        Self {
            is_over: true,
            ..self
        }
    }

    /// The same of a request whose end never left.
    pub fn unsent(self) -> Self {
        Self {
            is_unsent: true,
            ..self
        }
    }

    /// Whether the connection cannot be used any more.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The code that says which error it is.
    pub fn sqlstate(&self) -> &str {
        &self.sqlstate
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    /// The error of this statement.
    pub fn sql_error(&self, statement: &str) -> SqlError {
        let error = failure::told(statement, &self.message, &self.sqlstate);
        if self.is_unsent {
            error.before_sending()
        } else {
            error
        }
    }

    /// The error of something done for the server itself, with what to do about it.
    pub fn engine_error(&self, doing: &str) -> EngineError {
        failure::advice(doing, &self.message, &self.sqlstate)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::lost(&error)
    }
}
