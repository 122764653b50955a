//! The columns of a step's table of metrics.

use plimsoll_core::imported_metric::IMPORTED;
use plimsoll_core::metric::{self, CATALOGUE, Metric};

use crate::classic::metrics_line;
use crate::steps::step_view::StepView;

/// CPU per operation of the processes that took part. They accompany `cpupq`, which counts
/// whatever else ran on the host.
const CPU_PER_OPERATION: [&str; 3] = [
    "server_cpu_us_per_op",
    "client_cpu_us_per_op",
    "process_cpu_us_per_op",
];

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

/// Columns of a step of RocksDB, those of them that any cell has: the original's in its order, each
/// with what sets it right.
const OF_ROCKSDB: [&str; 34] = [
    "qps",
    "reads_per_s",
    "writes_per_s",
    "rate_share",
    "mb_sec",
    "lsm_gb",
    "blob_gb",
    "space_amp",
    "c_wgb",
    "w_amp",
    "w_amp_sum",
    "c_mbps",
    "c_wsecs",
    "c_csecs",
    "b_rgb",
    "b_wgb",
    "usec_op",
    "process_cpu_us_per_op",
    "p50_service_us",
    "p99_service_us",
    "p999_service_us",
    "p9999_service_us",
    "max_service_us",
    "uptime_s",
    "stall_pct",
    "n_stall",
    "user_cpu_s",
    "system_cpu_s",
    "rss",
    "found_ratio",
    "rkbpq",
    "wmbps",
    "cspq",
    "cpups",
];

/// From this many columns on a table is turned: a row per metric.
const MOST_COLUMNS: usize = 25;

/// Whether a step's table of metrics is turned, so that it need not be scrolled sideways.
pub fn is_turned(columns: &[&Metric]) -> bool {
    columns.len() > MOST_COLUMNS
}

/// All metrics that a step has, in the order of its catalogue.
pub fn step_metrics(step: &StepView) -> Vec<&'static Metric> {
    match () {
        () if step.test.is_some() => metric::of_sysbench().collect(),
        () if step.is_of_rocksdb() => metric::of_rocksdb().collect(),
        () => CATALOGUE.iter().collect(),
    }
}

/// The seconds of index creation where there is one, then the field's own columns in their order,
/// with the CPU per operation that any cell has behind `cpupq`.
pub fn step_columns(step: &StepView) -> Vec<&'static Metric> {
    let has_value = |name: &&str| {
        step.outcomes
            .iter()
            .any(|outcome| outcome.number(name).is_some())
    };
    if step.test.is_some() {
        return OF_TESTS
            .into_iter()
            .filter(has_value)
            .filter_map(metric::find_of_sysbench)
            .collect();
    }
    if step.is_of_rocksdb() {
        return OF_ROCKSDB
            .into_iter()
            .filter(has_value)
            .filter_map(metric::find_of_rocksdb)
            .collect();
    }
    // Native results have every metric, if only with the reason why there is no value; imported
    // ones have what their files tell.
    let is_known = |name: &str| {
        step.outcomes
            .iter()
            .any(|outcome| outcome.measure(name).is_some())
    };
    let mut columns = Vec::from(metrics_line::columns());
    if step
        .outcomes
        .iter()
        .any(|outcome| !outcome.measures.is_empty())
    {
        columns.retain(|metric| is_known(metric.name));
    }
    columns.extend(IMPORTED.iter().filter(|metric| is_known(metric.name)));
    let own = CPU_PER_OPERATION
        .into_iter()
        .filter(has_value)
        .map(|name| metric::find(name).expect("the catalogue holds its own CPU"));
    let behind = columns
        .iter()
        .position(|metric| metric.name == "cpupq")
        .map_or(columns.len(), |at| at + 1);
    columns.splice(behind..behind, own.collect::<Vec<_>>());
    // In the step that creates indexes this is the number that matters.
    if has_value(&"index_s") {
        columns.insert(0, metric::find("index_s").expect("the catalogue holds it"));
    }
    columns
}
