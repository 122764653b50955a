//! How candidates meet, and which of their steps are measured.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Cell, Driver};
use plimsoll_core::plan::{Division, divide, in_turns};
use plimsoll_core::units::format_bytes;
use plimsoll_store::Design;
use plimsoll_store::header::CellHeader;

use super::{BLOCKS, ConfirmChoice, DesignChoice, STARTS};
use crate::confirm::memory::{server_bytes, usable_bytes};
use crate::error::LabError;

/// What is measured, and how candidates meet.
pub(super) struct Measured {
    pub design: Design,
    /// Names of steps.
    pub requested: Vec<String>,
    /// By candidate.
    pub divisions: Vec<Division>,
}

/// By slices where that is possible or requested, else by blocks. What was chosen goes into the
/// notes.
pub(super) fn measured(
    choice: &ConfirmChoice,
    cells: &[Cell],
    headers: &[CellHeader],
    notes: &mut Vec<String>,
) -> Result<Measured, LabError> {
    let workload = &cells[0].workload;
    let requested: Vec<String> = choice
        .steps
        .iter()
        .map(|step| workload.step_name(step))
        .collect();
    let by_blocks = |requested: Vec<String>| -> Result<Measured, LabError> {
        Ok(Measured {
            design: Design::Blocks,
            divisions: divisions(cells, &requested)?,
            requested,
        })
    };
    if let DesignChoice::Blocks(_) = choice.design {
        return by_blocks(requested);
    }
    if choice.starts == Some(0) {
        return Err(LabError::Usage(format!(
            "--starts must be at least 1; the default is {STARTS}"
        )));
    }
    // Of all steps those that cannot take turns are left out, if there are others.
    let in_slices = if choice.is_all {
        Some(in_turns(workload, &requested)).filter(|steps| !steps.is_empty())
    } else {
        None
    };
    let in_slices = in_slices.unwrap_or_else(|| requested.clone());
    let divisions = divisions(cells, &in_slices)?;
    let candidates: Vec<CellWithSettings<'_>> = cells
        .iter()
        .zip(headers)
        .map(|(cell, header)| (cell, &header.settings))
        .collect();
    // All divisions are alike, or there would have been an error: the first stands for all.
    match slices_bytes(&candidates, &divisions[0], &in_slices) {
        Ok(bytes) => {
            notes.push(format!(
                "by slices: the servers of all {} candidates fit into memory ({})",
                cells.len(),
                format_bytes(bytes)
            ));
            let left_out = requested.iter().filter(|step| !in_slices.contains(step));
            notes.extend(left_out.map(|step| {
                format!(
                    "left out: {step} does a fixed number of things: --step {step} --blocks \
                    {BLOCKS} confirms it"
                )
            }));
            Ok(Measured {
                design: Design::Slices,
                requested: in_slices,
                divisions,
            })
        }
        Err(reason) if matches!(choice.design, DesignChoice::Slices(_)) => {
            Err(LabError::Usage(format!("{reason}; take --blocks {BLOCKS}")))
        }
        Err(reason) if choice.starts.is_some() => Err(LabError::Usage(format!(
            "--starts is for slices, which cannot be: {reason}; take --blocks {BLOCKS}"
        ))),
        Err(reason) => {
            notes.push(format!("by blocks: {reason}"));
            by_blocks(requested)
        }
    }
}

/// All cells must begin with the same state and run the same steps.
pub(super) fn divisions(cells: &[Cell], steps: &[String]) -> Result<Vec<Division>, LabError> {
    let divisions: Vec<Division> = cells
        .iter()
        .map(|cell| {
            divide(&cell.workload, steps)
                .map_err(|error| LabError::Usage(format!("cell {}: {error}", cell.label)))
        })
        .collect::<Result<_, _>>()?;
    let names = |division: &Division| -> Vec<Vec<String>> {
        [&division.before, &division.steps]
            .map(|steps| steps.iter().map(|step| step.name.clone()).collect())
            .to_vec()
    };
    // Cells may differ in their sizes if each trial makes all of its data.
    let has_states = divisions.iter().any(|division| !division.before.is_empty());
    let differs = |(cell, division): (&Cell, &Division)| {
        names(division) != names(&divisions[0])
            || (has_states && cell.workload != cells[0].workload)
    };
    match cells.iter().zip(&divisions).position(differs) {
        None => Ok(divisions),
        Some(other) => Err(LabError::Usage(format!(
            "cells {} and {} do not have the same data states: they come to {} by other steps or \
            sizes; confirm cells of one shape with --cells",
            cells[0].label,
            cells[other].label,
            steps.join(", ")
        ))),
    }
}

/// A cell and the settings of its config.
pub(in crate::confirm) type CellWithSettings<'a> = (&'a Cell, &'a BTreeMap<String, String>);

/// Bytes of memory that the servers of all candidates take at once, or why they cannot have turns.
pub(in crate::confirm) fn slices_bytes(
    candidates: &[CellWithSettings<'_>],
    division: &Division,
    requested: &[String],
) -> Result<u64, String> {
    if let Some((cell, _)) = candidates
        .iter()
        .find(|(cell, _)| cell.config.driver == Driver::DbBench)
    {
        return Err(format!(
            "db_bench drives cell {}, and does not stop for the turns of others",
            cell.label
        ));
    }
    if let Some(reason) = division.why_no_turns(requested) {
        return Err(reason);
    }
    let needed: u64 = candidates
        .iter()
        .map(|(cell, settings)| server_bytes(cell, settings))
        .sum();
    match usable_bytes() {
        Some(usable) if needed > usable => Err(format!(
            "the servers of {} candidates take about {} together, and {} are available",
            candidates.len(),
            format_bytes(needed),
            format_bytes(usable)
        )),
        _ => Ok(needed),
    }
}
