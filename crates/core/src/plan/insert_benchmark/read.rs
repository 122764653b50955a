//! A plan of the Insert Benchmark: sizes checked, steps of the sequence, every error with its
//! place.

use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{Era, InsertBenchmark, InsertWork, Partitions, Sequence, StepEnd};
use super::{TablePlacement, WriteArrival};
use crate::plan::document::{Document, Tables, Wait};
use crate::plan::keys::{DrainKeys, MOST_CLIENTS, MOST_ROWS};
use crate::plan::sizes::{Benchmark, Own, value};
use crate::plan::{Effect, Ends, PlanError, Rows, Step, WaitRule, Work};
use crate::source::Source;
use crate::units::{SECOND_NS, format_grouped};
use crate::written::{Count, Duration};

/// What MySQL allows.
const MOST_PARTITIONS: u32 = 8192;
const WRITE_ROWS: u64 = 50_000_000;

/// `[sizes]` of the Insert Benchmark.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Sizes {
    clients: Option<Spanned<u32>>,
    tables: Option<Spanned<Tables>>,
    rows: Option<Spanned<Count>>,
    write_rows: Option<Spanned<Count>>,
    duration: Option<Spanned<Duration>>,
    arrival: Option<Spanned<WriteArrival>>,
    end: Option<Spanned<StepEnd>>,
    deletes: Option<Spanned<bool>>,
    pub partitions: Option<Spanned<u32>>,
}

/// `[step.NAME]` of the Insert Benchmark.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::plan) struct Change {
    clients: Option<Spanned<u32>>,
    duration: Option<Spanned<Duration>>,
    wait: Option<Spanned<Wait>>,
    drain: Option<Spanned<bool>>,
}

impl Benchmark for InsertBenchmark {
    type Sizes = Sizes;
    type Change = Change;
    const NAME: &'static str = "the Insert Benchmark";
    const STEP: &'static str = "a step of the Insert Benchmark";
}

/// A step that is shorter is little but its beginning and its end.
const SHORTEST_NS: u64 = SECOND_NS / 10;

impl Source<'_> {
    pub(in crate::plan) fn insert_benchmark(
        &self,
        document: &Document,
        own: &Own<InsertBenchmark>,
        sizes: &Sizes,
        era: Era,
    ) -> Result<InsertBenchmark, PlanError> {
        if let Some(share) = &document.max_failed {
            let message =
                "the Insert Benchmark, which counts every row, has no \"max_failed\": leave it out";
            return Err(self.error(Some(share.span()), message));
        }
        self.refuse_list(
            &document.tests,
            "the Insert Benchmark has no \"tests\": name its steps in \"steps\"",
        )?;
        let tables = self.table_placement(sizes)?;
        let sequence = self.sequence(sizes, era, tables)?;
        let clients = sequence.clients;
        let mut steps = sequence.steps();
        for (name, change) in &own.step {
            let step = self.find_step(&mut steps, name)?;
            self.change_step(step, change, clients, tables)?;
        }
        if let Some(wanted) = &document.steps {
            let is_optional = |step: &Step| !step.is_writing();
            steps = self.select_steps(steps, wanted, is_optional, "read-write steps")?;
        }
        // By now the steps are those that run: partitions are sized for the rows that these insert.
        let partitions = match sizes.partitions.as_ref() {
            None => None,
            count => {
                let count = self.ranged(count, 1, MOST_PARTITIONS, "partitions")?;
                let rows = rows_per_partition(&steps, count, tables);
                Some(Partitions { count, rows })
            }
        };
        let wait = match &document.wait {
            Some(wait) => wait.get_ref().rule(),
            None if era == Era::Current => WaitRule::Classic,
            None => WaitRule::Fixed { ns: 0 },
        };
        let written = sizes.write_rows.as_ref().or(sizes.rows.as_ref());
        self.check_deletes(&steps, written.map(Spanned::span))?;
        Ok(InsertBenchmark {
            era,
            clients,
            tables,
            rows: sequence.rows,
            arrival: value(&sizes.arrival).unwrap_or(WriteArrival::Even),
            wait,
            partitions,
            steps,
        })
    }

    /// The numbers from which the steps follow.
    fn sequence(
        &self,
        sizes: &Sizes,
        era: Era,
        tables: TablePlacement,
    ) -> Result<Sequence, PlanError> {
        let clients = self.ranged(sizes.clients.as_ref(), 1, MOST_CLIENTS, "clients")?;
        let rows = self.rows_per_client(sizes.rows.as_ref(), default_rows(era), "rows")?;
        let write_rows =
            self.rows_per_client(sizes.write_rows.as_ref(), WRITE_ROWS, "write_rows")?;
        let duration_ns = match &sizes.duration {
            Some(duration) => self.step_duration(duration)?,
            None => default_duration_ns(era),
        };
        Ok(Sequence {
            era,
            clients,
            rows,
            write_rows,
            duration_ns,
            end: value(&sizes.end).unwrap_or(StepEnd::Rows),
            deletes: self.deletes(sizes, era, tables, clients)?,
        })
    }

    fn table_placement(&self, sizes: &Sizes) -> Result<TablePlacement, PlanError> {
        let Some(tables) = &sizes.tables else {
            return Ok(TablePlacement::PerClient);
        };
        match *tables.get_ref() {
            Tables::Placement(placement) => Ok(placement),
            Tables::Count(_) => {
                let message = "the Insert Benchmark has a table per client or one for all: write \
                              tables = \"per-client\" or \"shared\"";
                Err(self.error(Some(tables.span()), message))
            }
        }
    }

    fn rows_per_client(
        &self,
        value: Option<&Spanned<Count>>,
        default: u64,
        key: &str,
    ) -> Result<u64, PlanError> {
        match value {
            None => Ok(default),
            Some(value) if (1..=MOST_ROWS).contains(&value.get_ref().0) => Ok(value.get_ref().0),
            Some(value) => {
                let most = format_grouped(MOST_ROWS);
                let message = format!("{key} must be 1 to {most} rows per client");
                Err(self.error(Some(value.span()), message))
            }
        }
    }

    fn step_duration(&self, value: &Spanned<Duration>) -> Result<u64, PlanError> {
        match value.get_ref().0 {
            ns if ns >= SHORTEST_NS => Ok(ns),
            _ => Err(self.error(
                Some(value.span()),
                "a step's duration must be at least 100ms",
            )),
        }
    }

    /// Whether as many rows are deleted as are inserted after the load.
    fn deletes(
        &self,
        sizes: &Sizes,
        era: Era,
        tables: TablePlacement,
        clients: u32,
    ) -> Result<bool, PlanError> {
        let can_delete = era != Era::Year2017;
        let by_default = can_delete && tables == TablePlacement::PerClient;
        if !value(&sizes.deletes).unwrap_or(by_default) {
            return Ok(false);
        }
        let message = if !can_delete {
            "the 2017 sequence has no deletes: leave out \"deletes\""
        } else if tables == TablePlacement::Shared && clients > 1 {
            "clients that share one table cannot delete per insert (the original refuses it too): \
            use tables = \"per-client\" or deletes = false"
        } else {
            return Ok(true);
        };
        let place = sizes.deletes.as_ref().map(Spanned::span);
        let place = place.or_else(|| sizes.tables.as_ref().map(Spanned::span));
        Err(self.error(place, message))
    }

    fn change_step(
        &self,
        step: &mut Step,
        change: &Change,
        clients: u32,
        tables: TablePlacement,
    ) -> Result<(), PlanError> {
        if let Some(value) = &change.clients {
            let most = if tables == TablePlacement::Shared {
                MOST_CLIENTS
            } else {
                clients
            };
            let what = format!("clients of {} (a table each)", step.name);
            step.clients = self.ranged(Some(value), clients, most, &what)?;
            let is_of_all_tables = matches!(
                step.work,
                Work::InsertBenchmark(InsertWork::Load { .. } | InsertWork::CreateIndexes { .. })
            );
            if is_of_all_tables && step.clients != clients {
                let message = format!(
                    "{} works on every client's table: its clients cannot differ from the cell's",
                    step.name
                );
                return Err(self.error(Some(value.span()), message));
            }
        }
        if let Some(value) = &change.duration {
            let (Ends::RowsAtRate { ns } | Ends::Time { ns, .. }) = &mut step.ends else {
                let message = format!(
                    "{} ends when its rows are done: it has no duration; set \"rows\" or \
                    \"write_rows\"",
                    step.name
                );
                return Err(self.error(Some(value.span()), message));
            };
            *ns = self.step_duration(value)?;
        }
        self.override_drain(
            step,
            DrainKeys {
                wait: change.wait.as_ref(),
                drain: change.drain.as_ref(),
            },
        )
    }

    /// Deletes remove the oldest rows; there must be that many.
    fn check_deletes(&self, steps: &[Step], span: Option<Range<usize>>) -> Result<(), PlanError> {
        let held: u64 = steps.first().map_or(0, Step::inserted_rows);
        for step in steps {
            if !step.deletes {
                continue;
            }
            // Inserter and deleter may be ten statements apart: the table must outlast that.
            let least = u64::from(step.batch) * 20;
            if held < least {
                let message = format!(
                    "{} deletes in transactions of {} rows and would empty a table of {} rows per \
                    client: load at least {}",
                    step.name,
                    step.batch,
                    format_grouped(held),
                    format_grouped(least)
                );
                return Err(self.error(span, message));
            }
            let written = planned_rows(step);
            if step.makes_data() && written > held.saturating_mul(1000) {
                let message = format!(
                    "{} would delete {} rows from a table of {} rows per client, more than a \
                    thousand times over: lower write_rows or raise rows",
                    step.name,
                    format_grouped(written),
                    format_grouped(held)
                );
                return Err(self.error(span, message));
            }
        }
        Ok(())
    }
}

/// Rows per client that a step inserts by its plan, before batches are whole.
fn planned_rows(step: &Step) -> u64 {
    match step.effect {
        Effect::MakesData {
            rows: Rows::PerClient(rows),
            ..
        } => rows,
        _ => 0,
    }
}

/// As the original's scripts do: all rows that a table will ever have been given, over the
/// partitions. The batch of the index step counts once for all clients.
fn rows_per_partition(steps: &[Step], count: u32, tables: TablePlacement) -> u64 {
    let rows = |step: &Step| match step.work {
        Work::InsertBenchmark(InsertWork::Load { .. } | InsertWork::Write) => {
            planned_rows(step) * u64::from(step.clients)
        }
        Work::InsertBenchmark(InsertWork::CreateIndexes { rows }) => rows,
        Work::InsertBenchmark(InsertWork::ReadWrite { rate, .. }) => {
            let ns = step.duration_ns().unwrap_or(0);
            (rate * ns / SECOND_NS) * u64::from(step.clients)
        }
        _ => 0,
    };
    let all: u64 = steps.iter().map(rows).sum();
    let tables = match tables {
        TablePlacement::PerClient => steps.first().map_or(1, |step| step.clients),
        TablePlacement::Shared => 1,
    };
    (all / u64::from(count) / u64::from(tables)).max(1)
}

fn default_rows(era: Era) -> u64 {
    match era {
        Era::Current | Era::May2023 => 20_000_000,
        Era::Year2017 => 31_250_000, // 500M rows over 16 clients
    }
}

fn default_duration_ns(era: Era) -> u64 {
    match era {
        Era::Current | Era::May2023 => 1800 * SECOND_NS,
        Era::Year2017 => 5000 * SECOND_NS,
    }
}
