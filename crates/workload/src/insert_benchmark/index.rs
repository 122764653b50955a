//! The index step: one batch of rows, then all secondary indexes of the table as one operation.

use plimsoll_load::{Next, Outcome, Worker};

use super::insert::Inserter;
use super::statements::Statements;
use crate::session::write_outcome;

/// The kinds of this step.
pub(super) const INDEX: usize = 0;
pub(super) const INSERT: usize = 1;

/// Inserts `batches` batches, then creates the indexes.
pub(super) struct Indexer {
    inserter: Inserter,
    batches: u64,
    statements: Vec<String>,
    /// Rows the table will hold when the indexes are made.
    table_rows: u64,
    inserted: u64,
    /// Index statements done: a retry goes on with the one that met a lock.
    created: usize,
    is_indexing: bool,
}

impl Indexer {
    pub fn new(inserter: Inserter, batches: u64, statements: &Statements, table_rows: u64) -> Self {
        let statements = statements.create_indexes();
        Self {
            inserter,
            batches,
            statements,
            table_rows,
            inserted: 0,
            created: 0,
            is_indexing: false,
        }
    }
}

impl Worker for Indexer {
    fn open(&mut self) -> Result<(), String> {
        self.inserter.open()
    }

    fn prepare(&mut self) -> Result<Next, String> {
        if self.inserted < self.batches {
            self.inserted += 1;
            return self.inserter.prepare();
        }
        if self.is_indexing {
            return Ok(Next::Finished);
        }
        self.is_indexing = true;
        Ok(Next::Operation(INDEX))
    }

    fn execute(&mut self) -> Outcome {
        if !self.is_indexing {
            return self.inserter.execute();
        }
        while let Some(statement) = self.statements.get(self.created) {
            let result = self.inserter.session().define(statement);
            if result.is_err() {
                return write_outcome(result.map(|()| 0), "the creation of an index", None);
            }
            self.created += 1;
        }
        Outcome::Done {
            rows: self.table_rows,
        }
    }

    fn close(&mut self) {
        self.inserter.close();
    }
}
