//! What happens in a trial, one event a line in `events.jsonl`.

use std::collections::BTreeMap;

use plimsoll_core::plan::Operation;
use plimsoll_core::readings::Readings;
use plimsoll_core::record::{ClientHostRecord, ClientRecord, OperationRecord, TableCheck};
use serde::{Deserialize, Serialize};

/// One thing that happened. Every event is a fact: metrics are computed from them later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The first event: who runs what.
    TrialStart(TrialStart),
    /// The engine is up.
    ServerReady(ServerReady),
    /// What the machine could do before the trial.
    Canary(Canary),
    /// A step's workers are about to connect.
    StepStart(StepStart),
    /// A step ended and its rows are verified.
    StepDone(Box<StepDone>),
    /// A step did not end as it should; its trial ends here.
    StepFailed(StepFailed),
    /// The engine's debt was worked off and the plan's wait is over.
    DrainDone(DrainDone),
    /// The trial is complete.
    TrialDone(TrialDone),
    /// The trial's process or its server died.
    ServerCrashed(ServerCrashed),
    /// The trial ended early for another reason: it could not start, or it was interrupted.
    TrialFailed(TrialFailed),
    /// The machine was disturbed from outside while the trial ran, or before it: its numbers are
    /// set aside.
    Suspect(Suspect),
}

/// See [`Event::TrialStart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialStart {
    /// The trial's number in the schedule.
    pub trial: u32,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The cell's label.
    pub cell: String,
    /// The block.
    pub block: u32,
    /// The part of the block; none if blocks are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// The campaign's id: two campaigns of one plan and seed have the same trials. None in trials
    /// of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<String>,
    /// The campaign's seed.
    pub seed: u64,
    /// `plimsoll_core::METHODOLOGY_VERSION`.
    pub methodology_version: u32,
    /// The trial's process.
    pub pid: u32,
    /// Its start time in clock ticks since boot (/proc/PID/stat field 22): with the pid it names
    /// one process.
    pub pid_start_ticks: u64,
    /// The machine's boot id, without which the ticks mean nothing.
    pub boot_id: String,
    /// Which of the loads of its cell's data it begins with, from 1; none if there is one only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<u32>,
    /// Which link of its build it ran, from 1; none if the build was linked once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// By slices the steps that it is to run, in their order: a start need not have all of the
    /// plan's. Empty in other trials, and in trials of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The name of the machine, where the campaign runs on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// A hash that names the machine without describing it; none in trials of earlier versions and
    /// where the machine has no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
}

/// See [`Event::ServerReady`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerReady {
    /// The engine's version as it states it.
    pub version: String,
    /// Compiler and compile options.
    pub build_options: Vec<String>,
    /// Whether it lives in the trial's own process.
    pub embedded: bool,
    /// The settings it really runs with.
    pub effective_settings: BTreeMap<String, String>,
    /// What the workers' sessions are like, as read back on one that was opened as theirs are:
    /// `character_set`, `isolation`, `tls`, ... None where there are none, and in trials of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<BTreeMap<String, String>>,
    /// Maintenance that the engine would begin by the clock, and that is held while it takes turns
    /// with others: `autovacuum`. None by blocks, and in trials of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// From the start to readiness.
    pub seconds: f64,
}

/// See [`Event::Canary`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Canary {
    /// Iterations per microsecond of a fixed integer loop.
    pub integer_per_us: f64,
    /// Bytes per second of reading memory that no cache holds.
    pub memory_bytes_per_s: f64,
    /// Median nanoseconds of a write of 4 KiB with `fdatasync` in the data folder; null where it
    /// takes no file.
    pub sync_ns: Option<f64>,
}

/// See [`Event::Suspect`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// What a witness saw. Never a result of the trial.
    pub reason: String,
}

/// See [`Event::StepStart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepStart {
    pub step: String,
}

/// See [`Event::StepDone`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepDone {
    pub step: String,
    /// The operation whose rate and latency stand for the step.
    pub primary: Operation,
    /// From the common start of all workers to the end of the last.
    pub elapsed_ns: u64,
    /// Per kind of operation.
    pub operations: Vec<OperationRecord>,
    /// Per client and kind.
    pub clients: Vec<ClientRecord>,
    /// What the host did meanwhile. Names and units as `plimsoll_host` documents them.
    pub host: Readings,
    /// What the engine counted meanwhile.
    pub engine_counters: BTreeMap<String, i64>,
    /// The row counts, where this step verified them.
    pub tables: Vec<TableCheck>,
    /// Facts of the workload worth keeping: average rows fetched per query, seconds to find the
    /// smallest id, ...
    pub notes: BTreeMap<String, f64>,
    /// Set when the step's background writers missed their rate: achieved, as a share of the
    /// target.
    pub sla_missed: Option<f64>,
    /// The hosts that its clients were on; none where they were beside the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub client_hosts: Vec<ClientHostRecord>,
}

/// See [`Event::StepFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepFailed {
    pub step: String,
    /// Why, with the statement where there is one. Begins with `hung` when the engine stopped
    /// answering: that is not a failure of a statement.
    pub reason: String,
    /// What was counted until then.
    pub operations: Vec<OperationRecord>,
}

/// See [`Event::DrainDone`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainDone {
    /// The step before it.
    pub step: String,
    /// What was done.
    pub actions: Vec<DrainStep>,
    /// Time in those actions.
    pub drained_s: f64,
    /// Time then waited until the plan's wait was over.
    pub waited_s: f64,
}

/// One action of a drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrainStep {
    /// The statement or action.
    pub action: String,
    /// How long it took.
    pub seconds: f64,
    /// What it answered.
    pub result: String,
}

/// See [`Event::TrialDone`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialDone {
    /// The whole trial.
    pub seconds: f64,
    /// What went wrong when the server was stopped after its last step, if anything did. No result
    /// depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_problem: Option<String>,
}

/// See [`Event::ServerCrashed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCrashed {
    /// The step it died in, if one was running.
    pub step: Option<String>,
    /// The exit status or signal.
    pub status: String,
    /// The end of its log.
    pub log_tail: String,
}

/// See [`Event::TrialFailed`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialFailed {
    /// Why. Begins with `hung` when the engine stopped answering.
    pub reason: String,
    /// True when the user or a signal ended it: nothing is wrong with the engine.
    pub interrupted: bool,
}

impl Event {
    /// The step an event belongs to.
    pub fn step(&self) -> Option<&str> {
        match self {
            Self::StepStart(event) => Some(&event.step),
            Self::StepDone(event) => Some(&event.step),
            Self::StepFailed(event) => Some(&event.step),
            Self::DrainDone(event) => Some(&event.step),
            Self::ServerCrashed(event) => event.step.as_deref(),
            Self::TrialStart(_)
            | Self::ServerReady(_)
            | Self::Canary(_)
            | Self::TrialDone(_)
            | Self::TrialFailed(_)
            | Self::Suspect(_) => None,
        }
    }
}
