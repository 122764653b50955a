//! The search: which build is probed next, and when there have been enough probes.

use plimsoll_analysis::bisection::{Probe, Weight, weigh};
use plimsoll_stats::{Bisection, Evidence, Measured, Step};

use crate::error::LabError;

/// Where a search begins.
#[derive(Clone, Debug, Default)]
pub struct Search {
    /// Builds are numbered from 0, the good one, to this, the bad one.
    pub last: usize,
    /// Probes that were measured before, by an interrupted search.
    pub known: Vec<Probe>,
    /// Builds that could not be probed then.
    pub skipped: Vec<usize>,
    /// No more campaigns than this, those before included.
    pub most_probes: usize,
}

/// What became of a probe.
#[derive(Clone, Debug, PartialEq)]
pub enum Probed {
    /// It was measured.
    Measured(Probe),
    /// The build cannot be had, crashes or fails.
    Skipped(String),
    /// Nothing that was measured counts: why, and what can be done.
    Disturbed(String),
    /// The user stopped it.
    Interrupted,
}

/// What is known with this much of the probe that is being measured.
pub type Weigh<'a> = dyn Fn(&Probe) -> Option<Weight> + 'a;

/// Measures a build alongside the good and the bad one.
pub trait Prober {
    /// Probes a build, or measures the good and the bad one alone. `weigh` says after each block
    /// what is known now.
    ///
    /// # Errors
    /// When the good or the bad build cannot be measured, or the campaign cannot be run.
    fn probe(&mut self, build: Option<usize>, weigh: &Weigh<'_>) -> Result<Probed, LabError>;

    /// The search goes on.
    fn notice(&mut self, notice: SearchNotice<'_>);
}

/// What is reported while the search goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchNotice<'a> {
    /// A build is probed next.
    Probes {
        /// Which; none if the good and the bad one are measured alone.
        build: Option<usize>,
        /// How many probes it takes if each halves what is left, this one included.
        about: usize,
        /// How many are allowed, this one included.
        most: usize,
    },
    /// A block is done: all that is known now.
    Weighed(&'a Weight),
    /// This many blocks of a probe are enough: its build has the level of a neighbour or one of its
    /// own.
    Settled(u32),
    /// A build cannot be probed.
    Skipped(usize, &'a str),
    /// Nothing that was measured of a probe counts: it is measured again.
    Again(&'a str),
    /// So many blocks or starts of a probe do not count, and why not the last of them.
    LeftOut(usize, &'a str),
    /// Another way to measure was requested than that with which the search began, which is this.
    KeepsDesign(&'a str),
}

/// How a search ended. The steps are in [`SearchEnd`].
#[derive(Clone, Debug, PartialEq)]
pub enum SearchOutcome {
    /// Every step is at one build.
    Found,
    /// Every step is found, but builds that cannot be probed are in the way of one.
    FoundAmong,
    /// Something is known of steps, but not all: what is not.
    FoundPartly(String),
    /// The change is spread over many builds: why it is thought to be.
    Gradual(String),
    /// Why nothing was found.
    Inconclusive(String),
    /// The user stopped it.
    Interrupted,
}

/// What a search leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchEnd {
    /// How it ended.
    pub outcome: SearchOutcome,
    /// The steps as far as they are known, in the order of builds; none while good and bad do not
    /// differ.
    pub steps: Vec<Step>,
    /// What all probes together say.
    pub weight: Option<Weight>,
    /// Builds that could not be probed.
    pub skipped: Vec<usize>,
}

/// If another step is likelier than this when the probes are used up, not all is found.
const ANOTHER_STEP: f64 = 0.25;
/// If there are so many steps when the probes are used up, and most of them are at no one build, the
/// change is gradual.
const GRADUAL_STEPS: usize = 4;
/// A probe of which nothing counts is measured again so often; then the machine is hopeless.
const MOST_REPEATS: usize = 1;

/// Probes until every step is found.
///
/// # Errors
/// Those of the prober.
pub fn search(start: Search, prober: &mut dyn Prober) -> Result<SearchEnd, LabError> {
    let Search {
        last,
        known: mut probes,
        mut skipped,
        most_probes,
    } = start;
    // Campaigns of which nothing counted, and those of them since the last that did.
    let (mut lost, mut in_a_row) = (0, 0);
    let (outcome, weight) = loop {
        let weight = weigh(last, &probes);
        if let Some(found) = weight.as_ref().and_then(|weight| found(weight, &skipped)) {
            break (found, weight);
        }
        let is_over = probes.len() + lost >= most_probes;
        let next = next_probe(last, weight.as_ref(), &skipped);
        let is_stuck = next.is_none() && weight.as_ref().is_some_and(Weight::is_distinct);
        if is_over || is_stuck {
            break (undecided(weight.as_ref(), probes.len(), &skipped), weight);
        }
        prober.notice(SearchNotice::Probes {
            build: next,
            about: probes_left(last, weight.as_ref(), &skipped),
            most: most_probes - probes.len() - lost,
        });
        let probed = prober.probe(next, &|probe| {
            let all = [&probes[..], std::slice::from_ref(probe)].concat();
            weigh(last, &all)
        })?;
        match (probed, next) {
            (Probed::Interrupted, _) => break (SearchOutcome::Interrupted, weight),
            (Probed::Measured(probe), _) => {
                in_a_row = 0;
                probes.push(probe);
            }
            (Probed::Disturbed(reason), _) if in_a_row < MOST_REPEATS => {
                prober.notice(SearchNotice::Again(&reason));
                (lost, in_a_row) = (lost + 1, in_a_row + 1);
            }
            (Probed::Disturbed(reason), _) | (Probed::Skipped(reason), None) => {
                break (SearchOutcome::Inconclusive(reason), weight);
            }
            (Probed::Skipped(reason), Some(build)) => {
                prober.notice(SearchNotice::Skipped(build, &reason));
                skipped.push(build);
            }
        }
    };
    let distinct = weight.as_ref().filter(|weight| weight.is_distinct());
    Ok(SearchEnd {
        outcome,
        steps: distinct.map_or_else(Vec::new, |weight| weight.bisection.steps(&skipped)),
        weight,
        skipped,
    })
}

/// The end of the search, if the good and the bad build differ beyond doubt and all steps are
/// found, or there are too many to find.
fn found(weight: &Weight, skipped: &[usize]) -> Option<SearchOutcome> {
    let bisection = &weight.bisection;
    if !weight.is_distinct() {
        return None;
    }
    if bisection.is_done(skipped) {
        return Some(located(&bisection.steps(skipped)));
    }
    (bisection.gradual() >= Bisection::ENOUGH).then(|| {
        SearchOutcome::Gradual(format!(
            "an even change over all builds has a probability of {:.1} %",
            100.0 * bisection.gradual()
        ))
    })
}

fn located(steps: &[Step]) -> SearchOutcome {
    match steps.iter().all(|step| step.last == step.before + 1) {
        true => SearchOutcome::Found,
        false => SearchOutcome::FoundAmong,
    }
}

/// What is there to say of a search before anything is measured: everything is equally likely.
fn at_first(last: usize) -> Bisection {
    let bad = Measured {
        build: last,
        evidence: Evidence {
            log_ratio: -1.0,
            error: 1.0,
        },
        campaigns: 1,
    };
    Bisection::new(last, &[bad])
}

fn next_probe(last: usize, weight: Option<&Weight>, skipped: &[usize]) -> Option<usize> {
    match weight {
        Some(weight) => weight.bisection.next_probe(skipped),
        None => at_first(last).next_probe(skipped),
    }
}

fn probes_left(last: usize, weight: Option<&Weight>, skipped: &[usize]) -> usize {
    let left = match weight {
        Some(weight) => weight.bisection.probes_left(skipped),
        None => at_first(last).probes_left(skipped),
    };
    left.max(1)
}

/// What is known when there are no more probes, or none that would help.
fn undecided(weight: Option<&Weight>, probes: usize, skipped: &[usize]) -> SearchOutcome {
    let after = format!(
        "after {probes} {}",
        if probes == 1 { "probe" } else { "probes" }
    );
    let Some(weight) = weight else {
        return SearchOutcome::Inconclusive(format!("no block was measured {after}"));
    };
    if !weight.is_distinct() {
        return SearchOutcome::Inconclusive(format!(
            "the bad build runs at {:.3} of the good one, and {} blocks do not show that they \
            differ; name builds that differ more, or allow more with --probes or --blocks",
            weight.bad.log_ratio.exp(),
            weight.blocks
        ));
    }
    let bisection = &weight.bisection;
    let steps = bisection.steps(skipped);
    let open = steps.iter().filter(|step| !step.is_located).count();
    let more = "allow more with --probes, and go on with --resume";
    if open == 0 && !bisection.has_level_seen_once(&steps) && bisection.rest(&steps) < ANOTHER_STEP
    {
        return located(&steps);
    }
    if open == 0 {
        return SearchOutcome::FoundPartly(format!(
            "there may be another step, or one of these is none, {after}; {more}"
        ));
    }
    if steps.len() >= GRADUAL_STEPS && 2 * open > steps.len() {
        return SearchOutcome::Gradual(format!(
            "there are at least {} steps, and {open} of them are at no one build {after}",
            steps.len()
        ));
    }
    if steps.len() == 1 {
        return SearchOutcome::Inconclusive(format!(
            "no build is the first bad one with a probability of 95 % {after}; {more}"
        ));
    }
    SearchOutcome::FoundPartly(format!(
        "not every step is at one build with a probability of 95 % {after}; {more}"
    ))
}
