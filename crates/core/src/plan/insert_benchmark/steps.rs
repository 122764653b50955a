//! The steps of the Insert Benchmark with their facts, and the sequences of its years.

use std::num::NonZeroU64;

use super::{Era, InsertWork, QueryKind, StepEnd};
use crate::plan::{Background, Effect, Ends, Operation, Rows, Step, Work, Writers};
use crate::units::SECOND_NS;

const PER_SECOND: NonZeroU64 = NonZeroU64::new(SECOND_NS).unwrap();

fn step(name: impl Into<String>, operation: Operation, work: InsertWork) -> Step {
    Step::new(name, operation, Work::InsertBenchmark(work))
}

fn makes_data(rows: u64, is_indexed: bool) -> Effect {
    Effect::MakesData {
        rows: Rows::PerClient(rows),
        is_indexed,
    }
}

pub(in crate::plan) fn load(name: &str, rows: u64, indexes_first: bool) -> Step {
    Step {
        ends: Ends::Rows,
        effect: makes_data(rows, indexes_first),
        ..step(name, Operation::Insert, InsertWork::Load { indexes_first })
    }
}

pub(in crate::plan) fn create_indexes(name: &str, rows: u64) -> Step {
    Step {
        effect: makes_data(rows, true),
        ..step(name, Operation::Index, InsertWork::CreateIndexes { rows })
    }
}

pub(in crate::plan) fn write(name: &str, rows: u64, deletes: bool) -> Step {
    Step {
        ends: Ends::Rows,
        effect: makes_data(rows, true),
        deletes,
        ..step(name, Operation::Insert, InsertWork::Write)
    }
}

/// Queries beside writers that insert `rate` rows per second and client for `ns` nanoseconds.
pub(in crate::plan) fn read_write(
    name: &str,
    query: QueryKind,
    rate: u64,
    ns: u64,
    end: StepEnd,
    deletes: bool,
) -> Step {
    Step {
        ends: match end {
            StepEnd::Rows => Ends::RowsAtRate { ns },
            StepEnd::Time => Ends::Time { ns, warm_up_ns: 0 },
        },
        background: Some(Background {
            operation: Operation::Insert,
            writers: Writers::OnePerClient,
            amount: rate,
            per_ns: PER_SECOND,
        }),
        deletes,
        ..step(
            name,
            Operation::Query,
            InsertWork::ReadWrite { query, rate },
        )
    }
}

pub(in crate::plan) fn scan(name: &str) -> Step {
    step(name, Operation::Scan, InsertWork::Scan)
}

/// The sizes from which a sequence follows.
pub(super) struct Sequence {
    pub era: Era,
    pub clients: u32,
    /// Rows loaded per client.
    pub rows: u64,
    /// Rows written per client after the load.
    pub write_rows: u64,
    pub duration_ns: u64,
    pub end: StepEnd,
    pub deletes: bool,
}

impl Sequence {
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = match self.era {
            Era::Current => self.current(),
            Era::May2023 => self.may_2023(),
            Era::Year2017 => self.year_2017(),
        };
        for step in &mut steps {
            step.clients = self.clients;
        }
        steps
    }

    fn current(&self) -> Vec<Step> {
        // Four fifths in large transactions, one fifth in small ones.
        let fifths = |fifths: f64| (self.write_rows as f64 * fifths / 5.0).round() as u64;
        let mut steps = vec![
            batch(100, load("l.i0", self.rows, false)),
            batch(100, create_indexes("l.x", 100)),
            batch(50, self.write("l.i1", fifths(4.0))),
            drained(batch(5, self.write("l.i2", fifths(1.0)))),
        ];
        for rate in [100, 500, 1000] {
            for (letter, query) in [('r', QueryKind::Range), ('p', QueryKind::Point)] {
                steps.push(self.read_write(&format!("q{letter}{rate}"), 50, rate, query));
            }
        }
        steps
    }

    fn may_2023(&self) -> Vec<Step> {
        let index_rows = 100_000 / u64::from(self.clients);
        let mut steps = vec![
            batch(100, load("l.i0", self.rows, false)),
            batch(100, create_indexes("l.x", index_rows)),
            drained(batch(50, self.write("l.i1", self.write_rows))),
        ];
        let range = QueryKind::Range;
        steps.extend(
            [100, 500, 1000].map(|rate| self.read_write(&format!("q{rate}"), 50, rate, range)),
        );
        steps
    }

    fn year_2017(&self) -> Vec<Step> {
        let mut steps = vec![
            drained(batch(100, load("l", self.rows, true))),
            scan("scan"),
        ];
        let range = QueryKind::Range;
        steps
            .extend([1000, 100].map(|rate| self.read_write(&format!("q{rate}"), 100, rate, range)));
        steps
    }

    fn write(&self, name: &str, rows: u64) -> Step {
        write(name, rows.max(1), self.deletes)
    }

    fn read_write(&self, name: &str, rows: u32, rate: u64, query: QueryKind) -> Step {
        let step = read_write(name, query, rate, self.duration_ns, self.end, self.deletes);
        // The original lowers the batch to the rate when the rate is smaller.
        batch(rows.min(rate as u32), step)
    }
}

fn batch(batch: u32, step: Step) -> Step {
    Step { batch, ..step }
}

fn drained(step: Step) -> Step {
    Step {
        drain_after: true,
        ..step
    }
}
