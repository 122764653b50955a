//! The three classic tables.

use crate::cells::cell_info::CellInfo;
use crate::classic::throughput::{self, Rate};
use crate::classic::{Class, relative};
use crate::metrics::ratio::divide;
use crate::metrics::{self, Metric};
use crate::runs::status::Status;
use crate::steps::classic_table::{ClassicCell, ClassicRow, ClassicTable};
use crate::steps::microbenchmarks::{Ramp, TestTable, ramps, test_tables};
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::words::reasons::brief;

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

/// Tests have tables of their own; the classic ones show the other steps.
pub(crate) fn summarise(cells: &[CellInfo], steps: &[&StepView]) -> Summary {
    let (tests, steps): (Vec<&StepView>, Vec<&StepView>) =
        steps.iter().copied().partition(|step| step.test.is_some());
    // Those of RocksDB are set over versions, a table per config.
    let steps: Vec<&StepView> = steps
        .into_iter()
        .filter(|step| !step.is_of_rocksdb())
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
    let index = steps.last().filter(|step| step.operation == "indexed row");
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

pub(crate) fn cell(outcome: &Outcome, number: Option<String>, class: Class) -> ClassicCell {
    ClassicCell {
        number,
        class,
        status: outcome.status,
        reason: outcome.reason.clone(),
    }
}

/// Whole numbers, as the field prints rates; small ones keep three digits.
pub(crate) fn format_rate(per_s: f64) -> String {
    if per_s < 9.995 && per_s > 0.0 {
        format!("{per_s:.2}")
    } else {
        format!("{per_s:.0}")
    }
}

fn rates(outcomes: &[&Outcome], rate: &Metric) -> Vec<Option<f64>> {
    outcomes
        .iter()
        .map(|outcome| outcome.number(rate))
        .collect()
}

pub(crate) fn absolute_column(step: &StepView) -> Vec<ClassicCell> {
    absolute_cells(&step.outcomes.iter().collect::<Vec<_>>(), step.rate)
}

/// Rates as they are printed, coloured among each other.
pub(crate) fn absolute_cells(outcomes: &[&Outcome], rate: &Metric) -> Vec<ClassicCell> {
    let rates = rates(outcomes, rate);
    let rounded: Vec<Option<Rate>> = rates
        .iter()
        .zip(outcomes)
        .map(|(rate, outcome)| {
            Some(Rate {
                per_s: rate.as_ref()?.round() as u64,
                is_sla_met: outcome.status != Status::SlaMissed,
            })
        })
        .collect();
    let classes = throughput::classify(&rounded);
    let cells = outcomes.iter().zip(rates).zip(classes);
    cells
        .map(|((outcome, rate), class)| cell(outcome, rate.map(format_rate), class))
        .collect()
}

pub(crate) fn relative_column(step: &StepView) -> Vec<ClassicCell> {
    relative_cells(&step.outcomes.iter().collect::<Vec<_>>(), step.rate)
}

/// Rates divided by the first one.
pub(crate) fn relative_cells(outcomes: &[&Outcome], rate: &Metric) -> Vec<ClassicCell> {
    let rates = rates(outcomes, rate);
    let base = rates[0];
    let is_base_missed = outcomes[0].status == Status::SlaMissed;
    let ratio = |(i, outcome): (usize, &&Outcome)| match (
        divide(paired(outcome, rates[i], base), base),
        rates[i],
        base,
    ) {
        (Ok(text), Some(rate), Some(base)) => {
            let rate = outcome.paired_ratio.map_or(rate, |ratio| ratio * base);
            // Who spared the background work has an advantage: such a ratio neither wins nor loses.
            let is_missed = is_base_missed || outcome.status == Status::SlaMissed;
            let class = if is_missed || i == 0 {
                Class::Plain
            } else {
                relative::classify(rate, base)
            };
            let ratio = cell(outcome, Some(text), class);
            if is_base_missed && outcome.status.is_finished() {
                with_missed_base(ratio)
            } else {
                ratio
            }
        }
        (Err(_), Some(_), None) => ClassicCell {
            reason: Some(format!("no ratio: {}", without_base(outcomes[0]))),
            ..cell(outcome, None, Class::Plain)
        },
        (Err(reason), Some(_), _) => ClassicCell {
            reason: Some(reason.to_owned()),
            ..cell(outcome, None, Class::Plain)
        },
        _ => cell(outcome, None, Class::Plain),
    };
    outcomes.iter().enumerate().map(ratio).collect()
}

/// The rate that has the ratio of the pairs to the base, where there are pairs.
fn paired(outcome: &Outcome, rate: Option<f64>, base: Option<f64>) -> Option<f64> {
    outcome
        .paired_ratio
        .zip(base)
        .map(|(ratio, base)| ratio * base)
        .or(rate)
}

/// Why the base has no number.
pub(crate) fn without_base(base: &Outcome) -> String {
    let what = match base.status {
        Status::Failed | Status::Crashed | Status::Hung => {
            format!("the base {}", base.status.name())
        }
        _ => "the base has no result".to_owned(),
    };
    base.reason.as_ref().map_or(what.clone(), |reason| {
        format!("{what}: {}", brief(reason).0)
    })
}

/// A ratio to a base that missed its SLA, marked as if its own step had.
fn with_missed_base(ratio: ClassicCell) -> ClassicCell {
    if ratio.status == Status::SlaMissed {
        return ratio;
    }
    let why = "the base missed its SLA";
    let reason = ratio
        .reason
        .map_or_else(|| why.to_owned(), |own| format!("{why}; {own}"));
    ClassicCell {
        status: Status::SlaMissed,
        reason: Some(reason),
        ..ratio
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
