//! From the blocks or starts of probes to what they say about the steps between good and bad.

use std::collections::BTreeMap;

pub use plimsoll_stats::StartRatio;
use plimsoll_stats::{
    Bisection, Evidence, KnownVariance, Measured, PRIOR_SPREAD, StartsVariance, error_scales, mean,
};
use plimsoll_store::{BisectionProbe, CampaignRecord, Confirm};

use crate::metrics::rate_of;
use crate::runs::attempts::runs_of_cell;
use crate::runs::cell_runs::CellRuns;
use crate::verdicts::measured::{Judged, Role, Source};
use crate::verdicts::pairs::{Meetings, Pairs, last_disturbance};
use crate::verdicts::{Basis, MOST_EMPTY_TURNS, basis};

/// The prior of the spread of log ratios counts like so many blocks.
const PRIOR_BLOCKS: f64 = 2.0;
/// Good and bad must differ by so many standard errors: 99 % of equal builds do not.
const DISTINCT: f64 = 2.576;
/// The variance of a ratio with the mean of two instances, over that of one candidate,
const OF_TWO: f64 = 1.5;
/// and over that of a ratio with one of them, as the control's is.
const AGAINST_ONE: f64 = 0.75;

/// What the blocks or starts of one campaign say, each as a log ratio with the good build: with the
/// mean of both of its instances. Only those that count: what verdicts leave out is not here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Probe {
    /// Which build was probed, counted from 1; none where only good and bad were measured.
    pub build: Option<usize>,
    /// ln(bad / good).
    pub bad: Vec<StartRatio>,
    /// ln(probe / good).
    pub probed: Vec<StartRatio>,
    /// ln(second instance of good / good): with one instance, not with the mean of both.
    pub control: Vec<StartRatio>,
    /// Blocks or starts that have run and do not count, and why not the last of them.
    pub left_out: Option<(usize, String)>,
}

impl Probe {
    /// Blocks or starts that say something of the bad build and, if there is one, of the probed one.
    pub fn whole(&self) -> usize {
        match self.build {
            None => self.bad.len(),
            Some(_) => self.bad.len().min(self.probed.len()),
        }
    }
}

/// What all probes together say.
#[derive(Clone, Debug, PartialEq)]
pub struct Weight {
    /// Where the steps are.
    pub bisection: Bisection,
    /// ln(bad / good).
    pub bad: Evidence,
    /// ln(control / good), which should be 0; its own error is that of a ratio with one instance.
    pub control: Option<Evidence>,
    /// Degrees of freedom that errors are known with.
    pub degrees: f64,
    /// By what the control multiplied all errors; 1 where it holds.
    pub scale: f64,
    /// By build: ln(probe / good).
    pub probes: Vec<(usize, Evidence)>,
    /// Blocks or starts of the bad build that count.
    pub blocks: usize,
}

impl Weight {
    /// Whether good and bad differ beyond doubt. If they do not, nothing else means anything.
    pub fn is_distinct(&self) -> bool {
        self.bad.log_ratio.abs() > DISTINCT * self.bad.error
    }

    /// Whether more blocks of a probe of this build would hardly change what is known: good and bad
    /// differ, and it has the level of one of its neighbours or a level of its own.
    pub fn is_settled(&self, build: Option<usize>) -> bool {
        self.is_distinct() && build.is_none_or(|build| self.bisection.is_settled(build))
    }

    /// Whether the good build's second instance is like the first.
    pub fn does_control_hold(&self) -> bool {
        self.scale <= 1.0
    }
}

/// The errors of one comparison's mean.
struct Spread {
    /// The variance that all comparisons have in common, beyond what is within their starts.
    common: f64,
    degrees: f64,
    scale: f64,
}

impl Spread {
    /// Starts of one build, or of the control with `times` the variance. `None` without one.
    fn evidence(&self, starts: &[StartRatio], times: f64) -> Option<Evidence> {
        let ratios: Vec<f64> = starts.iter().map(|start| start.ratio).collect();
        let variance = times * self.common + within(starts);
        (!starts.is_empty()).then(|| Evidence {
            log_ratio: mean(&ratios),
            error: self.scale * (variance / starts.len() as f64).sqrt(),
        })
    }
}

/// The mean of the squared errors from within starts; 0 where they are not known.
fn within(starts: &[StartRatio]) -> f64 {
    let squares = starts.iter().filter_map(|start| start.within);
    KnownVariance::mean(squares).map_or(0.0, |of| of.variance)
}

/// Weighs all probes of builds `1..=n`; none while the bad build has no block.
///
/// A mean of `k` starts has the error `sqrt((tau^2 + w^2) / k)`, as a verdict's. `w^2` is the mean
/// of the squared errors from within its starts, and `tau^2` what all comparisons of the search have
/// in common: the variance between starts ([`StartsVariance`]) pooled over the bad build, each build
/// that was probed, and the control, which is 0 by design and has 4/3 of the others' variance; less
/// the mean `w^2`, and at least 0. Starts that agree by chance do not look surer than they are: a
/// prior of 3 % between starts ([`PRIOR_SPREAD`]) counts like two blocks, and errors from within are
/// the least there is. A control that is at odds with its error multiplies all of them.
pub fn weigh(n: usize, probes: &[Probe]) -> Option<Weight> {
    let bad: Vec<StartRatio> = all_of(probes, |probe| &probe.bad);
    let control: Vec<StartRatio> = all_of(probes, |probe| &probe.control);
    let mut by_build: BTreeMap<usize, (Vec<StartRatio>, usize)> = BTreeMap::new();
    for probe in probes.iter().filter(|probe| !probe.probed.is_empty()) {
        if let Some(build) = probe.build {
            let (starts, campaigns) = by_build.entry(build).or_default();
            starts.extend(&probe.probed);
            *campaigns += 1;
        }
    }
    let comparisons = by_build.values().map(|(starts, _)| starts).chain([&bad]);
    let (common, degrees) = common(comparisons, &control);
    let mut spread = Spread {
        common,
        degrees,
        scale: 1.0,
    };
    let of_control = spread.evidence(&control, 1.0 / AGAINST_ONE);
    let score = of_control.map(|control| control.log_ratio / control.error);
    let scores: Vec<f64> = score
        .into_iter()
        .filter(|score| score.is_finite())
        .collect();
    spread.scale = error_scales(&scores).first().copied().unwrap_or(1.0);

    let of_bad = spread.evidence(&bad, 1.0)?;
    let measured: Vec<Measured> = by_build
        .iter()
        .filter_map(|(build, (starts, campaigns))| {
            Some(Measured {
                build: *build,
                evidence: spread.evidence(starts, 1.0)?,
                campaigns: *campaigns,
            })
        })
        .collect();
    let with_bad = Measured {
        build: n,
        evidence: of_bad,
        campaigns: probes.len(),
    };
    Some(Weight {
        bisection: Bisection::new(n, &[&measured[..], &[with_bad]].concat()),
        bad: of_bad,
        control: of_control,
        degrees: spread.degrees,
        scale: spread.scale,
        probes: measured.iter().map(|of| (of.build, of.evidence)).collect(),
        blocks: bad.len(),
    })
}

fn all_of(probes: &[Probe], of: impl Fn(&Probe) -> &[StartRatio]) -> Vec<StartRatio> {
    probes.iter().flat_map(|probe| of(probe).to_vec()).collect()
}

/// `tau^2` and the degrees of freedom behind it.
fn common<'a>(
    comparisons: impl Iterator<Item = &'a Vec<StartRatio>>,
    control: &[StartRatio],
) -> (f64, f64) {
    let (mut squares, mut degrees) = (0.0, 0.0);
    let mut inner: Vec<f64> = Vec::new();
    for starts in comparisons {
        inner.extend(
            starts
                .iter()
                .filter_map(|start| Some(start.within?.variance)),
        );
        if let Some(of) = StartsVariance::of(starts) {
            squares += of.between.degrees * of.between.variance;
            degrees += of.between.degrees;
        }
    }
    // Its mean is 0 by design: no degree is lost.
    squares += AGAINST_ONE * control.iter().map(|start| start.ratio.powi(2)).sum::<f64>();
    degrees += control.len() as f64;
    let own_inner = control.iter().filter_map(|start| start.within);
    inner.extend(own_inner.map(|within| AGAINST_ONE * within.variance));
    let pooled = KnownVariance {
        variance: if degrees > 0.0 {
            squares / degrees
        } else {
            0.0
        },
        degrees,
    };
    let prior = OF_TWO * PRIOR_SPREAD.powi(2);
    let all = PRIOR_BLOCKS + pooled.degrees;
    let variance = (PRIOR_BLOCKS * prior + pooled.degrees * pooled.variance) / all;
    // By blocks nothing is known from within.
    let within = if inner.is_empty() { 0.0 } else { mean(&inner) };
    ((variance - within).max(0.0), all)
}

/// What a campaign says of its probe: the pairs that verdicts weigh.
pub fn read_probe(campaign: &CampaignRecord, confirm: &Confirm, probe: &BisectionProbe) -> Probe {
    let mut read = Probe {
        build: probe.probe,
        ..Probe::default()
    };
    let Some(step) = confirm.steps.first() else {
        return read;
    };
    let cells: Vec<CellRuns<'_>> = (0..campaign.header.plan.cells.len())
        .map(|cell| CellRuns {
            campaign,
            cell: &campaign.header.plan.cells[cell],
            runs: runs_of_cell(campaign, cell),
        })
        .collect();
    // Good, bad, the probed one if there is one, and the control, as the campaign was made.
    let at_control = 2 + usize::from(probe.probe.is_some());
    let (Some(good), Some(bad), Some(control)) =
        (cells.first(), cells.get(1), cells.get(at_control))
    else {
        return read;
    };
    let Some(planned) = good.step(step) else {
        return read;
    };
    let judged = Judged {
        metric: rate_of(planned),
        role: Role::Throughput,
        source: Source::Rate,
    };
    let basis = basis(&campaign.header);
    let mut left_out: Option<(usize, String)> = None;
    let mut pairs = |bases: &[&CellRuns<'_>], other: &CellRuns<'_>| {
        let meetings = Meetings::of(basis, bases, other, step);
        let (found, why) = counted(&meetings, &judged, basis);
        let lost = meetings.done() - found.len();
        if lost > left_out.as_ref().map_or(0, |(most, _)| *most) {
            let seen = last_disturbance(good, other, step).or(why);
            let reason = seen.unwrap_or_else(|| "too little was done in them".to_owned());
            left_out = Some((lost, reason));
        }
        found
    };
    let both = [good, control];
    read.bad = pairs(&both, bad);
    if let (Some(_), Some(probed)) = (probe.probe, cells.get(2)) {
        read.probed = pairs(&both, probed);
    }
    read.control = pairs(&[good], control);
    read.left_out = left_out;
    read
}

/// The blocks or starts that count, and why none does where turns are too short.
fn counted(
    meetings: &Meetings<'_, '_>,
    judged: &Judged,
    basis: Basis,
) -> (Vec<StartRatio>, Option<String>) {
    let pairs: Pairs = meetings.pairs(judged);
    if basis != Basis::Slices {
        let block = |ratio: &f64| StartRatio {
            load: 1,
            ratio: *ratio,
            within: None,
        };
        return (pairs.blocks.iter().map(block).collect(), None);
    }
    let empty = meetings.empty_turns();
    if empty > MOST_EMPTY_TURNS {
        let why = format!(
            "{:.0} % of the turns ended without an operation",
            100.0 * empty
        );
        return (Vec::new(), Some(why));
    }
    // Without its rounds a start does not say how sure it is.
    let starts = pairs.start_ratios().into_iter();
    (
        starts.filter(|start| start.within.is_some()).collect(),
        None,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(ratios: &[f64], within: Option<f64>) -> Vec<StartRatio> {
        let start = |ratio: &f64| StartRatio {
            load: 1,
            ratio: *ratio,
            within: within.map(|error| KnownVariance::of_error(error, 5.0)),
        };
        ratios.iter().map(start).collect()
    }

    fn probe(bad: &[f64], probed: &[f64], control: &[f64], within: Option<f64>) -> Probe {
        Probe {
            build: Some(2),
            bad: starts(bad, within),
            probed: starts(probed, within),
            control: starts(control, within),
            left_out: None,
        }
    }

    #[test]
    fn starts_are_pooled_with_a_prior_and_the_control() {
        let of = probe(&[-0.19, -0.21], &[0.01, -0.01], &[0.02, -0.02], None);
        let weight = weigh(4, std::slice::from_ref(&of)).unwrap();
        assert!((weight.bad.log_ratio + 0.2).abs() < 1e-12 && weight.is_distinct());
        // Two prior blocks of 1.5 x (3 %)^2, one degree each of bad and probe, two of the control.
        let squares = 2.0 * 1.5 * 0.0009f64 + 0.0002 + 0.0002 + 0.75 * 2.0 * 0.0004;
        let error = (squares / 6.0 / 2.0).sqrt();
        assert!((weight.bad.error - error).abs() < 1e-12, "{:?}", weight.bad);
        assert_eq!((weight.degrees, weight.blocks), (6.0, 2));
        assert!((weight.probes[0].1.error - error).abs() < 1e-12);
        // The control is a ratio with one instance, and not with the mean of two.
        let control = weight.control.unwrap();
        assert!((control.error - (4.0f64 / 3.0).sqrt() * error).abs() < 1e-12);
        assert!(weight.does_control_hold());
        assert!(weight.bisection.posterior()[..2].iter().sum::<f64>() < 0.05);
    }

    #[test]
    fn a_control_that_does_not_hold_widens_all_errors() {
        let off = vec![0.2; 12];
        let of = probe(&[-0.2; 12], &[0.0; 12], &off, Some(0.01));
        let weight = weigh(4, std::slice::from_ref(&of)).unwrap();
        let control = weight.control.unwrap();
        assert!(!weight.does_control_hold());
        assert!((weight.scale - control.log_ratio / control.error).abs() < 1e-9);
        let held = probe(&[-0.2; 12], &[0.0; 12], &[0.01; 12], Some(0.01));
        assert!(weight.bad.error > 2.0 * weigh(4, &[held]).unwrap().bad.error);
    }

    #[test]
    fn a_probe_is_settled_when_it_has_a_level() {
        let settled = |bad: f64, probed: f64| {
            let of = probe(&[bad, bad], &[probed, probed], &[0.0, 0.01], None);
            weigh(4, &[of]).unwrap().is_settled(Some(2))
        };
        assert!(settled(-0.2, 0.0) && settled(-0.2, -0.2));
        assert!(!settled(-0.03, 0.0), "good and bad hardly differ");
        assert!(!settled(-0.2, -0.15), "it may have the bad build's level");
    }

    #[test]
    fn probes_that_contradict_each_other_are_believed_less() {
        let error = |a: f64, b: f64| {
            let of = |ratio: f64| probe(&[-0.2], &[ratio], &[0.0], None);
            weigh(4, &[of(a), of(b)]).unwrap().bad.error
        };
        assert!(error(-0.3, 0.1) > 2.0 * error(-0.1, -0.1));
    }

    #[test]
    fn starts_are_not_surer_than_their_rounds() {
        let error = |within: f64| {
            let of = probe(&[-0.2, -0.2], &[0.0, 0.0], &[0.0, 0.0], Some(within));
            weigh(4, &[of]).unwrap().bad.error
        };
        assert!((error(0.3) - 0.3 / 2f64.sqrt()).abs() < 1e-12);
        assert!(error(0.001) < 0.02);
        // A build whose starts hold stalls is known less than the others.
        let stalled = Probe {
            probed: starts(&[0.0, 0.0], Some(0.1)),
            ..probe(&[-0.2, -0.2], &[], &[0.0, 0.0], Some(0.001))
        };
        let weight = weigh(4, &[stalled]).unwrap();
        assert!(weight.probes[0].1.error > 4.0 * weight.bad.error);
    }

    #[test]
    fn few_blocks_of_equal_builds_are_not_distinct() {
        let alone = Probe {
            build: None,
            ..probe(&[-0.03, -0.03], &[], &[0.0, 0.0], None)
        };
        let weight = weigh(4, &[alone]).unwrap();
        assert!(!weight.is_distinct(), "3 % in two blocks is what starts do");
        assert_eq!(weight.probes, []);
        assert_eq!(weigh(4, &[Probe::default()]), None);
    }
}
