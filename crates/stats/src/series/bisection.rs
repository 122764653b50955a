//! Between which builds the level of a series changes, from noisy probes of few of them.

use crate::estimates::estimate::Interval;
use crate::numbers::distribution::student_quantile;
use crate::series::step_function::{Gap, Runs, gradual, wobble};

/// What measuring a build showed, as a log ratio against the good build.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Evidence {
    /// The estimate of ln(build / good).
    pub log_ratio: f64,
    /// Its standard error, at least 0.
    pub error: f64,
}

/// A build that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Which one, from 1 to the last, the bad one.
    pub build: usize,
    /// What was measured.
    pub evidence: Evidence,
    /// How many campaigns measured it.
    pub campaigns: usize,
}

/// The levels of builds `0..=n`, of which 0 is the good one and `n` the bad one.
///
/// Levels are a step function of the build: the good build's is 0, and each build has the level of
/// the one before it, or another one, up or down. What follows is exact for this model (the
/// recursions of Barry & Hartigan 1992 and Fearnhead 2006 over the builds that were measured):
///
/// - A build begins a new level with prior odds of `rho = 1 / (8 n)`, given that at least one does:
///   one step is most likely, and it is anywhere with equal probability.
/// - A level is normal around half of the bad build's with the bad build's as standard deviation,
///   and a measured build is normal around its level with its own error, and `w`: builds of one
///   level differ by 0.25 %, at most by a twentieth of what the bad build differs.
/// - Between two measured builds only one step can be seen; it is at each build with equal
///   probability.
/// - With a prior of 5 % there are no steps at all: the level of build `b` is normal around `b / n`
///   of the bad build's, with a twentieth of that as standard deviation. Three builds between good
///   and bad have to be measured before this is looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Bisection {
    last: usize,
    /// In order; the last one is the bad build.
    measured: Vec<Measured>,
    /// Up to each measured build, the good one left out, from the one before it.
    gaps: Vec<Gap>,
    /// The probability that there are no steps, because the change is even over all builds.
    gradual: f64,
}

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The last build that has the old level.
    pub before: usize,
    /// The new level begins at one of the builds from the one after `before` to this one.
    pub last: usize,
    /// The probability that there is a step among them.
    pub probability: f64,
    /// ln(new level / old level).
    pub size: Evidence,
    /// Whether nothing that could be probed keeps them apart.
    pub is_located: bool,
}

impl Step {
    /// `ln(new / old) ± t(degrees) error`, at this level of confidence.
    pub fn interval(&self, degrees: f64, level: f64) -> Interval {
        let reach = student_quantile(0.5 + level / 2.0, degrees) * self.size.error;
        Interval {
            low: self.size.log_ratio - reach,
            high: self.size.log_ratio + reach,
            level,
        }
    }
}

/// Builds of one level that lie next to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// The first of them that was measured; 0 is the good one.
    pub first: usize,
    /// The last of them that was measured.
    pub last: usize,
    /// ln(level / good): the mean over measured builds, weighted by `1 / error^2`.
    pub evidence: Evidence,
    /// Campaigns that measured it.
    pub campaigns: usize,
}

/// A build that is half a step away from both ends is told from them if the step is as many of its
/// errors: three to each side. Then its own error is not the limit.
const ERRORS_PER_STEP: f64 = 6.0;

impl Bisection {
    /// The probability that is enough to say something.
    pub const ENOUGH: f64 = 0.95;

    /// What is known of builds `1..=n` from what was measured, in any order. The bad build, `n`, is
    /// one of those.
    pub fn new(n: usize, measured: &[Measured]) -> Self {
        let mut measured = measured.to_vec();
        measured.sort_by_key(|of| of.build);
        let (gaps, steps) = Runs::new(n, &measured).gaps(&measured);
        let gradual = gradual(n, &measured, steps);
        Self {
            last: n,
            measured,
            gaps,
            gradual,
        }
    }

    /// The probability that the level changes at each of the builds `1..=n`. They add up to the
    /// number of steps.
    pub fn posterior(&self) -> Vec<f64> {
        let share = |gap: &Gap| {
            let builds = gap.last - gap.before;
            vec![gap.probability / builds as f64; builds]
        };
        self.gaps.iter().flat_map(share).collect()
    }

    /// What was measured, in the order of builds.
    pub fn measured(&self) -> &[Measured] {
        &self.measured
    }

    /// The steps that are there with a probability of [`Self::ENOUGH`], each among as few builds as
    /// is known, in the order of builds.
    pub fn steps(&self, cannot_be_probed: &[usize]) -> Vec<Step> {
        let mut unions = Vec::new();
        self.add_unions(0..self.gaps.len(), &mut unions);
        unions.sort_by_key(|union: &std::ops::Range<usize>| union.start);
        let levels = self.levels_between(&unions);
        let step = |(index, union): (usize, &std::ops::Range<usize>)| {
            let (before, last) = self.builds_of(union);
            let (old, new) = (levels[index].evidence, levels[index + 1].evidence);
            Step {
                before,
                last,
                probability: self.mass(union).min(1.0),
                size: Evidence {
                    log_ratio: new.log_ratio - old.log_ratio,
                    error: new.error.hypot(old.error),
                },
                is_located: union.len() == 1
                    && (before + 1..last).all(|build| cannot_be_probed.contains(&build)),
            }
        };
        unions.iter().enumerate().map(step).collect()
    }

    /// The levels between the steps, from that of the good build to that of the bad one.
    pub fn levels(&self, steps: &[Step]) -> Vec<Level> {
        let index = |build: usize| self.gaps.iter().position(|gap| gap.before == build);
        let end = |build: usize| self.gaps.iter().position(|gap| gap.last == build);
        let unions: Vec<std::ops::Range<usize>> = steps
            .iter()
            .filter_map(|step| Some(index(step.before)?..end(step.last)? + 1))
            .collect();
        self.levels_between(&unions)
    }

    /// The probability that there is a step beyond those.
    pub fn rest(&self, steps: &[Step]) -> f64 {
        self.outside(steps).map(|gap| gap.probability).sum()
    }

    /// Whether all is known: every step is located, another one is unlikely, a gradual change is,
    /// too, and no level between good and bad rests on a single campaign.
    pub fn is_done(&self, cannot_be_probed: &[usize]) -> bool {
        let steps = self.steps(cannot_be_probed);
        !steps.is_empty()
            && steps.iter().all(|step| step.is_located)
            && self.rest(&steps).max(self.gradual) <= 1.0 - Self::ENOUGH
            && self.seen_once(&steps).is_none()
    }

    /// The probability that the change is even over all builds, and there are no steps.
    pub fn gradual(&self) -> f64 {
        self.gradual
    }

    /// Whether more of a build would hardly change what is known of it: it is on the level of the
    /// measured build before it or it is not, and so with the one behind it.
    pub fn is_settled(&self, build: usize) -> bool {
        let mut beside = self
            .gaps
            .iter()
            .filter(|gap| gap.before == build || gap.last == build);
        beside.all(|gap| gap.probability.max(1.0 - gap.probability) >= Self::ENOUGH)
    }

    /// The build to probe next. `None` when only more of the good and the bad build could help, or
    /// nothing.
    ///
    /// 1. Of the steps that are not located, the largest: the build that halves its probability. One
    ///    that was measured is measured again only while its own error is the limit.
    /// 2. Else the gap that most probably has another step in it.
    /// 3. Else a level between good and bad that a single campaign has seen.
    pub fn next_probe(&self, cannot_be_probed: &[usize]) -> Option<usize> {
        let steps = self.steps(cannot_be_probed);
        let mut open: Vec<&Step> = steps.iter().filter(|step| !step.is_located).collect();
        let size = |step: &Step| step.size.log_ratio.abs();
        open.sort_by(|a, b| size(b).total_cmp(&size(a)));
        let halving = |step: &&Step| self.halving(step, cannot_be_probed);
        if let Some(build) = open.iter().find_map(halving) {
            return Some(build);
        }
        if self.rest(&steps) > 1.0 - Self::ENOUGH {
            let likeliest = self
                .outside(&steps)
                .max_by(|a, b| a.probability.total_cmp(&b.probability));
            let found = likeliest.and_then(|gap| {
                self.middle(gap, cannot_be_probed)
                    .or_else(|| self.less_known(gap))
            });
            if found.is_some() {
                return found;
            }
        }
        self.seen_once(&steps)
            .filter(|build| !cannot_be_probed.contains(build))
    }

    /// How many probes a search needs if each halves what is left: one for each halving of the
    /// builds of a step that is not located, and one for each level that a single campaign has seen.
    pub fn probes_left(&self, cannot_be_probed: &[usize]) -> usize {
        let steps = self.steps(cannot_be_probed);
        let halvings = |step: &Step| {
            (step.last - step.before)
                .next_power_of_two()
                .trailing_zeros()
                .max(1) as usize
        };
        let open: usize = steps
            .iter()
            .filter(|step| !step.is_located)
            .map(halvings)
            .sum();
        let is_unsure = self.rest(&steps) > 1.0 - Self::ENOUGH || self.seen_once(&steps).is_some();
        open.max(usize::from(is_unsure))
    }

    /// The build that halves the probability of a step. One that was measured is taken while its own
    /// error is the limit, see [`ERRORS_PER_STEP`].
    fn halving(&self, step: &Step, cannot_be_probed: &[usize]) -> Option<usize> {
        let posterior = self.posterior();
        let half = posterior[step.before..step.last].iter().sum::<f64>() / 2.0;
        let most_error = step.size.log_ratio.abs() / ERRORS_PER_STEP;
        let mut below = 0.0;
        let mut between: Vec<(usize, f64)> = Vec::new();
        for build in step.before + 1..step.last {
            below += posterior[build - 1];
            let can_be_probed = !cannot_be_probed.contains(&build)
                && self
                    .error_of(build)
                    .is_none_or(|error| error > most_error.max(self.wobble()));
            between.extend(can_be_probed.then_some((build, (below - half).abs())));
        }
        between
            .into_iter()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(build, _)| build)
    }

    /// The build nearest to the middle of a gap.
    fn middle(&self, gap: &Gap, cannot_be_probed: &[usize]) -> Option<usize> {
        let middle = (gap.before + gap.last) / 2;
        (gap.before + 1..gap.last)
            .filter(|build| !cannot_be_probed.contains(build))
            .min_by_key(|build| build.abs_diff(middle))
    }

    fn error_of(&self, build: usize) -> Option<f64> {
        let known = self.measured.iter().find(|of| of.build == build);
        known.map(|of| of.evidence.error)
    }

    fn wobble(&self) -> f64 {
        wobble(&self.measured)
    }

    /// Of the two builds that a gap lies between, the one with the larger error, as long as that is
    /// the limit. Neither good nor bad: those are in each campaign.
    fn less_known(&self, gap: &Gap) -> Option<usize> {
        let ends = self
            .measured
            .iter()
            .filter(|of| of.build != self.last && [gap.before, gap.last].contains(&of.build));
        ends.max_by(|a, b| a.evidence.error.total_cmp(&b.evidence.error))
            .map(|of| of.build)
            .filter(|build| self.error_of(*build) > Some(self.wobble()))
    }

    /// The first build of a level between good and bad that one campaign alone has seen.
    fn seen_once(&self, steps: &[Step]) -> Option<usize> {
        let levels = self.levels(steps);
        let inner = levels.get(1..levels.len().saturating_sub(1))?;
        inner
            .iter()
            .find(|level| level.campaigns == 1)
            .map(|level| level.first)
    }

    /// Whether a level between good and bad rests on a single campaign.
    pub fn has_level_seen_once(&self, steps: &[Step]) -> bool {
        self.seen_once(steps).is_some()
    }

    fn outside<'a>(&'a self, steps: &'a [Step]) -> impl Iterator<Item = &'a Gap> {
        let is_outside = |gap: &&Gap| {
            !steps
                .iter()
                .any(|step| step.before <= gap.before && gap.last <= step.last)
        };
        self.gaps.iter().filter(is_outside)
    }

    fn mass(&self, union: &std::ops::Range<usize>) -> f64 {
        self.gaps[union.clone()]
            .iter()
            .map(|gap| gap.probability)
            .sum()
    }

    fn builds_of(&self, union: &std::ops::Range<usize>) -> (usize, usize) {
        (self.gaps[union.start].before, self.gaps[union.end - 1].last)
    }

    /// The shortest runs of gaps that hold a step with enough probability, none in another.
    fn add_unions(&self, within: std::ops::Range<usize>, unions: &mut Vec<std::ops::Range<usize>>) {
        // A gap that is certain by itself comes first, however long: next to it a shorter run may
        // have a part of its probability and that of chance.
        let all = within.clone().flat_map(|start| {
            let end = within.end;
            (start + 1..=end).map(move |end| start..end)
        });
        let shortest = all
            .filter(|union| self.mass(union) >= Self::ENOUGH)
            .min_by_key(|union| {
                let (before, last) = self.builds_of(union);
                (union.len(), last - before)
            });
        if let Some(union) = shortest {
            self.add_unions(within.start..union.start, unions);
            self.add_unions(union.end..within.end, unions);
            unions.push(union);
        }
    }

    /// One level more than unions. Builds within a union belong to none.
    fn levels_between(&self, unions: &[std::ops::Range<usize>]) -> Vec<Level> {
        // Gap i ends at measured build i; the good build is before all of them.
        let starts = [0].into_iter().chain(unions.iter().map(|union| union.end));
        let ends = unions
            .iter()
            .map(|union| union.start)
            .chain([self.gaps.len()]);
        starts
            .zip(ends)
            .map(|(start, end)| self.level(start, end))
            .collect()
    }

    /// The level of the builds at the ends of gaps `start - 1` to `end - 1`; of the good one if
    /// `start` is 0.
    fn level(&self, start: usize, end: usize) -> Level {
        let of_good = Level {
            first: 0,
            last: end.checked_sub(1).map_or(0, |gap| self.gaps[gap].last),
            evidence: Evidence {
                log_ratio: 0.0,
                error: 0.0,
            },
            campaigns: 0,
        };
        if start == 0 {
            return of_good;
        }
        let builds = &self.measured[start - 1..end];
        let weight = |of: &Measured| of.evidence.error.max(f64::MIN_POSITIVE.sqrt()).powi(-2);
        let sum: f64 = builds.iter().map(weight).sum();
        let weighted: f64 = builds
            .iter()
            .map(|of| weight(of) * of.evidence.log_ratio)
            .sum();
        Level {
            first: builds[0].build,
            last: builds[builds.len() - 1].build,
            evidence: Evidence {
                log_ratio: weighted / sum,
                error: sum.powf(-0.5),
            },
            campaigns: builds.iter().map(|of| of.campaigns).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(build: usize, log_ratio: f64, error: f64) -> Measured {
        Measured {
            build,
            evidence: Evidence { log_ratio, error },
            campaigns: 2,
        }
    }

    /// Builds with an error of 0.5 %, the bad one last.
    fn of(n: usize, levels: &[(usize, f64)]) -> Bisection {
        let all: Vec<Measured> = levels
            .iter()
            .map(|(build, level)| measured(*build, *level, 0.005))
            .collect();
        Bisection::new(n, &all)
    }

    #[test]
    fn at_first_the_middle_is_asked_about() {
        let search = of(8, &[(8, -0.1)]);
        assert_eq!(
            (search.next_probe(&[]), search.probes_left(&[])),
            (Some(4), 3)
        );
        assert!(search.posterior().iter().all(|p| (p - 0.125).abs() < 1e-12));
        assert_eq!(search.next_probe(&[4]), Some(3));
        let neighbours = of(1, &[(1, -0.1)]);
        assert!(neighbours.is_done(&[]) && neighbours.next_probe(&[]).is_none());
    }

    #[test]
    fn one_step_is_located_between_neighbours() {
        let search = of(8, &[(4, 0.001), (5, -0.099), (6, -0.1), (8, -0.1)]);
        let steps = search.steps(&[]);
        assert_eq!((steps.len(), steps[0].before, steps[0].last), (1, 4, 5));
        assert!(steps[0].is_located && steps[0].probability > 0.99);
        assert!((steps[0].size.log_ratio + 0.0997).abs() < 1e-3);
        assert!((steps[0].size.error - 0.005 / 3f64.sqrt()).abs() < 1e-9);
        assert!(search.is_done(&[]) && search.next_probe(&[]).is_none());
        assert!(search.is_settled(5) && search.probes_left(&[]) == 0);
    }

    #[test]
    fn a_level_of_its_own_divides_the_search_and_the_larger_step_comes_first() {
        let search = of(16, &[(8, -0.15), (16, -0.2)]);
        let steps = search.steps(&[]);
        let places: Vec<(usize, usize)> = steps.iter().map(|of| (of.before, of.last)).collect();
        assert_eq!(places, [(0, 8), (8, 16)]);
        assert_eq!(
            (search.next_probe(&[]), search.probes_left(&[])),
            (Some(4), 6)
        );
        // Up and down.
        let search = of(16, &[(8, 0.15), (16, -0.2)]);
        assert_eq!(search.steps(&[]).len(), 2);
        assert_eq!(search.next_probe(&[]), Some(12));
    }

    #[test]
    fn a_level_that_one_campaign_has_seen_is_measured_again() {
        let all = [(4, 0.0), (5, -0.1), (6, -0.2), (8, -0.2)];
        let mut all: Vec<Measured> = all
            .map(|(build, level)| measured(build, level, 0.005))
            .to_vec();
        assert!(Bisection::new(8, &all).is_done(&[]));
        all[1].campaigns = 1;
        let search = Bisection::new(8, &all);
        assert!(!search.is_done(&[]));
        assert_eq!(
            (search.next_probe(&[]), search.probes_left(&[])),
            (Some(5), 1)
        );
    }

    #[test]
    fn a_build_is_measured_again_only_while_its_own_error_is_the_limit() {
        // It may be like either: once more tells.
        let vague = Bisection::new(8, &[measured(4, -0.05, 0.03), measured(8, -0.1, 0.01)]);
        assert_eq!(vague.next_probe(&[]), Some(4));
        // Small steps everywhere: what is unknown is between, not in the build itself.
        let search = of(8, &[(2, -0.012), (4, -0.024), (6, -0.036), (8, -0.048)]);
        let next = search.next_probe(&[]).unwrap();
        assert!(next % 2 == 1, "{next} was not measured yet");
    }

    #[test]
    fn builds_that_cannot_be_probed_widen_the_answer() {
        let levels = [(3, 0.0), (6, -0.1), (8, -0.1)];
        let search = of(8, &levels);
        assert_eq!(search.next_probe(&[4]), Some(5));
        let step = search.steps(&[4, 5])[0];
        assert_eq!((step.before, step.last, step.is_located), (3, 6, true));
        assert!(!search.steps(&[4])[0].is_located && search.is_done(&[4, 5]));
    }

    #[test]
    fn an_even_change_is_gradual_and_a_step_is_not() {
        let builds = [2, 4, 6, 8, 12, 16];
        let even = of(16, &builds.map(|build| (build, -0.015 * build as f64)));
        assert!(even.gradual() > 0.95, "{}", even.gradual());
        let step = of(
            16,
            &builds.map(|build| (build, if build < 7 { 0.0 } else { -0.24 })),
        );
        assert!(step.gradual() < 1e-6);
        let few = of(16, &[(8, -0.12), (16, -0.24)]);
        assert_eq!(few.gradual(), 0.0, "half of it half way is not yet gradual");
    }

    #[test]
    fn numbers_that_are_equal_or_zero_are_no_trouble() {
        for level in [0.0, -0.1] {
            let all = [1, 2, 4].map(|build| measured(build, level, 0.0));
            let search = Bisection::new(4, &all);
            assert!(search.posterior().iter().all(|p| (0.0..=1.0).contains(p)));
            search.next_probe(&[]);
        }
    }
}
