//! The search: which build is probed next, and when there have been enough probes.

use plimsoll_analysis::bisection::{Block, Probe, Weight, weigh};

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
    Measured(Vec<Block>),
    /// The build cannot be had, crashes or fails.
    Skipped(String),
    /// Nothing that was measured counts: why, and what can be done.
    Disturbed(String),
    /// The user stopped it.
    Interrupted,
}

/// What is known with these blocks of the probe that is being measured.
pub type Weigh<'a> = dyn Fn(&[Block]) -> Option<Weight> + 'a;

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
    /// This build is probed next.
    Probes(Option<usize>),
    /// A block is done: all that is known now.
    Weighed(&'a Weight),
    /// This many blocks of a probe are enough: its build is like the good or the bad one.
    Settled(u32),
    /// A build cannot be probed.
    Skipped(usize, &'a str),
    /// Another way to measure was requested than that with which the search began, which is this.
    KeepsDesign(&'a str),
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq)]
pub enum SearchOutcome {
    /// The first bad build.
    Found(usize),
    /// It is one of these, first to last, and those between them cannot be probed.
    FoundAmong(usize, usize),
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
    /// What all probes together say.
    pub weight: Option<Weight>,
    /// Builds that could not be probed.
    pub skipped: Vec<usize>,
}

/// Probes until the first bad build is found.
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
    let (outcome, weight) = loop {
        let weight = weigh(last, &probes);
        if let Some(found) = weight.as_ref().and_then(|weight| found(weight, &skipped)) {
            break (found, weight);
        }
        if probes.len() >= most_probes {
            let reason = undecided(weight.as_ref(), probes.len());
            break (SearchOutcome::Inconclusive(reason), weight);
        }
        let build = next_probe(last, weight.as_ref(), &skipped);
        prober.notice(SearchNotice::Probes(build));
        let probed = prober.probe(build, &|blocks| {
            let mut all = probes.clone();
            all.push(Probe {
                build,
                blocks: blocks.to_vec(),
            });
            weigh(last, &all)
        })?;
        match (probed, build) {
            (Probed::Interrupted, _) => break (SearchOutcome::Interrupted, weight),
            (Probed::Measured(blocks), _) => probes.push(Probe { build, blocks }),
            (Probed::Disturbed(reason), _) | (Probed::Skipped(reason), None) => {
                break (SearchOutcome::Inconclusive(reason), weight);
            }
            (Probed::Skipped(reason), Some(build)) => {
                prober.notice(SearchNotice::Skipped(build, &reason));
                skipped.push(build);
            }
        }
    };
    Ok(SearchEnd {
        outcome,
        weight,
        skipped,
    })
}

/// The end of the search, when the good and the bad build differ beyond doubt and one build, or
/// some that lie next to skipped ones, is the first bad one.
fn found(weight: &Weight, skipped: &[usize]) -> Option<SearchOutcome> {
    if !weight.is_distinct() {
        return None;
    }
    let (first, last) = weight.bisection.found_among(skipped)?;
    Some(if first == last {
        SearchOutcome::Found(first)
    } else {
        SearchOutcome::FoundAmong(first, last)
    })
}

fn next_probe(last: usize, weight: Option<&Weight>, skipped: &[usize]) -> Option<usize> {
    match weight {
        Some(weight) => weight.bisection.next_probe(skipped),
        // At first everything is equally likely, and the middle is asked about.
        None => {
            let evidence = plimsoll_stats::Evidence {
                log_ratio: -1.0,
                error: 1.0,
            };
            plimsoll_stats::Bisection::new(last, evidence).next_probe(skipped)
        }
    }
}

fn undecided(weight: Option<&Weight>, probes: usize) -> String {
    let after = format!(
        "after {probes} {}",
        if probes == 1 { "probe" } else { "probes" }
    );
    match weight {
        None => format!("no block was measured {after}"),
        Some(weight) if !weight.is_distinct() => format!(
            "the bad build runs at {:.3} of the good one, and {} blocks do not show that they \
            differ; name builds that differ more, or allow more with --probes or --blocks",
            weight.bad.log_ratio.exp(),
            weight.blocks
        ),
        Some(_) => format!(
            "no build is the first bad one with a probability of 95 % {after}; allow more with --probes, and go on \
            with --resume"
        ),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::seed::Draw;

    use super::*;

    /// An engine with a given speed: a machine that drifts, starts that scatter, and
    /// builds that crash.
    struct Scripted {
        draw: Draw,
        last: usize,
        first_bad: usize,
        effect: f64,
        crashing: Vec<usize>,
        probed: Vec<usize>,
        blocks_so_far: usize,
        weights: usize,
    }

    impl Scripted {
        fn new(seed: u64, last: usize, effect: f64) -> Self {
            let mut draw = Draw::new(seed, &["bisect"]);
            let first_bad = 1 + draw.below(last as u64) as usize;
            Self {
                draw,
                last,
                first_bad,
                effect,
                crashing: Vec::new(),
                probed: Vec::new(),
                blocks_so_far: 0,
                weights: 0,
            }
        }

        /// Twelve uniforms: nearly normal, of deviation 1.
        fn normal(&mut self) -> f64 {
            (0..12)
                .map(|_| self.draw.below(1 << 30) as f64 / f64::from(1 << 30))
                .sum::<f64>()
                - 6.0
        }

        fn rate(&mut self, build: usize) -> f64 {
            let drift = -0.002 * self.blocks_so_far as f64;
            8.0 + drift
                + if build >= self.first_bad {
                    self.effect
                } else {
                    0.0
                }
                + 0.015 * self.normal()
        }
    }

    impl Prober for Scripted {
        fn probe(&mut self, build: Option<usize>, weigh: &Weigh<'_>) -> Result<Probed, LabError> {
            self.probed.extend(build);
            if let Some(build) = build.filter(|build| self.crashing.contains(build)) {
                return Ok(Probed::Skipped(format!("build {build} crashed")));
            }
            let mut blocks = Vec::new();
            for _ in 0..4 {
                self.blocks_so_far += 1;
                let (good, control, bad) = (self.rate(0), self.rate(0), self.rate(self.last));
                let probe = build.map(|build| self.rate(build));
                blocks.push(Block {
                    good,
                    control: Some(control),
                    bad: Some(bad),
                    probe,
                    noise: 0.0,
                });
                self.weights += usize::from(weigh(&blocks).is_some());
            }
            Ok(Probed::Measured(blocks))
        }

        fn notice(&mut self, notice: SearchNotice<'_>) {
            if let SearchNotice::Skipped(build, reason) = notice {
                assert_eq!(reason, format!("build {build} crashed"));
            }
        }
    }

    fn run(engine: &mut Scripted) -> SearchOutcome {
        let start = Search {
            last: engine.last,
            most_probes: 40,
            ..Search::default()
        };
        search(start, engine).unwrap().outcome
    }

    #[test]
    fn an_injected_slow_build_is_found_by_every_seed() {
        for seed in 0..20 {
            // Six releases, five candidates, and a slow one somewhere.
            let mut engine = Scripted::new(seed, 5, -0.12);
            let outcome = run(&mut engine);
            assert_eq!(
                outcome,
                SearchOutcome::Found(engine.first_bad),
                "seed {seed}, probed {:?}",
                engine.probed
            );
            assert_eq!(
                engine.weights,
                4 * engine.probed.len(),
                "there is a posterior after each block"
            );
            assert!(engine.probed.len() <= 6, "seed {seed}: {:?}", engine.probed);
        }
    }

    #[test]
    fn builds_that_crash_are_passed_over_and_reported() {
        for seed in 0..20 {
            let mut engine = Scripted::new(seed, 16, -0.15);
            engine.crashing = vec![engine.first_bad]
                .into_iter()
                .filter(|build| *build < 16)
                .collect();
            let is_skipped = !engine.crashing.is_empty();
            let outcome = run(&mut engine);
            let expected = if is_skipped {
                SearchOutcome::FoundAmong(engine.first_bad, engine.first_bad + 1)
            } else {
                SearchOutcome::Found(engine.first_bad)
            };
            assert_eq!(outcome, expected, "seed {seed}");
            let crashes = engine
                .probed
                .iter()
                .filter(|build| engine.crashing.contains(build))
                .count();
            assert!(
                crashes <= 1,
                "a build that crashed is not probed again: {:?}",
                engine.probed
            );
        }
    }

    #[test]
    fn builds_that_do_not_differ_are_not_searched_for_ever() {
        let mut engine = Scripted::new(3, 8, 0.0);
        engine.effect = 0.0;
        let outcome = run(&mut engine);
        assert!(
            matches!(&outcome, SearchOutcome::Inconclusive(reason) if reason.contains("do not show that \
                they differ")),
            "{outcome:?}"
        );
    }

    #[test]
    fn neighbours_are_compared_without_a_probe() {
        let mut engine = Scripted::new(1, 1, -0.2);
        assert_eq!(run(&mut engine), SearchOutcome::Found(1));
        assert!(engine.probed.is_empty());
    }

    #[test]
    fn what_was_measured_before_is_not_measured_again() {
        let mut engine = Scripted::new(5, 32, -0.12);
        let mut known = Vec::new();
        for build in [16, 8, 24] {
            if let Probed::Measured(blocks) = engine.probe(Some(build), &|_| None).unwrap() {
                known.push(Probe {
                    build: Some(build),
                    blocks,
                });
            }
        }
        engine.probed.clear();
        let start = Search {
            last: 32,
            known,
            most_probes: 40,
            ..Search::default()
        };
        let SearchEnd {
            outcome, weight, ..
        } = search(start, &mut engine).unwrap();
        assert_eq!(outcome, SearchOutcome::Found(engine.first_bad));
        assert_ne!(engine.probed.first(), Some(&16), "the middle is known");
        assert_eq!(weight.unwrap().probes.len(), 3 + engine.probed.len());
    }
}
