//! Campaigns whose truth is known: how often does a group's interval hold it, and how often is a
//! group called that is like the base? Seeds are fixed, so that these tests never fail by chance.

use plimsoll_core::plan::TestGroup;
use plimsoll_stats::{KnownVariance, StartRatio, Stream, Verdict, mean};

use super::group::{Group, Material, judged, means};
use super::ratios::Ratios;
use crate::verdicts::{Basis, Role};

const CELLS: usize = 3;
const STARTS: u32 = 5;
/// Tests of each section.
const TESTS: [(TestGroup, usize); 4] = [
    (TestGroup::Point, 9),
    (TestGroup::Range1, 5),
    (TestGroup::Range2, 8),
    (TestGroup::Write, 10),
];
/// Standard deviation of what all tests of a server's start have in common.
const SHARED_SD: f64 = 0.003;
/// Of what a test has alone in a start.
const OWN_SD: f64 = 0.005;
/// Of the error of a start's rate.
const WITHIN_SD: f64 = 0.004;
/// The level that a campaign's last look of five starts has.
const LOOK_LEVEL: f64 = 0.042;

/// What each test of one instance says: shared, own and within.
fn instance(tests: usize, stream: &mut Stream) -> Vec<f64> {
    let shared = SHARED_SD * stream.normal();
    let own = OWN_SD.hypot(WITHIN_SD);
    (0..tests).map(|_| shared + own * stream.normal()).collect()
}

/// How far loads of the same data lie apart in the first test, which is one of points.
#[derive(Clone, Copy)]
struct OfLoads {
    sd: f64,
    /// Starts take this many one after the other.
    loads: u32,
}

const ALIKE: OfLoads = OfLoads { sd: 0.0, loads: 1 };

/// A campaign: each test of a cell against the mean of two instances of the base. One test in four
/// left it after three starts. `effects` are the tests' log ratios, in the order of sections.
fn campaign(effects: &[f64], of_loads: OfLoads, stream: &mut Stream) -> Vec<Group> {
    let all = effects.len();
    let mut ratios = vec![vec![Ratios::new(); all]; CELLS];
    let mut of_instance = || -> Vec<f64> {
        let draw = |_| match of_loads.sd {
            0.0 => 0.0,
            sd => sd * stream.normal(),
        };
        (0..of_loads.loads).map(draw).collect()
    };
    let levels: Vec<Vec<f64>> = (0..CELLS + 2).map(|_| of_instance()).collect();
    for start in 1..=STARTS {
        let load = (start - 1) % of_loads.loads;
        let mut next = |at: usize| {
            let mut tests = instance(all, stream);
            tests[0] += levels[at][load as usize];
            tests
        };
        let [base, again] = [next(CELLS), next(CELLS + 1)];
        for (at, of_cell) in ratios.iter_mut().enumerate() {
            let cell = next(at);
            for test in (0..all).filter(|test| start <= 3 || test % 4 > 0) {
                let ratio = effects[test] + cell[test] - (base[test] + again[test]) / 2.0;
                let within = Some(KnownVariance::of_error(WITHIN_SD * 1.5f64.sqrt(), 5.0));
                of_cell[test].insert(
                    start,
                    StartRatio {
                        ratio,
                        within,
                        load: load + 1,
                    },
                );
            }
        }
    }
    let mut materials = Vec::new();
    for (cell, of_cell) in ratios.iter().enumerate() {
        let mut from = 0;
        for (section, tests) in TESTS {
            materials.push(material(
                section,
                cell,
                of_cell[from..from + tests].to_vec(),
            ));
            from += tests;
        }
    }
    judged(materials, 0.03)
}

fn material(section: TestGroup, cell: usize, ratios: Vec<Ratios>) -> Material {
    Material {
        group: Group {
            section,
            level: None,
            cell,
            base: CELLS,
            role: Role::Throughput,
            basis: Basis::Slices,
            tests: (0..ratios.len())
                .map(|test| format!("test-{test}"))
                .collect(),
            left_out: Vec::new(),
            regressed: 0,
            improved: 0,
            estimate: None,
            p_adjusted: None,
            verdict: Verdict::Inconclusive,
            by_start: Vec::new(),
        },
        is_cost: false,
        ratios,
        look_level: LOOK_LEVEL,
        scale: 1.0,
    }
}

fn all_tests() -> usize {
    TESTS.iter().map(|(_, tests)| tests).sum()
}

/// The truth is the mean of the tests' effects, which differ by much.
#[test]
fn intervals_of_groups_hold_the_truth() {
    const CAMPAIGNS: usize = 300;
    let mut stream = Stream::new(20);
    let (mut held, mut narrow, mut of) = (0, 0, 0);
    for _ in 0..CAMPAIGNS {
        let effects: Vec<f64> = (0..all_tests())
            .map(|_| -0.24 + 0.1 * stream.normal())
            .collect();
        for group in campaign(&effects, ALIKE, &mut stream) {
            let from: usize = TESTS
                .iter()
                .take_while(|(section, _)| *section != group.section)
                .map(|(_, tests)| tests)
                .sum();
            let truth = mean(&effects[from..from + group.tests.len()]).exp();
            let estimate = group.estimate.unwrap();
            let (low, high) = estimate.interval.unwrap();
            assert_eq!((estimate.starts, group.verdict), (3, Verdict::Regression));
            held += usize::from(low <= truth && truth <= high);
            narrow += usize::from(high - low < 0.02);
            of += 1;
        }
    }
    // 3,600 intervals: 95 % is 3,420, with a standard deviation of 13 if they were independent. Cells
    // share their base, so it is larger.
    let share = held as f64 / of as f64;
    assert!((0.94..=0.965).contains(&share), "{held} of {of}");
    // Three starts of one comparison alone have t(2): the groups know their variance together.
    assert!(narrow as f64 > 0.9 * of as f64, "{narrow} of {of}");
}

#[test]
fn groups_like_the_base_are_rarely_called() {
    const CAMPAIGNS: usize = 300;
    let mut stream = Stream::new(21);
    let is_false =
        |group: &Group| [Verdict::Regression, Verdict::Improvement].contains(&group.verdict);
    let mut false_campaigns = 0;
    for _ in 0..CAMPAIGNS {
        let groups = campaign(&vec![0.0; all_tests()], ALIKE, &mut stream);
        assert_eq!(groups.len(), CELLS * TESTS.len());
        false_campaigns += usize::from(groups.iter().any(is_false));
    }
    // 5 % of 300 are 15, with a standard deviation of 3.8.
    assert!(
        (1..=23).contains(&false_campaigns),
        "{false_campaigns} of {CAMPAIGNS}"
    );
}

/// Of nine tests of points one has loads that lie 10 % apart, which is 1 % of their mean.
#[test]
fn a_group_whose_loads_differ_has_a_variance_of_its_own() {
    const CAMPAIGNS: usize = 300;
    let mut stream = Stream::new(22);
    let of_loads = OfLoads { sd: 0.1, loads: 2 };
    let (mut held, mut of) = ([0; 2], [0; 2]);
    for _ in 0..CAMPAIGNS {
        for group in campaign(&vec![0.0; all_tests()], of_loads, &mut stream) {
            let (low, high) = group.estimate.unwrap().interval.unwrap();
            let at = usize::from(group.section == TestGroup::Point);
            held[at] += usize::from(low <= 1.0 && 1.0 <= high);
            of[at] += 1;
        }
    }
    let share = [0, 1].map(|at| held[at] as f64 / of[at] as f64);
    assert!(share[0] >= 0.94, "{held:?} of {of:?}");
    // 76 % with the mean of all groups.
    assert!(share[1] >= 0.83, "{held:?} of {of:?}");
}

#[test]
fn a_test_of_few_rounds_leaves_its_group_the_error_of_the_others() {
    let of = |within| -> Ratios {
        let ratio = StartRatio {
            load: 1,
            ratio: -0.1,
            within,
        };
        [(1, ratio)].into()
    };
    let known = KnownVariance::of_error(0.01, 5.0);
    let (_, mean) = means(&[of(Some(known)), of(None)])[0];
    assert_eq!(mean.within, Some(known.times(0.5)));
}

#[test]
fn tests_without_a_common_start_have_no_number() {
    let of = |starts: [u32; 3]| -> Ratios {
        let ratio = StartRatio {
            load: 1,
            ratio: -0.1,
            within: Some(KnownVariance::of_error(0.001, 5.0)),
        };
        starts.into_iter().map(|start| (start, ratio)).collect()
    };
    let apart = material(TestGroup::Point, 0, vec![of([1, 2, 3]), of([4, 5, 6])]);
    let meet_once = material(TestGroup::Range1, 0, vec![of([1, 2, 3]), of([3, 4, 5])]);
    let groups = judged(vec![apart, meet_once], 0.03);
    assert_eq!((groups[0].estimate, groups[0].by_start.len()), (None, 0));
    let once = groups[1].estimate.unwrap();
    assert_eq!((once.starts, once.interval, once.pairs), (1, None, 2));
    assert!((once.ratio - (-0.1f64).exp()).abs() < 1e-12);
    assert!(
        groups
            .iter()
            .all(|group| group.verdict == Verdict::Inconclusive)
    );
}

/// A campaign of four loads ended behind its fifth start: the ratio stands in the middle of its
/// interval, and that is the mean of loads.
#[test]
fn the_ratio_of_a_group_is_that_of_its_interval() {
    let ratios: Ratios = (1..=8)
        .map(|start| {
            // Five starts of one load, and one of each of the others.
            let (load, ratio) = match start {
                1..=5 => (1, -0.10),
                _ => (start, 0.001 * f64::from(start)),
            };
            let within = Some(KnownVariance::of_error(0.004, 5.0));
            let of = StartRatio {
                ratio,
                within,
                load,
            };
            (start, of)
        })
        .collect();
    let both = vec![ratios.clone(), ratios];
    let groups = judged(vec![material(TestGroup::Point, 0, both)], 0.03);
    let estimate = groups[0].estimate.unwrap();
    let (low, high) = estimate.interval.unwrap();
    let middle = (low.ln() + high.ln()) / 2.0;
    assert!(
        (estimate.ratio.ln() - middle).abs() < 1e-9,
        "{} is not in the middle of {low} to {high}",
        estimate.ratio
    );
}
