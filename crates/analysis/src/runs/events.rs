//! Steps of several kinds of events: each kind by itself, and all of them together, which stand for
//! the step.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_core::plan::{Operation, Step};
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord};
use plimsoll_store::OperationSecond;
use plimsoll_store::event::StepDone;

use crate::runs::attempts::Run;
use crate::runs::histogram::{Quantiles, decode, encode, merge, quantiles};

/// What one kind of event came to in one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Index into the view's cells.
    pub cell: usize,
    /// The event.
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
            ("mean_service_us", "us", time(|quantiles| quantiles.mean_ns)),
            (
                "p50_service_us",
                "us",
                time(|quantiles| quantiles.p50_ns as f64),
            ),
            (
                "p99_service_us",
                "us",
                time(|quantiles| quantiles.p99_ns as f64),
            ),
            (
                "p999_service_us",
                "us",
                time(|quantiles| quantiles.p999_ns as f64),
            ),
            (
                "max_service_us",
                "us",
                time(|quantiles| quantiles.max_ns as f64),
            ),
            (
                "p99_response_us",
                "us",
                self.response
                    .as_ref()
                    .map(|quantiles| quantiles.p99_ns as f64 / 1e3),
            ),
        ]
    }
}

/// The step with its kinds of operations as one, and the series with it; `None` for a step whose
/// kinds are not drawn events.
pub(crate) fn together(
    done: &StepDone,
    series: Result<&[OperationSecond], &str>,
) -> Option<(StepDone, Result<Vec<OperationSecond>, String>)> {
    if done.primary != Operation::Event {
        return None;
    }
    let mut all = OperationRecord {
        kind: Operation::Event.into(),
        statements: Some(0),
        ..OperationRecord::default()
    };
    for operation in &done.operations {
        all.attempts += operation.attempts;
        all.ok += operation.ok;
        all.retried += operation.retried;
        all.failed += operation.failed;
        all.unsent += operation.unsent;
        all.rows += operation.rows;
        all.wait_ns += operation.wait_ns;
        all.worker_ns = all.worker_ns.max(operation.worker_ns);
        all.statements = all
            .statements
            .zip(operation.statements)
            .map(|(sum, of_kind)| sum + of_kind);
        all.pacing = all.pacing.or_else(|| operation.pacing.clone());
        for (class, count) in &operation.errors {
            *all.errors.entry(class.clone()).or_default() += count;
        }
    }
    let sum = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| {
        sum(done.operations.iter().filter_map(pick))
    };
    // One that cannot be decoded makes the sum unreadable, which is reported as such.
    all.service = sum(|operation| Some(&operation.service)).unwrap_or_default();
    all.response = sum(|operation| operation.response.as_ref());
    all.lag = sum(|operation| operation.lag.as_ref());
    all.unsent_response = sum(|operation| operation.unsent_response.as_ref());
    let mut clients: BTreeMap<u32, ClientRecord> = BTreeMap::new();
    for of_kind in &done.clients {
        let client = clients
            .entry(of_kind.client)
            .or_insert_with(|| ClientRecord {
                ok: 0,
                rows: 0,
                kind: Operation::Event.into(),
                ..of_kind.clone()
            });
        client.ok += of_kind.ok;
        client.rows += of_kind.rows;
        client.from_ns = client.from_ns.min(of_kind.from_ns);
        client.to_ns = client.to_ns.max(of_kind.to_ns);
    }
    let rename = |row: &OperationSecond| OperationSecond {
        kind: Operation::Event.into(),
        ..row.clone()
    };
    let series = series
        .map(|rows| rows.iter().map(rename).collect())
        .map_err(str::to_owned);
    Some((
        StepDone {
            operations: vec![all],
            clients: clients.into_values().collect(),
            ..done.clone()
        },
        series,
    ))
}

/// All of these histograms as one; nothing without any, or where one cannot be decoded.
fn sum<'a>(histograms: impl Iterator<Item = &'a EncodedHistogram>) -> Option<EncodedHistogram> {
    let mut all: Option<Histogram<u64>> = None;
    for encoded in histograms {
        merge(&mut all, decode(encoded).ok()?);
    }
    all.map(|all| encode(&all))
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
        .map(|done| done.elapsed_ns as f64 / 1e9)
        .sum();
    let all = |pick: fn(&OperationRecord) -> Option<&EncodedHistogram>| {
        let mut all = None;
        for histogram in operations()
            .filter_map(pick)
            .filter_map(|histogram| decode(histogram).ok())
        {
            merge(&mut all, histogram);
        }
        all
    };
    let unsent = all(|operation| operation.unsent_response.as_ref());
    (count(|operation| operation.attempts) > 0).then(|| EventRow {
        cell,
        kind: kind.to_owned(),
        ok,
        retried: count(|operation| operation.retried),
        failed: count(|operation| operation.failed),
        per_s: (seconds > 0.0).then(|| ok as f64 / seconds),
        statements: statements
            .filter(|_| ok > 0)
            .map(|statements| statements as f64 / ok as f64),
        service: all(|operation| Some(&operation.service))
            .and_then(|service| quantiles(&service, None)),
        response: all(|operation| operation.response.as_ref())
            .and_then(|response| quantiles(&response, unsent.as_ref())),
    })
}
