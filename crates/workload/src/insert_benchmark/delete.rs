//! The deleter: as many rows as are inserted, from the tail of the table.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use plimsoll_core::plan::Era;
use plimsoll_load::{Next, Outcome, Worker};

use super::bound::BoundStatement;
use super::pairing::{Pairing, Turn};
use super::statements::Statements;
use crate::session::{Session, look_up, write_outcome};

/// The smallest id is looked up in the first round and again after this many, as in the original.
const RESYNC_ROUNDS: u64 = 1001;

/// Values of a delete: a bound, and a number of rows or another bound.
const DELETE_VALUES: usize = 2;

/// What looking up the smallest id cost: slow when purge or vacuum lags behind.
#[derive(Debug, Default)]
pub(crate) struct MinIdCost {
    pub lookups: AtomicU64,
    pub ns: AtomicU64,
    pub longest_ns: AtomicU64,
}

/// What the deleters of a step do.
pub(super) struct Deletes {
    /// Rows per statement.
    pub batch: u32,
    /// The operation's kind among those of its task.
    pub kind: usize,
    /// With the inserter of the same client.
    pub pairing: Arc<Pairing>,
    /// Of all clients.
    pub cost: Arc<MinIdCost>,
}

/// Deletes the `batch` rows with the smallest ids at or above a running estimate.
pub(super) struct Deleter {
    session: Session,
    statements: Statements,
    era: Era,
    deletes: Deletes,
    delete: BoundStatement,
    round: u64,
    next_id: i64,
}

impl Deleter {
    pub fn new(session: Session, statements: Statements, era: Era, deletes: Deletes) -> Self {
        Self {
            session,
            statements,
            era,
            deletes,
            delete: BoundStatement::default(),
            round: 0,
            next_id: 0,
        }
    }

    /// What comes before the delete when the look-up must be asked again.
    fn find_smallest_id(&mut self) -> Result<Option<Next>, String> {
        let started = Instant::now();
        let found = look_up(self.session.get(), &self.statements.min_id())?;
        let ns = started.elapsed().as_nanos() as u64;
        let cost = &self.deletes.cost;
        cost.lookups.fetch_add(1, Ordering::Relaxed);
        cost.ns.fetch_add(ns, Ordering::Relaxed);
        cost.longest_ns.fetch_max(ns, Ordering::Relaxed);
        let found = match found {
            Ok(found) => found,
            Err(next) => return Ok(Some(next)),
        };
        self.next_id = found.ok_or_else(|| {
            format!(
                "{} is empty: there is nothing to delete",
                self.statements.table
            )
        })?;
        Ok(None)
    }

    fn must_resync(&self) -> bool {
        match self.era {
            Era::Current => self.round.is_multiple_of(RESYNC_ROUNDS),
            Era::May2023 | Era::Year2017 => self.round == 0,
        }
    }
}

impl Worker for Deleter {
    fn open(&mut self) -> Result<(), String> {
        let (sql, is_text) = (self.statements.delete(), self.statements.has_text_deletes());
        self.delete = BoundStatement::open(self.session.open()?, &sql, DELETE_VALUES, is_text)?;
        Ok(())
    }

    fn prepare(&mut self) -> Result<Next, String> {
        match self.deletes.pairing.await_deleter() {
            Turn::Go => {}
            Turn::Wait => return Ok(Next::Later),
            Turn::Finished => return Ok(Next::Finished),
        }
        if self.must_resync()
            && let Some(next) = self.find_smallest_id()?
        {
            return Ok(next);
        }
        let second = match self.era {
            Era::Current => i64::from(self.deletes.batch),
            Era::May2023 | Era::Year2017 => self.next_id + i64::from(self.deletes.batch),
        };
        self.delete.bind(&[self.next_id, second]);
        self.round += 1;
        self.next_id += i64::from(self.deletes.batch);
        self.deletes.pairing.publish_oldest_id(self.next_id);
        Ok(Next::Operation(self.deletes.kind))
    }

    fn execute(&mut self) -> Outcome {
        let rows = u64::from(self.deletes.batch);
        // A range of ids may hold fewer rows where ids have gaps; a limit counts rows that exist.
        let wanted = (self.era == Era::Current).then_some(rows);
        let outcome = write_outcome(
            self.delete.write(self.session.get(), rows),
            "a delete",
            wanted,
        );
        if matches!(outcome, Outcome::Done { .. }) {
            self.deletes.pairing.end_delete();
        }
        outcome
    }
}
