//! What a reader must know of results of RocksDB before the numbers.

use plimsoll_core::db_bench::WARNING;
use plimsoll_core::rocksdb_report::DRIVEN_BY_DB_BENCH;

use crate::cells::cell_info::CellInfo;
use crate::metrics::rocksdb;
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::view::View;

/// Under this share of keys that must be there something is wrong with the load.
const LEAST_FOUND: f64 = 0.999;

pub(crate) fn rocksdb_notes(view: &View) -> Vec<String> {
    let steps = || view.steps.iter().filter(|step| step.is_of_rocksdb());
    let mut notes = Vec::new();
    // What a version does not know is a hidden difference between versions.
    let is_native = steps().next().is_some();
    for ignored in view
        .settings
        .not_as_asked
        .iter()
        .filter(|of| is_native && of.found.is_err())
    {
        let cells: Vec<&str> = ignored
            .cells
            .iter()
            .map(|cell| view.cells[*cell].label.as_str())
            .collect();
        let why = ignored
            .found
            .as_ref()
            .err()
            .map_or(String::new(), |reason| format!(": {reason}"));
        let asked = if ignored.asked.is_empty() {
            String::new()
        } else {
            format!(" = {}", ignored.asked)
        };
        notes.push(format!(
            "IGNORED by {}: {}{asked}{why}. Cells that do not ignore it run with other options.",
            cells.join(", "),
            ignored.name
        ));
    }
    let warned = |cell: &CellInfo| {
        cell.build_options
            .iter()
            .find_map(|option| option.strip_prefix(WARNING).map(str::to_owned))
    };
    for cell in &view.cells {
        if let Some(warning) = warned(cell) {
            notes.push(format!(
                "{}: {warning}: such numbers are not those of a release.",
                cell.label
            ));
        }
    }
    let outcomes = || {
        steps().flat_map(|step| {
            view.cells
                .iter()
                .zip(&step.outcomes)
                .map(move |(cell, outcome)| (step, cell, outcome))
        })
    };
    let telling = |what: &dyn Fn(&Outcome) -> bool| -> Vec<String> {
        outcomes()
            .filter(|(_, _, outcome)| what(outcome))
            .map(|(step, cell, _): (&StepView, _, _)| format!("{} of {}", step.name, cell.label))
            .collect()
    };
    let driven: Vec<&str> = view
        .cells
        .iter()
        .enumerate()
        .filter(|(i, _)| {
            steps().any(|step| step.outcomes[*i].notes.contains_key(DRIVEN_BY_DB_BENCH))
        })
        .map(|(_, cell)| cell.label.as_str())
        .collect();
    if !driven.is_empty() {
        let mixed = if driven.len() < view.cells.len() {
            " A ratio with the other cells compares the drivers too."
        } else {
            ""
        };
        notes.push(format!(
            "Load and numbers by db_bench: {}.{mixed}",
            driven.join(", ")
        ));
    }
    let lost = telling(&|outcome| {
        outcome
            .number(rocksdb::FOUND_RATIO)
            .is_some_and(|ratio| ratio < LEAST_FOUND)
    });
    if !lost.is_empty() {
        notes.push(format!(
            "Reads did not find keys that must be there: {}.",
            lost.join(", ")
        ));
    }
    let unwaited = telling(&|outcome| outcome.notes.get("wait_is_complete") == Some(&0.0));
    if !unwaited.is_empty() {
        notes.push(format!(
            "The wait for compaction ended before compaction did: {}. What was left is in no \
            number of theirs.",
            unwaited.join(", ")
        ));
    }
    notes
}
