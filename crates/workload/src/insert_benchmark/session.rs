//! A worker's session: connected when the step opens, and errors turned into outcomes.

use std::sync::Arc;

use plimsoll_engine::{Server, SqlError, SqlSession};
use plimsoll_load::{Failure, Outcome};

/// A connection that is made in the worker's own thread.
pub(super) struct Session {
    server: Arc<Box<dyn Server>>,
    session: Option<Box<dyn SqlSession>>,
}

impl Session {
    pub fn new(server: Arc<Box<dyn Server>>) -> Self {
        Self { server, session: None }
    }

    pub fn open(&mut self) -> Result<&mut dyn SqlSession, String> {
        let session = self.server.connect().map_err(|error| error.to_string())?;
        Ok(&mut **self.session.insert(session))
    }

    /// The open session. Workers are opened before they perform.
    #[inline]
    pub fn get(&mut self) -> &mut dyn SqlSession {
        &mut **self.session.as_mut().expect("the loop opens a worker first")
    }

    pub fn close(&mut self) {
        self.session = None;
    }
}

/// What a statement's result means to the load loop. `wanted` rows make the operation done; any other number fails it.
#[inline]
pub(super) fn outcome(result: Result<u64, SqlError>, wanted: Option<u64>) -> Outcome {
    match result {
        Ok(rows) if wanted.is_none_or(|wanted| wanted == rows) => Outcome::Done { rows },
        Ok(rows) => {
            let wanted = wanted.unwrap_or(rows);
            Outcome::Failed(Failure { class: "rows", message: format!("a statement for {wanted} rows affected {rows}") })
        }
        Err(error) if error.class.is_retryable() => Outcome::Retry { class: error.class.as_str() },
        Err(error) => Outcome::Failed(Failure { class: error.class.as_str(), message: error.to_string() }),
    }
}

/// The integer a look-up between operations finds; `None` when it met a lock and must be tried again.
pub(super) fn look_up(session: &mut dyn SqlSession, sql: &str) -> Result<Option<Option<i64>>, String> {
    match session.query_integer(sql) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.class.is_retryable() => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}
