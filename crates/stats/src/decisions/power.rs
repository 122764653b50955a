//! What a number of blocks can show, before they are run.

use crate::numbers::distribution::normal_quantile;
use crate::numbers::random::Stream;
use crate::significance::signed_rank::critical_count;

/// Simulated campaigns per answer: the standard error of a power of 0.8 is 0.4 %.
const CAMPAIGNS: usize = 10_000;

/// Beyond so many pairs the normal approximation answers.
const SIMULATED_PAIRS: usize = 60;

/// The power of the two-sided exact signed-rank test of `pairs` normal log ratios, at a true effect
/// of `effect` standard deviations. Simulated with `seed`; 0 when `pairs` can reject nothing at
/// `alpha`.
pub fn power(pairs: usize, effect: f64, alpha: f64, seed: u64) -> f64 {
    Simulation::new(pairs, seed).power(effect, alpha)
}

/// Standard normal campaigns, kept so that one effect after another can be tried on the same draws.
struct Simulation {
    pairs: usize,
    campaigns: Vec<f64>,
}

impl Simulation {
    fn new(pairs: usize, seed: u64) -> Self {
        let mut stream = Stream::new(seed);
        Self {
            pairs,
            campaigns: (0..pairs * CAMPAIGNS).map(|_| stream.normal()).collect(),
        }
    }

    fn power(&self, effect: f64, alpha: f64) -> f64 {
        let count = critical_count(self.pairs, alpha / 2.0);
        if count == 0 {
            return 0.0;
        }
        let mut shifted = vec![0.0; self.pairs];
        let rejected = self.campaigns.chunks_exact(self.pairs).filter(|campaign| {
            shifted
                .iter_mut()
                .zip(*campaign)
                .for_each(|(to, from)| *to = from + effect);
            shifted.sort_by(|a: &f64, b: &f64| a.abs().total_cmp(&b.abs()));
            let below: usize = (1..)
                .zip(&shifted)
                .filter(|(_, value)| **value < 0.0)
                .map(|(rank, _)| rank)
                .sum();
            let total = self.pairs * (self.pairs + 1) / 2;
            below.min(total - below) < count
        });
        rejected.count() as f64 / CAMPAIGNS as f64
    }
}

/// The smallest effect, in standard deviations of the paired log ratio, that `pairs` find with a
/// probability of `power` at `alpha` (two-sided, exact signed-rank, normal log ratios). Simulated
/// with `seed` up to 60 pairs; beyond, from the test's asymptotic relative efficiency of `3 / pi`
/// against the t test (Lehmann 1975, 4.2): `(z_{1-alpha/2} + z_power) sqrt(pi / (3 n))`. `None`
/// when no effect, however large, could be shown: `2 / 2^n > alpha`.
pub fn minimum_detectable_effect(pairs: usize, alpha: f64, power: f64, seed: u64) -> Option<f64> {
    if critical_count(pairs, alpha / 2.0) == 0 {
        return None;
    }
    if pairs > SIMULATED_PAIRS {
        return Some(
            (reach(alpha, power).powi(2) * std::f64::consts::FRAC_PI_3 / pairs as f64).sqrt(),
        );
    }
    let simulation = Simulation::new(pairs, seed);
    let (mut low, mut high) = (0.0, 8.0);
    while high - low > 0.002 {
        let middle = (low + high) / 2.0;
        if simulation.power(middle, alpha) < power {
            low = middle
        } else {
            high = middle
        }
    }
    Some((low + high) / 2.0)
}

fn reach(alpha: f64, power: f64) -> f64 {
    normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power)
}

/// The fewest blocks that find an effect of `effect` > 0 standard deviations of the paired log
/// ratio with a probability of `power` at `alpha`. `None` for an effect of 0 or none.
pub fn blocks_needed(effect: f64, alpha: f64, power: f64, seed: u64) -> Option<usize> {
    if effect.is_nan() || effect <= 0.0 {
        return None;
    }
    let asymptotic = (reach(alpha, power) / effect).powi(2) * std::f64::consts::FRAC_PI_3;
    if asymptotic > SIMULATED_PAIRS as f64 {
        return Some(asymptotic.ceil() as usize);
    }
    // The asymptotic answer is a little low: the search starts at it or at the floor of the test.
    let from = (asymptotic * 0.8) as usize;
    (from.max(blocks_to_decide(1, alpha))..)
        .find(|pairs| Simulation::new(*pairs, seed).power(effect, alpha) >= power)
}

/// The fewest blocks with which a lone effect among `family` questions can be shown at `alpha` at
/// all: `2 / 2^n <= alpha / family`, so `n >= log2(2 family / alpha)`.
pub fn blocks_to_decide(family: usize, alpha: f64) -> usize {
    (2.0 * family.max(1) as f64 / alpha).log2().ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_effects_in_standard_deviations() {
        let table = [
            (
                0.05,
                [
                    (5, None),
                    (6, Some(1.80)),
                    (8, Some(1.25)),
                    (10, Some(1.02)),
                    (12, Some(0.93)),
                    (15, Some(0.80)),
                    (20, Some(0.68)),
                    (30, Some(0.54)),
                ],
            ),
            (
                0.01,
                [
                    (5, None),
                    (6, None),
                    (8, Some(1.93)),
                    (10, Some(1.39)),
                    (12, Some(1.21)),
                    (15, Some(1.05)),
                    (20, Some(0.86)),
                    (30, Some(0.68)),
                ],
            ),
        ];
        for (alpha, row) in table {
            for (pairs, expected) in row {
                let found = minimum_detectable_effect(pairs, alpha, 0.8, 1);
                match (found, expected) {
                    (None, None) => {}
                    (Some(found), Some(expected)) => {
                        assert!(
                            (found / expected - 1.0f64).abs() < 0.035,
                            "{pairs} at {alpha}: {found}, {expected}"
                        )
                    }
                    other => panic!("{pairs} at {alpha}: {other:?}"),
                }
            }
        }
        let beyond = minimum_detectable_effect(61, 0.05, 0.8, 1).unwrap();
        let simulated = minimum_detectable_effect(60, 0.05, 0.8, 1).unwrap();
        assert!(
            (beyond / simulated - 1.0).abs() < 0.04,
            "{beyond} {simulated}"
        );
    }

    #[test]
    fn blocks_that_decide() {
        for (family, blocks) in [(1, 6), (10, 9), (32, 11), (100, 12), (300, 14)] {
            assert_eq!(blocks_to_decide(family, 0.05), blocks);
        }
        for (effect, blocks) in [(1.80, 6), (1.02, 10), (0.54, 30)] {
            let found = blocks_needed(effect, 0.05, 0.8, 1).unwrap();
            assert!(found.abs_diff(blocks) <= 1, "{effect}: {found}");
        }
        assert_eq!(blocks_needed(0.1, 0.05, 0.8, 1), Some(822));
        assert_eq!(blocks_needed(0.0, 0.05, 0.8, 1), None);
        assert!((power(10, 1.02, 0.05, 2) - 0.8).abs() < 0.02);
        assert_eq!(power(5, 9.0, 0.05, 2), 0.0);
    }
}
