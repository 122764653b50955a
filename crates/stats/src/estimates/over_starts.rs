//! A ratio over starts of the servers, each of which counts once.

use crate::estimates::estimate::Interval;
use crate::estimates::moderated::{KnownVariance, VariancePrior, variance_prior};
use crate::numbers::distribution::{student_quantile, student_two_sided};
use crate::numbers::order::{mean, median, variance};

/// What one start says: its log ratio, and the error that it is known with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartRatio {
    /// The log ratio.
    pub ratio: f64,
    /// Its standard error from within the start; `None` where the start is too short for one.
    pub within: Option<f64>,
}

/// An estimate over starts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverStarts {
    /// The log ratio.
    pub estimate: f64,
    /// Its standard error.
    pub error: f64,
    /// The degrees of freedom that the error is known with.
    pub degrees: f64,
    /// The two-sided p of "the log ratio is 0".
    pub p: f64,
}

impl OverStarts {
    /// `estimate ± t(degrees) error`, at this level of confidence.
    pub fn interval(&self, level: f64) -> Interval {
        let reach = student_quantile(0.5 + level / 2.0, self.degrees) * self.error;
        Interval {
            low: self.estimate - reach,
            high: self.estimate + reach,
            level,
        }
    }
}

/// How far the starts of one comparison lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartsVariance {
    /// The variance of what starts say.
    pub between: KnownVariance,
    /// The mean of the squared errors from within the starts; 0 where those are not known.
    pub within: f64,
}

impl StartsVariance {
    /// `None` for fewer than two starts.
    pub fn of(starts: &[StartRatio]) -> Option<Self> {
        let ratios: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
        let squares: Option<Vec<f64>> = starts
            .iter()
            .map(|start| start.within.map(|within| within * within))
            .collect();
        let within = squares.map_or(0.0, |squares| mean(&squares));
        (starts.len() >= 2).then(|| Self {
            between: KnownVariance {
                variance: variance(&ratios),
                degrees: ratios.len() as f64 - 1.0,
            },
            within,
        })
    }

    /// At least the variance within, because starts may agree by chance.
    fn floored(&self) -> KnownVariance {
        KnownVariance {
            variance: self.between.variance.max(self.within),
            ..self.between
        }
    }
}

/// What a class of comparisons knows of how far starts lie apart.
///
/// The variance of what starts say is expected to be `tau^2 + w^2`: what the class has in common,
/// and what the comparison's own turns say of a start's error. So one cell that stalls, whose
/// starts differ because each has a few stalls more or less, is not like the others, and is known
/// as well as they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartsPrior {
    /// `tau^2`.
    pub common: f64,
    /// Of the variances in units of what is expected.
    pub of_expected: VariancePrior,
}

impl StartsPrior {
    /// `tau^2` is the median of the variances between starts, each divided by the median of
    /// `chi^2(d) / d`, less the median of those within, and at least 0. `None` for too few
    /// comparisons, see [`variance_prior`].
    pub fn of_class(class: &[StartsVariance]) -> Option<Self> {
        let between = class.iter().map(|of| {
            // Wilson & Hilferty 1931.
            let median_of_chi = (1.0 - 2.0 / (9.0 * of.between.degrees)).powi(3);
            of.between.variance / median_of_chi
        });
        let between = median(&between.collect::<Vec<_>>())?;
        let within = median(&class.iter().map(|of| of.within).collect::<Vec<_>>())?;
        let common = (between - within).max(0.0);
        let in_expected: Vec<KnownVariance> = class
            .iter()
            .filter(|of| common + of.within > 0.0)
            .map(|of| of.between.times(1.0 / (common + of.within)))
            .collect();
        Some(Self {
            common,
            of_expected: variance_prior(&in_expected)?,
        })
    }

    /// The same where what the class has in common is `scale` times as large.
    pub fn with_common_times(self, scale: f64) -> Self {
        Self {
            common: scale * self.common,
            ..self
        }
    }

    fn moderated(&self, of: StartsVariance) -> KnownVariance {
        let expected = self.common + of.within;
        if expected <= 0.0 {
            return of.between;
        }
        let in_expected = of.between.times(1.0 / expected);
        in_expected
            .moderated(Some(self.of_expected))
            .times(expected)
    }
}

/// The estimate over `starts`, with what the class of comparisons knows of variances, `prior`.
///
/// With `S >= 2` starts: `estimate = mean(ratio_s)`, `error = sqrt(v / S)`, `p` from
/// `t(d) = estimate / error`, with `v` the variance between starts after moderation and `d` its
/// degrees of freedom; without a prior `v` is at least the variance within. The spread of the ratios holds both variances, between starts and within
/// them, so neither has to be known, and a longer start never hides that starts differ (Kalibera &
/// Jones 2013).
///
/// With one start the error is its own, with as many degrees of freedom as `batches` less one, and
/// holds for that start alone. `None` without either.
pub fn over_starts(
    starts: &[StartRatio],
    prior: Option<StartsPrior>,
    batches: usize,
) -> Option<OverStarts> {
    let estimate = mean(&starts.iter().map(|start| start.ratio).collect::<Vec<f64>>());
    let known = match starts {
        [] => return None,
        [one] => KnownVariance {
            variance: one.within?.powi(2),
            degrees: (batches as f64 - 1.0).max(1.0),
        },
        _ => {
            let of = StartsVariance::of(starts)?;
            prior.map_or_else(|| of.floored(), |prior| prior.moderated(of))
        }
    };
    let error = (known.variance / starts.len() as f64).sqrt();
    let p = match (error > 0.0, estimate == 0.0) {
        (true, _) => student_two_sided(estimate / error, known.degrees),
        (false, is_zero) => f64::from(u8::from(is_zero)),
    };
    Some(OverStarts {
        estimate,
        error,
        degrees: known.degrees,
        p,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    fn starts(ratios: &[f64], within: f64) -> Vec<StartRatio> {
        ratios
            .iter()
            .map(|&ratio| StartRatio {
                ratio,
                within: Some(within),
            })
            .collect()
    }

    #[test]
    fn a_start_counts_once() {
        // t(2) = 4.303, sd 0.1.
        let found = over_starts(&starts(&[-0.1, 0.0, 0.1], 1e-6), None, 8).unwrap();
        assert!(found.estimate.abs() < 1e-12);
        assert!((found.interval(0.95).high - 4.302_65 * 0.1 / 3f64.sqrt()).abs() < 1e-4);
        assert!(found.p > 0.99);
    }

    #[test]
    fn starts_that_agree_by_chance_are_no_surer_than_their_errors() {
        let found = over_starts(&starts(&[0.05, 0.05, 0.05], 0.01), None, 8).unwrap();
        assert!((found.error - 0.01 / 3f64.sqrt()).abs() < 1e-12);
        let exact = over_starts(&starts(&[0.05, 0.05], 0.0), None, 8).unwrap();
        assert_eq!((exact.p, exact.error), (0.0, 0.0));
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(over_starts(&[], None, 8), None);
        let short = StartRatio {
            ratio: 0.1,
            within: None,
        };
        assert_eq!(over_starts(&[short], None, 0), None);
        assert!(over_starts(&[short, short], None, 0).is_some());
        // One start has the interval of its own error: t(7) = 2.365.
        let one = over_starts(&starts(&[0.1], 0.01), None, 8).unwrap();
        assert!((one.interval(0.95).half_width() - 0.023_65).abs() < 1e-4);
    }

    /// Nineteen quiet comparisons and one whose starts differ because of what is within them.
    #[test]
    fn one_that_stalls_is_known_as_well_as_the_others() {
        let mut stream = Stream::new(9);
        let mut drawn = |within: f64| -> Vec<StartRatio> {
            let start = |_| StartRatio {
                ratio: within.hypot(0.005) * stream.normal(),
                within: Some(within),
            };
            (0..5).map(start).collect()
        };
        let (mut degrees, mut held) = (Vec::new(), 0);
        for _ in 0..400 {
            let mut class: Vec<Vec<StartRatio>> = (0..19).map(|_| drawn(0.005)).collect();
            class.push(drawn(0.05));
            let variances: Vec<StartsVariance> = class
                .iter()
                .filter_map(|starts| StartsVariance::of(starts))
                .collect();
            let prior = StartsPrior::of_class(&variances);
            let found = over_starts(&class[19], prior, 6).unwrap();
            degrees.push(found.degrees);
            held += usize::from(found.interval(0.95).holds(0.0));
        }
        assert!(median(&degrees).unwrap() > 10.0, "{:?}", median(&degrees));
        assert!((370..=390).contains(&held), "{held} of 400");
    }
}
