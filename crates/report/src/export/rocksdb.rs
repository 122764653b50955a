//! `<build>/report.tsv` with its 28 columns, `abs.<set>.tsv` and `rel2.<set>.csv`.

use plimsoll_core::rocksdb_report::{FACTS, METRICS, is_in_tables};
use plimsoll_store::imported::{Imported, ImportedResult};

use super::ExportFile;
use plimsoll_analysis::classic::relative;
use plimsoll_analysis::metrics::imported::REL_RATE;

pub(super) fn files(imported: &Imported, cells: &[usize]) -> Vec<ExportFile> {
    // Where only ratios were published there are no rows.
    let are_ratios = imported.steps.iter().all(|step| step.rate == REL_RATE.name);
    let mut files: Vec<ExportFile> = cells
        .iter()
        .filter(|_| !are_ratios)
        .map(|cell| {
            let rows = (0..imported.steps.len())
                .filter_map(|step| row(imported.result(*cell, step)?, &imported.steps[step].name));
            let header = METRICS
                .iter()
                .map(|(column, _)| *column)
                .chain(FACTS)
                .collect::<Vec<_>>()
                .join("\t");
            ExportFile {
                path: format!("{}/report.tsv", imported.cells[*cell].build),
                text: format!("{header}\n{}", rows.collect::<String>()),
            }
        })
        .collect();
    let set = imported
        .source
        .split_once(' ')
        .map_or("all", |(_, set)| set);
    let (absolute, relative) = tables(imported, cells);
    if !are_ratios {
        files.push(ExportFile {
            path: format!("abs.{set}.tsv"),
            text: absolute,
        });
    }
    files.push(ExportFile {
        path: format!("rel2.{set}.csv"),
        text: relative,
    });
    files
}

fn row(result: &ImportedResult, step: &str) -> Option<String> {
    let fact = |name: &str| {
        result
            .facts
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    };
    if result.failed.is_some() {
        return Some(format!(
            "failed{}{step}\t{}\t{}\t{}\t{}\n",
            "\t".repeat(23),
            fact("date"),
            fact("version"),
            fact("job_id"),
            fact("githash")
        ));
    }
    let cell = |name: &str| match result.values.get(name) {
        Some(value) => value
            .classic
            .clone()
            .or_else(|| value.value.map(|number| number.to_string()))
            .unwrap_or_default(),
        None if name == "test" => step.to_owned(),
        None => fact(name).to_owned(),
    };
    let cells: Vec<String> = METRICS
        .iter()
        .map(|(_, metric)| *metric)
        .chain(FACTS)
        .map(cell)
        .collect();
    Some(format!("{}\n", cells.join("\t")))
}

fn tables(imported: &Imported, cells: &[usize]) -> (String, String) {
    let (mut absolute, mut relative) = (String::new(), String::new());
    for (step, of) in imported
        .steps
        .iter()
        .enumerate()
        .filter(|(_, step)| is_in_tables(&step.name))
    {
        let text = |cell: &usize| {
            imported
                .result(*cell, step)
                .and_then(|result| result.values.get(&of.rate)?.classic.clone())
        };
        let texts: Vec<String> = cells
            .iter()
            .map(|cell| text(cell).unwrap_or_else(|| "NA".to_owned()))
            .collect();
        absolute.push_str(&format!("{}\t{}\n", texts.join("\t"), of.name));
        let ratio = |text: &String| match (text.parse(), texts[0].parse()) {
            (Ok(value), Ok(base)) => relative::format(value, base),
            _ => "NA".to_owned(),
        };
        let ratios: Vec<String> = texts[1..].iter().map(ratio).collect();
        relative.push_str(&format!("{},{}\n", of.name, ratios.join(",")));
    }
    (absolute, relative)
}
