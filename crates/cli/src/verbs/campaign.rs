//! `run`, `resume` and the internal `trial`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::name::BuildName;
use plimsoll_core::plan::Cell;
use plimsoll_core::units::parse_frequency_hz;
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::clients::{ClientHosts, check_plan};
use plimsoll_lab::fleet::check_hosts;
use plimsoll_lab::{
    CampaignRequest, LoadedPlan, create_campaign, create_fleet_campaign,
    keep_passwords_from_children, load_plan,
};
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, ClientHostsHeader, Fleet, Store, continuing, in_commands};

use crate::arguments::{ClientsAway, OverHosts, Places, Run};
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
        check_same_clients(&campaign, &arguments.away)?;
        return resume_campaign(
            places,
            &builds,
            campaign,
            arguments.offline,
            &arguments.over,
        );
    }
    let clients = clients_of(arguments, &plan)?;
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
    let client_hosts = clients.as_ref().map(ClientHosts::header);
    let (campaign, turn) = match plan.plan.verdicts.filter(|_| !arguments.screen) {
        Some(verdicts) => create_with_verdicts(&store, &request, verdicts, client_hosts)?,
        None => create_campaign(&store, &request, client_hosts)?,
    };
    match run_to_end(places, campaign, (Some(turn), clients.as_ref()), false)? {
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
    if campaign.header.plan.all_blocks().units() == 1 {
        tell!(
            "the plan has one block, which runs on one host: for more, write `blocks = 6`, or \
            divide its tests with `[hosts] split = \"tests\"`"
        );
    }
    Ok(campaign)
}

fn run_on_hosts(places: &Places, new: &NewCampaign<'_>, over: &OverHosts) -> VerbResult {
    let (hosts, desk) = chosen(over, &over.hosts)?;
    // A host that cannot be reached is reported before a campaign is made.
    check_hosts(&desk, &hosts)?;
    let campaign = create_over_hosts(places, new, fleet_of(&hosts))?;
    run_over_hosts_to_end(places, over, campaign, (&hosts, &desk), false)
}

/// The hosts of `--clients`, which are looked at before a campaign is made.
fn clients_of(arguments: &Run, plan: &LoadedPlan) -> Result<Option<ClientHosts>, Failure> {
    let away = &arguments.away;
    if away.clients.is_empty() {
        return Ok(None);
    }
    check_plan(&plan.plan, plan.plan.verdicts.filter(|_| !arguments.screen))?;
    let clients = connected(&arguments.over, &away.clients, away.server_address)?;
    Ok(Some(clients))
}

/// A campaign that is resumed keeps the hosts that it began with: others would be other runs.
fn check_same_clients(campaign: &CampaignDir, away: &ClientsAway) -> Result<(), Failure> {
    if away.clients.is_empty() {
        return Ok(());
    }
    let asked = ClientHostsHeader {
        names: away.clients.clone(),
        server_address: away.server_address.map(|address| address.to_string()),
    };
    let place = match &campaign.header.client_hosts {
        Some(began) if *began == asked => return Ok(()),
        Some(began) => format!("on {}", began.in_words()),
        None => "next to its servers".to_owned(),
    };
    Err(Failure::usage(format!(
        "campaign {} has its clients {place}: resume it without --clients, or leave out --resume to \
        begin another",
        campaign.header.id
    )))
}

/// The hosts that a campaign began with.
fn same_clients(of: &ClientHostsHeader, over: &OverHosts) -> Result<ClientHosts, Failure> {
    let address = of.server_address.as_ref();
    let address = address.and_then(|address| address.parse().ok());
    connected(over, &of.names, address)
}

fn connected(
    over: &OverHosts,
    names: &[String],
    server_address: Option<IpAddr>,
) -> Result<ClientHosts, Failure> {
    let (hosts, desk) = chosen(over, names)?;
    check_hosts(&desk, &hosts)?;
    Ok(ClientHosts::new(&desk, hosts, server_address))
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
    if let Some(warning) = begun_by_another(campaign.header.methodology_version) {
        tell!("{warning}");
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
                "campaign {} runs by Slurm: `{}` continues it",
                campaign.header.id,
                continuing(campaign.header.fleet.as_ref(), &campaign.path)
            )));
        }
        Some(fleet @ Fleet::Hosts { names, .. }) => {
            let names = match over.hosts.is_empty() {
                true => names,
                false => &over.hosts,
            };
            let (hosts, desk) = chosen(over, names)?;
            check_same_class(&campaign, fleet, &fleet_of(&hosts))?;
            return run_over_hosts_to_end(places, over, campaign, (&hosts, &desk), false);
        }
    }
    let clients = match &campaign.header.client_hosts {
        None => None,
        Some(hosts) => Some(same_clients(hosts, over)?),
    };
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
    run_to_end(places, campaign, (None, clients.as_ref()), false)
}

/// What is not alike in a campaign that a program of another methodology version goes on with.
fn begun_by_another(begun: u32) -> Option<String> {
    (begun != METHODOLOGY_VERSION).then(|| {
        format!(
            "warning: the campaign began with methodology version {begun} and goes on with \
            {METHODOLOGY_VERSION}: numbers of its trials mean different things, see the changelog \
            under Results; `plimsoll run PLAN` begins a new one"
        )
    })
}

/// A verdict is about one machine type: a campaign keeps the class that it began with.
fn check_same_class(campaign: &CampaignDir, began: &Fleet, now: &Fleet) -> Result<(), Failure> {
    let class = |fleet: &Fleet| match fleet {
        Fleet::Hosts { class, .. } => class.clone(),
        Fleet::Slurm { .. } => None,
    };
    let in_words = |class: Option<String>| class.unwrap_or_else(|| "none".to_owned());
    // One that began without a class may have one by now.
    match class(began).is_none() || class(began) == class(now) {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "campaign {} began on hosts of class {}, and these are of class {}: resume it on hosts \
            of its class",
            campaign.header.id,
            in_words(class(began)),
            in_words(class(now))
        ))),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_goes_on_with_another_methodology_is_warned() {
        assert_eq!(begun_by_another(METHODOLOGY_VERSION), None);
        let warning = begun_by_another(METHODOLOGY_VERSION - 1).unwrap();
        let both = format!(
            "version {} and goes on with {METHODOLOGY_VERSION}",
            METHODOLOGY_VERSION - 1
        );
        assert!(warning.contains(&both), "{warning}");
    }
}
