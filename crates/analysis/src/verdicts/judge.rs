//! From runs to findings.

use crate::metrics::{Direction, Metric};
use plimsoll_stats::{
    Looks, Policy, Screen, Verdict, benjamini_hochberg, blocks_needed, blocks_to_decide,
};
use plimsoll_store::{CampaignRecord, CampaignState};

use super::control::{CONTROL_LEVEL, control};
use super::estimate::estimate;
use super::finding::{ALPHA, Basis, Call, Control, Estimate, Finding, Findings, MARGIN};
use super::measured::metrics_of;
use super::pairs::{Pairs, basis, last_disturbance, pairs};
use super::spreads::Spreads;
use super::validity::obstacle;
use super::why::why;
use crate::cells::cell_info::CellInfo;
use crate::runs::cell_runs::CellRuns;
use crate::steps::step_view::StepView;

/// The level of intervals and of a screen's prediction.
const LEVEL: f64 = 0.95;
/// Dots that a plot can show.
const DOTS: usize = 100;
/// More turns without an operation than this, and turns are too short for the step.
const EMPTY_TURNS: f64 = 0.1;

/// What findings are made from.
pub(crate) struct Experiment<'a> {
    /// The cells shown, each with its base.
    pub infos: &'a [CellInfo],
    pub cells: &'a [CellRuns<'a>],
    /// The base of the experiment and its second instance, where the campaign has one.
    pub control: Option<(CellRuns<'a>, CellRuns<'a>)>,
    pub steps: &'a [StepView],
    /// How far starts of this machine lie apart.
    pub spreads: &'a Spreads,
}

/// Everything that can be said of the cells against their bases.
pub(crate) fn find(experiment: &Experiment<'_>) -> Findings {
    let [first, _, ..] = experiment.cells else {
        return Findings::none();
    };
    let campaign = first.campaign;
    let basis = basis(&campaign.header);
    let confirm = campaign.header.confirm.as_ref();
    let (margin, alpha) = confirm.map_or((MARGIN, ALPHA), |confirm| (confirm.delta, confirm.alpha));
    let is_confirmed =
        |step: &&StepView| confirm.is_none_or(|confirm| confirm.steps.contains(&step.name));
    let steps: Vec<&StepView> = experiment.steps.iter().filter(is_confirmed).collect();

    let mut controls: Vec<Control> = Vec::new();
    if let Some((of, again)) = &experiment.control {
        for step in &steps {
            controls.extend(
                metrics_of(step, &experiment.infos[0]).map(|metric| {
                    control(basis, of, again, &step.name, metric, metric == step.rate)
                }),
            );
        }
    }
    let mut all = Vec::new();
    let is_candidate = |(i, cell): &(usize, &CellRuns<'_>)| {
        experiment.infos[*i].base != *i
            && cell.campaign.header.id == campaign.header.id
            && !cell.is_control()
    };
    for (index, cell) in experiment.cells.iter().enumerate().filter(is_candidate) {
        let of = experiment.infos[index].base;
        for step in &steps {
            for metric in metrics_of(step, &experiment.infos[of]) {
                let question = Question {
                    basis,
                    base: &experiment.cells[of],
                    cell,
                    index,
                    of,
                    step,
                    metric,
                };
                all.extend(question.finding(experiment, &controls));
            }
        }
    }
    decide(&mut all, campaign, margin, alpha);
    for finding in &mut all {
        finding.why = why(
            &experiment.cells[finding.base],
            &experiment.cells[finding.cell],
            &finding.step,
            finding.gain(),
        );
    }
    let control_cells = (0..experiment.cells.len())
        .filter(|cell| experiment.cells[*cell].is_control())
        .collect();
    Findings {
        all,
        control: controls,
        margin,
        alpha,
        control_cells,
    }
}

/// One cell, step and metric.
struct Question<'a> {
    basis: Basis,
    base: &'a CellRuns<'a>,
    cell: &'a CellRuns<'a>,
    index: usize,
    of: usize,
    step: &'a StepView,
    metric: &'static Metric,
}

impl Question<'_> {
    /// The finding before the family is corrected for; `None` where neither side has a number and
    /// nothing went wrong.
    fn finding(&self, experiment: &Experiment<'_>, controls: &[Control]) -> Option<Finding> {
        let is_throughput = self.metric == self.step.rate;
        let step = &self.step.name;
        let pairs = pairs(
            self.basis,
            self.base,
            self.cell,
            step,
            self.metric.name,
            is_throughput,
        );
        let estimate = estimate(self.basis, &pairs, LEVEL);
        let mut finding = Finding {
            cell: self.index,
            base: self.of,
            step: step.clone(),
            metric: self.metric,
            is_throughput,
            basis: self.basis,
            estimate,
            p_adjusted: None,
            call: Call::Invalid,
            reason: String::new(),
            left_out: pairs.left_out,
            seconds: pairs.seconds,
            dots: dots(&pairs),
            why: String::new(),
        };
        if let Some(reason) = obstacle(self.base, self.cell, step) {
            // It is reported once, for the step's throughput.
            return is_throughput.then_some(Finding { reason, ..finding });
        }
        if pairs.done == 0 {
            return None;
        }
        finding.reason = self
            .too_little(&pairs, estimate, controls)
            .unwrap_or_default();
        if !finding.reason.is_empty() {
            let has_number = estimate.is_some() || pairs.left_out > 0;
            return has_number.then_some(finding);
        }
        finding.call = match (self.basis, estimate) {
            (_, None) => return None,
            (Basis::Screen, Some(estimate)) => {
                let spread =
                    experiment
                        .spreads
                        .of(self.base.cell.build.engine, step, self.metric.name);
                Call::Screen(Screen::of(estimate.ratio.ln(), spread, LEVEL), spread)
            }
            (_, Some(_)) => Call::Verdict(Verdict::Inconclusive),
        };
        Some(finding)
    }

    /// Why pairs that are there say nothing.
    fn too_little(
        &self,
        pairs: &Pairs,
        estimate: Option<Estimate>,
        controls: &[Control],
    ) -> Option<String> {
        if pairs.left_out == pairs.done {
            let what = match self.basis {
                Basis::Screen => "the run was left out",
                Basis::Blocks => "all blocks were left out; of the last",
                Basis::Slices => "all starts were left out; of the last",
            };
            let seen = last_disturbance(self.base, self.cell, &self.step.name);
            return Some(format!(
                "{what}: {}",
                seen.as_deref().unwrap_or("disturbed from outside")
            ));
        }
        if pairs.empty_turns > EMPTY_TURNS {
            let share = 100.0 * pairs.empty_turns;
            return Some(format!(
                "{share:.0} % of the turns ended without an operation: they are too short for this \
                step; use longer turns or blocks"
            ));
        }
        estimate?;
        let control = controls
            .iter()
            .find(|control| control.step == self.step.name && control.metric == self.metric)?;
        let of_control = control.estimate.filter(|_| !control.is_sound)?;
        let (low, high) = of_control.interval?;
        Some(format!(
            "the A/A control failed: the base against itself is {:.3} [{low:.3}, {high:.3}] at \
            {:.0} %; run `plimsoll confirm` again on a quieter machine",
            of_control.ratio,
            100.0 * CONTROL_LEVEL
        ))
    }
}

/// Up to a hundred ratios, evenly taken.
fn dots(pairs: &Pairs) -> Vec<f64> {
    let all = pairs.all();
    let every = all.len().div_ceil(DOTS).max(1);
    all.iter().step_by(every).map(|ratio| ratio.exp()).collect()
}

/// Corrects for the family and gives the verdicts.
fn decide(all: &mut [Finding], campaign: &CampaignRecord, margin: f64, alpha: f64) {
    let tested: Vec<usize> = (0..all.len())
        .filter(|i| all[*i].verdict().is_some())
        .collect();
    let p: Vec<f64> = tested
        .iter()
        .map(|i| {
            all[*i]
                .estimate
                .and_then(|estimate| estimate.p)
                .unwrap_or(1.0)
        })
        .collect();
    let family = tested.len();
    for ((i, p), p_adjusted) in tested.into_iter().zip(&p).zip(benjamini_hochberg(&p)) {
        let finding = &mut all[i];
        let level = level(campaign, finding, alpha);
        finding.p_adjusted = Some(p_adjusted);
        let Some((estimate, interval)) = finding
            .estimate
            .and_then(|estimate| Some((estimate, estimate.log_interval()?)))
        else {
            finding.reason = undecidable(finding, family, alpha);
            continue;
        };
        if finding.basis == Basis::Slices && estimate.starts < 2 {
            finding.reason = "the interval holds within one start only, and starts differ: at \
                             least 2 are needed, better 5"
                .to_owned();
            continue;
        }
        let is_lower_better = finding.metric.direction == Direction::Lower;
        let (gain, interval) = if is_lower_better {
            (-estimate.ratio.ln(), interval.negated())
        } else {
            (estimate.ratio.ln(), interval)
        };
        let policy = Policy {
            margin: margin.ln_1p(),
            level,
            ..Policy::new(level)
        };
        let verdict = Verdict::of(gain, interval, *p, p_adjusted, policy);
        finding.call = Call::Verdict(verdict);
        if verdict == Verdict::Inconclusive {
            finding.reason = undecided(finding, campaign, level, family, alpha, margin);
        }
    }
}

/// The level at which a difference may be called now: all of alpha when the campaign is complete as
/// planned, else that of the look it has reached.
fn level(campaign: &CampaignRecord, finding: &Finding, alpha: f64) -> f64 {
    if finding.basis == Basis::Slices {
        return alpha;
    }
    let planned = campaign.header.plan.blocks.max(1) as usize;
    let looks = Looks::new(planned, alpha);
    let done = finding.estimate.map_or(0, |estimate| estimate.pairs) + finding.left_out;
    let look = if campaign.state == CampaignState::Complete {
        looks.all().last().copied()
    } else {
        looks.reached(done)
    };
    look.map_or(0.0, |look| look.level)
}

/// What is reported if so few pairs have no interval.
fn undecidable(finding: &Finding, family: usize, alpha: f64) -> String {
    let pairs = finding.estimate.map_or(0, |estimate| estimate.pairs);
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    match finding.basis {
        Basis::Slices => format!(
            "cannot be decided with {} of one start: at least 2 starts are needed",
            count(pairs, "round")
        ),
        _ => format!(
            "cannot be decided with {}, {} needed",
            count(pairs, "block"),
            blocks_to_decide(family, alpha).max(6)
        ),
    }
}

/// What would decide where nothing was shown.
fn undecided(
    finding: &Finding,
    campaign: &CampaignRecord,
    level: f64,
    family: usize,
    alpha: f64,
    margin: f64,
) -> String {
    let Some(estimate) = finding.estimate else {
        return String::new();
    };
    if finding.basis == Basis::Slices {
        return format!(
            "neither a difference nor less than {:.0} % was shown: more starts narrow the interval",
            100.0 * margin
        );
    }
    let floor = blocks_to_decide(family, alpha);
    if level == 0.0
        && let Some(next) = Looks::new(campaign.header.plan.blocks.max(1) as usize, alpha)
            .next_decisive(estimate.pairs + finding.left_out)
    {
        return format!(
            "{} blocks so far: a difference is called at {} blocks at the earliest",
            estimate.pairs, next.blocks
        );
    }
    if estimate.pairs < floor && estimate.p.is_some_and(|p| p <= level) {
        return format!(
            "one of {family} questions cannot be decided with {} blocks, {floor} needed",
            estimate.pairs
        );
    }
    // The spread of the pairs from their interval, and from it the blocks for a difference as large
    // as the margin.
    let deviation = spread(&finding.dots);
    let needed =
        deviation.and_then(|deviation| blocks_needed(margin.ln_1p() / deviation, alpha, 0.8, 1));
    match needed.filter(|needed| *needed > estimate.pairs) {
        Some(needed) => format!(
            "neither a difference nor less than {:.0} % was shown with {} blocks; {needed} would \
            show {:.0} % in four of five campaigns",
            100.0 * margin,
            estimate.pairs,
            100.0 * margin
        ),
        None => format!(
            "neither a difference nor less than {:.0} % was shown with {} blocks",
            100.0 * margin,
            estimate.pairs
        ),
    }
}

/// The standard deviation of the log ratios.
fn spread(ratios: &[f64]) -> Option<f64> {
    let n = ratios.len() as f64;
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (n >= 2.0 && variance > 0.0).then(|| variance.sqrt())
}
