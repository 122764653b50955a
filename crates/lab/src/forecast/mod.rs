//! What a plan will take: rows, bytes, time, connections. No build is started.

pub(crate) mod cell;
mod measured_rates;
mod run;

use std::path::Path;

use plimsoll_core::name::MADE_FROM_SOURCE;
use plimsoll_core::plan::{Budget, Cell, Plan, Verdicts};
use plimsoll_core::units::NS_PER_S;
use plimsoll_store::Store;
use serde::Serialize;

use self::cell::forecast_cell;
pub use self::cell::{CellForecast, StepForecast};
use self::measured_rates::measured_rows_per_s;
pub use self::run::PartForecast;
use self::run::{AsRun, as_run};
use crate::builds::{BuildCache, BuildToMake};
use crate::campaign::{LoadedPlan, RequiredBuilds, look_up_cells};
use crate::confirm::{CellSteps, ConfirmForecast, forecast_confirm};
use crate::error::LabError;

/// What a campaign will take.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The plan's name.
    pub plan: String,
    /// How `run` comes to verdicts; none for one run of each cell, or `blocks` of them.
    pub verdicts: Option<Verdicts>,
    /// Cells x blocks; with verdicts the base counts twice. None in a budget.
    pub trials: Option<usize>,
    /// All trials, one after the other, and what is made before them; at most the budget.
    pub seconds: f64,
    /// Of that the data that trials begin with a copy of; 0 where each trial makes its own.
    pub making_seconds: f64,
    /// What a block is divided into; one part without tests where it is whole.
    pub parts: Vec<PartForecast>,
    /// Free space needed in the data folder, margin included.
    pub disk_bytes: u64,
    /// Free space there now, if it can be read.
    pub free_bytes: Option<u64>,
    /// Builds that are compiled first, once; their time is not in `seconds`.
    pub to_make: Vec<BuildToMake>,
    pub cells: Vec<CellForecast>,
    /// What confirming all of it will take; none where a cell is on a server that is not ours,
    /// cells have different steps, or no step is a result.
    pub confirm: Option<ConfirmForecast>,
}

/// Works out what a plan will take.
pub fn forecast(
    loaded: &LoadedPlan,
    store: &Store,
    builds: &BuildCache,
    data_dir: &Path,
) -> Result<Forecast, LabError> {
    let plan: &Plan = &loaded.plan;
    let measured = measured_rows_per_s(store, plan);
    let headers = look_up_cells(loaded, builds, RequiredBuilds::Names)?;
    let cells: Vec<CellForecast> = plan
        .cells
        .iter()
        .zip(&headers)
        .map(|(cell, header)| forecast_cell(cell, header, &measured))
        .collect();
    let can_confirm = plan.cells.iter().all(|cell| {
        cell.server.is_none() && cell.workload.steps().len() == plan.cells[0].workload.steps().len()
    });
    let with_steps = plan.cells.iter().zip(&headers).zip(&cells);
    let of_cells: Vec<CellSteps<'_>> = with_steps
        .map(|((cell, header), forecast)| CellSteps {
            forecast,
            cell,
            header,
        })
        .collect();
    let confirm = if can_confirm {
        forecast_confirm(&of_cells, plan.base, Budget::of(plan))
    } else {
        None
    };
    let of_trial = cells.iter().map(|cell| cell.disk_bytes * 6 / 5).max();
    let of_slices = confirm.as_ref().and_then(|confirm| confirm.slices.as_ref());
    let disk_bytes = match (plan.verdicts, of_slices) {
        (Some(Verdicts::Budget(_)), Some(slices)) => slices.disk_bytes,
        _ => of_trial.unwrap_or(0),
    };
    let AsRun {
        cells,
        making_seconds,
        parts,
    } = as_run(plan, cells);
    let once: f64 = parts.iter().map(|part| part.seconds).sum();
    let (trials, seconds) = match plan.verdicts {
        None => (
            Some(cells.len() * plan.blocks as usize * parts.len()),
            once * f64::from(plan.blocks),
        ),
        Some(Verdicts::Blocks(blocks)) => (
            Some((cells.len() + 1) * blocks as usize * parts.len()),
            making_seconds + once * f64::from(blocks),
        ),
        Some(Verdicts::Budget(budget)) => (None, budget.time_ns as f64 / NS_PER_S),
    };
    Ok(Forecast {
        parts,
        making_seconds,
        to_make: to_make(plan, builds)?,
        confirm,
        plan: plan.name.clone(),
        verdicts: plan.verdicts,
        trials,
        seconds,
        disk_bytes,
        free_bytes: plimsoll_host::free_bytes(data_dir).ok(),
        cells,
    })
}

/// The builds of a plan that have to be compiled, each once.
fn to_make(plan: &Plan, builds: &BuildCache) -> Result<Vec<BuildToMake>, LabError> {
    let mut all: Vec<BuildToMake> = Vec::new();
    let is_source = |cell: &&Cell| {
        let source = cell.build.source.as_deref().unwrap_or_default();
        cell.server.is_none() && source.starts_with(MADE_FROM_SOURCE)
    };
    for cell in plan.cells.iter().filter(is_source) {
        let build = builds.to_make(&cell.build)?;
        let build = build.filter(|build| !all.iter().any(|known| known.name == build.name));
        all.extend(build);
    }
    Ok(all)
}
