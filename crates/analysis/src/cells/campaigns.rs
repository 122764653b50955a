//! What a report says of a campaign, and what its numbers are divided by.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::plan::{Cell, Verify};
use plimsoll_store::{CampaignRecord, CampaignState, TrialRecord, in_commands};

use crate::cells::selection::{Candidate, find as find_cells};
use crate::cells::version_groups::{Version, grouped};

#[derive(Clone, Debug, PartialEq)]
pub struct CampaignInfo {
    pub id: String,
    pub plan: String,
    pub description: String,
    /// The plan as it was written.
    pub plan_text: String,
    /// Seed of schedule and data.
    pub seed: u64,
    /// When it was made, RFC 3339.
    pub created: String,
    /// `running`, `complete`, `decided` (it ended before its last block, because all was decided)
    /// or `broken`.
    pub state: &'static str,
    /// How far it is, in words: as `state` has it, or how many trials are missing and what runs them.
    pub progress: String,
    /// It, as commands take it.
    pub name: String,
    /// What the numbers mean: see the changelog.
    pub methodology_version: u32,
    /// The program that made it.
    pub plimsoll_version: String,
    /// Runs planned per cell.
    pub blocks: u32,
    /// How rows were verified: `full`, `end` or `counters`.
    pub verify: &'static str,
    /// The machines that its blocks ran on and how many each; empty for one that ran at home.
    pub hosts: Vec<(String, usize)>,
    /// Folders among its trials that are not called like trials: nobody reads them.
    pub strangers: Vec<String>,
}

/// The plan's base, or that of the experiment where the campaign confirms another.
pub(crate) fn plan_base(campaign: &CampaignRecord) -> usize {
    let plan = &campaign.header.plan;
    let of_experiment = campaign.header.confirm.as_ref().and_then(|confirm| {
        plan.cells
            .iter()
            .position(|cell| cell.label == confirm.base)
    });
    of_experiment.unwrap_or(plan.base)
}

/// The label of the cell that a campaign's ratios divide by where nobody asks for another; that of
/// `cell`, a name, where it has its own.
pub(crate) fn base_label<'a>(campaign: &'a CampaignRecord, cell: Option<&str>) -> Option<&'a str> {
    let base = cell
        .and_then(|name| base_of_versions(campaign, name))
        .unwrap_or_else(|| plan_base(campaign));
    Some(&campaign.header.plan.cells.get(base)?.label)
}

/// What the versions are divided by among which the one cell of this name stands.
pub(crate) fn base_of_versions(campaign: &CampaignRecord, name: &str) -> Option<usize> {
    let cells = &campaign.header.plan.cells;
    if campaign.header.confirm.is_some() || cells.iter().any(|cell| cell.build.engine.has_sql()) {
        return None;
    }
    let candidates: Vec<Candidate> = cells
        .iter()
        .map(|cell| Candidate {
            label: cell.label.clone(),
            build: cell.build.to_string(),
        })
        .collect();
    let [wanted] = find_cells(name, &candidates).ok()?[..] else {
        return None;
    };
    let version = |cell: &Cell| Version {
        group: (cell.config.label.clone(), cell.shape.clone(), 0),
        build: cell.build.to_string(),
    };
    let versions: Vec<(usize, Version)> = cells.iter().map(version).enumerate().collect();
    let groups = grouped(&versions, &candidates.get(plan_base(campaign))?.build);
    let group = groups
        .into_iter()
        .find(|members| members.contains(&wanted))?;
    group.first().copied().filter(|base| *base != wanted)
}

pub(crate) fn title(campaigns: &[CampaignRecord]) -> String {
    let plans: BTreeSet<&str> = campaigns
        .iter()
        .map(|campaign| campaign.header.plan.name.as_str())
        .collect();
    let workloads: BTreeSet<&str> = campaigns
        .iter()
        .flat_map(|campaign| &campaign.header.plan.cells)
        .map(|cell| cell.workload.title())
        .collect();
    format!(
        "{}: {}",
        workloads.into_iter().collect::<Vec<_>>().join(" and "),
        plans.into_iter().collect::<Vec<_>>().join(", ")
    )
}

pub(crate) fn campaign_info(campaign: &CampaignRecord) -> CampaignInfo {
    let header = &campaign.header;
    CampaignInfo {
        id: header.id.clone(),
        plan: header.plan.name.clone(),
        description: header.plan.description.clone(),
        plan_text: header.plan_text.clone(),
        seed: header.seed,
        created: header.created.clone(),
        state: state(campaign.state),
        progress: progress(campaign),
        name: in_commands(&campaign.path),
        methodology_version: header.methodology_version,
        plimsoll_version: header.plimsoll_version.clone(),
        blocks: header.plan.blocks,
        verify: match header.plan.verify {
            Verify::Full => "full",
            Verify::End => "end",
            Verify::Counters => "counters",
        },
        hosts: hosts(campaign),
        strangers: campaign.strangers.clone(),
    }
}

/// How many blocks each machine has run, by the latest complete trial of each block.
fn hosts(campaign: &CampaignRecord) -> Vec<(String, usize)> {
    let mut of_block: BTreeMap<u32, (u32, &str)> = BTreeMap::new();
    for scheduled in &campaign.header.schedule {
        let attempts = campaign
            .trials
            .iter()
            .filter(|of| of.number == scheduled.number);
        for trial in attempts.filter(|trial| trial.is_complete()) {
            let Some(host) = trial.place().host else {
                continue;
            };
            let latest = of_block
                .entry(scheduled.block)
                .or_insert((trial.attempt, host));
            if trial.attempt > latest.0 {
                *latest = (trial.attempt, host);
            }
        }
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, host) in of_block.into_values() {
        *counts.entry(host).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(host, blocks)| (host.to_owned(), blocks))
        .collect()
}

fn state(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Running => "running",
        CampaignState::Complete => "complete",
        CampaignState::Decided => "decided",
        CampaignState::Broken => "broken",
    }
}

/// `interrupted, 7 of 24 trials are done`; of a campaign whose trials all began `not complete`.
pub(crate) fn progress(campaign: &CampaignRecord) -> String {
    if campaign.state != CampaignState::Broken {
        return state(campaign.state).to_owned();
    }
    let schedule = &campaign.header.schedule;
    let with = |is_it: fn(&TrialRecord) -> bool| {
        let has = |number: u32| {
            let mut attempts = campaign.trials.iter();
            attempts.any(|trial| trial.number == number && is_it(trial))
        };
        schedule.iter().filter(|trial| has(trial.number)).count()
    };
    let word = match with(|_| true) == schedule.len() {
        true => "not complete",
        false => "interrupted",
    };
    let (done, all) = (with(TrialRecord::is_complete), schedule.len());
    format!("{word}, {done} of {all} trials are done")
}
