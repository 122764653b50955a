//! The cells of a survey that are confirmed, and the control.

use plimsoll_core::plan::{Cell, Verdicts};
use plimsoll_store::header::{CampaignHeader, CellHeader};

use crate::error::LabError;
use crate::trial_process::CONTROL;

/// A campaign that ran a plan with verdicts as one that can be confirmed: without the base's second
/// instance, and with the steps that made the data and the plan's budget. A survey stays as it is.
pub fn as_survey(header: &CampaignHeader) -> CampaignHeader {
    let mut survey = header.clone();
    let Some(confirm) = survey.confirm.take() else {
        return survey;
    };
    for (index, cell) in survey.plan.cells.iter_mut().enumerate() {
        let before = confirm.before.get(index).into_iter().flatten();
        let steps = before.chain(cell.workload.steps()).cloned().collect();
        cell.workload = cell.workload.with_steps(steps);
    }
    survey
        .plan
        .cells
        .retain(|cell| cell.label != confirm.control);
    survey.cells.retain(|cell| cell.label != confirm.control);
    survey.plan.blocks = 1;
    survey.plan.verdicts = confirm.budget.map(Verdicts::Budget);
    survey
}

pub(super) struct Candidates {
    /// The control is the last.
    pub cells: Vec<Cell>,
    pub headers: Vec<CellHeader>,
    /// The base's index.
    pub base: usize,
}

/// The requested cells, or all of them without a request, and the base once more as control.
pub(super) fn candidates(
    survey: &CampaignHeader,
    requested: &[String],
) -> Result<Candidates, LabError> {
    let plan = &survey.plan;
    let chosen: Vec<usize> = if requested.is_empty() {
        (0..plan.cells.len()).collect()
    } else {
        requested
            .iter()
            .map(|name| find(survey, name))
            .collect::<Result<_, _>>()?
    };
    let base = chosen
        .iter()
        .position(|&cell| cell == plan.base)
        .unwrap_or(0);
    let mut cells: Vec<Cell> = chosen
        .iter()
        .map(|&cell| plan.cells[cell].clone())
        .collect();
    let mut headers: Vec<CellHeader> = chosen
        .iter()
        .map(|&cell| survey.cells[cell].clone())
        .collect();
    check(survey, &cells, &headers)?;
    let (mut control, mut header) = (cells[base].clone(), headers[base].clone());
    control.label.push_str(CONTROL);
    header.label.clone_from(&control.label);
    cells.push(control);
    headers.push(header);
    Ok(Candidates {
        cells,
        headers,
        base,
    })
}

/// A cell by its label, or the first one of a build.
fn find(survey: &CampaignHeader, name: &str) -> Result<usize, LabError> {
    let cells = &survey.plan.cells;
    let exact = cells.iter().position(|cell| cell.label == name);
    let of_build = || cells.iter().position(|cell| cell.build.to_string() == name);
    exact.or_else(of_build).ok_or_else(|| {
        let labels: Vec<&str> = cells.iter().map(|cell| cell.label.as_str()).collect();
        let hint = plimsoll_core::suggest::hint(name, labels.iter().copied());
        LabError::Usage(format!(
            "campaign {} has no cell {name}{hint}; its cells are {}",
            survey.id,
            labels.join(", ")
        ))
    })
}

/// Refuses cells whose data cannot be copied or whose builds are not here.
fn check(survey: &CampaignHeader, cells: &[Cell], headers: &[CellHeader]) -> Result<(), LabError> {
    if let Some(cell) = cells.iter().find(|cell| cell.server.is_some()) {
        return Err(LabError::Usage(format!(
            "cell {} is on an external server: Plimsoll can neither start a second instance of it \
            nor copy its data; use --cells to confirm only cells on builds",
            cell.label
        )));
    }
    if let Some((header, reason)) = headers
        .iter()
        .find_map(|header| Some((header, header.missing_build.as_ref()?)))
    {
        return Err(LabError::Usage(format!(
            "the build of cell {} could not be fetched ({reason}); fetch it, or leave the cell out \
            with --cells",
            header.label
        )));
    }
    if cells.is_empty() {
        return Err(LabError::Usage(format!(
            "campaign {} has no cells to confirm",
            survey.id
        )));
    }
    Ok(())
}
