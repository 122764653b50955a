//! What clients count themselves: statements by event, how the tables have grown, and how far
//! sequences went.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_core::plan::{STATEMENT_NOTES, VAIN_STATEMENTS_NOTE};
use serde::{Deserialize, Serialize};

/// Statements by what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statements {
    /// They answered with rows.
    pub reads: u64,
    /// They changed rows.
    pub writes: u64,
    /// They did neither: `BEGIN`, `COMMIT`, and a write that found nothing to change.
    pub others: u64,
}

impl Statements {
    /// All of them.
    pub fn all(self) -> u64 {
        self.reads + self.writes + self.others
    }

    pub fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
    }
}

/// The sum over a step's workers.
#[derive(Debug, Default)]
pub(crate) struct StepTotals(Mutex<Totals>);

#[derive(Debug, Default)]
struct Totals {
    /// Of the events done, by event.
    statements: Vec<Statements>,
    /// Of tries that did not come to their end.
    unfinished: Statements,
    growth: BTreeMap<usize, i64>,
    /// The first number that no client has taken.
    sequences: Vec<i64>,
}

impl StepTotals {
    /// Adds what a worker counted: its measured statements by event and those of tries in vain, the
    /// growth of each table over its whole life, and the next numbers of its sequences.
    pub fn add(
        &self,
        statements: &[Statements],
        unfinished: Statements,
        growth: &[i64],
        sequences: &[i64],
    ) {
        let mut totals = self.lock();
        totals
            .statements
            .resize(statements.len(), Statements::default());
        for (sum, of_worker) in totals.statements.iter_mut().zip(statements) {
            sum.add(*of_worker);
        }
        totals.unfinished.add(unfinished);
        for (table, rows) in growth.iter().enumerate().filter(|(_, rows)| **rows != 0) {
            *totals.growth.entry(table).or_default() += rows;
        }
        totals.sequences.resize(sequences.len(), i64::MIN);
        for (furthest, of_worker) in totals.sequences.iter_mut().zip(sequences) {
            *furthest = (*furthest).max(*of_worker);
        }
    }

    /// Statements of tries that did not come to their end: refused, without a connection, or
    /// failed.
    pub fn unfinished(&self) -> Statements {
        self.lock().unfinished
    }

    /// Statements of each event that was done.
    pub fn by_event(&self) -> Vec<Statements> {
        self.lock().statements.clone()
    }

    /// Statements of all events that were done.
    pub fn statements(&self) -> Statements {
        self.by_event()
            .into_iter()
            .fold(Statements::default(), |mut sum, of_event| {
                sum.add(of_event);
                sum
            })
    }

    /// What a step's notes say of its statements.
    pub fn notes(&self) -> BTreeMap<String, f64> {
        let statements = self.statements();
        let counts = [statements.reads, statements.writes, statements.others];
        let unfinished = (VAIN_STATEMENTS_NOTE, self.unfinished().all());
        let notes = STATEMENT_NOTES.into_iter().zip(counts).chain([unfinished]);
        notes
            .map(|(note, count)| (note.to_owned(), count as f64))
            .collect()
    }

    /// Rows that each table, from 0, has gained or lost.
    pub fn growth(&self) -> BTreeMap<usize, i64> {
        self.lock().growth.clone()
    }

    /// By sequence, a number that no client has reached.
    pub fn sequences(&self) -> Vec<i64> {
        self.lock().sequences.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Totals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
