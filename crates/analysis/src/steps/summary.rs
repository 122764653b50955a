//! The three classic tables.

use crate::cells::cell_info::CellInfo;
use crate::classic::Class;
use crate::metrics::ratio::divide;
use crate::metrics::{self, MetricSet};
use crate::runs::status::Status;
use crate::steps::classic_columns::{absolute_column, cell, format_rate, relative_column};
use crate::steps::classic_table::{ClassicCell, ClassicRow, ClassicTable};
use crate::steps::microbenchmarks::{Ramp, TestTable, ramps, test_tables};
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;

/// The three classic tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Operations per second: rows inserted in `l` steps, rows indexed in `l.x`, queries in `q`
    /// steps.
    pub absolute: ClassicTable,
    /// The same divided by the base.
    pub relative: ClassicTable,
    /// Rows inserted per second in the background of the `q` steps, and the targets.
    pub insert_rate: ClassicTable,
    /// Seconds of index creation, and below them the ratios to the base. Without columns unless the
    /// plan is about that step.
    pub index_seconds: ClassicTable,
    /// The tables of the microbenchmarks: relative throughput, throughput, and what an operation
    /// costs.
    pub tests: Vec<TestTable>,
    /// Tests over rising numbers of clients.
    pub ramps: Vec<Ramp>,
}

impl Summary {
    /// No table at all.
    pub(crate) fn none() -> Self {
        let none = || table("", "", &[], Vec::new());
        Self {
            absolute: none(),
            relative: none(),
            insert_rate: none(),
            index_seconds: none(),
            tests: Vec::new(),
            ramps: Vec::new(),
        }
    }
}

/// Tests have tables of their own; the classic ones show the other steps.
pub(crate) fn summarise(cells: &[CellInfo], steps: &[&StepView]) -> Summary {
    let (tests, steps): (Vec<&StepView>, Vec<&StepView>) = steps
        .iter()
        .copied()
        .partition(|step| step.set == MetricSet::Statements);
    // Those of RocksDB are set over versions, a table per config.
    let steps: Vec<&StepView> = steps
        .into_iter()
        .filter(|step| step.set != MetricSet::Keys)
        .collect();
    let steps = &steps[..];
    let mut columns: Vec<(String, Vec<ClassicCell>)> = steps
        .iter()
        .map(|step| (step.name.clone(), absolute_column(step)))
        .collect();
    let rates = match steps {
        [load] if !tests.is_empty() && matches!(load.name.as_str(), "prepare" | "load") => {
            columns.push(("seconds".to_owned(), load_seconds(load)));
            "rows/s inserted, each connection from its first insert to its last; seconds are those \
            of the whole load, with its indexes"
        }
        _ => "rows/s in l steps (l.x: indexed rows/s), queries/s in q steps",
    };
    let compared: Vec<&StepView> = if cells.len() > 1 {
        steps.to_vec()
    } else {
        Vec::new()
    };
    let insert_steps: Vec<&StepView> = steps
        .iter()
        .copied()
        .filter(|step| {
            step.outcomes
                .iter()
                .any(|outcome| outcome.target_per_s.is_some())
        })
        .collect();
    Summary {
        absolute: table("Throughput", rates, cells, columns),
        relative: with_marks(
            table(
                "Throughput relative to the base",
                "value / base: above 1 is faster; a ratio with a missed SLA proves nothing",
                cells,
                // Ratios of a lone cell to itself say nothing.
                compared
                    .iter()
                    .map(|step| (step.name.clone(), relative_column(step)))
                    .collect(),
            ),
            cells,
        ),
        insert_rate: with_targets(
            table(
                "Background insert rate",
                "rows/s inserted while the queries ran; marked where the writers missed their SLA",
                cells,
                insert_steps
                    .iter()
                    .map(|step| (step.name.clone(), insert_rate_column(step)))
                    .collect(),
            ),
            &insert_steps,
        ),
        index_seconds: index_seconds(cells, steps),
        tests: test_tables(&tests),
        ramps: ramps(&tests),
    }
}

/// How long the load took: more than its rate says, because that is of its inserts alone.
fn load_seconds(load: &StepView) -> Vec<ClassicCell> {
    load.outcomes
        .iter()
        .map(|outcome| {
            cell(
                outcome,
                outcome.elapsed_s.map(|s| format!("{s:.2}")),
                Class::Plain,
            )
        })
        .collect()
}

/// A plan that ends with index creation is about its time.
fn index_seconds(cells: &[CellInfo], steps: &[&StepView]) -> ClassicTable {
    let index = steps.last().filter(|step| step.makes_indexes());
    let columns = index.map_or_else(Vec::new, |step| {
        let seconds: Vec<Option<f64>> = step
            .outcomes
            .iter()
            .map(|outcome| outcome.number(metrics::INDEX_S))
            .collect();
        let absolute = step
            .outcomes
            .iter()
            .zip(&seconds)
            .map(|(outcome, s)| cell(outcome, s.map(|s| format!("{s:.2}")), Class::Plain));
        let share = |(outcome, s): (&Outcome, &Option<f64>)| match divide(*s, seconds[0]) {
            Ok(ratio) => cell(outcome, Some(ratio), Class::Plain),
            Err(reason) => ClassicCell {
                reason: outcome.reason.clone().or(Some(reason.to_owned())),
                ..cell(outcome, None, Class::Plain)
            },
        };
        let relative = step.outcomes.iter().zip(&seconds).map(share);
        vec![
            ("seconds".to_owned(), absolute.collect()),
            ("/ base".to_owned(), relative.collect()),
        ]
    });
    with_marks(
        table(
            "Index creation",
            "seconds for the indexes of all tables: less is better",
            cells,
            columns,
        ),
        cells,
    )
}

fn with_marks(mut table: ClassicTable, cells: &[CellInfo]) -> ClassicTable {
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.mark = cell.mark();
    }
    table
}

fn table(
    title: &'static str,
    caption: &'static str,
    cells: &[CellInfo],
    columns: Vec<(String, Vec<ClassicCell>)>,
) -> ClassicTable {
    let rows = cells.iter().enumerate().map(|(i, cell)| ClassicRow {
        label: cell.label.clone(),
        is_base: i == 0,
        mark: "",
        cells: columns
            .iter()
            .map(|(_, column)| column[i].clone())
            .collect(),
    });
    ClassicTable {
        title,
        caption,
        rows: rows.collect(),
        columns: columns.into_iter().map(|(name, _)| name).collect(),
    }
}

/// Marked by the verdict that the load recorded, not by rate and target: where arrivals are random,
/// so is the number of rows that were due.
fn insert_rate_column(step: &StepView) -> Vec<ClassicCell> {
    let class = |outcome: &Outcome| {
        if outcome.status == Status::SlaMissed {
            Class::Worst
        } else {
            Class::Plain
        }
    };
    step.outcomes
        .iter()
        .map(|outcome| {
            cell(
                outcome,
                outcome.number(metrics::IPS).map(format_rate),
                class(outcome),
            )
        })
        .collect()
}

/// The last row: what each step asked for. Where cells differ in clients there is no one target.
fn with_targets(mut table: ClassicTable, steps: &[&StepView]) -> ClassicTable {
    if steps.is_empty() {
        return table;
    }
    let target = |step: &&StepView| {
        let targets: Vec<f64> = step
            .outcomes
            .iter()
            .filter_map(|outcome| outcome.target_per_s)
            .collect();
        let is_one = targets.iter().all(|target| *target == targets[0]);
        let number = if is_one {
            format_rate(targets[0])
        } else {
            "varies".to_owned()
        };
        ClassicCell {
            number: Some(number),
            class: Class::Target,
            status: Status::Ok,
            reason: None,
        }
    };
    table.rows.push(ClassicRow {
        label: "target".to_owned(),
        is_base: false,
        mark: "",
        cells: steps.iter().map(target).collect(),
    });
    table
}
