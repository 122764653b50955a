//! Response time tables and percentiles per kind of operation, over the blocks of each cell.

use hdrhistogram::Histogram;
use itertools::Itertools;
use plimsoll_core::plan::Operation;
use plimsoll_core::record::{EncodedHistogram, OperationRecord};

use crate::classic::Class;
use crate::classic::response::classify_max;
use crate::runs::attempts::Run;
use crate::runs::histogram::{
    CurvePoint, Quantiles, bucket_counts, curve, decode, merge, quantiles,
};

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

/// Which of the three times of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Clock {
    /// From sending to done.
    Service,
    /// From the planned instant to done.
    Response,
    /// From the planned instant to sending.
    Lag,
}

impl Clock {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Response => "response",
            Self::Lag => "lag",
        }
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
    /// Which time.
    pub clock: Clock,
    /// The percentiles.
    pub quantiles: Quantiles,
    /// The curve.
    pub curve: Vec<CurvePoint>,
}

/// Fewer operations make steps, not a curve.
const LEAST_FOR_CURVE: u64 = 20;

/// The first of the tables, in this order; events of workload files follow in theirs.
const KINDS: [&str; 5] = ["query", "scan", "index", "insert", "delete"];

/// Kinds of operation that any of the runs did, in the order of the tables.
fn kinds<'a>(cells: &[Vec<&Run<'a>>]) -> Vec<&'a str> {
    let operations = || cells.iter().flatten().flat_map(|run| run.operations);
    let known = KINDS
        .into_iter()
        .filter(|kind| operations().any(|operation| operation.kind == *kind));
    let is_event = |run: &&&Run<'a>| {
        run.done
            .is_some_and(|done| done.primary == Operation::Event)
    };
    let events = cells
        .iter()
        .flatten()
        .filter(is_event)
        .flat_map(|run| run.operations)
        .map(|operation| operation.kind.as_str());
    known.chain(events).unique().collect()
}

/// Ten buckets of service time. Index creation has none: it is one operation per table.
pub(crate) fn response_tables(cells: &[Vec<&Run<'_>>]) -> Vec<ResponseTable> {
    let kinds = kinds(cells).into_iter().filter(|kind| *kind != "index");
    kinds
        .filter_map(|kind| {
            let mut rows: Vec<ResponseRow> = cells
                .iter()
                .enumerate()
                .filter_map(|(cell, runs)| {
                    let histogram = merged(runs, kind, |operation| Some(&operation.service))?;
                    let max_s = histogram.max() as f64 / 1e9;
                    let counts = bucket_counts(&histogram);
                    Some(ResponseRow {
                        cell,
                        total: histogram.len(),
                        counts,
                        max_s,
                        max_class: Class::Plain,
                    })
                })
                .collect();
            let maxima: Vec<Option<f64>> = rows.iter().map(|row| Some(row.max_s)).collect();
            for (row, class) in rows.iter_mut().zip(classify_max(&maxima)) {
                row.max_class = class;
            }
            (!rows.is_empty()).then(|| ResponseTable {
                kind: kind.to_owned(),
                rows,
            })
        })
        .collect()
}

/// Percentiles of all three times.
pub(crate) fn latency_tables(cells: &[Vec<&Run<'_>>]) -> Vec<LatencyTable> {
    kinds(cells)
        .into_iter()
        .filter_map(|kind| {
            let rows: Vec<LatencyRow> = cells
                .iter()
                .enumerate()
                .flat_map(|(cell, runs)| {
                    [Clock::Service, Clock::Response, Clock::Lag]
                        .into_iter()
                        .filter_map(move |clock| {
                            let histogram =
                                merged(runs, kind, |operation| encoded(operation, clock))?;
                            let unsent =
                                merged(runs, kind, |operation| operation.unsent_response.as_ref())
                                    .filter(|_| clock != Clock::Service);
                            let has_curve =
                                clock != Clock::Lag && histogram.len() >= LEAST_FOR_CURVE;
                            let curve = if has_curve {
                                curve(&histogram, unsent.as_ref())
                            } else {
                                Vec::new()
                            };
                            Some(LatencyRow {
                                cell,
                                clock,
                                quantiles: quantiles(&histogram, unsent.as_ref())?,
                                curve,
                            })
                        })
                })
                .collect();
            let is_open_loop = rows.iter().any(|row| row.clock == Clock::Response);
            (!rows.is_empty()).then(|| LatencyTable {
                kind: kind.to_owned(),
                is_open_loop,
                rows,
            })
        })
        .collect()
}

fn encoded(operation: &OperationRecord, clock: Clock) -> Option<&EncodedHistogram> {
    match clock {
        Clock::Service => Some(&operation.service),
        Clock::Response => operation.response.as_ref(),
        Clock::Lag => operation.lag.as_ref(),
    }
}

/// All operations of a kind over the blocks. `None` without any; one that cannot be decoded shows
/// as an unavailable metric of its step.
fn merged<'a>(
    runs: &[&Run<'a>],
    kind: &str,
    pick: impl Fn(&'a OperationRecord) -> Option<&'a EncodedHistogram>,
) -> Option<Histogram<u64>> {
    let mut sum = None;
    for operation in runs
        .iter()
        .flat_map(|run| run.operations)
        .filter(|operation| operation.kind == kind)
    {
        if let Some(Ok(histogram)) = pick(operation).map(decode) {
            merge(&mut sum, histogram);
        }
    }
    sum.filter(|sum| !sum.is_empty())
}
