//! Whether the counts of a step agree with each other, wherever they were written.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::Value;

use crate::{Audit, lines};

/// Counts by kind of operation.
type ByKind = BTreeMap<String, u64>;

/// Invariant 3: attempts = ok + retried + failed, histograms have as many values as there were
/// operations, and clients, seconds and the histogram log add up to the same.
pub(crate) fn audit_step(audit: &mut Audit, trial: &Path, event: &Value) {
    let step = event["step"].as_str().unwrap_or_default();
    let place = trial.join(step);
    let series = trial.join("series");
    // By slices histograms are of recorded turns, and counts of all.
    let has_turns = series.join(format!("{step}.turns.tsv")).exists();
    let of_seconds = by_kind_of_table(&series.join(format!("{step}.operations.tsv")));
    let of_log = by_kind_of_log(&trial.join(format!("{step}.hlog")));
    let mut of_clients = ByKind::new();
    for client in event["clients"].as_array().into_iter().flatten() {
        *of_clients.entry(text(client, "kind")).or_default() += number(client, "ok");
    }
    for operation in event["operations"].as_array().into_iter().flatten() {
        let kind = text(operation, "kind");
        let [ok, retried, failed, attempts] =
            ["ok", "retried", "failed", "attempts"].map(|member| number(operation, member));
        let mut equal = |what: &str, found: u64, wanted: u64| {
            audit.check(3, &place, found == wanted, || {
                format!("{kind}: {what} is {found}, and should be {wanted}")
            });
        };
        equal("attempts", attempts, ok + retried + failed);
        equal(
            "the clients' sum",
            of_clients.get(&kind).copied().unwrap_or(0),
            ok,
        );
        if let Some(seconds) = &of_seconds {
            equal(
                "the seconds' sum",
                seconds.get(&kind).copied().unwrap_or(0),
                ok,
            );
        }
        if has_turns {
            continue;
        }
        let service = values(&operation["service"]);
        if let Some(service) = service {
            equal("the number of service times", service, ok);
        }
        let unsent = number(operation, "unsent");
        if let Some(response) = values(&operation["response"]) {
            equal("the number of response times", response, ok + unsent);
        }
        if let (Some(log), Some(service)) = (&of_log, service) {
            let logged = log.get(&format!("{kind}.service")).copied().unwrap_or(0);
            equal("the log's number of service times", logged, service);
        }
    }
    for table in event["tables"].as_array().into_iter().flatten() {
        let [expected, found] = ["expected_rows", "found_rows"].map(|member| number(table, member));
        audit.check(3, &place, expected == found, || {
            format!("{} has {found} rows of {expected}", text(table, "table"))
        });
    }
}

/// Checksums of tables in a campaign, by cell, step and table.
pub(crate) fn checksums(campaign: &Path) -> BTreeMap<(String, String, String), Value> {
    let mut found = BTreeMap::new();
    for trial in crate::folders(&campaign.join("trials")) {
        let file = trial.join("events.jsonl");
        let bytes = fs::read(&file).unwrap_or_default();
        let events = lines::events(&mut Audit::default(), &file, &bytes);
        let cell = events
            .first()
            .map_or(String::new(), |start| text(start, "cell"));
        for event in events.iter().filter(|event| event["event"] == "step_done") {
            for table in event["tables"].as_array().into_iter().flatten() {
                let key = (cell.clone(), text(event, "step"), text(table, "table"));
                found.insert(key, table["checksum"].clone());
            }
        }
    }
    found
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, member: &str) -> u64 {
    value[member].as_u64().unwrap_or(0)
}

/// How many values an encoded histogram has; none where there is no histogram.
fn values(encoded: &Value) -> Option<u64> {
    let bytes = STANDARD.decode(encoded.as_str()?).ok()?;
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).ok()?;
    Some(histogram.len())
}

/// Operations done by kind, of a `.operations.tsv`; none where there is no such file.
fn by_kind_of_table(file: &Path) -> Option<ByKind> {
    let text = fs::read_to_string(file).ok()?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next()?.split('\t').collect();
    let column = |name: &str| header.iter().position(|column| *column == name);
    let (kind, ok) = (column("kind")?, column("ok")?);
    let mut sums = ByKind::new();
    for line in lines {
        let cells: Vec<&str> = line.split('\t').collect();
        let count: u64 = cells.get(ok)?.parse().ok()?;
        *sums.entry((*cells.get(kind)?).to_owned()).or_default() += count;
    }
    Some(sums)
}

/// Values by tag of a `.hlog`; none where there is no such file.
fn by_kind_of_log(file: &Path) -> Option<ByKind> {
    let text = fs::read_to_string(file).ok()?;
    let mut sums = ByKind::new();
    for line in text.lines() {
        let Some((tag, rest)) = line
            .strip_prefix("Tag=")
            .and_then(|line| line.split_once(','))
        else {
            continue;
        };
        let encoded = Value::from(rest.rsplit(',').next()?);
        *sums.entry(tag.to_owned()).or_default() += values(&encoded)?;
    }
    Some(sums)
}
