//! Random ids, by the formulas of sysbench.

use plimsoll_core::plan::Distribution;
use plimsoll_core::seed::Draw;

/// Terms of the mean that stands for a gaussian draw.
const GAUSSIAN_TERMS: u32 = 12;
/// `special`: so many percent of the draws in the middle, and the middle's part of the range in
/// percent.
const SPECIAL_SHARE: u64 = 75;
const SPECIAL_MIDDLE: u64 = 1;

/// Draws ids in `1..=rows`.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    rows: u64,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Uniform,
    Zipfian(Zipfian),
    /// The power that a uniform number is raised to.
    Pareto(f64),
    Gaussian,
    Special,
}

impl Ids {
    pub fn new(distribution: Distribution, rows: u64) -> Self {
        let rule = match distribution {
            Distribution::Uniform => Rule::Uniform,
            Distribution::Zipfian { exponent } => Rule::Zipfian(Zipfian::new(rows, exponent)),
            Distribution::Pareto { h } => Rule::Pareto(h.ln() / (1.0 - h).ln()),
            Distribution::Gaussian => Rule::Gaussian,
            Distribution::Special => Rule::Special,
        };
        Self { rows, rule }
    }

    /// Draws of [`Draw`] that a value takes, where each takes as many.
    pub fn draws(&self) -> Option<u64> {
        match self.rule {
            Rule::Uniform | Rule::Pareto(_) => Some(1),
            Rule::Gaussian => Some(GAUSSIAN_TERMS.into()),
            Rule::Zipfian(_) | Rule::Special => None,
        }
    }

    #[inline]
    pub fn draw(&self, draw: &mut Draw) -> i64 {
        let id = match &self.rule {
            Rule::Uniform => 1 + draw.below(self.rows),
            Rule::Zipfian(zipfian) => zipfian.draw(draw),
            Rule::Pareto(power) => 1 + self.share(draw.unit().powf(*power)),
            Rule::Gaussian => 1 + self.share(gaussian(draw)),
            Rule::Special if draw.below(100) < SPECIAL_SHARE => {
                // At least one id, and where the middle is not a whole number of ids, the lower
                // one.
                let middle = (self.rows * SPECIAL_MIDDLE / 100).max(1);
                1 + (self.rows - middle) / 2 + draw.below(middle)
            }
            Rule::Special => 1 + self.share(gaussian(draw)),
        };
        id as i64
    }

    /// The id, from 0, at this share of the range.
    fn share(&self, share: f64) -> u64 {
        ((share * self.rows as f64) as u64).min(self.rows - 1)
    }
}

/// A number in `[0, 1)` around one half.
fn gaussian(draw: &mut Draw) -> f64 {
    (0..GAUSSIAN_TERMS).map(|_| draw.unit()).sum::<f64>() / f64::from(GAUSSIAN_TERMS)
}

/// Ranks `1..=n` with weight `1 / rank^exponent`, exactly: rejection-inversion of W. Hörmann and G.
/// Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions", ACM
/// TOMACS 6 (1996). Its cost does not depend on `n`.
#[derive(Clone, Debug)]
struct Zipfian {
    n: u64,
    exponent: f64,
    /// The integral up to half a step behind the last rank, and to half a step behind the first
    /// less the first's own weight.
    from: f64,
    to: f64,
    /// A draw so near below its rank is taken without a look at its weight.
    squeeze: f64,
}

impl Zipfian {
    fn new(n: u64, exponent: f64) -> Self {
        let to = integral(1.5, exponent) - 1.0;
        let from = integral(n as f64 + 0.5, exponent);
        let squeeze = 2.0 - inverse(integral(2.5, exponent) - weight(2.0, exponent), exponent);
        Self {
            n,
            exponent,
            from,
            to,
            squeeze,
        }
    }

    fn draw(&self, draw: &mut Draw) -> u64 {
        loop {
            let u = self.from + draw.unit() * (self.to - self.from);
            let x = inverse(u, self.exponent);
            let rank = (x + 0.5).clamp(1.0, self.n as f64).floor();
            if rank - x <= self.squeeze
                || u >= integral(rank + 0.5, self.exponent) - weight(rank, self.exponent)
            {
                return rank as u64;
            }
        }
    }
}

fn weight(x: f64, exponent: f64) -> f64 {
    (-exponent * x.ln()).exp()
}

/// The integral of the weight: (x^(1-exponent) - 1) / (1 - exponent), which tends to ln x as the
/// exponent tends to 1.
fn integral(x: f64, exponent: f64) -> f64 {
    let ln = x.ln();
    ln * exp_m1_by(ln * (1.0 - exponent))
}

fn inverse(y: f64, exponent: f64) -> f64 {
    let t = (y * (1.0 - exponent)).max(-1.0);
    (y * ln_1p_by(t)).exp()
}

/// (e^x - 1) / x
fn exp_m1_by(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.exp_m1() / x
    } else {
        1.0 + x / 2.0 * (1.0 + x / 3.0)
    }
}

/// ln(1 + x) / x
fn ln_1p_by(x: f64) -> f64 {
    if x.abs() > 1e-8 {
        x.ln_1p() / x
    } else {
        1.0 - x * (0.5 - x / 3.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 200_000;

    fn ids(distribution: Distribution, rows: u64) -> Vec<u64> {
        let ids = Ids::new(distribution, rows);
        let mut draw = Draw::new(11, &["ids"]);
        let ids: Vec<u64> = (0..DRAWS).map(|_| ids.draw(&mut draw) as u64).collect();
        assert!(ids.iter().all(|id| (1..=rows).contains(id)));
        ids
    }

    /// The share of draws up to this id.
    fn below(ids: &[u64], id: f64) -> f64 {
        ids.iter().filter(|drawn| **drawn as f64 <= id).count() as f64 / ids.len() as f64
    }

    /// 200,000 draws: a share is off by 0.0037 once in a thousand.
    #[track_caller]
    fn assert_share(found: f64, wanted: f64) {
        assert!((found - wanted).abs() < 0.005, "{found}, not {wanted}");
    }

    #[test]
    fn uniform_ids_are_equally_frequent() {
        let ids = ids(Distribution::Uniform, 1000);
        for id in [1.0, 100.0, 500.0, 999.0] {
            assert_share(below(&ids, id), id / 1000.0);
        }
    }

    #[test]
    fn zipfian_ids_have_the_exact_weights() {
        for (exponent, n) in [
            (0.8, 1000),
            (1.0, 50),
            (1.7, 1000),
            (0.0, 20),
            (3.0, 7),
            (0.8, 1),
        ] {
            let ids = ids(Distribution::Zipfian { exponent }, n);
            let weights: Vec<f64> = (1..=n).map(|rank| (rank as f64).powf(-exponent)).collect();
            let all: f64 = weights.iter().sum();
            let mut counts = vec![0u64; n as usize];
            ids.iter().for_each(|id| counts[*id as usize - 1] += 1);
            // Chi-square of the ranks that are expected at least 10 times: mean k, standard
            // deviation sqrt(2k).
            let terms = weights
                .iter()
                .zip(&counts)
                .map(|(weight, count)| (weight / all * DRAWS as f64, *count as f64));
            let terms: Vec<f64> = terms
                .filter(|(expected, _)| *expected >= 10.0)
                .map(|(e, found)| (found - e).powi(2) / e)
                .collect();
            let (chi, k) = (terms.iter().sum::<f64>(), terms.len() as f64);
            assert!(
                chi < k + 4.0 * (2.0 * k).sqrt(),
                "exponent {exponent}: chi-square {chi} of {k}"
            );
        }
    }

    #[test]
    fn a_large_zipfian_is_exact_at_its_head() {
        let (n, exponent) = (1_000_000_000, 0.8);
        let ids = ids(Distribution::Zipfian { exponent }, n);
        // Euler-Maclaurin for the sum of the weights.
        let sum = |n: f64| {
            (n.powf(0.2) - 1.0) / 0.2
                + (1.0 + n.powf(-0.8)) / 2.0
                + 0.8 / 12.0 * (1.0 - n.powf(-1.8))
        };
        for id in [1.0, 1000.0, 1e6, 5e8] {
            assert_share(below(&ids, id), sum(id) / sum(n as f64));
        }
    }

    #[test]
    fn pareto_ids_are_a_power_of_uniform_ones() {
        let ids = ids(Distribution::Pareto { h: 0.2 }, 1_000_000);
        let power = 0.2f64.ln() / 0.8f64.ln();
        assert!((power - 7.2126).abs() < 1e-4);
        for share in [0.001, 0.01, 0.2, 0.9] {
            assert_share(below(&ids, share * 1e6), f64::powf(share, 1.0 / power));
        }
        assert_share(below(&ids, 200_000.0), 0.8);
    }

    #[test]
    fn gaussian_ids_are_the_mean_of_twelve() {
        let ids = ids(Distribution::Gaussian, 1_000_000);
        let mean = ids.iter().sum::<u64>() as f64 / DRAWS as f64;
        let variance = ids
            .iter()
            .map(|id| (*id as f64 - mean).powi(2))
            .sum::<f64>()
            / DRAWS as f64;
        assert!((mean / 500_000.0 - 1.0).abs() < 0.001, "{mean}");
        // The variance of a uniform number is 1/12, that of the mean of twelve 1/144.
        assert!(
            (variance.sqrt() / (1e6 / 12.0) - 1.0).abs() < 0.005,
            "{}",
            variance.sqrt()
        );
        assert_share(below(&ids, 1e6 * (0.5 + 1.0 / 12.0)), 0.8413);
    }

    #[test]
    fn special_ids_are_in_the_middle() {
        let ids = ids(Distribution::Special, 1_000_000);
        let middle = below(&ids, 505_000.0) - below(&ids, 495_000.0);
        // Of the other quarter the middle gets 0.06 standard deviations on each side.
        assert_share(middle, 0.75 + 0.25 * 0.0478);
        assert_share(below(&ids, 495_000.0), 0.25 * 0.4761);
        assert!(Ids::new(Distribution::Special, 1).draw(&mut Draw::new(1, &[])) == 1);
    }
}
