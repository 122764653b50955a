//! What a trial reports to its orchestrator: one JSON value a line on the trial's standard output.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_core::plan::{Cell, Step, Verify};
use plimsoll_engine::{InstalledBuild, Password};
use plimsoll_store::Placement;
use serde::{Deserialize, Serialize};

use crate::clients::ClientHosts;

/// What a trial is to do: the first line of its standard input. The others are `stop` and, for a
/// trial in turns, a [`TurnCommand`] each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TrialOrder {
    pub trial: u32,
    pub attempt: u32,
    pub block: u32,
    /// The part of the block, whose steps are those of `cell`; none if blocks are whole.
    #[serde(default)]
    pub part: Option<u32>,
    pub cell: Cell,
    /// The unpacked build; none for engines inside this program.
    pub build: Option<InstalledBuild>,
    pub settings: BTreeMap<String, String>,
    /// The campaign's id, which is in the first event and marks tables on a server that is not ours.
    pub campaign: String,
    /// Of the external server, if the cell has one that needs it. It is on the pipe alone.
    pub password: Option<Password>,
    pub seed: u64,
    pub verify: Verify,
    /// A server that does not answer for this long hangs.
    pub watchdog_ns: u64,
    /// Whether idle CPUs are kept from sleeping, where that is possible.
    #[serde(default)]
    pub keeps_cpus_awake: bool,
    /// Steps that were done on the data before it was copied for this trial. Without any the data
    /// directory is new and empty.
    #[serde(default)]
    pub before: Vec<Step>,
    /// Whether the data is to be copied afterwards: then the last step is drained too, and a server
    /// that does not stop cleanly fails.
    #[serde(default)]
    pub makes_state: bool,
    /// Which CPUs workers and server have.
    #[serde(default)]
    pub placement: Option<Placement>,
    /// Whether its steps are done in turns.
    #[serde(default)]
    pub has_turns: bool,
    /// Whether it tests the machine first.
    #[serde(default)]
    pub has_canary: bool,
    /// How long the server is profiled in each step; none in trials that measure.
    #[serde(default)]
    pub profile_ns: Option<u64>,
    /// Which of the loads of its cell's data it begins with, from 1; none if there is one only.
    #[serde(default)]
    pub load: Option<u32>,
    /// The trial's folder in the store. This and the next are absolute: what a trial is started by
    /// may have another working directory.
    pub dir: PathBuf,
    pub data_dir: PathBuf,
    /// The name of the machine it runs on, where a campaign runs on several.
    #[serde(default)]
    pub host: Option<String>,
    /// Where the clients of its steps are; none for beside the server.
    #[serde(default)]
    pub clients: Option<ClientHosts>,
    /// When the orchestrator has said nothing for this long, it counts as gone.
    pub patience_ns: u64,
}

impl TrialOrder {
    /// Which link of its build it runs, from 1: in turns that of its load, else the first; none if
    /// the build was linked once.
    pub fn link(&self) -> Option<u32> {
        let load = self.load.filter(|_| self.has_turns);
        self.build.as_ref()?.link_of(load)
    }
}

/// The exit code of a trial that could not even write down that it hangs. The last line of its log
/// says what hangs.
pub(crate) const HUNG_EXIT: i32 = 70;

/// The reason of what hangs begins so.
pub(crate) const HUNG: &str = "hung";

/// How often an orchestrator, and a trial without turns, says that it lives.
pub(crate) const BEAT: Duration = Duration::from_secs(5);

/// Whoever says nothing for this long is gone: the orchestrator for its trial, and a trial without
/// turns for the orchestrator. Both say something every [`BEAT`].
pub(crate) const SILENCE_LIMIT: Duration = Duration::from_secs(120);

/// The orchestrator's line that asks for nothing.
pub(crate) const LIVES: &str = "beat";

/// The orchestrator's command that ends the step in flight and the trial.
pub(crate) const STOP: &str = "stop";

/// What the orchestrator sends to a trial in turns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TurnCommand {
    /// Who else takes part in the step: the processes of the other candidates' servers, and of the
    /// campaign besides.
    Peers { servers: Vec<u32>, others: Vec<u32> },
    /// The workers may work for this long.
    Turn(TurnOrder),
    /// The step is over.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnOrder {
    /// From 1; 0 warms up and is not recorded.
    pub round: u32,
    pub position: u32,
    pub length_ns: u64,
    /// How much of its beginning does not count.
    pub discarded_ns: u64,
    /// How many candidates have a turn in this round.
    pub candidates: u32,
}

/// What a trial reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialMessage {
    /// The process lives, whatever its engine does.
    Beat,
    /// A step is about to start.
    StepStart {
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
        step: String,
        /// Its length.
        seconds: f64,
        /// Its rate and unit, for people.
        summary: String,
    },
    /// The engine drains, and the plan waits.
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
    /// All workers of a step in turns are connected and parked.
    Ready {
        step: String,
        /// The server's processes.
        servers: Vec<u32>,
    },
    /// A turn is over, and the workers are parked.
    TurnDone(TurnDone),
    /// The trial ends early.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A turn that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnDone {
    /// The round, from 1; 0 was for warming up.
    pub round: u32,
    /// Operations of the primary kind that count: see the store's `Turn`.
    pub operations: u64,
    /// The time they took.
    pub active_ns: u64,
    /// The mean time of one of them; none where there was none.
    pub operation_ns: Option<u64>,
    /// CPU of the server meanwhile.
    pub server_cpu_ns: Option<u64>,
    /// CPU of the other candidates' servers meanwhile.
    pub other_servers_cpu_ns: Option<u64>,
    /// CPU of the server since its turn before: see the store's `Turn`.
    pub left_cpu_ns: Option<u64>,
    /// All of the server's processes, where there are some that it did not have before.
    pub new_servers: Option<Vec<u32>>,
}

/// How a step goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepProgress {
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
