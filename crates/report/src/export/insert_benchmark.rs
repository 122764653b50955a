//! `o.sum.t.<tag>`, `mrg.<step>` and `rel.<step>`.

use std::fmt::Write as _;

use plimsoll_analysis::metrics::CLASSIC_COLUMNS;
use plimsoll_store::imported::Imported;

use super::ExportFile;
use plimsoll_analysis::classic::metrics_line::{cells, relative_cells};
use plimsoll_analysis::view::View;

/// The originals call the percentiles of rates `p50` and `p99`.
fn header() -> String {
    let names: Vec<&str> = CLASSIC_COLUMNS
        .iter()
        .map(|metric| metric.name.trim_end_matches("_rate"))
        .collect();
    format!("{}\ttag\n", names.join("\t"))
}

/// A cell's line of a step.
type Lines<'a> = dyn Fn(usize, usize) -> Option<[String; 20]> + 'a;

/// What the files are made of.
struct Source<'a> {
    /// Name in the summary and name in merged tables.
    tags: Vec<(String, String)>,
    steps: Vec<String>,
    groups: Vec<Vec<usize>>,
    line: &'a Lines<'a>,
}

pub(super) fn of_native(view: &View) -> Vec<ExportFile> {
    let line = |cell: usize, step: usize| {
        let outcome = &view.steps[step].outcomes[cell];
        (!outcome.measures.is_empty())
            .then(|| cells(&CLASSIC_COLUMNS.map(|metric| outcome.number(metric))))
    };
    let source = Source {
        tags: view
            .cells
            .iter()
            .map(|cell| (cell.label.clone(), cell.label.clone()))
            .collect(),
        steps: view.steps.iter().map(|step| step.name.clone()).collect(),
        groups: vec![(0..view.cells.len()).collect()],
        line: &line,
    };
    files(&source)
}

pub(super) fn of_imported(imported: &Imported, groups: &[Vec<usize>]) -> Vec<ExportFile> {
    let line = |cell: usize, step: usize| {
        let result = imported
            .result(cell, step)
            .filter(|result| result.failed.is_none())?;
        let clean = cells(
            &CLASSIC_COLUMNS
                .map(|metric| result.values.get(metric.name).and_then(|value| value.value)),
        );
        Some(std::array::from_fn(|i| {
            let classic = result
                .values
                .get(CLASSIC_COLUMNS[i].name)
                .and_then(|value| value.classic.clone());
            classic.unwrap_or_else(|| clean[i].clone())
        }))
    };
    let source = Source {
        tags: imported
            .cells
            .iter()
            .map(|cell| (cell.original.clone(), cell.label.clone()))
            .collect(),
        steps: imported
            .steps
            .iter()
            .map(|step| step.name.clone())
            .collect(),
        groups: groups.to_vec(),
        line: &line,
    };
    files(&source)
}

fn files(source: &Source<'_>) -> Vec<ExportFile> {
    let mut files = Vec::new();
    for cell in source.groups.concat() {
        let (tag, _) = &source.tags[cell];
        let lines: Vec<String> = (0..source.steps.len())
            .filter_map(|step| Some(line(&(source.line)(cell, step)?, tag)))
            .collect();
        if !lines.is_empty() {
            files.push(ExportFile {
                path: format!("o.sum.t.{tag}"),
                text: format!("{}{}", header(), lines.concat()),
            });
        }
    }
    for (step, name) in source.steps.iter().enumerate() {
        let (merged, relative) = merge(source, step);
        for (kind, text) in [("mrg", merged), ("rel", relative)] {
            // A header alone says nothing.
            if text.lines().count() > 1 {
                files.push(ExportFile {
                    path: format!("{kind}.{name}"),
                    text,
                });
            }
        }
    }
    files
}

fn line(cells: &[String; 20], tag: &str) -> String {
    format!("{}\t{tag}\n", cells.join("\t"))
}

/// The lines of a step, and what they are of the first in their group.
fn merge(source: &Source<'_>, step: usize) -> (String, String) {
    let (mut merged, mut relative) = (header(), header());
    for (index, group) in source.groups.iter().enumerate() {
        if index > 0 {
            merged.push_str("-\n");
            relative.push_str("-\n");
        }
        let lines: Vec<([String; 20], &str)> = group
            .iter()
            .filter_map(|cell| {
                Some((
                    rounded((source.line)(*cell, step)?),
                    source.tags[*cell].1.as_str(),
                ))
            })
            .collect();
        for (i, (cells, tag)) in lines.iter().enumerate() {
            merged.push_str(&line(cells, tag));
            if i > 0 {
                write!(
                    relative,
                    "{}",
                    line(&relative_cells(cells, &lines[0].0), tag)
                )
                .expect("writing to a string cannot fail");
            }
        }
    }
    (merged, relative)
}

/// In merged tables the first three columns are whole, and large data directories have one decimal.
fn rounded(mut cells: [String; 20]) -> [String; 20] {
    for (i, cell) in cells.iter_mut().enumerate() {
        let Ok(number) = cell.parse::<f64>() else {
            continue;
        };
        if i < 3 {
            *cell = format!("{number:.0}");
        } else if i == 15 && number >= 10.0 {
            *cell = format!("{number:.1}");
        }
    }
    cells
}
