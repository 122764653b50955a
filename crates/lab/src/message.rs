//! What a trial tells its orchestrator: one JSON value a line on the trial's standard output.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plimsoll_core::plan::{Cell, Verify};
use plimsoll_engine::{InstalledBuild, Password};
use serde::{Deserialize, Serialize};

/// What a trial is to do: the first line of its standard input. The only other line is `stop`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialOrder {
    pub trial: u32,
    pub attempt: u32,
    pub block: u32,
    pub cell: Cell,
    /// The unpacked build; none for engines inside this program.
    pub build: Option<InstalledBuild>,
    pub settings: BTreeMap<String, String>,
    /// The campaign's id, which marks tables on a server that is not ours.
    pub campaign: String,
    /// Of the given server, if the cell has one that needs it. It is on the pipe alone.
    pub password: Option<Password>,
    pub seed: u64,
    pub verify: Verify,
    /// A server that does not answer for this long hangs.
    pub watchdog_ns: u64,
    /// The trial's folder in the store.
    pub dir: PathBuf,
    /// The data directory, new and empty.
    pub data_dir: PathBuf,
    /// The orchestrator.
    pub parent_pid: u32,
}

/// The exit code of a trial that could not even write down that it hangs. The last line of its log says what hangs.
pub(crate) const HUNG_EXIT: i32 = 70;

/// The orchestrator's only command.
pub(crate) const STOP: &str = "stop";

/// What a trial says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialMessage {
    /// A step is about to start.
    StepStart {
        /// The step.
        step: String,
        /// Its position, from 1.
        index: usize,
        /// Steps of the trial.
        steps: usize,
    },
    /// A step goes on.
    Progress(StepProgress),
    /// A step is done and verified.
    StepDone {
        /// The step.
        step: String,
        /// Its length.
        seconds: f64,
        /// Its rate and unit, for people.
        summary: String,
    },
    /// The engine works off its debt, and the plan waits.
    Draining {
        /// At least this long.
        seconds: f64,
    },
    /// That is over.
    Drained {
        /// Time the engine worked.
        drained_s: f64,
        /// Time waited after that.
        waited_s: f64,
    },
    /// The trial ends early.
    Failed {
        /// Why.
        reason: String,
    },
}

/// How a step goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepProgress {
    /// The step.
    pub step: String,
    /// Its position, from 1.
    pub index: usize,
    /// Steps of the trial.
    pub steps: usize,
    /// Seconds since its start.
    pub elapsed_s: f64,
    /// Done so far and in all: rows, or seconds for steps that have a length.
    pub done: f64,
    /// See `done`.
    pub total: f64,
    /// `rows` or `s`.
    pub measure: String,
    /// Operations per second in the last second or so.
    pub rate_now: f64,
    /// Operations per second since the start.
    pub rate_mean: f64,
    /// `rows/s`, `queries/s`.
    pub rate_unit: String,
    /// 99th percentile of service time in the last second.
    pub p99_ns: Option<u64>,
    /// Expected rest.
    pub eta_s: Option<f64>,
    /// Tries that were retried or failed.
    pub unsuccessful: u64,
}
