//! On whose machines a campaign runs, when that is not the one it was made on.

use serde::{Deserialize, Serialize};

/// The member `fleet` of `campaign.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fleet {
    /// Machines that are reached by ssh, each with a block at a time.
    Hosts {
        /// As the user's file of hosts calls them.
        names: Vec<String>,
        /// The machine type that all of them are of, if it was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        class: Option<String>,
    },
    /// Nodes that Slurm gives out, each job with one block.
    Slurm {
        /// The nodes' folder for data directories and trials.
        spool: String,
    },
}
