//! How fast steps were on this machine, from the campaigns of the store.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{Cell, Plan};
use plimsoll_store::event::StepDone;
use plimsoll_store::{CampaignRecord, Store};

/// Engine, config and step.
type Key = (EngineName, String, String);

/// Rows per second.
pub(crate) type MeasuredRates = BTreeMap<Key, f64>;

fn key(cell: &Cell, step: &str) -> Key {
    (
        cell.build.engine,
        cell.config.label.clone(),
        step.to_owned(),
    )
}

/// Rows per second of the plan's steps that end by their rows, each from the newest campaign of the
/// store that ran it. Only campaigns with an engine and config of the plan are read, and no more of
/// them than it takes.
pub(crate) fn measured_rows_per_s(store: &Store, plan: &Plan) -> MeasuredRates {
    let mut missing: BTreeSet<Key> = BTreeSet::new();
    for cell in &plan.cells {
        let steps = cell.workload.steps().iter();
        let by_rows = steps.filter(|step| step.duration_ns().is_none());
        missing.extend(by_rows.map(|step| key(cell, &step.name)));
    }
    let mut rates = BTreeMap::new();
    // A store that cannot be read has no say in a forecast.
    for summary in store.summaries().unwrap_or_default().into_iter().rev() {
        if missing.is_empty() {
            break;
        }
        let mut cells = summary.campaign.header.plan.cells.iter();
        let has_missing = |cell: &Cell| {
            let mut steps = cell.workload.steps().iter();
            steps.any(|step| missing.contains(&key(cell, &step.name)))
        };
        if summary.is_imported || !cells.any(has_missing) {
            continue;
        }
        let Ok(campaign) = summary.campaign.load() else {
            continue;
        };
        for (key, rate) in rates_of(&campaign) {
            if missing.remove(&key) {
                rates.insert(key, rate);
            }
        }
    }
    rates
}

/// The rates of a campaign's last trials.
fn rates_of(campaign: &CampaignRecord) -> MeasuredRates {
    let mut rates = BTreeMap::new();
    for trial in &campaign.trials {
        let start = trial.start();
        let Some(cell) = start.and_then(|start| campaign.header.plan.cell(&start.cell)) else {
            continue;
        };
        for done in trial.steps_done() {
            rates.extend(rows_per_s(done).map(|rate| (key(cell, &done.step), rate)));
        }
    }
    rates
}

fn rows_per_s(done: &StepDone) -> Option<f64> {
    let primary = done
        .operations
        .iter()
        .find(|operation| operation.kind == done.primary)?;
    (done.elapsed_ns > 0 && primary.rows > 0)
        .then(|| primary.rows as f64 * 1e9 / done.elapsed_ns as f64)
}
