//! Errors that are larger than they say: what a thing measured against itself shows of them.

use crate::estimates::estimate::Interval;
use crate::numbers::distribution::{chi_squared_above, normal_cdf, normal_quantile};
use crate::significance::family::holm;

/// A class of controls is at odds with its errors if so few classes would be by chance.
const ALARM: f64 = 0.01;

/// If more controls than this share are at odds on their own, the class is.
const MOST_ALONE: f64 = 0.1;

/// By how much the errors of a class have to be multiplied, one factor of at least 1 per control.
/// `scores` are what controls measured, each divided by its own error: standard normal numbers if
/// the errors are right.
///
/// 1. A control beyond 1 % after Holm's correction over the class has the factor `|z|` of its own
///    and does not count for the others, unless more than a tenth of the class are (and more than
///    one): then it is all of them that are wrong.
/// 2. The others share `sqrt(sum z^2 / n)`, the Birge ratio (Birge 1932), if their chi-squared is
///    beyond 1 %, and
/// 3. `sqrt(1 + mean(z)^2)` if all lie to one side: `|mean(z)| sqrt(n)` beyond 1 %. The larger of
///    the two counts.
pub fn error_scales(scores: &[f64]) -> Vec<f64> {
    let p: Vec<f64> = scores.iter().map(|z| 2.0 * normal_cdf(-z.abs())).collect();
    let mut is_alone: Vec<bool> = holm(&p).iter().map(|p| *p < ALARM).collect();
    let count = is_alone.iter().filter(|is_alone| **is_alone).count();
    if count > (MOST_ALONE * scores.len() as f64).max(1.0) as usize {
        is_alone.fill(false);
    }
    let others: Vec<f64> = scores
        .iter()
        .zip(&is_alone)
        .filter(|(_, is_alone)| !**is_alone)
        .map(|(z, _)| *z)
        .collect();
    let shared = shared_scale(&others);
    let scale = |(z, is_alone): (&f64, &bool)| if *is_alone { z.abs() } else { shared };
    scores.iter().zip(&is_alone).map(scale).collect()
}

fn shared_scale(scores: &[f64]) -> f64 {
    let n = scores.len() as f64;
    if scores.is_empty() {
        return 1.0;
    }
    let squares: f64 = scores.iter().map(|z| z * z).sum();
    let mean = scores.iter().sum::<f64>() / n;
    let scattered = match chi_squared_above(squares, n) < ALARM {
        true => (squares / n).sqrt(),
        false => 1.0,
    };
    let shifted = match 2.0 * normal_cdf(-mean.abs() * n.sqrt()) < ALARM {
        true => (1.0 + mean * mean).sqrt(),
        false => 1.0,
    };
    scattered.max(shifted).max(1.0)
}

/// A standard normal number with this two-sided p and the sign of `estimate`.
pub fn score(estimate: f64, p: f64) -> f64 {
    -normal_quantile(p.clamp(1e-300, 1.0) / 2.0) * estimate.signum()
}

/// The two-sided p of an estimate whose error is `scale` times as large as the one that `p` was
/// made with.
pub fn scaled_p(p: f64, scale: f64) -> f64 {
    2.0 * normal_cdf(-score(1.0, p) / scale)
}

impl Interval {
    /// The interval with both ends `scale` times as far from `estimate`.
    pub fn widened(&self, estimate: f64, scale: f64) -> Self {
        Self {
            low: estimate - scale * (estimate - self.low),
            high: estimate + scale * (self.high - estimate),
            level: self.level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    #[test]
    fn errors_that_are_right_stay() {
        let mut stream = Stream::new(3);
        let mut raised = 0;
        for _ in 0..2000 {
            let scores: Vec<f64> = (0..20).map(|_| stream.normal()).collect();
            raised += usize::from(error_scales(&scores).iter().any(|scale| *scale > 1.0));
        }
        // Three tests at 1 % each.
        assert!((20..=80).contains(&raised), "{raised} of 2000");
        assert_eq!(error_scales(&[]), Vec::<f64>::new());
    }

    #[test]
    fn errors_that_are_too_small_grow_by_what_they_lack() {
        let mut stream = Stream::new(4);
        let scores: Vec<f64> = (0..32).map(|_| 2.0 * stream.normal()).collect();
        let scale = error_scales(&scores)[0];
        assert!((1.5..2.6).contains(&scale), "{scale}");
        // One of many is at odds: it alone is widened.
        let mut one = vec![0.5, -0.5, 1.0, -1.0, 0.2];
        one.push(8.0);
        let scales = error_scales(&one);
        assert_eq!((scales[0], scales[5]), (1.0, 8.0));
        // All of them a little to one side.
        let shifted = error_scales(&[0.7; 32]);
        assert!((shifted[0] - 1.49f64.sqrt()).abs() < 1e-9, "{shifted:?}");
    }

    #[test]
    fn a_scaled_p_is_that_of_a_smaller_score() {
        assert!((scaled_p(0.05, 1.0) - 0.05).abs() < 1e-9);
        assert!((scaled_p(2.0 * normal_cdf(-3.0), 3.0) - 2.0 * normal_cdf(-1.0)).abs() < 1e-9);
        assert_eq!(scaled_p(1.0, 2.0), 1.0);
        assert!(
            scaled_p(0.0, 2.0) > 0.0,
            "no p of 0 once errors are in doubt"
        );
        assert!((score(-0.2, 2.0 * normal_cdf(-2.0)) + 2.0).abs() < 1e-9);
        let interval = Interval {
            low: -0.1,
            high: 0.3,
            level: 0.95,
        };
        let widened = interval.widened(0.1, 2.0);
        assert!((widened.low + 0.3).abs() < 1e-12 && (widened.high - 0.5).abs() < 1e-12);
    }

    /// Up to a tenth of a class are at odds on their own. If more are, all of them are.
    #[test]
    fn a_tenth_of_a_class_is_at_odds_alone_and_more_are_not() {
        let scales = |odd: usize| {
            let wild = (0..odd).map(|at| if at % 2 == 0 { 8.0 } else { -8.0 });
            let quiet = (odd..40).map(|at| if at % 2 == 0 { 0.5 } else { -0.5 });
            error_scales(&wild.chain(quiet).collect::<Vec<f64>>())
        };
        let few = scales(4);
        assert_eq!((&few[..4], &few[4..]), (&[8.0; 4][..], &[1.0; 36][..]));
        // sqrt((5 x 64 + 35 / 4) / 40)
        let many = scales(5);
        let shared = (328.75f64 / 40.0).sqrt();
        assert!(
            many.iter().all(|scale| (scale - shared).abs() < 1e-9),
            "{many:?}"
        );
    }
}
