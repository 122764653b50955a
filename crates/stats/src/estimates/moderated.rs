//! Variances of many comparisons that learn from each other.

use statrs::function::gamma::digamma;

use crate::numbers::distribution::f_quantile;
use crate::numbers::order::{mean, quantile, variance};

/// A variance and the degrees of freedom that it is known with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownVariance {
    /// The variance.
    pub variance: f64,
    /// Its degrees of freedom, above 0.
    pub degrees: f64,
}

/// What the variances of a class of comparisons have in common: a scaled inverse chi-squared
/// distribution around `variance`, worth `degrees` observations.
pub type VariancePrior = KnownVariance;

/// So few comparisons say nothing of what they have in common.
const LEAST: usize = 6;
/// However alike variances are, the prior is worth no more: the class may still hold one that is
/// not like the rest.
const MOST_DEGREES: f64 = 20.0;
/// A variance that the prior expects less often than this is left as it is.
pub(super) const OUTLIER: f64 = 0.99;
/// The quantiles of the logarithms that are kept, so that single comparisons of two modes do not
/// set the prior of all, and by how much that shrinks their variance.
const KEPT: (f64, f64) = (0.05, 0.9);
const SHRUNK: f64 = 1.25;

/// The prior of a class from its own variances, by moments of `ln s^2` (Smyth 2004, section 6.2):
/// with `e = ln s^2 - psi(d/2) + ln(d/2)`, solve `psi'(d0/2) = var(e) - mean(psi'(d/2))` for `d0`,
/// and `ln s0^2 = mean(e) + psi(d0/2) - ln(d0/2)`. The `e` are cut off at their 5 % and 90 %
/// quantiles, which is why their variance counts 1.25 times. `d0` is at most 20.
///
/// `None` with fewer than 6 variances above 0.
pub fn variance_prior(of_class: &[KnownVariance]) -> Option<VariancePrior> {
    let known: Vec<KnownVariance> = of_class
        .iter()
        .copied()
        .filter(|known| known.variance > 0.0 && known.degrees > 0.0)
        .collect();
    if known.len() < LEAST {
        return None;
    }
    let half = |known: &KnownVariance| known.degrees / 2.0;
    let mut all: Vec<f64> = known
        .iter()
        .map(|known| known.variance.ln() - digamma(half(known)) + half(known).ln())
        .collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (quantile(&all, KEPT.0)?, quantile(&all, KEPT.1)?);
    let kept: Vec<f64> = all.iter().map(|e| e.clamp(low, high)).collect();
    let from_sampling: Vec<f64> = known.iter().map(|known| trigamma(half(known))).collect();
    let excess = SHRUNK * variance(&kept) - mean(&from_sampling);
    let degrees = match excess > trigamma(MOST_DEGREES / 2.0) {
        true => 2.0 * trigamma_inverse(excess),
        false => MOST_DEGREES,
    };
    Some(VariancePrior {
        variance: (mean(&kept) + digamma(degrees / 2.0) - (degrees / 2.0).ln()).exp(),
        degrees,
    })
}

impl KnownVariance {
    /// The square of a standard error.
    pub fn of_error(error: f64, degrees: f64) -> Self {
        Self {
            variance: error * error,
            degrees,
        }
    }

    /// The squared standard error of the mean of `n` values, from their spread: `n - 1` degrees.
    pub fn of_mean(values: &[f64]) -> Self {
        let count = values.len() as f64;
        Self {
            variance: variance(values) / count,
            degrees: count - 1.0,
        }
    }

    /// The sum of two variances that do not depend on each other, with its degrees of freedom after
    /// Satterthwaite (1946).
    pub fn plus(self, other: Self) -> Self {
        let sum = self.variance + other.variance;
        let part = |of: Self| of.variance * of.variance / of.degrees;
        let parts = part(self) + part(other);
        Self {
            variance: sum,
            degrees: match parts > 0.0 {
                true => sum * sum / parts,
                false => self.degrees.max(other.degrees),
            },
        }
    }

    /// The mean of variances that do not depend on each other; `None` without one.
    pub fn mean(of: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut count = 0.0;
        let sum = of
            .into_iter()
            .inspect(|_| count += 1.0)
            .reduce(Self::plus)?;
        Some(sum.times(1.0 / count))
    }

    /// The variance in other units, known as well.
    pub fn times(self, scale: f64) -> Self {
        Self {
            variance: scale * self.variance,
            ..self
        }
    }

    /// Whether it is larger than this quantile of what the prior expects, `s^2 / s0^2 > F(level; d,
    /// d0)`: two modes, not chance.
    pub(super) fn is_beyond(self, prior: VariancePrior, level: f64) -> bool {
        let limit = f_quantile(level, self.degrees, prior.degrees);
        self.variance > limit * prior.variance
    }

    /// This variance with what the class knows: `(d0 s0^2 + d s^2) / (d0 + d)`, known with `d0 + d`
    /// degrees of freedom.
    pub(super) fn with(self, prior: VariancePrior) -> Self {
        let degrees = prior.degrees + self.degrees;
        let sum = prior.degrees * prior.variance + self.degrees * self.variance;
        Self {
            variance: sum / degrees,
            degrees,
        }
    }
}

/// The second derivative of `ln Gamma`, for `x > 0`: the recurrence up to 6, then the asymptotic
/// series (Abramowitz & Stegun 6.4.6, 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let square = 1.0 / (x * x);
    let series = 1.0 / 6.0 - square * (1.0 / 30.0 - square * (1.0 / 42.0 - square / 30.0));
    sum + 1.0 / x + square / 2.0 + square / x * series
}

/// The `x` with `trigamma(x) = y`, `y > 0`, by bisection of its logarithm.
fn trigamma_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-10.0f64, 20.0f64);
    for _ in 0..80 {
        let middle = (low + high) / 2.0;
        if trigamma(middle.exp()) > y {
            low = middle;
        } else {
            high = middle;
        }
    }
    ((low + high) / 2.0).exp()
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use super::*;
    use crate::numbers::distribution::student_quantile;
    use crate::numbers::random::Stream;

    #[test]
    fn trigamma_and_back() {
        let values = [
            (1.0, PI * PI / 6.0),
            (0.5, PI * PI / 2.0),
            (2.0, PI * PI / 6.0 - 1.0),
            (3.0, PI * PI / 6.0 - 1.25),
        ];
        for (x, expected) in values {
            assert!((trigamma(x) - expected).abs() < 1e-9, "{x}");
            assert!((trigamma_inverse(expected) / x - 1.0).abs() < 1e-6, "{x}");
        }
    }

    /// The sample variance of `n` normal numbers of standard deviation `sd`.
    fn drawn(stream: &mut Stream, n: usize, sd: f64) -> KnownVariance {
        let sample: Vec<f64> = (0..n).map(|_| sd * stream.normal()).collect();
        KnownVariance {
            variance: variance(&sample),
            degrees: n as f64 - 1.0,
        }
    }

    fn moderated(known: KnownVariance, prior: Option<VariancePrior>) -> KnownVariance {
        match prior {
            Some(prior) if !known.is_beyond(prior, OUTLIER) => known.with(prior),
            _ => known,
        }
    }

    #[test]
    fn a_class_that_is_alike_is_worth_most() {
        let mut stream = Stream::new(5);
        let class: Vec<KnownVariance> = (0..400).map(|_| drawn(&mut stream, 5, 0.01)).collect();
        let prior = variance_prior(&class).unwrap();
        assert!(prior.degrees > 12.0, "{prior:?}");
        assert!((prior.variance / 1e-4 - 1.0).abs() < 0.15, "{prior:?}");
        assert_eq!(variance_prior(&class[..5]), None);
    }

    #[test]
    fn what_is_not_like_the_class_stays_as_it_is() {
        let prior = Some(VariancePrior {
            variance: 1e-4,
            degrees: 10.0,
        });
        let wild = KnownVariance {
            variance: 0.02,
            degrees: 4.0,
        };
        assert_eq!(moderated(wild, prior), wild);
        let usual = KnownVariance {
            variance: 2e-4,
            degrees: 4.0,
        };
        let both = moderated(usual, prior);
        assert!((both.variance - 1.8e-3 / 14.0).abs() < 1e-12);
        assert_eq!(both.degrees, 14.0);
    }

    /// Classes of 20 tests x 3 cells whose standard deviations differ from test to test: the
    /// moderated interval holds the truth as often as it says, and is narrower in the median than
    /// the plain one. `(starts, log sd of the tests' sd, least and most coverage)`.
    #[test]
    fn it_covers_what_it_says_and_is_narrower() {
        let mut stream = Stream::new(7);
        for (starts, unequal) in [(3, 0.35), (5, 0.0), (5, 0.35), (5, 0.7), (8, 0.35)] {
            let (mut held, mut all) = (0, 0);
            let (mut plain, mut narrowed) = (Vec::new(), Vec::new());
            for _ in 0..150 {
                let deviations: Vec<f64> = (0..20)
                    .flat_map(|_| {
                        let sd = 0.0075 * (unequal * stream.normal()).exp();
                        [sd; 3]
                    })
                    .collect();
                let estimates: Vec<(f64, KnownVariance)> = deviations
                    .into_iter()
                    .map(|sd| {
                        let sample: Vec<f64> = (0..starts).map(|_| sd * stream.normal()).collect();
                        let known = KnownVariance {
                            variance: variance(&sample),
                            degrees: f64::from(starts) - 1.0,
                        };
                        (mean(&sample), known)
                    })
                    .collect();
                let class: Vec<KnownVariance> = estimates.iter().map(|(_, known)| *known).collect();
                let prior = variance_prior(&class);
                for (estimate, known) in estimates {
                    let width = |known: KnownVariance| {
                        student_quantile(0.975, known.degrees)
                            * (known.variance / f64::from(starts)).sqrt()
                    };
                    let reach = width(moderated(known, prior));
                    held += usize::from(estimate.abs() <= reach);
                    all += 1;
                    plain.push(width(known));
                    narrowed.push(reach);
                }
            }
            let coverage = f64::from(held as u32) / f64::from(all);
            assert!(
                (0.92..=0.975).contains(&coverage),
                "{starts} starts, {unequal}: {coverage}"
            );
            plain.sort_by(f64::total_cmp);
            narrowed.sort_by(f64::total_cmp);
            let gain = quantile(&narrowed, 0.9).unwrap() / quantile(&plain, 0.9).unwrap();
            println!(
                "{starts} starts, {unequal}: coverage {coverage:.3}, widths {gain:.2} at 90 %"
            );
            assert!(gain < 0.9, "{starts} starts, {unequal}: {gain}");
        }
    }

    /// What starts agree on to the last digit has no logarithm to learn from.
    #[test]
    fn a_variance_of_zero_teaches_nothing() {
        let mut stream = Stream::new(6);
        let class: Vec<KnownVariance> = (0..6).map(|_| drawn(&mut stream, 5, 0.01)).collect();
        let prior = variance_prior(&class);
        assert!(prior.is_some(), "six are enough");
        let known = |variance, degrees| KnownVariance { variance, degrees };
        for nothing in [known(0.0, 4.0), known(1e-4, 0.0)] {
            let with = [&class[..], &[nothing]].concat();
            assert_eq!(variance_prior(&with), prior, "{nothing:?}");
            assert_eq!(variance_prior(&with[1..]), None, "five and that");
        }
    }

    /// By the formulas of the documentation, in Python.
    #[test]
    fn a_prior_by_hand() {
        let variances = [1e-4, 2e-4, 4e-4, 1e-3, 3e-3, 9e-3, 2e-2, 5e-2];
        let degrees = [4.0, 4.0, 6.0, 6.0, 8.0, 8.0, 4.0, 4.0];
        let class: Vec<KnownVariance> = variances
            .into_iter()
            .zip(degrees)
            .map(|(variance, degrees)| KnownVariance { variance, degrees })
            .collect();
        let prior = variance_prior(&class).unwrap();
        assert!((prior.degrees - 1.005_222_874).abs() < 1e-6, "{prior:?}");
        assert!((prior.variance - 6.511_598_24e-4).abs() < 1e-9, "{prior:?}");
    }

    /// 25 / (4 / 4 + 9 / 9).
    #[test]
    fn a_sum_has_the_degrees_of_freedom_of_satterthwaite() {
        let [one, other] =
            [(2.0, 4.0), (3.0, 9.0)].map(|(variance, degrees)| KnownVariance { variance, degrees });
        let sum = one.plus(other);
        assert_eq!((sum.variance, sum.degrees), (5.0, 12.5));
        let nothing = one.times(0.0).plus(other.times(0.0));
        assert_eq!((nothing.variance, nothing.degrees), (0.0, 9.0));
    }

    /// By moments these would have 41 degrees of freedom.
    #[test]
    fn a_prior_has_at_most_twenty_degrees_of_freedom() {
        let class = [-0.33f64, 0.33].repeat(4);
        let class: Vec<KnownVariance> = class
            .iter()
            .map(|log| KnownVariance {
                variance: log.exp(),
                degrees: 20.0,
            })
            .collect();
        assert_eq!(variance_prior(&class).unwrap().degrees, MOST_DEGREES);
    }
}
