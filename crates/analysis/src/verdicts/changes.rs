//! Which per-operation numbers differ between two cells, and by how much.

use std::collections::BTreeMap;

use plimsoll_core::engines::is_level;
use plimsoll_stats::{PRIOR_SPREAD, hodges_lehmann, variance};

use super::pairs::{basis, by_block, counting, value};
use crate::metrics::{self, Metric, sysbench};
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::steps::counters::{LEAST_COUNT, LEAST_PER_OPERATION, operations};

/// The metrics that explain: what one operation costs.
const PER_OPERATION: [&Metric; 12] = [
    metrics::SERVER_CPU_US_PER_OP,
    metrics::PROCESS_CPU_US_PER_OP,
    metrics::CLIENT_CPU_US_PER_OP,
    metrics::CPUPQ,
    metrics::CSPQ,
    metrics::RPQ,
    metrics::RKBPQ,
    metrics::WPI,
    metrics::WKBPI,
    sysbench::WPQ,
    sysbench::WKBPQ,
    metrics::WAIT_SHARE,
];

/// The least standard deviation that a change is divided by: a counter that is always the same
/// would else outrank everything.
const LEAST_DEVIATION: f64 = 0.005;

/// How one number per operation changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The metric of the catalogue, or the engine's counter.
    pub name: String,
    /// Whether it is a counter of the engine, per operation.
    pub is_counter: bool,
    /// New / base: the Hodges-Lehmann estimate over blocks.
    pub ratio: f64,
    /// The change of the logarithm in standard deviations of a pair, at least 0.5 %; of a single
    /// pair, in those of two starts that differ by the prior of 3 %.
    pub standardised: f64,
    /// Blocks or starts behind it.
    pub pairs: usize,
}

/// Every per-operation number of a step that both cells have, by standardised change, largest
/// first.
pub(crate) fn changes(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str) -> Vec<Change> {
    // As verdicts do; where all are left out, there is nothing better.
    let (mut both, _) = counting(basis(&base.campaign.header), base, other, step);
    if both.is_empty() {
        both = by_block(base, other, step);
    }
    let mut ratios: BTreeMap<(bool, String), Vec<f64>> = BTreeMap::new();
    for (of_base, of_other) in &both {
        for Metric { name, .. } in PER_OPERATION {
            if let (Some(base), Some(other)) = (value(of_base, name), value(of_other, name)) {
                ratios
                    .entry((false, (*name).to_owned()))
                    .or_default()
                    .push((other / base).ln());
            }
        }
        let (of_base, of_other) = (counters(of_base), counters(of_other));
        for (name, (growth, base)) in of_base {
            if let Some((grown, other)) = of_other.get(name)
                && growth.max(*grown) >= LEAST_COUNT
                && base.max(*other) >= LEAST_PER_OPERATION
            {
                ratios
                    .entry((true, name.to_owned()))
                    .or_default()
                    .push((other / base).ln());
            }
        }
    }
    let mut changes: Vec<Change> = ratios
        .into_iter()
        // What only some of the pairs have says nothing about all of them.
        .filter(|(_, logs)| 2 * logs.len() > both.len())
        .filter_map(|((is_counter, name), logs)| {
            let centre = hodges_lehmann(&logs)?;
            let deviation = match logs.len() {
                1 => PRIOR_SPREAD * std::f64::consts::SQRT_2,
                _ => variance(&logs).sqrt(),
            };
            Some(Change {
                name,
                is_counter,
                ratio: centre.exp(),
                standardised: centre / deviation.max(LEAST_DEVIATION),
                pairs: logs.len(),
            })
        })
        .collect();
    changes.sort_by(|a, b| b.standardised.abs().total_cmp(&a.standardised.abs()));
    changes
}

/// Growth and growth per operation of the engine's counters that grew; what only goes up and down
/// is no cost of an operation.
fn counters<'a>(run: &'a Run<'_>) -> BTreeMap<&'a str, (i64, f64)> {
    let Some(done) = run.done else {
        return BTreeMap::new();
    };
    let Some(operations) = operations(done) else {
        return BTreeMap::new();
    };
    let grew = done
        .engine_counters
        .iter()
        .filter(|(name, growth)| **growth > 0 && !is_level(name));
    grew.map(|(name, growth)| (name.as_str(), (*growth, *growth as f64 / operations)))
        .collect()
}
