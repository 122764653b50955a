//! What it will take to confirm a whole plan.

use plimsoll_core::plan::{Budget, Cell, divide, in_turns, results};
use plimsoll_store::header::CellHeader;
use serde::Serialize;

use super::request::{
    CellWithSettings, LOADS, LOADS_IN_BUDGET, blocks_to_decide, fewest_links, slices_bytes,
};
use crate::campaign::DataSize;
use crate::forecast::cell::CellForecast;
use crate::states::at_once;

/// What `confirm --all` of a plan will take, both ways.
#[derive(Clone, Debug, Serialize)]
pub struct ConfirmForecast {
    /// Steps that are results, times cells other than the base.
    pub questions: usize,
    /// By slices, for the steps that can be cut into turns; none where it cannot be.
    pub slices: Option<SlicesForecast>,
    /// Why it cannot be by slices.
    pub no_slices: Option<String>,
    /// Blocks without which a lone effect among all questions cannot be distinguished from chance.
    pub blocks_needed: u32,
    /// By so many blocks: seconds.
    pub blocks_seconds: f64,
    /// By blocks: bytes of all data states and one copy.
    pub blocks_disk_bytes: u64,
}

/// What `confirm --all` of a plan will take by slices.
#[derive(Clone, Debug, Serialize)]
pub struct SlicesForecast {
    /// At the longest, in seconds.
    pub seconds: f64,
    /// Bytes of all candidates' copies and of two loads of their data.
    pub disk_bytes: u64,
    /// Bytes of each load more.
    pub load_bytes: u64,
    /// So many loads at most.
    pub most_loads: u32,
    /// How many links of each build that has several take turns, each with a load of its own.
    pub links: Option<u32>,
    /// Steps that cannot take turns.
    pub left_out: Vec<String>,
}

/// One cell as far as this forecast needs it.
pub(crate) struct CellSteps<'a> {
    pub forecast: &'a CellForecast,
    pub cell: &'a Cell,
    pub header: &'a CellHeader,
}

/// `base` is the cell that has a control; it takes as long, and as much. `budget` is that of slices.
/// None where no step is a result.
pub(crate) fn forecast_confirm(
    cells: &[CellSteps<'_>],
    base: usize,
    budget: Budget,
) -> Option<ConfirmForecast> {
    const LONGEST_STEP_S: f64 = 60.0;
    let workload = &cells[base].cell.workload;
    let all = results(workload);
    let turning = in_turns(workload, &all);
    let in_slices = if turning.is_empty() { &all } else { &turning };
    let questions = all.len() * (cells.len().saturating_sub(1)).max(1);
    let seconds = |cell: &CellSteps<'_>, makes_data: bool| -> f64 {
        let steps = cell.forecast.steps.iter().zip(cell.cell.workload.steps());
        let requested = steps.filter(|(_, step)| {
            step.makes_data() == makes_data && (makes_data || step.is_reported)
        });
        requested
            .map(|(step, _)| {
                if makes_data {
                    step.seconds + step.wait_seconds
                } else {
                    step.seconds.min(LONGEST_STEP_S)
                }
            })
            .sum()
    };
    let making: f64 = cells
        .iter()
        .chain([&cells[base]])
        .map(|cell| seconds(cell, true))
        .sum();
    let block: f64 = cells
        .iter()
        .chain([&cells[base]])
        .map(|cell| seconds(cell, false))
        .sum();
    // The control has data of its own.
    let copies = cells.iter().chain([&cells[base]]);
    let sizes = copies.clone();
    let sizes = sizes.map(|cell| DataSize::of(cell.cell, &cell.header.settings));
    let sizes: Vec<DataSize> = sizes.collect();
    let state: u64 = sizes.iter().map(|size| size.kept).sum();
    let more_while_made = DataSize::more_while_made(&sizes, at_once());
    let copies: u64 = copies.map(|cell| cell.forecast.disk_bytes).sum();
    let largest = cells
        .iter()
        .map(|cell| cell.forecast.disk_bytes)
        .max()
        .unwrap_or(0);
    let blocks_needed = blocks_to_decide(questions);
    let candidates: Vec<CellWithSettings<'_>> = cells
        .iter()
        .chain([&cells[base]])
        .map(|cell| (cell.cell, &cell.header.settings))
        .collect();
    let bytes = slices_bytes(&candidates, &divide(workload, in_slices).ok()?, in_slices);
    let links = fewest_links(cells.iter().map(|cell| cell.header));
    let slices = SlicesForecast {
        seconds: budget.time_ns as f64 / 1e9,
        // All candidates have a copy of a state at once. Where the disk has room there are more
        // loads.
        disk_bytes: (state * u64::from(LOADS) + copies + more_while_made) * 6 / 5,
        load_bytes: state * 6 / 5,
        most_loads: links.unwrap_or(LOADS_IN_BUDGET),
        links,
        left_out: all
            .iter()
            .filter(|step| !in_slices.contains(step))
            .cloned()
            .collect(),
    };
    Some(ConfirmForecast {
        questions,
        no_slices: bytes.as_ref().err().cloned(),
        slices: bytes.ok().map(|_| slices),
        blocks_needed,
        blocks_seconds: making * f64::from(LOADS) + block * f64::from(blocks_needed),
        // Trials run one after the other, so that there is one copy at a time.
        blocks_disk_bytes: (state * u64::from(LOADS) + largest) * 6 / 5,
    })
}
