//! The Insert Benchmark: raw client output by step, step results, summaries and merged tables.

use std::collections::BTreeMap;

use plimsoll_analysis::metrics::{self, CLASSIC_COLUMNS, Metric};
use plimsoll_store::imported::{
    Family, Imported, ImportedResponses, ImportedSeries, ImportedStep, ImportedValue,
};

use super::builder::{Builder, ByMetric, Values, both, clean, plain_step, printed};
use super::device::device;
use super::import::{File, Options};
use crate::host::iostat::Iostat;
use crate::host::vmstat::Vmstat;
use crate::insert_benchmark::client::{Client, Second};
use crate::insert_benchmark::metrics_lines::{MetricsLine, steps_of_summary};
use crate::insert_benchmark::step_result::StepResult;
use crate::names::folder::CellName;
use crate::tree::contents::Contents;
use crate::tree::unit::is_step_folder;

/// The raw files of one step of one cell.
#[derive(Default)]
struct StepFiles<'a> {
    clients: Vec<(&'a str, &'a Client)>,
    vmstat: Option<&'a Vmstat>,
    iostat: Option<(&'a str, &'a Iostat)>,
    result: Option<&'a StepResult>,
    wall_s: Option<u64>,
    failed: Option<String>,
}

/// Makes a campaign of the files that are the Insert Benchmark's.
pub(super) fn assemble(files: &[File], options: &Options) -> Option<Imported> {
    let mut builder = Builder::new(Family::InsertBenchmark);
    let mut raw: BTreeMap<(CellName, String), StepFiles<'_>> = BTreeMap::new();
    for file in files {
        let Some((cell, step)) = place(file) else {
            continue;
        };
        let entry = raw.entry((cell, step)).or_default();
        match &file.contents {
            Ok(Contents::InsertBenchmarkClient(client)) => entry.clients.push((&file.path, client)),
            Ok(Contents::InsertBenchmarkStep(result)) => entry.result = Some(result),
            Ok(Contents::Vmstat(vmstat)) => entry.vmstat = Some(vmstat),
            Ok(Contents::Iostat(iostat)) => entry.iostat = Some((&file.path, iostat)),
            Ok(Contents::Wall(wall)) => entry.wall_s = Some(*wall),
            Err(error) if file.name().starts_with("o.ib.") => {
                entry.failed = Some(format!("{}: {error}", file.name()))
            }
            _ => {}
        }
    }
    let loaded: BTreeMap<CellName, u64> = raw
        .iter()
        .filter(|((_, step), _)| step == "l.i0")
        .map(|((cell, _), files)| {
            (
                cell.clone(),
                files.clients.iter().map(|(_, client)| client.rows()).sum(),
            )
        })
        .collect();
    for ((cell_name, step_name), files) in &raw {
        if files.clients.is_empty() && files.result.is_none() && files.failed.is_none() {
            continue;
        }
        let cell = builder.cell(cell_name, "");
        let step = builder.step(step_of(step_name));
        if let Some(reason) = &files.failed {
            builder.result(cell, step).failed = Some(reason.clone());
            continue;
        }
        let loaded = loaded.get(cell_name).copied().unwrap_or(0);
        Raw {
            builder: &mut builder,
            cell,
            step,
            name: step_name,
            files,
            loaded,
            options,
        }
        .add();
    }
    for file in files {
        match &file.contents {
            Ok(Contents::InsertBenchmarkLines(lines)) if !lines.is_relative() => {
                let lines: Vec<&MetricsLine> = lines.lines.iter().flatten().collect();
                add_lines(&mut builder, file, &lines);
            }
            _ => {}
        }
    }
    builder.finish(|a, b| place_of_step(&a.name).cmp(&place_of_step(&b.name)))
}

/// The cell and the step that a file in a step's folder is of.
fn place(file: &File) -> Option<(CellName, String)> {
    let mut folders = file.folders();
    let step = folders.find(|folder| is_step_folder(folder))?.to_owned();
    let cell = folders.next()?;
    Some((
        CellName::of_insert_benchmark(cell).unwrap_or_else(|| CellName::verbatim(cell)),
        step,
    ))
}

/// In the order that steps run in: loads, then by place and rate.
fn place_of_step(name: &str) -> (usize, u64, u64, String) {
    let loads = ["l", "l.i0", "l.x", "l.i1", "l.i2", "scan"];
    if let Some(place) = loads.iter().position(|load| *load == name) {
        return (place, 0, 0, String::new());
    }
    let numbers: Vec<u64> = name
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    // `qr500.L3` and `q.L3.ips500` tell their place in the sequence, `q100.2` its rate and which of
    // two.
    let level = name
        .split_once(".L")
        .and_then(|(_, rest)| rest.split('.').next()?.parse().ok());
    match level {
        Some(level) => (loads.len(), level, 0, name.to_owned()),
        None => (
            loads.len(),
            numbers.first().copied().unwrap_or(0),
            numbers.get(1).copied().unwrap_or(0),
            name.to_owned(),
        ),
    }
}

fn is_query_step(name: &str) -> bool {
    name.starts_with('q')
}

fn step_of(name: &str) -> ImportedStep {
    let (description, operation, rate) = match name {
        "l.x" => (
            "the secondary indexes created: rows indexed per second",
            "index",
            metrics::IPS,
        ),
        name if is_query_step(name) => (
            "queries with inserts in the background: queries per second",
            "query",
            metrics::QPS,
        ),
        "scan" => ("full scans", "query", metrics::QPS),
        _ => ("rows inserted per second", "insert", metrics::IPS),
    };
    plain_step(name, description, operation, rate.name)
}

/// A summary has a line per step, a merged file a line per cell.
fn add_lines(builder: &mut Builder, file: &File, lines: &[&MetricsLine]) {
    let named: Option<Vec<String>> = lines.iter().map(|line| line.step.clone()).collect();
    let steps: Vec<String> = match file.name().strip_prefix("mrg.") {
        _ if named.is_some() => named.unwrap_or_default(),
        Some(step) => vec![step.trim_end_matches(".some").to_owned(); lines.len()],
        None if lines.iter().all(|line| line.tag == lines[0].tag) => {
            match steps_of_summary(lines.len()) {
                Some((_, steps)) => steps,
                None => {
                    builder.leave_out(
                        &file.path,
                        format!("no known sequence has {} steps", lines.len()),
                    );
                    return;
                }
            }
        }
        None => {
            builder.leave_out(
                &file.path,
                "its lines are of several builds, and its name does not tell the step",
            );
            return;
        }
    };
    let era = steps_of_summary(lines.len())
        .map(|(era, _)| era)
        .filter(|_| !file.name().starts_with("mrg."));
    for (line, step_name) in lines.iter().zip(steps) {
        let name = CellName::of_insert_benchmark(&line.tag)
            .unwrap_or_else(|| CellName::verbatim(&line.tag));
        let cell = builder.cell(&name, "");
        // A summary's name has the rows, which the tags of merged files lack.
        if name.original.len() > builder.cell_mut(cell).original.len() {
            builder.cell_mut(cell).original.clone_from(&name.original);
        }
        let step = builder.step(step_of(&step_name));
        let result = builder.result(cell, step);
        if result.era.is_empty() {
            result.era = era.unwrap_or_default().to_owned();
        }
        for (metric, text) in CLASSIC_COLUMNS.iter().zip(&line.cells) {
            let is_more_exact = |known: &ImportedValue| {
                known
                    .classic
                    .as_ref()
                    .is_some_and(|known| known.len() >= text.len())
            };
            if text != "NA" && !result.values.of(metric).is_some_and(is_more_exact) {
                result.values.put(metric, printed(text));
            }
        }
    }
}

/// One step from its raw files.
struct Raw<'a, 'b> {
    builder: &'a mut Builder,
    cell: usize,
    step: usize,
    name: &'a str,
    files: &'a StepFiles<'b>,
    loaded: u64,
    options: &'a Options,
}

impl Raw<'_, '_> {
    fn add(self) {
        let files = self.files;
        let clients: Vec<&Client> = files.clients.iter().map(|(_, client)| *client).collect();
        self.builder.passwords += clients.iter().map(|client| client.passwords).sum::<u64>();
        let is_query = is_query_step(self.name);
        let wall_s = files
            .result
            .map(|result| result.seconds)
            .or(files.wall_s)
            .filter(|seconds| *seconds > 0);
        let rates = self.rates(&clients, wall_s);
        let mut values = Values::default();
        if let Some(seconds) = rates.index_s {
            values.put(metrics::INDEX_S, clean(seconds));
        }
        let classic = |text: &Option<String>| text.clone().map(whole);
        values.put(
            metrics::IPS,
            value(rates.clean_ips, classic(&rates.classic_ips)),
        );
        values.put(
            metrics::QPS,
            value(rates.clean_qps, classic(&rates.classic_qps)),
        );
        let costs = rates.costs(is_query, wall_s);
        let io = files.iostat.and_then(|(path, iostat)| {
            let found = device(iostat, None, self.options);
            let found = found.map_err(|reason| self.builder.leave_out(path, reason));
            Some(found.ok()?.1.rates)
        });
        add_io(&mut values, &costs, io);
        let cpus = files.iostat.and_then(|(_, iostat)| iostat.cpus);
        add_cpu(&mut values, &costs, files.vmstat, cpus);
        if let Some(result) = files.result {
            add_result(&mut values, result, is_query);
        }
        add_maximum(&mut values, &clients, is_query);
        if let (Some(first), false) = (clients.first(), self.name == "l.x") {
            add_rate_percentiles(&mut values, first, is_query);
        }
        add_deletes(&mut values, &clients);
        self.finish(values, &clients, wall_s);
    }

    fn rates(&self, clients: &[&Client], wall_s: Option<u64>) -> Rates {
        let rows: u64 = clients.iter().map(|client| client.rows()).sum();
        let queries: u64 = clients.iter().map(|client| client.queries()).sum();
        // Rows indexed are those that were loaded and those of the batch before the indexes.
        let is_index = self.name == "l.x";
        let counted = if is_index { rows + self.loaded } else { rows };
        let per_wall = |count: u64| wall_s.map(|seconds| truncated(count as f64 / seconds as f64));
        let result = self.files.result;
        let index_s = clients
            .iter()
            .filter_map(|client| client.index_s)
            .reduce(f64::max)
            .filter(|seconds| is_index && *seconds > 0.0);
        let of_clients = |count| (!clients.is_empty()).then(|| own_rate(clients, count));
        Rates {
            index_s,
            classic_ips: result
                .map(|result| result.ips.clone())
                .or_else(|| per_wall(counted)),
            classic_qps: result
                .map(|result| result.qps.clone())
                .or_else(|| per_wall(queries)),
            clean_ips: index_s
                .map(|seconds| counted as f64 / seconds)
                .or_else(|| of_clients(Client::rows)),
            clean_qps: of_clients(Client::queries),
        }
    }

    fn finish(self, values: Values, clients: &[&Client], wall_s: Option<u64>) {
        let is_query = is_query_step(self.name);
        let target: Option<f64> = clients
            .iter()
            .map(|client| client.option("inserts_per_second")?.parse::<f64>().ok())
            .sum();
        let result = self.builder.result(self.cell, self.step);
        let era = clients.first().map(|client| client.era.name());
        result.era = era.unwrap_or_default().to_owned();
        result.values = values;
        let mut note = |name: &str, fact: String| result.facts.insert(name.to_owned(), fact);
        if let Some(target) = target.filter(|target| is_query && *target > 0.0) {
            note("target_per_s", target.to_string());
        }
        if let Some(seconds) = wall_s {
            note("elapsed_s", seconds.to_string());
        }
        result.responses = responses(clients);
        result.series = series(clients, is_query);
        let shape = &mut self.builder.cell_mut(self.cell).shape;
        if shape.is_empty() {
            *shape = match clients.len() {
                0 => String::new(),
                1 => "1 client".to_owned(),
                count => format!("{count} clients"),
            };
        }
    }
}

/// The rates of a step: classic over the wall clock, clean over each client's own seconds.
struct Rates {
    /// Seconds of index creation, in the step that creates indexes.
    index_s: Option<f64>,
    classic_ips: Option<String>,
    classic_qps: Option<String>,
    clean_ips: Option<f64>,
    clean_qps: Option<f64>,
}

impl Rates {
    fn costs(&self, is_query: bool, seconds: Option<u64>) -> Costs {
        let classic = |text: &Option<String>| {
            text.as_ref()
                .and_then(|text| text.parse::<f64>().ok())
                .filter(|rate| *rate > 0.0)
        };
        let (ips, qps) = (classic(&self.classic_ips), classic(&self.classic_qps));
        Costs {
            op_classic: if is_query { qps } else { ips },
            op_clean: if is_query {
                self.clean_qps
            } else {
                self.clean_ips
            },
            insert_classic: ips,
            insert_clean: self.clean_ips,
            seconds,
        }
    }
}

/// The sum over clients of a count by that client's own seconds.
fn own_rate(clients: &[&Client], count: fn(&Client) -> u64) -> f64 {
    let of_client = |client: &&Client| Some(count(client) as f64 / client.seconds_exact()?);
    clients.iter().filter_map(of_client).sum()
}

/// The originals print those of the first client.
fn add_rate_percentiles(values: &mut Values, first: &Client, is_query: bool) {
    let pick: fn(&Second) -> f64 = if is_query {
        |second| second.i_qps
    } else {
        |second| second.i_ips
    };
    for (metric, percent) in [(metrics::P50_RATE, 50.0), (metrics::P99_RATE, 99.0)] {
        if let Some(rate) = first.nth_rate(percent, pick) {
            values.put_if_missing(metric, both(rate, format!("{rate:.0}")));
        }
    }
}

/// Clients of 2017 count what they delete in their last second's totals.
fn add_deletes(values: &mut Values, clients: &[&Client]) {
    let deleted = |client: &Client| client.seconds.last().map_or(0, |second| second.totals[1]);
    let all_have_seconds = clients.iter().all(|client| !client.seconds.is_empty());
    let has_era = clients
        .iter()
        .any(|client| client.era.name().starts_with("17"));
    if all_have_seconds && has_era && clients.iter().any(|client| deleted(client) > 0) {
        values.put(metrics::DPS, clean(own_rate(clients, deleted)));
    }
}

/// Operation rates that costs are divided by.
struct Costs {
    op_classic: Option<f64>,
    op_clean: Option<f64>,
    insert_classic: Option<f64>,
    insert_clean: Option<f64>,
    seconds: Option<u64>,
}

fn value(clean: Option<f64>, classic: Option<String>) -> ImportedValue {
    let clean = clean.filter(|value| value.is_finite());
    ImportedValue {
        value: clean,
        unavailable: clean
            .is_none()
            .then(|| "only the rate over the wall clock is known".to_owned()),
        classic,
    }
}

/// One decimal, cut and not rounded.
fn truncated(rate: f64) -> String {
    format!("{:.1}", (rate * 10.0).trunc() / 10.0)
}

fn whole(text: String) -> String {
    text.parse::<f64>()
        .map_or(text, |number| format!("{number:.0}"))
}

/// A cost: the quantity by the classic and by the clean rate. An operation rate of 0 has no costs.
fn add_cost(
    values: &mut Values,
    metric: &Metric,
    quantity: f64,
    classic: Option<f64>,
    clean: Option<f64>,
) {
    let clean = clean.filter(|rate| *rate > 0.0).map(|rate| quantity / rate);
    let classic = classic.map(|rate| format!("{:.*}", metric.decimals, quantity / rate));
    if clean.is_some() || classic.is_some() {
        values.put(
            metric,
            ImportedValue {
                value: clean,
                classic,
                unavailable: None,
            },
        );
    }
}

fn add_io(values: &mut Values, costs: &Costs, rates: Option<crate::host::iostat::Rates>) {
    let Some(rates) = rates else { return };
    let columns = [
        (metrics::RPS, rates.reads),
        (metrics::RMBPS, rates.read_kib / 1024.0),
        (metrics::WPS, rates.writes),
        (metrics::WMBPS, rates.written_kib / 1024.0),
    ];
    for (metric, rate) in columns {
        values.put(metric, both(rate, format!("{rate:.*}", metric.decimals)));
    }
    add_cost(
        values,
        metrics::RPQ,
        rates.reads,
        costs.op_classic,
        costs.op_clean,
    );
    add_cost(
        values,
        metrics::RKBPQ,
        rates.read_kib,
        costs.op_classic,
        costs.op_clean,
    );
    add_cost(
        values,
        metrics::WPI,
        rates.writes,
        costs.insert_classic,
        costs.insert_clean,
    );
    add_cost(
        values,
        metrics::WKBPI,
        rates.written_kib,
        costs.insert_classic,
        costs.insert_clean,
    );
}

fn add_cpu(values: &mut Values, costs: &Costs, vmstat: Option<&Vmstat>, cpus: Option<u32>) {
    let Some((classic, clean)) =
        vmstat.and_then(|vmstat| Some((vmstat.classic()?, vmstat.clean()?)))
    else {
        return;
    };
    values.put(metrics::CSPS, both(clean.cs, format!("{:.0}", classic.cs)));
    values.put(
        metrics::CPUPS,
        both(clean.cpu, format!("{:.1}", classic.cpu)),
    );
    let per = |quantity: f64, rate: Option<f64>| {
        rate.filter(|rate| *rate > 0.0).map(|rate| quantity / rate)
    };
    let of = |clean: Option<f64>, classic: Option<String>| ImportedValue {
        value: clean,
        classic,
        unavailable: None,
    };
    values.put(
        metrics::CSPQ,
        of(
            per(clean.cs, costs.op_clean),
            per(classic.cs, costs.op_classic).map(|cost| format!("{cost:.3}")),
        ),
    );
    let Some(cpus) = cpus.map(f64::from) else {
        return;
    };
    let busy_us = |percent: f64| percent / 100.0 * cpus * 1e6;
    // The original rounds the CPU seconds of the whole step to a tenth before it divides.
    let classic_us = costs.seconds.zip(costs.op_classic).map(|(seconds, rate)| {
        let seconds = seconds as f64;
        let cpu_s = (classic.cpu / 100.0 * cpus * seconds * 10.0).round() / 10.0;
        format!("{:.0}", cpu_s * 1e6 / (rate * seconds))
    });
    values.put(
        metrics::CPUPQ,
        of(per(busy_us(clean.cpu), costs.op_clean), classic_us),
    );
}

/// What the scripts' own step result tells goes before what is computed here.
fn add_result(values: &mut Values, result: &StepResult, is_query: bool) {
    let of_operation = if is_query {
        &result.by_query
    } else {
        &result.by_insert
    };
    let by_operation = [(metrics::RPQ, "r/"), (metrics::RKBPQ, "rKB/")];
    let mut add = |metric: &Metric, text: &String| {
        let known = values.of(metric).and_then(|value| value.value);
        let value = ImportedValue {
            value: known.or_else(|| text.parse().ok()),
            classic: Some(text.clone()),
            unavailable: None,
        };
        values.put(metric, value);
    };
    for (metric, name) in [
        (metrics::RPS, "r/s"),
        (metrics::RMBPS, "rMB/s"),
        (metrics::WPS, "w/s"),
        (metrics::WMBPS, "wMB/s"),
        (metrics::CSPS, "cs/s"),
        (metrics::CPUPS, "cpu/s"),
        (metrics::CSPQ, "cs/q"),
    ] {
        if let Some(text) = of_operation
            .get(name)
            .or_else(|| result.by_insert.get(name))
        {
            add(metric, text);
        }
    }
    for (metric, start) in by_operation {
        if let Some((_, text)) = of_operation
            .iter()
            .find(|(name, _)| name.starts_with(start) && !name.ends_with("/s"))
        {
            add(metric, text);
        }
    }
    for (metric, name) in [(metrics::WPI, "w/i"), (metrics::WKBPI, "wKB/i")] {
        if let Some(text) = result.by_insert.get(name) {
            add(metric, text);
        }
    }
    for (metric, text) in [metrics::DBGB1, metrics::DBGB2]
        .into_iter()
        .zip(&result.db_gib)
    {
        if let Some(text) = text {
            add(metric, text);
        }
    }
    for (metric, percent) in [(metrics::P50_RATE, 50), (metrics::P99_RATE, 99)] {
        if let Some(text) = result
            .nth
            .get(&percent)
            .map(|rates| &rates[if is_query { 2 } else { 0 }])
            .filter(|text| text.parse::<f64>().is_ok())
        {
            add(metric, text);
        }
    }
}

fn add_maximum(values: &mut Values, clients: &[&Client], is_query: bool) {
    let kind = if is_query { "query" } else { "insert" };
    let histograms = clients
        .iter()
        .flat_map(|client| &client.histograms)
        .filter(|histogram| histogram.kind == kind);
    if let Some(max) = histograms
        .filter_map(|histogram| histogram.max.parse::<f64>().ok())
        .reduce(f64::max)
    {
        values.put(metrics::MAXOP, both(max, format!("{max:.3}")));
    }
}

/// Counts are summed over clients, the maximum is that of all.
fn responses(clients: &[&Client]) -> Vec<ImportedResponses> {
    let mut responses: Vec<ImportedResponses> = Vec::new();
    for histogram in clients.iter().flat_map(|client| &client.histograms) {
        let max_s = histogram.max.parse().unwrap_or(0.0);
        match responses
            .iter_mut()
            .find(|known| known.kind == histogram.kind)
        {
            Some(known) => {
                for (sum, count) in known.counts.iter_mut().zip(histogram.counts) {
                    *sum = sum.saturating_add(count);
                }
                known.max_s = known.max_s.max(max_s);
            }
            None => responses.push(ImportedResponses {
                kind: histogram.kind.to_owned(),
                counts: histogram.counts,
                max_s,
            }),
        }
    }
    // Queries are what their steps are about.
    responses.sort_by_key(|response| {
        ["query", "insert", "delete"]
            .iter()
            .position(|kind| *kind == response.kind)
    });
    responses
}

/// Rates are summed over clients, the longest operation of a second is that of all. Only lines a
/// second apart are drawn.
fn series(clients: &[&Client], is_query: bool) -> Vec<ImportedSeries> {
    let is_by_second = clients.iter().all(|client| {
        client
            .seconds
            .windows(2)
            .all(|pair| (pair[1].t_sec - pair[0].t_sec - 1.0).abs() < 0.6)
    });
    let length = clients
        .iter()
        .map(|client| client.seconds.len())
        .max()
        .unwrap_or(0);
    if !is_by_second || length < 2 {
        return Vec::new();
    }
    let gather = |pick: fn(&Second) -> f64, join: fn(f64, f64) -> f64| -> Vec<Option<f64>> {
        (0..length)
            .map(|i| {
                clients
                    .iter()
                    .filter_map(|client| client.seconds.get(i).map(pick))
                    .reduce(join)
            })
            .collect()
    };
    let of = |title: &str, unit: &str, points: Vec<Option<f64>>| ImportedSeries {
        title: title.to_owned(),
        unit: unit.to_owned(),
        seconds_per_point: 1,
        points,
    };
    let sum = |a: f64, b: f64| a + b;
    let mut all = vec![
        of("insert rate", "rows/s", gather(|second| second.i_ips, sum)),
        of(
            "longest insert",
            "us",
            gather(|second| second.max_us[0], f64::max),
        ),
    ];
    if clients
        .iter()
        .flat_map(|client| &client.seconds)
        .any(|second| second.i_dps > 0.0)
    {
        all.push(of(
            "delete rate",
            "rows/s",
            gather(|second| second.i_dps, sum),
        ));
        all.push(of(
            "longest delete",
            "us",
            gather(|second| second.max_us[1], f64::max),
        ));
    }
    if is_query {
        all.insert(
            0,
            of(
                "query rate",
                "queries/s",
                gather(|second| second.i_qps, sum),
            ),
        );
        all.insert(
            1,
            of(
                "longest query",
                "us",
                gather(|second| second.max_us[2], f64::max),
            ),
        );
    }
    all
}
