//! Sysbench's published tables: absolute ones fill what raw files do not tell, relative ones have to
//! follow from them, or stand alone.

use plimsoll_analysis::metrics::{self, imported};

use super::builder::{Builder, ByMetric, printed};
use super::import::File;
use super::ratios::{Ratios, Row};
use super::sysbench::{file_suffix, load_step, rate_of, step_of};
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;
use crate::sysbench::published::{CostBlock, RateRow, RateTable};

/// The tables of a folder.
#[derive(Default)]
pub(super) struct Tables<'a> {
    pub rates: Vec<(&'a File, &'a RateTable)>,
    pub costs: Vec<&'a CostBlock>,
}

impl Tables<'_> {
    pub(super) fn add(&self, builder: &mut Builder) {
        let absolute = self.rates.iter().filter(|(_, table)| table.base.is_none());
        absolute.for_each(|(_, table)| add_rates(builder, table));
        for block in &self.costs {
            add_costs(builder, block);
        }
        let is_alone = builder.is_empty();
        for (file, table) in &self.rates {
            if let Some(base) = &table.base {
                ratios(file, table, base).add(builder, is_alone);
            }
        }
    }

    /// The columns of the table of this tag, its base included: `all` of `qps.abs.all.tsv`.
    pub(super) fn columns(&self, tag: &str) -> Option<Vec<CellName>> {
        let of_tag = |kind: &str, name: &str| {
            let rest = name.strip_prefix(kind)?.strip_prefix(tag)?;
            rest.starts_with('.').then_some(())
        };
        let found = |kind| {
            self.rates
                .iter()
                .find(|(file, _)| of_tag(kind, file.name()).is_some())
        };
        let (_, table) = found("qps.abs.").or_else(|| found("qps.rel."))?;
        let columns = table.base.iter().chain(&table.columns);
        Some(columns.map(|name| CellName::of_published(name)).collect())
    }
}

fn ratios<'a>(file: &'a File, table: &'a RateTable, base: &str) -> Ratios<'a> {
    let row = |row: &'a RateRow| Row {
        step: step_of(&row.test, row.range),
        cells: row.cells.iter().map(String::as_str).collect(),
        remark: row.remark.as_deref(),
    };
    let columns = table.columns.iter();
    Ratios {
        path: &file.path,
        base: CellName::of_published(base),
        columns: columns.map(|name| CellName::of_published(name)).collect(),
        rows: table.rows.iter().map(row).collect(),
    }
}

/// A table of rates fills what raw files do not tell.
fn add_rates(builder: &mut Builder, table: &RateTable) {
    let cells: Vec<usize> = table
        .columns
        .iter()
        .map(|folder| cell_of(builder, folder))
        .collect();
    for row in &table.rows {
        let rate = rate_of(&row.test);
        let step = builder.step(step_of(&row.test, row.range));
        for (cell, text) in cells.iter().zip(&row.cells) {
            let folder = builder.cell_mut(*cell).original.clone();
            let result = builder.result(*cell, step);
            if let Some(remark) = &row.remark {
                result.facts.insert("remark".to_owned(), remark.clone());
            }
            match result
                .values
                .of(rate)
                .and_then(|value| value.classic.clone())
            {
                None => result.values.put(rate, printed(text)),
                Some(known) if known != *text => {
                    let test = step_of(&row.test, row.range).name;
                    builder.note(format!(
                        "{test} of {folder}: a table says {text}, its output gives {known}, which \
                        is kept."
                    ));
                }
                Some(_) => {}
            }
        }
    }
}

fn cell_of(builder: &mut Builder, folder: &str) -> usize {
    let name = CellName::of_published(folder);
    match builder.find_cell(&name) {
        Some(cell) => cell,
        None => builder.cell(&name, ""),
    }
}

/// A summary of metrics fills what single files do not tell.
fn add_costs(builder: &mut Builder, block: &CostBlock) {
    let Some(test) = TestFile::of(&block.file) else {
        builder.note(format!(
            "A block of metrics has the name \"{}\", which is that of no test: it is left out.",
            block.file
        ));
        return;
    };
    let is_load = test.kind.starts_with("prepare");
    let step = builder.step(if is_load {
        load_step()
    } else {
        step_of(&test.test, Some(test.range))
    });
    for folder in &block.order {
        let [cpu, cs, reads, read_kib, written_kib, rate] = &block.rows[folder];
        let cell = cell_of(builder, folder);
        let result = builder.result(cell, step);
        result
            .facts
            .entry("file".to_owned())
            .or_insert_with(|| file_suffix(&test));
        let columns = [
            (imported::CPUPO, cpu),
            (metrics::CSPQ, cs),
            (metrics::RPQ, reads),
            (metrics::RKBPQ, read_kib),
            (imported::WKBPQ, written_kib),
            (imported::OP_RATE, rate),
        ];
        let values = &mut result.values;
        for (metric, text) in columns {
            values.put_if_missing(metric, printed(text));
        }
        let throughput = if is_load {
            metrics::IPS
        } else {
            rate_of(&test.test)
        };
        values.put_if_missing(throughput, printed(rate));
    }
}
