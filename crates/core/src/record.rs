//! What a step leaves behind: the raw facts from which every metric is computed later.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use crate::histogram::EncodedHistogram;

/// All operations of one kind in one step, over all clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// `insert`, `delete`, `query`, `index`, `scan`.
    pub kind: String,
    /// Tries. Always `ok + retried + failed`.
    pub attempts: u64,
    /// Operations done.
    pub ok: u64,
    /// Tries that were given up and tried again.
    pub retried: u64,
    /// Operations given up for good.
    pub failed: u64,
    /// Rows written, deleted or fetched by the operations done.
    pub rows: u64,
    /// Retried and failed tries by class.
    pub errors: BTreeMap<String, u64>,
    /// Statements of the operations done, where an operation is a drawn event of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statements: Option<u64>,
    /// Time in retried tries and in the pauses after them, all workers together.
    pub wait_ns: u64,
    /// Time of all workers of this kind from their start to their end.
    pub worker_ns: u64,
    /// `done - sent` of the operations done; its count is `ok`.
    pub service: EncodedHistogram,
    /// Operations that were due before the end of the schedule and never sent. Open loop only.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unsent: u64,
    /// What the unsent had waited when their worker ended, which their response and lag are at
    /// least; its count is `unsent`. These values are in `response` and `lag`, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsent_response: Option<EncodedHistogram>,
    /// `done - due` of the operations done, and what the unsent had waited; its count is
    /// `ok + unsent`. Open loop only.
    pub response: Option<EncodedHistogram>,
    /// `sent - due` of the first try, and what the unsent had waited. Open loop only.
    pub lag: Option<EncodedHistogram>,
    /// Service time of retried and failed tries; its count is `retried + failed`.
    pub unsuccessful: Option<EncodedHistogram>,
    /// How the schedule was kept. Open loop only.
    pub pacing: Option<Pacing>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The share of its rate that an open loop has to reach, over a step and in each second: the SLA of
/// the original Insert Benchmark.
pub const SLA_SHARE: f64 = 0.95;

/// How well an open loop kept its schedule, over all clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pacing {
    /// Operations per second asked for, all clients together.
    pub target_per_s: f64,
    /// Operations per second achieved: the sum over clients of operations done / that client's
    /// active seconds.
    pub achieved_per_s: f64,
    /// Whole seconds of the schedule.
    pub seconds: u64,
    /// Those in which less than 95 % of the operations due in them were done.
    pub seconds_under: u64,
    /// Operations due before the end of the schedule and not done one second after it.
    pub backlog: u64,
}

/// One client's part in one kind of operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// The client, from 1.
    pub client: u32,
    /// The kind of operation.
    pub kind: String,
    /// Operations done.
    pub ok: u64,
    /// Rows of those operations.
    pub rows: u64,
    /// From the step's start to the start of this worker's active window; 0 unless the worker came
    /// to this kind after others.
    pub from_ns: u64,
    /// From the step's start to the end of this worker's last try, or of its schedule or time where
    /// that is later.
    pub to_ns: u64,
    /// What it did in turns, those for warming up and their discarded parts left out; none in a
    /// step without turns, and in campaigns before methodology version 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<TurnSums>,
}

/// A worker's operations over all turns, and the time they took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnSums {
    /// Operations done.
    pub operations: u64,
    /// The time that they took, in nanoseconds.
    pub active_ns: u64,
}

/// A client host's part in a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientHostRecord {
    /// Its name in the user's file of hosts.
    pub host: String,
    /// A hash that names the machine without describing it; none where it has no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// Its processors' model.
    pub cpu_model: String,
    /// Its processors.
    pub cpus: u32,
    /// Whether it is the server's own machine under another name, so that both share its CPUs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shares_machine: bool,
    /// Its clients, the first and the last, from 1.
    pub clients: (u32, u32),
    /// Its monotonic clock less that of the server's host, before the step. Both begin with their
    /// machine: only a change of it means something.
    pub offset_ns: i64,
    /// The shortest round trip of the connection that the hosts talk over. Half of it is what the
    /// offset is known to.
    pub link_rtt_min_ns: u64,
    /// The median of the same.
    pub link_rtt_p50_ns: u64,
    /// How much its clock gained during the step, in millionths; none for steps below 10 s, which
    /// are too short to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
    /// The shortest round trip of `select 1` to the server before the step.
    pub query_rtt_min_ns: u64,
    /// The median of the same.
    pub query_rtt_p50_ns: u64,
    /// How long before the common start it knew of it.
    pub start_margin_ns: u64,
    /// CPU seconds of its process from the end of the warm-up, or from the start without one, to the
    /// end of its last worker.
    pub cpu_s: f64,
}

/// The result of counting a table's rows outside the measured window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableCheck {
    pub table: String,
    /// Rows it must hold: loaded + inserted - deleted, by the plan.
    pub expected_rows: u64,
    /// Rows it holds.
    pub found_rows: u64,
    /// A checksum over all rows in primary key order, when the plan asks for `verify = "full"`.
    pub checksum: Option<String>,
}
