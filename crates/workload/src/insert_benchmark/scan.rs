//! The scan step of 2017: five scans of the client's table, none of which matches a row.

use plimsoll_load::{Next, Outcome, Worker};

use super::statements::Statements;
use crate::session::{Session, query_outcome};

/// Scans its table five times.
pub(super) struct Scanner {
    session: Session,
    scans: [String; 5],
    table_rows: u64,
    next: usize,
}

impl Scanner {
    pub fn new(session: Session, statements: &Statements, table_rows: u64) -> Self {
        Self {
            session,
            scans: statements.scans(),
            table_rows,
            next: 0,
        }
    }
}

impl Worker for Scanner {
    fn open(&mut self) -> Result<(), String> {
        self.session.open().map(|_| ())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        let is_left = self.next < self.scans.len();
        self.next += 1;
        Ok(if is_left {
            Next::Operation(0)
        } else {
            Next::Finished
        })
    }

    fn execute(&mut self) -> Outcome {
        // No row is fetched; what counts is the rows looked at.
        query_outcome(
            self.session
                .get()
                .query(&self.scans[self.next - 1])
                .map(|_| self.table_rows),
        )
    }
}
