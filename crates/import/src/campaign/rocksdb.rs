//! `db_bench`: reports of versions, summaries of many, raw logs.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use plimsoll_analysis::metrics::{self, Metric, imported};
use plimsoll_core::rocksdb_report::METRICS;
use plimsoll_core::rocksdb_stats::{RocksdbStats, gib};
use plimsoll_store::imported::{Family, Imported, ImportedStep, ImportedValue};

use super::builder::{Builder, ByMetric, Values, both, clean, plain_step, printed};
use super::import::File;
use super::rocksdb_tables;
use crate::names::folder::CellName;
use crate::rocksdb::log::Log;
use crate::rocksdb::rows::{Row, Rows, is_shifted};
use crate::tree::contents::Contents;

/// Makes a campaign of the files that are db_bench's.
pub(super) fn assemble(files: &[File]) -> Option<Imported> {
    let mut builder = Builder::new(Family::Rocksdb);
    let mut tables = Vec::new();
    let mut orders: Vec<Order> = Vec::new();
    for file in files {
        match &file.contents {
            Ok(Contents::RocksdbTable(table)) => tables.push((file, table)),
            Ok(Contents::RocksdbRows(rows)) => {
                orders.extend(add_rows(&mut builder, file, rows));
            }
            Ok(Contents::RocksdbLog(log)) => add_log(&mut builder, file, log),
            _ => {}
        }
    }
    rocksdb_tables::add(&mut builder, &tables, &orders);
    // Rows are in the order that the steps ran in.
    builder.finish(|_, _| Ordering::Equal)
}

/// So begins the note on results that Plimsoll measured and exported.
pub(super) const EXPORTED: &str = "Exported by Plimsoll: ";

/// `bm.lc.nt12.cm1.d0/8.0.fb.gcc/report.tsv`: the version's label, and how it was run.
fn cell_of_path(path: &str) -> Option<CellName> {
    let mut parts = path.rsplit('/').skip(1);
    let build = parts.next().filter(|build| !build.is_empty())?;
    let config = parts
        .next()
        .and_then(|folder| folder.strip_prefix("bm."))
        .unwrap_or_default();
    Some(CellName {
        original: format!("{config}/{build}"),
        build: build.to_owned(),
        config: config.to_owned(),
    })
}

fn cell_of_file(file: &File) -> Option<CellName> {
    let mut folders = file.folders();
    let build = folders.next().unwrap_or_default();
    let config = folders.next().unwrap_or_default();
    cell_of_path(&format!("{config}/{build}/{}", file.name()))
}

/// Versions and cells of the rows of a block, in their order.
pub(super) type Order = Vec<(String, CellName)>;

/// The orders of its blocks that differ.
fn add_rows(builder: &mut Builder, file: &File, rows: &Rows) -> Vec<Order> {
    let mut orders: Vec<Order> = Vec::new();
    if let Some(made_by) = rows.made_by {
        builder.note(format!("{EXPORTED}{made_by}."));
    }
    if rows.paths.is_empty() {
        // One version's report has a row per step; a list of blocks without paths has a row per
        // version.
        let is_report = rows.blocks.len() == 1 && has_distinct_tests(&rows.blocks[0]);
        if is_report && let Some(cell) = cell_of_file(file) {
            let cell = builder.cell(&cell, "");
            rows.blocks[0]
                .iter()
                .for_each(|row| add_row(builder, cell, row));
            return orders;
        }
    }
    // The paths of a list that lies beside its versions begin with theirs: how they were run is in
    // the name of its own folder.
    let folder = file.folders().next().unwrap_or_default();
    let labels: Vec<Option<CellName>> = rows
        .paths
        .iter()
        .map(|path| cell_of_path(path).and(cell_of_path(&format!("{folder}/{path}"))))
        .collect();
    let has_distinct = rows
        .blocks
        .iter()
        .all(|block| are_distinct(block.iter().map(version_of)));
    for block in &rows.blocks {
        let is_aligned = labels.len() == block.len() || labels.is_empty();
        let mut order = Order::new();
        for (i, row) in block.iter().enumerate() {
            let name = match labels.get(i) {
                Some(Some(label)) if is_aligned => label.clone(),
                _ if labels.is_empty() => by_version(version_of(row), i, has_distinct),
                _ => match of_version(&labels, row) {
                    Some(label) => label,
                    None => {
                        let test = row.cell("test").unwrap_or_default();
                        builder.note(format!(
                            "{}: the block of {test} has {} rows for {} versions, and a row of it \
                            fits no version: it is left out.",
                            file.path,
                            block.len(),
                            labels.len()
                        ));
                        continue;
                    }
                },
            };
            let cell = builder.cell(&name, "");
            add_row(builder, cell, row);
            let version = row.cell("version").unwrap_or_default();
            order.push((version.to_owned(), name));
        }
        if !orders.contains(&order) {
            orders.push(order);
        }
    }
    orders
}

fn has_distinct_tests(rows: &[Row]) -> bool {
    are_distinct(rows.iter().map(|row| row.cell("test").unwrap_or_default()))
}

/// The version of rows or columns without a list of paths; of two with the same version their place
/// tells, which is counted from 0.
pub(super) fn by_version(version: &str, place: usize, is_only: bool) -> CellName {
    if is_only {
        return CellName::verbatim(version);
    }
    CellName {
        original: format!("{version}#{}", place + 1),
        build: version.to_owned(),
        config: format!("row{}", place + 1),
    }
}

/// Whether no version is there twice.
pub(super) fn are_distinct<'a>(versions: impl IntoIterator<Item = &'a str>) -> bool {
    let mut seen = BTreeSet::new();
    versions.into_iter().all(|version| seen.insert(version))
}

fn version_of(row: &Row) -> &str {
    row.cell("version").unwrap_or("unknown")
}

/// The only label that a row's version begins with: `8.0.fb.gcc` for 8.0.0.
fn of_version(labels: &[Option<CellName>], row: &Row) -> Option<CellName> {
    let version = row.cell("version")?;
    let minor: Vec<&str> = version.splitn(3, '.').take(2).collect();
    let start = minor.join(".");
    let mut fitting = labels.iter().flatten().filter(|label| {
        label
            .build
            .strip_prefix(&start)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let found = fitting.next()?;
    fitting.next().is_none().then(|| found.clone())
}

pub(super) fn step_of(name: &str) -> ImportedStep {
    let description =
        "operations per second of all threads; the background writer's are not counted";
    plain_step(name, description, "operation", metrics::QPS.name)
}

fn add_row(builder: &mut Builder, cell: usize, row: &Row) {
    let step = builder.step(step_of(row.cell("test").unwrap_or_default()));
    let version = row.cell("version").unwrap_or_default().to_owned();
    if !version.is_empty() {
        builder.cell_mut(cell).version = format!("RocksDB {version}");
    }
    let result = builder.result(cell, step);
    result.era = "rows of 28 columns".to_owned();
    for name in ["date", "version", "job_id", "githash"] {
        result.facts.insert(
            name.to_owned(),
            row.cell(name).unwrap_or_default().to_owned(),
        );
    }
    if row.is_failed {
        result.failed = Some("the step failed".to_owned());
        return;
    }
    for (column, metric) in METRICS {
        if let Some(text) = row.cell(column) {
            let is_size = matches!(column, "lsm_sz" | "blob_sz");
            let size = || ImportedValue {
                value: gib_of(text),
                classic: Some(text.to_owned()),
                unavailable: None,
            };
            let value = if is_size { size() } else { printed(text) };
            result.values.insert(metric.to_owned(), value);
        }
    }
    if let Some(text) = row.cell("w_amp").filter(|text| *text != "NA") {
        result.values.put(
            imported::W_AMP,
            without(
                "flushes are counted twice in it, and the row does not tell how much they were",
                Some(text),
            ),
        );
    }
    if is_shifted(&version) {
        unshift(row, &mut result.values);
    }
}

/// A size such as `40GB` in GiB.
fn gib_of(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    gib(number, unit)
}

fn without(reason: &str, classic: Option<&str>) -> ImportedValue {
    ImportedValue {
        value: None,
        classic: classic.map(str::to_owned),
        unavailable: Some(reason.to_owned()),
    }
}

/// From 10.3 on four columns hold their neighbours' numbers: what is under `c_csecs` are the wall
/// seconds, and what is under `b_wgb` is what compaction read from blobs.
fn unshift(row: &Row, values: &mut Values) {
    const SHIFTED: &str = "the original's column holds another number since RocksDB 10.3";
    let classic = |column: &str| row.cell(column).map(str::to_owned);
    let number = |column: &str| row.cell(column).and_then(|text| text.parse().ok());
    values.put(
        imported::C_WSECS,
        ImportedValue {
            value: number("c_csecs"),
            classic: classic("c_wsecs"),
            unavailable: None,
        },
    );
    values.put(
        imported::B_RGB,
        ImportedValue {
            value: number("b_wgb"),
            classic: classic("b_rgb"),
            unavailable: None,
        },
    );
    values.put(imported::C_CSECS, without(SHIFTED, row.cell("c_csecs")));
    values.put(imported::B_WGB, without(SHIFTED, row.cell("b_wgb")));
}

/// A raw log: its step is in its name, its version in the folder.
fn add_log(builder: &mut Builder, file: &File, log: &Log) {
    let Some(name) = cell_of_file(file) else {
        return;
    };
    let test = file
        .name()
        .strip_prefix("benchmark_")
        .and_then(|name| name.strip_suffix(".log"))
        .map_or_else(|| file.stem(), str::to_owned);
    let step = builder.step(step_of(&test));
    let cell = builder.cell(&name, "");
    if let Some(version) = &log.version {
        let of = &mut builder.cell_mut(cell).version;
        if of.is_empty() {
            *of = format!("RocksDB {version}");
        }
    }
    for warning in &log.warnings {
        builder.note(format!(
            "{}: {warning}: such numbers are not those of a release.",
            name.label()
        ));
    }
    let result = builder.result(cell, step);
    result.era = log.line.name().to_owned();
    // A report's row is what was published; the log next to it adds what the row lacks.
    for (metric, value) in results(log).into_iter().chain(statistics(&log.stats)) {
        result.values.entry(metric).or_insert(value);
    }
    if let Some(version) = &log.version {
        result
            .facts
            .entry("version".to_owned())
            .or_insert_with(|| version.clone());
    }
}

/// What db_bench printed of the benchmark.
fn results(log: &Log) -> Values {
    let mut values = Values::default();
    // Without seconds and operations the rate is the printed one.
    let rate = log.operations.and_then(|_| log.rate());
    values.put(
        metrics::QPS,
        rate.map_or_else(
            || printed(&log.ops_sec),
            |rate| both(rate, log.ops_sec.clone()),
        ),
    );
    let usec_op = log.usec_op.parse().ok();
    add_rounded(&mut values, imported::USEC_OP, usec_op, 1);
    if let Some(mb_sec) = &log.mb_sec {
        values.put(imported::MB_SEC, printed(mb_sec));
    }
    for (metric, value, digits) in [
        (metrics::P50_SERVICE_US, log.percentiles[0], 1),
        (metrics::P99_SERVICE_US, log.percentiles[1], 0),
        (metrics::P999_SERVICE_US, log.percentiles[2], 0),
        (imported::P9999_SERVICE_US, log.percentiles[3], 0),
        (metrics::MAX_SERVICE_US, log.max_us, 0),
    ] {
        add_rounded(&mut values, metric, value, digits);
    }
    values
}

/// What RocksDB's statistics say at the end of the log.
fn statistics(stats: &RocksdbStats) -> Values {
    let mut values = Values::default();
    for (metric, gib) in [
        (imported::LSM_GB, stats.lsm_gib),
        (imported::BLOB_GB, stats.blob_gib),
    ] {
        if let Some(gib) = gib {
            values.put(metric, both(gib, format!("{gib:.0}GB")));
        }
    }
    let written_gib = stats.compaction.map(|written| written.gib);
    add_rounded(&mut values, imported::C_WGB, written_gib, 1);
    let mib_per_s = stats.compaction.and_then(|written| written.mib_per_s);
    add_rounded(&mut values, imported::C_MBPS, mib_per_s, 1);
    let w_amp = stats
        .write_amplification()
        .zip(stats.classic_write_amplification());
    if let Some((clean, classic)) = w_amp {
        values.put(imported::W_AMP, both(clean, format!("{classic:.1}")));
    }
    for (metric, column) in [
        (imported::C_WSECS, "Comp(sec)"),
        (imported::C_CSECS, "CompMergeCPU(sec)"),
        (imported::B_RGB, "Rblob(GB)"),
        (imported::B_WGB, "Wblob(GB)"),
    ] {
        add_rounded(&mut values, metric, stats.of_sum(column), 0);
    }
    add_rounded(&mut values, imported::UPTIME_S, stats.uptime_s, 0);
    if let Some(printed) = stats.printed_stall_pct {
        let stalled = match stats.stall_pct() {
            Some(percent) => both(percent, format!("{percent:.1}")),
            None => without(
                "RocksDB printed more than all of the time",
                Some(&format!("{printed:.1}")),
            ),
        };
        values.put(imported::STALL_PCT, stalled);
    }
    if let Some(stalls) = stats.stalls {
        // The scripts read one form of the line only.
        let count = match stalls.is_classic {
            true => both(stalls.total as f64, stalls.total.to_string()),
            false => clean(stalls.total as f64),
        };
        values.put(imported::N_STALL, count);
    }
    values
}

/// A number that the scripts print with so many digits.
fn add_rounded(values: &mut Values, metric: &Metric, value: Option<f64>, digits: usize) {
    if let Some(value) = value {
        values.put(metric, both(value, format!("{value:.digits$}")));
    }
}
