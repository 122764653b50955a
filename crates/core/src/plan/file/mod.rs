//! A workload that the user wrote, as a plan describes it.

use serde::{Deserialize, Serialize};

pub(super) mod read;
pub(super) mod steps;
mod words;

pub(in crate::plan) use read::ReadFile;

use crate::plan::{LoadMode, Step, WaitRule};

/// Sizes and settings of one cell. The file itself is kept as text: a campaign is resumed without
/// it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileWorkload {
    /// The file, as the plan names it.
    pub workload_file: String,
    /// The name that it gives itself.
    pub title: String,
    pub text: String,
    /// Clients, each with one connection.
    pub clients: u32,
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

/// What a step of a workload file does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileWork {
    /// Creates the tables, loads and indexes them.
    Fill {
        /// Tables of the file.
        tables: u32,
        /// Rows of all tables.
        rows: u64,
        /// How they are loaded.
        load: LoadMode,
    },
    /// Events that are drawn by weight.
    Mix {
        /// Events of the file, and their weights.
        events: Vec<(String, u32)>,
    },
}
