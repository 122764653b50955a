//! Ramps of imported campaigns: a cell per number of users, put together again.

use itertools::Itertools;

use super::releases::name_of;
use crate::runs::status::Status;
use crate::steps::microbenchmarks::ramp_level;
use crate::view::{Ramp, RampCell, RampLevel, View};

/// Fewer numbers of users are a comparison and no ramp.
const FEWEST_LEVELS: usize = 3;
/// What tells the cells of one build apart: `my9500.z12a.dop16`.
const USERS: &str = ".dop";

/// The ramps of a view, with what each of its cells is called there: those that were planned, else
/// those that an archive of several thread counts holds.
pub(super) fn all(view: &View) -> Vec<(Ramp, Vec<String>)> {
    let names = || (0..view.cells.len()).map(|cell| name_of(&view.cells, cell));
    let planned = view.summary.ramps.iter();
    let planned: Vec<_> = planned.map(|of| (of.clone(), names().collect())).collect();
    match planned.is_empty() {
        true => imported(view),
        false => planned,
    }
}

/// Cells that differ in their number of users alone.
struct Climbed<'a> {
    build: &'a str,
    /// Users and the cell with so many, rising.
    cells: Vec<(u32, usize)>,
}

fn imported(view: &View) -> Vec<(Ramp, Vec<String>)> {
    let mut climbed: Vec<Climbed<'_>> = Vec::new();
    for (cell, info) in view.cells.iter().enumerate() {
        let Some((build, users)) = info.label.rsplit_once(USERS) else {
            continue;
        };
        let Ok(users) = users.parse() else { continue };
        match climbed.iter_mut().find(|of| of.build == build) {
            Some(known) => known.cells.push((users, cell)),
            None => climbed.push(Climbed {
                build,
                cells: vec![(users, cell)],
            }),
        }
    }
    for of in &mut climbed {
        of.cells.sort_unstable();
    }
    let users = climbed.iter().flat_map(|of| &of.cells).map(|(of, _)| *of);
    let users: Vec<u32> = users.sorted_unstable().dedup().collect();
    if users.len() < FEWEST_LEVELS {
        return Vec::new();
    }
    let names = names(view, &climbed);
    let ramps = (0..view.steps.len()).filter_map(|step| ramp(view, step, &climbed, &users));
    ramps.map(|ramp| (ramp, names.clone())).collect()
}

/// A build's ramp is at its cell with the fewest users; no other cell has a rate.
fn ramp(view: &View, step: usize, climbed: &[Climbed<'_>], users: &[u32]) -> Option<Ramp> {
    let step = &view.steps[step];
    let nothing = || RampCell {
        levels: vec![none(); users.len()],
        peak: None,
        knee: None,
    };
    let mut cells: Vec<RampCell> = view.cells.iter().map(|_| nothing()).collect();
    for of in climbed {
        let levels = users.iter().map(|users| {
            let cell = of.cells.iter().find(|(known, _)| known == users);
            cell.map_or_else(none, |(_, cell)| ramp_level(step, *cell))
        });
        let levels: Vec<RampLevel> = levels.collect();
        cells[of.cells[0].1].levels = levels;
    }
    let known = |cell: &RampCell| cell.levels.iter().filter(|of| of.rate.is_some()).count();
    cells
        .iter()
        .any(|cell| known(cell) >= FEWEST_LEVELS)
        .then(|| Ramp {
            test: step.name.clone(),
            rate: step.rate,
            events: "transactions",
            users: users.to_vec(),
            cells,
        })
}

fn none() -> RampLevel {
    RampLevel {
        status: Status::Missing,
        rate: None,
        tps: None,
        service_us: [None; 4],
        p99_response_us: None,
        excluded_wait_s: None,
        is_lower_bound: false,
    }
}

/// A version where it tells the builds apart, else the label without the users.
fn names(view: &View, climbed: &[Climbed<'_>]) -> Vec<String> {
    let versions = climbed.iter().map(|of| &view.cells[of.cells[0].1].version);
    let are_versions = versions.clone().all(|of| !of.is_empty()) && versions.clone().all_unique();
    let name = |info: &crate::view::CellInfo| match are_versions {
        true => info.version.clone(),
        false => {
            let build = info.label.rsplit_once(USERS);
            build.map_or_else(|| info.label.clone(), |(build, _)| build.to_owned())
        }
    };
    view.cells.iter().map(name).collect()
}
