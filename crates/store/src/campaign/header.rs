//! What a campaign is: written once, before its first trial.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Budget, Plan};
use plimsoll_core::schedule::ScheduledTrial;
use serde::{Deserialize, Serialize};

use crate::campaign::clients::ClientHostsHeader;
use crate::campaign::confirm::Confirm;
use crate::campaign::fleet::Fleet;

/// The version of the folder format. A reader refuses a newer one.
pub const FORMAT: u32 = 2;

/// `campaign.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignHeader {
    /// [`FORMAT`].
    pub format: u32,
    /// `<UTC stamp>-<plan name>`, the folder's name.
    pub id: String,
    /// When it was made, RFC 3339 in UTC.
    pub created: String,
    /// The version of this program.
    pub plimsoll_version: String,
    /// `plimsoll_core::METHODOLOGY_VERSION` of the program that made it.
    pub methodology_version: u32,
    /// The seed of schedule and data.
    pub seed: u64,
    /// The plan's text as it was given.
    pub plan_text: String,
    /// The checked plan.
    pub plan: Plan,
    /// What each of the plan's cells runs, in the plan's order.
    pub cells: Vec<CellHeader>,
    /// The trials, in order.
    pub schedule: Vec<ScheduledTrial>,
    /// Where the trials' data directories are.
    pub data_dir: String,
    /// The design of the experiment, when the campaign confirms what another has found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// The machines that its blocks run on, when that is not this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<Fleet>,
    /// The machines that the clients of its steps are on, when that is not the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_hosts: Option<ClientHostsHeader>,
}

impl CampaignHeader {
    /// Whether what it points at is there: a place in the schedule, the base, what each cell runs.
    pub(crate) fn is_consistent(&self) -> bool {
        let count = self.plan.cells.len();
        let of_schedule = self.schedule.iter().map(|trial| trial.cell);
        // An imported campaign may have no cells to run.
        let base = (count > 0).then_some(self.plan.base);
        of_schedule.chain(base).all(|cell| cell < count) && self.cells.len() == count
    }

    /// Whether a cell is the second instance of a confirm's base, and no candidate.
    pub fn is_control(&self, label: &str) -> bool {
        self.confirm
            .as_ref()
            .is_some_and(|confirm| confirm.control == label)
    }

    /// The budget of a confirm campaign that has one.
    pub fn budget(&self) -> Option<&Budget> {
        self.confirm.as_ref()?.budget.as_ref()
    }
}

/// A build as found when the campaign was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildHeader {
    /// Its exact name.
    pub name: String,
    /// sha256 of the server binary.
    pub server_sha256: String,
    /// What must be equal for builds to be strictly comparable: packager, compiler, flags.
    pub toolchain: BTreeMap<String, String>,
    /// sha256 of each link of the server; empty if it was linked once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<String>,
}

/// A cell's build and config as found when the campaign was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellHeader {
    /// `build.config[.shape]`.
    pub label: String,
    /// The version the build states.
    pub version: String,
    /// Where the build comes from.
    pub origin: String,
    /// The build's files, for engines that are not inside this program.
    #[serde(default)]
    pub build: Option<BuildHeader>,
    /// Why the build could not be fetched; until it can, the cell's trials do not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_build: Option<String>,
    /// Where the config comes from: a file as the plan names it, `shipped`, or `plan`.
    pub config_source: String,
    /// The config's settings.
    pub settings: BTreeMap<String, String>,
}
