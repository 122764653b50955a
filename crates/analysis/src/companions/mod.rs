//! What an engine counts exactly, per operation, next to the base's: bytes of its log, fsyncs, pages
//! written, temporary tables.

use plimsoll_core::engines::companions as counted;
use plimsoll_stats::{clustered, mean};
use plimsoll_store::CampaignRecord;

use crate::runs::attempts::Run;
use crate::runs::cell_runs::cell_runs;
use crate::steps::counters::operations;
use crate::verdicts::Explanation;
use crate::verdicts::pairs::by_block;

/// The level of the intervals.
const LEVEL: f64 = 0.95;
/// Logarithms of ratios that differ by less are the same: what is left is rounding.
const EXACT: f64 = 1e-9;

/// One count per operation on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Companion {
    /// What is counted, in words that all engines share.
    pub name: &'static str,
    /// `B`, `us`, or empty for a number.
    pub unit: &'static str,
    /// Per operation, by start.
    pub base: Vec<f64>,
    /// Per operation, by start.
    pub cell: Vec<f64>,
    /// cell / base over starts: the geometric mean. None if one of them counted nothing.
    pub ratio: Option<f64>,
    /// Its 95 % interval over starts; of width 0 if all starts agree, none of a single start.
    pub interval: Option<(f64, f64)>,
}

impl Companion {
    /// The mean over starts: of the base and of the cell.
    pub fn means(&self) -> (f64, f64) {
        (mean(&self.base), mean(&self.cell))
    }

    /// Whether both sides have the same in every start.
    pub fn is_same(&self) -> bool {
        let mut pairs = self.base.iter().zip(&self.cell);
        pairs.all(|(base, cell)| base == cell || (cell / base).ln().abs() < EXACT)
    }

    /// What differs clearly ranks before what may be chance, and among both the larger difference.
    fn rank(&self) -> f64 {
        let Some(ratio) = self.ratio else {
            return f64::INFINITY;
        };
        let size = ratio.ln().abs();
        if self.is_clear() { 1e3 + size } else { size }
    }

    /// Whether 1 is outside of the interval.
    pub fn is_clear(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 1.0 || high < 1.0)
    }
}

/// The companions of the two cells of an explanation: what is clearly different first, by the size
/// of the difference, then the others.
pub fn companions_of(campaign: &CampaignRecord, of: &Explanation) -> Vec<Companion> {
    let (Some(base), Some(cell)) = (cell_runs(campaign, &of.base), cell_runs(campaign, &of.cell))
    else {
        return Vec::new();
    };
    let both = by_block(&base, &cell, &of.step);
    let of_name = |name: &'static str, unit: &'static str| {
        let both = both.iter();
        let per_start = both.filter_map(|(base, cell)| {
            Some((per_operation(base, name)?, per_operation(cell, name)?))
        });
        companion(name, unit, per_start.collect())
    };
    let mut names: Vec<(&'static str, &'static str)> = Vec::new();
    for counted in counted() {
        if names.iter().all(|(name, _)| *name != counted.name) {
            names.push((counted.name, counted.unit));
        }
    }
    let mut found: Vec<Companion> = names
        .into_iter()
        .filter_map(|(name, unit)| of_name(name, unit))
        .collect();
    // Stable: of what is alike the order of the tables stays.
    found.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    found
}

/// What a run's engine counted under this name, per operation.
fn per_operation(run: &Run<'_>, name: &str) -> Option<f64> {
    let done = run.done?;
    let growth = counted()
        .filter(|counted| counted.name == name)
        .flat_map(|counted| counted.counters)
        .find_map(|counter| done.engine_counters.get(*counter))?;
    // What fell was reset.
    (*growth >= 0).then_some(*growth as f64 / operations(done)?)
}

/// Nothing where neither side counted anything in any start.
fn companion(
    name: &'static str,
    unit: &'static str,
    per_start: Vec<(f64, f64)>,
) -> Option<Companion> {
    if per_start
        .iter()
        .all(|(base, cell)| *base == 0.0 && *cell == 0.0)
    {
        return None;
    }
    let ratios: Vec<Vec<f64>> = per_start
        .iter()
        .filter(|(base, cell)| *base > 0.0 && *cell > 0.0)
        .map(|(base, cell)| vec![(cell / base).ln()])
        .collect();
    // One start without a count says that a ratio is not what describes it.
    let is_whole = ratios.len() == per_start.len();
    let logs = ratios.concat();
    let interval = clustered(&ratios, LEVEL).map(|found| found.interval);
    let interval = interval.map(|interval| (interval.low.exp(), interval.high.exp()));
    let (base, cell) = per_start.into_iter().unzip();
    Some(Companion {
        name,
        unit,
        base,
        cell,
        ratio: is_whole.then(|| mean(&logs).exp()),
        interval: interval.filter(|_| is_whole),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_counts_have_an_interval_of_width_zero() {
        let of = |per_start: &[(f64, f64)]| companion("fsyncs", "", per_start.to_vec());
        let same = of(&[(2.0, 2.0), (3.0, 3.0), (2.5, 2.5)]).unwrap();
        assert!(same.is_same() && !same.is_clear());
        assert_eq!((same.ratio, same.interval), (Some(1.0), Some((1.0, 1.0))));

        let more = of(&[(2.0, 2.5), (4.0, 5.0)]).unwrap();
        let (low, high) = more.interval.unwrap();
        assert!((low - 1.25).abs() < 1e-9 && (high - 1.25).abs() < 1e-9);
        assert!(!more.is_same() && more.is_clear());
        assert_eq!(more.means(), (3.0, 3.75));

        let scattered = of(&[(1.0, 1.1), (1.0, 0.95)]).unwrap();
        assert!(!scattered.is_clear() && scattered.rank() < more.rank());
        let lone = of(&[(1.0, 1.5)]).unwrap();
        assert_eq!((lone.ratio, lone.interval), (Some(1.5), None));
    }

    #[test]
    fn what_one_side_never_counts_has_no_ratio() {
        let new = companion("temporary tables", "", vec![(0.0, 1.0), (0.0, 1.0)]).unwrap();
        assert_eq!((new.ratio, new.interval), (None, None));
        assert!(!new.is_same() && new.rank().is_infinite());
        assert_eq!(companion("temporary tables", "", vec![(0.0, 0.0)]), None);
    }
}
