//! The posterior of a step function from measured builds.

use super::bisection::Measured;

/// Prior odds of a second step, over all builds.
const SECOND_STEP: f64 = 1.0 / 8.0;
/// Builds of one level differ by as much,
const BUILD_TO_BUILD: f64 = 0.0025;
/// and at most by this share of what the bad build differs.
const MOST_OF_LOSS: f64 = 0.05;
/// The prior of a gradual change,
const GRADUAL: f64 = 0.02;
/// and how many builds between good and bad must be measured to tell one.
const FEWEST_BETWEEN: usize = 5;
/// The builds between one that was measured and the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gap {
    /// The measured build before it; 0 is the good one.
    pub before: usize,
    /// Its last build, which was measured, too.
    pub last: usize,
    /// The probability that the level changes in it.
    pub probability: f64,
}

/// By how much builds of one level differ, as a log ratio.
pub(super) fn wobble(measured: &[Measured]) -> f64 {
    let loss = measured.last().map_or(0.0, |of| of.evidence.log_ratio);
    BUILD_TO_BUILD.min(MOST_OF_LOSS * loss.abs())
}

/// Marginal likelihoods of measured builds that have one level.
pub(super) struct Runs {
    /// Prior odds that a build begins a level.
    rho: f64,
    /// `[i][j]`: ln likelihood of the measured builds `i` to `j`, 0 being the good one, as one
    /// level.
    likelihood: Vec<Vec<f64>>,
}

impl Runs {
    pub fn new(n: usize, measured: &[Measured]) -> Self {
        let loss = measured.last().map_or(0.0, |of| of.evidence.log_ratio);
        let wobble = wobble(measured);
        let of_prior = loss.abs().max(1e-6);
        // Mean and variance of each build; the good one is the reference.
        let builds: Vec<(f64, f64)> = measured
            .iter()
            .map(|of| {
                let variance = of.evidence.error.powi(2) + wobble.powi(2);
                (of.evidence.log_ratio, variance.max(1e-18))
            })
            .collect();
        let run = |from: usize| -> Vec<f64> {
            let (mut weight, mut weighted, mut squares, mut logs) = (0.0, 0.0, 0.0, 0.0);
            if from > 0 {
                // The level's own prior.
                weight = of_prior.powi(-2);
                weighted = weight * loss / 2.0;
                squares = weight * (loss / 2.0).powi(2);
                logs = weight.ln();
            }
            let mut found = vec![f64::NEG_INFINITY; from];
            found.extend((from == 0).then_some(0.0));
            for (value, variance) in builds.iter().skip(from.max(1) - 1) {
                weight += 1.0 / variance;
                weighted += value / variance;
                squares += value * value / variance;
                logs -= variance.ln();
                // With the good build in it the level is 0.
                found.push(match from {
                    0 => (logs - squares) / 2.0,
                    _ => (logs - weight.ln() - squares + weighted * weighted / weight) / 2.0,
                });
            }
            found
        };
        Self {
            rho: SECOND_STEP / n as f64,
            likelihood: (0..=builds.len()).map(run).collect(),
        }
    }

    /// The probability of a step in each gap, given that there is one in any, and the ln of their
    /// likelihood together.
    pub fn gaps(&self, measured: &[Measured]) -> (Vec<Gap>, f64) {
        let m = measured.len();
        let build = |index: usize| index.checked_sub(1).map_or(0, |i| measured[i].build);
        let odds = |gap: usize| (self.rho * (build(gap) - build(gap - 1)) as f64).ln();
        // ahead[j]: all ways in which a level ends at measured build j.
        let mut ahead = vec![0.0; m + 1];
        for j in 0..=m {
            let ways = (1..=j).map(|i| ahead[i - 1] + odds(i) + self.likelihood[i][j]);
            let ways: Vec<f64> = ways.chain([self.likelihood[0][j]]).collect();
            ahead[j] = log_sum(&ways);
        }
        // behind[i]: all ways in which one begins there.
        let mut behind = vec![0.0; m + 1];
        for i in (1..=m).rev() {
            let ways = (i..m).map(|j| self.likelihood[i][j] + odds(j + 1) + behind[j + 1]);
            let ways: Vec<f64> = ways.chain([self.likelihood[i][m]]).collect();
            behind[i] = log_sum(&ways);
        }
        let with_step: Vec<f64> = (1..=m)
            .map(|i| ahead[i - 1] + odds(i) + self.likelihood[i][m])
            .collect();
        let all = log_sum(&with_step);
        let gaps = (1..=m).map(|gap| {
            let with_gap = ahead[gap - 1] + odds(gap) + behind[gap];
            Gap {
                before: build(gap - 1),
                last: build(gap),
                probability: (with_gap - all).exp().min(1.0),
            }
        });
        // All ways to have steps have the prior odds e^SECOND_STEP - 1 together, nearly.
        (gaps.collect(), all - SECOND_STEP.exp_m1().ln())
    }
}

/// The probability of an even change, next to that of steps, whose ln likelihood is `of_steps`.
pub(super) fn gradual(n: usize, measured: &[Measured], of_steps: f64) -> f64 {
    let Some((bad, between)) = measured.split_last() else {
        return 0.0;
    };
    if between.len() < FEWEST_BETWEEN {
        return 0.0;
    }
    let loss = bad.evidence.log_ratio;
    let likelihood = |of: &Measured| {
        let level = loss * of.build as f64 / n as f64;
        let variance = of.evidence.error.powi(2) + (MOST_OF_LOSS * loss).powi(2);
        let variance = variance.max(1e-18);
        -(variance.ln() + (of.evidence.log_ratio - level).powi(2) / variance) / 2.0
    };
    // The bad build's level has the same prior as among steps.
    let of_bad = Runs::new(n, std::slice::from_ref(bad)).likelihood[1][1];
    let even: f64 = between.iter().map(likelihood).sum::<f64>() + of_bad;
    let odds = (GRADUAL / (1.0 - GRADUAL)).ln() + even - of_steps;
    1.0 / (1.0 + (-odds).exp())
}

fn log_sum(logs: &[f64]) -> f64 {
    let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most == f64::NEG_INFINITY {
        return most;
    }
    most + logs.iter().map(|log| (log - most).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::bisection::Evidence;

    fn measured(build: usize, log_ratio: f64, error: f64) -> Measured {
        Measured {
            build,
            evidence: Evidence { log_ratio, error },
            campaigns: 2,
        }
    }

    /// What all ways to have steps among few builds come to, one by one.
    #[test]
    fn the_recursion_is_the_sum_over_all_ways() {
        let all = [
            measured(2, -0.004, 0.01),
            measured(3, -0.05, 0.02),
            measured(7, -0.11, 0.015),
            measured(8, -0.09, 0.008),
        ];
        let runs = Runs::new(8, &all);
        let (mut with, mut total) = ([0.0; 4], 0.0);
        for way in 1u32..16 {
            let is_step = |gap: usize| way >> gap & 1 == 1;
            let (mut start, mut weight) = (0, 1.0);
            for gap in 0..4 {
                if is_step(gap) {
                    let builds = [2.0, 1.0, 4.0, 1.0][gap];
                    weight *= runs.likelihood[start][gap].exp() * runs.rho * builds;
                    start = gap + 1;
                }
            }
            weight *= runs.likelihood[start][4].exp();
            total += weight;
            (0..4).for_each(|gap| with[gap] += if is_step(gap) { weight } else { 0.0 });
        }
        let (gaps, likelihood) = runs.gaps(&all);
        for (gap, with) in gaps.iter().zip(with) {
            assert!((gap.probability - with / total).abs() < 1e-9, "{gap:?}");
        }
        let of_all = (total / SECOND_STEP.exp_m1()).ln();
        assert!((likelihood - of_all).abs() < 1e-9);
    }

    /// One level, by numerical integration over it.
    #[test]
    fn likelihoods_are_integrals_over_the_level() {
        let all = [
            measured(1, -0.08, 0.01),
            measured(2, -0.10, 0.02),
            measured(3, -0.12, 0.01),
        ];
        let runs = Runs::new(3, &all);
        let (loss, w) = (-0.12f64, 0.0025f64);
        let density = |x: f64, centre: f64, variance: f64| {
            (-(x - centre).powi(2) / variance / 2.0).exp() / variance.sqrt()
        };
        let at = |level: f64| -> f64 {
            let of = |of: &Measured| {
                let variance = of.evidence.error.powi(2) + w * w;
                density(of.evidence.log_ratio, level, variance)
            };
            all.iter().map(of).product::<f64>() * density(level, loss / 2.0, loss * loss)
        };
        let step = 1e-5;
        let integral: f64 = (-60_000..60_000)
            .map(|i| at(f64::from(i) * step) * step)
            .sum();
        let integral = integral / (2.0 * std::f64::consts::PI).sqrt();
        assert!((runs.likelihood[1][3].exp() / integral - 1.0).abs() < 1e-4);
    }
}
