//! Plans: what a campaign is to run, read from TOML and checked before anything starts.

mod cells;
mod configs;
mod division;
mod document;
mod file;
pub mod format_1;
mod insert_benchmark;
mod keys;
mod operation;
mod read;
mod rocksdb;
mod server;
mod sizes;
mod split;
mod step;
mod sysbench;
mod verdicts;
mod words;
mod work;
mod workload;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use configs::config_error;
pub use division::{Division, divide, in_turns, order_in_turns, results};
pub use file::{FileWork, FileWorkload};
pub use insert_benchmark::{
    Era, InsertBenchmark, InsertWork, Partitions, QueryKind, StepEnd, TablePlacement, WriteArrival,
};
pub use operation::{ALL_EVENTS, Operation};
pub use rocksdb::{
    KEY_BYTES, KvStep, KvWork, MULTIGET_KEYS, RANGE_KEYS, RocksdbBench, StepProcess, VALUE_BYTES,
};
pub use server::{ExternalServer, PasswordSource, ServerPlace, TlsMode};
pub use split::Split;
pub use step::{Background, Effect, Ends, Rate, Rows, Step, WaitRule, Writers};
pub use sysbench::published;
pub use sysbench::{
    INLIST_IDS, LoadMode, POINT_SELECTS, PublishedPosition, STATEMENT_NOTES, StatementMix,
    Sysbench, SysbenchPreset, SysbenchWork, Test, TestGroup, TestKind, TestName,
    VAIN_STATEMENTS_NOTE, published_position,
};
pub use verdicts::{Budget, FEWEST_BLOCKS, Verdicts};
pub use work::{Family, Work};
pub use workload::{Definition, PresetInfo, Workload, presets};

pub use crate::distribution::Distribution;
pub use crate::source::PlanError;

use crate::name::BuildName;
use crate::witness::Limits;

/// A checked plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Part of the campaign's id.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// False for shortened plans: their numbers must not be set beside those of full runs.
    pub comparable: bool,
    /// The cells, in the order of the plan. Tables keep this order.
    pub cells: Vec<Cell>,
    /// Index into `cells` of the one that relative tables divide by.
    pub base: usize,
    /// How often every cell runs.
    pub blocks: u32,
    /// How row counts are verified.
    pub verify: Verify,
    /// The seed, when the plan fixes one.
    pub seed: Option<u64>,
    /// A server that has not answered for this long while no operation was done hangs. In
    /// nanoseconds.
    #[serde(default = "default_watchdog_ns")]
    pub watchdog_ns: u64,
    /// What CPUs do that have nothing to do. Without it the machine's own way in a screen, and
    /// awake where differences are confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_cpus: Option<IdleCpus>,
    /// When the machine counts as disturbed.
    #[serde(default)]
    pub limits: Limits,
    /// The steps that the plan is about, in their order; nothing means all of them. The others only
    /// make the state that these need.
    #[serde(default)]
    pub report: Vec<String>,
    /// How `run` comes to verdicts; without it each cell runs `blocks` times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Verdicts>,
    /// How the tests of a block are divided among hosts; without it a block is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
}

impl Plan {
    /// The steps that verdicts by blocks are about: those that `report` names, of all that are
    /// results or make the data; where it names none all of these.
    pub fn judged_steps(&self) -> Vec<String> {
        let steps = self.cells[self.base].workload.steps().iter();
        let names = steps.filter(|step| step.is_reported).map(|step| &step.name);
        let is_wanted = |name: &&String| self.report.is_empty() || self.report.contains(name);
        names.filter(is_wanted).cloned().collect()
    }

    /// Has it looked so often a second at what the sessions of every cell wait for.
    pub fn sample_waits(&mut self, hz: u32) {
        for cell in &mut self.cells {
            cell.config.waits_hz = Some(hz);
        }
    }
}

/// One minute.
pub(crate) fn default_watchdog_ns() -> u64 {
    60_000_000_000
}

/// Build x config x shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// `build.config`, with `.shape` behind it where the plan has several shapes.
    pub label: String,
    /// The binaries.
    pub build: BuildName,
    /// The server that the plan gives in place of a build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ExternalServer>,
    /// The config's label and where its content comes from.
    pub config: ConfigRef,
    /// The shape's label.
    pub shape: String,
    /// What this cell runs.
    pub workload: Workload,
}

/// A config as the plan names it. Its content is read when the campaign is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigRef {
    /// The name in the cell's label.
    pub label: String,
    /// A file, relative to the plan's folder. Without one the shipped config of that label is
    /// meant.
    pub file: Option<String>,
    /// The shipped config that this one differs from by its settings.
    #[serde(default)]
    pub from: Option<String>,
    /// Settings that are added to the file's or stand alone, in the plan's order of names.
    pub settings: BTreeMap<String, String>,
    /// A command to run the engine's process under, such as `["numactl", "--interleave=all"]`.
    pub prefix: Vec<String>,
    /// Environment variables of the engine's process.
    pub env: BTreeMap<String, String>,
    /// How sessions reach a server.
    #[serde(default)]
    pub transport: Transport,
    /// Which client the workers' sessions go through. Those that TLS protects go through the full
    /// one in any case.
    #[serde(default, skip_serializing_if = "SessionClient::is_default")]
    pub client: SessionClient,
    /// What makes the load.
    #[serde(default, skip_serializing_if = "Driver::is_default")]
    pub driver: Driver,
    /// How often a second it is looked at what the server's sessions wait for; never without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_hz: Option<u32>,
}

/// What makes the load of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Driver {
    /// This program.
    #[default]
    #[serde(rename = "plimsoll")]
    Plimsoll,
    /// RocksDB's own benchmark program, which the build brings.
    #[serde(rename = "db_bench")]
    DbBench,
}

impl Driver {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How sessions reach a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A unix socket in the data directory.
    #[default]
    Socket,
    /// TCP on loopback, on a port that was free a moment ago.
    Tcp,
}

/// Which client the workers' sessions with a server go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionClient {
    /// Our own, which costs least. It does not speak TLS.
    #[default]
    Thin,
    /// The client library that is in common use for the engine.
    Full,
}

impl SessionClient {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What CPUs do that have nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdleCpus {
    /// They wait in a loop, where the kernel lets us ask for it.
    Awake,
    /// They sleep as deeply as the machine lets them.
    Asleep,
}

/// How the rows of the tables are verified, always outside the measured window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Count the rows after every step and checksum all of them after the last. Counting reads an
    /// index; the caches see it.
    Full,
    /// Count the rows after the last step.
    End,
    /// Trust the counts of affected rows that the engine returned.
    Counters,
}

impl Plan {
    /// Reads and checks a plan. `name` stands for the file in errors.
    pub fn parse(name: &str, text: &str) -> Result<Self, PlanError> {
        Self::parse_with(name, text, &|file| Err(format!("{file} is not read here")))
    }

    /// The same for a plan that may name the file of its workload: `read` gives its text, or why it
    /// cannot.
    pub fn parse_with(
        name: &str,
        text: &str,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, PlanError> {
        read::check(name, text, read)
    }

    /// The full name of the step that is called so; a text that calls none stays as it is, and one
    /// that calls different steps in different cells.
    pub fn step_name(&self, text: &str) -> String {
        let mut names: Vec<String> = self
            .cells
            .iter()
            .map(|cell| cell.workload.step_name(text))
            .filter(|name| name != text)
            .collect();
        names.dedup();
        match names.as_slice() {
            [only] => only.clone(),
            _ => text.to_owned(),
        }
    }

    /// Whether the step of this name writes, in any cell.
    pub fn is_writing(&self, step: &str) -> bool {
        let mut steps = self.cells.iter().flat_map(|cell| cell.workload.steps());
        steps.any(|known| known.name == step && known.is_writing())
    }

    /// The cell with this label.
    pub fn cell(&self, label: &str) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.label == label)
    }
}
