//! `qps.{abs,rel}.all.{tsv,csv}`, `o.met.all` and `<folder>/sb.met.*`.

use plimsoll_core::plan::published::{run_order, table_order};
use plimsoll_store::imported::{Imported, ImportedResult, ImportedStep};

use super::sysbench_layout::{self, NOTHING, lead_of_ratios, rates_csv, rates_tsv};
use super::{ExportFile, six_digits};
use plimsoll_analysis::classic::relative;
use plimsoll_analysis::metrics::imported::REL_RATE;

pub(super) fn files(imported: &Imported, cells: &[usize]) -> Vec<ExportFile> {
    let mut files = rate_tables(imported, cells);
    files.push(ExportFile {
        path: "o.met.all".to_owned(),
        text: costs(imported, cells),
    });
    files.retain(|file| !file.text.is_empty());
    for cell in cells {
        for (step, of) in imported.steps.iter().enumerate() {
            if let Some((suffix, text)) = imported.result(*cell, step).and_then(metrics_file) {
                let kind = if of.range.is_none() && of.test == "prepare" {
                    "prepare.met"
                } else {
                    "met"
                };
                files.push(ExportFile {
                    path: format!("{}/sb.{kind}.{suffix}", imported.cells[*cell].original),
                    text,
                });
            }
        }
    }
    files
}

/// Tests before the writes and warm-ups are not in the tables; by the originals' own rule the
/// warm-up of the scan is.
fn is_in_tables(step: &ImportedStep) -> bool {
    step.range.is_some()
        && !step.test.contains("pre")
        && !(step.test.contains("point") && step.test.contains("warm"))
}

/// Tables of rates always have the range.
fn label(step: &ImportedStep) -> String {
    format!("{}_range={}", step.test, step.range.unwrap_or(0))
}

fn key(step: &ImportedStep) -> (&str, u32) {
    (&step.test, step.range.unwrap_or(0))
}

fn classic<'a>(result: Option<&'a ImportedResult>, name: &str) -> Option<&'a str> {
    result?.values.get(name)?.classic.as_deref()
}

fn rate_tables(imported: &Imported, cells: &[usize]) -> Vec<ExportFile> {
    let mut steps: Vec<usize> = (0..imported.steps.len())
        .filter(|step| is_in_tables(&imported.steps[*step]))
        .collect();
    steps.sort_by(|a, b| table_order(key(&imported.steps[*a]), key(&imported.steps[*b])));
    let originals: Vec<&str> = cells
        .iter()
        .map(|cell| imported.cells[*cell].original.as_str())
        .collect();
    // What the originals printed, not the clean number: their ratios are of printed numbers.
    let rates = |step: usize| -> Vec<Option<f64>> {
        cells
            .iter()
            .map(|cell| {
                classic(imported.result(*cell, step), &imported.steps[step].rate)?
                    .parse()
                    .ok()
            })
            .collect()
    };
    let rows: Vec<(String, Vec<Option<f64>>)> = steps
        .iter()
        .map(|step| (label(&imported.steps[*step]), rates(*step)))
        .filter(|(_, rates)| rates.iter().any(Option::is_some))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let absolute: Vec<(&str, Vec<String>)> = rows
        .iter()
        .map(|(name, rates)| {
            (
                name.as_str(),
                rates
                    .iter()
                    .map(|rate| {
                        rate.map_or_else(|| NOTHING.to_owned(), |rate| format!("{rate:.0}"))
                    })
                    .collect(),
            )
        })
        .collect();
    let ratio = |rate: &Option<f64>, base: Option<f64>| {
        rate.zip(base).map_or_else(
            || NOTHING.to_owned(),
            |(rate, base)| relative::format(rate, base),
        )
    };
    let relatives: Vec<(&str, Vec<String>)> = rows
        .iter()
        .map(|(name, rates)| {
            (
                name.as_str(),
                rates[1..]
                    .iter()
                    .map(|rate| ratio(rate, rates[0]))
                    .collect(),
            )
        })
        .collect();
    let base = lead_of_ratios(originals[0]);
    // Where only ratios were published there is nothing absolute.
    let are_ratios = steps
        .iter()
        .all(|step| imported.steps[*step].rate == REL_RATE.name);
    [
        ("abs", "", &originals[..], &absolute),
        ("rel", base.as_str(), &originals[1..], &relatives),
    ]
    .into_iter()
    .filter(|(kind, _, originals, _)| !(originals.is_empty() || are_ratios && *kind == "abs"))
    .flat_map(|(kind, lead, originals, rows)| {
        let file = |end: &str, text: String| ExportFile {
            path: format!("qps.{kind}.all.{end}"),
            text,
        };
        [
            file("tsv", rates_tsv(lead, originals, rows)),
            file("csv", rates_csv(rows)),
        ]
    })
    .collect()
}

const COSTS: [&str; 6] = ["cpupo", "cspq", "rpq", "rkbpq", "wkbpq", "op_rate"];

/// The load, then every test in the order it runs in, scans last; the warm-up after the load is
/// left out.
fn costs(imported: &Imported, cells: &[usize]) -> String {
    let mut steps: Vec<usize> = (0..imported.steps.len())
        .filter(|step| imported.steps[*step].test != "point-query.warm")
        .collect();
    let section = |step: &ImportedStep| match step.test.as_str() {
        "prepare" => 0,
        test if test == "scan" || test.starts_with("scan.") => 2,
        _ => 1,
    };
    steps.sort_by(|a, b| {
        let (a, b) = (&imported.steps[*a], &imported.steps[*b]);
        section(a)
            .cmp(&section(b))
            .then_with(|| run_order(key(a), key(b)))
    });
    steps
        .into_iter()
        .filter_map(|step| cost_block(imported, cells, step))
        .collect()
}

fn cost_block(imported: &Imported, cells: &[usize], step: usize) -> Option<String> {
    let of = &imported.steps[step];
    let row = |cell: &usize| -> Option<(&str, [String; 6], &str)> {
        let result = imported.result(*cell, step)?;
        let texts: Vec<&str> = COSTS
            .iter()
            .map(|name| classic(Some(result), name))
            .collect::<Option<_>>()?;
        let number = |i: usize| texts[i].parse::<f64>().ok();
        let cells = [
            texts[0].to_owned(),
            texts[1].to_owned(),
            six_digits(number(2)?),
            six_digits(number(3)?),
            six_digits(number(4)?),
            format!("{:.0}", number(5)?),
        ];
        Some((
            imported.cells[*cell].original.as_str(),
            cells,
            result.facts.get("file")?,
        ))
    };
    let rows: Vec<_> = cells.iter().filter_map(row).collect();
    let (.., suffix) = rows.first()?;
    let kind = if of.test == "prepare" && of.range.is_none() {
        "sb.prepare.met"
    } else {
        "sb.met"
    };
    let title = format!("{kind}.{suffix}");
    Some(sysbench_layout::costs(
        &title,
        &rows
            .into_iter()
            .map(|(original, cells, _)| (original, cells))
            .collect::<Vec<_>>(),
    ))
}

/// Name and text of `sb.met`, when everything in it is known.
fn metrics_file(result: &ImportedResult) -> Option<(&str, String)> {
    let of = |name: &str| classic(Some(result), name);
    let suffix = result.facts.get("file")?;
    let io: Vec<&str> = [
        "rps", "rmbps", "wps", "wmbps", "rpq", "rkbpq", "wkbpq", "op_rate",
    ]
    .iter()
    .map(|name| of(name))
    .collect::<Option<_>>()?;
    let vm: Vec<&str> = ["csps", "cpups", "cspq", "cpupo"]
        .iter()
        .map(|name| of(name))
        .collect::<Option<_>>()?;
    let (io_samples, vm_samples) = (
        result.facts.get("io_samples")?,
        result.facts.get("vm_samples")?,
    );
    let line = |samples: &str, cells: &[&str]| format!("{samples}\t{}", cells.join("\t"));
    Some((
        suffix,
        sysbench_layout::metrics(&line(io_samples, &io), &line(vm_samples, &vm)),
    ))
}
