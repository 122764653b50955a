//! What trials take as they are run: parts of blocks, and the shorter steps of verdicts by blocks.

use plimsoll_core::plan::{Cell, Plan, Step, Verdicts};
use plimsoll_core::units::NS_PER_S;
use serde::Serialize;

use super::cell::{CellForecast, StepForecast};
use crate::confirm::{LOADS, run_by_blocks};

/// What a part of a block will take, for all cells one after the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartForecast {
    /// The tests that run in it and in no other.
    pub tests: Vec<String>,
    /// Its load included, where trials make their data; with verdicts the base counts twice.
    pub seconds: f64,
}

/// Cells and parts as they are run.
pub(super) struct AsRun {
    /// With the steps of their trials.
    pub cells: Vec<CellForecast>,
    /// The data that trials begin with a copy of, each cell's and the control's.
    pub making_seconds: f64,
    pub parts: Vec<PartForecast>,
}

/// From cells with all steps of the plan.
pub(super) fn as_run(plan: &Plan, cells: Vec<CellForecast>) -> AsRun {
    let Some(run) = run_by_blocks(plan) else {
        return AsRun {
            parts: forecast_parts(plan, &cells),
            making_seconds: 0.0,
            cells,
        };
    };
    let making = |index: usize| -> f64 {
        let steps = run.before[index].iter();
        let seconds = steps.filter_map(|step| forecast_of(&cells[index], step));
        seconds.map(|of| of.seconds + of.wait_seconds).sum()
    };
    let making_seconds: f64 = (0..cells.len()).chain([plan.base]).map(making).sum();
    let with_run = cells.iter().zip(&run.plan.cells);
    let cells: Vec<CellForecast> = with_run
        .map(|(whole, cell)| shortened(whole, cell))
        .collect();
    AsRun {
        parts: forecast_parts(&run.plan, &cells),
        making_seconds: making_seconds * f64::from(LOADS),
        cells,
    }
}

fn forecast_of<'f>(cell: &'f CellForecast, step: &Step) -> Option<&'f StepForecast> {
    cell.steps.iter().find(|of| of.step == step.name)
}

/// The cell with the steps that its trials run, as long as they are there.
fn shortened(whole: &CellForecast, cell: &Cell) -> CellForecast {
    let steps: Vec<StepForecast> = cell
        .workload
        .steps()
        .iter()
        .filter_map(|step| {
            let known = forecast_of(whole, step)?;
            let planned_ns = step.duration_ns();
            let ns = planned_ns.map(|ns| ns + step.ends.warm_up_ns());
            Some(StepForecast {
                seconds: ns.map_or(known.seconds, |ns| ns as f64 / NS_PER_S),
                ..known.clone()
            })
        })
        .collect();
    CellForecast {
        seconds: steps.iter().map(|of| of.seconds + of.wait_seconds).sum(),
        steps,
        ..whole.clone()
    }
}

/// The parts of a block, or all of it as one.
fn forecast_parts(plan: &Plan, cells: &[CellForecast]) -> Vec<PartForecast> {
    let seconds_of = |cell: usize, part: Option<u32>| -> f64 {
        let names: Vec<&str> = plan
            .steps_of(cell, part)
            .iter()
            .map(|step| step.name.as_str())
            .collect();
        let steps = cells[cell].steps.iter();
        let of_part = steps.filter(|step| names.contains(&step.step.as_str()));
        of_part.map(|step| step.seconds + step.wait_seconds).sum()
    };
    // Verdicts need the base twice.
    let again = matches!(plan.verdicts, Some(Verdicts::Blocks(_))).then_some(plan.base);
    let seconds = |part: Option<u32>| -> f64 {
        let all = (0..cells.len()).chain(again);
        all.map(|cell| seconds_of(cell, part)).sum()
    };
    let whole = || PartForecast {
        tests: Vec::new(),
        seconds: seconds(None),
    };
    match &plan.split {
        None => vec![whole()],
        Some(split) => (1..)
            .zip(&split.parts)
            .map(|(part, tests)| PartForecast {
                tests: tests.clone(),
                seconds: seconds(Some(part)),
            })
            .collect(),
    }
}
