//! What a file holds, recognised by its content and read.

use std::collections::BTreeMap;

use crate::host::{iostat, vmstat};
use crate::insert_benchmark::{client, metrics_lines, step_result};
use crate::names::test_file::TestFile;
use crate::other::{hdr_log, pgbench, pgbench_log, table};
use crate::rocksdb::{self, log, rows};
use crate::sysbench::{load, metrics, output, perf, perf_join, published, rates_line, time};
use crate::text::{Read, ReadError, text};

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contents {
    SysbenchOutput(Box<output::Output>),
    SysbenchLoad(load::Load),
    SysbenchTime(time::ClientTime),
    /// Hardware counters of a sample.
    PerfCounters(BTreeMap<String, f64>),
    /// Hardware counters of several builds.
    PerfJoin(perf_join::Join),
    SysbenchMetrics(Box<metrics::Metrics>),
    SysbenchRatesLine(rates_line::RatesLine),
    SysbenchRates(published::RateTable),
    SysbenchCosts(Vec<published::CostBlock>),
    InsertBenchmarkClient(Box<client::Client>),
    InsertBenchmarkStep(Box<step_result::StepResult>),
    InsertBenchmarkLines(metrics_lines::MetricsLines),
    /// Whole seconds of a step.
    Wall(u64),
    RocksdbRows(rows::Rows),
    RocksdbTable(rocksdb::table::Table),
    RocksdbLog(Box<log::Log>),
    Pgbench(Box<pgbench::Pgbench>),
    PgbenchLog(pgbench_log::PgbenchLog),
    HdrLog(hdr_log::HdrLog),
    Table(table::Table),
    Vmstat(vmstat::Vmstat),
    Iostat(iostat::Iostat),
    /// A table without names of columns, which follows from a file that has them.
    Derived,
    /// Known to hold no results: why.
    PassedOver(&'static str),
}

/// The kind of files with hardware counters.
const PERF: &str = "perf.hw";

/// Recognises and reads a file. `name` is the file's, for what no content tells.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Read<Contents> {
    let test = TestFile::of(name);
    let is_perf = test.as_ref().is_some_and(|test| test.kind == PERF);
    if let Some(what) = passed_over(name).filter(|_| !is_perf) {
        return Ok(Contents::PassedOver(what));
    }
    let start = &bytes[..bytes.len().min(4096)];
    if start.contains(&0) {
        return Err(ReadError::new(1, "it is binary"));
    }
    let join = perf_join::JoinName::of(name);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        if join.is_some() {
            return Ok(Contents::PassedOver(
                "a sample that the scripts did not take",
            ));
        }
        return Err(ReadError::new(1, "it is empty"));
    }
    match join {
        Some(join) if join.is_relative => return Ok(Contents::Derived),
        Some(join) => return perf_join::read(join, bytes).map(Contents::PerfJoin),
        None => {}
    }
    let head = text(start);
    let test = test.as_ref();
    read_by_start(name, test, &head, bytes)
        .or_else(|| read_by_all(name, test, &head, bytes))
        .unwrap_or_else(|| Err(ReadError::new(1, "it is of no known format")))
}

/// Files that the first lines identify.
fn read_by_start(
    name: &str,
    test: Option<&TestFile>,
    head: &str,
    bytes: &[u8],
) -> Option<Read<Contents>> {
    if metrics::is_metrics(head) {
        return Some(
            metrics::read(bytes).map(|metrics| Contents::SysbenchMetrics(Box::new(metrics))),
        );
    }
    if published::is_rate_table(head) {
        return Some(published::read_rates(bytes).map(Contents::SysbenchRates));
    }
    if published::is_costs(head) {
        return Some(published::read_costs(bytes).map(Contents::SysbenchCosts));
    }
    if client::is_client(head) || name.starts_with("o.ib.") {
        return Some(
            client::read(bytes).map(|client| Contents::InsertBenchmarkClient(Box::new(client))),
        );
    }
    if step_result::is_step_result(head) {
        return Some(
            step_result::read(bytes).map(|result| Contents::InsertBenchmarkStep(Box::new(result))),
        );
    }
    if metrics_lines::is_metrics_lines(head) {
        return Some(metrics_lines::read(bytes).map(Contents::InsertBenchmarkLines));
    }
    if let Some(wall_s) = wall(head) {
        return Some(Ok(Contents::Wall(wall_s)));
    }
    if hdr_log::is_hdr_log(head) {
        return Some(hdr_log::read(bytes).map(Contents::HdrLog));
    }
    if rocksdb::table::is_table(head) {
        return Some(rocksdb::table::read(bytes).map(Contents::RocksdbTable));
    }
    if table::is_table(head) {
        return Some(table::read(bytes).map(Contents::Table));
    }
    if vmstat::is_vmstat(head) {
        return Some(vmstat::read(bytes).map(Contents::Vmstat));
    }
    if iostat::is_iostat(head) {
        return Some(iostat::read(bytes).map(Contents::Iostat));
    }
    if test.is_some_and(|test| test.kind == PERF) {
        return Some(perf::read(bytes).map(Contents::PerfCounters));
    }
    if time::is_time(head) && name.starts_with("sb.time.") {
        return Some(time::read(bytes).map(Contents::SysbenchTime));
    }
    None
}

/// Files that have their mark anywhere, or only in their name.
fn read_by_all(
    name: &str,
    test: Option<&TestFile>,
    head: &str,
    bytes: &[u8],
) -> Option<Read<Contents>> {
    let all = text(bytes);
    if output::is_output(head, &all) || test.is_some_and(|test| test.kind == "o") {
        return Some(output::read(bytes).map(|output| Contents::SysbenchOutput(Box::new(output))));
    }
    if test.is_some_and(|test| test.kind == "prepare.o") || load::is_load(&all) {
        return Some(load::read(bytes).map(Contents::SysbenchLoad));
    }
    if test.is_some_and(|test| test.kind.starts_with("r.")) {
        return Some(rates_line::read(bytes).map(Contents::SysbenchRatesLine));
    }
    if rows::is_rows(&all) {
        return Some(rows::read(bytes).map(Contents::RocksdbRows));
    }
    if log::is_log(&all) {
        return Some(log::read(bytes).map(|log| Contents::RocksdbLog(Box::new(log))));
    }
    if pgbench::is_pgbench(&all) {
        return Some(pgbench::read(bytes).map(|run| Contents::Pgbench(Box::new(run))));
    }
    if pgbench_log::is_pgbench_log(head) {
        return Some(pgbench_log::read(bytes).map(Contents::PgbenchLog));
    }
    if is_derived_table(name, &all) {
        return Some(Ok(Contents::Derived));
    }
    None
}

/// `rc 0 wall 7`: the exit code and whole seconds of a step.
fn wall(head: &str) -> Option<u64> {
    head.trim()
        .strip_prefix("rc ")?
        .split_once(" wall ")?
        .1
        .parse()
        .ok()
}

/// Comma or tab separated rates with a test in front or behind, and no header: the twins of tables
/// with names.
fn is_derived_table(name: &str, all: &str) -> bool {
    let is_number = |cell: &str| cell.parse::<f64>().is_ok() || matches!(cell, "NA" | "inf");
    let is_row = |line: &str| {
        let cells: Vec<&str> = line
            .split([',', '\t'])
            .filter(|cell| !cell.is_empty())
            .collect();
        let (Some(first), Some(last)) = (cells.first(), cells.last()) else {
            return false;
        };
        cells.len() > 1
            && (cells[1..].iter().all(|cell| is_number(cell)) && !is_number(first)
                || cells[..cells.len() - 1].iter().all(|cell| is_number(cell)) && !is_number(last))
    };
    let is_named = ["qps.", "abs.", "rel.", "rel2.", "csum", "sum.abs"]
        .iter()
        .any(|start| name.starts_with(start));
    is_named
        && all
            .lines()
            .filter(|line| !line.trim().is_empty())
            .all(is_row)
}

/// Files that the scripts write beside results.
fn passed_over(name: &str) -> Option<&'static str> {
    const STATES: [&str; 39] = [
        "sb.ps.",
        "sb.top.",
        "sb.espl.",
        "sb.sei.",
        "sb.gs.",
        "sb.gv.",
        "sb.es.",
        "sb.is.",
        "sb.ts.",
        "sb.mem.",
        "sb.frag.",
        "sb.pg.",
        "sb.pgs.",
        "sb.pgi.",
        "sb.pgid.",
        "sb.sz.",
        "sb.ls.",
        "sb.lsh.",
        "sb.lsa.",
        "sb.hp.",
        "sb.perf.",
        "sb.pmp.",
        "sb.o.myvac",
        "sb.o.pgvac",
        "o.ini",
        "o.down",
        "o.ctime.",
        "o.pgid.",
        "o.top.",
        "o.ps.",
        "o.espl.",
        "o.ses.",
        "o.pg.",
        "o.perf.",
        "o.rate.",
        "o.rt.",
        "my.cnf",
        "conf.diff",
        "postgresql.conf",
    ];
    let is_log = name.ends_with(".err")
        || name.ends_with(".log.time")
        || name == "logfile"
        || name.starts_with("LOG");
    if STATES.iter().any(|state| name.starts_with(state)) {
        Some("state of the server or the machine")
    } else if name.ends_with(".gz") || name.ends_with(".svg") || name.ends_with(".png") || is_log {
        Some("log or picture")
    } else if matches!(
        name.to_ascii_lowercase().as_str(),
        "readme" | "readme.md" | "readme.txt"
    ) {
        Some("description")
    } else {
        None
    }
}
