//! What a report says of a cell before any number, and why it cannot be compared.

use std::collections::BTreeMap;

use plimsoll_core::plan::Cell;
use plimsoll_core::toolchain::{self, Caveat};
use plimsoll_store::CampaignRecord;

use crate::cells::machines;
use crate::cells::selection::Candidate;
use crate::runs::attempts::server_ready;
use crate::runs::cell_runs::{CellRuns, first_record};

#[derive(Clone, Debug, PartialEq)]
pub struct CellInfo {
    /// `build.config[.shape]`; with the campaign behind it where several campaigns have the same.
    pub label: String,
    /// Index into the campaigns.
    pub campaign: usize,
    pub build: String,
    /// The version it states.
    pub version: String,
    /// Where it comes from.
    pub origin: String,
    pub config: String,
    /// Where the config comes from.
    pub config_source: String,
    /// The settings the config asks for.
    pub config_settings: BTreeMap<String, String>,
    pub shape: String,
    /// `4 clients, a table each, 20M rows loaded per client`.
    pub workload: String,
    /// Whether the engine lives in the client's process; unknown before its first start.
    pub is_embedded: Option<bool>,
    /// Compiler and compile options, as the engine states them.
    pub build_options: Vec<String>,
    /// sha256 of the server binary; `None` for an engine inside this program.
    pub server_sha256: Option<String>,
    /// Packager, compiler and flags, under the names of [`plimsoll_core::toolchain`]. Empty for an
    /// engine inside this program.
    pub toolchain: BTreeMap<String, String>,
    /// Why its build and the base's are not strictly comparable.
    pub caveat: Option<Caveat>,
    /// What the workers' sessions are like, as read back; empty where that is not known.
    pub session: BTreeMap<String, String>,
    /// What tells its machine from others, by name; empty where that is not known.
    pub machine: BTreeMap<&'static str, String>,
    /// How its machine differs from the base's.
    pub other_machine: Option<String>,
    /// Index into the view's cells of the one that its numbers are divided by: the first, among
    /// RocksDB's versions the base of its group.
    pub base: usize,
}

impl CellInfo {
    /// What follows a cell's name wherever its numbers are divided by the base's.
    pub fn mark(&self) -> &'static str {
        match (self.caveat.is_some(), self.other_machine.is_some()) {
            (true, true) => " †‡",
            (true, false) => " †",
            (false, true) => " ‡",
            (false, false) => "",
        }
    }
}

/// A label says its campaign only where another campaign has the same cell.
pub(crate) fn candidate(
    campaigns: &[CampaignRecord],
    all: &[(usize, usize)],
    (campaign, cell): (usize, usize),
) -> Candidate {
    let plan_cell = |(campaign, cell): (usize, usize)| -> &Cell {
        &campaigns[campaign].header.plan.cells[cell]
    };
    let this = plan_cell((campaign, cell));
    let is_shared = all
        .iter()
        .any(|other| other.0 != campaign && plan_cell(*other).label == this.label);
    let label = if is_shared {
        format!("{} in {}", this.label, campaigns[campaign].header.id)
    } else {
        this.label.clone()
    };
    Candidate {
        label,
        build: this.build.to_string(),
    }
}

pub(crate) fn cell_info(cell: &CellRuns<'_>, label: &str, campaign: usize) -> CellInfo {
    let header = cell
        .campaign
        .header
        .cells
        .iter()
        .find(|header| header.label == cell.cell.label);
    let ready = first_record(cell, |record| server_ready(record));
    let text = |pick: fn(&plimsoll_store::header::CellHeader) -> &String| {
        header.map(pick).cloned().unwrap_or_default()
    };
    let build = header.and_then(|header| header.build.as_ref());
    // A path of this machine says nothing to the reader of a report.
    let config_source = text(|header| &header.config_source);
    let config_source = config_source
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    CellInfo {
        label: label.to_owned(),
        campaign,
        build: cell.cell.build.to_string(),
        version: ready.map_or_else(
            || text(|header| &header.version),
            |ready| ready.version.clone(),
        ),
        origin: text(|header| &header.origin),
        config: cell.cell.config.label.clone(),
        config_source,
        config_settings: header
            .map(|header| header.settings.clone())
            .unwrap_or_default(),
        shape: cell.cell.shape.clone(),
        workload: cell.cell.workload.description(),
        is_embedded: ready.map(|ready| ready.embedded),
        build_options: ready
            .map(|ready| ready.build_options.clone())
            .unwrap_or_default(),
        server_sha256: build.map(|build| build.server_sha256.clone()),
        toolchain: build
            .map(|build| build.toolchain.clone())
            .unwrap_or_default(),
        caveat: None,
        session: ready
            .and_then(|ready| ready.session.clone())
            .unwrap_or_default(),
        machine: BTreeMap::new(),
        other_machine: None,
        base: 0,
    }
}

/// Builds are compared with the base's. Cells of one build differ in nothing; an engine inside this
/// program was compiled with it.
pub(crate) fn mark_incomparable(infos: &mut [CellInfo]) {
    let Some((base, others)) = infos.split_first_mut() else {
        return;
    };
    for info in others {
        let is_same = match (&info.server_sha256, &base.server_sha256) {
            (None, None) => {
                info.build == base.build
                    || [&*info, &*base]
                        .iter()
                        .all(|info| info.is_embedded != Some(false))
            }
            (own, of_base) => own == of_base,
        };
        info.other_machine = machines::difference(&base.machine, &info.machine);
        info.caveat = if is_same {
            None
        } else {
            toolchain::caveat(&base.toolchain, &info.toolchain)
        };
    }
}
