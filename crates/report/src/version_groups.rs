//! Versions of RocksDB side by side: a group per config, because leveled and universal compaction are two subjects.

use std::collections::BTreeSet;

use plimsoll_core::name::natural_cmp;
use plimsoll_core::rocksdb_report::is_in_tables;

use crate::summary::{absolute_cells, relative_cells};
use crate::view::{CellInfo, ClassicCell, Outcome, PublishedRow, PublishedTable, Section, StepView, VersionGroup, VersionRow};

/// The groups, that of the view's base first. Empty without steps of RocksDB.
pub(crate) fn version_groups(cells: &[CellInfo], steps: &[&StepView]) -> Vec<VersionGroup> {
    let steps = in_tables(steps);
    if steps.is_empty() {
        return Vec::new();
    }
    let key = |cell: &CellInfo| (cell.config.clone(), cell.shape.clone(), cell.campaign);
    let mut keys = Vec::new();
    for cell in cells {
        if !keys.contains(&key(cell)) {
            keys.push(key(cell));
        }
    }
    let has_shapes = cells.iter().map(|cell| &cell.shape).collect::<BTreeSet<_>>().len() > 1;
    let group = |of: &(String, String, usize)| {
        let mut members: Vec<usize> = (0..cells.len()).filter(|cell| key(&cells[*cell]) == *of).collect();
        members.sort_by(|a, b| natural_cmp(&cells[*a].build, &cells[*b].build));
        // The build that the whole view is divided by, else the oldest.
        let base = members.iter().position(|cell| cells[*cell].build == cells[0].build).unwrap_or(0);
        let base = members.remove(base);
        members.insert(0, base);
        let title = if has_shapes { format!("{}, {}", of.0, of.1) } else { of.0.clone() };
        let row = |step: &&StepView| {
            let rate = |cell: usize| step.outcomes[cell].number(step.rate.name).filter(|rate| *rate > 0.0);
            let ratios = members.iter().map(|cell| Some(rate(*cell)? / rate(members[0])?)).collect();
            VersionRow { step: step.name.clone(), ratios }
        };
        VersionGroup { title, tests: steps.iter().map(row).collect(), cells: members.clone() }
    };
    keys.iter().map(group).collect()
}

fn in_tables<'a>(steps: &[&'a StepView]) -> Vec<&'a StepView> {
    steps.iter().copied().filter(|step| step.is_of_rocksdb() && is_in_tables(&step.name)).collect()
}

/// For each group its rates and, where there is more than one version, the ratios.
pub(crate) fn published_groups(groups: &[VersionGroup], cells: &[CellInfo], steps: &[&StepView]) -> Vec<PublishedTable> {
    let steps = in_tables(steps);
    let table = |group: &VersionGroup, title, caption, of: &[usize], row: &dyn Fn(&[&Outcome], &str) -> Vec<ClassicCell>| PublishedTable {
        title,
        caption,
        base: (of.len() < group.cells.len()).then(|| cells[group.cells[0]].label.clone()),
        columns: of.iter().map(|cell| format!("{}{}", cells[*cell].label, cells[*cell].mark())).collect(),
        sections: vec![Section {
            title: if groups.len() > 1 { group.title.clone() } else { String::new() },
            rows: steps
                .iter()
                .map(|step| {
                    let outcomes: Vec<&Outcome> = group.cells.iter().map(|cell| &step.outcomes[*cell]).collect();
                    let mut row = row(&outcomes, step.rate.name);
                    PublishedRow { label: step.name.clone(), cells: row.split_off(group.cells.len() - of.len()) }
                })
                .collect(),
        }],
    };
    let mut tables = Vec::new();
    for group in groups.iter().filter(|group| group.cells.len() > 1) {
        let caption = "operations/s / that of the base: above 1 is faster; a ratio with a missed SLA proves nothing";
        tables.push(table(group, "Throughput relative to the base", caption, &group.cells[1..], &relative_cells));
    }
    for group in groups {
        let caption = "operations/s of the step's own threads; of a MultiGet its keys; the writes beside reads are not counted";
        tables.push(table(group, "Throughput", caption, &group.cells, &absolute_cells));
    }
    tables
}
