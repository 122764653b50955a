//! What a file holds, recognised by its content and read.

use crate::host::{iostat, vmstat};
use crate::names::test_file::TestFile;
use crate::sysbench::{load, metrics, output, per_test, published};
use crate::text::{Read, ReadError, text};

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Contents {
    SysbenchOutput(Box<output::Output>),
    SysbenchLoad(load::Load),
    SysbenchMetrics(metrics::Metrics),
    SysbenchPerTest(per_test::PerTest),
    SysbenchRates(published::RateTable),
    SysbenchCosts(Vec<published::CostBlock>),
    Vmstat(vmstat::Vmstat),
    Iostat(iostat::Iostat),
    /// Known to hold no results: why.
    PassedOver(&'static str),
}

/// Recognises and reads a file. `name` is the file's, for what no content tells.
pub(crate) fn read(name: &str, bytes: &[u8]) -> Read<Contents> {
    if let Some(what) = passed_over(name) {
        return Ok(Contents::PassedOver(what));
    }
    let start = &bytes[..bytes.len().min(4096)];
    if start.contains(&0) {
        return Err(ReadError::new(1, "it is binary"));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(ReadError::new(1, "it is empty"));
    }
    let head = text(start);
    if metrics::is_metrics(&head) {
        return metrics::read(bytes).map(Contents::SysbenchMetrics);
    }
    if published::is_rate_table(&head) {
        return published::read_rates(bytes).map(Contents::SysbenchRates);
    }
    if published::is_costs(&head) {
        return published::read_costs(bytes).map(Contents::SysbenchCosts);
    }
    if vmstat::is_vmstat(&head) {
        return vmstat::read(bytes).map(Contents::Vmstat);
    }
    if iostat::is_iostat(&head) {
        return iostat::read(bytes).map(Contents::Iostat);
    }
    let all = text(bytes);
    let test = TestFile::of(name);
    if output::is_output(&head, &all) || test.as_ref().is_some_and(|test| test.kind == "o") {
        return output::read(bytes).map(|output| Contents::SysbenchOutput(Box::new(output)));
    }
    if test.as_ref().is_some_and(|test| test.kind == "prepare.o") || load::is_load(&all) {
        return load::read(bytes).map(Contents::SysbenchLoad);
    }
    if test.as_ref().is_some_and(|test| test.kind.starts_with("r.")) {
        return per_test::read(bytes).map(Contents::SysbenchPerTest);
    }
    Err(ReadError::new(1, "it is of no known format"))
}

/// Files that the scripts write beside results.
fn passed_over(name: &str) -> Option<&'static str> {
    const STATES: [&str; 30] = [
        "sb.ps.", "sb.top.", "sb.time.", "sb.espl.", "sb.sei.", "sb.gs.", "sb.gv.", "sb.es.", "sb.is.", "sb.ts.", "sb.mem.", "sb.frag.", "sb.pg.",
        "sb.pgs.", "sb.pgi.", "sb.pgid.", "sb.sz.", "sb.ls.", "sb.lsh.", "sb.lsa.", "sb.hp.", "sb.perf.", "sb.pmp.", "sb.o.myvac", "sb.o.pgvac",
        "o.ini", "o.down", "my.cnf", "conf.diff", "postgresql.conf",
    ];
    let is_log = name.ends_with(".err") || name.ends_with(".log.time") || name == "logfile" || name.starts_with("LOG");
    match () {
        () if STATES.iter().any(|state| name.starts_with(state)) => Some("state of the server or the machine"),
        () if name.ends_with(".gz") || name.ends_with(".svg") || name.ends_with(".png") || is_log => Some("log or picture"),
        () if matches!(name.to_ascii_lowercase().as_str(), "readme" | "readme.md" | "readme.txt") => Some("description"),
        () => None,
    }
}
