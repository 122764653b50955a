//! What a step came to, in a few words for people.

use plimsoll_core::plan::{KvStep, KvWork, STATEMENT_NOTES, Step, StepKind};
use plimsoll_core::record::ClientRecord;
use plimsoll_core::units::format_grouped;
use plimsoll_store::event::StepDone;

/// The step's rates with their units, such as `1,234 queries/s beside 100 inserts/s`.
pub(super) fn summary(step: &Step, done: &StepDone) -> String {
    match step.kind {
        StepKind::Test(_) | StepKind::Mix(_) => drawn_events(done),
        StepKind::Kv(kv) => keys(&kv, done),
        StepKind::ReadWrite { .. } => {
            let missed = done.sla_missed.map_or(String::new(), |share| {
                format!(", SLA missed: {:.1} % of the rate", share * 100.0)
            });
            format!(
                "{} queries/s with {} inserts/s{missed}",
                text(operations_per_s(done, "query")),
                text(rows_per_s(done, "insert"))
            )
        }
        StepKind::CreateIndexes { .. } => {
            format!("{} indexed rows/s", text(indexed_rows_per_s(done)))
        }
        StepKind::Scan => format!("{} rows/s", text(rows_per_s(done, "scan"))),
        StepKind::Load { .. } | StepKind::Write { .. } => {
            format!("{} inserts/s", text(rows_per_s(done, "insert")))
        }
        StepKind::Prepare { .. } | StepKind::Fill { .. } => {
            let has_indexes = done
                .operations
                .iter()
                .any(|operation| operation.kind == "index" && operation.ok > 0);
            let indexes = if has_indexes {
                " (the time has the indexes, too)"
            } else {
                ""
            };
            format!("{} inserts/s{indexes}", text(rows_per_s(done, "insert")))
        }
    }
}

/// Of tests and workload files, whose workers draw their events.
fn drawn_events(done: &StepDone) -> String {
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
            "{} queries/s, {} {}s/s",
            text(events_per_s * statements / events.max(1.0)),
            text(events_per_s),
            done.primary
        ),
    }
}

/// Of steps on a key-value store.
fn keys(kv: &KvStep, done: &StepDone) -> String {
    let missed = done.sla_missed.map_or(String::new(), |share| {
        format!(", only {:.1} % of the rate", share * 100.0)
    });
    let keys = operations_per_s(done, &done.primary) * f64::from(kv.work.keys());
    let beside = kv.background_bytes_per_s.map_or(String::new(), |_| {
        format!(" with {} puts/s", text(operations_per_s(done, "put")))
    });
    let what = match kv.work {
        KvWork::Fill | KvWork::Overwrite => "puts",
        KvWork::Get | KvWork::MultiGet => "keys",
        KvWork::Range { .. } => "ranges",
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
