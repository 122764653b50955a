//! The verdict on one difference.

use crate::estimates::bootstrap::RESAMPLES;
use crate::estimates::estimate::Interval;
use crate::significance::sign_flip::sign_flip;
use crate::significance::signed_rank::{EXACT_PAIRS, SignedRank};

/// What is concluded about a difference. [`Verdict::of`] has the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Worse, and not by chance.
    Regression,
    /// Better, and not by chance.
    Improvement,
    /// Shown to differ by less than the margin.
    Equivalent,
    /// Neither was shown.
    Inconclusive,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Regression => "regression",
            Self::Improvement => "improvement",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// When a difference is called.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The equivalence margin, as a log ratio.
    pub margin: f64,
    /// The smallest difference that is called on a small p alone, as a log ratio.
    pub least: f64,
    /// The level of the look: a p of at most this calls a difference; 0 calls none.
    pub level: f64,
}

impl Policy {
    /// 3 % either way is the same, 1 % is worth a word.
    pub fn new(level: f64) -> Self {
        Self {
            margin: 0.03,
            least: 0.01,
            level,
        }
    }
}

impl Verdict {
    /// The verdict on a log ratio of which more is better (negate it, and its interval, where less
    /// is better), with its interval, its p, and its p after correction for the family.
    ///
    /// 1. All of the interval inside `±margin`: equivalent. This goes first, so that a difference
    ///    that is certain and small is not called.
    /// 2. `p <= level`, which never holds at a look that may not call, and either the interval
    ///    wholly beyond the margin, or `p_adjusted <= level` with an estimate of at least `least`:
    ///    regression or improvement.
    /// 3. Else inconclusive.
    pub fn of(estimate: f64, interval: Interval, p: f64, p_adjusted: f64, policy: Policy) -> Self {
        if interval.is_within(policy.margin) {
            return Self::Equivalent;
        }
        let is_beyond = interval.high <= -policy.margin || interval.low >= policy.margin;
        let is_shown = p_adjusted <= policy.level && estimate.abs() >= policy.least;
        match (p <= policy.level && (is_beyond || is_shown), estimate < 0.0) {
            (false, _) => Self::Inconclusive,
            (true, true) => Self::Regression,
            (true, false) => Self::Improvement,
        }
    }
}

/// The two-sided p of paired log ratios: the exact signed-rank test up to [`EXACT_PAIRS`], sign
/// flips beyond.
pub fn paired_p(differences: &[f64], seed: u64) -> f64 {
    if differences.len() <= EXACT_PAIRS {
        SignedRank::of(differences).p_two_sided()
    } else {
        sign_flip(differences, RESAMPLES, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_case_by_case() {
        let cases = [
            (
                -0.34,
                (-0.36, -0.32),
                0.0005,
                0.0005,
                0.05,
                Verdict::Regression,
            ),
            (
                0.34,
                (0.32, 0.36),
                0.0005,
                0.0005,
                0.05,
                Verdict::Improvement,
            ),
            // At the first look of several nothing is called.
            (
                -0.34,
                (-0.36, -0.32),
                0.03,
                0.03,
                0.0,
                Verdict::Inconclusive,
            ),
            // Wholly beyond the margin is enough where the family is too large for so few blocks.
            (-0.34, (-0.36, -0.32), 0.04, 0.2, 0.05, Verdict::Regression),
            (-0.04, (-0.06, -0.02), 0.01, 0.01, 0.05, Verdict::Regression),
            (
                -0.04,
                (-0.06, -0.02),
                0.04,
                0.2,
                0.05,
                Verdict::Inconclusive,
            ),
            (
                -0.02,
                (-0.025, -0.015),
                0.0005,
                0.0005,
                0.05,
                Verdict::Equivalent,
            ),
            (0.0, (-0.03, 0.01), 0.9, 0.9, 0.05, Verdict::Inconclusive),
            (0.0, (-0.029, 0.01), 0.9, 0.9, 0.0, Verdict::Equivalent),
            (
                0.008,
                (-0.02, 0.04),
                0.04,
                0.04,
                0.05,
                Verdict::Inconclusive,
            ),
        ];
        for (estimate, (low, high), p, p_adjusted, level, expected) in cases {
            let interval = Interval {
                low,
                high,
                level: 0.95,
            };
            assert_eq!(
                Verdict::of(estimate, interval, p, p_adjusted, Policy::new(level)),
                expected,
                "{estimate} [{low}, {high}] {p} {level}"
            );
        }
    }

    #[test]
    fn exact_up_to_25_pairs() {
        let sample: Vec<f64> = (0..25).map(|i| f64::from(i) - 11.3).collect();
        assert_eq!(paired_p(&sample, 1), SignedRank::of(&sample).p_two_sided());
        let more: Vec<f64> = (0..40).map(|i| f64::from(i) - 19.3).collect();
        assert!((paired_p(&more, 1) - SignedRank::of(&more).p_two_sided()).abs() < 0.03);
    }
}
