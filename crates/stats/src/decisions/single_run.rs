//! One run of each cell: unusual or not, and never more than that.

use crate::numbers::distribution::student_quantile;
use crate::numbers::order::variance;

/// The standard deviation between starts of ln(value) that is taken for granted before this machine
/// has shown its own: 3 % (Percona's blog 2014, "Know your baseline variance": about 3 % between
/// runs that differ by a restart alone).
pub const PRIOR_SPREAD: f64 = 0.03;

/// How many degrees of freedom the prior is worth: after five starts of its own a machine counts as
/// much as the prior.
const PRIOR_DEGREES: f64 = 4.0;

/// How far values of one cell lie apart when nothing but the start of the server differs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The standard deviation of ln(value) between starts.
    pub sd: f64,
    /// Degrees of freedom behind it, the prior's included.
    pub degrees: f64,
    /// Starts that were measured; 0 when the spread is the prior alone.
    pub starts: usize,
}

impl Spread {
    /// The spread from groups of ln(value), each of repeated starts of one cell, shrunk towards the
    /// prior:
    ///
    /// `sd^2 = (4 x 0.03^2 + sum (n_g - 1) s_g^2) / (4 + sum (n_g - 1))` (the mean of a scaled
    /// inverse chi-square posterior, up to its degrees of freedom: Gelman et al. 2013, 2.6). Groups
    /// of one say nothing.
    pub fn of_groups(groups: &[Vec<f64>]) -> Self {
        Self::shrunk(groups, PRIOR_SPREAD)
    }

    /// The same, shrunk towards another standard deviation, such as that of the engine over all
    /// steps.
    pub fn shrunk(groups: &[Vec<f64>], towards: f64) -> Self {
        let groups = || groups.iter().filter(|group| group.len() > 1);
        let degrees: f64 = groups().map(|group| group.len() as f64 - 1.0).sum();
        let squares: f64 = groups()
            .map(|group| (group.len() as f64 - 1.0) * variance(group))
            .sum();
        let sd = ((PRIOR_DEGREES * towards.powi(2) + squares) / (PRIOR_DEGREES + degrees)).sqrt();
        Self {
            sd,
            degrees: PRIOR_DEGREES + degrees,
            starts: groups().map(Vec::len).sum(),
        }
    }

    /// The prior alone.
    pub fn prior() -> Self {
        Self::of_groups(&[])
    }

    /// Whether nothing of it was measured here.
    pub fn is_prior(&self) -> bool {
        self.starts == 0
    }
}

/// One run of a cell against one run of the base.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    /// The log ratio.
    pub log_ratio: f64,
    /// The log ratio in standard deviations of what two starts of one build differ by:
    /// `d / (sqrt(2) sd)`.
    pub z: f64,
    /// Where the log ratio of two equal builds lies with the probability `level`: within
    /// `±t sqrt(2) sd`.
    pub reach: f64,
    /// That probability.
    pub level: f64,
}

impl Screen {
    /// Sets the log ratio of one run of each side against a spread.
    pub fn of(log_ratio: f64, spread: Spread, level: f64) -> Self {
        let error = spread.sd * std::f64::consts::SQRT_2;
        Self {
            log_ratio,
            z: log_ratio / error,
            reach: student_quantile(0.5 + level / 2.0, spread.degrees) * error,
            level,
        }
    }

    /// The same, of runs during which others took the share `taken` of the machine: it may have
    /// moved the log ratio by as much, independently of how far starts lie apart. With the error
    /// `e` of starts and its quantile `t` the reach is `sqrt((t e)^2 + taken^2)`.
    pub fn disturbed_by(self, taken: f64) -> Self {
        let reach = self.reach.hypot(taken);
        Self {
            z: self.z * self.reach / reach,
            reach,
            ..self
        }
    }

    /// Whether two equal builds would rarely differ so much: worth `confirm`, and no verdict.
    pub fn is_unusual(&self) -> bool {
        self.log_ratio.abs() > self.reach
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prior_gives_way_to_what_was_measured() {
        let prior = Spread::prior();
        assert!((prior.sd - 0.03).abs() < 1e-15 && prior.is_prior() && prior.degrees == 4.0);
        let tight: Vec<Vec<f64>> = (0..30).map(|_| vec![0.0, 0.01, -0.01]).collect();
        let spread = Spread::of_groups(&tight);
        assert_eq!((spread.starts, spread.degrees), (90, 64.0));
        assert!(!spread.is_prior());
        assert!(spread.sd > 0.01 && spread.sd < 0.0125, "{}", spread.sd);
        assert_eq!(Spread::of_groups(&[vec![1.0], vec![2.0]]), prior);
    }

    #[test]
    fn what_others_took_enters_the_error() {
        let screen = |ratio: f64, taken: f64| {
            Screen::of(ratio.ln(), Spread::prior(), 0.95).disturbed_by(taken)
        };
        assert!(screen(3.2, 0.04).is_unusual() && screen(1.0 / 3.2, 0.04).is_unusual());
        assert!(!screen(0.97, 0.2).is_unusual() && !screen(0.85, 0.2).is_unusual());
        assert_eq!(
            screen(0.9, 0.0),
            Screen::of(0.9f64.ln(), Spread::prior(), 0.95)
        );
        assert!(screen(0.8, 0.2).z.abs() < screen(0.8, 0.0).z.abs());
    }

    #[test]
    fn a_third_less_is_unusual_and_a_tenth_is_not() {
        // t(4) at 97.5 % is 2.776: 2.776 x 0.03 x sqrt 2 = 0.118.
        let screen = |ratio: f64| Screen::of(ratio.ln(), Spread::prior(), 0.95);
        assert!((screen(0.9).reach - 0.1178).abs() < 1e-4);
        assert!(screen(0.66).is_unusual() && screen(1.2).is_unusual());
        assert!(!screen(0.9).is_unusual() && !screen(1.0).is_unusual());
        assert!((screen(0.66).z - 0.66f64.ln() / 0.042_426).abs() < 1e-3);
    }
}
