//! What follows no benchmark's naming: a cell per folder and a step per file, or what a table says.

use std::cmp::Ordering;

use plimsoll_analysis::metrics::{self, Direction, Metric, find, imported};
use plimsoll_store::imported::{Family, Imported, ImportedSeries, ImportedStep};

use super::builder::{Builder, ByMetric, clean, plain_step, printed};
use super::import::File;
use crate::names::folder::CellName;
use crate::other::hdr_log::HdrLog;
use crate::other::pgbench::Pgbench;
use crate::other::pgbench_log::PgbenchLog;
use crate::other::table::Table;
use crate::tree::contents::Contents;

/// Makes a campaign of pgbench's files, latency logs and tables.
pub(super) fn assemble(files: &[File]) -> Option<Imported> {
    let mut builder = Builder::new(Family::Other);
    for file in files {
        match &file.contents {
            Ok(Contents::Pgbench(run)) => add_pgbench(&mut builder, file, run),
            Ok(Contents::PgbenchLog(log)) => add_pgbench_log(&mut builder, file, log),
            Ok(Contents::HdrLog(log)) => add_hdr_log(&mut builder, file, log),
            Ok(Contents::Table(table)) => add_table(&mut builder, table),
            _ => {}
        }
    }
    builder.finish(|_, _| Ordering::Equal)
}

fn step_of(name: &str, rate: &str, description: &str) -> ImportedStep {
    plain_step(name, description, "operation", rate)
}

fn add_pgbench(builder: &mut Builder, file: &File, run: &Pgbench) {
    let cell = builder.cell(&file.cell_name(), "");
    let step = builder.step(step_of(
        &file.stem(),
        imported::TPS.name,
        "pgbench: transactions per second without connecting",
    ));
    if let (Some(clients), Some(scale)) = (run.clients, run.scale) {
        builder.cell_mut(cell).shape = format!("{clients} clients, scale {scale}");
    }
    let result = builder.result(cell, step);
    result.era = run.version.as_ref().map_or_else(
        || "pgbench".to_owned(),
        |version| format!("pgbench {version}"),
    );
    result.values.put(imported::TPS, printed(&run.tps));
    if let Some(Ok(ms)) = run
        .latency_ms
        .as_ref()
        .map(|latency| latency.parse::<f64>())
    {
        result
            .values
            .put(imported::MEAN_SERVICE_US, clean(ms * 1000.0));
    }
    let step_s = run
        .progress
        .first()
        .map_or(1.0, |(at_s, ..)| *at_s)
        .max(1.0) as u32;
    if run.progress.len() > 1 {
        let of = |title: &str, unit: &str, pick: fn(&(f64, f64, f64)) -> f64| ImportedSeries {
            title: title.to_owned(),
            unit: unit.to_owned(),
            seconds_per_point: step_s,
            points: run.progress.iter().map(|line| Some(pick(line))).collect(),
        };
        result.series = vec![
            of("transaction rate", "ops/s", |line| line.1),
            of("mean latency", "ms", |line| line.2),
        ];
    }
}

fn add_pgbench_log(builder: &mut Builder, file: &File, log: &PgbenchLog) {
    let cell = builder.cell(&file.cell_name(), "");
    let step = builder.step(step_of(
        file.name(),
        imported::TPS.name,
        "pgbench log: transactions per second of the log's span",
    ));
    let result = builder.result(cell, step);
    result.era = "pgbench log".to_owned();
    let mut add = |metric: &Metric, value: f64| result.values.put(metric, clean(value));
    if log.seconds > 0.0 {
        add(imported::TPS, log.transactions as f64 / log.seconds);
    }
    add(imported::MEAN_SERVICE_US, log.mean_ms * 1000.0);
    add(metrics::MAX_SERVICE_US, log.max_ms * 1000.0);
    for (metric, ms) in [
        metrics::P50_SERVICE_US,
        imported::P95_SERVICE_US,
        metrics::P99_SERVICE_US,
        metrics::P999_SERVICE_US,
    ]
    .into_iter()
    .zip(log.percentiles_ms.into_iter().flatten())
    {
        add(metric, ms * 1000.0);
    }
}

fn add_hdr_log(builder: &mut Builder, file: &File, log: &HdrLog) {
    let cell = builder.cell(&file.cell_name(), "");
    builder.note("Values of HdrHistogram logs are taken for nanoseconds.");
    for (tag, latencies) in &log.tags {
        let name = if tag.is_empty() {
            file.stem()
        } else {
            format!("{} {tag}", file.stem())
        };
        let step = builder.step(step_of(
            &name,
            metrics::QPS.name,
            "latency log: operations per second of the log's span",
        ));
        let result = builder.result(cell, step);
        result.era = "HdrHistogram log".to_owned();
        let mut add = |metric: &Metric, value: f64| result.values.put(metric, clean(value));
        if log.seconds > 0.0 {
            add(metrics::QPS, latencies.count as f64 / log.seconds);
        }
        add(imported::MEAN_SERVICE_US, latencies.mean_ms * 1000.0);
        add(metrics::P50_SERVICE_US, latencies.p50_ms * 1000.0);
        add(imported::P95_SERVICE_US, latencies.p95_ms * 1000.0);
        add(metrics::P99_SERVICE_US, latencies.p99_ms * 1000.0);
        add(metrics::P999_SERVICE_US, latencies.p999_ms * 1000.0);
        add(metrics::MAX_SERVICE_US, latencies.max_ms * 1000.0);
    }
}

/// The rate of a step is its first metric of which more is better, else its first.
fn add_table(builder: &mut Builder, table: &Table) {
    for row in &table.rows {
        let of_step = || {
            table
                .rows
                .iter()
                .filter(|other| other.step == row.step)
                .map(|other| other.metric.as_str())
        };
        let rate = of_step()
            .find(|metric| find(metric).is_some_and(|metric| metric.direction == Direction::Higher))
            .or_else(|| of_step().next());
        let name = CellName {
            original: row.build.clone(),
            build: row.build.clone(),
            config: row.config.clone(),
        };
        let cell = builder.cell(&name, "");
        let step = builder.step(step_of(
            &row.step,
            rate.unwrap_or(metrics::QPS.name),
            "from a table",
        ));
        let result = builder.result(cell, step);
        result.era = "table".to_owned();
        result
            .values
            .insert(row.metric.clone(), printed(&row.value));
    }
}
