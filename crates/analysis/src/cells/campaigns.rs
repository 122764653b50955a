//! What a report says of a campaign, and what its numbers are divided by.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_core::plan::{Cell, Verify};
use plimsoll_core::schedule::Unit;
use plimsoll_core::units::format_duration_ns;
use plimsoll_store::{CampaignRecord, CampaignState, TrialRecord, continuing, in_commands};

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
    /// Whether it is to end within a time.
    pub has_budget: bool,
    /// What the longest of its complete trials took, in nanoseconds; 0 without one. By slices it is
    /// a start, but for the load of its data.
    pub(crate) longest_trial_ns: u64,
    /// It, as commands take it.
    pub name: String,
    /// The command that runs what is missing of it.
    pub continuing: String,
    /// What the numbers mean: see the changelog.
    pub methodology_version: u32,
    /// Those that its trials ran with: another program may have resumed it.
    pub methodology_versions: BTreeSet<u32>,
    /// The program that made it.
    pub plimsoll_version: String,
    /// Runs planned per cell.
    pub blocks: u32,
    /// How rows were verified: `full`, `end` or `counters`.
    pub verify: &'static str,
    /// The machines that its blocks ran on and how many each, or how many parts of blocks; empty for
    /// one that ran at home.
    pub hosts: Vec<(String, usize)>,
    /// What its tests are divided into; empty if blocks are whole.
    pub parts: Vec<PartInfo>,
    /// Whether trials begin with a copy of data that was loaded before, as in a confirm.
    pub copies_data: bool,
    /// Folders among its trials that are not called like trials: nobody reads them.
    pub strangers: Vec<String>,
}

/// A part of every block of a campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartInfo {
    /// Its tests, in the order they run.
    pub tests: Vec<String>,
    /// The machines that it ran on, by name; empty at home.
    pub hosts: Vec<String>,
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
        has_budget: header.budget().is_some(),
        longest_trial_ns: longest_trial_ns(campaign),
        name: in_commands(&campaign.path),
        continuing: continuing(header.fleet.as_ref(), &campaign.path),
        methodology_version: header.methodology_version,
        methodology_versions: campaign
            .trials
            .iter()
            .filter_map(|trial| Some(trial.start()?.methodology_version))
            .chain([header.methodology_version])
            .collect(),
        plimsoll_version: header.plimsoll_version.clone(),
        blocks: header.plan.blocks,
        verify: match header.plan.verify {
            Verify::Full => "full",
            Verify::End => "end",
            Verify::Counters => "counters",
        },
        hosts: hosts(campaign),
        parts: parts(campaign),
        copies_data: campaign
            .header
            .confirm
            .as_ref()
            .is_some_and(|confirm| confirm.before.iter().any(|steps| !steps.is_empty())),
        strangers: campaign.strangers.clone(),
    }
}

/// See [`CampaignInfo::longest_trial_ns`].
pub(crate) fn longest_trial_ns(campaign: &CampaignRecord) -> u64 {
    let complete = campaign.trials.iter().filter(|trial| trial.is_complete());
    let took = complete.filter_map(|trial| {
        let (first, last) = (trial.events.first()?, trial.events.last()?);
        Some(last.t_ns.saturating_sub(first.t_ns))
    });
    took.max().unwrap_or(0)
}

/// The machine of each block, or of each part of one: that of its latest complete trial.
fn hosts_of_units(campaign: &CampaignRecord) -> BTreeMap<Unit, &str> {
    let mut of_unit: BTreeMap<Unit, (u32, &str)> = BTreeMap::new();
    for scheduled in &campaign.header.schedule {
        let attempts = campaign
            .trials
            .iter()
            .filter(|of| of.number == scheduled.number);
        for trial in attempts.filter(|trial| trial.is_complete()) {
            let Some(host) = trial.place().host else {
                continue;
            };
            let latest = of_unit
                .entry(scheduled.unit())
                .or_insert((trial.attempt, host));
            if trial.attempt > latest.0 {
                *latest = (trial.attempt, host);
            }
        }
    }
    let hosts = of_unit.into_iter();
    hosts.map(|(unit, (_, host))| (unit, host)).collect()
}

/// How many blocks, or parts of them, each machine has run.
fn hosts(campaign: &CampaignRecord) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for host in hosts_of_units(campaign).into_values() {
        *counts.entry(host).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(host, units)| (host.to_owned(), units))
        .collect()
}

fn parts(campaign: &CampaignRecord) -> Vec<PartInfo> {
    let Some(split) = &campaign.header.plan.split else {
        return Vec::new();
    };
    let hosts = hosts_of_units(campaign);
    let of_part = |(part, tests): (u32, &Vec<String>)| {
        let own = hosts.iter().filter(|(unit, _)| unit.part == Some(part));
        let names: BTreeSet<&str> = own.map(|(_, host)| *host).collect();
        PartInfo {
            tests: tests.clone(),
            hosts: names.into_iter().map(str::to_owned).collect(),
        }
    };
    (1..).zip(&split.parts).map(of_part).collect()
}

fn state(state: CampaignState) -> &'static str {
    match state {
        CampaignState::Running => "running",
        CampaignState::Complete => "complete",
        CampaignState::Decided => "decided",
        CampaignState::Broken => "broken",
    }
}

/// `interrupted, 7 of 24 trials are done`; `ended; its budget was 8m00s`, or `ended early: all
/// was decided`; of a campaign whose trials all began `not complete`.
pub(crate) fn progress(campaign: &CampaignRecord) -> String {
    match campaign.state {
        CampaignState::Broken => {}
        CampaignState::Decided => {
            return match campaign.header.budget() {
                None => "ended early: all was decided".to_owned(),
                Some(budget) => format!(
                    "ended; its budget was {}",
                    format_duration_ns(budget.time_ns)
                ),
            };
        }
        other => return state(other).to_owned(),
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
