//! The columns of a step's table of metrics.

use plimsoll_core::imported_metric::IMPORTED;
use plimsoll_core::metric::{self, CATALOGUE, Metric};

use crate::classic::metrics_line;
use crate::view::StepView;

/// CPU per operation of the processes that took part. They stand beside `cpupq`, which counts whatever else ran on the host.
const CPU_PER_OPERATION: [&str; 3] = ["server_cpu_us_per_op", "client_cpu_us_per_op", "process_cpu_us_per_op"];

/// Columns of a sysbench test, those of them that any cell has.
const OF_TESTS: [&str; 22] = [
    "krps",
    "qps",
    "tps",
    "hit_ratio",
    "cpupq",
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "process_cpu_us_per_op",
    "cspq",
    "rpq",
    "rkbpq",
    "wpq",
    "wkbpq",
    "mean_service_us",
    "p95_service_us",
    "p99_service_us",
    "p99_response_us",
    "csps",
    "cpups",
    "dbgb1",
    "dbgb2",
    "rss",
];

/// All metrics that a step has, in the order of its catalogue.
pub(crate) fn step_metrics(step: &StepView) -> Vec<&'static Metric> {
    if step.test.is_some() { metric::of_sysbench().collect() } else { CATALOGUE.iter().collect() }
}

/// The seconds of index creation where there is one, then the field's own columns in their order, with the CPU per operation that any cell has behind `cpupq`.
pub(crate) fn step_columns(step: &StepView) -> Vec<&'static Metric> {
    let has_value = |name: &&str| step.outcomes.iter().any(|outcome| outcome.number(name).is_some());
    if step.test.is_some() {
        return OF_TESTS.into_iter().filter(has_value).filter_map(metric::find_of_sysbench).collect();
    }
    // Native results have every metric, if only with the reason why there is no value; imported ones have what their files tell.
    let is_known = |name: &str| step.outcomes.iter().any(|outcome| outcome.measure(name).is_some());
    let mut columns = Vec::from(metrics_line::columns());
    if step.outcomes.iter().any(|outcome| !outcome.measures.is_empty()) {
        columns.retain(|metric| is_known(metric.name));
    }
    columns.extend(IMPORTED.iter().filter(|metric| is_known(metric.name)));
    let own = CPU_PER_OPERATION.into_iter().filter(has_value).map(|name| metric::find(name).expect("the catalogue holds its own CPU"));
    let behind = columns.iter().position(|metric| metric.name == "cpupq").map_or(columns.len(), |at| at + 1);
    columns.splice(behind..behind, own.collect::<Vec<_>>());
    // In the step that creates indexes this is the number that matters.
    if has_value(&"index_s") {
        columns.insert(0, metric::find("index_s").expect("the catalogue holds it"));
    }
    columns
}
