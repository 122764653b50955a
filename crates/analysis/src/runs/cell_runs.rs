//! A cell with all its runs, and which of them count.

use itertools::Itertools;
use plimsoll_core::plan::{Cell, Step};
use plimsoll_store::CampaignRecord;

use crate::runs::attempts::{Run, runs_of_cell};
use crate::runs::status::Status;

/// One cell with all its runs.
pub(crate) struct CellRuns<'a> {
    pub campaign: &'a CampaignRecord,
    pub cell: &'a Cell,
    pub runs: Vec<Run<'a>>,
}

impl<'a> CellRuns<'a> {
    /// The used runs of a step, by block.
    pub fn used(&self, step: &str) -> impl Iterator<Item = &Run<'a>> {
        self.runs
            .iter()
            .filter(move |run| run.is_used && run.step.name == step)
    }

    /// The runs whose values stand for the step: the finished ones, without the suspect ones where
    /// there are others.
    pub fn valued(&self, step: &str) -> Vec<&Run<'a>> {
        let finished: Vec<&Run<'a>> = self
            .used(step)
            .filter(|run| run.status.is_finished())
            .collect();
        let trusted: Vec<&Run<'a>> = finished
            .iter()
            .copied()
            .filter(|run| run.status != Status::Suspect)
            .collect();
        if trusted.is_empty() {
            finished
        } else {
            trusted
        }
    }

    /// Whether it is the second instance of a confirm's base, and no candidate.
    pub fn is_control(&self) -> bool {
        self.campaign.header.is_control(&self.cell.label)
    }

    /// Whether a step writes.
    pub fn is_writing(&self, step: &str) -> bool {
        self.step(step).is_some_and(Step::is_writing)
    }

    /// The plan's definition of a step.
    pub fn step(&self, name: &str) -> Option<&'a Step> {
        self.cell
            .workload
            .steps()
            .iter()
            .find(|step| step.name == name)
    }
}

/// The base of the experiment and its second instance, whichever cells are shown.
pub(crate) fn experiment_control(
    campaign: &CampaignRecord,
) -> Option<(CellRuns<'_>, CellRuns<'_>)> {
    let confirm = campaign.header.confirm.as_ref()?;
    let runs = |label: &str| cell_runs(campaign, label);
    Some((runs(&confirm.base)?, runs(&confirm.control)?))
}

/// All runs of the cell with this label.
pub(crate) fn cell_runs<'a>(campaign: &'a CampaignRecord, label: &str) -> Option<CellRuns<'a>> {
    let cells = &campaign.header.plan.cells;
    let index = cells.iter().position(|cell| cell.label == label)?;
    Some(CellRuns {
        campaign,
        cell: &cells[index],
        runs: runs_of_cell(campaign, index),
    })
}

/// The first used attempt of a cell that has what is asked for.
pub(crate) fn first_record<'a, T>(
    cell: &CellRuns<'a>,
    pick: impl Fn(&'a plimsoll_store::TrialRecord) -> Option<&'a T>,
) -> Option<&'a T> {
    cell.runs
        .iter()
        .filter(|run| run.is_used)
        .find_map(|run| pick(run.record?))
}

/// Every step of these cells, in the order of the plans.
pub(crate) fn step_names<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<String> {
    cells
        .into_iter()
        .flat_map(|cell| cell.workload.steps())
        .map(|step| step.name.clone())
        .unique()
        .collect()
}
