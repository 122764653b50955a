//! What a reader must know of results of RocksDB before the numbers.

use plimsoll_core::db_bench::WARNING;

use crate::view::{CellInfo, Outcome, StepView, View};

/// Under this share of keys that must be there something is wrong with the load.
const LEAST_FOUND: f64 = 0.999;

pub(crate) fn rocksdb_notes(view: &View) -> Vec<String> {
    let steps = || view.steps.iter().filter(|step| step.is_of_rocksdb());
    let mut notes = Vec::new();
    // What a version does not know is a hidden difference between versions.
    let is_native = steps().next().is_some();
    for ignored in view.settings.not_as_asked.iter().filter(|of| is_native && of.found.is_err()) {
        let cells: Vec<&str> = ignored.cells.iter().map(|cell| view.cells[*cell].label.as_str()).collect();
        let why = ignored.found.as_ref().err().map_or(String::new(), |reason| format!(": {reason}"));
        notes.push(format!(
            "IGNORED by {}: the option {} = {}{why}. The cells do not run alike.",
            cells.join(", "),
            ignored.name,
            ignored.asked
        ));
    }
    let warned = |cell: &CellInfo| cell.build_options.iter().find_map(|option| option.strip_prefix(WARNING).map(str::to_owned));
    for cell in &view.cells {
        if let Some(warning) = warned(cell) {
            notes.push(format!("{}: {warning}: such numbers are not those of a release.", cell.label));
        }
    }
    let outcomes = || steps().flat_map(|step| view.cells.iter().zip(&step.outcomes).map(move |(cell, outcome)| (step, cell, outcome)));
    let telling = |what: &dyn Fn(&Outcome) -> bool| -> Vec<String> {
        outcomes()
            .filter(|(_, _, outcome)| what(outcome))
            .map(|(step, cell, _): (&StepView, _, _)| format!("{} of {}", step.name, cell.label))
            .collect()
    };
    let lost = telling(&|outcome| outcome.number("found_ratio").is_some_and(|ratio| ratio < LEAST_FOUND));
    if !lost.is_empty() {
        notes.push(format!("Reads did not find keys that must be there: {}.", lost.join(", ")));
    }
    let unwaited = telling(&|outcome| outcome.notes.get("wait_is_complete") == Some(&0.0));
    if !unwaited.is_empty() {
        notes.push(format!(
            "The wait for compaction ended before compaction did: {}. What was left is in no number of theirs.",
            unwaited.join(", ")
        ));
    }
    notes
}
