//! Starts that fall into two groups.

use crate::numbers::order::{mean, variance};

/// Starts of one build that fall into two groups, far apart.
#[derive(Clone, Debug, PartialEq)]
pub struct TwoModes {
    /// The values of the lower group, sorted.
    pub low: Vec<f64>,
    /// The values of the upper group, sorted.
    pub high: Vec<f64>,
}

impl TwoModes {
    /// The groups' means.
    pub fn means(&self) -> (f64, f64) {
        (mean(&self.low), mean(&self.high))
    }
}

/// Of samples of 4 to 16 normal numbers 99.5 % have no split into two groups of two or more whose
/// gap is wider than this, in standard deviations within the groups. Simulated, see the test.
const CRITICAL: [f64; 13] = [
    22.0, 13.3, 8.9, 7.1, 5.9, 5.1, 4.5, 4.1, 3.7, 3.4, 3.1, 3.0, 2.8,
];

/// The two groups that the estimates of starts fall into, if they do. Each estimate is known with
/// the error `within`, a standard deviation.
///
/// Each group has two starts or more, and the gap between them is wider than 99.5 % of the widest
/// gaps in as many normal numbers, in units of the spread within the groups, which is `within` at
/// least. `None` with fewer than 4 starts; beyond 16 the limit is that of 16.
pub fn two_modes(starts: &[f64], within: f64) -> Option<TwoModes> {
    let widest = widest_gap(starts, within)?;
    let limit = CRITICAL[(starts.len() - 4).min(CRITICAL.len() - 1)];
    (widest.gap > limit * widest.spread.max(within)).then_some(widest.groups)
}

struct Widest {
    gap: f64,
    spread: f64,
    groups: TwoModes,
}

/// The split with the widest gap for its spread.
fn widest_gap(starts: &[f64], within: f64) -> Option<Widest> {
    let mut sorted = starts.to_vec();
    sorted.sort_by(f64::total_cmp);
    let splits = 2..sorted.len().checked_sub(1)?;
    let split_at = |at: usize| {
        let (low, high) = sorted.split_at(at);
        let squares =
            variance(low) * (low.len() - 1) as f64 + variance(high) * (high.len() - 1) as f64;
        Widest {
            gap: high[0] - low[low.len() - 1],
            spread: (squares / (sorted.len() - 2) as f64).sqrt(),
            groups: TwoModes {
                low: low.to_vec(),
                high: high.to_vec(),
            },
        }
    };
    let ratio = |split: &Widest| split.gap / split.spread.max(within).max(f64::MIN_POSITIVE);
    splits
        .map(split_at)
        .max_by(|a, b| ratio(a).total_cmp(&ratio(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::order::quantile;
    use crate::numbers::random::Stream;

    #[test]
    fn the_table_is_what_normal_numbers_give() {
        let mut stream = Stream::new(3);
        for (n, expected) in (4..).zip(CRITICAL) {
            let mut gaps: Vec<f64> = (0..20_000)
                .map(|_| {
                    let sample: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
                    let widest = widest_gap(&sample, 0.0).unwrap();
                    widest.gap / widest.spread
                })
                .collect();
            gaps.sort_by(f64::total_cmp);
            let found = quantile(&gaps, 0.995).unwrap();
            assert!((found / expected - 1.0).abs() < 0.05, "{n}: {found}");
        }
    }

    #[test]
    fn two_modes_are_named_and_one_wide_mode_is_not() {
        let starts = [-0.07, 0.29, -0.06, 0.31, -0.08, -0.05];
        let found = two_modes(&starts, 0.01).unwrap();
        assert_eq!((found.low.len(), found.high), (4, vec![0.29, 0.31]));
        // The same starts, each known to 5 %.
        assert_eq!(two_modes(&starts, 0.05), None);
        assert_eq!(two_modes(&[-0.02, 0.01, 0.0, 0.03, -0.01], 0.001), None);
        // A single start is not a group.
        assert_eq!(two_modes(&[0.0, 0.001, -0.001, 0.002, 0.4], 0.001), None);
        assert_eq!(two_modes(&[0.0, 0.3, 0.3], 0.001), None);
        assert_eq!(two_modes(&[], 0.0), None);
        assert!(two_modes(&[0.0, 0.001, 0.3, 0.302], 0.001).is_some());
    }

    /// Two modes a third apart, the upper one in a third of the starts: seldom found with 5
    /// starts, nearly always with 10; found by chance in one of 200 samples.
    #[test]
    fn how_often_modes_are_found() {
        let mut stream = Stream::new(4);
        let mut found = |n: usize, apart: f64| {
            let samples = 2000;
            let hits = (0..samples)
                .filter(|_| {
                    let starts: Vec<f64> = (0..n)
                        .map(|_| {
                            let mode = if stream.unit() < 1.0 / 3.0 {
                                apart
                            } else {
                                0.0
                            };
                            mode + 0.025 * stream.normal()
                        })
                        .collect();
                    two_modes(&starts, 0.01).is_some()
                })
                .count();
            hits as f64 / f64::from(samples)
        };
        for n in [4, 6, 10] {
            assert!(found(n, 0.0) <= 0.0085, "{n}");
        }
        let shares = [5, 6, 8, 10].map(|n| found(n, 0.3));
        println!("{shares:?}");
        assert!(shares[3] > 0.8, "{shares:?}");
    }

    /// Squares 0.0002 and 0.0032 within the groups, three degrees of freedom.
    #[test]
    fn the_widest_gap_by_hand() {
        let starts = [0.34, 0.0, 0.38, 0.02, 0.3];
        let widest = widest_gap(&starts, 0.0).unwrap();
        assert!((widest.gap - 0.28).abs() < 1e-12);
        assert!((widest.spread - (0.0034f64 / 3.0).sqrt()).abs() < 1e-12);
        let (low, high) = widest.groups.means();
        assert!((low - 0.01).abs() < 1e-12 && (high - 0.34).abs() < 1e-12);
        // 8.3 times the spread: 13.3 are wanted of five.
        assert_eq!(two_modes(&starts, 0.0), None);
    }

    /// Of eight starts the gap must be wider than 5.9 spreads.
    #[test]
    fn the_limit_is_that_of_as_many_starts() {
        let starts = |spreads: f64| {
            let gap = spreads * (10.0f64 / 6.0).sqrt();
            let low = [0.0, 1.0, 2.0, 3.0];
            low.into_iter()
                .chain(low.map(|value| value + 3.0 + gap))
                .collect::<Vec<f64>>()
        };
        assert!(two_modes(&starts(7.0), 0.0).is_some());
        assert_eq!(two_modes(&starts(4.5), 0.0), None);
    }

    #[test]
    fn beyond_sixteen_starts_the_limit_is_that_of_sixteen() {
        let starts: Vec<f64> = (0..20)
            .map(|number| f64::from(number % 10) + if number < 10 { 0.0 } else { 30.0 })
            .collect();
        assert_eq!(two_modes(&starts, 0.0).unwrap().low.len(), 10);
        assert_eq!(two_modes(&starts, 10.0), None);
    }

    /// The gap of 1 is wider, and that of 0.97 is wider for its spread.
    #[test]
    fn the_widest_gap_is_the_one_for_its_spread() {
        let starts = [0.0, 0.0, 1.0, 1.0, 1.97, 1.97, 1.97];
        assert!((widest_gap(&starts, 0.0).unwrap().gap - 0.97).abs() < 1e-12);
    }
}
