//! The columns of a step's table of metrics.

use super::{
    CLIENT_CPU_US_PER_OP, CPUPQ, INDEX_S, Metric, MetricSet, PROCESS_CPU_US_PER_OP,
    SERVER_CPU_US_PER_OP, SERVER_CSPQ, SERVER_RKBPQ, SERVER_WKBPQ, imported,
};
use crate::steps::step_view::StepView;

/// What the processes that took part used per operation. They accompany `cpupq` and its like, which
/// count whatever else ran on the host. The server's system calls are in the table of all metrics
/// alone.
const OF_PROCESSES: [&Metric; 6] = [
    SERVER_CPU_US_PER_OP,
    CLIENT_CPU_US_PER_OP,
    PROCESS_CPU_US_PER_OP,
    SERVER_CSPQ,
    SERVER_RKBPQ,
    SERVER_WKBPQ,
];

/// From this many columns on a table is turned: a row per metric.
const MOST_COLUMNS: usize = 25;

/// Whether a step's table of metrics is turned, so that it need not be scrolled sideways.
pub fn is_turned(columns: &[&Metric]) -> bool {
    columns.len() > MOST_COLUMNS
}

/// All metrics that a step has, in the order of its tables.
pub fn step_metrics(step: &StepView) -> &'static [&'static Metric] {
    step.set.metrics()
}

/// The seconds of index creation where there is one, then the field's own columns in their order,
/// with what processes used per operation behind `cpupq`, where any cell has it.
pub fn step_columns(step: &StepView) -> Vec<&'static Metric> {
    let has_value = |metric: &&Metric| {
        let mut outcomes = step.outcomes.iter();
        outcomes.any(|outcome| outcome.number(metric).is_some())
    };
    let columns = step.set.columns().iter().copied();
    if step.set != MetricSet::Classic {
        return columns.filter(has_value).collect();
    }
    // Native results have every metric, if only with the reason why there is no value; imported
    // ones have what is in their files.
    let is_known = |metric: &&Metric| {
        let mut outcomes = step.outcomes.iter();
        outcomes.any(|outcome| outcome.measure(metric).is_some())
    };
    let mut outcomes = step.outcomes.iter();
    let has_measures = outcomes.any(|outcome| !outcome.measures.is_empty());
    let mut columns: Vec<_> = columns
        .filter(|metric| !has_measures || is_known(metric))
        .collect();
    columns.extend(imported::METRICS.iter().filter(|metric| is_known(metric)));
    let behind = columns
        .iter()
        .position(|metric| *metric == CPUPQ)
        .map_or(columns.len(), |at| at + 1);
    columns.splice(behind..behind, OF_PROCESSES.into_iter().filter(has_value));
    // In the step that creates indexes this is the number that matters.
    if has_value(&INDEX_S) {
        columns.insert(0, INDEX_S);
    }
    columns
}
