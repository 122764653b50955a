//! What the workers of a test count beside operations: statements as sysbench counts them, and how the tables have grown.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Statements by what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Statements {
    /// They answered with rows.
    pub reads: u64,
    /// They changed rows.
    pub writes: u64,
    /// They did neither: `BEGIN`, `COMMIT`, and a write that found nothing to change.
    pub others: u64,
}

/// The sum over a step's workers.
#[derive(Debug, Default)]
pub(crate) struct Tally(Mutex<Sums>);

#[derive(Debug, Default)]
struct Sums {
    statements: Statements,
    growth: BTreeMap<usize, i64>,
}

impl Tally {
    /// Adds what a worker counted: its measured statements, and the growth of each table over its whole life.
    pub(super) fn add(&self, statements: Statements, growth: &[i64]) {
        let mut sums = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sums.statements.reads += statements.reads;
        sums.statements.writes += statements.writes;
        sums.statements.others += statements.others;
        for (table, rows) in growth.iter().enumerate().filter(|(_, rows)| **rows != 0) {
            *sums.growth.entry(table).or_default() += rows;
        }
    }

    pub(super) fn statements(&self) -> Statements {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).statements
    }

    /// Rows that each table, from 0, has gained or lost.
    pub(super) fn growth(&self) -> BTreeMap<usize, i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).growth.clone()
    }
}
