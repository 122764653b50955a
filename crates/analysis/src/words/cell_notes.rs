//! Notes about single cells.

use plimsoll_core::plan::{Definition, Sysbench, presets};
use plimsoll_core::suggest::first_few;
use plimsoll_store::event::Event;

use crate::runs::cell_runs::{CellRuns, first_record};

/// A server that did not stop as it should is news of its build, although every step was done and
/// verified before.
pub(crate) fn stop_problem(label: &str, cell: &CellRuns<'_>) -> Option<String> {
    let problem = first_record(cell, |record| {
        match record.events.last().map(|stamped| &stamped.event) {
            Some(Event::TrialDone(done)) => done.stop_problem.as_ref(),
            _ => None,
        }
    })?;
    Some(format!(
        "{label}: after the last step the server did not stop as it should: {problem}. No number \
        depends on it."
    ))
}

/// What a plan of microbenchmarks leaves out, once for each way of leaving out.
pub(crate) fn cells_notes(cells: &[CellRuns<'_>]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for sysbench in cells
        .iter()
        .filter_map(|cell| cell.cell.workload.sysbench())
    {
        let warming: Vec<&str> = sysbench
            .steps
            .iter()
            .filter(|step| !step.is_reported)
            .map(|step| step.name.as_str())
            .collect();
        let sentences = [
            (warming, "Tests that warm up are in the details only: "),
            (
                sysbench.left_out.iter().map(String::as_str).collect(),
                "The plan leaves tests out, and later tests find other tables than they would \
                behind them: ",
            ),
        ];
        for (names, what) in sentences {
            let note = format!("{what}{}{}.", first_few(&names), all_of(sysbench, &names));
            if !names.is_empty() && !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    notes
}

/// Where the rest of a long list stands.
pub(crate) fn all_of(sysbench: &Sysbench, names: &[&str]) -> String {
    let is_whole = first_few(names) == names.join(", ");
    let preset = presets()
        .iter()
        .find(|preset| preset.definition == Definition::Sysbench(sysbench.sysbench));
    match preset.filter(|_| !is_whole) {
        Some(preset) => format!(
            " (`plimsoll workload show {}` lists all tests)",
            preset.name
        ),
        None => String::new(),
    }
}
