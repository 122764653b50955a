//! Wilcoxon's signed-rank test, exact.

use crate::estimates::estimate::{Interval, walsh_averages};
use crate::numbers::order::doubled_mid_ranks;

/// Up to so many pairs the exact test is used; beyond, [`crate::sign_flip`].
pub const EXACT_PAIRS: usize = 25;

/// The exact test of "the paired differences are symmetric around 0" (Wilcoxon 1945). Differences
/// of exactly 0 are left out, ties share mid-ranks, and the distribution is that of the ranks there
/// are: each of the 2^n signs is as likely as any other (Pratt & Gibbons 1981).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Pairs with a difference.
    pub pairs: usize,
    /// The sum of the ranks of positive differences.
    pub w_plus: f64,
    /// `P(W >= w_plus)`: small when differences are above 0.
    pub p_greater: f64,
    /// `P(W <= w_plus)`: small when differences are below 0.
    pub p_less: f64,
}

impl SignedRank {
    pub fn of(differences: &[f64]) -> Self {
        let differences: Vec<f64> = differences
            .iter()
            .copied()
            .filter(|difference| *difference != 0.0)
            .collect();
        let sizes: Vec<f64> = differences
            .iter()
            .map(|difference| difference.abs())
            .collect();
        let ranks = doubled_mid_ranks(&sizes);
        let observed: u32 = ranks
            .iter()
            .zip(&differences)
            .filter(|(_, difference)| **difference > 0.0)
            .map(|(rank, _)| rank)
            .sum();
        let shares = shares_of_sums(&ranks);
        let observed = observed as usize;
        Self {
            pairs: differences.len(),
            w_plus: observed as f64 / 2.0,
            p_greater: shares[observed..].iter().sum::<f64>().min(1.0),
            p_less: shares[..=observed].iter().sum::<f64>().min(1.0),
        }
    }

    /// The two-sided p: twice the smaller side, at most 1.
    pub fn p_two_sided(&self) -> f64 {
        (2.0 * self.p_greater.min(self.p_less)).min(1.0)
    }
}

/// The probability of each sum of a random half of the ranks, from 0 to their total, by adding one
/// rank after the other.
fn shares_of_sums(ranks: &[u32]) -> Vec<f64> {
    let total: u32 = ranks.iter().sum();
    let mut shares = vec![0.0; total as usize + 1];
    shares[0] = 1.0;
    let mut reached = 0;
    for rank in ranks {
        let rank = *rank as usize;
        reached += rank;
        for sum in (0..=reached).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = (shares[sum] + with) / 2.0;
        }
    }
    shares
}

/// The largest `c` with `P(W <= c - 1) <= tail` for `n` pairs without ties; 0 when not even the
/// smallest sum is that rare.
pub(crate) fn critical_count(n: usize, tail: f64) -> usize {
    let ranks: Vec<u32> = (1..=n as u32).collect();
    let mut below = 0.0;
    // Sums of probabilities that should be equal to the tail may be a rounding error above it.
    shares_of_sums(&ranks)
        .into_iter()
        .take_while(|share| {
            below += share;
            below <= tail * (1.0 + 1e-12)
        })
        .count()
}

/// The largest size at most `alpha` that the two-sided test of `n` pairs without ties can have. 0
/// when it can reject nothing: 5 pairs at 0.05 cannot.
pub fn attainable_size(n: usize, alpha: f64) -> f64 {
    let count = critical_count(n, alpha / 2.0);
    let ranks: Vec<u32> = (1..=n as u32).collect();
    2.0 * shares_of_sums(&ranks)[..count].iter().sum::<f64>()
}

/// The exact interval that belongs to the test: from the `c`-th smallest to the `c`-th largest
/// Walsh average, with the largest `c` such that `2 P(W <= c - 1) <= 1 - level` (Hollander, Wolfe &
/// Chicken 2014, 3.3). It covers with at least `level`, whatever the symmetric distribution. `None`
/// with too few pairs for the level: below 6 for 0.95.
pub fn signed_rank_interval(differences: &[f64], level: f64) -> Option<Interval> {
    let count = critical_count(differences.len(), (1.0 - level) / 2.0);
    let mut walsh = walsh_averages(differences);
    walsh.sort_by(f64::total_cmp);
    let place = count.checked_sub(1)?;
    Some(Interval {
        low: walsh[place],
        high: walsh[walsh.len() - count],
        level,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numbers::random::Stream;

    /// What a verdict of "equivalent" rests on: an interval of 95 % within the margin is two
    /// one-sided tests (Schuirmann 1987) at 2.5 % each.
    #[test]
    fn an_interval_within_the_margin_is_two_one_sided_tests() {
        let shifted = |sample: &[f64], by: f64| {
            SignedRank::of(&sample.iter().map(|value| value + by).collect::<Vec<_>>())
        };
        let mut stream = Stream::new(11);
        let mut seen = [0, 0];
        for i in 0..400 {
            let shift = f64::from(i) * 1e-4;
            let sample: Vec<f64> = (0..12).map(|_| shift + 0.01 * stream.normal()).collect();
            let is_within = signed_rank_interval(&sample, 0.95).unwrap().is_within(0.03);
            let above = shifted(&sample, 0.03).p_greater;
            let below = shifted(&sample, -0.03).p_less;
            assert_eq!(is_within, above.max(below) <= 0.025, "{sample:?}");
            seen[usize::from(is_within)] += 1;
        }
        assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
    }

    #[test]
    fn p_of_samples_without_ties() {
        // scipy 1.17: wilcoxon(x, method='exact').pvalue and .statistic
        let cases: [(&[f64], f64); 4] = [
            (&[0.1, 0.2, 0.3, 0.4, 0.5], 0.0625),
            (
                &[1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, -3.06, 1.30],
                0.128_906_25,
            ),
            (
                &[
                    6., 8., 14., 16., 23., 24., 28., 29., 41., -48., 49., 56., 60., -67., 75.,
                ],
                0.041_259_765_625,
            ),
            (
                &[
                    -0.031, -0.022, 0.004, -0.017, -0.028, -0.012, -0.025, 0.009, -0.033, -0.019,
                    -0.008, -0.027,
                ],
                0.003_417_968_75,
            ),
        ];
        for (sample, expected) in cases {
            assert!(
                (SignedRank::of(sample).p_two_sided() - expected).abs() < 1e-12,
                "{sample:?} {:?}",
                SignedRank::of(sample)
            );
        }
    }

    #[test]
    fn the_smallest_p_of_n_pairs() {
        for (n, expected) in [
            (5, 0.0625),
            (6, 0.03125),
            (8, 0.007_812_5),
            (10, 0.001_953_125),
            (12, 0.000_488_281_25),
        ] {
            let all: Vec<f64> = (1..=n).map(f64::from).collect();
            assert_eq!(SignedRank::of(&all).p_two_sided(), expected);
        }
        assert_eq!(attainable_size(5, 0.05), 0.0);
        assert_eq!(attainable_size(6, 0.05), 0.03125);
        assert!((attainable_size(10, 0.05) - 0.048_828_125).abs() < 1e-12);
    }

    #[test]
    fn intervals_end_at_walsh_averages() {
        let sample = [
            -0.031, -0.022, 0.004, -0.017, -0.028, -0.012, -0.025, 0.009, -0.033, -0.019, -0.008,
            -0.027,
        ];
        let interval = signed_rank_interval(&sample, 0.95).unwrap();
        // The table for n = 12 at 0.05 two-sided: reject at W <= 13. So the ends are the 14th Walsh
        // averages from either end.
        let mut walsh = walsh_averages(&sample);
        walsh.sort_by(f64::total_cmp);
        assert_eq!((interval.low, interval.high), (walsh[13], walsh[78 - 14]));
        assert_eq!(signed_rank_interval(&sample[..5], 0.95), None);
        let six = signed_rank_interval(&sample[..6], 0.95).unwrap();
        assert_eq!((six.low, six.high), (-0.031, 0.004));
    }

    proptest! {
        #[test]
        fn ties_are_enumerated(sample in proptest::collection::vec(-3i32..=3, 1..11)) {
            let sample: Vec<f64> = sample.into_iter().map(f64::from).collect();
            let test = SignedRank::of(&sample);
            let sizes: Vec<f64> = sample.iter().map(|d| d.abs()).filter(|d| *d != 0.0).collect();
            let ranks = doubled_mid_ranks(&sizes);
            let sums: Vec<f64> = (0u32..1 << sizes.len())
                .map(|signs| f64::from((0..sizes.len()).filter(|i| signs >> i & 1 == 1).map(|i| ranks[i]).sum::<u32>()) / 2.0)
                .collect();
            let share = |pick: &dyn Fn(f64) -> bool| sums.iter().filter(|sum| pick(**sum)).count() as f64 / sums.len() as f64;
            prop_assert!((test.p_greater - share(&|sum| sum >= test.w_plus)).abs() < 1e-12);
            prop_assert!((test.p_less - share(&|sum| sum <= test.w_plus)).abs() < 1e-12);
        }

        #[test]
        fn the_interval_holds_what_the_test_does_not_reject(sample in proptest::collection::vec(-1.0f64..1.0, 6..15), shift in -1.0f64..1.0) {
            let interval = signed_rank_interval(&sample, 0.95).unwrap();
            let shifted: Vec<f64> = sample.iter().map(|d| d - shift).collect();
            let is_rejected = SignedRank::of(&shifted).p_two_sided() <= 0.05;
            prop_assume!((interval.low - shift).abs() > 1e-9 && (interval.high - shift).abs() > 1e-9);
            prop_assert_eq!(interval.holds(shift), !is_rejected);
        }
    }
}
