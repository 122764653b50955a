//! Which build is the first bad one, from noisy probes.

use crate::numbers::order::mean;

/// What blocks of a probe showed, as log ratios against the good build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The estimate of ln(probe / good).
    pub log_ratio: f64,
    /// Its standard error, above 0.
    pub error: f64,
}

/// The candidates of a bisection and how likely each is the first bad build.
///
/// Builds are numbered from 0, the good one, to `n`, the bad one; a candidate is a number from 1 to
/// `n`, all equally likely at first. A probe of build `i` is bad if the first bad build is at most
/// `i`, and then its log ratio is normal around that of the bad build, else around 0 (Waeber,
/// Frazier & Henderson 2013 have the theory of probing at the median of the posterior). A share of
/// each likelihood is kept for probes that are like neither, so that no single probe decides
/// everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    posterior: Vec<f64>,
    bad: Evidence,
}

/// The share of probes that are taken to say nothing.
const MISLEADING: f64 = 0.01;

impl Bisection {
    /// The posterior that the search stops at.
    pub const ENOUGH: f64 = 0.95;

    /// A search among builds `1..=n`, of which `n` >= 1 is known to be bad, by as much as `bad`
    /// says.
    pub fn new(n: usize, bad: Evidence) -> Self {
        Self {
            posterior: vec![1.0 / n as f64; n],
            bad,
        }
    }

    /// The probability that each of the builds `1..=n` is the first bad one.
    pub fn posterior(&self) -> &[f64] {
        &self.posterior
    }

    /// Learns from a probe of build `build` (1 to `n`): Bayes' rule. The error of the bad build's
    /// own estimate is added to the probe's where it is compared with it.
    pub fn learn(&mut self, build: usize, probe: Evidence) {
        let density = |centre: f64, error: f64| {
            (-((probe.log_ratio - centre) / error).powi(2) / 2.0).exp() / error
        };
        let (like_good, like_bad) = (
            density(0.0, probe.error),
            density(self.bad.log_ratio, probe.error.hypot(self.bad.error)),
        );
        let floor =
            MISLEADING * mean(&[1.0 / probe.error, 1.0 / probe.error.hypot(self.bad.error)]);
        for (first_bad, probability) in (1..).zip(&mut self.posterior) {
            *probability *= floor
                + if first_bad <= build {
                    like_bad
                } else {
                    like_good
                };
        }
        let sum: f64 = self.posterior.iter().sum();
        self.posterior
            .iter_mut()
            .for_each(|probability| *probability /= sum);
    }

    /// The first bad build, once its probability is [`Self::ENOUGH`].
    pub fn found(&self) -> Option<usize> {
        let (build, probability) = self.likeliest();
        (probability >= Self::ENOUGH).then_some(build)
    }

    /// The likeliest first bad build and its probability.
    pub fn likeliest(&self) -> (usize, f64) {
        let best = (1..).zip(&self.posterior).max_by(|a, b| a.1.total_cmp(b.1));
        best.map_or((0, 0.0), |(build, probability)| (build, *probability))
    }

    /// The first bad build as far as it is known when some builds cannot be probed: the shortest
    /// run of candidates that nothing but such builds keeps apart, once its probability is
    /// [`Self::ENOUGH`]. First and last of it are equal where it is one build.
    pub fn found_among(&self, cannot_be_probed: &[usize]) -> Option<(usize, usize)> {
        let mut first = 1;
        let mut probability = 0.0;
        for (build, share) in (1..).zip(&self.posterior) {
            probability += share;
            // The build itself is what tells it from the next one.
            if cannot_be_probed.contains(&build) && build < self.posterior.len() {
                continue;
            }
            if probability >= Self::ENOUGH {
                return Some((first, build));
            }
            (first, probability) = (build + 1, 0.0);
        }
        None
    }

    /// The build to probe next: the one whose probability of being bad is nearest to one half; the
    /// good and the bad one themselves, and those that cannot be probed, are left out. `None` when
    /// there is none.
    pub fn next_probe(&self, cannot_be_probed: &[usize]) -> Option<usize> {
        let mut below = 0.0;
        let is_bad = self.posterior.iter().map(|probability| {
            below += probability;
            below
        });
        let between = (1..self.posterior.len())
            .zip(is_bad)
            .filter(|(build, _)| !cannot_be_probed.contains(build));
        between
            .min_by(|a, b| (a.1 - 0.5).abs().total_cmp(&(b.1 - 0.5).abs()))
            .map(|(build, _)| build)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    #[test]
    fn it_finds_the_build_although_probes_are_noisy() {
        let mut stream = Stream::new(21);
        let (n, error) = (32, 0.02);
        let (mut right, mut probes) = (0, 0);
        for _ in 0..400 {
            let first_bad = 1 + stream.below(n);
            let mut search = Bisection::new(
                n,
                Evidence {
                    log_ratio: -0.06,
                    error: 0.01,
                },
            );
            while search.found().is_none() {
                let build = search.next_probe(&[]).unwrap();
                let centre = if build >= first_bad { -0.06 } else { 0.0 };
                search.learn(
                    build,
                    Evidence {
                        log_ratio: centre + error * stream.normal(),
                        error,
                    },
                );
                probes += 1;
            }
            right += usize::from(search.found() == Some(first_bad));
        }
        assert!(right >= 372, "{right} of 400");
        assert!(probes < 400 * 16, "{} probes each", probes / 400);
    }

    #[test]
    fn neighbours_need_no_probe() {
        let search = Bisection::new(
            1,
            Evidence {
                log_ratio: -0.1,
                error: 0.01,
            },
        );
        assert_eq!((search.found(), search.next_probe(&[])), (Some(1), None));
    }

    #[test]
    fn a_probe_like_neither_moves_little() {
        let mut search = Bisection::new(
            8,
            Evidence {
                log_ratio: -0.1,
                error: 0.005,
            },
        );
        search.learn(
            4,
            Evidence {
                log_ratio: 0.5,
                error: 0.005,
            },
        );
        assert!(
            search.posterior().iter().all(|p| (p - 0.125).abs() < 0.01),
            "{:?}",
            search.posterior()
        );
        assert!((search.posterior().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn builds_that_cannot_be_probed_widen_the_answer() {
        let mut search = Bisection::new(
            8,
            Evidence {
                log_ratio: -0.1,
                error: 0.005,
            },
        );
        let good = Evidence {
            log_ratio: 0.0,
            error: 0.005,
        };
        let bad = Evidence {
            log_ratio: -0.1,
            error: 0.005,
        };
        for _ in 0..3 {
            search.learn(3, good);
            search.learn(6, bad);
        }
        assert_eq!(search.next_probe(&[4]), Some(5));
        assert_eq!(
            (
                search.found_among(&[4, 5]),
                search.found_among(&[]),
                search.found()
            ),
            (Some((4, 6)), None, None)
        );
        search.learn(5, bad);
        assert_eq!(
            (search.found_among(&[4]), search.found()),
            (Some((4, 5)), None)
        );
        search.learn(4, good);
        assert_eq!(
            (search.found_among(&[]), search.found()),
            (Some((5, 5)), Some(5))
        );
    }
}
