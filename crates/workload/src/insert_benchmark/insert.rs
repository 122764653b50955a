//! The inserter: one multi-row statement, one transaction.

use std::sync::Arc;

use plimsoll_engine::SqlSession;
use plimsoll_load::{Next, Outcome, Worker};

use super::data::{LONGEST_TUPLE, Rows};
use super::pairing::{Pairing, Turn};
use super::statements::Statements;
use crate::session::{Session, write_outcome};

/// Bytes of the longest statement with so many rows.
pub(super) fn longest_insert(statements: &Statements, batch: u32) -> usize {
    statements.insert_head().len() + batch as usize * LONGEST_TUPLE
}

/// Inserts batches of generated rows at the head of its table.
pub(super) struct Inserter {
    session: Session,
    head: String,
    rows: Rows,
    batch: u32,
    kind: usize,
    pairing: Option<Arc<Pairing>>,
    sql: String,
    /// The statement has been sent before and is tried again.
    is_begun: bool,
}

impl Inserter {
    pub fn new(
        session: Session,
        statements: &Statements,
        rows: Rows,
        batch: u32,
        kind: usize,
        pairing: Option<Arc<Pairing>>,
    ) -> Self {
        let (head, longest) = (statements.insert_head(), longest_insert(statements, batch));
        let sql = String::with_capacity(longest);
        Self {
            session,
            head,
            rows,
            batch,
            kind,
            pairing,
            sql,
            is_begun: false,
        }
    }

    /// For what else the connection is used for.
    pub fn session(&mut self) -> &mut dyn SqlSession {
        self.session.get()
    }
}

impl Worker for Inserter {
    fn open(&mut self) -> Result<(), String> {
        self.session.open().map(|_| ())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        if let Some(pairing) = &self.pairing
            && pairing.await_inserter() == Turn::Wait
        {
            return Ok(Next::Later);
        }
        self.sql.clear();
        self.sql.push_str(&self.head);
        self.rows.push_tuples(&mut self.sql, self.batch);
        self.is_begun = false;
        Ok(Next::Operation(self.kind))
    }

    fn execute(&mut self) -> Outcome {
        if !self.is_begun {
            self.is_begun = true;
            if let Some(pairing) = &self.pairing {
                pairing.begin_insert();
            }
        }
        let rows = u64::from(self.batch);
        write_outcome(
            self.session.get().write(&self.sql, rows),
            "an insert",
            Some(rows),
        )
    }

    fn close(&mut self) {
        if let Some(pairing) = &self.pairing {
            pairing.end_inserter();
        }
    }
}
