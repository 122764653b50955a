//! `run`, `resume` and the internal `trial`.

use std::path::{Path, PathBuf};

use plimsoll_core::name::BuildName;
use plimsoll_core::plan::Cell;
use plimsoll_host::{Proc, Status, check_machine};
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{
    CampaignEnd, CampaignRequest, DataTurn, create_campaign, default_data_dir,
    keep_passwords_from_children, load_plan, run_campaign,
};
use plimsoll_store::header::CellHeader;
use plimsoll_store::{CampaignDir, Store};

use crate::Outcome;
use crate::arguments::{Places, Run};
use crate::build;
use crate::confirm;
use crate::failure::{Failure, INCOMPLETE, INTERRUPTED};
use crate::progress::Console;
use crate::results;

/// The checks of `machine check` that a run repeats: what goes on right now, not what the machine
/// is.
const DISTURBANCES: [&str; 3] = ["foreign_cpu", "steal", "pressure"];

pub fn data_dir(places: &Places) -> Result<PathBuf, Failure> {
    Ok(places.data.clone().map_or_else(default_data_dir, Ok)?)
}

pub fn run(places: &Places, arguments: &Run) -> Outcome {
    let store = Store::new(&places.store);
    let plan = load_plan(arguments.plan.as_deref())?;
    let builds = BuildCache::new(build::cache_dir(places)?);
    if arguments.resume {
        return go_on(
            places,
            &builds,
            newest_of_plan(&store, &plan.plan.name)?,
            arguments.offline,
        );
    }
    let failed = build::fetch(
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
    let data_dir = data_dir(places)?;
    let request = CampaignRequest {
        plan: &plan,
        seed: arguments.seed,
        builds: &builds,
        missing: &missing,
        data_dir: &data_dir,
        plimsoll_version: env!("CARGO_PKG_VERSION"),
    };
    let (campaign, turn) = create_campaign(&store, &request)?;
    finish(&builds, campaign, Some(turn), false)
}

/// Builds of cells that run on servers that Plimsoll starts.
fn builds_of<'a>(cells: impl Iterator<Item = &'a Cell>) -> Vec<BuildName> {
    cells
        .filter(|cell| cell.server.is_none() && !cell.build.engine.is_built_in())
        .map(|cell| cell.build.clone())
        .collect()
}

pub fn resume(places: &Places, campaign: Option<&str>, is_offline: bool) -> Outcome {
    let builds = BuildCache::new(build::cache_dir(places)?);
    go_on(
        places,
        &builds,
        Store::new(&places.store).find(campaign)?,
        is_offline,
    )
}

/// Builds that could not be fetched when the campaign was made are tried again; what fails is
/// reported, and its cells stay left out.
fn go_on(places: &Places, builds: &BuildCache, campaign: CampaignDir, is_offline: bool) -> Outcome {
    if campaign.imported()?.is_some() {
        let id = &campaign.header.id;
        return Err(Failure::usage(format!(
            "campaign {id} is imported: another tool ran it, and nothing is left to run; `plimsoll \
            show {id}` shows it"
        )));
    }
    keep_passwords_from_children(&campaign.header.plan);
    let mut campaign = same_data_dir(places, campaign)?;
    let header = &mut campaign.header;
    let mut missing: Vec<(&Cell, &mut CellHeader)> =
        header.plan.cells.iter().zip(&mut header.cells).collect();
    missing.retain(|(_, found)| found.missing_build.is_some());
    let names = builds_of(missing.iter().map(|(cell, _)| *cell));
    for (name, failure) in build::fetch(builds, &names, is_offline)? {
        for (_, found) in missing.iter_mut().filter(|(cell, _)| cell.build == name) {
            found.missing_build = Some(failure.to_string());
        }
    }
    finish(builds, campaign, None, false)
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
pub fn trial(continued: Option<u32>) -> Outcome {
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

/// What will spoil the numbers is reported before they are made.
fn warn_of_disturbance(campaign: &CampaignDir) {
    let checks = check_machine(
        Proc::new(),
        Path::new("/sys"),
        Path::new(&campaign.header.data_dir),
        None,
    );
    for check in checks
        .iter()
        .filter(|check| DISTURBANCES.contains(&check.name) && check.status == Status::Warn)
    {
        tell!("machine: {}: {}", check.name, check.finding);
    }
}

/// A path as a shell takes it.
fn shell_word(path: &str) -> String {
    if path
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c))
    {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

pub fn finish(
    builds: &BuildCache,
    mut campaign: CampaignDir,
    turn: Option<DataTurn>,
    is_json: bool,
) -> Outcome {
    let program = std::env::current_exe()
        .map_err(|error| Failure::bug(format!("failed to find this program: {error}")))?;
    let mut console = Console::new(&campaign.header)?;
    warn_of_disturbance(&campaign);
    let end = run_campaign(&mut campaign, turn, builds, &program, &mut console)?;
    console.finish();
    let path = shell_word(&campaign.path.display().to_string());
    if end == CampaignEnd::Interrupted {
        tell!(
            "interrupted: what is done is kept in {path}; the trial that was running starts again"
        );
        tell!("continue with: plimsoll resume {path}");
        return Ok(INTERRUPTED);
    }
    let page = results::write_page(&campaign)?;
    if campaign.header.confirm.is_some() {
        confirm::print(&campaign, is_json)?;
    } else {
        results::print_tables(&campaign)?;
    }
    if !is_json {
        anstream::println!("report: {}", page.display());
    }
    match end {
        CampaignEnd::Incomplete { broken } => {
            let trials = if broken == 1 {
                "1 trial is".to_owned()
            } else {
                format!("{broken} trials are")
            };
            tell!("{trials} not complete; logs are in {path}/trials");
            tell!(
                "what failed by its config or plan needs a changed plan and a new run; to try the \
                rest again: plimsoll resume {path}"
            );
            Ok(INCOMPLETE)
        }
        CampaignEnd::Decided { block } => {
            tell!(
                "everything was decided at the look after {block} of {} blocks; for narrower \
                intervals, up to the next look: plimsoll resume {path}",
                campaign.header.plan.blocks
            );
            Ok(0)
        }
        _ => Ok(0),
    }
}
