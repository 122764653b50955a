//! When nothing may be said of a step, whatever its numbers.

use plimsoll_core::record::TableCheck;
use plimsoll_core::units::count;

use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::runs::status::Status;

/// Why a cell and the base cannot be compared in a step; `None` when they can.
pub(crate) fn obstacle(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str) -> Option<String> {
    if base.step(step).is_none() || other.step(step).is_none() {
        return Some("the step is not in the plan of both cells".to_owned());
    }
    if base.cell.workload != other.cell.workload {
        return Some("the cells' shapes differ: a ratio would compare the shapes".to_owned());
    }
    trouble("the base", base, step)
        .or_else(|| trouble("the cell", other, step))
        .or_else(|| other_data(base, other, step))
        .or_else(|| too_short(base, other, step))
}

/// Runs that ended badly or missed their SLA. Leaving them out would leave out by result.
fn trouble(who: &str, cell: &CellRuns<'_>, step: &str) -> Option<String> {
    // It cannot have crashed in what never began.
    let used: Vec<_> = cell.used(step).filter(|run| run.attempt > 0).collect();
    let statuses = [
        (Status::Crashed, "crashed"),
        (Status::Hung, "hung"),
        (Status::Failed, "failed"),
        (Status::SlaMissed, "missed its rate"),
    ];
    statuses.into_iter().find_map(|(status, what)| {
        let of_status: Vec<_> = used.iter().filter(|run| run.status == status).collect();
        let first = of_status.first()?;
        let blocks = if used.len() > 1 {
            format!(" in {} of {}", of_status.len(), runs(cell, used.len()))
        } else {
            String::new()
        };
        let reason = first.reason.as_ref().map_or(String::new(), |reason| {
            format!(": {}", crate::words::brief::brief(reason).0)
        });
        Some(format!("{who} {what}{blocks}{reason}"))
    })
}

/// `6 starts` by slices, `12 blocks` else.
fn runs(cell: &CellRuns<'_>, number: usize) -> String {
    count(number, round_noun(cell))
}

/// `start 2` by slices, else as its unit is called: `block 2`, `part 1 of block 2`.
fn name_of(cell: &CellRuns<'_>, run: &Run<'_>) -> String {
    match round_noun(cell) {
        "start" => format!("start {}", run.unit.block),
        _ => run.unit.to_string(),
    }
}

fn round_noun(cell: &CellRuns<'_>) -> &'static str {
    match super::pairs::basis(&cell.campaign.header) {
        super::Basis::Slices => "start",
        super::Basis::Blocks | super::Basis::Screen => "block",
    }
}

/// In a screen a run of less than this says nothing: its seconds are mostly those of starting and
/// stopping.
const LEAST_NS: u64 = 500_000_000;

/// One run that was over before there was anything to measure. Pairs show by their spread what
/// short runs are worth.
fn too_short(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str) -> Option<String> {
    if super::pairs::basis(&base.campaign.header) != super::Basis::Screen {
        return None;
    }
    [("the base", base), ("the cell", other)]
        .into_iter()
        .find_map(|(who, cell)| {
            let elapsed_ns = cell
                .used(step)
                .filter_map(|run| run.done)
                .map(|done| done.elapsed_ns)
                .find(|ns| *ns < LEAST_NS)?;
            Some(format!(
                "{who} ran {:.2} s: too short to tell",
                elapsed_ns as f64 / 1e9
            ))
        })
}

/// The rows that were there before the step, as the last check before it found them, must be alike.
fn other_data(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str) -> Option<String> {
    for (of_base, of_other) in super::pairs::by_block(base, other, step) {
        let state = |run: &Run<'_>| -> Option<Vec<TableCheck>> {
            let checked = run
                .record?
                .steps_done()
                .take_while(|done| done.step != step)
                .filter(|done| !done.tables.is_empty());
            // Writes that run for a time leave as many rows as the engine was fast: what was loaded
            // is what counts.
            checked.map(|done| done.tables.clone()).next()
        };
        let (Some(of_base_state), Some(of_other_state)) = (state(of_base), state(of_other)) else {
            continue;
        };
        let differing = of_base_state
            .iter()
            .zip(&of_other_state)
            .find(|(a, b)| (&a.table, a.found_rows) != (&b.table, b.found_rows));
        if let Some((a, b)) = differing {
            return Some(format!(
                "the data states differ: {} holds {} rows in the base and {} holds {} in the cell \
                ({})",
                a.table,
                a.found_rows,
                b.table,
                b.found_rows,
                name_of(base, of_base)
            ));
        }
        let checksum = |state: &[TableCheck]| {
            state
                .iter()
                .filter_map(|check| check.checksum.clone())
                .collect::<Vec<_>>()
        };
        let (a, b) = (checksum(&of_base_state), checksum(&of_other_state));
        if a.len() == b.len() && a != b {
            return Some(format!(
                "the data states differ: the checksums of the loaded tables are not alike ({})",
                name_of(base, of_base)
            ));
        }
    }
    None
}
