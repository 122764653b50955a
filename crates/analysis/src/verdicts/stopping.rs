//! When a confirm campaign may end before its last block or start.

use std::collections::BTreeSet;

use plimsoll_core::plan::Budget;
use plimsoll_stats::{Looks, Verdict};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignRecord, Design};

use super::finding::{ALPHA, Call, Finding};
use super::measured::Role;
use crate::{Options, analyse};

/// Whether so many blocks are a planned look of a confirm campaign by blocks.
pub fn is_look(header: &CampaignHeader, blocks: u32) -> bool {
    let is_by_blocks = header
        .confirm
        .as_ref()
        .is_some_and(|confirm| confirm.design == Design::Blocks);
    let looks = Looks::new(header.plan.blocks.max(1) as usize, ALPHA);
    is_by_blocks
        && looks
            .all()
            .iter()
            .any(|look| look.blocks == blocks as usize)
}

/// Whether so many blocks are a look at which all throughputs are decided. More blocks would narrow
/// intervals and change no verdict.
pub fn is_decided(campaign: &CampaignRecord, blocks: u32) -> bool {
    is_look(&campaign.header, blocks)
        && analyse(std::slice::from_ref(campaign), &Options::default()).is_ok_and(|view| {
            let mut findings = view
                .findings
                .all
                .iter()
                .filter(|finding| finding.role == Role::Throughput)
                .peekable();
            findings.peek().is_some()
                && findings.all(|finding| {
                    finding
                        .verdict()
                        .is_some_and(|verdict| verdict != Verdict::Inconclusive)
                })
        })
}

/// Fewer starts than this are never enough: how far they lie apart would be chance.
pub const STARTS_TO_LEAVE: usize = 4;

/// How far one step of a campaign with a budget has come.
#[derive(Clone, Debug, PartialEq)]
pub struct StepProgress {
    pub step: String,
    /// Starts that count.
    pub starts: usize,
    /// Half of the widest 95 % interval of its throughputs, as a share; `None` while one of them
    /// has no interval.
    pub half_width: Option<f64>,
    /// The half-width that is enough.
    pub goal: f64,
    /// Whether each throughput is narrow enough or has a verdict.
    pub is_decided: bool,
    /// Why no more starts are needed; `None` while they are.
    pub done: Option<StepDone>,
}

/// Why a step has been measured enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDone {
    /// All intervals are narrow enough.
    Narrow,
    /// Who asks needs no more.
    Settled,
    /// Nothing can be said of any of them: one crashed, or all starts were left out.
    Invalid,
}

impl StepProgress {
    /// The starts that the goal needs if they go on as they have begun: the width falls with the
    /// square root of their number.
    pub fn starts_needed(&self) -> Option<f64> {
        let share = self.half_width? / self.goal;
        Some(self.starts as f64 * share * share)
    }

    /// Lets somebody else say which steps are done, in place of the width. One of which nothing can
    /// be said stays done.
    pub fn settle(&mut self, settled: &BTreeSet<String>) {
        self.done = match self.done {
            Some(StepDone::Invalid) => Some(StepDone::Invalid),
            _ if settled.contains(&self.step) => Some(StepDone::Settled),
            _ => None,
        };
    }
}

/// How far the steps of a campaign with a budget have come, in their order.
pub fn progress(campaign: &CampaignRecord, budget: &Budget) -> Vec<StepProgress> {
    let Ok(view) = analyse(std::slice::from_ref(campaign), &Options::default()) else {
        return Vec::new();
    };
    let confirm = campaign.header.confirm.iter();
    let steps = confirm.flat_map(|confirm| &confirm.steps);
    let cells = &campaign.header.plan.cells;
    let is_writing = |name: &str| {
        let mut steps = cells.iter().flat_map(|cell| cell.workload.steps());
        steps.any(|step| step.name == name && step.is_writing())
    };
    steps
        .map(|step| {
            let goal = if is_writing(step) {
                budget.writes
            } else {
                budget.reads
            };
            let findings = view.findings.all.iter();
            let of_step: Vec<&Finding> = findings
                .filter(|of| of.step == *step && of.role == Role::Throughput)
                .collect();
            of_findings(step, goal, &of_step)
        })
        .collect()
}

fn of_findings(step: &str, goal: f64, findings: &[&Finding]) -> StepProgress {
    let width = |finding: &&Finding| Some(finding.estimate?.half_width_percent()? / 100.0);
    // Starts that say too little on a disturbed machine may be followed by better ones; a crash will
    // not.
    let may_recover = |finding: &Finding| {
        let done = finding.too_little_of;
        done.is_some_and(|done| done < STARTS_TO_LEAVE)
    };
    let is_open = |finding: &&&Finding| finding.call != Call::Invalid || may_recover(finding);
    let open: Vec<&Finding> = findings.iter().filter(is_open).copied().collect();
    let widths: Option<Vec<f64>> = open.iter().map(width).collect();
    let starts = open
        .iter()
        .map(|finding| finding.estimate.map_or(0, |estimate| estimate.starts))
        .min();
    let has_enough = starts.is_some_and(|starts| starts >= STARTS_TO_LEAVE);
    let is_narrow = |finding: &&Finding| width(finding).is_some_and(|width| width <= goal);
    let is_decided = |finding: &&Finding| {
        finding
            .verdict()
            .is_some_and(|verdict| verdict != Verdict::Inconclusive)
    };
    let done = if open.is_empty() && !findings.is_empty() {
        Some(StepDone::Invalid)
    } else if !has_enough {
        None
    } else if open.iter().all(is_narrow) {
        Some(StepDone::Narrow)
    } else {
        None
    };
    StepProgress {
        step: step.to_owned(),
        starts: starts.unwrap_or(0),
        half_width: widths
            .filter(|widths| !widths.is_empty())
            .map(|widths| widths.into_iter().fold(0.0, f64::max)),
        goal,
        is_decided: has_enough && open.iter().all(|of| is_narrow(of) || is_decided(of)),
        done,
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Estimate;
    use super::super::simulated::finding;
    use super::*;

    /// What is invalid after so many starts that count.
    fn invalid(starts: usize, left_out: usize, too_little_of: Option<usize>) -> StepProgress {
        let estimate = Estimate {
            ratio: 0.9,
            interval: (starts > 0).then_some((0.5, 1.8)),
            level: 0.95,
            starts,
            pairs: starts,
            p: None,
            at_look: None,
            error: None,
            typical: None,
            scale: 1.0,
        };
        let of = Finding {
            call: Call::Invalid,
            left_out,
            too_little_of,
            ..finding(0, 0, estimate, 0.95)
        };
        of_findings("test-0", 0.99, &[&of])
    }

    /// A first start on a busy machine, in which many turns ended without an operation, sent a step
    /// away for good.
    #[test]
    fn a_step_stays_while_more_starts_may_say_enough() {
        for (starts, left_out, too_little_of, done) in [
            (1, 0, Some(1), None),
            (0, 1, Some(1), None),
            (2, 1, Some(3), None),
            (2, 2, Some(4), Some(StepDone::Invalid)),
            (4, 0, Some(4), Some(StepDone::Invalid)),
            // In five starts more nothing was done on one side.
            (1, 0, Some(6), Some(StepDone::Invalid)),
            (1, 0, None, Some(StepDone::Invalid)),
            (1, 1, None, Some(StepDone::Invalid)),
        ] {
            let of = invalid(starts, left_out, too_little_of);
            assert_eq!(of.done, done, "{starts} {left_out} {too_little_of:?}");
            assert!(!of.is_decided || done.is_some());
        }
    }
}
