//! What formulas, tables and curves read from a histogram.

use hdrhistogram::Histogram;

use crate::classic::response::BOUNDS_NS;

/// Percentiles of a histogram, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    pub count: u64,
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 % are at most this.
    pub p90_ns: u64,
    /// 99 % are at most this.
    pub p99_ns: u64,
    /// 99.9 % are at most this.
    pub p999_ns: u64,
    /// 99.99 % are at most this.
    pub p9999_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Which of these are the least that they may be, from the mean to the longest.
    pub are_lower_bounds: [bool; 7],
}

impl Quantiles {
    /// Name, nanoseconds, and whether it is the least that it may be.
    pub fn values(&self) -> [(&'static str, f64, bool); 7] {
        let [p50, p90, p99, p999, p9999, max] = [
            self.p50_ns,
            self.p90_ns,
            self.p99_ns,
            self.p999_ns,
            self.p9999_ns,
            self.max_ns,
        ]
        .map(|ns| ns as f64);
        let named = [
            ("mean", self.mean_ns),
            ("p50", p50),
            ("p90", p90),
            ("p99", p99),
            ("p999", p999),
            ("p9999", p9999),
            ("max", max),
        ];
        std::array::from_fn(|i| (named[i].0, named[i].1, self.are_lower_bounds[i]))
    }

    /// The names of those that are the least that they may be.
    pub fn lower_bounds(&self) -> Vec<&'static str> {
        self.values()
            .into_iter()
            .filter(|(_, _, is_lower_bound)| *is_lower_bound)
            .map(|(name, ..)| name)
            .collect()
    }
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// log10(1 / (1 - p)): 0 is the fastest operation, 1 the 90th percentile, 2 the 99th, ...
    pub nines: f64,
    /// Nanoseconds.
    pub value_ns: u64,
}

/// Adds `from` to what is merged so far.
pub(super) fn merge(into: &mut Option<Histogram<u64>>, from: Histogram<u64>) {
    match into {
        None => {
            let mut first = from;
            first.auto(true);
            *into = Some(first);
        }
        // An auto-resizing histogram takes every value of another one.
        Some(merged) => merged
            .add(from)
            .expect("the merged histogram resizes itself"),
    }
}

/// Counts in the ten classic buckets.
pub(super) fn bucket_counts(histogram: &Histogram<u64>) -> [u64; 10] {
    let mut counts = [0; 10];
    for step in histogram.iter_recorded() {
        // The smallest value of a histogram's slot: a bound itself belongs to the bucket it closes.
        let value_ns = histogram.lowest_equivalent(step.value_iterated_to());
        counts[BOUNDS_NS.partition_point(|bound| *bound < value_ns)] +=
            step.count_since_last_iteration();
    }
    counts
}

/// Whether the value at a quantile is the least that it may be. `unsent`, which are in the
/// histogram, may be longer than they are there: the value is known where enough of the others are
/// at most as long.
pub(super) fn is_lower_bound(
    histogram: &Histogram<u64>,
    unsent: Option<&Histogram<u64>>,
    quantile: f64,
) -> bool {
    let Some(unsent) = unsent.filter(|unsent| !unsent.is_empty()) else {
        return false;
    };
    let value = histogram.value_at_quantile(quantile);
    let rank = ((quantile * histogram.len() as f64).ceil() as u64).clamp(1, histogram.len());
    histogram
        .count_between(0, value)
        .saturating_sub(unsent.count_between(0, value))
        < rank
}

/// The quantiles of the latency tables; `None` when nothing was recorded. `unsent` are in the
/// histogram.
pub(super) fn quantiles(
    histogram: &Histogram<u64>,
    unsent: Option<&Histogram<u64>>,
) -> Option<Quantiles> {
    let at = |quantile: f64| histogram.value_at_quantile(quantile);
    let [p50, p90, p99, p999, p9999, max] = [0.5, 0.9, 0.99, 0.999, 0.9999, 1.0]
        .map(|quantile| is_lower_bound(histogram, unsent, quantile));
    (!histogram.is_empty()).then(|| Quantiles {
        are_lower_bounds: [max, p50, p90, p99, p999, p9999, max],
        count: histogram.len(),
        mean_ns: histogram.mean(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        p9999_ns: at(0.9999),
        max_ns: histogram.max(),
    })
}

/// Points of a percentile curve: eight per decade of 1/(1-p), from p = 0 to the quantile that the
/// count can still tell, or from which on `unsent`, which are in the histogram, leave lower bounds
/// only.
pub(super) fn curve(
    histogram: &Histogram<u64>,
    unsent: Option<&Histogram<u64>>,
) -> Vec<CurvePoint> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let last_nines = (histogram.len() as f64).log10().min(7.0);
    let steps = (last_nines * 8.0).ceil() as u32;
    let inner = (0..steps)
        .map(|i| f64::from(i) / 8.0)
        .map(|nines| (nines, 1.0 - 10f64.powf(-nines)));
    inner
        .chain([(last_nines, 1.0)])
        .take_while(|(_, quantile)| !is_lower_bound(histogram, unsent, *quantile))
        .map(|(nines, quantile)| {
            let value_ns = if quantile < 1.0 {
                histogram.value_at_quantile(quantile)
            } else {
                histogram.max()
            };
            CurvePoint {
                nines,
                value_ns: value_ns.max(1),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for (value, count) in values {
            histogram.record_n(*value, *count).unwrap();
        }
        histogram
    }

    /// Whoever writes a store may say so.
    #[test]
    fn unsent_operations_that_are_not_among_the_responses_are_no_panic() {
        let (responses, unsent) = (filled(&[(1_000, 1)]), filled(&[(900, 5)]));
        assert!(is_lower_bound(&responses, Some(&unsent), 0.5));
    }

    #[test]
    fn bounds_belong_to_the_bucket_they_close() {
        let cases = [
            (1, 0),
            (256_000, 0),
            (257_000, 1),
            (1_000_000, 1),
            (4_000_000, 2),
            (4_100_000, 3),
            (64_000_000, 4),
            (256_000_000, 5),
            (1_000_000_000, 6),
            (4_000_000_000, 7),
            (16_000_000_000, 8),
            (16_100_000_000, 9),
        ];
        for (value_ns, bucket) in cases {
            let counts = bucket_counts(&filled(&[(value_ns, 3)]));
            assert_eq!(
                (counts[bucket], counts.iter().sum::<u64>()),
                (3, 3),
                "{value_ns}"
            );
        }
    }

    #[test]
    fn curves_end_at_the_maximum() {
        let points = curve(&filled(&[(1_000, 900), (2_000_000, 100)]), None);
        let last = points.last().unwrap();
        assert_eq!(last.nines, 3.0);
        assert!(last.value_ns >= 2_000_000 && points[0].value_ns < 1_010);
        assert!(
            points
                .windows(2)
                .all(|pair| pair[0].nines < pair[1].nines && pair[0].value_ns <= pair[1].value_ns)
        );
        assert!(curve(&filled(&[]), None).is_empty());
        assert_eq!(curve(&filled(&[(5_000, 1)]), None).len(), 1);
    }

    /// Of a hundred ten were never sent. They had waited for less than some that were.
    #[test]
    fn what_may_be_longer_bounds_what_is_at_its_place() {
        let unsent = filled(&[(20_000, 10)]);
        let all = filled(&[
            (1_000, 40),
            (2_000, 10),
            (20_000, 10),
            (30_000, 39),
            (90_000, 1),
        ]);
        for (quantile, is_lower) in [
            (0.3, false),
            (0.5, false),
            (0.51, true),
            (0.6, true),
            (0.9, true),
            (1.0, true),
        ] {
            assert_eq!(
                is_lower_bound(&all, Some(&unsent), quantile),
                is_lower,
                "{quantile}"
            );
            assert!(!is_lower_bound(&all, None, quantile));
        }
        // All of them behind all others: the share of the unsent is what is not known.
        let all = filled(&[(1_000, 90), (20_000, 10)]);
        for (quantile, is_lower) in [(0.5, false), (0.9, false), (0.91, true), (1.0, true)] {
            assert_eq!(
                is_lower_bound(&all, Some(&unsent), quantile),
                is_lower,
                "{quantile}"
            );
        }
        let known = quantiles(&all, Some(&unsent)).unwrap();
        assert_eq!(
            known.are_lower_bounds,
            [true, false, false, true, true, true, true],
            "the mean as well"
        );
        assert_eq!(
            known.lower_bounds(),
            ["mean", "p99", "p999", "p9999", "max"]
        );
    }

    #[test]
    fn merging_adds_counts_of_any_range() {
        let mut merged = None;
        let mut small = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        small.record(1_000).unwrap();
        merge(&mut merged, small);
        merge(&mut merged, filled(&[(3_000_000_000_000, 2)]));
        let merged = merged.unwrap();
        assert_eq!(merged.len(), 3);
        assert_eq!(quantiles(&merged, None).unwrap().count, 3);
    }
}
