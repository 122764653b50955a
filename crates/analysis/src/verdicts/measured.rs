//! Which numbers are judged.

use plimsoll_core::metric::{self, Metric};

use crate::cells::cell_info::CellInfo;
use crate::steps::step_view::StepView;

/// The metrics that are judged in a step: its throughput, and CPU per operation of the server (of
/// the whole process where the engine lives in it). This is the one place that says so.
pub(crate) fn metrics_of(step: &StepView, base: &CellInfo) -> [&'static Metric; 2] {
    let cpu = if base.is_embedded == Some(true) {
        "process_cpu_us_per_op"
    } else {
        "server_cpu_us_per_op"
    };
    [
        step.rate,
        metric::find(cpu).expect("CPU per operation is in the catalogue"),
    ]
}

/// How a metric is called in sentences.
pub fn headline(metric: &str) -> String {
    let known = [
        ("server_cpu_us_per_op", "server CPU/op"),
        ("client_cpu_us_per_op", "client CPU/op"),
        ("process_cpu_us_per_op", "process CPU/op"),
        ("cpupq", "host CPU/op"),
        ("cspq", "cs/op"),
        ("rpq", "reads/op"),
        ("rkbpq", "KiB read/op"),
        ("wpi", "writes/insert"),
        ("wkbpi", "KiB written/insert"),
        ("wpq", "writes/op"),
        ("wkbpq", "KiB written/op"),
    ];
    known
        .iter()
        .find(|(name, _)| *name == metric)
        .map_or_else(|| metric.to_owned(), |(_, words)| (*words).to_owned())
}
