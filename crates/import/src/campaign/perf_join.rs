//! Hardware counters of several builds in one table. Its columns have no names: samples beside it
//! have the same numbers, or a table of rates with the same tag has the same builds.

use std::collections::BTreeMap;

use super::builder::Builder;
use super::import::File;
use super::sysbench::{TestFiles, means, step_of};
use super::sysbench_tables::Tables;
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;
use crate::sysbench::perf_join::Join;

/// Adds the counters to results that are known from other files.
pub(super) fn add(
    builder: &mut Builder,
    joins: &[(&File, &Join)],
    tests: &BTreeMap<(CellName, TestFile), TestFiles<'_>>,
    tables: &Tables<'_>,
) {
    let mut samples: BTreeMap<(usize, String), Vec<&BTreeMap<String, f64>>> = BTreeMap::new();
    for (file, join) in joins {
        let raw: Vec<&BTreeMap<String, f64>> = tests
            .iter()
            .filter(|((_, test), _)| test.label() == join.test.label())
            .flat_map(|(_, files)| files.counters.iter().copied())
            .collect();
        if !raw.is_empty() {
            note_strangers(builder, file, join, &raw);
            continue;
        }
        let columns = tables.columns(&join.tag);
        let Some(columns) = columns.filter(|columns| columns.len() == join.columns.len()) else {
            let reason = format!(
                "its {} columns have no names: no samples beside it have its numbers, and no \
                table of rates has the tag \"{}\" and as many builds",
                join.columns.len(),
                join.tag
            );
            builder.leave_out(&file.path, reason);
            continue;
        };
        builder.note(format!(
            "The columns of tables of hardware counters have no names: those of {} are taken for \
            the builds of the table of rates with this tag.",
            join.tag
        ));
        let step = step_of(&join.test.test, Some(join.test.range)).name;
        for (name, counters) in columns.iter().zip(&join.columns) {
            let cell = builder.find_cell(name);
            match cell.filter(|cell| builder.find_result(*cell, &step).is_some()) {
                Some(cell) => samples
                    .entry((cell, step.clone()))
                    .or_default()
                    .push(counters),
                None => builder.leave_out(
                    &file.path,
                    format!("there is no rate of its test {step} in {}", name.label()),
                ),
            }
        }
    }
    for ((cell, step), of) in samples {
        if let Some(result) = builder.find_result_mut(cell, &step) {
            result.counters = means(&of);
        }
    }
}

/// Columns follow from samples: one that is none of them is reported.
fn note_strangers(
    builder: &mut Builder,
    file: &File,
    join: &Join,
    samples: &[&BTreeMap<String, f64>],
) {
    for (place, column) in join.columns.iter().enumerate() {
        if !samples.contains(&column) {
            builder.note(format!(
                "{}: column {} is none of the samples beside it, which are kept.",
                file.path,
                place + 1
            ));
        }
    }
}
