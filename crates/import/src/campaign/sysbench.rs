//! Sysbench: a folder per build and config, a set of files per test; and published tables alone.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_analysis::metrics::{self, Metric, imported};
use plimsoll_core::plan::TestGroup;
use plimsoll_core::plan::published::{PUBLISHED, group_of, has_several_ranges, table_order};
use plimsoll_store::imported::{Family, Imported, ImportedSeries, ImportedStep, ImportedValue};

use super::builder::{Builder, ByMetric, Values, both, clean, printed};
use super::import::{File, Options};
use super::perf_join;
use super::sysbench_costs::Costs;
use super::sysbench_tables::Tables;
use super::thread_counts::per_thread_count;
use crate::host::iostat::Iostat;
use crate::host::vmstat::Vmstat;
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;
use crate::sysbench::load::Load;
use crate::sysbench::metrics::Metrics;
use crate::sysbench::output::{Interval, Output};
use crate::sysbench::perf_join::Join;
use crate::sysbench::time::ClientTime;
use crate::text::ReadError;
use crate::tree::contents::Contents;

/// Scans since 2025-04-19.
const SCAN_PER_THREAD: &str = "scans of one thread (since 2025-04-19)";
/// Scans before.
const SCAN_OF_ALL: &str = "scans of all threads (before 2025-04-19)";

/// The files of one test of one cell.
#[derive(Default)]
pub(super) struct TestFiles<'a> {
    pub output: Option<Result<&'a Output, &'a ReadError>>,
    pub metrics: Option<&'a Metrics>,
    pub vmstat: Option<&'a Vmstat>,
    pub iostat: Option<(&'a str, &'a Iostat)>,
    /// By kind of file, such as `r.qps`: a number per thread count, and where they come from.
    pub lines: BTreeMap<&'a str, (&'a File, &'a [String])>,
    time: Option<&'a ClientTime>,
    pub counters: Vec<&'a BTreeMap<String, f64>>,
}

impl<'a> TestFiles<'a> {
    fn take(&mut self, file: &'a File, kind: &'a str) {
        match &file.contents {
            Ok(Contents::SysbenchOutput(output)) => self.output = Some(Ok(output)),
            Err(error) if kind == "o" => self.output = Some(Err(error)),
            Ok(Contents::SysbenchMetrics(metrics)) => self.metrics = Some(metrics),
            Ok(Contents::Vmstat(vmstat)) => self.vmstat = Some(vmstat),
            Ok(Contents::Iostat(iostat)) => self.iostat = Some((&file.path, iostat)),
            Ok(Contents::SysbenchTime(time)) => self.time = Some(time),
            Ok(Contents::PerfCounters(counters)) => self.counters.push(counters),
            Ok(Contents::SysbenchRatesLine(line)) => {
                self.lines.insert(kind, (file, &line.values));
            }
            _ => {}
        }
    }

    fn has_rate(&self) -> bool {
        self.output.is_some() || self.metrics.is_some() || self.line("r.qps").is_some()
    }

    /// The number of a kind of line, once there is one per thread count.
    pub fn line(&self, kind: &str) -> Option<&'a String> {
        self.lines.get(kind)?.1.first()
    }
}

/// The files of the load of one cell.
struct LoadFiles<'a> {
    test: &'a TestFile,
    load: Option<&'a Load>,
    files: TestFiles<'a>,
}

/// What there is of sysbench, sorted.
#[derive(Default)]
struct Found<'a> {
    tests: BTreeMap<(CellName, TestFile), TestFiles<'a>>,
    loads: BTreeMap<CellName, LoadFiles<'a>>,
    tables: Tables<'a>,
    joins: Vec<(&'a File, &'a Join)>,
    /// Output that follows no naming scheme.
    plain: Vec<(&'a File, &'a Output)>,
}

impl<'a> Found<'a> {
    fn sort(files: &'a [File]) -> Self {
        let mut found = Self::default();
        for file in files {
            match (&file.contents, &file.test) {
                (Ok(Contents::SysbenchRates(table)), _) => found.tables.rates.push((file, table)),
                (Ok(Contents::SysbenchCosts(blocks)), _) => found.tables.costs.extend(blocks),
                (Ok(Contents::PerfJoin(join)), _) => found.joins.push((file, join)),
                (Ok(Contents::SysbenchOutput(output)), None) => found.plain.push((file, output)),
                (_, Some(test)) => found.take(file, test),
                (_, None) => {}
            }
        }
        found
    }

    fn take(&mut self, file: &'a File, test: &'a TestFile) {
        let cell = file.cell_name();
        if !test.kind.starts_with("prepare.") {
            let of_any_kind = TestFile {
                kind: String::new(),
                ..test.clone()
            };
            let entry = self.tests.entry((cell, of_any_kind)).or_default();
            entry.take(file, &test.kind);
            return;
        }
        let entry = self.loads.entry(cell).or_insert_with(|| LoadFiles {
            test,
            load: None,
            files: TestFiles::default(),
        });
        entry.test = test;
        match &file.contents {
            Ok(Contents::SysbenchLoad(load)) => entry.load = Some(load),
            _ => entry.files.take(file, &test.kind),
        }
    }
}

/// Makes a campaign of the files that are sysbench's.
pub(super) fn assemble(files: &[File], options: &Options) -> Option<Imported> {
    let mut builder = Builder::new(Family::Sysbench);
    let Found {
        tests,
        loads,
        tables,
        joins,
        plain,
    } = Found::sort(files);
    let tests = per_thread_count(tests, &mut builder);
    for (file, output) in plain {
        add_plain(&mut builder, file, output);
    }
    let dops = dops_of_cells(&tests);
    for ((cell, test), files) in tests.iter().filter(|(_, files)| files.has_rate()) {
        let has_several = dops.get(cell).is_some_and(|dops| dops.len() > 1);
        let shape = test
            .dop
            .filter(|_| has_several)
            .map(|dop| format!("dop{dop}"))
            .unwrap_or_default();
        let cell = builder.cell(cell, &shape);
        add_test(&mut builder, cell, test, files, options);
    }
    for (cell, load) in &loads {
        let cell = builder.cell(cell, "");
        add_load(&mut builder, cell, load, options);
    }
    tables.add(&mut builder);
    perf_join::add(&mut builder, &joins, &tests, &tables);
    builder.finish(|a, b| {
        order(a).cmp(&order(b)).then_with(|| {
            table_order(
                (&a.test, a.range.unwrap_or(0)),
                (&b.test, b.range.unwrap_or(0)),
            )
        })
    })
}

pub(super) fn dops_of_cells(
    tests: &BTreeMap<(CellName, TestFile), TestFiles<'_>>,
) -> BTreeMap<CellName, BTreeSet<u32>> {
    let mut dops: BTreeMap<CellName, BTreeSet<u32>> = BTreeMap::new();
    // The warm-up runs with a thread per table, whatever the others do.
    for (cell, test) in tests
        .keys()
        .filter(|(_, test)| test.test != "point-query.warm")
    {
        dops.entry(cell.clone()).or_default().extend(test.dop);
    }
    dops
}

/// Published sections first, in their order; then what reports leave out.
fn order(step: &ImportedStep) -> (usize, usize) {
    let range = step.range.unwrap_or(0);
    let known = PUBLISHED
        .iter()
        .position(|known| *known == (step.test.as_str(), range));
    match (known, step.group.as_str()) {
        (Some(place), _) => (0, place),
        (None, "") => (2, usize::from(step.range.is_some())),
        (None, group) => (
            1,
            TestGroup::ALL
                .iter()
                .position(|known| known.title() == group)
                .unwrap_or(0),
        ),
    }
}

pub(super) fn step_of(test: &str, range: Option<u32>) -> ImportedStep {
    // Warm-ups and the tests before the writes are run and not reported.
    let is_reported = !test.contains("pre") && !test.contains("warm");
    let description = if is_scan(test) {
        "full scans: thousands of rows per second of one thread"
    } else if !is_reported {
        "run, but not reported"
    } else {
        "queries per second: all statements, transactions' own included"
    };
    ImportedStep {
        name: range.map_or(test.to_owned(), |range| step_name(test, range)),
        test: test.to_owned(),
        range,
        group: if is_reported {
            group_of(test).title().to_owned()
        } else {
            String::new()
        },
        description: description.to_owned(),
        operation: "query".to_owned(),
        rate: rate_of(test).name.to_owned(),
    }
}

/// Scans are reported in rows.
fn is_scan(test: &str) -> bool {
    test == "scan" || test.starts_with("scan.")
}

pub(super) fn rate_of(test: &str) -> &'static Metric {
    if is_scan(test) {
        imported::KRPS
    } else {
        metrics::QPS
    }
}

/// The name in published sections: the range is in it where a test has several, or another one than
/// usual.
fn step_name(test: &str, range: u32) -> String {
    let base = test.split('.').next().unwrap_or(test);
    let is_usual = PUBLISHED.contains(&(base, range)) && !has_several_ranges(base);
    if is_usual {
        test.to_owned()
    } else {
        format!("{test}_range={range}")
    }
}

pub(super) fn load_step() -> ImportedStep {
    ImportedStep {
        name: "prepare".to_owned(),
        test: "prepare".to_owned(),
        range: None,
        group: String::new(),
        description: "the tables loaded and their index created: rows per second".to_owned(),
        operation: "insert".to_owned(),
        rate: metrics::IPS.name.to_owned(),
    }
}

fn add_test(
    builder: &mut Builder,
    cell: usize,
    test: &TestFile,
    files: &TestFiles<'_>,
    options: &Options,
) {
    let step = builder.step(step_of(&test.test, Some(test.range)));
    let output = match files.output {
        Some(Err(error)) => {
            let result = builder.result(cell, step);
            result.failed = Some(error.reason.clone());
            return;
        }
        Some(Ok(output)) => Some(output),
        None => None,
    };
    let mut values = Values::default();
    let mut facts = BTreeMap::from([("file".to_owned(), file_suffix(test))]);
    let (era, rate) = rate_and_era(builder, &test.test, files, output);
    if output.is_none() {
        add_lines(&mut values, files);
    }
    if let Some(output) = output {
        if let (true, Some(scans)) = (is_scan(&test.test), output.queries_per_s()) {
            values.put(metrics::QPS, clean(scans));
        }
        builder.passwords += output.passwords;
        add_output(&mut values, output);
        describe_shape(builder, cell, output);
        facts.extend(elapsed(output));
    }
    if let Some((rate, op_rate)) = &rate {
        let whole = op_rate
            .parse::<f64>()
            .map_or_else(|_| op_rate.clone(), |number| format!("{number:.0}"));
        values.put(rate_of(&test.test), both(*rate, whole));
        values.put(imported::OP_RATE, both(*rate, op_rate.clone()));
        let costs = Costs {
            files,
            op_rate,
            rate: *rate,
            cpus: output.and_then(|output| output.cpus),
            options,
        };
        costs.add(builder, &mut values, &mut facts);
    }
    if let (Some(time), Some(output)) = (files.time, output)
        && output.queries.0 > 0
    {
        let cpu_us = (time.user_s + time.system_s) * 1e6 / output.queries.0 as f64;
        values.put(metrics::CLIENT_CPU_US_PER_OP, clean(cpu_us));
    }
    let result = builder.result(cell, step);
    result.counters = means(&files.counters);
    result.era = era;
    result.values.extend(values);
    result.facts.extend(facts);
    result.series = output
        .map(|output| series(&output.intervals))
        .unwrap_or_default();
}

/// What the lines of a test tell where its output is not at hand; latencies are milliseconds.
fn add_lines(values: &mut Values, files: &TestFiles<'_>) {
    if let Some(rate) = files.line("r.trx") {
        values.put(imported::TPS, printed(rate));
    }
    for (kind, metric) in [
        ("r.rtavg", imported::MEAN_SERVICE_US),
        ("r.rtmax", metrics::MAX_SERVICE_US),
        ("r.rt95", imported::P95_SERVICE_US),
    ] {
        let ms = files.line(kind).and_then(|text| text.parse::<f64>().ok());
        if let Some(ms) = ms {
            values.put(metric, clean(ms * 1000.0));
        }
    }
}

/// The era of the output, and the operation rate in full precision and as printed.
fn rate_and_era(
    builder: &mut Builder,
    test: &str,
    files: &TestFiles<'_>,
    output: Option<&Output>,
) -> (String, Option<(f64, String)>) {
    let witness = files
        .metrics
        .map(|metrics| metrics.op_rate().to_owned())
        .or_else(|| files.line("r.qps").cloned());
    let Some(output) = output else {
        let rate = witness.and_then(|witness| Some((witness.parse().ok()?, witness)));
        return (String::new(), rate);
    };
    let era = output.layout.name();
    if !is_scan(test) || !output.is_scan() {
        let rate = output.queries_per_s();
        let rate = rate.map(|rate| (rate, output.queries.1.clone()));
        return (era.to_owned(), rate);
    }
    let (of_era, rate) = scan_rate(output, witness.as_deref());
    if witness.is_none() {
        builder.note(
            "Scans are taken for those of one thread, as since 2025-04-19: no file beside \
                    them tells.",
        );
    }
    let rate = rate.map(|rate| (rate, format!("{rate:.0}")));
    (format!("{era}, {of_era}"), rate)
}

/// The load: its rate is in its output, or in the metrics file.
fn add_load(builder: &mut Builder, cell: usize, of: &LoadFiles<'_>, options: &Options) {
    let printed_rate = of
        .load
        .map(|load| load.rows_per_s.clone())
        .or_else(|| Some(of.files.metrics?.op_rate().to_owned()));
    let Some((op_rate, rate)) =
        printed_rate.and_then(|text| Some((text.clone(), text.parse::<f64>().ok()?)))
    else {
        return;
    };
    let step = builder.step(load_step());
    let mut values = Values::default();
    let mut facts = BTreeMap::from([("file".to_owned(), file_suffix(of.test))]);
    values.put(metrics::IPS, printed(&op_rate));
    values.put(imported::OP_RATE, printed(&op_rate));
    let costs = Costs {
        files: &of.files,
        op_rate: &op_rate,
        rate,
        cpus: None,
        options,
    };
    costs.add(builder, &mut values, &mut facts);
    let result = builder.result(cell, step);
    result.values.extend(values);
    result.facts.extend(facts);
}

/// Output that follows no naming scheme: a cell per folder, a test per file.
fn add_plain(builder: &mut Builder, file: &File, output: &Output) {
    let cell = builder.cell(&file.cell_name(), "");
    let step = builder.step(ImportedStep {
        group: String::new(),
        range: None,
        name: file.stem(),
        test: file.stem(),
        ..step_of(&file.stem(), None)
    });
    let mut values = BTreeMap::new();
    if let Some(rate) = output.queries_per_s() {
        values.put(metrics::QPS, both(rate, output.queries.1.clone()));
    }
    add_output(&mut values, output);
    describe_shape(builder, cell, output);
    builder.passwords += output.passwords;
    let result = builder.result(cell, step);
    result.era = output.layout.name().to_owned();
    result.values = values;
    result.facts.extend(elapsed(output));
    result.series = series(&output.intervals);
}

/// The seconds that a test took, as a fact.
fn elapsed(output: &Output) -> Option<(String, String)> {
    let seconds = output.elapsed_s;
    (seconds > 0.0).then(|| ("elapsed_s".to_owned(), seconds.to_string()))
}

/// `hot-points.range100.pk1.dop1`.
pub(super) fn file_suffix(test: &TestFile) -> String {
    let dop = test.dop.map(|dop| format!(".dop{dop}")).unwrap_or_default();
    format!(
        "{}.range{}.pk{}{dop}",
        test.test,
        test.range,
        u8::from(test.has_primary_key)
    )
}

/// Means over the samples that have a counter.
pub(super) fn means(samples: &[&BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, u32)> = BTreeMap::new();
    for (name, value) in samples.iter().flat_map(|sample| sample.iter()) {
        let sum = sums.entry(name.clone()).or_default();
        *sum = (sum.0 + value, sum.1 + 1);
    }
    sums.into_iter()
        .map(|(name, (sum, samples))| (name, sum / f64::from(samples)))
        .collect()
}

/// Scans are reported in two ways, and the output does not say in which: a file beside it that
/// holds the printed rate does.
fn scan_rate(output: &Output, witness: Option<&str>) -> (&'static str, Option<f64>) {
    let is_witnessed =
        |rate: Option<f64>| rate.is_some_and(|rate| witness == Some(format!("{rate:.0}").as_str()));
    let (one, all) = (
        output.scan_krows_per_thread(),
        output.scan_krows_of_all_threads(),
    );
    if is_witnessed(all) && !is_witnessed(one) {
        (SCAN_OF_ALL, all)
    } else {
        (SCAN_PER_THREAD, one)
    }
}

fn add_output(values: &mut Values, output: &Output) {
    let mut add = |metric: &Metric, value: ImportedValue| values.put(metric, value);
    if output.elapsed_s > 0.0 {
        add(
            imported::TPS,
            both(
                output.transactions.0 as f64 / output.elapsed_s,
                output.transactions.1.clone(),
            ),
        );
    }
    let mut latency =
        |metric: &Metric, ms: &str| drop(ms.parse().map(|ms: f64| add(metric, clean(ms * 1000.0))));
    latency(imported::MIN_SERVICE_US, &output.latency.min);
    latency(imported::MEAN_SERVICE_US, &output.latency.avg);
    latency(metrics::MAX_SERVICE_US, &output.latency.max);
    match &output.latency.percentile {
        Some((95, value)) => latency(imported::P95_SERVICE_US, value),
        Some((99, value)) => latency(metrics::P99_SERVICE_US, value),
        _ => {}
    }
    add(
        imported::IGNORED_ERRORS,
        clean(output.ignored_errors as f64),
    );
}

fn describe_shape(builder: &mut Builder, cell: usize, output: &Output) {
    if !builder.cell_mut(cell).shape.is_empty() || output.script().is_none() {
        return;
    }
    let (Some(tables), Some(rows), Some(threads)) = (
        output.option("tables"),
        output.option("table-size"),
        output.option("threads"),
    ) else {
        return;
    };
    // One test runs with a table size of 1 and the warm-up with other threads: the shape is that of
    // the usual tests.
    if rows != "1" {
        builder.cell_mut(cell).shape = format!(
            "{}, {} of {rows} rows",
            counted(threads, "client"),
            counted(tables, "table")
        );
    }
}

fn counted(number: &str, what: &str) -> String {
    format!("{number} {what}{}", if number == "1" { "" } else { "s" })
}

fn series(intervals: &[Interval]) -> Vec<ImportedSeries> {
    let Some(first) = intervals.first() else {
        return Vec::new();
    };
    let of = |title: &str, unit: &str, pick: fn(&Interval) -> f64| ImportedSeries {
        title: title.to_owned(),
        unit: unit.to_owned(),
        seconds_per_point: first.at_s.max(1),
        points: intervals
            .iter()
            .map(|interval| Some(pick(interval)))
            .collect(),
    };
    vec![
        of("query rate", "queries/s", |i| i.qps),
        of("latency percentile", "ms", |i| i.latency_ms),
        of("errors", "errors/s", |i| i.errors),
    ]
}
