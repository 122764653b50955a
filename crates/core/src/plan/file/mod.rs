//! A workload that the user wrote, as a plan describes it.

use serde::{Deserialize, Serialize};

mod read;

pub(in crate::plan) use read::ReadFile;

use crate::plan::{Step, TestRate, WaitRule};

/// Sizes and settings of one cell. The file itself is kept as text: a campaign is resumed without
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileWorkload {
    /// The file, as the plan names it.
    pub workload_file: String,
    /// The name that it gives itself.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Clients, each with one connection.
    pub clients: u32,
    /// Tables.
    pub tables: u32,
    /// Rows of all tables.
    pub rows: u64,
    /// Whether statements are prepared by the server, but for those that the file sends as text.
    pub prepared: bool,
    /// The pause after the load, while the engine drains.
    pub wait: WaitRule,
    /// The steps, in order: `load`, then those of the plan.
    pub steps: Vec<Step>,
}

/// A step of events that are drawn by weight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MixStep {
    /// Events of the file, and their weights.
    pub events: Vec<(String, u32)>,
    /// The measured time, in nanoseconds.
    pub duration_ns: u64,
    /// Time before it that is not measured, in nanoseconds.
    pub warm_up_ns: u64,
    /// Events per second of all clients together, and how they arrive; without it each client sends
    /// the next one when the last is done.
    pub rate: Option<TestRate>,
}
