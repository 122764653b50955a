//! What two runs of the same code differ by, and where a change arrived.

use plimsoll_stats::median;

use super::material::{Group, Subject, Test};
use super::releases::Release;

/// Twins that differ by more than this in a test show that it has two states.
const TWO_STATES: f64 = 0.10;
/// Levels before and after a change differ by at least this.
const LEAST_LEVEL: f64 = 0.05;
/// A change takes away at least this share of the deviation from the median.
const LEAST_SHARE: f64 = 0.25;
/// Below this share it is hard to say where a change is.
const CLEAR_SHARE: f64 = 0.35;

/// So many tests of a group do not move in one direction by chance.
const SHIFTED_TESTS: usize = 4;
/// The median of tests that moved together is at least this far from 0.
const SHIFT: f64 = 0.04;

/// Controls that every archive has: two patch releases of one series, or a build run twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Noise {
    pub twins: Vec<Twins>,
    /// Groups in which neighbours do not count as twins, because the code changed.
    pub shifts: Vec<Shift>,
    /// Indices of the tests whose twins are in two states.
    pub two_state: Vec<usize>,
}

/// All tests of a group that moved in one direction between neighbours in patch level.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shift {
    /// Places of the releases.
    pub places: [usize; 2],
    pub group: String,
    pub tests: usize,
    /// The median of second / first.
    pub median: f64,
}

impl Shift {
    fn of(places: [usize; 2], group: &Group, tests: &[Test]) -> Option<Self> {
        let [first, second] = places;
        let ratios = group.tests.iter();
        let ratios: Vec<f64> = ratios
            .filter_map(|test| tests[*test].ratio(first, second))
            .collect();
        let middle = median(&ratios)?;
        let is_one_way =
            ratios.iter().all(|ratio| *ratio < 1.0) || ratios.iter().all(|ratio| *ratio > 1.0);
        let is_shift = ratios.len() >= SHIFTED_TESTS && is_one_way && middle.ln().abs() >= SHIFT;
        is_shift.then(|| Self {
            places,
            group: group.title.clone(),
            tests: ratios.len(),
            median: middle,
        })
    }
}

/// Two runs of nearly the same code. Differences are absolute logarithms of ratios, because neither
/// twin is the base: 0.02 is 2 %.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Twins {
    /// Places of the releases.
    pub places: [usize; 2],
    pub tests: usize,
    pub median: f64,
    /// The least difference that at least 95 of 100 tests do not exceed.
    pub p95: f64,
    pub most: f64,
}

impl Noise {
    /// `compared` are neighbours that sentences are about: what they differ by is the result, and no
    /// control of itself.
    pub fn of(
        releases: &[Release],
        tests: &[Test],
        groups: &[Group],
        compared: Option<[usize; 2]>,
    ) -> Self {
        let mut noise = Self::default();
        for (second, release) in releases.iter().enumerate().skip(1) {
            let first = second - 1;
            if !release.is_twin_of(&releases[first]) || compared == Some([first, second]) {
                continue;
            }
            // What a version run twice differs by is noise, whatever its shape.
            let is_other = !release.is_version_of(&releases[first]);
            let shifts = groups
                .iter()
                .filter(|_| is_other)
                .filter_map(|group| Some((group, Shift::of([first, second], group, tests)?)));
            let (shifted, shifts): (Vec<&Group>, Vec<Shift>) = shifts.unzip();
            noise.shifts.extend(shifts);
            let is_shifted = |test: &usize| shifted.iter().any(|group| group.tests.contains(test));
            let differences: Vec<(usize, f64)> = tests
                .iter()
                .enumerate()
                .filter(|(test, _)| !is_shifted(test))
                .filter_map(|(test, of)| Some((test, of.ratio(first, second)?.ln().abs())))
                .collect();
            let is_two_state = |(test, by): &(usize, f64)| (*by > TWO_STATES).then_some(*test);
            noise
                .two_state
                .extend(differences.iter().filter_map(is_two_state));
            let shares: Vec<f64> = differences.iter().map(|(_, by)| *by).collect();
            noise.twins.extend(Twins::of([first, second], &shares));
        }
        noise.two_state.sort_unstable();
        noise.two_state.dedup();
        noise
    }

    /// The larger one of several pairs' 95th percentiles.
    pub fn p95(&self) -> Option<f64> {
        self.p95_beside(None)
    }

    /// The same without a pair that is compared.
    pub fn p95_beside(&self, compared: Option<[usize; 2]>) -> Option<f64> {
        let twins = self.twins.iter();
        let others = twins.filter(|of| compared != Some(of.places));
        others.map(|of| of.p95).max_by(f64::total_cmp)
    }
}

impl Twins {
    fn of(places: [usize; 2], shares: &[f64]) -> Option<Self> {
        let mut sorted = shares.to_vec();
        sorted.sort_by(f64::total_cmp);
        // 95 % of n, rounded up, in whole numbers.
        let rank = (95 * sorted.len()).div_ceil(100);
        Some(Self {
            places,
            tests: sorted.len(),
            median: median(&sorted)?,
            p95: sorted[rank - 1],
            most: sorted[sorted.len() - 1],
        })
    }
}

/// Where a test changed once over all releases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    /// The place of the first release behind it.
    pub place: usize,
    /// The level behind it / that before.
    pub ratio: f64,
    pub is_clear: bool,
}

/// The single split with the least sum of absolute deviations of the logarithms from the two
/// medians. `None` for small changes, and for splits that explain little. `rates` are in the order
/// of releases.
pub(crate) fn arrival(rates: &[Option<f64>]) -> Option<Arrival> {
    let known: Vec<(usize, f64)> = rates
        .iter()
        .enumerate()
        .filter_map(|(place, rate)| Some((place, (*rate)?.ln())))
        .collect();
    let logs: Vec<f64> = known.iter().map(|(_, log)| *log).collect();
    if logs.len() < 3 {
        return None;
    }
    let whole = deviation(&logs);
    let after = |split: usize| deviation(&logs[..split]) + deviation(&logs[split..]);
    let (split, rest) = (1..logs.len())
        .map(|split| (split, after(split)))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = (median(&logs[split..])? - median(&logs[..split])?).exp();
    let share = if whole > 0.0 { 1.0 - rest / whole } else { 0.0 };
    let is_change = (ratio - 1.0).abs() >= LEAST_LEVEL && share >= LEAST_SHARE;
    is_change.then(|| Arrival {
        place: known[split].0,
        ratio,
        is_clear: share >= CLEAR_SHARE,
    })
}

/// The sum of absolute deviations from the median.
fn deviation(logs: &[f64]) -> f64 {
    let middle = median(logs).unwrap_or(0.0);
    logs.iter().map(|log| (log - middle).abs()).sum()
}

/// A release between base and newest in which a test is worse than before and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dip {
    pub test: usize,
    /// Places: before, in, and after it.
    pub places: [usize; 3],
    /// In it / before it.
    pub ratio: f64,
}

/// Dips of tests by a big loss, which the next release that speaks has no more.
pub(crate) fn dips(subject: &Subject, tests: &[usize]) -> Vec<Dip> {
    let of_test = |test: usize| {
        subject.speakers.windows(3).filter_map(move |places| {
            if !subject.is_series {
                return None;
            }
            let [before, at, after] = [places[0], places[1], places[2]];
            let of = &subject.tests[test];
            let (ratio, back) = (of.ratio(before, at)?, of.ratio(after, at)?);
            let is_big =
                |ratio: f64| subject.band.class(ratio) == super::thresholds::Class::BigLoss;
            (is_big(ratio) && is_big(back)).then_some(Dip {
                test,
                places: [before, at, after],
                ratio,
            })
        })
    };
    let claimable = tests.iter().filter(|test| !subject.is_two_state(**test));
    claimable.flat_map(|test| of_test(*test)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(values: &[f64]) -> Vec<Option<f64>> {
        values.iter().copied().map(Some).collect()
    }

    #[test]
    fn a_change_between_patch_releases_is_not_noise() {
        use super::super::fixture::subject;
        let rates: [(&str, &[f64]); 4] = [
            ("a", &[100.0, 100.5, 80.0]),
            ("b", &[100.0, 99.5, 78.0]),
            ("c", &[100.0, 101.0, 82.0]),
            ("d", &[100.0, 99.0, 79.0]),
        ];
        let of = subject(&["8.0.28", "8.0.29", "8.0.30"], &rates);
        assert_eq!(of.noise.twins.len(), 1, "{:?}", of.noise);
        assert!(of.noise.p95().unwrap() < 0.02 && of.noise.two_state.is_empty());
        let [shift] = &of.noise.shifts[..] else {
            panic!("{:?}", of.noise);
        };
        assert_eq!((shift.places, shift.tests), ([1, 2], 4));
        // Three tests may do so by chance, and so may four that moved both ways.
        assert!(
            subject(&["8.0.29", "8.0.30"], &rates[..3])
                .noise
                .shifts
                .is_empty()
        );
    }

    #[test]
    fn a_change_arrives_once() {
        let found = arrival(&rates(&[100.0, 101.0, 99.0, 80.0, 81.0, 79.0])).unwrap();
        assert_eq!((found.place, found.is_clear), (3, true));
        assert!((found.ratio - 0.8).abs() < 0.01, "{found:?}");
        // A gap moves no place.
        let mut gap = rates(&[100.0, 101.0, 99.0, 80.0, 81.0, 79.0]);
        gap[1] = None;
        assert_eq!(arrival(&gap).unwrap().place, 3);
    }

    #[test]
    fn small_changes_and_noise_arrive_nowhere() {
        assert_eq!(arrival(&rates(&[100.0, 100.0, 96.0, 96.0])), None);
        assert_eq!(arrival(&rates(&[100.0, 80.0])), None);
        assert_eq!(arrival(&rates(&[100.0, 100.0, 100.0])), None);
        // Up and down: no split explains a quarter of it.
        assert_eq!(
            arrival(&rates(&[100.0, 80.0, 101.0, 79.0, 100.0, 81.0, 99.0, 80.0])),
            None
        );
    }
}
