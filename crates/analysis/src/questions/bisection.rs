//! From the blocks of probes to what they say about the first bad build.

use std::collections::BTreeMap;

use plimsoll_stats::{Bisection, Evidence, PRIOR_SPREAD, clustered, mean, variance};
use plimsoll_store::event::{Event, StepDone};
use plimsoll_store::{BisectionProbe, CampaignRecord, Confirm, Design, TrialRecord, Turn};

use crate::verdicts::pairs::starts::{of_turn, rounds};

/// The prior of the spread of log ratios counts like so many blocks.
const PRIOR_BLOCKS: f64 = 2.0;
/// Good and bad must differ by so many standard errors: 99 % of equal builds do not.
const DISTINCT: f64 = 2.576;

/// The level of an interval that reaches one standard error to each side.
const ONE_ERROR: f64 = 0.6827;
/// Fewer rounds do not say how sure their estimate is.
pub const FEWEST_ROUNDS: usize = 8;

/// Logarithms of rates in one block, or in one start of the servers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Block {
    /// Of the good build.
    pub good: f64,
    /// Of its second instance.
    pub control: Option<f64>,
    /// Of the bad build.
    pub bad: Option<f64>,
    /// Of the build that is probed.
    pub probe: Option<f64>,
    /// Standard error of a log ratio within a start, by its rounds; 0 for a block, which knows
    /// nothing of it.
    pub noise: f64,
}

impl Block {
    /// Whether bad and probed build, if there is one, ran in it undisturbed.
    pub fn is_whole(&self, build: Option<usize>) -> bool {
        self.bad.is_some() && (self.probe.is_some() || build.is_none())
    }

    /// Log ratio to the good build, of which there are two instances where the control ran, too.
    fn against_good(&self, rate: Option<f64>) -> Option<f64> {
        let good = self
            .control
            .map_or(self.good, |control| (self.good + control) / 2.0);
        Some(rate? - good)
    }
}

/// The blocks of one campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Which build was probed, counted from 1; none where only good and bad were measured.
    pub build: Option<usize>,
    pub blocks: Vec<Block>,
}

/// What all probes together say.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    pub bisection: Bisection,
    /// ln(bad / good).
    pub bad: Evidence,
    /// ln(control / good), which should be 0.
    pub control: Option<Evidence>,
    /// By probe: its build and ln(probe / good).
    pub probes: Vec<(usize, Evidence)>,
    /// Blocks that good and bad have run in.
    pub blocks: usize,
}

impl Weight {
    /// Whether good and bad differ beyond doubt. If they do not, nothing else means anything.
    pub fn is_distinct(&self) -> bool {
        self.bad.log_ratio.abs() > DISTINCT * self.bad.error
    }

    /// Whether more blocks of a probe of this build would hardly change what is known: good and bad
    /// differ, and it is like one of them.
    pub fn is_settled(&self, build: Option<usize>) -> bool {
        let is_like_one = |build| {
            let bad: f64 = self.bisection.posterior().iter().take(build).sum();
            bad.max(1.0 - bad) >= Bisection::ENOUGH
        };
        self.is_distinct() && build.is_none_or(is_like_one)
    }

    /// Whether the good build's second instance is like the first.
    pub fn does_control_hold(&self) -> bool {
        self.control
            .is_none_or(|control| control.log_ratio.abs() <= DISTINCT * control.error)
    }
}

/// Weighs all probes of builds `1..=n`; none while the bad build has no block.
///
/// The spread of a single log ratio is pooled over all campaigns: of the bad build, of each build
/// that was probed, and of the control, which is 0 by design. A prior of 3 % between starts
/// ([`PRIOR_SPREAD`], twice, because a ratio has two ends) counts like two blocks: the mean of few
/// blocks does not look surer than it is. Nor does it look surer than the rounds within starts are
/// among themselves.
pub fn weigh(n: usize, probes: &[Probe]) -> Option<Weight> {
    let values = |probe: &Probe, rate: fn(&Block) -> Option<f64>| -> Vec<f64> {
        probe
            .blocks
            .iter()
            .filter_map(|block| block.against_good(rate(block)))
            .collect()
    };
    let of_bad: Vec<Vec<f64>> = probes
        .iter()
        .map(|probe| values(probe, |block| block.bad))
        .collect();
    let of_probe: Vec<(usize, Vec<f64>)> = probes
        .iter()
        .filter_map(|probe| Some((probe.build?, values(probe, |block| block.probe))))
        .filter(|(_, v)| !v.is_empty())
        .collect();
    let of_control: Vec<f64> = probes
        .iter()
        .flat_map(|probe| &probe.blocks)
        .filter_map(|block| Some(block.control? - block.good))
        .collect();

    // One spread for all evidence: no build has enough blocks for one of its own. It begins at the
    // prior, which weighs as many blocks as PRIOR_BLOCKS says.
    let all_bad = of_bad.concat();
    let mut by_build: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    of_probe
        .iter()
        .for_each(|(build, values)| by_build.entry(*build).or_default().extend(values));
    let (mut squares, mut freedom) = (PRIOR_BLOCKS * 2.0 * PRIOR_SPREAD.powi(2), PRIOR_BLOCKS);
    for values in by_build
        .values()
        .chain([&all_bad])
        .filter(|values| values.len() > 1)
    {
        let of_build = (values.len() - 1) as f64;
        squares += variance(values) * of_build;
        freedom += of_build;
    }
    // A control is held against one instance, others against the mean of two: twice the variance of
    // a rate, and one and a half times.
    squares += 0.75 * of_control.iter().map(|value| value.powi(2)).sum::<f64>();
    freedom += of_control.len() as f64;
    // Blocks that happen to agree must not promise more than their own turns allow.
    let noises: Vec<f64> = probes
        .iter()
        .flat_map(|probe| &probe.blocks)
        .map(|block| block.noise.powi(2))
        .collect();
    let spread = (squares / freedom).max(mean(&noises)).sqrt();
    let evidence = |values: &[f64]| {
        (!values.is_empty()).then(|| Evidence {
            log_ratio: mean(values),
            error: spread / (values.len() as f64).sqrt(),
        })
    };

    let bad = evidence(&all_bad)?;
    let probes: Vec<(usize, Evidence)> = of_probe
        .iter()
        .filter_map(|(build, values)| Some((*build, evidence(values)?)))
        .collect();
    let mut bisection = Bisection::new(n, bad);
    for (build, evidence) in &probes {
        bisection.learn(*build, *evidence);
    }
    Some(Weight {
        bisection,
        bad,
        control: evidence(&of_control),
        probes,
        blocks: all_bad.len(),
    })
}

/// The blocks in which the good build has run.
pub fn read_blocks(
    campaign: &CampaignRecord,
    confirm: &Confirm,
    probe: &BisectionProbe,
) -> Vec<Block> {
    let Some(step) = confirm.steps.first() else {
        return Vec::new();
    };
    // Good, bad, the probed one if there is one, and the control, as the campaign was made.
    let control = 2 + usize::from(probe.probe.is_some());
    let mut runs: BTreeMap<u32, BTreeMap<usize, &TrialRecord>> = BTreeMap::new();
    for scheduled in &campaign.header.schedule {
        let is_used = |trial: &&TrialRecord| {
            let is_suspect = trial
                .events
                .iter()
                .any(|stamped| matches!(stamped.event, Event::Suspect(_)));
            trial.number == scheduled.number && trial.is_complete() && !is_suspect
        };
        if let Some(trial) = campaign.trials.iter().rfind(is_used) {
            runs.entry(scheduled.block)
                .or_default()
                .insert(scheduled.cell, trial);
        }
    }
    let block = |cells: &BTreeMap<usize, &TrialRecord>| {
        let good = cells.get(&0)?;
        let of = |cell: usize| {
            let trial = cells.get(&cell)?;
            match confirm.design {
                Design::Blocks => Some((rate(trial, step)?, 0.0)),
                Design::Slices => log_ratio(trial, good, step),
            }
        };
        // By slices everything is relative to the good build.
        let of_good = if confirm.design == Design::Slices {
            0.0
        } else {
            of(0)?.0
        };
        let (control, bad, probed) = (of(control), of(1), probe.probe.and_then(|_| of(2)));
        let noise = [control, bad, probed]
            .into_iter()
            .flatten()
            .map(|(_, error)| error)
            .fold(0.0, f64::max);
        let value = |found: Option<(f64, f64)>| found.map(|(value, _)| value);
        Some(Block {
            good: of_good,
            control: value(control),
            bad: value(bad),
            probe: value(probed),
            noise,
        })
    };
    runs.values().filter_map(block).collect()
}

/// ln of operations of the primary kind per second.
fn rate(trial: &TrialRecord, step: &str) -> Option<f64> {
    let done: &StepDone = trial.steps_done().find(|done| done.step == *step)?;
    let operations = done
        .operations
        .iter()
        .find(|operation| operation.kind == done.primary)?
        .ok;
    (operations > 0 && done.elapsed_ns > 0)
        .then(|| (operations as f64 / (done.elapsed_ns as f64 / 1e9)).ln())
}

/// The log ratio of two candidates of a start over their rounds, and its standard error.
fn log_ratio(trial: &TrialRecord, good: &TrialRecord, step: &str) -> Option<(f64, f64)> {
    let of_turn = |turn: &Turn| of_turn(turn, true);
    let ratios = rounds(&good.turns(step).ok()?, &trial.turns(step).ok()?, of_turn);
    let found = clustered(&[ratios], ONE_ERROR).filter(|found| found.pairs >= FEWEST_ROUNDS)?;
    Some((found.estimate, found.interval.half_width()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(control: f64, bad: f64, probe: f64) -> Block {
        Block {
            good: 5.0,
            control: Some(5.0 + control),
            bad: Some(5.0 + bad),
            probe: Some(5.0 + probe),
            noise: 0.0,
        }
    }

    #[test]
    fn probes_are_weighed_against_both_instances_of_the_good_build() {
        let probe = Probe {
            build: Some(2),
            blocks: vec![block(0.02, -0.19, 0.01), block(-0.02, -0.21, -0.01)],
        };
        let weight = weigh(4, std::slice::from_ref(&probe)).unwrap();
        assert!(
            (weight.bad.log_ratio + 0.2).abs() < 1e-12
                && weight.is_distinct()
                && weight.does_control_hold()
        );
        assert!(weight.probes[0].1.log_ratio.abs() < 1e-12);
        // Two prior blocks of 2 x (3 %)^2, controls of 2 % twice; bad and probe are the same in
        // both blocks.
        let spread = ((2.0 * 2.0 * 0.0009f64 + 0.75 * 2.0 * 0.0004) / 6.0).sqrt();
        assert!(
            (weight.bad.error - spread / 2f64.sqrt()).abs() < 1e-12,
            "{}",
            weight.bad.error
        );
        let posterior = weight.bisection.posterior();
        assert!(posterior[0] + posterior[1] < 0.05, "{posterior:?}");
    }

    #[test]
    fn a_probe_is_settled_when_it_is_like_the_good_or_the_bad_build() {
        let settled = |bad: f64, probe: f64| {
            let probe = Probe {
                build: Some(2),
                blocks: vec![block(0.0, bad, probe), block(0.01, bad, probe)],
            };
            weigh(4, &[probe]).unwrap().is_settled(Some(2))
        };
        assert!(settled(-0.2, 0.0) && settled(-0.2, -0.2));
        assert!(!settled(-0.2, -0.1), "it lies between them");
        assert!(!settled(-0.03, 0.0), "good and bad hardly differ");
    }

    #[test]
    fn probes_that_contradict_each_other_are_believed_less() {
        let probe = |ratio: f64| Probe {
            build: Some(2),
            blocks: vec![block(0.0, -0.2, ratio)],
        };
        let error = |probes: &[Probe]| weigh(4, probes).unwrap().bad.error;
        assert!(error(&[probe(-0.3), probe(0.1)]) > 2.0 * error(&[probe(-0.1), probe(-0.1)]));
    }

    #[test]
    fn starts_are_not_surer_than_their_rounds() {
        let blocks = [block(0.02, -0.19, 0.01), block(-0.02, -0.21, -0.01)];
        let error = |noise: f64| {
            weigh(
                4,
                &[Probe {
                    build: Some(2),
                    blocks: blocks.map(|block| Block { noise, ..block }).to_vec(),
                }],
            )
            .unwrap()
            .bad
            .error
        };
        assert_eq!(error(0.01), error(0.0), "starts scatter by more");
        assert!((error(0.3) - 0.3 / 2f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn few_blocks_of_equal_builds_are_not_distinct() {
        let probe = Probe {
            build: None,
            blocks: vec![block(0.0, -0.03, 0.0), block(0.0, -0.03, 0.0)],
        };
        let weight = weigh(4, &[probe]).unwrap();
        assert!(!weight.is_distinct(), "3 % in two blocks is what starts do");
        assert_eq!(weight.probes, []);
        assert_eq!(
            weigh(
                4,
                &[Probe {
                    build: Some(1),
                    blocks: Vec::new()
                }]
            ),
            None
        );
    }
}
