//! `import`, `export` and `compare`.

use std::fs;
use std::path::Path;

use plimsoll_analysis::{Options, View, analyse};
use plimsoll_import::{Summary, import as import_path};
use plimsoll_report::{Draw, comparison_to_csv, comparison_to_markdown, to_classic_files};
use plimsoll_store::{CampaignDir, in_commands};
use serde_json::json;

use crate::arguments::{Compare, CompareFormat, Export, Import, Places};
use crate::failure::{Failure, INCOMPLETE, VerbResult};
use crate::output::print;

/// Reasons that the summary lists in full; the campaign has all of them.
const LISTED: usize = 20;

pub fn import(places: &Places, arguments: &Import) -> VerbResult {
    let store = places.store();
    let options = plimsoll_import::Options {
        base: arguments.base.clone(),
        device: arguments.device.clone(),
    };
    let mut summaries = Vec::new();
    for path in &arguments.paths {
        summaries.push(import_path(&store, path, &options)?);
    }
    let is_complete = summaries
        .iter()
        .all(|summary| summary.left_out.is_empty() && !summary.units.is_empty());
    if arguments.json {
        let value: Vec<_> = summaries.iter().map(summary_json).collect();
        print(&format!("{:#}\n", json!({"format": 1, "imports": value})))?;
    } else {
        for (path, summary) in arguments.paths.iter().zip(&summaries) {
            print(&summary_text(path, summary))?;
        }
    }
    Ok(if is_complete { 0 } else { INCOMPLETE })
}

fn summary_text(path: &Path, summary: &Summary) -> String {
    let mut text = String::new();
    if summary.units.is_empty() {
        text.push_str(&format!("{}: no results were found\n", path.display()));
    }
    for unit in &summary.units {
        let of = &unit.imported;
        let failed = of
            .results
            .iter()
            .filter(|result| result.failed.is_some())
            .count();
        text.push_str(&format!(
            "{}  {}: {} builds x {} steps, {} results{}; {} files read, {} passed over{}{}\n",
            unit.campaign.header.id,
            of.source,
            of.cells.len(),
            of.steps.len(),
            of.results.len() - failed,
            if failed > 0 {
                format!(", {failed} failed")
            } else {
                String::new()
            },
            of.files_read,
            of.files_passed_over,
            if of.passwords_stripped > 0 {
                format!(", {} passwords taken out", of.passwords_stripped)
            } else {
                String::new()
            },
            if unit.is_known {
                " (known already)"
            } else {
                ""
            },
        ));
    }
    if let [unit] = &summary.units[..] {
        text.push_str(&format!(
            "next: plimsoll show {id}; plimsoll report {id}\n",
            id = in_commands(&unit.campaign.path)
        ));
    }
    if !summary.left_out.is_empty() {
        text.push_str(&format!("left out: {}\n", summary.left_out.len()));
        for out in summary.left_out.iter().take(LISTED) {
            text.push_str(&format!(
                "  {}: {}\n",
                printable(&out.path),
                printable(&out.reason)
            ));
        }
        if summary.left_out.len() > LISTED {
            text.push_str(&format!(
                "  and {} more: `plimsoll import --json` lists them\n",
                summary.left_out.len() - LISTED
            ));
        }
    }
    text
}

/// Names of files may hold anything.
fn printable(text: &str) -> String {
    text.replace(char::is_control, " ")
}

fn summary_json(summary: &Summary) -> serde_json::Value {
    json!({
        "campaigns": summary.units.iter().map(|unit| json!({
            "id": unit.campaign.header.id,
            "source": unit.imported.source,
            "family": unit.imported.family,
            "base": unit.imported.cells.get(unit.imported.base).map(|cell| &cell.label),
            "cells": unit.imported.cells.iter().map(|cell| &cell.label).collect::<Vec<_>>(),
            "steps": unit.imported.steps.iter().map(|step| &step.name).collect::<Vec<_>>(),
            "results": unit.imported.results.len(),
            "files_read": unit.imported.files_read,
            "files_passed_over": unit.imported.files_passed_over,
            "passwords_stripped": unit.imported.passwords_stripped,
            "known": unit.is_known,
        })).collect::<Vec<_>>(),
        "left_out": summary.left_out,
    })
}

pub fn export(places: &Places, arguments: &Export) -> VerbResult {
    let record = places.store().find(arguments.which.campaign())?.load()?;
    let options = Options {
        base: arguments.base.clone(),
        builds: arguments.builds.clone(),
    };
    let files = to_classic_files(&record, &options)?;
    if files.is_empty() {
        let why = match record.imported {
            Some(_) => {
                "it was not imported from files of the originals, which tell more than it has"
            }
            None => {
                "the originals have files of the Insert Benchmark's ten steps, of sysbench's tests \
                and of db_bench, and none of ramps or workload files"
            }
        };
        return Err(Failure::usage(format!(
            "failed to export {}: {why}",
            record.header.id
        )));
    }
    for file in &files {
        let path = arguments.classic.join(&file.path);
        let written = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, &file.text));
        written.map_err(|error| {
            Failure::usage(format!(
                "failed to write {}: {error}; choose another folder with --classic",
                path.display()
            ))
        })?;
    }
    let how = if record.imported.is_some() {
        "with the digits they were printed with"
    } else {
        "a native run: clean values in the originals' layout"
    };
    anstream::println!(
        "{} files in {}, {how}",
        files.len(),
        arguments.classic.display()
    );
    Ok(0)
}

pub fn compare(places: &Places, arguments: &Compare) -> VerbResult {
    let a = side(places, arguments, &arguments.a)?;
    let b = side(places, arguments, &arguments.b)?;
    let pairs = plimsoll_analysis::pairs(&a, &b);
    if pairs.is_empty() {
        let labels = |view: &View| {
            view.cells
                .iter()
                .map(|cell| cell.label.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(Failure::usage(format!(
            "failed to compare \"{}\" with \"{}\": no cell of {} belongs to one of {}; name a cell \
            on each side",
            arguments.a,
            arguments.b,
            labels(&a),
            labels(&b)
        )));
    }
    let mut comparisons: Vec<_> = pairs
        .into_iter()
        .map(|(of_a, of_b)| plimsoll_analysis::compare((&a, of_a), (&b, of_b)))
        .collect();
    let format = if arguments.json {
        CompareFormat::Json
    } else {
        arguments.format
    };
    if matches!(format, CompareFormat::Text | CompareFormat::Md) {
        // What holds for all is reported once, at the end.
        for i in 1..comparisons.len() {
            if comparisons[i - 1].notes == comparisons[i].notes {
                comparisons[i - 1].notes.clear();
            }
        }
    }
    let text = match format {
        CompareFormat::Json => {
            let comparisons: Vec<_> = comparisons.iter().map(Draw::to_json).collect();
            format!("{:#}\n", json!({"format": 1, "comparisons": comparisons}))
        }
        CompareFormat::Text => comparisons
            .iter()
            .map(Draw::to_text)
            .collect::<Vec<_>>()
            .join("\n"),
        CompareFormat::Md => comparisons
            .iter()
            .map(comparison_to_markdown)
            .collect::<Vec<_>>()
            .join("\n"),
        CompareFormat::Csv => {
            let header = |(i, comparison): (usize, &plimsoll_analysis::Comparison)| {
                let csv = comparison_to_csv(comparison);
                if i == 0 {
                    csv
                } else {
                    csv.split_once('\n')
                        .map_or(String::new(), |(_, rows)| rows.to_owned())
                }
            };
            comparisons.iter().enumerate().map(header).collect()
        }
    };
    print(&text)?;
    Ok(0)
}

/// What a name stands for: a folder or file of results, a campaign, else cells of the campaign.
fn side(places: &Places, arguments: &Compare, name: &str) -> Result<View, Failure> {
    let store = places.store();
    let whole = |campaign: CampaignDir| Ok(analyse(&[campaign.load()?], &Options::default())?);
    let path = Path::new(name);
    if path.exists() && !path.join("campaign.json").is_file() {
        let summary = import_path(&store, path, &plimsoll_import::Options::default())?;
        for out in summary.left_out.iter().take(LISTED) {
            tell!(
                "warning: left out {}: {}",
                printable(&out.path),
                printable(&out.reason)
            );
        }
        return match summary.units.len() {
            1 => whole(
                summary
                    .units
                    .into_iter()
                    .next()
                    .expect("there is one")
                    .campaign,
            ),
            0 => Err(Failure::usage(format!(
                "failed to compare {}: no results were found in it",
                path.display()
            ))),
            several => Err(Failure::usage(format!(
                "failed to compare {}: it holds {several} sets of results; name one of them",
                path.display()
            ))),
        };
    }
    let of_campaign = || -> Result<View, Failure> {
        let record = store.find(arguments.campaign.as_deref())?.load()?;
        Ok(analyse(
            &[record],
            &Options {
                base: None,
                builds: vec![name.to_owned()],
            },
        )?)
    };
    match of_campaign() {
        Ok(view) => Ok(view),
        // A name that is not a cell may be a campaign; if it is neither, the cells are what the
        // user should see.
        Err(failure) => match store.find(Some(name)) {
            Ok(campaign) => whole(campaign),
            Err(_) => Err(failure),
        },
    }
}
