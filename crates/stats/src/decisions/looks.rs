//! Planned looks at a campaign that goes on.

use crate::numbers::distribution::{normal_cdf, normal_quantile};

/// The numbers of blocks at which a campaign may be looked at. The exact signed-rank test of fewer
/// cannot reach the level that an early look has.
pub const LOOKS: [usize; 3] = [12, 18, 24];

/// Fewer starts than this decide nothing: two say next to nothing of how far starts lie apart.
pub const FEWEST_STARTS: usize = 3;

/// Fewer blocks decide nothing: a block has no rounds that say how well it is known.
pub const FEWEST_BLOCKS: usize = 6;

/// From so many blocks on their ranks are judged, which one wild block hardly moves; the p of fewer
/// is too coarse for a handful of questions: 8 blocks say 2 / 2^8 = 0.8 % at least, and one of ten
/// questions needs 0.5 %. They are judged by the t distribution.
pub const RANKED_BLOCKS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// Blocks or starts done.
    pub blocks: usize,
    /// The nominal two-sided level of this look: a p of at most this calls a difference, and an
    /// interval of the confidence `1 - level` inside the margin calls equivalence. 0 calls nothing.
    pub level: f64,
}

/// The looks of a campaign and their levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks(Vec<Look>);

impl Looks {
    /// The looks of a campaign of at most `planned` blocks: those of [`LOOKS`] below `planned`, and
    /// `planned`.
    ///
    /// The levels spend `alpha` as Lan & DeMets (1983) do after O'Brien & Fleming, each side by
    /// itself: `2 (2 - 2 Phi(z_{1-alpha/4} / sqrt(t)))` has been spent at `t = blocks / planned`.
    /// The bounds on the normal scale come from Armitage, McPherson & Rowe (1969): the density of
    /// the score that has crossed no bound yet is carried from look to look. The levels are meant
    /// for tests whose p is uniform; the exact signed-rank test rejects a little less.
    pub fn new(planned: usize, alpha: f64) -> Self {
        let mut blocks: Vec<usize> = LOOKS
            .into_iter()
            .filter(|blocks| *blocks < planned)
            .collect();
        blocks.push(planned);
        Self::spending(&blocks, alpha)
    }

    /// The looks of a campaign of slices: every start from the [`FEWEST_STARTS`]th on may be the
    /// last that anybody waits for.
    pub fn every_start(planned: usize, alpha: f64) -> Self {
        let looks: Vec<usize> = (FEWEST_STARTS..=planned.max(FEWEST_STARTS)).collect();
        Self::spending(&looks, alpha)
    }

    /// Looks at these numbers of blocks or starts, of which the last is the planned end.
    fn spending(looks: &[usize], alpha: f64) -> Self {
        let planned = looks.last().copied().unwrap_or(1);
        let shares: Vec<f64> = looks
            .iter()
            .map(|blocks| *blocks as f64 / planned as f64)
            .collect();
        let spent: Vec<f64> = shares
            .iter()
            .map(|t| 4.0 * normal_cdf(normal_quantile(alpha / 4.0) / t.sqrt()))
            .collect();
        let levels = bounds(&shares, &spent)
            .into_iter()
            .map(|bound| 2.0 * normal_cdf(-bound));
        let looks = looks.iter().zip(levels).map(|(blocks, level)| Look {
            blocks: *blocks,
            level,
        });
        Self(looks.collect())
    }

    /// All looks, by blocks.
    pub fn all(&self) -> &[Look] {
        &self.0
    }

    /// The look that `blocks` blocks have reached: the last one with at most as many. `None` before
    /// the first.
    pub fn reached(&self, blocks: usize) -> Option<Look> {
        self.0.iter().copied().rfind(|look| look.blocks <= blocks)
    }

    /// The first look after `blocks`.
    pub fn next(&self, blocks: usize) -> Option<Look> {
        self.0.iter().copied().find(|look| look.blocks > blocks)
    }
}

/// Half of the range of the score, in standard deviations, and the number of steps on it.
const RANGE: f64 = 8.0;
const STEPS: usize = 800;

/// The bounds `b_k` of `|z_k|` such that the chance of having crossed one by look `k` is
/// `spent[k]`.
///
/// The score `s_k = z_k sqrt(t_k)` has independent increments of variance `t_k - t_{k-1}`. Its
/// density over paths that have not crossed is kept on a grid, and the next bound is found by
/// bisection on the mass that it leaves inside.
fn bounds(shares: &[f64], spent: &[f64]) -> Vec<f64> {
    let width = 2.0 * RANGE / STEPS as f64;
    let point = |i: usize| -RANGE + (i as f64 + 0.5) * width;
    let normal_density = |x: f64, variance: f64| {
        (-x * x / (2.0 * variance)).exp() / (2.0 * std::f64::consts::PI * variance).sqrt()
    };
    let mut density: Vec<f64> = Vec::new();
    let mut before = 0.0;
    let mut found = Vec::with_capacity(shares.len());
    for (share, spent) in shares.iter().zip(spent) {
        let variance = share - before;
        let next: Vec<f64> = (0..STEPS)
            .map(|to| match density.is_empty() {
                true => normal_density(point(to), variance),
                false => {
                    (0..STEPS)
                        .map(|from| {
                            density[from] * normal_density(point(to) - point(from), variance)
                        })
                        .sum::<f64>()
                        * width
                }
            })
            .collect();
        // Mass within ±bound, a step that the bound cuts counting by the part inside.
        let inside = |bound: f64| -> f64 {
            (0..STEPS)
                .map(|i| next[i] * ((bound - point(i).abs()) + width / 2.0).clamp(0.0, width))
                .sum::<f64>()
        };
        let (mut low, mut high) = (0.0, RANGE);
        while high - low > 1e-9 {
            let middle = (low + high) / 2.0;
            if inside(middle) < 1.0 - spent {
                low = middle
            } else {
                high = middle
            }
        }
        density = (0..STEPS)
            .map(|i| next[i] * (((low - point(i).abs()) + width / 2.0) / width).clamp(0.0, 1.0))
            .collect();
        before = *share;
        found.push(low / share.sqrt());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_lan_and_demets() {
        // The same recursion in numpy on 4,001 points gives 2.963, 2.359, 2.014; so do published
        // tables for looks at 1/2, 3/4 and 1.
        let looks = Looks::new(24, 0.05);
        let z: Vec<f64> = looks
            .all()
            .iter()
            .map(|look| -normal_quantile(look.level / 2.0))
            .collect();
        for (found, expected) in z.iter().zip([2.9626, 2.3590, 2.0141]) {
            assert!((found - expected).abs() < 0.002, "{z:?}");
        }
    }

    #[test]
    fn looks_of_smaller_campaigns() {
        for planned in [6, 8, 12] {
            let looks = Looks::new(planned, 0.05);
            let last = looks.all().last().unwrap();
            assert_eq!(last.blocks, planned);
            assert!(
                (last.level - 0.05).abs() < 1e-4,
                "{planned}: all of alpha in the only look"
            );
            assert_eq!(looks.all().len(), 1);
        }
        let looks = Looks::new(24, 0.05);
        assert_eq!(looks.reached(11), None);
        assert_eq!(looks.reached(17).unwrap().blocks, 12);
        assert_eq!(looks.next(6).unwrap().blocks, 12);
        assert_eq!(looks.next(24), None);
    }
}
