//! Every attempt at every step, with its counts.

use std::collections::BTreeMap;

use plimsoll_core::record::ClientHostRecord;

use crate::metrics::Measure;
use crate::runs::attempts::Run;
use crate::runs::events::{EventRow, event_row};
use crate::runs::status::Status;

/// One kind of operation in one step of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationCount {
    /// `insert`, `delete`, `query` or `index`.
    pub kind: String,
    /// Tries: `ok + retried + failed`.
    pub attempts: u64,
    /// Operations done.
    pub ok: u64,
    /// Tries given up and tried again.
    pub retried: u64,
    /// Operations given up for good.
    pub failed: u64,
    /// Operations that were due and never sent.
    pub unsent: u64,
    /// Rows of the operations done.
    pub rows: u64,
    /// Retried and failed tries by class.
    pub errors: BTreeMap<String, u64>,
    /// Statements of the operations done, where they are counted.
    pub statements: Option<u64>,
    /// Seconds of all clients in tries that were tried again, and in the pauses after them.
    pub wait_s: f64,
}

/// One step of one attempt at one scheduled trial.
#[derive(Clone, Debug, PartialEq)]
pub struct StepResult {
    /// Index into the view's cells.
    pub cell: usize,
    pub step: String,
    /// The block, from 1.
    pub block: u32,
    /// The part of the block, from 1; none if blocks are whole.
    pub part: Option<u32>,
    /// The trial's number in the schedule.
    pub trial: u32,
    /// The trial's attempt, from 1; 0 when it never started.
    pub attempt: u32,
    /// The machine, where the campaign runs on several.
    pub host: Option<String>,
    /// Whether the tables are made from this attempt.
    pub is_used: bool,
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
    /// Per kind of operation; empty when nothing was counted.
    pub operations: Vec<OperationCount>,
    /// Kinds of events that a step of a workload file draws.
    pub events: Vec<EventRow>,
    /// Every metric of the catalogue, in its order; empty unless the step finished.
    pub measures: Vec<Measure>,
    /// The hosts that the clients were on; none where they were beside the server.
    pub client_hosts: Vec<ClientHostRecord>,
}

impl StepResult {
    /// A count over all kinds of operations.
    pub fn sum(&self, count: fn(&OperationCount) -> u64) -> u64 {
        self.operations.iter().map(count).sum()
    }
}

pub(crate) fn operation_counts(run: &Run<'_>) -> impl Iterator<Item = OperationCount> {
    run.operations.iter().map(|operation| OperationCount {
        kind: operation.kind.clone(),
        attempts: operation.attempts,
        ok: operation.ok,
        retried: operation.retried,
        failed: operation.failed,
        unsent: operation.unsent,
        rows: operation.rows,
        errors: operation.errors.clone(),
        statements: operation.statements,
        wait_s: operation.wait_ns as f64 / 1e9,
    })
}

pub(crate) fn sum_operations(runs: &[&Run<'_>]) -> Vec<OperationCount> {
    let mut sums: Vec<OperationCount> = Vec::new();
    for count in runs.iter().flat_map(|run| operation_counts(run)) {
        let Some(sum) = sums.iter_mut().find(|sum| sum.kind == count.kind) else {
            sums.push(count);
            continue;
        };
        sum.attempts += count.attempts;
        sum.ok += count.ok;
        sum.retried += count.retried;
        sum.failed += count.failed;
        sum.unsent += count.unsent;
        sum.rows += count.rows;
        sum.wait_s += count.wait_s;
        sum.statements = sum
            .statements
            .zip(count.statements)
            .map(|(sum, of_run)| sum + of_run);
        for (class, errors) in count.errors {
            *sum.errors.entry(class).or_default() += errors;
        }
    }
    sums
}

pub(crate) fn step_result(cell: usize, run: &Run<'_>) -> StepResult {
    StepResult {
        cell,
        step: run.step.name.clone(),
        block: run.unit.block,
        part: run.unit.part,
        trial: run.trial,
        attempt: run.attempt,
        host: run
            .record
            .and_then(|record| record.place().host)
            .map(str::to_owned),
        is_used: run.is_used,
        status: run.status,
        reason: run.reason.clone(),
        operations: operation_counts(run).collect(),
        events: run
            .step
            .events()
            .iter()
            .filter_map(|(kind, _)| event_row(kind, cell, &[run]))
            .collect(),
        measures: run.measures.clone(),
        client_hosts: run
            .done
            .map_or_else(Vec::new, |done| done.client_hosts.clone()),
    }
}
