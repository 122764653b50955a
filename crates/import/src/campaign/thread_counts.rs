//! Files that hold all thread counts of a test: `sb.r.qps.scan.range100.pk1` has a number for each.

use std::collections::BTreeMap;

use super::builder::Builder;
use super::sysbench::{TestFiles, dops_of_cells};
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;

type Tests<'a> = BTreeMap<(CellName, TestFile), TestFiles<'a>>;

/// Gives each number to its thread count. The scripts run thread counts in rising order, all tests
/// with the same ones: those of the test's other files, else those of the cell's other tests. Where
/// there are no other files a single number has no thread count, and several are left out.
pub(super) fn per_thread_count<'a>(mut tests: Tests<'a>, builder: &mut Builder) -> Tests<'a> {
    let dops = dops_of_cells(&tests);
    let without: Vec<_> = tests
        .keys()
        .filter(|(_, test)| test.dop.is_none())
        .cloned()
        .collect();
    for key in without {
        let of_test = |(cell, test): &&(CellName, TestFile)| {
            let alike = TestFile {
                dop: None,
                ..test.clone()
            };
            *cell == key.0 && test.dop.is_some() && alike == key.1
        };
        let own: Vec<u32> = tests
            .keys()
            .filter(of_test)
            .filter_map(|(_, of)| of.dop)
            .collect();
        let of_cell = || dops.get(&key.0).into_iter().flatten().copied().collect();
        let counts: Vec<u32> = if own.is_empty() {
            of_cell()
        } else {
            own.clone()
        };
        if counts.is_empty() && tests[&key].lines.values().all(|(_, line)| line.len() == 1) {
            continue;
        }
        let files = tests.remove(&key).unwrap_or_default();
        let at = |dop: u32| {
            let test = TestFile {
                dop: Some(dop),
                ..key.1.clone()
            };
            (key.0.clone(), test)
        };
        match own[..] {
            _ if files.counters.is_empty() => {}
            [only] => {
                let of_only = tests.entry(at(only)).or_default();
                of_only.counters.extend(files.counters);
            }
            _ => builder.note(format!(
                "{}: hardware counters of {} are left out, because their files do not tell with \
                how many threads it ran.",
                key.0.label(),
                key.1.label()
            )),
        }
        for (kind, (file, values)) in files.lines {
            if values.len() != counts.len() {
                let reason = format!(
                    "it has {} numbers, and other files know {} thread counts: it is not known \
                    which is whose",
                    values.len(),
                    counts.len()
                );
                builder.leave_out(&file.path, reason);
                continue;
            }
            for (i, dop) in counts.iter().enumerate() {
                let of_count = tests.entry(at(*dop)).or_default();
                of_count.lines.insert(kind, (file, &values[i..=i]));
            }
        }
    }
    note_disagreements(&tests, builder);
    tests
}

/// The line and the output of a test have the same rate; scans are reported in two ways.
fn note_disagreements(tests: &Tests<'_>, builder: &mut Builder) {
    for ((cell, test), files) in tests {
        let (Some(line), Some(Ok(output))) = (files.line("r.qps"), files.output) else {
            continue;
        };
        let rate = output.queries_per_s().map(|rate| format!("{rate:.0}"));
        if let Some(rate) = rate.filter(|rate| rate != line && !output.is_scan()) {
            builder.note(format!(
                "{} of {}: the line of rates says {line}, its output gives {rate}, which is kept.",
                test.label(),
                cell.label()
            ));
        }
    }
}
