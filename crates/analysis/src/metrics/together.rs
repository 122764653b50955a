//! The kinds of events that a step draws, taken together, which stand for the step.

use std::collections::BTreeMap;

use plimsoll_core::plan::Operation;
use plimsoll_core::record::{ClientRecord, OperationRecord};
use plimsoll_store::OperationSecond;
use plimsoll_store::event::StepDone;

/// The step with its kinds of operations as one, and the series with it; `None` for a step whose
/// kinds are not drawn events. The one kind has no histograms: [`Latencies::of`] adds up those of
/// the kinds.
///
/// [`Latencies::of`]: crate::latencies::Latencies::of
pub(super) fn together(
    done: &StepDone,
    series: Result<&[OperationSecond], &str>,
) -> Option<(StepDone, Result<Vec<OperationSecond>, String>)> {
    if done.primary != Operation::Event {
        return None;
    }
    let mut all = OperationRecord {
        kind: Operation::Event.into(),
        statements: Some(0),
        ..OperationRecord::default()
    };
    for operation in &done.operations {
        all.attempts += operation.attempts;
        all.ok += operation.ok;
        all.retried += operation.retried;
        all.failed += operation.failed;
        all.unsent += operation.unsent;
        all.rows += operation.rows;
        all.wait_ns += operation.wait_ns;
        all.worker_ns = all.worker_ns.max(operation.worker_ns);
        all.statements = all
            .statements
            .zip(operation.statements)
            .map(|(sum, of_kind)| sum + of_kind);
        all.pacing = all.pacing.or_else(|| operation.pacing.clone());
        for (class, count) in &operation.errors {
            *all.errors.entry(class.clone()).or_default() += count;
        }
    }
    let mut clients: BTreeMap<u32, ClientRecord> = BTreeMap::new();
    for of_kind in &done.clients {
        let client = clients
            .entry(of_kind.client)
            .or_insert_with(|| ClientRecord {
                ok: 0,
                rows: 0,
                kind: Operation::Event.into(),
                ..of_kind.clone()
            });
        client.ok += of_kind.ok;
        client.rows += of_kind.rows;
        client.from_ns = client.from_ns.min(of_kind.from_ns);
        client.to_ns = client.to_ns.max(of_kind.to_ns);
    }
    let rename = |row: &OperationSecond| OperationSecond {
        kind: Operation::Event.into(),
        ..row.clone()
    };
    let series = series
        .map(|rows| rows.iter().map(rename).collect())
        .map_err(str::to_owned);
    Some((
        StepDone {
            operations: vec![all],
            clients: clients.into_values().collect(),
            ..done.clone()
        },
        series,
    ))
}
