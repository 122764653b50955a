//! Arithmetic on what a step's workers counted, and what must be true of it.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Operation, Step};
use plimsoll_core::readings::{HostReading, Reading, Readings};
use plimsoll_core::record::{ClientHostRecord, OperationRecord, TableCheck};
use plimsoll_core::units::format_grouped;
use plimsoll_load::{SecondRow, StepOutcome};
use plimsoll_store::series::OperationSecond;

/// Operations that count for the step: those of the primary kind, or of all kinds where its events
/// are drawn.
pub(super) fn primary_operations(primary: Operation, operations: &[OperationRecord]) -> u64 {
    operations
        .iter()
        .filter(|operation| primary.counts(&operation.kind))
        .map(|operation| operation.ok)
        .sum()
}

/// Achieved share of the target of the background role that is furthest behind.
pub(super) fn worst_share(outcome: &StepOutcome) -> Option<f64> {
    let pacings = outcome
        .operations
        .iter()
        .filter_map(|operation| operation.pacing.as_ref());
    pacings
        .filter(|pacing| pacing.target_per_s > 0.0)
        .map(|pacing| pacing.achieved_per_s / pacing.target_per_s)
        .reduce(f64::min)
}

pub(super) fn difference(
    before: &BTreeMap<String, i64>,
    after: &BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    after
        .iter()
        .map(|(name, value)| (name.clone(), value - before.get(name).copied().unwrap_or(0)))
        .collect()
}

/// A row of the series.
pub(super) fn operation_second(row: &SecondRow, kinds: &[String]) -> OperationSecond {
    OperationSecond {
        second: row.second as u32,
        client: row.client,
        kind: kinds[row.kind].to_owned(),
        ok: row.counts.ok,
        unsuccessful: row.counts.unsuccessful,
        rows: row.counts.rows,
        service_sum_ns: row.counts.service_sum_ns,
        service_max_ns: row.counts.service_max_ns,
        response_max_ns: row.counts.response_max_ns,
    }
}

/// A lost or surplus row, or work that the plan requests and the counters do not show.
pub(super) fn find_problem(
    step: &Step,
    outcome: &StepOutcome,
    tables: &[TableCheck],
) -> Option<String> {
    if let Some(table) = tables
        .iter()
        .find(|table| table.found_rows != table.expected_rows)
    {
        return Some(format!(
            "{} holds {} rows and should hold {}: rows were lost or came from elsewhere",
            table.table,
            format_grouped(table.found_rows),
            format_grouped(table.expected_rows)
        ));
    }
    let rows = |kind: Operation| -> u64 {
        outcome
            .clients
            .iter()
            .filter(|client| client.kind == kind)
            .map(|client| client.rows)
            .sum()
    };
    let (inserted, deleted) = (rows(Operation::Insert), rows(Operation::Delete));
    (step.deletes && inserted != deleted).then(|| {
        format!(
            "{} rows were inserted and {} deleted",
            format_grouped(inserted),
            format_grouped(deleted)
        )
    })
}

/// An external server has its data elsewhere: what happened on the disk under our empty folder says
/// nothing of it.
pub(super) fn hide_own_disk(host: &mut Readings) {
    for name in HostReading::OF_DATA_DISK {
        if let Some(reading) = host.get_mut(name) {
            *reading = Reading::Unavailable(format!(
                "{} of an external server is not known here: its data is elsewhere",
                name.name()
            ));
        }
    }
}

/// Clients on hosts that are this machine under another name took their CPU time here, and are no
/// strangers. What others took elsewhere is not this machine's.
pub(super) fn add_clients_here(host: &mut Readings, clients: &[ClientHostRecord]) {
    let here = clients.iter().filter(|host| host.shares_machine);
    let cpu_s: f64 = here.map(|host| host.cpu_s).sum();
    if let Some(own) = host.value(HostReading::ClientCpu) {
        host.put(HostReading::ClientCpu, Ok(own + cpu_s));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_on_this_machine_are_no_strangers_and_those_elsewhere_take_nothing_here() {
        let client = |shares_machine, cpu_s| ClientHostRecord {
            shares_machine,
            cpu_s,
            ..ClientHostRecord::default()
        };
        let clients = [client(true, 3.0), client(false, 50.0)];
        let mut host = Readings::default();
        host.put(HostReading::ClientCpu, Ok(0.5));
        add_clients_here(&mut host, &clients);
        assert_eq!(host.value(HostReading::ClientCpu), Some(3.5));
        let mut unknown = Readings::default();
        unknown.put(HostReading::ClientCpu, Err("no clock".to_owned()));
        add_clients_here(&mut unknown, &clients);
        assert_eq!(unknown.value(HostReading::ClientCpu), None);
    }

    #[test]
    fn a_profile_counts_the_events_of_a_workload_file() {
        let operation = |kind: &str, ok| OperationRecord {
            kind: kind.to_owned(),
            ok,
            ..OperationRecord::default()
        };
        let events = [operation("look", 40), operation("buy", 2)];
        assert_eq!(primary_operations(Operation::Event, &events), 42);
        let kinds = [operation("query", 40), operation("insert", 2)];
        assert_eq!(primary_operations(Operation::Query, &kinds), 40);
    }
}
