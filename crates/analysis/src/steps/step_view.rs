//! One step over all cells.

use std::cmp::Reverse;

use plimsoll_core::plan::{
    Family, Operation, PublishedPosition, Step, TestGroup, TestName, published_position,
};

use crate::metrics::{Metric, MetricSet, rate_of};
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::runs::events::{EventRow, event_rows};
use crate::steps::charts::{Chart, charts};
use crate::steps::counters::{Counter, counters};
use crate::steps::latency::{LatencyTable, ResponseTable, latency_tables};
use crate::steps::outcome::{Outcome, outcome};
use crate::steps::shapes::{LevelShape, shapes};
use crate::words::describe::in_turns;
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

/// One operation of steps that count rows, in words.
pub(crate) const INSERTED_ROW: &str = "inserted row";
pub(crate) const INDEXED_ROW: &str = "indexed row";

/// One step over all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct StepView {
    pub name: String,
    /// What it does, one line.
    pub description: String,
    /// Clients of the step, in the first cell that has it.
    pub clients: u32,
    /// The benchmark that it is a step of; `None` for imported steps.
    pub family: Option<Family>,
    /// The metrics it has.
    pub set: MetricSet,
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
    /// A step without results that belongs to no benchmark.
    pub(crate) fn bare(name: &str, rate: &'static Metric, operation: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            clients: 0,
            family: None,
            set: MetricSet::Classic,
            test: None,
            rate,
            operation,
            outcomes: Vec::new(),
            responses: Vec::new(),
            latencies: Vec::new(),
            events: Vec::new(),
            charts: Vec::new(),
            shapes: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// Whether it is the step that creates indexes, imported or native.
    pub fn makes_indexes(&self) -> bool {
        self.operation == INDEXED_ROW
    }

    /// A cell's rate by that of the first one; `None` where either did nothing.
    pub fn ratio(&self, cell: usize) -> Option<f64> {
        let base = self.outcomes[0].number(self.rate)?;
        let value = self.outcomes[cell].number(self.rate)?;
        (base > 0.0 && value > 0.0).then(|| value / base)
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
    let position = match (step.operation, step.test_group()) {
        // Events keep the order of the plan: rows that are equal stay as they are.
        (Operation::Event, _) => (0, 0, Reverse(0)),
        (_, None) => return None,
        (_, Some(_)) => {
            let name = step.name.split('@').next().and_then(TestName::parse)?;
            published_position(name)
        }
    };
    Some(TestPlace {
        group: step.test_group(),
        position,
        level: step.ramp_level(),
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
    let rate = rate_of(step);
    let (responses, latencies) = latency_tables(&valued);
    StepView {
        clients: step.clients,
        family: Some(step.family()),
        set: MetricSet::of(step.family(), step.operation),
        test: test_place(step),
        name: name.to_owned(),
        description: step.description() + &in_turns(cells[0].campaign, step),
        rate,
        operation: match step.operation {
            Operation::Insert => INSERTED_ROW,
            Operation::Index => INDEXED_ROW,
            Operation::Scan if step.family() == Family::Sysbench => "thousand rows",
            Operation::Transaction | Operation::Event => "statement",
            other => other.as_str(),
        },
        outcomes: cells
            .iter()
            .zip(&valued)
            .map(|(cell, valued)| outcome(name, rate, cell, valued))
            .collect(),
        responses,
        latencies,
        events: event_rows(step, &valued),
        charts: charts(&representative),
        shapes: shapes(&representative),
        counters: counters(&representative),
    }
}
