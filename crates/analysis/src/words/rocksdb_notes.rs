//! What a reader must know of results of RocksDB before the numbers.

use plimsoll_core::db_bench::WARNING;
use plimsoll_core::rocksdb_report::DRIVEN_BY_DB_BENCH;

use crate::cells::settings::NotAsAsked;
use crate::metrics::{MetricSet, rocksdb};
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::view::View;

/// Under this share of keys that must be there something is wrong with the load.
const LEAST_FOUND: f64 = 0.999;

pub(crate) fn rocksdb_notes(view: &View) -> Vec<String> {
    let mut notes = ignored_options(view);
    notes.extend(build_warnings(view));
    notes.extend(driven_by_db_bench(view));
    let lost = places(view, |outcome| {
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
    let unwaited = places(view, |outcome| {
        outcome.notes.get("wait_is_complete") == Some(&0.0)
    });
    if !unwaited.is_empty() {
        notes.push(format!(
            "The wait for compaction ended before compaction did: {}. What was left is in no \
            number of theirs.",
            unwaited.join(", ")
        ));
    }
    notes
}

fn steps(view: &View) -> impl Iterator<Item = &StepView> {
    view.steps.iter().filter(|step| step.set == MetricSet::Keys)
}

/// What a version does not know is a hidden difference between versions.
fn ignored_options(view: &View) -> Vec<String> {
    let is_native = steps(view).next().is_some();
    let not_as_asked = view.settings.not_as_asked.iter();
    let ignored = not_as_asked.filter_map(|of| Some((of, of.found.as_ref().err()?)));
    let note = |(ignored, reason): (&NotAsAsked, &String)| {
        let cells = ignored.cells.iter();
        let cells: Vec<&str> = cells.map(|cell| view.cells[*cell].label.as_str()).collect();
        let asked = if ignored.asked.is_empty() {
            String::new()
        } else {
            format!(" = {}", ignored.asked)
        };
        format!(
            "IGNORED by {}: {}{asked}: {reason}. Cells that do not ignore it run with other \
            options.",
            cells.join(", "),
            ignored.name
        )
    };
    ignored.filter(|_| is_native).map(note).collect()
}

/// What db_bench warns of, such as assertions in a build.
fn build_warnings(view: &View) -> impl Iterator<Item = String> {
    view.cells.iter().filter_map(|cell| {
        let mut options = cell.build_options.iter();
        let warning = options.find_map(|option| option.strip_prefix(WARNING))?;
        Some(format!(
            "{}: {warning}: such numbers are not those of a release.",
            cell.label
        ))
    })
}

fn driven_by_db_bench(view: &View) -> Option<String> {
    let is_driven = |cell: usize| {
        steps(view).any(|step| step.outcomes[cell].notes.contains_key(DRIVEN_BY_DB_BENCH))
    };
    let cells = view.cells.iter().enumerate();
    let driven: Vec<&str> = cells
        .filter(|(i, _)| is_driven(*i))
        .map(|(_, cell)| cell.label.as_str())
        .collect();
    let mixed = if driven.len() < view.cells.len() {
        " A ratio with the other cells compares the drivers too."
    } else {
        ""
    };
    (!driven.is_empty()).then(|| {
        format!(
            "Load and numbers by db_bench: {}.{mixed}",
            driven.join(", ")
        )
    })
}

/// `STEP of CELL` for each outcome that has this.
fn places(view: &View, has_this: impl Fn(&Outcome) -> bool) -> Vec<String> {
    let has_this = &has_this;
    steps(view)
        .flat_map(|step| {
            let outcomes = view.cells.iter().zip(&step.outcomes);
            outcomes
                .filter(|(_, outcome)| has_this(outcome))
                .map(move |(cell, _)| format!("{} of {}", step.name, cell.label))
        })
        .collect()
}
