//! What a plan will take: rows, bytes, time, connections. No build is started.

pub(crate) mod cell;
mod measured_rates;

use std::path::Path;

use plimsoll_core::plan::Plan;
use plimsoll_store::Store;
use serde::Serialize;

use self::cell::forecast_cell;
pub use self::cell::{CellForecast, StepForecast};
use self::measured_rates::measured_rows_per_s;

use crate::builds::BuildCache;
use crate::campaign::{LoadedPlan, RequiredBuilds, look_up_cells};
use crate::confirm::{CellSteps, ConfirmForecast, forecast_confirm};
use crate::error::LabError;

/// What a campaign will take.
#[derive(Clone, Debug, Serialize)]
pub struct Forecast {
    /// The plan's name.
    pub plan: String,
    /// Cells x blocks.
    pub trials: usize,
    /// All trials, one after the other.
    pub seconds: f64,
    /// Free space needed in the data folder, margin included.
    pub disk_bytes: u64,
    /// Free space there now, if it can be read.
    pub free_bytes: Option<u64>,
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
            settings: &header.settings,
        })
        .collect();
    Ok(Forecast {
        confirm: if can_confirm {
            forecast_confirm(&of_cells, plan.base)
        } else {
            None
        },
        plan: plan.name.clone(),
        trials: plan.cells.len() * plan.blocks as usize,
        seconds: cells.iter().map(|cell| cell.seconds).sum::<f64>() * f64::from(plan.blocks),
        disk_bytes: cells
            .iter()
            .map(|cell| cell.disk_bytes * 6 / 5)
            .max()
            .unwrap_or(0),
        free_bytes: plimsoll_host::free_bytes(data_dir).ok(),
        cells,
    })
}
