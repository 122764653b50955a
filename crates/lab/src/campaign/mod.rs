//! From a plan to a campaign: everything is looked up and checked before the first byte is written.

mod cells;
mod size;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::{Plan, PlanError};
use plimsoll_core::schedule::schedule;
use plimsoll_store::header::{CampaignHeader, CellHeader, FORMAT};
use plimsoll_store::{CampaignDir, ClientHostsHeader, Fleet, Store, StoreError, utc_now};

pub(crate) use self::cells::{RequiredBuilds, look_up_cells, take_builds_that_came};
pub(crate) use self::size::{DataSize, check_disk, check_free, peak_size, peak_table_bytes};
use crate::builds::BuildCache;
use crate::error::LabError;
use crate::passwords::{Passwords, keep_passwords_from_children};
use crate::places::{DataTurn, check_data_root, prepare_data_root, take_data_root_once};
use crate::shipped::{DEFAULT_PLAN, shipped_plan, shipped_plans, shipped_workload};

const ID_TRIES: u32 = 20;

/// A plan with its text and the folder that its paths are relative to.
#[derive(Clone, Debug)]
pub struct LoadedPlan {
    /// The checked plan.
    pub plan: Plan,
    /// What stands for it in errors.
    pub file: String,
    pub text: String,
    /// The folder of its file; `None` for a shipped plan.
    pub dir: Option<PathBuf>,
}

/// The plan that a text is, as one in the file `name`: what it names is read from that file's folder.
pub fn parse_plan(name: &str, text: &str) -> Result<Plan, PlanError> {
    let dir = folder_of(Path::new(name));
    let read = |file: &str| {
        let path = dir.join(file);
        std::fs::read_to_string(&path).map_err(|error| {
            format!(
                "{}: {error}; its path is relative to the plan",
                path.display()
            )
        })
    };
    Plan::parse_with(name, text, &read)
}

fn folder_of(file: &Path) -> &Path {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    dir.unwrap_or(Path::new("."))
}

/// Reads a plan: a file, or the name of a shipped one; without either the quick plan.
pub fn load_plan(plan: Option<&str>) -> Result<LoadedPlan, LabError> {
    let name = plan.unwrap_or(DEFAULT_PLAN);
    let path = Path::new(name);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|error| LabError::Usage(format!("the plan {name} cannot be read: {error}")))?;
        let plan = parse_plan(name, &text)?;
        keep_passwords_from_children(&plan);
        return Ok(LoadedPlan {
            plan,
            file: name.to_owned(),
            text,
            dir: Some(folder_of(path).to_owned()),
        });
    }
    let Some(text) = shipped_plan(name) else {
        let known: Vec<&str> = shipped_plans().map(|(known, _)| known).collect();
        let hint = plimsoll_core::suggest::hint(name, known.iter().copied());
        return Err(LabError::Usage(format!(
            "there is no plan file {name}{hint}; `plimsoll init` writes one for what you have; \
            shipped plans: {}",
            known.join(", ")
        )));
    };
    let read = |file: &str| {
        shipped_workload(file)
            .map(str::to_owned)
            .ok_or_else(|| format!("{file} is not shipped"))
    };
    let file = format!("{name}.toml");
    Ok(LoadedPlan {
        plan: Plan::parse_with(&file, text, &read)?,
        file,
        text: text.to_owned(),
        dir: None,
    })
}

/// What a campaign is made of.
pub struct CampaignRequest<'a> {
    pub plan: &'a LoadedPlan,
    /// The seed; else the plan's; else one from the clock, which is recorded.
    pub seed: Option<u64>,
    /// The builds on this machine.
    pub builds: &'a BuildCache,
    /// Builds that could not be fetched, with the reason: their cells are left out.
    pub missing: &'a BTreeMap<String, String>,
    /// Where data directories go.
    pub data_dir: &'a Path,
    /// This program's version.
    pub plimsoll_version: &'a str,
}

/// Makes a campaign in the store, and takes its data folder for it: a campaign that could not run
/// at once is not made. Nothing is written before everything is checked. `client_hosts` are the
/// machines of its clients, if these are not beside the server.
pub fn create_campaign(
    store: &Store,
    request: &CampaignRequest<'_>,
    client_hosts: Option<ClientHostsHeader>,
) -> Result<(CampaignDir, DataTurn), LabError> {
    let plan = &request.plan.plan;
    let cells = look_up_cells(
        request.plan,
        request.builds,
        RequiredBuilds::Builds(request.missing),
    )?;
    Passwords::check(plan)?;
    check_data_root(request.data_dir)?;
    let turn = take_data_root_once(request.data_dir, || {
        check_disk(plan, &cells, request.data_dir)
    })?;
    let data_dir = prepare_data_root(request.data_dir)?;
    let header = CampaignHeader {
        client_hosts,
        ..header(request, cells, &data_dir)
    };
    Ok((create_in_store(store, header, &plan.name)?, turn))
}

/// Makes a campaign whose blocks run on other machines. Their folders and disks are looked at there.
///
/// # Errors
/// When a build or a config of the plan is not here, or a cell's server is not ours: blocks on
/// several machines would measure each other in it.
pub fn create_fleet_campaign(
    store: &Store,
    request: &CampaignRequest<'_>,
    fleet: Fleet,
) -> Result<CampaignDir, LabError> {
    let plan = &request.plan.plan;
    check_is_ours(plan)?;
    let builds = RequiredBuilds::Builds(request.missing);
    let cells = look_up_cells(request.plan, request.builds, builds)?;
    let header = CampaignHeader {
        fleet: Some(fleet),
        ..header(request, cells, Path::new(""))
    };
    create_in_store(store, header, &plan.name)
}

/// Refuses a plan with a server that runs already.
pub(crate) fn check_is_ours(plan: &Plan) -> Result<(), LabError> {
    match plan.cells.iter().find(|cell| cell.server.is_some()) {
        None => Ok(()),
        Some(cell) => Err(LabError::Usage(format!(
            "cell {}: its server runs already, and several hosts would measure each other in it: \
            run the plan without hosts",
            cell.label
        ))),
    }
}

/// The header of a campaign that is never made: what a confirm of a plan without a survey begins
/// with. Its id is empty.
///
/// # Errors
/// When a build or a config of the plan is not there.
pub fn plan_as_survey(request: &CampaignRequest<'_>) -> Result<CampaignHeader, LabError> {
    let builds = RequiredBuilds::Builds(request.missing);
    let cells = look_up_cells(request.plan, request.builds, builds)?;
    Passwords::check(&request.plan.plan)?;
    Ok(header(request, cells, request.data_dir))
}

fn header(
    request: &CampaignRequest<'_>,
    cells: Vec<CellHeader>,
    data_dir: &Path,
) -> CampaignHeader {
    let plan = &request.plan.plan;
    let seed = request.seed.or(plan.seed).unwrap_or_else(seed_from_clock);
    CampaignHeader {
        format: FORMAT,
        id: String::new(),
        created: utc_now(),
        plimsoll_version: request.plimsoll_version.to_owned(),
        methodology_version: METHODOLOGY_VERSION,
        seed,
        plan_text: request.plan.text.clone(),
        plan: plan.clone(),
        cells,
        schedule: schedule(plan.cells.len(), plan.all_blocks(), seed),
        data_dir: data_dir.display().to_string(),
        confirm: None,
        fleet: None,
        client_hosts: None,
    }
}

/// Makes the campaign's folder under an id that is free.
pub(crate) fn create_in_store(
    store: &Store,
    mut header: CampaignHeader,
    name: &str,
) -> Result<CampaignDir, LabError> {
    // Two runs of one plan may begin in the same second and find the same id free.
    for _ in 0..ID_TRIES {
        header.id = store.new_id(name);
        match store.create(&header) {
            Err(StoreError::Exists { .. }) => {}
            created => return Ok(created?),
        }
    }
    Err(LabError::Usage(format!(
        "the store takes no new campaign: the id {} is always taken by somebody else first",
        header.id
    )))
}

/// Small enough to type again.
pub(crate) fn seed_from_clock() -> u64 {
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64);
    plimsoll_core::seed::derive(nanos, &["campaign"]) % 1_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_config_has_its_place_in_the_plan() {
        let dir = tempfile::tempdir().unwrap();
        let builds = BuildCache::new(dir.path().join("builds"));
        let head = "name = \"t\"\nworkload = \"insert-benchmark\"\n";
        for (plan, wanted) in [
            (
                "builds = [\"sqlite\"]\nconfigs = [\"wal_full\",\n\"wal_of\"]\n",
                "t.toml:5:1: cell sqlite.wal_of: there is no config \"wal_of\"",
            ),
            (
                "cells = [\"sqlite.wal_of\"]\n",
                "t.toml:3:10: cell sqlite.wal_of: there is no config",
            ),
            (
                "builds = [\"sqlite\"]\nconfigs = [\"c\"]\n[config.c]\nfrom = \"wal_of\"\n",
                "t.toml:6:8: cell sqlite.c: [config.c] from: there is no shipped config \"wal_of\"",
            ),
            (
                "builds = [\"sqlite\"]\nconfigs = [\"c\"]\n[config.c]\nfile = \"none.conf\"\n",
                "t.toml:5:9: cell sqlite.c: the config file",
            ),
        ] {
            let text = format!("{head}{plan}");
            let plan = Plan::parse("t.toml", &text).unwrap();
            let loaded = LoadedPlan {
                plan,
                file: "t.toml".into(),
                text,
                dir: Some(dir.path().to_owned()),
            };
            let error = look_up_cells(&loaded, &builds, RequiredBuilds::Names)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with(wanted), "wanted {wanted}\nfound {error}");
        }
    }

    #[test]
    fn all_cells_whose_config_does_not_suit_are_named() {
        let text = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs \
                   = [\"c\", \"d\", \"wal_full\"]\n\
            [config.c]\nsettings = { synchronus = \"off\" }\n[config.d]\nsettings = \
                   { jornal_mode = \"wal\" }\n\
            [shapes.one]\nclients = 1\n[shapes.two]\nclients = 2\n";
        let plan = Plan::parse("t.toml", text).unwrap();
        let loaded = LoadedPlan {
            plan,
            file: "t.toml".into(),
            text: text.to_owned(),
            dir: None,
        };
        let dir = tempfile::tempdir().unwrap();
        let error = look_up_cells(
            &loaded,
            &BuildCache::new(dir.path().to_owned()),
            RequiredBuilds::Names,
        )
        .unwrap_err()
        .to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert!(
            lines[0].starts_with("cells sqlite.c.one, sqlite.c.two: config c (plan): ")
                && lines[0].contains("synchronus"),
            "{error}"
        );
        assert!(
            lines[1].starts_with("cells sqlite.d.one, sqlite.d.two: config d (plan): ")
                && lines[1].contains("jornal_mode"),
            "{error}"
        );
    }

    #[test]
    fn of_two_at_once_one_makes_a_campaign() {
        let dir = tempfile::tempdir().unwrap();
        let plan = load_plan(Some("quick")).unwrap();
        let builds = BuildCache::new(dir.path().join("builds"));
        let store = Store::new(dir.path().join("store"));
        let data_dir = dir.path().join("data");
        let request = CampaignRequest {
            plan: &plan,
            seed: Some(1),
            builds: &builds,
            missing: &BTreeMap::new(),
            data_dir: &data_dir,
            plimsoll_version: "1",
        };
        let both: Vec<_> = std::thread::scope(|scope| {
            let threads =
                [(), ()].map(|()| scope.spawn(|| create_campaign(&store, &request, None)));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        let (made, refused): (Vec<_>, Vec<_>) = both.into_iter().partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 1));
        let error = refused
            .into_iter()
            .find_map(Result::err)
            .unwrap()
            .to_string();
        assert!(error.contains("another campaign is running"), "{error}");
        assert_eq!(store.campaigns().unwrap().len(), 1);

        drop(made);
        create_campaign(&store, &request, None).unwrap();
    }
}
