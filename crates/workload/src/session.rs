//! A worker's session: connected when the step opens, and errors turned into outcomes.

use std::sync::Arc;

use plimsoll_engine::{ErrorClass, Server, SqlError, SqlSession};
use plimsoll_load::{Failure, Next, Outcome};

/// A server that several workers connect to.
pub type SharedServer = Arc<Box<dyn Server>>;

/// A connection that is made in the worker's own thread.
pub(crate) struct Session {
    server: SharedServer,
    session: Option<Box<dyn SqlSession>>,
}

impl Session {
    pub fn new(server: SharedServer) -> Self {
        Self {
            server,
            session: None,
        }
    }

    pub fn open(&mut self) -> Result<&mut dyn SqlSession, String> {
        let session = self.server.connect().map_err(|error| error.to_string())?;
        Ok(&mut **self.session.insert(session))
    }

    /// The open session. Workers are opened before they perform.
    #[inline]
    pub fn get(&mut self) -> &mut dyn SqlSession {
        &mut **self
            .session
            .as_mut()
            .expect("the loop opens a worker first")
    }
}

/// What a query's result means to the load loop. A query that lost its connection does no harm when
/// it is asked again.
#[inline]
pub(crate) fn query_outcome(result: Result<u64, SqlError>) -> Outcome {
    match result {
        Ok(rows) => Outcome::Done { rows },
        Err(error) if error.class.is_disconnected() => Outcome::Lost {
            message: error.to_string(),
        },
        Err(error) => refusal(error),
    }
}

/// What a write's result means to the load loop. `wanted` rows make it done; any other number fails
/// it.
///
/// A write that is known not to have taken place is tried again on a new connection. One whose
/// connection ended without an answer may have taken place: tried again it could be there twice,
/// left out it could be missing, and as its rows carry no key that the client chose, nobody can ask
/// the table. It is counted as failed and the step ends, because no count of the tables' rows means
/// anything any more.
#[inline]
pub(crate) fn write_outcome(
    result: Result<u64, SqlError>,
    what: &str,
    wanted: Option<u64>,
) -> Outcome {
    match result {
        Ok(rows) if wanted.is_none_or(|wanted| wanted == rows) => Outcome::Done { rows },
        Ok(rows) => {
            let wanted = wanted.unwrap_or(rows);
            Outcome::Failed(Failure {
                class: "rows",
                message: format!("{what} of {wanted} rows affected {rows}"),
            })
        }
        Err(error) if error.class == ErrorClass::Unsent => Outcome::Lost {
            message: error.to_string(),
        },
        Err(error) if error.class == ErrorClass::Lost => {
            let message = format!(
                "the connection was lost while {what} was in flight, and nobody knows whether it \
                took place: {error}"
            );
            Outcome::Failed(Failure {
                class: error.class.as_str(),
                message,
            })
        }
        Err(error) => refusal(error),
    }
}

/// What any other error means to the load loop.
#[cold]
pub(crate) fn refusal(error: SqlError) -> Outcome {
    let class = error.class.as_str();
    if error.class.is_retryable() {
        Outcome::Retry { class }
    } else {
        Outcome::Failed(Failure {
            class,
            message: error.to_string(),
        })
    }
}

/// The integer that a look-up between operations finds, or what comes before the operation when it
/// must be asked again.
pub(crate) fn look_up(
    session: &mut dyn SqlSession,
    sql: &str,
) -> Result<Result<Option<i64>, Next>, String> {
    match session.query_integer(sql) {
        Ok(found) => Ok(Ok(found)),
        Err(error) if error.class.is_retryable() => Ok(Err(Next::Later)),
        Err(error) if error.class.is_disconnected() => Ok(Err(Next::Lost {
            message: error.to_string(),
        })),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(class: ErrorClass) -> SqlError {
        SqlError {
            class,
            code: 1,
            message: "m".into(),
            statement: "s".into(),
        }
    }

    #[test]
    fn only_what_surely_has_not_taken_place_is_written_again() {
        let lost = Outcome::Lost {
            message: "m (code 1) in: s".into(),
        };
        assert_eq!(
            write_outcome(Ok(7), "an insert", Some(7)),
            Outcome::Done { rows: 7 }
        );
        assert_eq!(
            write_outcome(Ok(6), "a delete", None),
            Outcome::Done { rows: 6 }
        );
        assert!(
            matches!(write_outcome(Ok(6), "an insert", Some(7)), Outcome::Failed(failure) if failure.class == "rows")
        );
        assert_eq!(
            write_outcome(Err(error(ErrorClass::Unsent)), "an insert", Some(7)),
            lost
        );
        let Outcome::Failed(failure) =
            write_outcome(Err(error(ErrorClass::Lost)), "an insert", Some(7))
        else {
            panic!()
        };
        assert_eq!(failure.class, "lost");
        assert!(
            failure
                .message
                .contains("while an insert was in flight, and nobody knows"),
            "{}",
            failure.message
        );
        for class in [ErrorClass::Busy, ErrorClass::Deadlock] {
            assert_eq!(
                write_outcome(Err(error(class)), "a delete", None),
                Outcome::Retry {
                    class: class.as_str()
                }
            );
        }
        // A query may be asked twice.
        for class in [ErrorClass::Lost, ErrorClass::Unsent] {
            assert_eq!(query_outcome(Err(error(class))), lost);
        }
        for class in [
            ErrorClass::Full,
            ErrorClass::Io,
            ErrorClass::Statement,
            ErrorClass::Cancelled,
        ] {
            assert!(
                matches!(query_outcome(Err(error(class))), Outcome::Failed(failure) if failure.class == class.as_str())
            );
        }
        // A cancelled write is known not to have taken place: a step that may have failures goes
        // on.
        let Outcome::Failed(failure) =
            write_outcome(Err(error(ErrorClass::Cancelled)), "an insert", Some(7))
        else {
            panic!()
        };
        assert!(failure.class == "cancelled" && !failure.is_uncertain());
    }
}
