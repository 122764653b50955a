//! What a step came to in one cell, over its blocks.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use itertools::Itertools;
use plimsoll_core::plan::Step;
use plimsoll_core::record::TableCheck;

use crate::metrics::measure::classic_rate;
use crate::metrics::value::{Value, median_over_blocks};
use crate::metrics::{Measure, Metric};
use crate::runs::attempts::{Run, drain_after};
use crate::runs::cell_runs::CellRuns;
use crate::runs::results::{OperationCount, sum_operations};
use crate::runs::status::Status;

/// What a step came to in one cell, over its blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The worst of the blocks that started; missing when none did.
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
    /// Blocks whose values are in `measures`.
    pub blocks_used: u32,
    /// Blocks of the schedule.
    pub blocks_planned: u32,
    /// Rows per second that the background writers of all clients should insert together.
    pub target_per_s: Option<f64>,
    /// Medians over the used blocks, in the catalogue's order; empty without any.
    pub measures: Vec<Measure>,
    /// The step's rate in each used block that has one; empty in imports.
    pub rate_of_blocks: Vec<f64>,
    /// The rate as sysbench counts it, with the statements of tries that were refused or failed;
    /// the median over the used blocks.
    pub classic_rate: Option<f64>,
    /// The step's rate by the base's as the verdict has it, from pairs; `None` where there are
    /// none, and where each ran once.
    pub paired_ratio: Option<f64>,
    /// Whether it and the base ran on one machine in no block: a ratio would be that of the
    /// machines.
    pub is_apart: bool,
    /// Operations of the used blocks, summed per kind; the step's own first.
    pub operations: Vec<OperationCount>,
    /// Seconds of the first used block's measured window.
    pub elapsed_s: Option<f64>,
    /// What the server left when it crashed.
    pub crash: Option<Crash>,
    /// The drain after the step in the first used block.
    pub drain: Option<Drain>,
    /// Row counts of the first used block, where the step verified them.
    pub checks: Vec<TableCheck>,
    /// Facts the workload noted in the first used block.
    pub notes: BTreeMap<String, f64>,
}

impl Outcome {
    /// Without any number.
    pub(crate) fn bare(status: Status, reason: Option<String>) -> Self {
        Self {
            status,
            reason,
            blocks_used: 0,
            blocks_planned: 0,
            target_per_s: None,
            measures: Vec::new(),
            rate_of_blocks: Vec::new(),
            classic_rate: None,
            paired_ratio: None,
            is_apart: false,
            operations: Vec::new(),
            elapsed_s: None,
            crash: None,
            drain: None,
            checks: Vec::new(),
            notes: BTreeMap::new(),
        }
    }

    /// A metric's value in full precision.
    pub fn number(&self, metric: &Metric) -> Option<f64> {
        self.measure(metric).and_then(|measure| measure.value.value)
    }

    /// A metric, whichever set its entry is of.
    pub fn measure(&self, metric: &Metric) -> Option<&Measure> {
        self.measure_of(metric.name)
    }

    /// A metric by its name in a file or a request.
    pub fn measure_of(&self, name: &str) -> Option<&Measure> {
        self.measures
            .iter()
            .find(|measure| measure.metric.name == name)
    }
}

/// How a server ended that was not asked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// The exit status or signal.
    pub status: String,
    /// The end of its log.
    pub log_tail: String,
}

/// Debt reduction after a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Drain {
    /// Action, seconds, answer.
    pub actions: Vec<(String, f64, String)>,
    /// Seconds in those actions.
    pub drained_s: f64,
    /// Seconds waited after them.
    pub waited_s: f64,
}

pub(crate) fn outcome(
    name: &str,
    rate: &Metric,
    cell: &CellRuns<'_>,
    valued: &[&Run<'_>],
) -> Outcome {
    let used: Vec<&Run<'_>> = cell.used(name).collect();
    let (status, reason) = overall(&used);
    let measures = match valued {
        [] => Vec::new(),
        [one] => one.measures.clone(),
        [first, ..] => (0..first.measures.len())
            .map(|i| {
                let values: Vec<_> = valued.iter().map(|run| &run.measures[i].value).collect();
                Measure {
                    metric: first.measures[i].metric,
                    value: median_over_blocks(&values),
                    classic: None,
                }
            })
            .collect(),
    };
    let crash = used.iter().find_map(|run| run.crash);
    let first = valued.first().and_then(|run| run.done);
    let drain = valued
        .first()
        .and_then(|run| drain_after(run.record?, name))
        .map(|drain| Drain {
            actions: drain
                .actions
                .iter()
                .map(|step| (step.action.clone(), step.seconds, step.result.clone()))
                .collect(),
            drained_s: drain.drained_s,
            waited_s: drain.waited_s,
        });
    let step = cell.step(name);
    let classic_rates = valued
        .iter()
        .filter_map(|run| classic_rate(run.step.family(), run.done?, run.number(rate.name)));
    let classic_rates: Vec<Value> = classic_rates.map(|rate| Value::from(Ok(rate))).collect();
    let mut operations = sum_operations(valued);
    operations.sort_by_key(|operation| step.is_none_or(|step| operation.kind != step.operation));
    Outcome {
        status,
        reason,
        blocks_used: count_blocks(valued),
        blocks_planned: count_blocks(&used),
        target_per_s: step.and_then(Step::background_per_s),
        measures,
        rate_of_blocks: valued
            .iter()
            .filter_map(|run| run.number(rate.name))
            .collect(),
        classic_rate: median_over_blocks(&classic_rates.iter().collect::<Vec<_>>()).value,
        paired_ratio: None,
        is_apart: false,
        operations,
        elapsed_s: first.map(|done| done.elapsed_ns as f64 / 1e9),
        crash: crash.map(|crash| Crash {
            status: crash.status.clone(),
            log_tail: crash.log_tail.clone(),
        }),
        drain,
        checks: first.map(|done| done.tables.clone()).unwrap_or_default(),
        notes: first.map(|done| done.notes.clone()).unwrap_or_default(),
    }
}

/// What runs in every part of a block has several runs there.
fn count_blocks(runs: &[&Run<'_>]) -> u32 {
    runs.iter().map(|run| run.unit.block).unique().count() as u32
}

/// `12 blocks`; `36 parts of blocks` of what runs in every part.
fn count_of(used: &[&Run<'_>]) -> String {
    let parts = match used.iter().any(|run| run.unit.part.is_some()) {
        true => "parts of ",
        false => "",
    };
    let begun = used.iter().filter(|run| run.attempt > 0).count();
    let number = if begun == 0 { used.len() } else { begun };
    format!("{number} {parts}blocks")
}

/// The worst of the blocks that came to something; with several blocks the reason says which, and
/// how many are alike.
pub(crate) fn overall(used: &[&Run<'_>]) -> (Status, Option<String>) {
    let badness = |status: Status| match status {
        Status::Missing => 0,
        Status::Ok => 1,
        Status::Suspect => 2,
        Status::SlaMissed => 3,
        Status::Damaged => 4,
        Status::Failed => 5,
        Status::Hung => 6,
        Status::Crashed => 7,
    };
    let Some(worst) = used
        .iter()
        .max_by_key(|run| (badness(run.status), Reverse(run.unit)))
    else {
        return (
            Status::Missing,
            Some("the step is not in this cell's plan".to_owned()),
        );
    };
    let alike = used.iter().filter(|run| run.status == worst.status).count();
    let others = if alike > 1 {
        format!(" (and {} more of {})", alike - 1, count_of(used))
    } else {
        String::new()
    };
    let with_block = |reason: &String| {
        if used.len() > 1 {
            format!("{}{others}: {reason}", worst.unit)
        } else {
            reason.clone()
        }
    };
    (worst.status, worst.reason.as_ref().map(with_block))
}
