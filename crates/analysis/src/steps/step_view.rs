//! One step over all cells.

use std::cmp::Reverse;

use plimsoll_core::plan::{
    ALL_EVENTS, PublishedPosition, Step, StepKind, TestGroup, TestName, published_position,
};

use crate::metrics::{self, Metric, rocksdb, sysbench};
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::runs::events::{EventRow, event_rows};
use crate::steps::charts::{Chart, charts};
use crate::steps::counters::{Counter, counters};
use crate::steps::latency::{LatencyTable, ResponseTable, latency_tables, response_tables};
use crate::steps::outcome::{Outcome, outcome};
use crate::steps::shapes::{LevelShape, shapes};
use crate::words::describe::{describe_step, in_turns, level};
use crate::words::waiting;

/// A test's place in the tables of the microbenchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPlace {
    /// The section; none for a step of a workload file.
    pub group: Option<TestGroup>,
    /// The order of the published tables, or of the plan.
    pub position: PublishedPosition,
    /// Clients, where it is one level of a ramp.
    pub level: Option<u32>,
}

/// One step over all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    /// Its name.
    pub name: String,
    /// What it does, one line.
    pub description: String,
    /// Clients of the step, in the first cell that has it.
    pub clients: u32,
    /// Of a sysbench test: its place in their tables.
    pub test: Option<TestPlace>,
    /// The metric of the throughput table: `ips` or `qps`.
    pub rate: &'static Metric,
    /// What one operation is, for metrics per operation: `inserted row`, `indexed row`,
    /// `query`.
    pub operation: &'static str,
    /// One per cell of the view.
    pub outcomes: Vec<Outcome>,
    /// Classic response time tables, per kind of operation.
    pub responses: Vec<ResponseTable>,
    /// Percentiles, per kind of operation.
    pub latencies: Vec<LatencyTable>,
    /// Kinds of events that a step of a workload file draws, by kind and cell.
    pub events: Vec<EventRow>,
    /// What changed from second to second.
    pub charts: Vec<Chart>,
    /// RocksDB: the shape of the tree over time.
    pub shapes: Vec<LevelShape>,
    /// Growth of the engine's counters during the step, one value per cell, those of
    /// [`CounterKind::Front`] first. Counters that stayed zero everywhere are left out.
    pub counters: Vec<Counter>,
}

impl StepView {
    /// Whether it is a step of RocksDB's benchmark, native.
    pub fn is_of_rocksdb(&self) -> bool {
        plimsoll_core::rocksdb_report::OPERATIONS.contains(&self.operation)
    }

    /// Seconds of waiting that the service times of a kind of operation in a cell do not have;
    /// `None` where it is next to nothing.
    pub fn excluded_wait_s(&self, cell: usize, kind: &str) -> Option<f64> {
        let operation = self
            .outcomes
            .get(cell)?
            .operations
            .iter()
            .find(|operation| operation.kind == kind)?;
        waiting::worth_telling(operation.wait_s)
    }

    /// Whether any of its kinds of events had a schedule, and so response times.
    pub fn has_event_responses(&self) -> bool {
        self.events.iter().any(|row| row.response.is_some())
    }
}

pub(crate) fn test_place(step: &Step) -> Option<TestPlace> {
    let test = match &step.kind {
        StepKind::Test(test) => test,
        // The order of the plan: rows that are equal stay as they are.
        StepKind::Mix(_) => {
            return Some(TestPlace {
                group: None,
                position: (0, 0, Reverse(0)),
                level: level(&step.name),
            });
        }
        _ => return None,
    };
    let name = step.name.split('@').next().and_then(TestName::parse)?;
    Some(TestPlace {
        group: Some(test.kind.group()),
        position: published_position(name),
        level: level(&step.name),
    })
}

pub(crate) fn step_view(name: &str, cells: &[CellRuns<'_>]) -> StepView {
    let valued: Vec<Vec<&Run<'_>>> = cells.iter().map(|cell| cell.valued(name)).collect();
    let representative: Vec<Option<&Run<'_>>> =
        valued.iter().map(|runs| runs.first().copied()).collect();
    let step = cells
        .iter()
        .find_map(|cell| cell.step(name))
        .expect("a step's name comes from a cell");
    let rate = match (step.primary_operation(), &step.kind) {
        ("insert" | "index", _) => metrics::IPS,
        ("scan", StepKind::Test(_)) => sysbench::KRPS,
        (_, StepKind::Test(_) | StepKind::Mix(_)) => sysbench::QPS,
        (_, StepKind::Kv(_)) => rocksdb::QPS,
        _ => metrics::QPS,
    };
    StepView {
        clients: step.clients,
        test: test_place(step),
        name: name.to_owned(),
        description: describe_step(step) + &in_turns(cells[0].campaign, step),
        rate,
        operation: match step.primary_operation() {
            "insert" => "inserted row",
            "index" => "indexed row",
            "scan" if matches!(step.kind, StepKind::Test(_)) => "thousand rows",
            "transaction" | ALL_EVENTS => "statement",
            other => other,
        },
        outcomes: cells
            .iter()
            .zip(&valued)
            .map(|(cell, valued)| outcome(name, rate, cell, valued))
            .collect(),
        responses: response_tables(&valued),
        latencies: latency_tables(&valued),
        events: event_rows(step, &valued),
        charts: charts(&representative),
        shapes: shapes(&representative),
        counters: counters(&representative),
    }
}
