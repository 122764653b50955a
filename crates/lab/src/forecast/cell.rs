//! What one trial of a cell will take, step by step.

use plimsoll_core::engines::{EngineName, SMALL_BATCH};
use plimsoll_core::plan::{Cell, Ends, Operation, Step};
use plimsoll_core::units::NS_PER_S;
use plimsoll_engine::{bytes_at_start, is_built_in};
use plimsoll_store::header::CellHeader;
use serde::Serialize;

use super::measured_rates::MeasuredRates;
use crate::campaign::peak_size;

/// Scans of each table in a step of scans.
const SCANS: u64 = 5;

/// What one trial of a cell will take.
#[derive(Clone, Debug, Serialize)]
pub struct CellForecast {
    pub cell: String,
    /// The build's version.
    pub version: String,
    /// Whether its engine is a part of this program, compiled with it.
    pub is_built_in: bool,
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
    pub steps: Vec<StepForecast>,
}

/// What one step will take.
#[derive(Clone, Debug, Serialize)]
pub struct StepForecast {
    pub step: String,
    /// Rows inserted over all clients; as many are deleted where the step deletes. 0 where no plan
    /// knows.
    pub inserted_rows: u64,
    /// Rows per transaction of steps of the Insert Benchmark.
    pub batch: u32,
    pub connections: u32,
    /// Over all clients: background rows per second of a read-write step, events per second of one
    /// with a rate.
    pub rate_per_s: Option<u64>,
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
    let is_insert = step.operation == Operation::Insert;
    match step.operation {
        _ if step.shares_load() => rates.fill,
        _ if step.is_load() && is_insert => rates.load,
        _ if step.is_load() => rates.fill,
        Operation::Index => rates.create_indexes,
        Operation::Insert if step.batch < SMALL_BATCH => rates.small_writes,
        Operation::Insert => rates.writes,
        _ => rates.reads,
    }
}

/// Busy connections of a step. One connection loads the tables of an engine with one writer.
fn connections(cell: &Cell, step: &Step) -> u32 {
    if cell.build.engine.facts().has_one_writer && step.shares_load() {
        1
    } else {
        step.connections()
    }
}

/// Rows or keys that a step works through whose time its plan does not fix.
fn rows_to_do(step: &Step, held: u64) -> u64 {
    match (step.ends, step.operation) {
        (Ends::Operations { per_client }, _) => per_client * u64::from(step.clients),
        (_, Operation::Index) => held + step.all_inserted_rows(),
        (_, Operation::Scan) => held * SCANS,
        _ => step.all_inserted_rows(),
    }
}

/// The steps of a cell, one after the other.
fn forecast_steps(cell: &Cell, measured: &MeasuredRates) -> Vec<StepForecast> {
    let engine = cell.build.engine;
    let mut held = 0u64;
    let mut forecasts = Vec::new();
    let steps = cell.workload.steps();
    for (index, step) in steps.iter().enumerate() {
        let (seconds, basis) = match step.ends.duration_ns() {
            Some(ns) => ((ns + step.ends.warm_up_ns()) as f64 / NS_PER_S, "plan"),
            None => {
                let rows = rows_to_do(step, held) as f64;
                let place = (engine, cell.config.label.clone(), step.name.clone());
                match measured.get(&place) {
                    Some(rate) => (rows / rate, "measured"),
                    None => (rows / assumed_rows_per_s(engine, step), "assumed"),
                }
            }
        };
        if step.is_load() || step.operation == Operation::Index {
            held += step.all_inserted_rows();
        }
        let is_last = index + 1 == steps.len();
        let wait_ns = if step.drain_after && !is_last {
            cell.workload.wait_ns(step)
        } else {
            0
        };
        forecasts.push(StepForecast {
            step: step.name.clone(),
            inserted_rows: step.all_inserted_rows(),
            batch: step.batch,
            connections: connections(cell, step),
            rate_per_s: step.rate_per_s(),
            seconds,
            wait_seconds: wait_ns as f64 / NS_PER_S,
            basis,
        });
    }
    forecasts
}

pub(super) fn forecast_cell(
    cell: &Cell,
    header: &CellHeader,
    measured: &MeasuredRates,
) -> CellForecast {
    let (peak_rows, disk_bytes) = peak_size(cell, &header.settings);
    let steps = forecast_steps(cell, measured);
    CellForecast {
        cell: cell.label.clone(),
        version: header.version.clone(),
        is_built_in: is_built_in(&cell.build),
        connections: steps.iter().map(|step| step.connections).max().unwrap_or(0),
        peak_rows,
        disk_bytes,
        disk_bytes_at_start: if cell.server.is_some() {
            0
        } else {
            bytes_at_start(&cell.build, &header.settings)
        },
        seconds: steps
            .iter()
            .map(|step| step.seconds + step.wait_seconds)
            .sum(),
        steps,
    }
}
