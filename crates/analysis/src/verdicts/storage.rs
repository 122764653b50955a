//! Whether storage works for one candidate in the turns of others.
//!
//! A server is stopped between its turns, its device is not: what the kernel still writes for it
//! when its turn is over slows who comes next. Each turn has the requests in flight just before its
//! server went on, which the turn before left.

use std::collections::BTreeMap;

use plimsoll_store::Turn;

use crate::runs::cell_runs::CellRuns;

/// A candidate's ratios are shifted if it leaves so many requests more than it finds, or fewer.
const APART: f64 = 0.5;

/// Requests in flight, means over turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InFlight {
    /// What its turns leave to the next one.
    left: f64,
    /// What they find.
    found: f64,
}

impl InFlight {
    /// A sentence if the two are far apart.
    pub fn words(&self) -> Option<String> {
        let Self { left, found } = self;
        ((left - found).abs() > APART).then(|| {
            let what = match left > found {
                true => "its storage works in the turns of others",
                false => "the storage of others works in its turns",
            };
            format!(
                "{what}: {found:.1} requests are in flight when its turns begin, {left:.1} when \
                they end; check with --blocks, one server at a time"
            )
        })
    }
}

/// Of each candidate of a step, in their order.
pub(crate) fn in_flight(candidates: &[&CellRuns<'_>], step: &str) -> Vec<InFlight> {
    let mut starts: BTreeMap<u32, Vec<(u32, u32, usize, u64)>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate() {
        for run in candidate.used(step) {
            let turns = run.record.and_then(|record| record.turns(step).ok());
            let of_start = starts.entry(run.unit.block).or_default();
            of_start.extend(turns.iter().flatten().filter_map(|turn: &Turn| {
                Some((turn.round, turn.position, index, turn.inflight?))
            }));
        }
    }
    let mut sums = vec![(0, 0, 0, 0); candidates.len()];
    for mut turns in starts.into_values() {
        turns.sort_unstable();
        for pair in turns.windows(2) {
            let ((.., before, _), (.., after, requests)) = (pair[0], pair[1]);
            sums[before].0 += requests;
            sums[before].1 += 1;
            sums[after].2 += requests;
            sums[after].3 += 1;
        }
    }
    let mean = |sum: u64, count: u64| sum as f64 / count.max(1) as f64;
    sums.into_iter()
        .map(|(left, leaving, found, finding)| InFlight {
            left: mean(left, leaving),
            found: mean(found, finding),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_one_sided_is_reported() {
        let of = |left, found| InFlight { left, found }.words();
        assert_eq!(of(2.0, 1.8), None);
        assert_eq!(
            of(1.2, 0.1).unwrap(),
            "its storage works in the turns of others: 0.1 requests are in flight when its turns \
            begin, 1.2 when they end; check with --blocks, one server at a time"
        );
        assert_eq!(
            of(0.0, 0.9).unwrap(),
            "the storage of others works in its turns: 0.9 requests are in flight when its turns \
            begin, 0.0 when they end; check with --blocks, one server at a time"
        );
    }
}
