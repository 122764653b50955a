//! Which numbers are judged.

use crate::cells::cell_info::CellInfo;
use crate::metrics::{self, Metric, sysbench};
use crate::steps::step_view::StepView;

/// The metrics that are judged in a step: its throughput, and CPU per operation of the server (of
/// the whole process where the engine lives in it). This is the one place that says so.
pub(crate) fn metrics_of(step: &StepView, base: &CellInfo) -> [&'static Metric; 2] {
    let cpu = if base.is_embedded == Some(true) {
        metrics::PROCESS_CPU_US_PER_OP
    } else {
        metrics::SERVER_CPU_US_PER_OP
    };
    [step.rate, cpu]
}

/// How a metric is called in sentences.
pub fn headline(metric: &str) -> String {
    let known = [
        (metrics::SERVER_CPU_US_PER_OP, "server CPU/op"),
        (metrics::CLIENT_CPU_US_PER_OP, "client CPU/op"),
        (metrics::PROCESS_CPU_US_PER_OP, "process CPU/op"),
        (metrics::CPUPQ, "host CPU/op"),
        (metrics::CSPQ, "cs/op"),
        (metrics::RPQ, "reads/op"),
        (metrics::RKBPQ, "KiB read/op"),
        (metrics::WPI, "writes/insert"),
        (metrics::WKBPI, "KiB written/insert"),
        (sysbench::WPQ, "writes/op"),
        (sysbench::WKBPQ, "KiB written/op"),
    ];
    known
        .iter()
        .find(|(known, _)| known.name == metric)
        .map_or_else(|| metric.to_owned(), |(_, words)| (*words).to_owned())
}
