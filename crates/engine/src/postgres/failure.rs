//! What PostgreSQL's SQLSTATEs mean for a worker, and errors in our words.

use std::error::Error as _;

use crate::{EngineError, ErrorClass, Prepared, SqlError};

/// Characters of a statement that an error quotes: a batch of inserts is thousands long, its
/// beginning says what it is.
const QUOTED_CHARS: usize = 200;

/// A connection that ended without a word from the server: `connection_failure`.
pub(super) const CONNECTION_FAILURE: &str = "08006";

/// What this side refused to send: `invalid_parameter_value`.
pub(super) const REFUSED_BY_CLIENT: &str = "22023";

/// SQLSTATEs by meaning; the first entry that fits counts, and one of two characters stands for its
/// whole class. What is not here is [`ErrorClass::Statement`].
///
/// A server that ends a session on purpose says so in place of a statement's answer, or while it
/// waits for one, and rolls back what was not committed: the operation may be tried again
/// ([`ErrorClass::Unsent`]). A session that ends without that word leaves open whether the
/// statement took place ([`ErrorClass::Lost`]), and so does the server's crash (57P02), which may
/// come between commit and answer.
const CLASSES: &[(&str, ErrorClass)] = &[
    // serialization_failure and deadlock_detected: the whole transaction is to be tried again.
    ("40001", ErrorClass::Deadlock),
    ("40P01", ErrorClass::Deadlock),
    // unique_violation.
    ("23505", ErrorClass::Duplicate),
    // lock_not_available: NOWAIT, or lock_timeout was over.
    ("55P03", ErrorClass::Busy),
    ("53100", ErrorClass::Full),
    // query_canceled: on request, or statement_timeout was over. The connection stands.
    ("57014", ErrorClass::Cancelled),
    // The session was ended by an operator or a shutdown, no session is taken yet, the session was
    // idle too long.
    ("57P01", ErrorClass::Unsent),
    ("57P03", ErrorClass::Unsent),
    ("57P05", ErrorClass::Unsent),
    // The session was ended because its transaction was idle for too long, or lasted too long.
    ("25P03", ErrorClass::Unsent),
    ("25P04", ErrorClass::Unsent),
    // Another session crashed, and the server with it; the database was taken away.
    ("57P02", ErrorClass::Lost),
    ("57P04", ErrorClass::Lost),
    // The server could not be reached or refused the connection.
    ("08001", ErrorClass::Unsent),
    ("08004", ErrorClass::Unsent),
    // Connection exceptions.
    ("08", ErrorClass::Lost),
];

/// What a SQLSTATE means.
pub(super) fn class_of(sqlstate: &str) -> ErrorClass {
    CLASSES
        .iter()
        .find(|(prefix, _)| sqlstate.starts_with(prefix))
        .map_or(ErrorClass::Statement, |(_, class)| *class)
}

/// A SQLSTATE as the number that PostgreSQL itself uses for it: six bits for each of the five
/// characters, the first one lowest.
pub(super) fn packed(sqlstate: &str) -> i64 {
    sqlstate.bytes().rev().fold(0, |number, byte| {
        (number << 6) | i64::from(byte.wrapping_sub(b'0') & 0x3f)
    })
}

/// The SQLSTATE of an error. What the server did not say itself gets the one that fits.
pub(super) fn sqlstate(error: &postgres::Error) -> &str {
    match error.code() {
        Some(code) => code.code(),
        None if is_connection_gone(error) => CONNECTION_FAILURE,
        None => REFUSED_BY_CLIENT,
    }
}

fn is_connection_gone(error: &postgres::Error) -> bool {
    error.is_closed()
        || error
            .source()
            .is_some_and(|cause| cause.is::<std::io::Error>())
}

/// The error of a statement.
pub(super) fn sql_error(error: &postgres::Error, statement: &str) -> SqlError {
    told(statement, &words(error), sqlstate(error))
}

/// The error of a statement, in the server's words.
pub(super) fn told(statement: &str, words: &str, sqlstate: &str) -> SqlError {
    SqlError {
        class: class_of(sqlstate),
        code: packed(sqlstate),
        message: message(words, sqlstate),
        statement: quoted(statement),
    }
}

/// The error of rows that come as a stream, in which the client library hides its own.
pub(super) fn stream_error(error: &std::io::Error, statement: &str) -> SqlError {
    match error
        .get_ref()
        .and_then(|cause| cause.downcast_ref::<postgres::Error>())
    {
        Some(error) => sql_error(error, statement),
        None => refused(statement, error.to_string()),
    }
}

/// An error that this side of the connection found.
pub(super) fn refused(statement: &str, message: impl Into<String>) -> SqlError {
    SqlError {
        class: ErrorClass::Statement,
        code: packed(REFUSED_BY_CLIENT),
        message: message.into(),
        statement: quoted(statement),
    }
}

/// A prepared statement of another session.
#[cold]
pub(super) fn not_prepared(statement: Prepared) -> SqlError {
    refused(
        &format!("prepared statement {}", statement.0),
        "this session did not prepare the statement; prepare it here first",
    )
}

/// The connection is gone and did not come back.
pub(super) fn unreachable(statement: &str, message: impl Into<String>) -> SqlError {
    SqlError {
        class: ErrorClass::Unsent,
        code: packed(CONNECTION_FAILURE),
        message: message.into(),
        statement: quoted(statement),
    }
}

fn quoted(statement: &str) -> String {
    statement.chars().take(QUOTED_CHARS).collect()
}

fn message(words: &str, sqlstate: &str) -> String {
    format!("{words}, SQLSTATE {sqlstate}")
}

/// What the server or the client library says.
pub(super) fn words(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => match error.detail() {
            Some(detail) => format!("{}: {detail}", error.message()),
            None => error.message().to_owned(),
        },
        None => match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

/// The error of something done for the server itself, with what to do about it.
pub(super) fn engine_error(doing: &str, error: &postgres::Error) -> EngineError {
    advice(doing, &words(error), sqlstate(error))
}

/// The same, in the server's words.
pub(super) fn advice(doing: &str, words: &str, sqlstate: &str) -> EngineError {
    let next = match (class_of(sqlstate), sqlstate) {
        (_, "53300") => "raise max_connections in the config, or take a plan with fewer clients",
        (ErrorClass::Busy | ErrorClass::Deadlock, _) => {
            "end the program that holds the lock, or wait for it"
        }
        (ErrorClass::Full, _) => {
            "free space on the disk of the data directory, or take a smaller plan"
        }
        (ErrorClass::Lost | ErrorClass::Unsent | ErrorClass::Io, _) => {
            "see the server's log for why it ended the connection"
        }
        (ErrorClass::Statement | ErrorClass::Duplicate | ErrorClass::Cancelled, _) => {
            "check the config's settings and the tables' names, and see the server's log"
        }
    };
    EngineError::new(format!("{doing}: {}; {next}", message(words, sqlstate)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstates_have_their_class() {
        use ErrorClass::{Busy, Cancelled, Deadlock, Duplicate, Full, Lost, Statement, Unsent};
        let table = [
            ("40001", Deadlock),
            ("40P01", Deadlock),
            ("40002", Statement),
            ("55P03", Busy),
            ("55006", Statement),
            ("53100", Full),
            ("53200", Statement),
            ("53300", Statement),
            ("57P01", Unsent),
            ("57P02", Lost),
            ("57P03", Unsent),
            ("57P04", Lost),
            ("57P05", Unsent),
            ("57014", Cancelled),
            ("08000", Lost),
            ("08001", Unsent),
            ("08006", Lost),
            ("08P01", Lost),
            ("42P01", Statement),
            ("23505", Duplicate),
            ("25P02", Statement),
            ("25P03", Unsent),
            ("25P04", Unsent),
            ("22003", Statement),
            ("XX001", Statement),
            ("", Statement),
        ];
        for (sqlstate, class) in table {
            assert_eq!(class_of(sqlstate), class, "{sqlstate}");
        }
    }

    #[test]
    fn sqlstates_are_packed_as_the_server_does() {
        // errcodes.h: MAKE_SQLSTATE('4','0','P','0','1') and so on.
        assert_eq!(packed("00000"), 0);
        assert_eq!(packed("40001"), 4 + (1 << 24));
        assert_eq!(packed("40P01"), 4 + (0x20 << 12) + (1 << 24));
        assert_ne!(packed("57P01"), packed("57P10"));
    }

    #[test]
    fn a_statement_is_quoted_by_whole_characters() {
        let error = refused(&"é".repeat(QUOTED_CHARS + 1), "no");
        assert_eq!(error.statement, "é".repeat(QUOTED_CHARS));
        assert_eq!(error.class, ErrorClass::Statement);
        assert_eq!(unreachable("select 1", "gone").class, ErrorClass::Unsent);
    }
}
