//! Searches among simulated builds whose steps are known: what is found, what is wrong, and how
//! many probes it takes.

use plimsoll_stats::{StartRatio, Stream};

use super::search::{
    Probed, Prober, Search, SearchEnd, SearchNotice, SearchOutcome, Weigh, search,
};
use crate::bisect::Probe;
use crate::error::LabError;

/// Builds with steps, starts that scatter, and builds that crash.
struct Simulated {
    stream: Stream,
    /// The bad build; 0 is the good one.
    last: usize,
    /// Where a level begins, and ln(new / old).
    steps: Vec<(usize, f64)>,
    /// The standard deviation of ln(rate) between starts.
    sd: f64,
    /// Starts of a probe.
    starts: usize,
    crashing: Vec<usize>,
    /// Campaigns of which nothing counts.
    disturbed: usize,
    probed: Vec<usize>,
}

impl Simulated {
    fn new(seed: u64, last: usize, steps: &[(usize, f64)], sd: f64) -> Self {
        Self {
            stream: Stream::new(seed),
            last,
            steps: steps.to_vec(),
            sd,
            starts: 2,
            crashing: Vec::new(),
            disturbed: 0,
            probed: Vec::new(),
        }
    }

    /// One step somewhere, which is returned.
    fn one_step(seed: u64, last: usize, effect: f64, sd: f64) -> (Self, usize) {
        let at = 1 + Stream::new(seed ^ 0x5eed).below(last);
        (Self::new(seed, last, &[(at, effect)], sd), at)
    }

    fn rate(&mut self, build: usize) -> f64 {
        let steps = self.steps.iter().filter(|(at, _)| build >= *at);
        steps.map(|(_, effect)| effect).sum::<f64>() + self.sd * self.stream.normal()
    }

    fn start(&mut self, probe: &mut Probe) {
        let (good, control) = (self.rate(0), self.rate(0));
        let ratio = |rate: f64, base: f64| StartRatio {
            load: 1,
            ratio: rate - base,
            within: None,
        };
        let mean = (good + control) / 2.0;
        let bad = self.rate(self.last);
        probe.bad.push(ratio(bad, mean));
        probe.control.push(ratio(control, good));
        if let Some(build) = probe.build {
            let rate = self.rate(build);
            probe.probed.push(ratio(rate, mean));
        }
    }

    /// As `bisect` searches: four probes for each time that the builds can be halved.
    fn search(&mut self) -> SearchEnd {
        let halvings = self.last.next_power_of_two().trailing_zeros().max(1);
        self.search_with(4 * halvings as usize, Vec::new())
    }

    fn search_with(&mut self, most_probes: usize, known: Vec<Probe>) -> SearchEnd {
        let start = Search {
            last: self.last,
            known,
            most_probes,
            ..Search::default()
        };
        search(start, self).unwrap()
    }

    /// How often the build that was probed most was probed.
    fn most_of_one(&self) -> usize {
        let times = |build: &usize| self.probed.iter().filter(|of| *of == build).count();
        self.probed.iter().map(times).max().unwrap_or(0)
    }
}

impl Prober for Simulated {
    fn probe(&mut self, build: Option<usize>, weigh: &Weigh<'_>) -> Result<Probed, LabError> {
        self.probed.extend(build);
        if let Some(build) = build.filter(|build| self.crashing.contains(build)) {
            return Ok(Probed::Skipped(format!("build {build} crashed")));
        }
        if self.disturbed > 0 {
            self.disturbed -= 1;
            return Ok(Probed::Disturbed("nothing counts".to_owned()));
        }
        let mut probe = Probe {
            build,
            ..Probe::default()
        };
        for start in 1..=self.starts {
            self.start(&mut probe);
            let is_enough = weigh(&probe).unwrap().is_settled(build);
            if start >= 2 && is_enough {
                break;
            }
        }
        Ok(Probed::Measured(probe))
    }

    fn notice(&mut self, notice: SearchNotice<'_>) {
        if let SearchNotice::Skipped(build, reason) = notice {
            assert_eq!(reason, format!("build {build} crashed"));
        }
    }
}

/// The builds that steps are located at, and how many are not.
fn found(end: &SearchEnd) -> (Vec<usize>, usize) {
    let located = end.steps.iter().filter(|step| step.is_located);
    let located: Vec<usize> = located.map(|step| step.last).collect();
    let open = end.steps.len() - located.len();
    (located, open)
}

/// What many searches came to.
#[derive(Debug, Default)]
struct Tally {
    found: usize,
    wrong: usize,
    gradual: usize,
    campaigns: usize,
    most_of_one: usize,
}

fn tally(count: u64, make: impl Fn(u64) -> (Simulated, Vec<usize>)) -> Tally {
    let mut tally = Tally::default();
    for seed in 0..count {
        let (mut builds, truth) = make(seed);
        let end = builds.search();
        if end.outcome == SearchOutcome::Found {
            tally.found += 1;
            tally.wrong += usize::from(found(&end).0 != truth);
        }
        tally.gradual += usize::from(matches!(end.outcome, SearchOutcome::Gradual(_)));
        tally.campaigns += builds.probed.len();
        tally.most_of_one = tally.most_of_one.max(builds.most_of_one());
    }
    tally
}

/// A step that is at least twice as large as starts scatter is found with the default number of
/// probes, and what is called found is right.
#[test]
fn one_step_is_found_and_rarely_wrong() {
    let (mut found, mut wrong) = (0, 0);
    for (last, sd, effect, least) in [
        (6, 0.0075, -0.05, 38),
        (6, 0.03, -0.10, 37),
        (6, 0.06, 0.30, 37),
        (16, 0.0075, 0.10, 38),
        (16, 0.015, -0.05, 37),
        (16, 0.03, -0.10, 36),
        (16, 0.06, -0.30, 37),
        (64, 0.015, -0.05, 36),
        (64, 0.03, -0.10, 36),
        (64, 0.06, -0.30, 36),
    ] {
        let of = tally(40, |seed| {
            let (builds, at) = Simulated::one_step(seed, last, effect, sd);
            (builds, vec![at])
        });
        assert!(of.found >= least, "{last} builds, {sd}, {effect}: {of:?}");
        found += of.found;
        wrong += of.wrong;
    }
    assert!(wrong * 100 <= found * 3, "{wrong} of {found} are wrong");
    // About as many campaigns as halvings where nothing is in doubt.
    let easy = tally(40, |seed| {
        let (builds, at) = Simulated::one_step(seed, 16, -0.10, 0.0075);
        (builds, vec![at])
    });
    assert!(easy.campaigns <= 40 * 9 / 2, "{easy:?}");
}

#[test]
fn every_step_is_found() {
    for (steps, sd, least) in [
        (vec![(5, -0.105), (11, -0.105)], 0.0075, 95),
        (vec![(5, -0.16), (11, -0.05)], 0.0075, 95),
        (vec![(3, -0.13), (13, -0.08)], 0.015, 95),
        (vec![(3, 0.10), (13, -0.20)], 0.015, 95),
        (vec![(3, -0.10), (8, -0.10), (9, -0.10)], 0.0075, 95),
    ] {
        let truth: Vec<usize> = steps.iter().map(|(at, _)| *at).collect();
        let of = tally(100, |seed| {
            (Simulated::new(seed, 16, &steps, sd), truth.clone())
        });
        assert!(of.found - of.wrong >= least, "{steps:?}, {sd}: {of:?}");
        assert!(of.wrong <= 3, "{steps:?}, {sd}: {of:?}");
        assert!(of.most_of_one <= 5, "{steps:?}, {sd}: {of:?}");
    }
}

#[test]
fn sizes_of_steps_have_intervals_that_hold() {
    let steps = [(5, -0.16), (11, -0.05)];
    let (mut held, mut all) = (0, 0);
    for seed in 0..100 {
        let end = Simulated::new(seed, 16, &steps, 0.0075).search();
        let weight = end.weight.as_ref().unwrap();
        if end.steps.len() != 2 {
            continue;
        }
        for (step, (_, size)) in end.steps.iter().zip(steps) {
            held += usize::from(step.interval(weight.degrees, 0.95).holds(size));
            all += 1;
        }
    }
    // The first step's error is exact, the second's has the noise of the good build twice.
    assert!(all >= 180 && held * 100 >= all * 93, "{held} of {all}");
}

#[test]
fn a_gradual_change_has_no_single_step() {
    for sd in [0.0075, 0.015] {
        let steps: Vec<(usize, f64)> = (1..=16).map(|at| (at, -0.015)).collect();
        let of = tally(50, |seed| {
            (Simulated::new(seed, 16, &steps, sd), Vec::new())
        });
        assert!(of.gradual >= 48 && of.found == 0, "{sd}: {of:?}");
        assert!(of.campaigns <= 50 * 7, "it says so early: {of:?}");
        assert!(of.most_of_one <= 2, "{of:?}");
    }
}

#[test]
fn builds_that_crash_are_passed_over_and_reported() {
    for seed in 0..20 {
        let (mut builds, at) = Simulated::one_step(seed, 16, -0.15, 0.015);
        builds.crashing = vec![at].into_iter().filter(|build| *build < 16).collect();
        let is_skipped = !builds.crashing.is_empty();
        let end = builds.search_with(40, Vec::new());
        let [step] = end.steps[..] else {
            panic!("seed {seed}: {end:?}")
        };
        let expected = if is_skipped {
            (SearchOutcome::FoundAmong, at - 1, at + 1)
        } else {
            (SearchOutcome::Found, at - 1, at)
        };
        assert_eq!(
            (end.outcome, step.before, step.last),
            expected,
            "seed {seed}"
        );
        let of_crashing = |build: &&usize| builds.crashing.contains(build);
        let crashes = builds.probed.iter().filter(of_crashing).count();
        assert!(
            crashes <= 1,
            "a build that crashed is not probed again: {:?}",
            builds.probed
        );
    }
}

#[test]
fn builds_that_do_not_differ_are_not_searched_for_ever() {
    let mut builds = Simulated::new(3, 8, &[], 0.015);
    let end = builds.search();
    assert!(
        matches!(&end.outcome, SearchOutcome::Inconclusive(reason)
            if reason.contains("do not show that they differ")),
        "{end:?}"
    );
    assert_eq!(end.steps, []);
}

#[test]
fn neighbours_are_compared_without_a_probe() {
    let mut builds = Simulated::new(1, 1, &[(1, -0.2)], 0.015);
    let end = builds.search();
    assert_eq!(found(&end), (vec![1], 0));
    assert!(end.outcome == SearchOutcome::Found && builds.probed.is_empty());
}

#[test]
fn a_probe_of_which_nothing_counts_is_repeated_once() {
    let mut builds = Simulated::new(4, 4, &[(2, -0.2)], 0.015);
    builds.disturbed = 1;
    let end = builds.search();
    assert_eq!((end.outcome, end.steps[0].last), (SearchOutcome::Found, 2));
    assert_eq!(builds.probed[..2], [2, 2]);
    let mut builds = Simulated::new(4, 4, &[(2, -0.2)], 0.015);
    builds.disturbed = 9;
    let refused = SearchOutcome::Inconclusive("nothing counts".to_owned());
    assert_eq!(builds.search().outcome, refused);
    assert_eq!(builds.probed, [2, 2]);
}

/// A search that was interrupted goes on as if it had not been, at whatever probe it was.
#[test]
fn what_was_measured_before_is_not_measured_again() {
    let steps = [(9, -0.12), (21, -0.08)];
    for known in 1..6 {
        let mut builds = Simulated::new(5, 32, &steps, 0.0075);
        let mut before = Vec::new();
        for _ in 0..known {
            let start = Search {
                last: 32,
                known: before.clone(),
                most_probes: 20,
                ..Search::default()
            };
            let mut keeper = Keeper {
                builds: &mut builds,
                kept: &mut before,
            };
            let end = search(start, &mut keeper).unwrap();
            assert_eq!(end.outcome, SearchOutcome::Interrupted);
        }
        let asked = std::mem::take(&mut builds.probed);
        let end = builds.search_with(20, before);
        assert_eq!(found(&end), (vec![9, 21], 0), "{known}: {end:?}");
        assert_eq!(asked[0], 16);
        assert!(
            builds.probed.iter().all(|build| !asked.contains(build)),
            "{asked:?}, then {:?}",
            builds.probed
        );
    }
}

/// Stops after each probe, as Ctrl-C does, and keeps what it measured.
struct Keeper<'a> {
    builds: &'a mut Simulated,
    kept: &'a mut Vec<Probe>,
}

impl Prober for Keeper<'_> {
    fn probe(&mut self, build: Option<usize>, weigh: &Weigh<'_>) -> Result<Probed, LabError> {
        if let Probed::Measured(probe) = self.builds.probe(build, weigh)? {
            self.kept.push(probe);
        }
        Ok(Probed::Interrupted)
    }

    fn notice(&mut self, _: SearchNotice<'_>) {}
}
