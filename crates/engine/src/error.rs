//! Errors of engines and of statements.

use thiserror::Error;

/// An engine could not be found, started, asked or stopped.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct EngineError {
    /// What happened and what to do next, as a fragment that fits after "failed to ...: ".
    pub message: String,
}

impl EngineError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

impl From<SqlError> for EngineError {
    fn from(error: SqlError) -> Self {
        Self::new(error.to_string())
    }
}

/// What a failed statement means for its worker, decided by the engine's own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorClass {
    /// Another writer holds the lock: try again.
    Busy,
    /// The transaction was chosen to break a deadlock: try all of it again.
    Deadlock,
    /// The disk or a quota is full.
    Full,
    /// The connection was lost with the statement in flight: whether it took place is unknown.
    Lost,
    /// There is no connection, and the statement is known not to have taken place: it was not sent,
    /// or the server itself said, before it ended the connection, that the statement failed (a
    /// transaction of one statement is then rolled back).
    Unsent,
    /// A row with this key is there already: another transaction may have put it there.
    Duplicate,
    /// The statement was ended on purpose, by another session or by a limit of time: it did not
    /// take place, and the connection stands. Not to be tried again by itself: a limit is met
    /// again, and whoever cancels means it.
    Cancelled,
    /// The engine's files cannot be read or written as they should: no other try will do better.
    Io,
    /// The statement is wrong or the engine refuses it.
    Statement,
}

impl ErrorClass {
    /// The name in events and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Deadlock => "deadlock",
            Self::Full => "full",
            Self::Lost | Self::Unsent => "lost",
            Self::Duplicate => "duplicate",
            Self::Cancelled => "cancelled",
            Self::Io => "io",
            Self::Statement => "statement",
        }
    }

    /// Whether the same operation may be tried again on the same connection.
    pub fn is_retryable(self) -> bool {
        matches!(self, Self::Busy | Self::Deadlock)
    }

    /// Whether the connection is gone; the session's next call makes a new one.
    pub fn is_disconnected(self) -> bool {
        matches!(self, Self::Lost | Self::Unsent)
    }
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message} (code {code}) in: {statement}")]
pub struct SqlError {
    /// What it means.
    pub class: ErrorClass,
    /// The engine's own code.
    pub code: i64,
    /// The engine's own words.
    pub message: String,
    /// The beginning of the statement.
    pub statement: String,
}

impl SqlError {
    /// The same error of something that came before the statement was sent: connecting, preparing.
    pub(crate) fn before_sending(self) -> Self {
        let class = if self.class == ErrorClass::Lost {
            ErrorClass::Unsent
        } else {
            self.class
        };
        Self { class, ..self }
    }
}
