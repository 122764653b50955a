//! What a plan will take: rows, bytes, time, connections. No build is started.

use std::path::Path;

use plimsoll_core::engines::{EngineName, SMALL_BATCH};
use plimsoll_core::plan::{Cell, KvEnd, KvStep, KvWork, Plan, Step, StepEnd, StepKind};
use plimsoll_engine::bytes_at_start;
use plimsoll_store::Store;
use serde::Serialize;

use crate::builds::BuildCache;
use crate::campaign::{LoadedPlan, Need, look_up_cells, peak_size};
use crate::confirm::{CellSteps, ConfirmForecast, forecast_confirm};
use crate::error::LabError;
use crate::measured_rates::measured_rows_per_s;

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
    /// The cells.
    pub cells: Vec<CellForecast>,
    /// What confirming all of it will take; none where a cell is on a server that is not ours,
    /// cells have different steps, or no step is a result.
    pub confirm: Option<ConfirmForecast>,
}

/// What one trial of a cell will take.
#[derive(Clone, Debug, Serialize)]
pub struct CellForecast {
    /// The cell.
    pub cell: String,
    /// The build's version.
    pub version: String,
    /// Connections of the busiest step.
    pub connections: u32,
    /// Rows of all tables at their largest.
    pub peak_rows: u64,
    /// Bytes on disk at the largest, logs included.
    pub disk_bytes: u64,
    /// Those of them that are there before the first row: redo logs made in advance, the server's
    /// own tables.
    pub disk_bytes_at_start: u64,
    /// One trial.
    pub seconds: f64,
    /// The steps.
    pub steps: Vec<StepForecast>,
}

/// What one step will take.
#[derive(Clone, Debug, Serialize)]
pub struct StepForecast {
    /// The step.
    pub step: String,
    /// Rows inserted over all clients; as many are deleted where the step deletes. 0 where no plan
    /// knows.
    pub inserted_rows: u64,
    /// Rows per transaction of steps of the Insert Benchmark.
    pub batch: u32,
    /// Connections.
    pub connections: u32,
    /// Over all clients: background rows per second of a read-write step, events per second of one
    /// with a rate.
    pub rate_per_s: Option<u64>,
    /// The step.
    pub seconds: f64,
    /// The wait after it.
    pub wait_seconds: f64,
    /// Where `seconds` comes from: `plan`, `measured` (an earlier campaign in this store) or
    /// `assumed`.
    pub basis: &'static str,
}

/// Rows per second when nothing has been measured yet.
fn assumed_rows_per_s(engine: EngineName, step: &Step) -> f64 {
    let rates = &engine.facts().rates;
    match &step.kind {
        StepKind::Load { .. } => rates.load,
        StepKind::Prepare { .. }
        | StepKind::Fill { .. }
        | StepKind::Kv(KvStep {
            work: KvWork::Fill, ..
        }) => rates.fill,
        StepKind::CreateIndexes { .. } => rates.create_indexes,
        StepKind::Write { .. } if step.batch < SMALL_BATCH => rates.small_writes,
        StepKind::Write { .. } => rates.writes,
        StepKind::Scan
        | StepKind::ReadWrite { .. }
        | StepKind::Test(_)
        | StepKind::Mix(_)
        | StepKind::Kv(_) => rates.reads,
    }
}

/// Busy connections of a step. One connection loads the tables of an engine with one writer.
fn connections(cell: &Cell, step: &Step) -> u32 {
    let has_one_writer = cell.build.engine.facts().has_one_writer;
    match &step.kind {
        StepKind::Prepare { .. } | StepKind::Fill { .. } if has_one_writer => 1,
        StepKind::Kv(KvStep {
            background_bytes_per_s: Some(_),
            ..
        }) => step.clients + 1,
        _ => step.connections_per_client() * step.clients,
    }
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
    let headers = look_up_cells(loaded, builds, Need::Names)?;
    let mut cells = Vec::new();
    for (cell, header) in plan.cells.iter().zip(&headers) {
        let (peak_rows, disk_bytes) = peak_size(cell, &header.settings);
        let mut held = 0u64;
        let mut steps = Vec::new();
        for (index, step) in cell.workload.steps().iter().enumerate() {
            let inserted_rows = step.all_inserted_rows();
            let (seconds, basis) = match &step.kind {
                StepKind::ReadWrite {
                    duration_ns,
                    end: StepEnd::Rows | StepEnd::Time,
                    ..
                } => (*duration_ns as f64 / 1e9, "plan"),
                StepKind::Mix(mix) => ((mix.duration_ns + mix.warm_up_ns) as f64 / 1e9, "plan"),
                StepKind::Test(test) => ((test.duration_ns + test.warm_up_ns) as f64 / 1e9, "plan"),
                StepKind::Kv(KvStep {
                    end: KvEnd::Time(ns),
                    warm_up_ns,
                    ..
                }) => ((ns + warm_up_ns) as f64 / 1e9, "plan"),
                _ => {
                    let rows = match step.kind {
                        StepKind::CreateIndexes { .. } => held + inserted_rows,
                        StepKind::Scan => held * 5,
                        StepKind::Kv(KvStep {
                            end: KvEnd::Operations(operations),
                            ..
                        }) => operations * u64::from(step.clients),
                        _ => inserted_rows,
                    };
                    let found = measured.get(&(
                        cell.build.engine,
                        cell.config.label.clone(),
                        step.name.clone(),
                    ));
                    let rate = found
                        .copied()
                        .unwrap_or_else(|| assumed_rows_per_s(cell.build.engine, step));
                    (
                        rows as f64 / rate,
                        if found.is_some() {
                            "measured"
                        } else {
                            "assumed"
                        },
                    )
                }
            };
            if matches!(
                step.kind,
                StepKind::Load { .. } | StepKind::CreateIndexes { .. }
            ) {
                held += inserted_rows;
            }
            let is_last = index + 1 == cell.workload.steps().len();
            let wait_ns = if step.drain_after && !is_last {
                cell.workload.wait_ns(step)
            } else {
                0
            };
            steps.push(StepForecast {
                step: step.name.clone(),
                inserted_rows,
                batch: step.batch,
                connections: connections(cell, step),
                rate_per_s: step.rate_per_s(),
                seconds,
                wait_seconds: wait_ns as f64 / 1e9,
                basis,
            });
        }
        cells.push(CellForecast {
            cell: cell.label.clone(),
            version: header.version.clone(),
            connections: steps.iter().map(|step| step.connections).max().unwrap_or(0),
            peak_rows,
            disk_bytes,
            disk_bytes_at_start: if cell.server.is_some() {
                0
            } else {
                bytes_at_start(cell.build.engine, &header.settings)
            },
            seconds: steps
                .iter()
                .map(|step| step.seconds + step.wait_seconds)
                .sum(),
            steps,
        });
    }
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
