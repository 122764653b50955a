//! Steps of several kinds of events, each kind by itself.

use plimsoll_core::plan::Step;
use plimsoll_core::record::OperationRecord;
use plimsoll_core::units::NS_PER_S;

use crate::latencies::{Clock, Latencies, Quantiles};
use crate::metrics::{self, sysbench};
use crate::runs::attempts::Run;

/// What one kind of event came to in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Index into the view's cells.
    pub cell: usize,
    pub kind: String,
    /// Events done.
    pub ok: u64,
    /// Tries that were given up and tried again.
    pub retried: u64,
    /// Events given up for good.
    pub failed: u64,
    /// Events done per second of the step.
    pub per_s: Option<f64>,
    /// Statements of an event, `BEGIN` and `COMMIT` included.
    pub statements: Option<f64>,
    /// Service times.
    pub service: Option<Quantiles>,
    /// Response times, where events were due at a rate.
    pub response: Option<Quantiles>,
}

impl EventRow {
    /// Whether the last of the numbers is the least that it may be.
    pub fn is_response_lower_bound(&self) -> bool {
        self.response
            .as_ref()
            .is_some_and(|quantiles| quantiles.lower_bounds().contains(&"p99"))
    }

    /// Name, unit and value of what a line of numbers shows of a kind of event. The last one is
    /// there in open loops only.
    pub fn numbers(&self) -> [(&'static str, &'static str, Option<f64>); 11] {
        let time = |pick: fn(&Quantiles) -> f64| {
            self.service.as_ref().map(|quantiles| pick(quantiles) / 1e3)
        };
        [
            ("events", "events", Some(self.ok as f64)),
            ("events_retried", "events", Some(self.retried as f64)),
            ("events_failed", "events", Some(self.failed as f64)),
            ("events_per_s", "events/s", self.per_s),
            ("statements_per_event", "statements", self.statements),
            (
                sysbench::MEAN_SERVICE_US.name,
                "us",
                time(|quantiles| quantiles.mean_ns),
            ),
            (
                metrics::P50_SERVICE_US.name,
                "us",
                time(|quantiles| quantiles.p50_ns as f64),
            ),
            (
                metrics::P99_SERVICE_US.name,
                "us",
                time(|quantiles| quantiles.p99_ns as f64),
            ),
            (
                metrics::P999_SERVICE_US.name,
                "us",
                time(|quantiles| quantiles.p999_ns as f64),
            ),
            (
                metrics::MAX_SERVICE_US.name,
                "us",
                time(|quantiles| quantiles.max_ns as f64),
            ),
            (
                metrics::P99_RESPONSE_US.name,
                "us",
                self.response
                    .as_ref()
                    .map(|quantiles| quantiles.p99_ns as f64 / 1e3),
            ),
        ]
    }
}

/// A row for each kind of event of each cell, kinds in the order of the plan, over the runs of the
/// cell.
pub(crate) fn event_rows(step: &Step, cells: &[Vec<&Run<'_>>]) -> Vec<EventRow> {
    let of_kind = |kind: &str| {
        cells
            .iter()
            .enumerate()
            .filter_map(|(cell, runs)| event_row(kind, cell, runs))
            .collect::<Vec<_>>()
    };
    step.events()
        .iter()
        .flat_map(|(kind, _)| of_kind(kind))
        .collect()
}

/// A kind of event over some runs of a cell; `None` where it was never tried.
pub(crate) fn event_row(kind: &str, cell: usize, runs: &[&Run<'_>]) -> Option<EventRow> {
    let operations = || {
        runs.iter()
            .flat_map(|run| run.operations)
            .filter(|operation| operation.kind == kind)
    };
    let count = |pick: fn(&OperationRecord) -> u64| operations().map(pick).sum::<u64>();
    let ok = count(|operation| operation.ok);
    let statements: Option<u64> = operations().map(|operation| operation.statements).sum();
    let seconds: f64 = runs
        .iter()
        .filter_map(|run| run.done)
        .map(|done| done.elapsed_ns as f64 / NS_PER_S)
        .sum();
    if count(|operation| operation.attempts) == 0 {
        return None;
    }
    let times = Latencies::readable(operations());
    Some(EventRow {
        cell,
        kind: kind.to_owned(),
        ok,
        retried: count(|operation| operation.retried),
        failed: count(|operation| operation.failed),
        per_s: (seconds > 0.0).then(|| ok as f64 / seconds),
        statements: statements
            .filter(|_| ok > 0)
            .map(|statements| statements as f64 / ok as f64),
        service: times.quantiles(Clock::Service),
        response: times.quantiles(Clock::Response),
    })
}
