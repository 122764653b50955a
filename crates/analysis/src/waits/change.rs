//! How long sessions were in an event per 1,000 operations, and by how much that differs.

use std::collections::BTreeSet;

use plimsoll_stats::{clustered, mean};
use plimsoll_store::series::WaitProfile;

/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// One event on both sides. Times are seconds of all sessions per 1,000 operations.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitChange {
    /// The server's name for it; of what waits for nothing `running`.
    pub event: String,
    /// The mean over starts.
    pub base_s: f64,
    /// The mean over starts.
    pub cell_s: f64,
    /// The mean over starts of cell - base.
    pub difference_s: f64,
    /// The 95 % interval of the difference over starts; none of a single start.
    pub interval: Option<(f64, f64)>,
}

impl WaitChange {
    /// Whether the interval is on one side of zero.
    pub fn is_clear(&self) -> bool {
        self.interval
            .is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Every event that either side was seen in, the largest difference first, and the starts behind
/// them: those in which both sides have looks and operations.
///
/// The interval is Student's over starts (`plimsoll_stats::clustered` with one value a start): what
/// looks by chance saw or missed is part of what starts differ by.
pub(super) fn changes(both: &[(WaitProfile, WaitProfile)]) -> (Vec<WaitChange>, usize) {
    let names: BTreeSet<&String> = both
        .iter()
        .flat_map(|(base, cell)| base.sessions.keys().chain(cell.sessions.keys()))
        .collect();
    let mut starts = 0;
    let mut changes = Vec::new();
    for event in names {
        let seconds: Vec<(f64, f64)> = both
            .iter()
            .filter_map(|(base, cell)| {
                Some((base.seconds_per_1000(event)?, cell.seconds_per_1000(event)?))
            })
            .collect();
        starts = seconds.len();
        if seconds.is_empty() {
            continue;
        }
        let (of_base, of_cell): (Vec<f64>, Vec<f64>) = seconds.iter().copied().unzip();
        let by_start: Vec<Vec<f64>> = seconds
            .iter()
            .map(|(base, cell)| vec![cell - base])
            .collect();
        let interval = clustered(&by_start, LEVEL).map(|found| found.interval);
        changes.push(WaitChange {
            event: event.clone(),
            base_s: mean(&of_base),
            cell_s: mean(&of_cell),
            difference_s: mean(&by_start.concat()),
            interval: interval.map(|interval| (interval.low, interval.high)),
        });
    }
    changes.sort_by(|a, b| b.difference_s.abs().total_cmp(&a.difference_s.abs()));
    (changes, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 looks over 10 s, 1,000 operations: a session seen in 10 looks waited a second.
    fn profile(seen: &[(&str, u64)]) -> WaitProfile {
        let seen = seen.iter();
        WaitProfile {
            source: Ok("a view".to_owned()),
            looks: 100,
            active_ns: 10_000_000_000,
            operations: 1000,
            sessions: seen
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect(),
        }
    }

    #[test]
    fn the_difference_has_an_interval_over_starts() {
        let both: Vec<_> = [30, 32, 34]
            .map(|lock| {
                (
                    profile(&[("lock", 10), ("running", 90)]),
                    profile(&[("lock", lock), ("running", 90), ("sync", 1)]),
                )
            })
            .into();
        let (changes, starts) = changes(&both);
        assert_eq!(starts, 3);
        let names: Vec<&str> = changes.iter().map(|change| change.event.as_str()).collect();
        assert_eq!(names, ["lock", "sync", "running"]);
        let lock = &changes[0];
        assert!((lock.base_s - 1.0).abs() < 1e-9 && (lock.cell_s - 3.2).abs() < 1e-9);
        // 2.2 ± t(2) 0.2 / sqrt(3)
        let (low, high) = lock.interval.unwrap();
        assert!(
            (low - 1.703).abs() < 1e-3 && (high - 2.697).abs() < 1e-3,
            "{low} {high}"
        );
        assert!(lock.is_clear() && !changes[2].is_clear());
    }

    #[test]
    fn one_start_has_a_difference_and_no_interval() {
        let both = [(profile(&[("lock", 10)]), profile(&[]))];
        let (changes, starts) = changes(&both);
        assert_eq!((starts, changes.len()), (1, 1));
        assert!((changes[0].difference_s + 1.0).abs() < 1e-9 && changes[0].interval.is_none());
        let nobody = WaitProfile {
            looks: 0,
            ..profile(&[("lock", 10)])
        };
        assert_eq!(super::changes(&[(nobody.clone(), nobody)]), (Vec::new(), 0));
    }
}
