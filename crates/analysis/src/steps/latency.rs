//! Response time tables and percentiles per kind of operation, over the blocks of each cell.

use itertools::Itertools;
use plimsoll_core::plan::Operation;
use plimsoll_core::units::NS_PER_S;

use crate::classic::Class;
use crate::classic::response::classify_max;
use crate::latencies::{Clock, CurvePoint, Latencies, Quantiles};
use crate::runs::attempts::Run;

/// A classic response time table of one kind of operation: service times in ten buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTable {
    /// The kind of operation.
    pub kind: String,
    /// The cells that did any.
    pub rows: Vec<ResponseRow>,
}

/// A row of a response time table.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseRow {
    /// Index into the view's cells.
    pub cell: usize,
    /// Operations done.
    pub total: u64,
    /// Operations per bucket of [`crate::classic::response::BUCKETS`].
    pub counts: [u64; 10],
    /// The longest, in seconds.
    pub max_s: f64,
    /// The colour of the maximum.
    pub max_class: Class,
}

impl ResponseRow {
    /// A bucket's share of the operations, in percent.
    pub fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.total as f64
    }
}

/// Percentiles of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyTable {
    /// The kind of operation.
    pub kind: String,
    /// Whether it had a schedule; a closed loop has no response time.
    pub is_open_loop: bool,
    /// Per cell, then per clock.
    pub rows: Vec<LatencyRow>,
}

/// A row of percentiles, and the curve through them.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyRow {
    /// Index into the view's cells.
    pub cell: usize,
    pub clock: Clock,
    pub quantiles: Quantiles,
    pub curve: Vec<CurvePoint>,
}

/// Fewer operations make steps, not a curve.
const LEAST_FOR_CURVE: u64 = 20;

/// The first of the tables, in this order; events of workload files follow in theirs.
const KINDS: [Operation; 5] = [
    Operation::Query,
    Operation::Scan,
    Operation::Index,
    Operation::Insert,
    Operation::Delete,
];

/// Kinds of operation that any of the runs did, in the order of the tables.
fn kinds<'a>(cells: &[Vec<&Run<'a>>]) -> Vec<&'a str> {
    let operations = || cells.iter().flatten().flat_map(|run| run.operations);
    let is_done = |kind: &Operation| operations().any(|operation| operation.kind == *kind);
    let known = KINDS.into_iter().filter(is_done);
    let known: Vec<&'a str> = known.map(Operation::as_str).collect();
    let draws_events = |run: &&&Run<'a>| run.step.operation == Operation::Event;
    let events = cells
        .iter()
        .flatten()
        .filter(draws_events)
        .flat_map(|run| run.operations)
        .map(|operation| operation.kind.as_str());
    known.into_iter().chain(events).unique().collect()
}

/// Buckets and percentiles of each kind of operation over the blocks of each cell. A histogram is
/// decoded once for both; one that cannot be is reported by a metric of its step.
pub(crate) fn latency_tables(cells: &[Vec<&Run<'_>>]) -> (Vec<ResponseTable>, Vec<LatencyTable>) {
    let mut responses = Vec::new();
    let mut latencies = Vec::new();
    for kind in kinds(cells) {
        let (mut buckets, mut percentiles) = (Vec::new(), Vec::new());
        for (cell, runs) in cells.iter().enumerate() {
            let records = runs.iter().flat_map(|run| run.operations);
            let times = Latencies::readable(records.filter(|record| record.kind == kind));
            buckets.extend(response_row(cell, &times));
            percentiles.extend(
                Clock::ALL
                    .into_iter()
                    .filter_map(|clock| latency_row(cell, clock, &times)),
            );
        }
        // Index creation is one operation per table: it has no buckets.
        if Operation::Index != kind && !buckets.is_empty() {
            responses.push(response_table(kind, buckets));
        }
        if !percentiles.is_empty() {
            latencies.push(LatencyTable {
                kind: kind.to_owned(),
                is_open_loop: percentiles.iter().any(|row| row.clock == Clock::Response),
                rows: percentiles,
            });
        }
    }
    (responses, latencies)
}

fn response_row(cell: usize, times: &Latencies) -> Option<ResponseRow> {
    let service = times.quantiles(Clock::Service)?;
    Some(ResponseRow {
        cell,
        total: service.count,
        counts: times.buckets()?,
        max_s: service.max_ns as f64 / NS_PER_S,
        max_class: Class::Plain,
    })
}

fn response_table(kind: &str, mut rows: Vec<ResponseRow>) -> ResponseTable {
    let maxima: Vec<Option<f64>> = rows.iter().map(|row| Some(row.max_s)).collect();
    for (row, class) in rows.iter_mut().zip(classify_max(&maxima)) {
        row.max_class = class;
    }
    ResponseTable {
        kind: kind.to_owned(),
        rows,
    }
}

fn latency_row(cell: usize, clock: Clock, times: &Latencies) -> Option<LatencyRow> {
    let quantiles = times.quantiles(clock)?;
    let has_curve = clock != Clock::Lag && quantiles.count >= LEAST_FOR_CURVE;
    Some(LatencyRow {
        cell,
        clock,
        quantiles,
        curve: if has_curve {
            times.curve(clock)
        } else {
            Vec::new()
        },
    })
}
