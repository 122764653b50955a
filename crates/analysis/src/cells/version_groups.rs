//! Versions of RocksDB side by side: a group per config, because leveled and universal compaction
//! are two subjects.

use std::collections::BTreeSet;

use plimsoll_core::name::natural_cmp;
use plimsoll_core::rocksdb_report::is_in_tables;

use crate::cells::cell_info::CellInfo;
use crate::metrics::{Metric, MetricSet};
use crate::runs::status::Status;
use crate::steps::classic_columns::{absolute_cells, relative_cells};
use crate::steps::classic_table::ClassicCell;
use crate::steps::outcome::Outcome;
use crate::steps::published::{PublishedRow, PublishedTable, Section};
use crate::steps::step_view::StepView;

/// Cells of one config and shape, set side by side as versions.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionGroup {
    /// Config and, where there are several, shape.
    pub title: String,
    /// Indices of its cells; what the others are divided by is first.
    pub cells: Vec<usize>,
    /// The tests, in the order of the plan.
    pub tests: Vec<VersionRow>,
}

/// A test over versions.
#[derive(Clone, Debug, PartialEq)]
pub struct VersionRow {
    pub step: String,
    /// Rate / rate of the first, one per cell of the group.
    pub ratios: Vec<Option<f64>>,
}

/// What tells a cell's place among versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    /// Config, shape and campaign, which a group has in common.
    pub group: (String, String, usize),
    pub build: String,
}

impl Version {
    fn of(cell: &CellInfo) -> Self {
        Self {
            group: (cell.config.clone(), cell.shape.clone(), cell.campaign),
            build: cell.build.clone(),
        }
    }
}

/// Indices of the versions of each group, in the order of versions but for the group's base, which
/// is first: the build called `base`, else the oldest.
pub(crate) fn grouped(versions: &[(usize, Version)], base: &str) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<&(usize, Version)>> = Vec::new();
    for version in versions {
        match groups
            .iter_mut()
            .find(|members| members[0].1.group == version.1.group)
        {
            Some(members) => members.push(version),
            None => groups.push(vec![version]),
        }
    }
    let in_order = |mut members: Vec<&(usize, Version)>| {
        members.sort_by(|(_, a), (_, b)| {
            (a.build != base)
                .cmp(&(b.build != base))
                .then_with(|| natural_cmp(&a.build, &b.build))
        });
        members.into_iter().map(|(index, _)| *index).collect()
    };
    groups.into_iter().map(in_order).collect()
}

/// The groups, that of the view's base first. Empty without steps of RocksDB. `candidates` are the
/// cells without A/A controls, which are not versions of their own.
pub(crate) fn version_groups(
    cells: &[CellInfo],
    candidates: &[usize],
    steps: &[&StepView],
) -> Vec<VersionGroup> {
    let steps = in_tables(steps);
    if steps.is_empty() {
        return Vec::new();
    }
    let has_shapes = cells
        .iter()
        .map(|cell| &cell.shape)
        .collect::<BTreeSet<_>>()
        .len()
        > 1;
    let versions: Vec<(usize, Version)> = candidates
        .iter()
        .map(|cell| (*cell, Version::of(&cells[*cell])))
        .collect();
    let group = |members: Vec<usize>| {
        let first = &cells[members[0]];
        let title = if has_shapes {
            format!("{}, {}", first.config, first.shape)
        } else {
            first.config.clone()
        };
        let row = |step: &&StepView| {
            let rate = |cell: usize| {
                step.outcomes[cell]
                    .number(step.rate)
                    .filter(|rate| *rate > 0.0)
            };
            let ratios = members
                .iter()
                .map(|cell| Some(rate(*cell)? / rate(members[0])?))
                .collect();
            VersionRow {
                step: step.name.clone(),
                ratios,
            }
        };
        VersionGroup {
            title,
            tests: steps.iter().map(row).collect(),
            cells: members.clone(),
        }
    };
    grouped(&versions, &cells[0].build)
        .into_iter()
        .map(group)
        .collect()
}

/// Lets each cell be divided by its group's base. Groups of one cell each are not groups: then all
/// are divided by the view's.
pub(crate) fn set_bases(cells: &mut [CellInfo], groups: &[VersionGroup]) {
    for group in groups.iter().filter(|_| has_versions(groups)) {
        group
            .cells
            .iter()
            .for_each(|cell| cells[*cell].base = group.cells[0]);
    }
}

fn has_versions(groups: &[VersionGroup]) -> bool {
    groups.iter().any(|group| group.cells.len() > 1)
}

fn in_tables<'a>(steps: &[&'a StepView]) -> Vec<&'a StepView> {
    steps
        .iter()
        .copied()
        .filter(|step| step.set == MetricSet::Keys && is_in_tables(&step.name))
        .collect()
}

/// For each group its rates and, where there is more than one version, the ratios. Where no group
/// has two, all cells are one table.
pub(crate) fn published_groups(
    groups: &[VersionGroup],
    cells: &[CellInfo],
    steps: &[&StepView],
) -> Vec<PublishedTable> {
    let steps = in_tables(steps);
    let mut sets: Vec<(&str, Vec<usize>)> = groups
        .iter()
        .map(|group| (group.title.as_str(), group.cells.clone()))
        .collect();
    // Groups of one version each have nothing to divide by: one table shows the configs instead.
    if !has_versions(groups) && !groups.is_empty() {
        let mut all: Vec<usize> = groups
            .iter()
            .flat_map(|group| group.cells.iter().copied())
            .collect();
        all.sort_unstable();
        sets = vec![("", all)];
    }
    let table = |(title, members): &(&str, Vec<usize>), is_relative: bool| {
        let columns = &members[usize::from(is_relative)..];
        let row = |step: &&StepView| {
            let outcomes: Vec<&Outcome> =
                members.iter().map(|cell| &step.outcomes[*cell]).collect();
            let row = if is_relative {
                ratios(&outcomes, step.rate)
            } else {
                absolute_cells(&outcomes, step.rate)
            };
            PublishedRow {
                label: step.name.clone(),
                cells: row,
            }
        };
        PublishedTable {
            title: if is_relative {
                "Throughput relative to the base"
            } else {
                "Throughput"
            },
            caption: match is_relative {
                true => {
                    "operations/s / that of the base: above 1 is faster; a ratio with a missed SLA \
                    proves nothing"
                }
                false => {
                    "operations/s of the step's own threads; of a MultiGet its keys; background \
                    writes are not counted"
                }
            },
            base: is_relative.then(|| cells[members[0]].label.clone()),
            columns: columns
                .iter()
                .map(|cell| format!("{}{}", cells[*cell].label, cells[*cell].mark()))
                .collect(),
            sections: vec![Section {
                title: if sets.len() > 1 {
                    (*title).to_owned()
                } else {
                    String::new()
                },
                rows: steps.iter().map(row).collect(),
            }],
        }
    };
    let relative = sets
        .iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|set| table(set, true));
    relative
        .chain(sets.iter().map(|set| table(set, false)))
        .collect()
}

/// Those of all but the base. Its mark has no column of its own, so it stands at the ratios.
fn ratios(outcomes: &[&Outcome], rate: &Metric) -> Vec<ClassicCell> {
    let base = outcomes[0];
    let marked = |ratio: ClassicCell| match (ratio.status, base.status) {
        (Status::Ok, status) if ratio.number.is_some() && status != Status::Ok => {
            let reason = base
                .reason
                .as_ref()
                .map(|reason| format!("the base: {reason}"));
            ClassicCell {
                status,
                reason,
                ..ratio
            }
        }
        _ => ratio,
    };
    relative_cells(outcomes, rate)
        .into_iter()
        .skip(1)
        .map(marked)
        .collect()
}
