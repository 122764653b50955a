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
    /// The smallest difference that is called, as a log ratio.
    pub least: f64,
    /// The level of the look: a p of at most this calls a difference; 0 calls nothing.
    pub level: f64,
}

impl Verdict {
    /// The verdict on a log ratio of which more is better (negate it, and its interval, where less
    /// is better), with its p after correction for the family, and with the interval of the
    /// confidence `1 - level` of the look.
    ///
    /// 1. `p_adjusted <= level` with an estimate of at least `least`: regression or improvement. An
    ///    interval wholly beyond the margin is not enough: among 96 questions without a difference
    ///    some are, in 13 to 31 of 100 campaigns of few starts.
    /// 2. All of the interval inside `±margin`: equivalent. Two one-sided tests at half of the
    ///    level each (Schuirmann 1987), so that what has been spent at earlier looks counts here as
    ///    it does for a difference.
    /// 3. Else, and always at a look of level 0, inconclusive.
    pub fn of(estimate: f64, interval: Interval, p_adjusted: f64, policy: Policy) -> Self {
        let may_call = policy.level > 0.0;
        let is_shown = p_adjusted <= policy.level && estimate.abs() >= policy.least;
        match (may_call, is_shown, estimate < 0.0) {
            (true, true, true) => Self::Regression,
            (true, true, false) => Self::Improvement,
            (true, false, _) if interval.is_within(policy.margin) => Self::Equivalent,
            _ => Self::Inconclusive,
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
            (-0.34, (-0.36, -0.32), 0.0005, 0.05, Verdict::Regression),
            (0.34, (0.32, 0.36), 0.0005, 0.05, Verdict::Improvement),
            // At a look that spends nothing nothing is called, however certain.
            (-0.34, (-0.36, -0.32), 0.0, 0.0, Verdict::Inconclusive),
            (0.0, (-0.001, 0.001), 0.9, 0.0, Verdict::Inconclusive),
            // Wholly beyond the margin is not enough if the family is too large.
            (-0.34, (-0.36, -0.32), 0.2, 0.05, Verdict::Inconclusive),
            (-0.04, (-0.06, -0.02), 0.01, 0.05, Verdict::Regression),
            // Certain, and inside the margin: still a regression.
            (-0.02, (-0.025, -0.015), 0.0005, 0.05, Verdict::Regression),
            // Certain, and too small to be worth a word.
            (-0.004, (-0.006, -0.002), 0.0005, 0.05, Verdict::Equivalent),
            (0.0, (-0.03, 0.01), 0.9, 0.05, Verdict::Inconclusive),
            (0.0, (-0.029, 0.01), 0.9, 0.05, Verdict::Equivalent),
            (0.004, (-0.02, 0.04), 0.04, 0.05, Verdict::Inconclusive),
        ];
        for (estimate, (low, high), p_adjusted, level, expected) in cases {
            let interval = Interval {
                low,
                high,
                level: 0.95,
            };
            let policy = Policy {
                margin: 0.03,
                least: 0.005,
                level,
            };
            assert_eq!(
                Verdict::of(estimate, interval, p_adjusted, policy),
                expected,
                "{estimate} [{low}, {high}] {p_adjusted} {level}"
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

    #[test]
    fn verdicts_have_the_names_that_files_and_pages_use() {
        let all = [
            Verdict::Regression,
            Verdict::Improvement,
            Verdict::Equivalent,
            Verdict::Inconclusive,
        ];
        let names = ["regression", "improvement", "equivalent", "inconclusive"];
        assert_eq!(all.map(Verdict::name), names);
    }
}
