//! How small a difference can be shown: the noise floor of a step here, and over the campaigns of
//! this machine.

use std::cell::OnceCell;

use plimsoll_core::engines::EngineName;
use plimsoll_stats::{median, student_quantile};
use plimsoll_store::CampaignRecord;
use plimsoll_store::header::CampaignHeader;

use super::request::{GateMetric, in_percent};
use crate::stored::Stored;
use crate::verdicts::pairs::basis;
use crate::verdicts::{Basis, Control, Estimate, Finding, Findings, machine};
use crate::{Options, analyse_among};

/// The confidence of noise floors.
const LEVEL: f64 = 0.95;

/// Half of a 95 % interval, and how it shrinks with repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Width {
    /// In percent.
    pub percent: f64,
    /// Starts or blocks behind it.
    repeats: usize,
    /// Degrees of freedom of its error.
    degrees: f64,
}

impl Width {
    /// Of a step and metric: that of its A/A control; of `finding` itself if there is none.
    pub fn of(findings: &Findings, finding: &Finding) -> Option<Self> {
        let is_its = |control: &&Control| {
            control.step == finding.step && control.metric.name == finding.metric.name
        };
        let control = findings.control.iter().find(is_its);
        control
            .and_then(Self::of_control)
            .or_else(|| Self::new(finding.estimate?, finding.estimate?.half_width_percent()?))
    }

    fn of_control(control: &Control) -> Option<Self> {
        let estimate = control.estimate?;
        let (low, high) = estimate.at_look?;
        Self::new(estimate, 50.0 * (high / low).ln())
    }

    fn new(estimate: Estimate, percent: f64) -> Option<Self> {
        let repeats = estimate.starts;
        let degrees = match estimate.error {
            Some((_, degrees)) => degrees,
            None => repeats as f64 - 1.0,
        };
        (repeats > 1).then_some(Self {
            percent,
            repeats,
            degrees,
        })
    }

    /// In percent, with so many repeats: `t(d) s / sqrt(n)`, where each repeat is a degree of
    /// freedom. Both `t` and the root fall with `n`, and with few starts `t` falls the faster.
    fn with(&self, repeats: usize) -> f64 {
        let reach = |n: usize| {
            let degrees = self.degrees + n as f64 - self.repeats as f64;
            student_quantile(0.5 + LEVEL / 2.0, degrees.max(1.0)) / (n as f64).sqrt()
        };
        self.percent * reach(repeats) / reach(self.repeats)
    }
}

/// More starts or blocks than this are not useful advice.
const MOST_REPEATS: usize = 100;
/// With this many the gate names a threshold that would do.
const MORE_REPEATS: usize = 20;

/// What would make a threshold (in percent) detectable: more starts or blocks, or a larger
/// threshold.
pub(super) fn advice(threshold: f64, floor: Width, basis: Basis) -> String {
    let (what, repeats) = (repeats_in_words(basis), floor.repeats);
    match (repeats..=MOST_REPEATS).find(|n| floor.with(*n) < threshold) {
        Some(needed) => {
            format!(
                "about {needed} undisturbed {what} would be needed where there are {repeats}, or a \
                threshold of at least {}",
                rounded_up(floor.percent)
            )
        }
        None => {
            let more = MORE_REPEATS.max(repeats);
            format!(
                "this machine cannot tell so small a difference; with {more} {what} a threshold of \
                {} would do",
                rounded_up(floor.with(more))
            )
        }
    }
}

/// A width above this does not count as a floor: so few or so restless repeats say nothing of how
/// small a difference can be shown.
pub(super) const MOST_PERCENT: f64 = 50.0;

/// Whether it says how small a difference can be shown.
pub(super) fn is_floor(percent: f64) -> bool {
    percent <= MOST_PERCENT
}

/// Why a step of that width cannot be gated.
pub(super) fn not_yet(floor: Width, basis: Basis) -> String {
    let what = repeats_in_words(basis);
    format!(
        "it cannot be gated yet: after {} {what} the base agrees with itself only within \
        +-{:.0} %, too wide for a noise floor; more {what} narrow it",
        floor.repeats, floor.percent
    )
}

fn repeats_in_words(basis: Basis) -> &'static str {
    match basis {
        Basis::Slices => "starts",
        _ => "blocks",
    }
}

/// So that the printed threshold would do.
fn rounded_up(percent: f64) -> String {
    format!("{:.1} %", (percent * 10.0).ceil() / 10.0)
}

/// A step is unfit if at least so many other campaigns say so,
const FEWEST_CAMPAIGNS: usize = 3;
/// of the newest ones that this many are read of.
const CAMPAIGNS: usize = 10;

/// The control of a step and metric in another campaign.
#[derive(Debug)]
struct Known {
    engine: EngineName,
    /// Starts or blocks of its campaign: the step may have left it earlier.
    repeats: usize,
    control: Control,
}

/// What the campaigns of this machine know of the base against itself. They are read when a step is
/// first asked for, and once.
#[derive(Debug)]
pub struct AaHistory<'a> {
    stored: &'a Stored<'a>,
    known: OnceCell<Vec<Known>>,
}

impl<'a> AaHistory<'a> {
    pub fn new(stored: &'a Stored<'a>) -> Self {
        Self {
            stored,
            known: OnceCell::new(),
        }
    }

    pub(super) fn stored(&self) -> &'a Stored<'a> {
        self.stored
    }

    /// Why a step of `campaign` is unfit for a threshold, in percent, if it is: the base differs
    /// from itself by more in the median of the other campaigns, with as many repeats as this one
    /// is planned to have. With a budget that is as many as it has, or as the others had in the
    /// median.
    pub(super) fn why_unfit(
        &self,
        campaign: &CampaignRecord,
        (step, metric): (&str, &GateMetric),
        threshold: f64,
        floor: Width,
    ) -> Option<String> {
        let header = &campaign.header;
        let engine = engine(header);
        let known = self.known.get_or_init(|| self.read(campaign));
        let is_its = |known: &&Known| {
            let control = &known.control;
            let is_metric = metric.is_judged_by(control.role, control.metric);
            known.engine == engine && control.step == step && is_metric
        };
        let (repeats, widths): (Vec<f64>, Vec<Width>) = known
            .iter()
            .filter(is_its)
            .filter_map(|known| Some((known.repeats as f64, Width::of_control(&known.control)?)))
            .unzip();
        let planned = planned(header).or_else(|| Some(median(&repeats)?.round() as usize))?;
        let planned = planned.max(floor.repeats);
        let floors: Vec<f64> = widths.iter().map(|width| width.with(planned)).collect();
        let floor = median(&floors).filter(|_| floors.len() >= FEWEST_CAMPAIGNS)?;
        (floor > threshold).then(|| {
            format!(
                "the base differs from itself by +-{floor:.1} % in the median of {} campaigns on \
                this machine, for {planned} {}: a threshold of {} needs more of them, and {} would \
                do",
                floors.len(),
                repeats_in_words(basis(header)),
                in_percent(threshold),
                rounded_up(floor)
            )
        })
    }

    /// The controls of the newest campaigns that ran here by the same design, without this one.
    fn read(&self, campaign: &CampaignRecord) -> Vec<Known> {
        let (header, here) = (&campaign.header, machine(campaign));
        let is_like = |other: &CampaignHeader| {
            let is_other = other.confirm.is_some() && other.id != header.id;
            is_other && basis(other) == basis(header) && engine(other) == engine(header)
        };
        let others = self.stored.load(is_like);
        others
            .filter(|other| here.is_some() && machine(other) == here)
            .take(CAMPAIGNS)
            .flat_map(known)
            .collect()
    }
}

/// The controls of a campaign.
fn known(campaign: &CampaignRecord) -> Vec<Known> {
    let (nothing, engine) = (Stored::default(), engine(&campaign.header));
    let campaigns = std::slice::from_ref(campaign);
    let view = analyse_among(campaigns, &Options::default(), &nothing).ok();
    let controls = view.map_or_else(Vec::new, |view| view.findings.control);
    let starts = controls.iter().filter_map(|control| control.estimate);
    let repeats = starts.map(|estimate| estimate.starts).max().unwrap_or(0);
    let known = controls.into_iter().map(|control| Known {
        engine,
        repeats,
        control,
    });
    known.collect()
}

/// Of the base.
fn engine(header: &CampaignHeader) -> EngineName {
    let base = header.confirm.as_ref().and_then(|confirm| {
        let mut cells = header.plan.cells.iter();
        cells.position(|cell| cell.label == confirm.base)
    });
    header.plan.cells[base.unwrap_or(header.plan.base)]
        .build
        .engine
}

/// Starts or blocks; none where a budget says how many there are.
fn planned(header: &CampaignHeader) -> Option<usize> {
    let blocks = match &header.confirm {
        Some(confirm) if confirm.budget.is_some() => None,
        Some(confirm) => confirm.starts.or(confirm.blocks),
        None => Some(header.plan.blocks),
    };
    blocks.map(|blocks| blocks.max(2) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_follows_student_and_not_the_root_alone() {
        let floor = |percent: f64, repeats: usize, prior: f64| Width {
            percent,
            repeats,
            degrees: repeats as f64 - 1.0 + prior,
        };
        // Three starts: t(2) = 4.30. A floor of 6 % is one of 2 % with 9 starts, where the root
        // alone would say 27.
        assert_eq!(
            advice(2.0, floor(6.0, 3, 0.0), Basis::Slices),
            "about 9 undisturbed starts would be needed where there are 3, or a threshold of at \
            least 6.0 %"
        );
        // A prior that is worth 20 starts leaves nearly the root alone.
        let with_prior = advice(2.0, floor(6.0, 3, 20.0), Basis::Slices);
        assert!(
            with_prior.starts_with("about 26 undisturbed starts"),
            "{with_prior}"
        );
        assert_eq!(
            advice(0.1, floor(6.0, 3, 0.0), Basis::Slices),
            "this machine cannot tell so small a difference; with 20 starts a threshold of 1.2 % \
            would do"
        );
        let many = advice(0.01, floor(0.45, 30, 0.0), Basis::Blocks);
        assert!(
            many.ends_with("with 30 blocks a threshold of 0.5 % would do"),
            "{many}"
        );
    }
}
