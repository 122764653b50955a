//! What a step came to, in a few words for people.

use plimsoll_core::plan::{Family, Operation, STATEMENT_NOTES, Step};
use plimsoll_core::record::ClientRecord;
use plimsoll_core::units::format_grouped;
use plimsoll_store::event::StepDone;

/// The step's rates with their units, such as `1,234 queries/s beside 100 inserts/s`.
pub(super) fn summary(step: &Step, done: &StepDone) -> String {
    match step.operation {
        Operation::Insert | Operation::Delete => {
            let is_of_events = matches!(step.family(), Family::Sysbench | Family::File);
            let mut operations = done.operations.iter();
            let has_indexes =
                operations.any(|operation| operation.kind == Operation::Index && operation.ok > 0);
            let indexes = if is_of_events && has_indexes {
                " (the time has the indexes, too)"
            } else {
                ""
            };
            format!("{} inserts/s{indexes}", text(rows_per_s(done, "insert")))
        }
        Operation::Index => {
            format!("{} indexed rows/s", text(indexed_rows_per_s(done)))
        }
        Operation::Query => {
            let missed = done.sla_missed.map_or(String::new(), |share| {
                format!(", SLA missed: {:.1} % of the rate", share * 100.0)
            });
            format!(
                "{} queries/s with {} inserts/s{missed}",
                text(operations_per_s(done, "query")),
                text(rows_per_s(done, "insert"))
            )
        }
        Operation::Scan if step.family() == Family::InsertBenchmark => {
            format!("{} rows/s", text(rows_per_s(done, "scan")))
        }
        Operation::Scan | Operation::Transaction | Operation::Event => drawn_events(step, done),
        Operation::Put | Operation::Get | Operation::MultiGet | Operation::Range => {
            keys(step, done)
        }
    }
}

/// Of tests and workload files, whose workers draw their events.
fn drawn_events(step: &Step, done: &StepDone) -> String {
    let statements = STATEMENT_NOTES
        .iter()
        .filter_map(|note| done.notes.get(*note))
        .sum::<f64>();
    let events = done
        .operations
        .iter()
        .map(|operation| operation.ok)
        .sum::<u64>() as f64;
    let events_per_s = done
        .operations
        .iter()
        .map(|operation| operations_per_s(done, &operation.kind))
        .sum::<f64>();
    match done.notes.get("rows_per_scan") {
        Some(rows) => format!("{} rows/s", text(events_per_s * rows)),
        None => format!(
            "{} queries/s, {} {}/s",
            text(events_per_s * statements / events.max(1.0)),
            text(events_per_s),
            step.operation.plural()
        ),
    }
}

/// Of steps on a key-value store.
fn keys(step: &Step, done: &StepDone) -> String {
    let missed = done.sla_missed.map_or(String::new(), |share| {
        format!(", only {:.1} % of the rate", share * 100.0)
    });
    let keys = operations_per_s(done, step.operation.as_str()) * f64::from(step.operation.keys());
    let beside = step.background.map_or(String::new(), |writers| {
        let rate = operations_per_s(done, writers.operation.as_str());
        format!(" with {} {}/s", text(rate), writers.operation.plural())
    });
    let what = match step.operation {
        Operation::Get | Operation::MultiGet => "keys",
        other => other.plural(),
    };
    format!("{} {what}/s{beside}{missed}", text(keys))
}

/// From the first client's start to the last one's end: they build indexes side by side.
fn indexed_rows_per_s(done: &StepDone) -> f64 {
    let clients = || done.clients.iter().filter(|client| client.kind == "index");
    let from_ns = clients().map(|client| client.from_ns).min().unwrap_or(0);
    let to_ns = clients().map(|client| client.to_ns).max().unwrap_or(0);
    let rows = clients().map(|client| client.rows).sum::<u64>();
    rows as f64 / ((to_ns - from_ns) as f64 / 1e9).max(1e-9)
}

fn operations_per_s(done: &StepDone, kind: &str) -> f64 {
    sum_per_s(done, kind, |client| client.ok)
}

fn rows_per_s(done: &StepDone, kind: &str) -> f64 {
    sum_per_s(done, kind, |client| client.rows)
}

/// The sum of the clients' own rates, each over the time in which it worked.
fn sum_per_s(done: &StepDone, kind: &str, count: fn(&ClientRecord) -> u64) -> f64 {
    done.clients
        .iter()
        .filter(|client| client.kind == kind && client.to_ns > client.from_ns)
        .map(|client| count(client) as f64 * 1e9 / (client.to_ns - client.from_ns) as f64)
        .sum()
}

fn text(rate: f64) -> String {
    format_grouped(rate.round() as u64)
}
