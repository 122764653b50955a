//! A plan in place of a campaign: its cells, whose builds are fetched, and what is measured of them.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::name::BuildName;
use plimsoll_core::plan::{Cell, Plan, Verdicts, results as results_of};
use plimsoll_lab::builds::is_built_in;
use plimsoll_lab::{
    CampaignRequest, ConfirmChoice, ConfirmRequest, DataTurn, DesignChoice, LoadedPlan,
    LoadsChoice, PlacementChoice, create_confirm, create_fleet_confirm, plan_as_survey,
    shipped_plan,
};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{CampaignDir, ClientHostsHeader, Fleet, Store};

use crate::arguments::Places;
use crate::failure::Failure;
use crate::verbs::build::fetch;

/// Whether it names a plan: a campaign is a folder or an id.
pub fn is_plan(name: &str) -> bool {
    let path = Path::new(name);
    // A plan's file that is not there: to look among campaigns would hide what is wrong.
    let is_meant = name.ends_with(".toml") && !path.is_dir();
    path.is_file() || is_meant || shipped_plan(name).is_some()
}

/// Builds of cells that run on servers that Plimsoll starts.
pub fn builds_of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<BuildName> {
    cells
        .filter(|cell| cell.server.is_none() && !is_built_in(&cell.build))
        .map(|cell| cell.build.clone())
        .collect()
}

/// The plan as a survey that was never made. All of its builds must be there, or come.
pub fn plan_survey(
    places: &Places,
    plan: &LoadedPlan,
    is_offline: bool,
) -> Result<CampaignHeader, Failure> {
    let builds = places.builds()?;
    let names = builds_of(plan.plan.cells.iter());
    if let Some((name, failure)) = fetch(&builds, &names, is_offline)?.first() {
        return Err(Failure::usage(format!(
            "the build {name} cannot be had: {failure}"
        )));
    }
    let data_dir = places.data_dir()?;
    Ok(plan_as_survey(&CampaignRequest {
        plan,
        seed: None,
        builds: &builds,
        missing: &BTreeMap::new(),
        data_dir: &data_dir,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
    })?)
}

/// Makes the campaign of a plan that asks for verdicts, with its clients on these hosts if there are
/// some. Cells whose build could not be fetched are left out.
pub fn create_with_verdicts(
    store: &Store,
    request: &CampaignRequest<'_>,
    verdicts: Verdicts,
    client_hosts: Option<ClientHostsHeader>,
) -> Result<(CampaignDir, DataTurn), Failure> {
    let mut survey = plan_as_survey(request)?;
    leave_out_missing(&mut survey)?;
    let (campaign, turn, notes) = create_confirm(
        store,
        &ConfirmRequest {
            choice: choice(&survey.plan, verdicts),
            survey: &survey,
            bisection: None,
            data_dir: request.data_dir,
            plimsoll_version: request.plimsoll_version,
            client_hosts,
        },
    )?;
    for note in notes {
        tell!("{note}");
    }
    Ok((campaign, turn))
}

/// The same for blocks that run on other machines.
pub fn create_fleet_with_verdicts(
    store: &Store,
    request: &CampaignRequest<'_>,
    verdicts: Verdicts,
    fleet: Fleet,
) -> Result<CampaignDir, Failure> {
    let survey = plan_as_survey(request)?;
    let request = ConfirmRequest {
        choice: choice(&survey.plan, verdicts),
        survey: &survey,
        bisection: None,
        data_dir: request.data_dir,
        plimsoll_version: request.plimsoll_version,
        client_hosts: None,
    };
    let (campaign, notes) = create_fleet_confirm(store, &request, fleet)?;
    for note in notes {
        tell!("{note}");
    }
    Ok(campaign)
}

/// # Errors
/// When one cell of several is left: it would be held against itself alone.
fn leave_out_missing(survey: &mut CampaignHeader) -> Result<(), Failure> {
    let planned = survey.plan.cells.len();
    let base = survey.plan.cells[survey.plan.base].label.clone();
    let is_here = |label: &str| {
        let header = survey.cells.iter().find(|cell| cell.label == label);
        header.is_some_and(|header| header.missing_build.is_none())
    };
    let mut here = Vec::new();
    for cell in std::mem::take(&mut survey.plan.cells) {
        match is_here(&cell.label) {
            true => here.push(cell),
            false => tell!("left out: {}: its build could not be fetched", cell.label),
        }
    }
    if let ([alone], true) = (&here[..], planned > 1) {
        return Err(Failure::usage(format!(
            "{} alone is left, and nothing to hold against it: fetch the other builds with `plimsoll \
            build add`, or run it once with --screen",
            alone.label
        )));
    }
    survey.plan.cells = here;
    survey.cells.retain(|cell| cell.missing_build.is_none());
    let labels = survey.plan.cells.iter().map(|cell| &cell.label);
    survey.plan.base = labels.clone().position(|label| *label == base).unwrap_or(0);
    if let Some(other) = labels
        .clone()
        .nth(survey.plan.base)
        .filter(|label| **label != base)
    {
        tell!("the base of the plan, {base}, is left out: {other} is the base");
    }
    Ok(())
}

/// All that the plan reports: by blocks with the steps that make the data.
fn choice(plan: &Plan, verdicts: Verdicts) -> ConfirmChoice {
    let workload = &plan.cells[plan.base].workload;
    let (steps, design, budget) = match verdicts {
        Verdicts::Blocks(blocks) => (plan.judged_steps(), DesignChoice::Blocks(blocks), None),
        Verdicts::Budget(budget) => (results_of(workload), DesignChoice::Auto, Some(budget)),
    };
    ConfirmChoice {
        steps,
        is_all: true,
        cells: Vec::new(),
        design,
        time_ns: None,
        starts: None,
        budget,
        loads: LoadsChoice::Own(None),
        age_ns: None,
        placement: PlacementChoice::Auto,
        profile_ns: None,
    }
}
