//! What it will take to confirm a whole plan.

use serde::Serialize;

use super::request::{SLICES_TIME_NS, STARTS, blocks_to_decide};
use crate::forecast::CellForecast;

/// A start's servers come up, read their data and warm up; a coarse guess.
const START_SECONDS: f64 = 20.0;

/// What `confirm --all` of a plan will take, both ways.
#[derive(Clone, Debug, Serialize)]
pub struct ConfirmForecast {
    /// Steps that are results, times cells beside the base.
    pub questions: usize,
    /// By slices, at the longest: seconds, for the steps that can be cut into turns.
    pub slices_seconds: f64,
    /// By slices: bytes of all data states and all contestants' copies.
    pub slices_disk_bytes: u64,
    /// Blocks without which a lone effect among all questions cannot be told from chance.
    pub blocks_needed: u32,
    /// By so many blocks: seconds.
    pub blocks_seconds: f64,
    /// By blocks: bytes of all data states and one copy.
    pub blocks_disk_bytes: u64,
}

/// One cell as far as this forecast needs it.
pub(crate) struct CellSteps<'a> {
    pub forecast: &'a CellForecast,
    /// Of its steps: whether it makes data, is a result, can take turns.
    pub kinds: Vec<(bool, bool, bool)>,
}

/// `base` is the cell that has a control; it takes as long, and as much.
pub(crate) fn forecast_confirm(cells: &[CellSteps<'_>], base: usize) -> ConfirmForecast {
    const LONGEST_STEP_S: f64 = 60.0;
    let kinds = &cells[base].kinds;
    let results = kinds.iter().filter(|(makes_data, is_result, _)| !makes_data && *is_result).count();
    let in_turns = kinds.iter().filter(|(makes_data, is_result, can_turn)| !makes_data && *is_result && *can_turn).count();
    let questions = results * (cells.len().saturating_sub(1)).max(1);
    let seconds = |cell: &CellSteps<'_>, wanted: fn((bool, bool)) -> bool| -> f64 {
        let steps = cell.forecast.steps.iter().zip(&cell.kinds).filter(|(_, (makes_data, is_result, _))| wanted((*makes_data, *is_result)));
        steps
            .map(|(step, (makes_data, ..))| if *makes_data { step.seconds + step.wait_seconds } else { step.seconds.min(LONGEST_STEP_S) })
            .sum()
    };
    let making: f64 = cells.iter().map(|cell| seconds(cell, |(makes_data, _)| makes_data)).sum();
    let block: f64 = cells.iter().chain([&cells[base]]).map(|cell| seconds(cell, |(makes_data, is_result)| !makes_data && is_result)).sum();
    let states: u64 = cells.iter().map(|cell| cell.forecast.disk_bytes).sum();
    let largest = cells.iter().map(|cell| cell.forecast.disk_bytes).max().unwrap_or(0);
    let blocks_needed = blocks_to_decide(questions);
    ConfirmForecast {
        questions,
        slices_seconds: making + SLICES_TIME_NS as f64 / 1e9 * in_turns as f64 + START_SECONDS * f64::from(STARTS),
        slices_disk_bytes: (2 * states + cells[base].forecast.disk_bytes) * 6 / 5,
        blocks_needed,
        blocks_seconds: making + block * f64::from(blocks_needed),
        blocks_disk_bytes: (states + largest) * 6 / 5,
    }
}
