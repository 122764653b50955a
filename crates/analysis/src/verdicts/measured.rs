//! Which numbers are judged.

use super::finding::Basis;
use crate::cells::cell_info::CellInfo;
use crate::metrics::{self, Direction, Formula, Metric, sysbench};
use crate::runs::attempts::Run;
use crate::steps::step_view::StepView;

/// What a judged metric is to its step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The step's throughput: its verdict is the step's.
    Throughput,
    /// CPU per operation of the server, or of the whole process if the engine is in it.
    Cpu,
    /// Tails, stalls, context switches and I/O per operation.
    Companion,
}

impl Role {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Cpu => "cpu",
            Self::Companion => "companion",
        }
    }
}

/// Where the pairs of a metric come from by slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Operations and time of turns.
    Rate,
    /// Operations and CPU of turns.
    Cpu,
    /// What the rate of a whole start has less than that of a typical turn.
    Stalls,
    /// The step's number, one per start.
    Step,
}

/// A metric that is judged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub metric: &'static Metric,
    pub role: Role,
    pub source: Source,
}

impl Judged {
    /// The logarithm of a run's value. A cost of next to nothing counts as [`least_cost`]: a ratio
    /// of two such costs says nothing, and from nothing to something it is not infinite.
    pub fn log_value(&self, run: &Run<'_>) -> Option<f64> {
        let value = run.number(self.metric.name)?;
        let value = value.max(least_cost(self.metric));
        (value > 0.0).then(|| value.ln())
    }

    /// Whether a run has more of it than next to nothing.
    pub fn is_above_least(&self, run: &Run<'_>) -> bool {
        let value = run.number(self.metric.name);
        value.is_some_and(|value| value > least_cost(self.metric))
    }
}

/// What an operation costs at least to be worth a ratio: one call or switch in a hundred
/// operations, 1 KiB; 0 of what is not a cost.
fn least_cost(metric: &Metric) -> f64 {
    let is_counted = [
        metrics::SERVER_CSPQ,
        metrics::SERVER_RPQ,
        metrics::SERVER_WPQ,
        metrics::CSPQ,
        metrics::RPQ,
        metrics::WPI,
        sysbench::WPQ,
    ];
    let in_kib = [
        metrics::SERVER_RKBPQ,
        metrics::SERVER_WKBPQ,
        metrics::RKBPQ,
        metrics::WKBPI,
        sysbench::WKBPQ,
    ];
    match metric {
        metric if is_counted.contains(&metric) => 0.01,
        metric if in_kib.contains(&metric) => 1.0,
        _ => 0.0,
    }
}

/// Tails and costs of an operation, each a family of its own. Those of the server by itself are
/// there by slices, too; those of the whole host are not.
const COMPANIONS: [&Metric; 14] = [
    metrics::P99_SERVICE_US,
    metrics::MAX_SERVICE_US,
    metrics::SERVER_CSPQ,
    metrics::SERVER_RPQ,
    metrics::SERVER_RKBPQ,
    metrics::SERVER_WPQ,
    metrics::SERVER_WKBPQ,
    metrics::CSPQ,
    metrics::RPQ,
    metrics::RKBPQ,
    metrics::WPI,
    metrics::WKBPI,
    sysbench::WPQ,
    sysbench::WKBPQ,
];

/// Of whole steps: what is left of a rate after half of a step, and where it is going.
const OF_BLOCKS: [&Metric; 2] = [metrics::SUSTAINED_RATE, metrics::SUSTAINED_SLOPE];

/// All companions that there are, by any design.
pub(crate) fn companions() -> impl Iterator<Item = &'static Metric> {
    [STALLS].into_iter().chain(COMPANIONS).chain(OF_BLOCKS)
}

/// The metrics that are judged in a step, its throughput first. This is the one place that says so.
/// A survey knows how far starts lie apart in throughput and CPU alone.
pub(crate) fn judged(basis: Basis, step: &StepView, base: &CellInfo) -> Vec<Judged> {
    let cpu = if base.is_embedded == Some(true) {
        metrics::PROCESS_CPU_US_PER_OP
    } else {
        metrics::SERVER_CPU_US_PER_OP
    };
    let of = |metric, role, source| Judged {
        metric,
        role,
        source,
    };
    let mut all = vec![
        of(step.rate, Role::Throughput, Source::Rate),
        of(cpu, Role::Cpu, Source::Cpu),
    ];
    if basis == Basis::Slices {
        all.push(of(STALLS, Role::Companion, Source::Stalls));
    }
    if basis == Basis::Blocks {
        all.extend(OF_BLOCKS.map(|metric| of(metric, Role::Companion, Source::Step)));
    }
    if basis != Basis::Screen {
        all.extend(COMPANIONS.map(|metric| of(metric, Role::Companion, Source::Step)));
    }
    all
}

/// What stalls cost. It is not a metric of a step but of pairs: the catalogue does not have it.
pub(crate) const STALLS: &Metric = &Metric {
    name: "whole_to_typical",
    unit: "ratio",
    direction: Direction::Higher,
    decimals: 3,
    formula: "throughput over all turns / throughput of a typical turn, each against the base",
    source: "turns",
    meaning: "what is left of the throughput of typical turns once stalls are counted",
    of: Formula::ImportedOnly,
};

/// How a metric is called in sentences.
pub fn headline(metric: &str) -> String {
    let known = [
        (STALLS, "whole/typical"),
        (metrics::SUSTAINED_RATE, "rate of the last half"),
        (metrics::SUSTAINED_SLOPE, "slope of the last half"),
        (metrics::SERVER_CSPQ, "server cs/op"),
        (metrics::SERVER_RPQ, "server read calls/op"),
        (metrics::SERVER_RKBPQ, "server KiB read/op"),
        (metrics::SERVER_WPQ, "server write calls/op"),
        (metrics::SERVER_WKBPQ, "server KiB written/op"),
        (metrics::P99_SERVICE_US, "p99"),
        (metrics::MAX_SERVICE_US, "max"),
        (metrics::SERVER_CPU_US_PER_OP, "server CPU/op"),
        (metrics::CLIENT_CPU_US_PER_OP, "client CPU/op"),
        (metrics::PROCESS_CPU_US_PER_OP, "process CPU/op"),
        (metrics::CPUPQ, "host CPU/op"),
        (metrics::CSPQ, "cs/op"),
        (metrics::RPQ, "reads/op"),
        (metrics::RKBPQ, "KiB read/op"),
        (metrics::WPI, "writes/insert"),
        (metrics::WKBPI, "KiB written/insert"),
        (sysbench::WPQ, "writes/op"),
        (sysbench::WKBPQ, "KiB written/op"),
    ];
    known
        .iter()
        .find(|(known, _)| known.name == metric)
        .map_or_else(|| metric.to_owned(), |(_, words)| (*words).to_owned())
}
