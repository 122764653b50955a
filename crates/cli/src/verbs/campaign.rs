//! `run`, `resume` and the internal `trial`.

use std::path::Path;

use plimsoll_core::plan::Cell;
use plimsoll_core::units::parse_frequency_hz;
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{CampaignRequest, create_campaign, keep_passwords_from_children, load_plan};
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, Store, in_commands};

use crate::arguments::{Places, Run};
use crate::failure::{Failure, INCOMPLETE, VerbResult};
use crate::verbs::build::fetch;
use crate::verbs::running::run_to_end;
use crate::verbs::survey::{builds_of, create_with_verdicts};

pub fn run(places: &Places, arguments: &Run) -> VerbResult {
    let store = places.store();
    let mut plan = load_plan(arguments.plan.as_deref())?;
    if let Some(hz) = frequency(arguments.waits.as_deref())? {
        plan.plan.sample_waits(hz);
    }
    let builds = places.builds()?;
    if arguments.resume {
        return resume_campaign(
            places,
            &builds,
            newest_of_plan(&store, &plan.plan.name)?,
            arguments.offline,
        );
    }
    let failed = fetch(
        &builds,
        &builds_of(plan.plan.cells.iter()),
        arguments.offline,
    )?;
    let is_missing = |cell: &Cell| failed.iter().any(|(name, _)| *name == cell.build);
    if plan.plan.cells.iter().all(is_missing) {
        return Ok(failed
            .iter()
            .map(|(_, failure)| failure.exit_code())
            .max()
            .unwrap_or(INCOMPLETE));
    }
    let missing = failed
        .iter()
        .map(|(name, failure)| (name.to_string(), failure.to_string()))
        .collect();
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

/// How often to look at waits.
pub fn frequency(text: Option<&str>) -> Result<Option<u32>, Failure> {
    let read = |text| {
        parse_frequency_hz(text).map_err(|error| Failure::usage(format!("--waits {text}: {error}")))
    };
    text.map(read).transpose()
}

pub fn resume(places: &Places, campaign: Option<&str>, is_offline: bool) -> VerbResult {
    let builds = places.builds()?;
    resume_campaign(places, &builds, places.store().find(campaign)?, is_offline)
}

/// Builds that could not be fetched when the campaign was made are tried again; what fails is
/// reported, and its cells stay left out.
fn resume_campaign(
    places: &Places,
    builds: &BuildCache,
    campaign: CampaignDir,
    is_offline: bool,
) -> VerbResult {
    if campaign.imported()?.is_some() {
        return Err(Failure::usage(format!(
            "campaign {} is imported: another tool ran it, and nothing is left to run; `plimsoll \
            show {}` shows it",
            campaign.header.id,
            in_commands(&campaign.path)
        )));
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
