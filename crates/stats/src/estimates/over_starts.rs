//! A ratio over starts of the servers, each of which counts once.

use std::collections::BTreeMap;

use crate::estimates::estimate::Interval;
use crate::estimates::moderated::{KnownVariance, OUTLIER, VariancePrior, variance_prior};
use crate::numbers::distribution::{f_quantile, student_quantile, student_two_sided};
use crate::numbers::order::{mean, median, variance};

/// What one start says: its log ratio, and the error that it is known with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartRatio {
    /// The log ratio.
    pub ratio: f64,
    /// Its squared standard error from within the start; `None` where the start is too short for
    /// one.
    pub within: Option<KnownVariance>,
    /// Which load of the data it began with; any number if there is one only.
    pub load: u32,
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
    /// The variance of what starts with one load say, pooled over loads.
    pub between: KnownVariance,
    /// The mean of the squared errors from within the starts that know theirs; 0 if none does.
    pub within: KnownVariance,
    /// Whether it is of the means of loads.
    pub is_of_loads: bool,
    /// `None` with one load, and where each load counts once.
    pub loads: Option<LoadsVariance>,
}

/// What two or three loads of one comparison say of how far loads lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoadsVariance {
    /// What the variance between loads is estimated as, less than 0 by chance.
    pub estimate: f64,
    /// How many starts a load has, `n` of [`StartsVariance::of`].
    pub starts: f64,
    /// One less than there are loads.
    pub degrees: f64,
}

impl StartsVariance {
    /// From [`LOADS_AS_UNITS`] loads on of their means, `between` with `L - 1` degrees of freedom
    /// and `loads` as `None`. Else, with `n_l` starts of load `l` out of `S` starts and `L` loads: `between` is the mean square
    /// within loads, with `S - L` degrees of freedom, and `loads` is `(MS_L - MS) / n`, `n = (S -
    /// sum(n_l^2) / S) / (L - 1)`, of the mean squares between and within loads (one-way analysis
    /// of variance). If no load has two starts, loads are not told apart.
    ///
    /// `None` for fewer than two starts.
    pub fn of(starts: &[StartRatio]) -> Option<Self> {
        let starts = &units(starts)[..];
        let is_of_loads = has_a_load_each(starts);
        let ratios: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
        let squares = starts.iter().filter_map(|start| start.within);
        let within = KnownVariance::mean(squares).unwrap_or(KnownVariance {
            variance: 0.0,
            degrees: f64::INFINITY,
        });
        if starts.len() < 2 {
            return None;
        }
        let groups = by_load(starts);
        let degrees = starts.len() - groups.len();
        if groups.len() < 2 || degrees == 0 {
            return Some(Self {
                between: KnownVariance {
                    variance: variance(&ratios),
                    degrees: ratios.len() as f64 - 1.0,
                },
                within,
                is_of_loads,
                loads: None,
            });
        }
        let all = starts.len() as f64;
        let centre = mean(&ratios);
        let count = |group: &Vec<f64>| group.len() as f64;
        let inside: f64 = groups
            .iter()
            .filter(|group| group.len() > 1)
            .map(|group| variance(group) * (count(group) - 1.0))
            .sum();
        let outside: f64 = groups
            .iter()
            .map(|group| count(group) * (mean(group) - centre).powi(2))
            .sum();
        let apart = groups.len() as f64 - 1.0;
        let squares: f64 = groups.iter().map(|group| count(group).powi(2)).sum();
        let per_load = (all - squares / all) / apart;
        let inside = inside / degrees as f64;
        Some(Self {
            between: KnownVariance {
                variance: inside,
                degrees: degrees as f64,
            },
            within,
            is_of_loads,
            loads: Some(LoadsVariance {
                estimate: (outside / apart - inside) / per_load,
                starts: per_load,
                degrees: apart,
            }),
        })
    }

    /// How far starts lie apart, by `known`, `v` with `d` degrees, and by their turns, `w^2` with
    /// `f`. Where `v` is below `w^2` starts agree by chance: what they have in common is 0, and both
    /// are estimates of one variance. They are pooled with their degrees of freedom (Thompson 1962),
    /// those of the turns by the share that `v` lacks: `(d v + g w^2) / (d + g)` with `d + g`
    /// degrees, `g = f (1 - v / w^2)`. So an interval does not jump where starts begin to agree. `f`
    /// is at most [`MOST_OF_TURNS`].
    ///
    /// With one degree between starts, and turns that are known without error, `v` is `w^2`, with
    /// `d` degrees.
    fn with_turns(&self, known: KnownVariance) -> KnownVariance {
        let within = self.within;
        let lacking = 1.0 - known.variance / within.variance;
        // Neither where one of them is not a number.
        if !(within.variance > 0.0 && lacking > 0.0) {
            return known;
        }
        if self.between.degrees < LEAST_TO_POOL || within.degrees.is_infinite() {
            let variance = within.variance;
            return KnownVariance { variance, ..known };
        }
        known.with(VariancePrior {
            degrees: lacking * within.degrees.min(MOST_OF_TURNS),
            ..within
        })
    }

    /// The same where a ratio varies `scale` times as much.
    pub fn times(self, scale: f64) -> Self {
        Self {
            between: self.between.times(scale),
            within: self.within.times(scale),
            is_of_loads: self.is_of_loads,
            loads: self.loads.map(|loads| LoadsVariance {
                estimate: scale * loads.estimate,
                ..loads
            }),
        }
    }
}

/// From so many loads on a load counts once, however many starts begin with it: the spread of the
/// means of loads then has what loads differ by in it.
pub const LOADS_AS_UNITS: usize = 4;
/// So many degrees of freedom between starts are pooled with those of their turns: three starts of
/// one load, or of a load each.
const LEAST_TO_POOL: f64 = 2.0;
/// However many turns there are: those that resemble their neighbours say too little of a start's
/// error, and more of them no less so.
const MOST_OF_TURNS: f64 = 20.0;
/// A variance of means of loads that the class expects less often than this is left as it is: in
/// one test of PostgreSQL loads differ by 10 %, and in the one beside it by nothing that is seen.
const OUTLIER_OF_LOADS: f64 = 0.95;
/// A step whose loads the other steps expect less often than this to lie so far apart has a variance
/// between loads of its own.
const UNLIKE_THE_OTHERS: f64 = 0.9;
/// Starts of one load that lie further apart than the means of loads allow, less often than this by
/// chance, have something in common that loads have not.
const CONTRADICTION: f64 = 0.99;

/// What counts once: each start, or the mean of those that begin with one load.
fn units(starts: &[StartRatio]) -> Vec<StartRatio> {
    let mut groups: BTreeMap<u32, Vec<StartRatio>> = BTreeMap::new();
    for start in starts {
        groups.entry(start.load).or_default().push(*start);
    }
    if groups.len() < LOADS_AS_UNITS {
        return starts.to_vec();
    }
    let mean_of = |(load, group): (u32, Vec<StartRatio>)| {
        let count = group.len() as f64;
        let squares = group.iter().filter_map(|start| start.within);
        StartRatio {
            ratio: group.iter().map(|start| start.ratio).sum::<f64>() / count,
            within: KnownVariance::mean(squares).map(|of_starts| of_starts.times(1.0 / count)),
            load,
        }
    };
    groups.into_iter().map(mean_of).collect()
}

/// Whether there are several loads, and a load of its own for each of these. What they lie apart by
/// has what loads differ by in it.
fn has_a_load_each(units: &[StartRatio]) -> bool {
    units.len() > 1 && by_load(units).len() == units.len()
}

/// What the mean of a load's starts varies by, from these alone: the mean over loads of `variance /
/// n_l`. `None` where each start counts once, and if no load has two.
fn within_loads(starts: &[StartRatio]) -> Option<KnownVariance> {
    let loads = by_load(starts);
    if loads.len() < LOADS_AS_UNITS {
        return None;
    }
    let several: Vec<&Vec<f64>> = loads.iter().filter(|of| of.len() > 1).collect();
    let of_means = several.iter().map(|of| variance(of) / of.len() as f64);
    (!several.is_empty()).then(|| KnownVariance {
        variance: mean(&of_means.collect::<Vec<_>>()),
        degrees: several.iter().map(|of| of.len() as f64 - 1.0).sum(),
    })
}

/// How far means of loads lie apart, if their starts do not contradict it: with `F` of the two
/// variances above its 99 % quantile the starts changed alike with each load, and the greater
/// variance and the smaller degrees of freedom are believed.
fn not_below(of_means: KnownVariance, within: Option<KnownVariance>) -> KnownVariance {
    let contradicts = |within: &KnownVariance| {
        let most = f_quantile(CONTRADICTION, within.degrees, of_means.degrees);
        within.variance > most * of_means.variance
    };
    let change = within.filter(contradicts);
    change.map_or(of_means, |within| KnownVariance {
        variance: within.variance,
        degrees: within.degrees.min(of_means.degrees),
    })
}

/// The ratios of each load.
fn by_load(starts: &[StartRatio]) -> Vec<Vec<f64>> {
    let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for start in starts {
        groups.entry(start.load).or_default().push(start.ratio);
    }
    groups.into_values().collect()
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
    /// Of the variances in units of what is expected; `None` with too few comparisons.
    pub of_expected: Option<VariancePrior>,
    /// The variance between loads of the data, and the degrees of freedom that it is known with; 0
    /// with one load.
    pub of_loads: KnownVariance,
}

/// What loads of the data differ by: the mean over comparisons, at least 0. Each of two loads gives
/// half a degree of freedom, because comparisons have the base in common.
fn between_loads(of: &[StartsVariance]) -> KnownVariance {
    let loads = estimates_of_loads(of);
    KnownVariance {
        variance: match loads.is_empty() {
            true => 0.0,
            false => mean(&loads).max(0.0),
        },
        degrees: (loads.len() as f64 / 2.0).max(1.0),
    }
}

fn estimates_of_loads(of: &[StartsVariance]) -> Vec<f64> {
    of.iter()
        .filter_map(|of| Some(of.loads?.estimate))
        .collect()
}

impl StartsPrior {
    /// `tau^2` is the median of the variances between starts, each divided by the median of
    /// `chi^2(d) / d`, less the median of those within, and at least 0. The variance between loads
    /// is the mean over comparisons and at least 0; each of two loads gives it half a degree of
    /// freedom, because comparisons have the base in common. `None` without comparisons.
    pub fn of_class(class: &[StartsVariance]) -> Option<Self> {
        let between = class.iter().map(|of| {
            // Wilson & Hilferty 1931.
            let median_of_chi = (1.0 - 2.0 / (9.0 * of.between.degrees)).powi(3);
            of.between.variance / median_of_chi
        });
        let between = median(&between.collect::<Vec<_>>())?;
        let within = median(
            &class
                .iter()
                .map(|of| of.within.variance)
                .collect::<Vec<_>>(),
        )?;
        let common = (between - within).max(0.0);
        let in_expected: Vec<KnownVariance> = class
            .iter()
            .filter(|of| common + of.within.variance > 0.0)
            .map(|of| of.between.times(1.0 / (common + of.within.variance)))
            .collect();
        Some(Self {
            common,
            of_expected: variance_prior(&in_expected),
            of_loads: between_loads(class),
        })
    }

    /// The same for the comparisons of one step, `of_step`, where those of the other steps of the
    /// class are `others`, step by step. A step whose loads lie further apart than those of the
    /// others allow, less often than 10 % by chance, has a variance between loads of its own.
    ///
    /// A load's mean has the variance `v + e`, of loads and of the starts with it, and the mean over
    /// comparisons of what is seen of it is held against the step's own `e` and the median `v` of
    /// the other steps: several of them may have loads that differ. With `n` comparisons, the
    /// control among them, it is known with `n^2 / (n + (n - 1) (n - 2) / 9)` degrees of freedom
    /// for each load but the first, because cells have the base in common.
    pub fn with_loads(self, of_step: &[StartsVariance], others: &[Vec<StartsVariance>]) -> Self {
        let others: Vec<f64> = others
            .iter()
            .map(|of| estimates_of_loads(of))
            .filter(|of| !of.is_empty())
            .map(|of| mean(&of))
            .collect();
        let known: Vec<(StartsVariance, LoadsVariance)> = of_step
            .iter()
            .filter_map(|of| Some((*of, of.loads?)))
            .collect();
        let Some(of_others) = median(&others).filter(|_| !known.is_empty()) else {
            return self;
        };
        let count = known.len() as f64;
        let mean_of = |of: &dyn Fn(&(StartsVariance, LoadsVariance)) -> f64| {
            known.iter().map(of).sum::<f64>() / count
        };
        let seen = mean_of(&|(of, loads)| loads.estimate + of.between.variance / loads.starts);
        let moderated = |of: &StartsVariance| of.with_turns(self.moderated(*of));
        let of_starts = mean_of(&|(of, loads)| moderated(of).variance / loads.starts);
        let apart = mean_of(&|(_, loads)| loads.degrees);
        let seen = KnownVariance {
            variance: seen,
            degrees: apart * count * count / (count + (count - 1.0) * (count - 2.0) / 9.0),
        };
        let expected = KnownVariance {
            variance: of_others.max(0.0) + of_starts,
            degrees: mean_of(&|(of, _)| moderated(of).degrees),
        };
        if !seen.is_beyond(expected, UNLIKE_THE_OTHERS) {
            return self;
        }
        Self {
            of_loads: KnownVariance {
                variance: (seen.variance - of_starts).max(0.0),
                ..seen
            },
            ..self
        }
    }

    /// The same where what the class has in common is `scale` times as large.
    pub fn with_common_times(self, scale: f64) -> Self {
        Self {
            common: scale * self.common,
            of_loads: self.of_loads.times(scale),
            ..self
        }
    }

    /// How far starts lie apart, with what the class knows; by themselves where it knows nothing, and
    /// beyond what it expects.
    fn moderated(&self, of: StartsVariance) -> KnownVariance {
        let expected = self.common + of.within.variance;
        let Some(prior) = self.of_expected.filter(|_| expected > 0.0) else {
            return of.between;
        };
        let in_expected = of.between.times(1.0 / expected);
        let outlier = match of.is_of_loads {
            true => OUTLIER_OF_LOADS,
            false => OUTLIER,
        };
        if in_expected.is_beyond(prior, outlier) {
            return of.between;
        }
        let share = of.within.variance / expected;
        let known = VariancePrior {
            degrees: 1.0 / (1.0 / prior.degrees + share * share / of.within.degrees),
            ..prior
        };
        in_expected.with(known).times(expected)
    }

    /// The squared error that loads add to the mean of these starts: `v sum((n_l / S)^2)`.
    fn of_mean(&self, starts: &[StartRatio]) -> KnownVariance {
        let all = starts.len() as f64;
        let groups = by_load(starts);
        let shares = groups
            .iter()
            .map(|group| (group.len() as f64 / all).powi(2));
        self.of_loads.times(shares.sum())
    }
}

/// The estimate over `starts`, with what the class of comparisons knows of variances, `prior`.
///
/// With `S >= 2` starts: `estimate = mean(ratio_s)`, `error = sqrt(v / S)`, `p` from
/// `t(d) = estimate / error`, with `v` the variance between starts after moderation and `d` its
/// degrees of freedom. The spread of the ratios holds both variances, between starts and within
/// them, so a longer start never hides that starts differ (Kalibera & Jones 2013). Where it is
/// below the variance within, starts agree by chance, and their turns say how well they are known.
///
/// If the data was loaded more than once, what loads differ by adds to the error: two or three loads
/// by what the class knows of it, and from [`LOADS_AS_UNITS`] loads on because the mean of each load
/// counts once, in place of each start. If something changed from some start on, the means of loads
/// agree while their starts lie apart; where chance does not do that, the starts say how well means
/// are known.
///
/// With one start the error is its own, and holds for that start alone. `None` without either.
pub fn over_starts(starts: &[StartRatio], prior: Option<StartsPrior>) -> Option<OverStarts> {
    let within = within_loads(starts);
    let starts = &units(starts)[..];
    let estimate = mean(&starts.iter().map(|start| start.ratio).collect::<Vec<f64>>());
    let known = match starts {
        [] => return None,
        [one] => one.within?,
        _ => {
            let of = StartsVariance::of(starts)?;
            let known = prior.map_or(of.between, |prior| prior.moderated(of));
            of.with_turns(not_below(known, within))
        }
    };
    let of_starts = known.times(1.0 / starts.len() as f64);
    let of_loads = prior
        .filter(|_| !has_a_load_each(starts))
        .map(|prior| prior.of_mean(starts));
    let known = of_loads.map_or(of_starts, |of_loads| of_starts.plus(of_loads));
    let error = known.variance.sqrt();
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
                within: Some(KnownVariance::of_error(within, 7.0)),
                load: 1,
            })
            .collect()
    }

    #[test]
    fn a_start_counts_once() {
        // t(2) = 4.303, sd 0.1.
        let found = over_starts(&starts(&[-0.1, 0.0, 0.1], 1e-6), None).unwrap();
        assert!(found.estimate.abs() < 1e-12);
        assert!((found.interval(0.95).high - 4.302_65 * 0.1 / 3f64.sqrt()).abs() < 1e-4);
        assert!(found.p > 0.99);
    }

    /// Half of the starts of each load were at another level: the means of loads agree.
    #[test]
    fn loads_whose_starts_differ_alike_are_not_known_well() {
        let start = |number: u32| StartRatio {
            ratio: if number < 4 { 0.0 } else { -0.5 } + 0.001 * f64::from(number % 4),
            within: Some(KnownVariance::of_error(0.01, 5.0)),
            load: number % 4,
        };
        let all: Vec<StartRatio> = (0..8).map(start).collect();
        let found = over_starts(&all, None).unwrap();
        let interval = found.interval(0.95);
        assert!(interval.holds(0.0) && interval.holds(-0.5), "{interval:?}");
    }

    #[test]
    fn many_loads_count_once_each() {
        let of = |load: u32, ratio: f64| StartRatio {
            load,
            ..starts(&[ratio], 0.01)[0]
        };
        let ratios = [-0.03, -0.01, 0.01, 0.03];
        let once: Vec<StartRatio> = (1..).zip(ratios).map(|(load, r)| of(load, r)).collect();
        let again: Vec<StartRatio> = once.iter().chain(&once).chain(&once).copied().collect();
        let [of_once, of_again] = [&once, &again].map(|starts| over_starts(starts, None));
        let (once, again) = (of_once.unwrap(), of_again.unwrap());
        assert_eq!((once.degrees, again.degrees), (3.0, 3.0));
        assert!(
            (once.error - again.error).abs() < 1e-12,
            "loads differ, not starts"
        );
        let two: Vec<StartRatio> = (0..8)
            .map(|at| of(at % 2, ratios[at as usize % 4]))
            .collect();
        assert_eq!(over_starts(&two, None).unwrap().degrees, 6.0);
    }

    /// `update-index` of three starts, known within 1.6, 2.7 and 1.0 %, was +1.7 % [+0.1, +3.4] for
    /// two equal cells: tests that write are few and unlike each other, so the class said next to
    /// nothing.
    #[test]
    fn starts_that_agree_by_chance_are_no_surer_than_their_errors() {
        let agreeing = starts(&[0.018, 0.018, 0.018], 0.02);
        let of_class = StartsPrior {
            common: 0.0,
            of_expected: Some(known(1.0, 1.0)),
            of_loads: known(0.0, 1.0),
        };
        // Degrees of freedom: 2 between starts, what the class is worth, and of 3 x 7 within starts,
        // 20 at most, the share of their variance that the others lack.
        for (prior, class) in [(None, 0.0), (Some(of_class), 1.0 / (1.0 + 1.0 / 21.0))] {
            let found = over_starts(&agreeing, prior).unwrap();
            let turns = MOST_OF_TURNS * 2.0 / (2.0 + class);
            let variance = 4e-4 * (class + turns) / (2.0 + class + turns);
            assert!(is_near(found.error.powi(2), variance / 3.0), "{found:?}");
            assert!(is_near(found.degrees, 2.0 + class + turns), "{found:?}");
            assert!(found.interval(0.95).holds(0.0), "{found:?}");
        }
        // What starts have in common is left alone.
        let apart = over_starts(&starts(&[0.0, 0.05, 0.1], 0.02), None).unwrap();
        assert_eq!(apart.degrees, 2.0);
        let exact = over_starts(&starts(&[0.05, 0.05], 0.0), None).unwrap();
        assert_eq!((exact.p, exact.error), (0.0, 0.0));
    }

    /// One degree of freedom between starts is too few to be pooled, whatever the class is worth.
    #[test]
    fn two_starts_have_the_error_of_their_turns_as_the_least() {
        let two = over_starts(&starts(&[0.018, 0.018], 0.02), None).unwrap();
        assert_eq!(two.degrees, 1.0);
        assert!(is_near(two.error.powi(2), 2e-4), "{two:?}");
        let prior = StartsPrior {
            common: 0.0,
            of_expected: Some(known(0.5, 20.0)),
            of_loads: known(0.0, 1.0),
        };
        let of = StartsVariance {
            between: known(2e-5, 1.0),
            ..three_starts(0.0)
        };
        let found = of.with_turns(prior.moderated(of));
        assert!(is_near(found.variance, 1e-4), "{found:?}");
        let worth = 1.0 / (1.0 / 20.0 + 1.0 / 9.0);
        assert!(is_near(found.degrees, 1.0 + worth), "{found:?}");
    }

    /// A mean over many tests has hundreds of degrees of freedom from turns.
    #[test]
    fn many_turns_do_not_outvote_starts_at_once() {
        let of = StartsVariance {
            within: known(1e-4, 330.0),
            ..three_starts(0.95e-4)
        };
        let found = of.with_turns(of.between);
        assert!(
            is_near(found.degrees, 2.0 + 0.05 * MOST_OF_TURNS),
            "{found:?}"
        );
    }

    /// The error of a profile's samples is taken for known. Pooled with it a variance would not be a
    /// number, and the quantile of such a t would never come.
    #[test]
    fn turns_that_are_known_without_error_are_the_least_and_nothing_else() {
        let start = |ratio| StartRatio {
            ratio,
            within: Some(known(4e-4, f64::INFINITY)),
            load: 1,
        };
        let prior = StartsPrior {
            common: 0.0,
            of_expected: Some(known(0.5, 10.0)),
            of_loads: known(0.0, 1.0),
        };
        for (prior, degrees) in [(None, 2.0), (Some(prior), 12.0)] {
            let found = over_starts(&[start(0.010), start(0.011), start(0.012)], prior).unwrap();
            assert!(is_near(found.error.powi(2), 4e-4 / 3.0), "{found:?}");
            assert!(
                is_near(found.degrees, degrees) && found.p > 0.3,
                "{found:?}"
            );
        }
    }

    /// Starts that spread by a little less than their turns say would have an interval half as wide.
    #[test]
    fn an_interval_does_not_jump_where_starts_begin_to_agree() {
        let reach = |spread: f64| {
            let ratios = [-spread, 0.0, spread];
            over_starts(&starts(&ratios, 0.02), None)
                .unwrap()
                .interval(0.95)
                .half_width()
        };
        let (above, below) = (reach(0.02001), reach(0.01999));
        assert!((above / below - 1.0).abs() < 0.03, "{above} {below}");
        assert!(reach(0.015) < 0.8 * below && reach(0.0) < reach(0.01));
    }

    /// One that its class does not expect, and that is below what its turns say, was left as it was.
    #[test]
    fn an_outlier_of_a_class_that_agrees_is_pooled_too() {
        let prior = StartsPrior {
            common: 0.0,
            of_expected: Some(known(0.1, 20.0)),
            of_loads: known(0.0, 1.0),
        };
        let of = three_starts(7e-5);
        assert_eq!(prior.moderated(of), of.between, "beyond the class");
        let found = of.with_turns(prior.moderated(of));
        let turns = 0.3 * 9.0;
        let variance = (2.0 * 7e-5 + turns * 1e-4) / (2.0 + turns);
        assert!(is_near(found.variance, variance), "{found:?}");
        assert!(is_near(found.degrees, 2.0 + turns), "{found:?}");
    }

    /// Also where rounds resemble their neighbours, and starts vary more than their turns say. With the
    /// variance within as the least, and two degrees of freedom, nearly all of them would hold.
    #[test]
    fn intervals_of_starts_and_their_turns_hold() {
        let mut stream = Stream::new(3);
        for (spread, width) in [(1.0f64, 2.08), (1.6, 2.67), (2.5, 3.39)] {
            let mut start = |_| StartRatio {
                ratio: spread.sqrt() * stream.normal(),
                within: Some(known(
                    (0..5).map(|_| stream.normal().powi(2)).sum::<f64>() / 5.0,
                    5.0,
                )),
                load: 1,
            };
            let intervals: Vec<Interval> = (0..4000)
                .map(|_| {
                    let starts: Vec<StartRatio> = (0..3).map(&mut start).collect();
                    over_starts(&starts, None).unwrap().interval(0.95)
                })
                .collect();
            let held = intervals.iter().filter(|interval| interval.holds(0.0));
            let held = held.count() as f64 / 4000.0;
            assert!((0.94..0.985).contains(&held), "{spread}: {held}");
            let widths: Vec<f64> = intervals.iter().map(Interval::half_width).collect();
            let found = mean(&widths);
            assert!((found / width - 1.0).abs() < 0.03, "{spread}: {found}");
        }
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(over_starts(&[], None), None);
        let short = StartRatio {
            ratio: 0.1,
            within: None,
            load: 1,
        };
        assert_eq!(over_starts(&[short], None), None);
        assert!(over_starts(&[short, short], None).is_some());
        // One start has the interval of its own error: t(7) = 2.365.
        let one = over_starts(&starts(&[0.1], 0.01), None).unwrap();
        assert!((one.interval(0.95).half_width() - 0.023_65).abs() < 1e-4);
    }

    /// Where turns say most of an error the prior is worth less, which made room for two modes.
    #[test]
    fn two_modes_are_not_narrowed_where_turns_say_most() {
        let prior = StartsPrior {
            common: 0.0,
            of_expected: Some(known(1.0, 20.0)),
            of_loads: known(0.0, 1.0),
        };
        // F(0.99; 2, 20) = 5.85.
        assert_eq!(prior.moderated(three_starts(8e-4)), known(8e-4, 2.0));
        let usual = prior.moderated(three_starts(2e-4));
        let worth = 1.0 / (1.0 / 20.0 + 1.0 / 9.0);
        assert!((usual.degrees - (2.0 + worth)).abs() < 1e-9, "{usual:?}");
    }

    #[test]
    fn a_short_start_leaves_its_load_the_error_of_the_others() {
        let start = |number: u32| StartRatio {
            within: (number >= 4).then(|| KnownVariance::of_error(0.01, 7.0)),
            load: number % 4,
            ratio: 0.001 * f64::from(number),
        };
        let all: Vec<StartRatio> = (0..8).map(start).collect();
        let of = StartsVariance::of(&all).unwrap();
        assert!((of.within.variance - 1e-4 / 2.0).abs() < 1e-12, "{of:?}");
    }

    #[test]
    fn a_step_whose_loads_differ_more_has_them_of_its_own() {
        let of = |estimate: f64| StartsVariance {
            between: KnownVariance {
                variance: 1e-4,
                degrees: 1.0,
            },
            within: KnownVariance {
                variance: 1e-5,
                degrees: 9.0,
            },
            is_of_loads: false,
            loads: Some(LoadsVariance {
                estimate,
                starts: 1.0,
                degrees: 1.0,
            }),
        };
        let step = |estimate: f64| vec![of(estimate); 3];
        let others = [-1e-5, 1e-5, 2e-5, -1e-5, 1e-5, 0.0].map(step);
        let of_loads = |own: f64, others: &[Vec<StartsVariance>]| {
            let all = [&[step(own)], others].concat().concat();
            let class = StartsPrior::of_class(&all).unwrap();
            let own = class.with_loads(&step(own), others).of_loads;
            (class.of_loads, own)
        };
        let (of_class, own) = of_loads(1e-4, &others);
        assert_eq!(own, of_class);
        let (of_class, own) = of_loads(2e-3, &others);
        assert!(own.variance > 2.0 * of_class.variance, "{own:?}");
        assert!(
            (own.degrees - 9.0 / (3.0 + 2.0 / 9.0)).abs() < 1e-9,
            "{own:?}"
        );
        // One of the others is like it, and does not hide it.
        let with_one = [&others[..], &[step(2e-3)]].concat();
        let (_, next_to_one) = of_loads(2e-3, &with_one);
        assert!((next_to_one.variance - own.variance).abs() < 1e-12);
        // With nothing to compare it with it is one of the class.
        let (of_class, own) = of_loads(2e-3, &[]);
        assert_eq!(own, of_class);
    }

    /// If each load counts once, what loads differ by is in the spread of their means.
    #[test]
    fn loads_are_not_counted_twice() {
        let all: Vec<StartRatio> = (0..4)
            .map(|load| StartRatio {
                ratio: 0.01 * f64::from(load),
                within: Some(KnownVariance::of_error(0.001, 9.0)),
                load,
            })
            .collect();
        let prior = |variance: f64| StartsPrior {
            common: 1e-4,
            of_expected: None,
            of_loads: KnownVariance {
                variance,
                degrees: 1.0,
            },
        };
        for count in [3, 4] {
            let of = |variance| over_starts(&all[..count], Some(prior(variance)));
            assert_eq!(of(4e-4), of(0.0), "{count} loads");
        }
    }

    /// Nineteen quiet comparisons and one whose starts differ because of what is within them.
    #[test]
    fn one_that_stalls_is_known_as_well_as_the_others() {
        let mut stream = Stream::new(9);
        let mut drawn = |within: f64| -> Vec<StartRatio> {
            let start = |_| StartRatio {
                ratio: within.hypot(0.005) * stream.normal(),
                within: Some(KnownVariance::of_error(within, 5.0)),
                load: 1,
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
            let found = over_starts(&class[19], prior).unwrap();
            degrees.push(found.degrees);
            held += usize::from(found.interval(0.95).holds(0.0));
        }
        assert!(median(&degrees).unwrap() > 10.0, "{:?}", median(&degrees));
        assert!((370..=390).contains(&held), "{held} of 400");
    }

    #[test]
    fn what_a_class_has_in_common_is_scaled_and_nothing_else() {
        let of_expected = Some(VariancePrior {
            variance: 1.1,
            degrees: 9.0,
        });
        let prior = |common, variance| StartsPrior {
            common,
            of_expected,
            of_loads: KnownVariance {
                variance,
                degrees: 5.0,
            },
        };
        assert_eq!(prior(3.0, 5.0).with_common_times(2.0), prior(6.0, 10.0));
    }

    fn known(variance: f64, degrees: f64) -> KnownVariance {
        KnownVariance { variance, degrees }
    }

    /// Three starts of one load that lie so far apart, each known with a squared error of `1e-4`.
    fn three_starts(between: f64) -> StartsVariance {
        StartsVariance {
            between: known(between, 2.0),
            within: known(1e-4, 9.0),
            is_of_loads: false,
            loads: None,
        }
    }

    fn is_near(found: f64, expected: f64) -> bool {
        (found - expected).abs() < 1e-9 * expected.abs().max(1.0)
    }

    /// Starts of these loads, each known with the squared errors `1e-4` and 9 degrees of freedom.
    fn of_loads(loads: &[&[f64]]) -> Vec<StartRatio> {
        let of = |(load, ratios): (u32, &&[f64])| {
            let start = move |ratio: &f64| StartRatio {
                ratio: *ratio,
                within: Some(known(1e-4, 9.0)),
                load,
            };
            ratios.iter().map(start).collect::<Vec<_>>()
        };
        (1..).zip(loads).flat_map(of).collect()
    }

    /// By hand: mean squares 0.001 / 3 within loads and 0.0593 / 2 between them, n = (6 - 14 / 6) / 2.
    #[test]
    fn loads_with_unequal_numbers_of_starts_are_an_analysis_of_variance() {
        let starts = of_loads(&[&[0.0, 0.02, 0.04], &[0.1, 0.12], &[0.3]]);
        let of = StartsVariance::of(&starts).unwrap();
        assert!(is_near(of.between.variance, 0.001 / 3.0), "{of:?}");
        assert_eq!(of.between.degrees, 3.0);
        let loads = of.loads.unwrap();
        assert!(is_near(loads.estimate, 0.016), "{loads:?}");
        assert!(is_near(loads.starts, 11.0 / 6.0), "{loads:?}");
        assert_eq!((loads.degrees, of.is_of_loads), (2.0, false));
        assert!(is_near(of.within.variance, 1e-4), "{of:?}");
        let scaled = of.times(4.0);
        assert_eq!(scaled.between, of.between.times(4.0));
        assert_eq!(scaled.within, of.within.times(4.0));
        let of_scaled = scaled.loads.unwrap();
        assert!(is_near(of_scaled.estimate, 0.064), "{of_scaled:?}");
        assert_eq!((of_scaled.starts, of_scaled.degrees), (loads.starts, 2.0));
    }

    #[test]
    fn what_starts_of_a_load_say_of_its_mean() {
        let four: [&[f64]; 4] = [&[0.0, 0.02], &[0.1, 0.14], &[0.3], &[0.2]];
        let found = within_loads(&of_loads(&four)).unwrap();
        // Variances 0.0002 and 0.0008 of two starts each.
        assert!(is_near(found.variance, 2.5e-4), "{found:?}");
        assert_eq!(found.degrees, 2.0);
        assert_eq!(within_loads(&of_loads(&four[..3])), None, "starts count");
        let once: [&[f64]; 4] = [&[0.0], &[0.1], &[0.3], &[0.2]];
        assert_eq!(within_loads(&of_loads(&once)), None, "no load has two");
        assert!(has_a_load_each(&of_loads(&once)));
        assert!(!has_a_load_each(&of_loads(&four)) && !has_a_load_each(&of_loads(&once[..1])));
    }

    /// t(2) = 2 sqrt(3), two-sided p = 1 - t / sqrt(2 + t^2).
    #[test]
    fn the_p_is_that_of_students_t() {
        let found = over_starts(&starts(&[0.1, 0.2, 0.3], 1e-6), None).unwrap();
        let t = 12f64.sqrt();
        assert!(
            is_near(found.p, 1.0 - t / (2.0 + t * t).sqrt()),
            "{found:?}"
        );
        // Two starts with the first load, one with the second: 9e-4 (4 / 9 + 1 / 9) is added.
        let prior = StartsPrior {
            common: 0.0,
            of_expected: None,
            of_loads: known(9e-4, 3.0),
        };
        let two = of_loads(&[&[0.1, 0.3], &[0.2]]);
        let found = over_starts(&two, Some(prior)).unwrap();
        // Within loads 0.02, one degree of freedom.
        assert!(
            is_near(found.error * found.error, 0.02 / 3.0 + 5e-4),
            "{found:?}"
        );
    }

    #[test]
    fn a_class_has_the_median_of_its_variances_in_common() {
        let of = |between: f64, estimate: f64| StartsVariance {
            between: known(between, 4.0),
            within: known(5e-5, 9.0),
            is_of_loads: false,
            loads: Some(LoadsVariance {
                estimate,
                starts: 2.0,
                degrees: 1.0,
            }),
        };
        let class = [1e-4, 2e-4, 3e-4].map(|between| of(between, between));
        let prior = StartsPrior::of_class(&class).unwrap();
        // chi^2(4) / 4 has the median (1 - 2 / 36)^3, by Wilson and Hilferty.
        let median_of_chi = (17.0f64 / 18.0).powi(3);
        assert!(
            is_near(prior.common, 2e-4 / median_of_chi - 5e-5),
            "{prior:?}"
        );
        assert_eq!(prior.of_expected, None, "three are too few");
        assert_eq!(prior.of_loads.degrees, 1.5);
        assert!(is_near(prior.of_loads.variance, 2e-4), "{prior:?}");
        let many: Vec<StartsVariance> = (1..=8)
            .map(|number| of(1e-4 * f64::from(number), -1e-4))
            .collect();
        let prior = StartsPrior::of_class(&many).unwrap();
        assert_eq!(
            prior.of_loads,
            known(0.0, 4.0),
            "less than nothing by chance"
        );
        let expected = prior.common + 5e-5;
        let in_expected: Vec<KnownVariance> = many
            .iter()
            .map(|of| known(of.between.variance / expected, 4.0))
            .collect();
        let of_expected = (
            prior.of_expected.unwrap(),
            variance_prior(&in_expected).unwrap(),
        );
        assert!(
            is_near(of_expected.0.variance, of_expected.1.variance),
            "{of_expected:?}"
        );
    }

    /// Four comparisons, loads of two degrees of freedom and two starts each.
    #[test]
    fn loads_of_a_step_by_hand() {
        let of = |estimate: f64| StartsVariance {
            between: known(1e-4, 4.0),
            within: known(0.0, 9.0),
            is_of_loads: false,
            loads: Some(LoadsVariance {
                estimate,
                starts: 2.0,
                degrees: 2.0,
            }),
        };
        let class = StartsPrior {
            common: 0.0,
            of_expected: None,
            of_loads: known(7e-6, 3.0),
        };
        let step = [1e-3, 3e-3, 1e-3, 3e-3].map(of);
        let others = [vec![of(0.0)], vec![of(0.0)]];
        let found = class.with_loads(&step, &others).of_loads;
        assert!(is_near(found.variance, 2e-3), "{found:?}");
        // 2 x 16 / (4 + 3 x 2 / 9).
        assert!(
            is_near(found.degrees, 32.0 / (4.0 + 2.0 / 3.0)),
            "{found:?}"
        );
        // Others whose loads lie as far apart.
        let others = [vec![of(2e-3)], vec![of(2e-3)]];
        assert_eq!(class.with_loads(&step, &others), class);
    }

    #[test]
    fn what_turns_say_counts_with_its_share_of_what_is_expected() {
        let prior = StartsPrior {
            common: 1e-4,
            of_expected: Some(known(1.0, 20.0)),
            of_loads: known(0.0, 1.0),
        };
        let found = prior.moderated(three_starts(2e-4));
        // Half of what is expected: 1 / (1 / 20 + 0.25 / 9).
        let worth = 1.0 / (0.05 + 0.25 / 9.0);
        assert!(is_near(found.degrees, 2.0 + worth), "{found:?}");
        assert!(is_near(found.variance, 2e-4), "{found:?}");
    }
}
