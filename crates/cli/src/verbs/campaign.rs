//! `run`, `resume` and the internal `trial`.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::name::BuildName;
use plimsoll_core::plan::Cell;
use plimsoll_core::units::parse_frequency_hz;
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::fleet::check_hosts;
use plimsoll_lab::{
    CampaignRequest, LoadedPlan, create_campaign, create_fleet_campaign,
    keep_passwords_from_children, load_plan,
};
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, Fleet, Store, in_commands};

use crate::arguments::{OverHosts, Places, Run};
use crate::failure::{Failure, INCOMPLETE, VerbResult};
use crate::verbs::build::fetch;
use crate::verbs::host::{chosen, fleet_of};
use crate::verbs::running::{run_over_hosts_to_end, run_to_end};
use crate::verbs::survey::{builds_of, create_fleet_with_verdicts, create_with_verdicts};

pub fn run(places: &Places, arguments: &Run) -> VerbResult {
    let store = places.store();
    let mut plan = load_plan(arguments.plan.as_deref())?;
    if let Some(hz) = frequency(arguments.waits.as_deref())? {
        plan.plan.sample_waits(hz);
    }
    let builds = places.builds()?;
    if arguments.resume {
        let campaign = newest_of_plan(&store, &plan.plan.name)?;
        return resume_campaign(
            places,
            &builds,
            campaign,
            arguments.offline,
            &arguments.over,
        );
    }
    let new = NewCampaign {
        plan: &plan,
        seed: arguments.seed,
        is_screen: arguments.screen,
        is_offline: arguments.offline,
    };
    if !arguments.over.hosts.is_empty() {
        return run_on_hosts(places, &new, &arguments.over);
    }
    let Missing { failed, missing } = fetch_builds(&builds, &new)?;
    let is_missing = |cell: &Cell| failed.iter().any(|(name, _)| *name == cell.build);
    if plan.plan.cells.iter().all(is_missing) {
        return Ok(failed
            .iter()
            .map(|(_, failure)| failure.exit_code())
            .max()
            .unwrap_or(INCOMPLETE));
    }
    let data_dir = places.data_dir()?;
    let request = CampaignRequest {
        plan: &plan,
        seed: arguments.seed,
        builds: &builds,
        missing: &missing,
        data_dir: &data_dir,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
    };
    let (campaign, turn) = match plan.plan.verdicts.filter(|_| !arguments.screen) {
        Some(verdicts) => create_with_verdicts(&store, &request, verdicts)?,
        None => create_campaign(&store, &request)?,
    };
    match run_to_end(places, campaign, Some(turn), false)? {
        0 if !failed.is_empty() => Ok(INCOMPLETE),
        code => Ok(code),
    }
}

/// What a campaign is made of, wherever it runs.
pub struct NewCampaign<'a> {
    pub plan: &'a LoadedPlan,
    pub seed: Option<u64>,
    pub is_screen: bool,
    pub is_offline: bool,
}

/// Builds that could not be fetched.
struct Missing {
    failed: Vec<(BuildName, Failure)>,
    /// Their names, and why.
    missing: BTreeMap<String, String>,
}

fn fetch_builds(builds: &BuildCache, new: &NewCampaign<'_>) -> Result<Missing, Failure> {
    let names = builds_of(new.plan.plan.cells.iter());
    let failed = fetch(builds, &names, new.is_offline)?;
    let missing = failed
        .iter()
        .map(|(name, failure)| (name.to_string(), failure.to_string()))
        .collect();
    Ok(Missing { failed, missing })
}

/// Makes a campaign whose blocks run on other machines. All of its builds must be here: they are
/// copied to the others.
pub fn create_over_hosts(
    places: &Places,
    new: &NewCampaign<'_>,
    fleet: Fleet,
) -> Result<CampaignDir, Failure> {
    let builds = places.builds()?;
    let Missing { mut failed, .. } = fetch_builds(&builds, new)?;
    if let Some((name, failure)) = failed.pop() {
        return Err(Failure::usage(format!(
            "the build {name} cannot be had: {failure}"
        )));
    }
    let plan = &new.plan.plan;
    let request = CampaignRequest {
        plan: new.plan,
        seed: new.seed,
        builds: &builds,
        missing: &BTreeMap::new(),
        data_dir: Path::new(""),
        plimsoll_version: env!("CARGO_PKG_VERSION"),
    };
    let store = places.store();
    let campaign = match plan.verdicts.filter(|_| !new.is_screen) {
        Some(verdicts) => create_fleet_with_verdicts(&store, &request, verdicts, fleet)?,
        None => create_fleet_campaign(&store, &request, fleet)?,
    };
    let blocks = campaign.header.plan.blocks;
    if blocks == 1 {
        tell!("the plan has one block, which runs on one host: for more, write `blocks = 6`");
    }
    Ok(campaign)
}

fn run_on_hosts(places: &Places, new: &NewCampaign<'_>, over: &OverHosts) -> VerbResult {
    let (hosts, desk) = chosen(over, &over.hosts)?;
    // A host that cannot be reached is reported before a campaign is made.
    check_hosts(&desk, &hosts)?;
    let campaign = create_over_hosts(places, new, fleet_of(&hosts))?;
    run_over_hosts_to_end(places, campaign, &hosts, &desk, false)
}

/// How often to look at waits.
pub fn frequency(text: Option<&str>) -> Result<Option<u32>, Failure> {
    let read = |text| {
        parse_frequency_hz(text).map_err(|error| Failure::usage(format!("--waits {text}: {error}")))
    };
    text.map(read).transpose()
}

pub fn resume(
    places: &Places,
    campaign: Option<&str>,
    is_offline: bool,
    over: &OverHosts,
) -> VerbResult {
    let builds = places.builds()?;
    let campaign = places.store().find(campaign)?;
    resume_campaign(places, &builds, campaign, is_offline, over)
}

/// Builds that could not be fetched when the campaign was made are tried again; what fails is
/// reported, and its cells stay left out.
fn resume_campaign(
    places: &Places,
    builds: &BuildCache,
    campaign: CampaignDir,
    is_offline: bool,
    over: &OverHosts,
) -> VerbResult {
    if campaign.imported()?.is_some() {
        return Err(Failure::usage(format!(
            "campaign {} is imported: another tool ran it, and nothing is left to run; `plimsoll \
            show {}` shows it",
            campaign.header.id,
            in_commands(&campaign.path)
        )));
    }
    match &campaign.header.fleet {
        None if over.hosts.is_empty() => {}
        None => {
            return Err(Failure::usage(format!(
                "campaign {} began on one machine: resume it there, without --hosts",
                campaign.header.id
            )));
        }
        Some(Fleet::Slurm { .. }) => {
            return Err(Failure::usage(format!(
                "campaign {} runs by Slurm: `plimsoll submit --again {} --slurm` continues it",
                campaign.header.id,
                in_commands(&campaign.path)
            )));
        }
        Some(Fleet::Hosts { names, .. }) => {
            let names = match over.hosts.is_empty() {
                true => names,
                false => &over.hosts,
            };
            let (hosts, desk) = chosen(over, names)?;
            return run_over_hosts_to_end(places, campaign, &hosts, &desk, false);
        }
    }
    keep_passwords_from_children(&campaign.header.plan);
    let mut campaign = same_data_dir(places, campaign)?;
    let header = &mut campaign.header;
    let mut missing: Vec<(&Cell, &mut CellHeader)> =
        header.plan.cells.iter().zip(&mut header.cells).collect();
    missing.retain(|(_, found)| found.missing_build.is_some());
    let names = builds_of(missing.iter().map(|(cell, _)| *cell));
    for (name, failure) in fetch(builds, &names, is_offline)? {
        for (_, found) in missing.iter_mut().filter(|(cell, _)| cell.build == name) {
            found.missing_build = Some(failure.to_string());
        }
    }
    run_to_end(places, campaign, None, false)
}

/// A campaign stays in the data folder it began in.
fn same_data_dir(places: &Places, campaign: CampaignDir) -> Result<CampaignDir, Failure> {
    let began_in = Path::new(&campaign.header.data_dir);
    match &places.data {
        Some(data) if data.canonicalize().ok().as_deref() != Some(began_in) => {
            Err(Failure::usage(format!(
                "campaign {} has its data in {}: resume it without --data",
                campaign.header.id, campaign.header.data_dir
            )))
        }
        _ => Ok(campaign),
    }
}

/// The body of one trial, in its own process.
pub fn trial(continued: Option<u32>) -> VerbResult {
    plimsoll_lab::trial::main(continued)?;
    Ok(0)
}

fn newest_of_plan(store: &Store, name: &str) -> Result<CampaignDir, Failure> {
    for path in store.campaigns()?.into_iter().rev() {
        let campaign = store.find(path.to_str())?;
        if campaign.header.plan.name == name {
            return Ok(campaign);
        }
    }
    Err(Failure::usage(format!(
        "there is no campaign of the plan \"{name}\" to resume; run it without --resume"
    )))
}
