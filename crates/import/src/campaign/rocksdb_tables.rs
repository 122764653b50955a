//! RocksDB's tables of versions: they follow from the rows beside them, or are all there is.

use plimsoll_analysis::metrics;

use super::builder::{Builder, ByMetric, printed};
use super::import::File;
use super::ratios::{Ratios, Row};
use super::rocksdb::{Order, are_distinct, by_version, step_of};
use crate::names::folder::CellName;
use crate::rocksdb::table::Table;

/// Adds all tables of a set: rates first, because ratios are checked against them.
pub(super) fn add(builder: &mut Builder, tables: &[(&File, &Table)], orders: &[Order]) {
    let has_rows = !builder.is_empty();
    for (file, table) in tables.iter().filter(|(_, table)| !table.is_relative) {
        let columns = names(table, orders);
        add_rates(builder, (file, table), &columns, has_rows);
    }
    let is_alone = builder.is_empty();
    for (file, table) in tables.iter().filter(|(_, table)| table.is_relative) {
        let columns = names(table, orders);
        let rows = table.rows.iter().map(|(test, cells)| Row {
            step: step_of(test),
            cells: cells.iter().map(String::as_str).collect(),
            remark: None,
        });
        let ratios = Ratios {
            path: &file.path,
            base: columns[0].clone(),
            rows: rows.collect(),
            columns,
        };
        ratios.add(builder, is_alone);
    }
}

/// The cells of the rows that have the same versions in the same order; without such rows of two
/// columns with the same version the place tells.
fn names(table: &Table, orders: &[Order]) -> Vec<CellName> {
    let is_same = |order: &&Order| order.iter().map(|(version, _)| version).eq(&table.versions);
    match orders.iter().find(is_same) {
        Some(order) => order.iter().map(|(_, name)| name.clone()).collect(),
        None => {
            let is_only = are_distinct(table.versions.iter().map(String::as_str));
            let versions = table.versions.iter().enumerate();
            versions
                .map(|(place, version)| by_version(version, place, is_only))
                .collect()
        }
    }
}

/// Where rows are at hand a rate has to be theirs.
fn add_rates(
    builder: &mut Builder,
    (file, table): (&File, &Table),
    columns: &[CellName],
    has_rows: bool,
) {
    for (place, name) in columns.iter().enumerate() {
        if has_rows && builder.find_cell(name).is_none() {
            let version = &table.versions[place];
            builder.leave_out(
                &file.path,
                format!(
                    "its column {} ({version}) is not in the rows beside it",
                    place + 1
                ),
            );
            continue;
        }
        let cell = builder.cell(name, "");
        builder.cell_mut(cell).version = format!("RocksDB {}", table.versions[place]);
        for (test, cells) in &table.rows {
            let text = &cells[place];
            let step = builder.step(step_of(test));
            let known = builder.result(cell, step).values.of(metrics::QPS);
            match known.and_then(|value| value.classic.clone()) {
                None => builder
                    .result(cell, step)
                    .values
                    .put(metrics::QPS, printed(text)),
                Some(known) if known != *text => builder.note(format!(
                    "{}: {test} of {} is {text}, its row has {known}, which is kept.",
                    file.path, name.original
                )),
                Some(_) => {}
            }
        }
    }
}
