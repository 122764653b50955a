//! Sysbench: a folder per build and config, a set of files per test; and published tables alone.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::plan::TestGroup;
use plimsoll_core::plan::published::{PUBLISHED, group_of, has_several_ranges, table_order};
use plimsoll_store::imported::{Family, Imported, ImportedSeries, ImportedStep, ImportedValue};

use super::builder::{Builder, both, clean, printed};
use super::import::{File, Options};
use crate::host::iostat::{Averages, Iostat};
use crate::host::{normalized, vmstat};
use crate::names::folder::CellName;
use crate::names::test_file::TestFile;
use crate::sysbench::load::Load;
use crate::sysbench::metrics::Metrics;
use crate::sysbench::output::{Interval, Output};
use crate::sysbench::published::{CostBlock, RateTable};
use crate::sysbench::time::ClientTime;
use crate::text::ReadError;
use crate::tree::contents::Contents;

/// Scans since 2025-04-19.
const SCAN_PER_THREAD: &str = "scans of one thread (since 2025-04-19)";
/// Scans before.
const SCAN_OF_ALL: &str = "scans of all threads (before 2025-04-19)";

/// The files of one test of one cell.
#[derive(Default)]
struct TestFiles<'a> {
    output: Option<(&'a str, Result<&'a Output, &'a ReadError>)>,
    metrics: Option<&'a Metrics>,
    vmstat: Option<&'a vmstat::Vmstat>,
    iostat: Option<(&'a str, &'a Iostat)>,
    rates: Option<&'a [String]>,
    time: Option<&'a ClientTime>,
    counters: Vec<&'a BTreeMap<String, f64>>,
}

/// Makes a campaign of the files that are sysbench's.
pub(super) fn assemble(files: &[File], options: &Options) -> Option<Imported> {
    let mut builder = Builder::new(Family::Sysbench);
    let mut tests: BTreeMap<(CellName, TestFile), TestFiles<'_>> = BTreeMap::new();
    let mut loads: BTreeMap<CellName, (Option<&TestFile>, Option<&Load>, TestFiles<'_>)> =
        BTreeMap::new();
    let (mut tables, mut costs): (Vec<&RateTable>, Vec<&CostBlock>) = (Vec::new(), Vec::new());
    for file in files {
        match &file.contents {
            Ok(Contents::SysbenchRates(table)) => tables.push(table),
            Ok(Contents::SysbenchCosts(blocks)) => costs.extend(blocks),
            Ok(Contents::SysbenchOutput(output)) if file.test.is_none() => {
                add_plain(&mut builder, file, output)
            }
            contents => {
                let Some(test) = &file.test else { continue };
                let cell = file.cell_name();
                if test.kind.starts_with("prepare.") {
                    let (of, load, entry) = loads.entry(cell).or_default();
                    *of = Some(test);
                    match contents {
                        Ok(Contents::SysbenchLoad(of)) => *load = Some(of),
                        Ok(Contents::SysbenchMetrics(metrics)) => entry.metrics = Some(metrics),
                        Ok(Contents::Vmstat(vmstat)) => entry.vmstat = Some(vmstat),
                        Ok(Contents::Iostat(iostat)) => entry.iostat = Some((&file.path, iostat)),
                        _ => {}
                    }
                    continue;
                }
                let entry = tests
                    .entry((
                        cell,
                        TestFile {
                            kind: String::new(),
                            ..test.clone()
                        },
                    ))
                    .or_default();
                match contents {
                    Ok(Contents::SysbenchOutput(output)) => {
                        entry.output = Some((&file.path, Ok(output)))
                    }
                    Err(error) if test.kind == "o" => entry.output = Some((&file.path, Err(error))),
                    Ok(Contents::SysbenchMetrics(metrics)) => entry.metrics = Some(metrics),
                    Ok(Contents::Vmstat(vmstat)) => entry.vmstat = Some(vmstat),
                    Ok(Contents::Iostat(iostat)) => entry.iostat = Some((&file.path, iostat)),
                    Ok(Contents::SysbenchTime(time)) => entry.time = Some(time),
                    Ok(Contents::PerfCounters(counters)) => entry.counters.push(counters),
                    Ok(Contents::SysbenchPerTest(per_test)) if test.kind == "r.qps" => {
                        entry.rates = Some(&per_test.values)
                    }
                    _ => {}
                }
            }
        }
    }
    let tests = with_counts_per_thread(tests);
    let dops = dops_of_cells(&tests);
    for ((cell, test), files) in &tests {
        if files.output.is_none() && files.metrics.is_none() && files.rates.is_none() {
            continue;
        }
        let has_several = dops.get(cell).is_some_and(|dops| dops.len() > 1);
        let shape = test
            .dop
            .filter(|_| has_several)
            .map(|dop| format!("dop{dop}"))
            .unwrap_or_default();
        let cell = builder.cell(cell, &shape);
        add_test(&mut builder, cell, test, files, options);
    }
    for (cell, (test, load, files)) in &loads {
        let cell = builder.cell(cell, "");
        if let Some(test) = test {
            add_load(&mut builder, cell, test, *load, files, options);
        }
    }
    for table in tables.iter().filter(|table| table.base.is_none()) {
        add_rates(&mut builder, table);
    }
    for block in costs {
        add_costs(&mut builder, block);
    }
    if let (Some(table), true) = (
        tables.first(),
        tables.iter().all(|table| table.base.is_some()),
    ) {
        let known = table
            .columns
            .iter()
            .any(|column| builder.find_original(column).is_some());
        if !known {
            builder.note(
                "There are only relative tables: without absolute rates nothing of them is kept.",
            );
        }
    }
    builder.finish(|a, b| {
        order(a).cmp(&order(b)).then_with(|| {
            table_order(
                (&a.test, a.range.unwrap_or(0)),
                (&b.test, b.range.unwrap_or(0)),
            )
        })
    })
}

/// A file per test that holds all thread counts has none in its name: it belongs to the only thread
/// count there is.
fn with_counts_per_thread<'a>(
    mut tests: BTreeMap<(CellName, TestFile), TestFiles<'a>>,
) -> BTreeMap<(CellName, TestFile), TestFiles<'a>> {
    let without: Vec<_> = tests
        .keys()
        .filter(|(_, test)| test.dop.is_none())
        .cloned()
        .collect();
    for key in without {
        let of_test = |(cell, test): &(CellName, TestFile)| {
            *cell == key.0
                && test.dop.is_some()
                && TestFile {
                    dop: None,
                    ..test.clone()
                } == key.1
        };
        let with: Vec<_> = tests.keys().filter(|key| of_test(key)).cloned().collect();
        if let [only] = &with[..] {
            let without = tests.remove(&key).unwrap_or_default();
            if let Some(files) = tests.get_mut(only) {
                files.rates = without.rates.filter(|rates| rates.len() == 1);
                files.counters.extend(without.counters);
            }
        }
    }
    tests
}

fn dops_of_cells<'a>(
    tests: &BTreeMap<(CellName, TestFile), TestFiles<'a>>,
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

fn step_of(test: &str, range: u32) -> ImportedStep {
    // Warm-ups and the tests before the writes are run and not reported.
    let is_reported = !test.contains("pre") && !test.contains("warm");
    let description = match () {
        () if is_scan(test) => "full scans: thousands of rows per second of one thread",
        () if !is_reported => "run, but not reported",
        () => "queries per second: all statements, transactions' own included",
    };
    ImportedStep {
        name: step_name(test, range),
        test: test.to_owned(),
        range: Some(range),
        group: if is_reported {
            group_of(test).title().to_owned()
        } else {
            String::new()
        },
        description: description.to_owned(),
        operation: "query".to_owned(),
        rate: if is_scan(test) { "krps" } else { "qps" }.to_owned(),
    }
}

/// Scans are reported in rows.
fn is_scan(test: &str) -> bool {
    test == "scan" || test.starts_with("scan.")
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

fn load_step() -> ImportedStep {
    ImportedStep {
        name: "prepare".to_owned(),
        test: "prepare".to_owned(),
        range: None,
        group: String::new(),
        description: "the tables loaded and their index created: rows per second".to_owned(),
        operation: "insert".to_owned(),
        rate: "ips".to_owned(),
    }
}

fn add_test(
    builder: &mut Builder,
    cell: usize,
    test: &TestFile,
    files: &TestFiles<'_>,
    options: &Options,
) {
    let step = builder.step(step_of(&test.test, test.range));
    let output = match files.output {
        Some((_, Err(error))) => {
            let result = builder.result(cell, step);
            result.failed = Some(error.reason.clone());
            return;
        }
        Some((_, Ok(output))) => Some(output),
        None => None,
    };
    let mut values: BTreeMap<String, ImportedValue> = BTreeMap::new();
    let mut facts: BTreeMap<String, String> = BTreeMap::new();
    facts.insert("file".to_owned(), file_suffix(test));
    let is_scan = is_scan(&test.test);
    let witness = files
        .metrics
        .map(|metrics| metrics.op_rate().to_owned())
        .or_else(|| files.rates?.first().cloned());
    let mut era = output.map_or(String::new(), |output| output.layout.name().to_owned());
    let rate = match output {
        Some(output) if is_scan && output.is_scan() => {
            let (of_era, rate) = scan_rate(output, witness.as_deref());
            if witness.is_none() {
                builder.note(
                    "Scans are taken for those of one thread, as since 2025-04-19: no file beside \
                    them tells.",
                );
            }
            era = format!("{era}, {of_era}");
            rate.map(|rate| (rate, format!("{rate:.0}")))
        }
        Some(output) => output
            .queries_per_s()
            .map(|rate| (rate, output.queries.1.clone())),
        None => witness.and_then(|witness| Some((witness.parse().ok()?, witness))),
    };
    if let Some(output) = output {
        if let (true, Some(scans)) = (is_scan, output.queries_per_s()) {
            values.insert("qps".to_owned(), clean(scans));
        }
        builder.passwords += output.passwords;
        add_output(&mut values, output);
        describe_shape(builder, cell, output);
    }
    let result_series = output
        .map(|output| series(&output.intervals))
        .unwrap_or_default();
    if let Some((rate, op_rate)) = &rate {
        let whole = op_rate
            .parse::<f64>()
            .map_or_else(|_| op_rate.clone(), |number| format!("{number:.0}"));
        values.insert(
            if is_scan { "krps" } else { "qps" }.to_owned(),
            both(*rate, whole),
        );
        values.insert("op_rate".to_owned(), both(*rate, op_rate.clone()));
        add_host(
            builder,
            &mut values,
            &mut facts,
            files,
            op_rate,
            *rate,
            output,
            options,
        );
    }
    if let (Some(time), Some(output)) = (files.time, output)
        && output.queries.0 > 0
    {
        values.insert(
            "client_cpu_us_per_op".to_owned(),
            clean((time.user_s + time.system_s) * 1e6 / output.queries.0 as f64),
        );
    }
    let result = builder.result(cell, step);
    result.counters = means(&files.counters);
    result.era = era;
    result.values.extend(values);
    result.facts.extend(facts);
    result.series = result_series;
}

/// The load: its rate is in its output, or in the metrics file.
fn add_load(
    builder: &mut Builder,
    cell: usize,
    test: &TestFile,
    load: Option<&Load>,
    files: &TestFiles<'_>,
    options: &Options,
) {
    let printed_rate = load
        .map(|load| load.rows_per_s.clone())
        .or_else(|| Some(files.metrics?.op_rate().to_owned()));
    let Some((op_rate, rate)) =
        printed_rate.and_then(|text| Some((text.clone(), text.parse::<f64>().ok()?)))
    else {
        return;
    };
    let step = builder.step(load_step());
    let (mut values, mut facts) = (
        BTreeMap::new(),
        BTreeMap::from([("file".to_owned(), file_suffix(test))]),
    );
    values.insert("ips".to_owned(), printed(&op_rate));
    values.insert("op_rate".to_owned(), printed(&op_rate));
    add_host(
        builder,
        &mut values,
        &mut facts,
        files,
        &op_rate,
        rate,
        None,
        options,
    );
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
        ..step_of(&file.stem(), 0)
    });
    let mut values = BTreeMap::new();
    if let Some(rate) = output.queries_per_s() {
        values.insert("qps".to_owned(), both(rate, output.queries.1.clone()));
    }
    add_output(&mut values, output);
    describe_shape(builder, cell, output);
    builder.passwords += output.passwords;
    let result = builder.result(cell, step);
    result.era = output.layout.name().to_owned();
    result.values = values;
    result.series = series(&output.intervals);
}

/// `hot-points.range100.pk1.dop1`.
fn file_suffix(test: &TestFile) -> String {
    let dop = test.dop.map(|dop| format!(".dop{dop}")).unwrap_or_default();
    format!(
        "{}.range{}.pk{}{dop}",
        test.test,
        test.range,
        u8::from(test.has_primary_key)
    )
}

/// Means over the samples that have a counter.
fn means(samples: &[&BTreeMap<String, f64>]) -> BTreeMap<String, f64> {
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

fn add_output(values: &mut BTreeMap<String, ImportedValue>, output: &Output) {
    let mut add = |name: &str, value: ImportedValue| values.insert(name.to_owned(), value);
    if output.elapsed_s > 0.0 {
        add(
            "tps",
            both(
                output.transactions.0 as f64 / output.elapsed_s,
                output.transactions.1.clone(),
            ),
        );
    }
    let mut latency =
        |name: &str, ms: &str| drop(ms.parse().map(|ms: f64| add(name, clean(ms * 1000.0))));
    latency("min_service_us", &output.latency.min);
    latency("mean_service_us", &output.latency.avg);
    latency("max_service_us", &output.latency.max);
    match &output.latency.percentile {
        Some((95, value)) => latency("p95_service_us", value),
        Some((99, value)) => latency("p99_service_us", value),
        _ => {}
    }
    add("ignored_errors", clean(output.ignored_errors as f64));
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

/// CPU, context switches and I/O: classic from the raw samples where they are there, else as
/// printed; clean beside it.
#[allow(clippy::too_many_arguments)]
fn add_host(
    builder: &mut Builder,
    values: &mut BTreeMap<String, ImportedValue>,
    facts: &mut BTreeMap<String, String>,
    files: &TestFiles<'_>,
    op_rate: &str,
    rate: f64,
    output: Option<&Output>,
    options: &Options,
) {
    let io = files.iostat.and_then(
        |(path, iostat)| match device(iostat, files.metrics, options) {
            Ok((name, averages)) => {
                facts.insert("device".to_owned(), name.clone());
                Some((averages, iostat.of(&name).unwrap_or(averages)))
            }
            Err(reason) => {
                builder.leave_out(path, reason);
                None
            }
        },
    );
    let vm = files
        .vmstat
        .and_then(|vmstat| Some((vmstat.classic()?, vmstat.clean()?)));
    let raw = match (&io, &vm) {
        (Some((io, _)), Some((vm, _))) => normalized::classic(io, vm, op_rate),
        _ => None,
    };
    let Some(classic) = raw.as_ref().or(files.metrics) else {
        return;
    };
    if let (Some(raw), Some(metrics)) = (&raw, files.metrics)
        && raw != metrics
    {
        builder.note(format!(
            "Metrics computed from raw samples differ from those in sb.met.{}: the samples are \
            used.",
            facts["file"]
        ));
    }
    facts.insert("io_samples".to_owned(), classic.io[0].clone());
    facts.insert("vm_samples".to_owned(), classic.vm[0].clone());
    let clean_io = io.map(|(_, clean)| clean.rates);
    let io_columns = [
        ("rps", 1, clean_io.map(|r| r.reads)),
        ("rmbps", 2, clean_io.map(|r| r.read_kib / 1024.0)),
        ("wps", 3, clean_io.map(|r| r.writes)),
        ("wmbps", 4, clean_io.map(|r| r.written_kib / 1024.0)),
        ("rpq", 5, clean_io.map(|r| r.reads / rate)),
        ("rkbpq", 6, clean_io.map(|r| r.read_kib / rate)),
        ("wkbpq", 7, clean_io.map(|r| r.written_kib / rate)),
    ];
    for (name, column, value) in io_columns {
        let text = &classic.io[column];
        values.insert(
            name.to_owned(),
            value.map_or_else(|| printed(text), |value| both(value, text.clone())),
        );
    }
    // Without raw samples what counted banners took can be given back, because their number is
    // known; the sample since boot cannot.
    let counted: f64 = classic.vm[0].parse().unwrap_or(0.0);
    let factor = if counted > 0.0 {
        counted / vmstat::samples_without_banners(counted as u64) as f64
    } else {
        1.0
    };
    let corrected = |column: usize| {
        classic.vm[column]
            .parse::<f64>()
            .map_or(f64::NAN, |printed| printed * factor)
    };
    let clean_vm = vm.map(|(_, clean)| clean);
    let (cs, cpu) = clean_vm.map_or_else(
        || (corrected(1), corrected(2)),
        |clean| (clean.cs, clean.cpu),
    );
    let per_op = clean_vm.map_or_else(
        || (corrected(3), corrected(4)),
        |clean| (clean.cs / rate, clean.cpu / rate),
    );
    for (name, column, value) in [
        ("csps", 1, cs),
        ("cpups", 2, cpu),
        ("cspq", 3, per_op.0),
        ("cpupo", 4, per_op.1),
    ] {
        values.insert(name.to_owned(), both(value, classic.vm[column].clone()));
    }
    // iostat counts hardware threads, as vmstat's percentages do; what the scripts note may be
    // cores.
    let cpus = files
        .iostat
        .and_then(|(_, iostat)| iostat.cpus)
        .or_else(|| output?.cpus);
    if let Some(cpus) = cpus {
        values.insert(
            "cpupq".to_owned(),
            clean(per_op.1 / 100.0 * f64::from(cpus) * 1e6),
        );
    }
}

/// The device that the metrics are of: the one that was named, the only one, or the one that gives
/// the printed averages.
pub(super) fn device(
    iostat: &Iostat,
    metrics: Option<&Metrics>,
    options: &Options,
) -> Result<(String, Averages), String> {
    if let Some(name) = &options.device {
        let averages = iostat
            .matching(name)
            .ok_or_else(|| format!("no device of it contains \"{name}\""))?;
        return Ok((name.clone(), averages));
    }
    let means = |name: &String| Some((name.clone(), iostat.matching(name)?));
    let candidates: Vec<(String, Averages)> = iostat.devices.keys().filter_map(means).collect();
    if let [only] = &candidates[..] {
        return Ok(only.clone());
    }
    let print = |rate: f64| format!("{rate:.1}");
    let is_printed = |averages: &Averages| {
        let r = averages.rates;
        metrics.is_some_and(|metrics| {
            metrics.io[..5]
                == [
                    averages.samples.to_string(),
                    print(r.reads),
                    print(r.read_kib / 1024.0),
                    print(r.writes),
                    print(r.written_kib / 1024.0),
                ]
        })
    };
    let names: Vec<&str> = iostat.devices.keys().map(String::as_str).collect();
    candidates
        .into_iter()
        .find(|(_, averages)| is_printed(averages))
        .ok_or_else(|| {
            format!(
                "which of {} holds the database is not known: name it with --device",
                names.join(", ")
            )
        })
}

/// A table of rates fills what raw files do not tell.
fn add_rates(builder: &mut Builder, table: &RateTable) {
    let cells: Vec<usize> = table
        .columns
        .iter()
        .map(|folder| cell_of(builder, folder))
        .collect();
    for (test, range, row) in &table.rows {
        let rate = if is_scan(test) { "krps" } else { "qps" };
        let step = builder.step(step_of(test, *range));
        for (cell, text) in cells.iter().zip(row) {
            let folder = builder.cell_mut(*cell).original.clone();
            let result = builder.result(*cell, step);
            match result
                .values
                .get(rate)
                .and_then(|value| value.classic.clone())
            {
                None => drop(result.values.insert(rate.to_owned(), printed(text))),
                Some(known) if known != *text => {
                    builder.note(format!(
                        "{test}_range={range} of {folder}: a table says {text}, its output gives \
                        {known}, which is kept."
                    ));
                }
                Some(_) => {}
            }
        }
    }
}

fn cell_of(builder: &mut Builder, folder: &str) -> usize {
    match builder.find_original(folder) {
        Some(cell) => cell,
        None => builder.cell(
            &CellName::of_sysbench(folder).unwrap_or_else(|| CellName::verbatim(folder)),
            "",
        ),
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
        step_of(&test.test, test.range)
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
            ("cpupo", cpu),
            ("cspq", cs),
            ("rpq", reads),
            ("rkbpq", read_kib),
            ("wkbpq", written_kib),
            ("op_rate", rate),
        ];
        for (name, text) in columns {
            result
                .values
                .entry(name.to_owned())
                .or_insert_with(|| printed(text));
        }
        if is_load {
            result
                .values
                .entry("ips".to_owned())
                .or_insert_with(|| printed(rate));
        } else {
            let of_test = if is_scan(&test.test) { "krps" } else { "qps" };
            result
                .values
                .entry(of_test.to_owned())
                .or_insert_with(|| printed(rate));
        }
    }
}
