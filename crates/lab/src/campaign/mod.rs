//! From a plan to a campaign: everything is looked up and checked before the first byte is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use plimsoll_core::METHODOLOGY_VERSION;
use plimsoll_core::plan::{Cell, Driver, Plan, StepKind, Workload, config_error};
use plimsoll_core::schedule::schedule;
use plimsoll_core::units::format_bytes;
use plimsoll_engine::rocksdb::db_bench::DbBench;
use plimsoll_engine::{InstalledBuild, bytes_at_start, bytes_per_row, engine};
use plimsoll_store::header::{BuildHeader, CampaignHeader, CellHeader, FORMAT};
use plimsoll_store::{CampaignDir, CampaignLock, Store, StoreError};
use plimsoll_workload::kv::is_universal;

use crate::builds::BuildCache;
use crate::config::resolve;
use crate::error::LabError;
use crate::passwords::{Passwords, keep_passwords_from_children};
use crate::places::{DataTurn, check_data_root, prepare_data_root, take_data_root_once};
use crate::shipped::{DEFAULT_PLAN, shipped_plan, shipped_plans, shipped_workload};

/// Free space must exceed the estimate by this factor.
const DISK_MARGIN: f64 = 1.2;
const ID_TRIES: u32 = 20;

/// A plan with its text and the folder that its paths are relative to.
#[derive(Clone, Debug)]
pub struct LoadedPlan {
    /// The checked plan.
    pub plan: Plan,
    /// What stands for it in errors.
    pub file: String,
    /// Its text.
    pub text: String,
    /// The folder of its file; `None` for a shipped plan.
    pub dir: Option<PathBuf>,
}

/// Reads a plan: a file, or the name of a shipped one; without either the quick plan.
pub fn load_plan(plan: Option<&str>) -> Result<LoadedPlan, LabError> {
    let name = plan.unwrap_or(DEFAULT_PLAN);
    let path = Path::new(name);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|error| LabError::Usage(format!("the plan {name} cannot be read: {error}")))?;
        let dir = path.parent().map(|dir| {
            if dir.as_os_str().is_empty() {
                Path::new(".")
            } else {
                dir
            }
        });
        let read = |file: &str| {
            let path = dir.unwrap_or(Path::new(".")).join(file);
            std::fs::read_to_string(&path).map_err(|error| {
                format!(
                    "{}: {error}; its path is relative to the plan",
                    path.display()
                )
            })
        };
        let plan = Plan::parse_with(name, &text, &read)?;
        keep_passwords_from_children(&plan);
        return Ok(LoadedPlan {
            plan,
            file: name.to_owned(),
            text,
            dir: dir.map(Path::to_owned),
        });
    }
    let Some(text) = shipped_plan(name) else {
        let known: Vec<&str> = shipped_plans().map(|(known, _)| known).collect();
        let hint = plimsoll_core::suggest::hint(name, known.iter().copied());
        return Err(LabError::Usage(format!(
            "there is no plan file {name}{hint}; shipped plans: {}",
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
    /// The plan.
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

/// Whether a look-up is content with builds that are not here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Need<'a> {
    /// Every build must be here, but those that could not be fetched for the reasons given.
    Builds(&'a BTreeMap<String, String>),
    /// A build that recipes know is enough: its config is checked when it is here.
    Names,
}

/// Looks up builds and configs. Fails on the first cell whose build or config is not there, and
/// with all cells whose config does not suit the build; starts, fetches and writes nothing.
pub(crate) fn look_up_cells(
    plan: &LoadedPlan,
    builds: &BuildCache,
    need: Need<'_>,
) -> Result<Vec<CellHeader>, LabError> {
    let resolve = |cell: &Cell| {
        resolve(cell, plan.dir.as_deref()).map_err(|error| match error {
            LabError::Usage(message) => {
                LabError::Plan(config_error(&plan.file, &plan.text, cell, message))
            }
            error => error,
        })
    };
    let look_up = |cell: &Cell| {
        let in_cell = |message: String| LabError::Usage(format!("cell {}: {message}", cell.label));
        if let Some(server) = &cell.server {
            // Looked up when a trial starts: now nobody is asked for a password.
            let config = resolve(cell)?;
            return Ok(Ok(CellHeader {
                label: cell.label.clone(),
                version: "known after the start".to_owned(),
                origin: format!("external server {}", server.label),
                build: None,
                missing_build: None,
                config_source: config.source,
                settings: config.settings,
            }));
        }
        let (installed, known) = if cell.build.engine.is_built_in() {
            (None, None)
        } else {
            let known = builds
                .resolve(&cell.build)
                .map_err(|error| in_cell(error.to_string()))?;
            (
                builds
                    .get(&cell.build)
                    .map_err(|error| in_cell(error.to_string()))?,
                Some(known),
            )
        };
        let config = resolve(cell)?;
        if let Some(program) = cell
            .config
            .prefix
            .first()
            .filter(|program| !is_program(program))
        {
            return Err(in_cell(format!(
                "[config.{}] prefix: there is no program {program} in PATH",
                cell.config.label
            )));
        }
        let missing_build = match need {
            Need::Builds(missing) => missing.get(&cell.build.to_string()).cloned(),
            Need::Names => None,
        };
        let header = CellHeader {
            label: cell.label.clone(),
            version: String::new(),
            origin: String::new(),
            build: None,
            missing_build,
            config_source: config.source,
            settings: config.settings,
        };
        Ok(match known {
            Some(known)
                if installed.is_none()
                    && (header.missing_build.is_some() || matches!(need, Need::Names)) =>
            {
                Ok(CellHeader {
                    version: known.version,
                    origin: known.origin,
                    ..header
                })
            }
            _ => with_build(cell, header, installed),
        })
    };
    let mut headers = Vec::new();
    let mut refused: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &plan.plan.cells {
        match look_up(cell)? {
            Ok(header) => headers.push(header),
            Err(reason) => match refused.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, cells)) => cells.push(&cell.label),
                None => refused.push((reason, vec![&cell.label])),
            },
        }
    }
    if refused.is_empty() {
        return Ok(headers);
    }
    let sentence = |(reason, cells): &(String, Vec<&str>)| {
        format!(
            "cell{} {}: {reason}",
            if cells.len() == 1 { "" } else { "s" },
            cells.join(", ")
        )
    };
    Err(LabError::Usage(
        refused.iter().map(sentence).collect::<Vec<_>>().join("\n"),
    ))
}

/// The header of a cell whose build is here, or why its config does not suit the build.
fn with_build(
    cell: &Cell,
    header: CellHeader,
    installed: Option<InstalledBuild>,
) -> Result<CellHeader, String> {
    let engine = engine(&cell.build, installed.as_ref()).map_err(|error| error.to_string())?;
    engine.check_settings(&header.settings).map_err(|error| {
        format!(
            "config {} ({}): {error}",
            cell.config.label, header.config_source
        )
    })?;
    if let Some(build) = installed
        .as_ref()
        .filter(|_| cell.config.driver == Driver::DbBench)
    {
        // Asked for its flags now: a setting that db_bench has no flag for would fail the trial
        // hours later.
        let program =
            DbBench::new(build, &[], &cell.config.env).map_err(|error| error.to_string())?;
        program
            .check(&header.settings)
            .map_err(|error| error.to_string())?;
    }
    let about = engine.build();
    let build = installed.map(|build| BuildHeader {
        name: build.name,
        server_sha256: build.server_sha256,
        toolchain: build.toolchain,
    });
    Ok(CellHeader {
        version: about.version,
        origin: about.origin,
        build,
        missing_build: None,
        ..header
    })
}

/// Cells of a campaign whose builds could not be fetched take the builds that are here now.
pub(crate) fn take_builds_that_came(
    campaign: &mut CampaignDir,
    lock: &CampaignLock,
    builds: &BuildCache,
) -> Result<(), LabError> {
    for index in 0..campaign.header.cells.len() {
        let (cell, header) = (
            &campaign.header.plan.cells[index],
            &campaign.header.cells[index],
        );
        if header.missing_build.is_none() {
            continue;
        }
        if let Some(installed) = builds.get(&cell.build)? {
            let found = with_build(cell, header.clone(), Some(installed));
            let found = found
                .map_err(|reason| LabError::Usage(format!("cell {}: {reason}", cell.label)))?;
            campaign.replace_cell(lock, index, found)?;
        }
    }
    Ok(())
}

fn is_program(name: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    name.contains('/') && Path::new(name).is_file()
        || std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}

/// A cautious estimate of the bytes on disk per row of sysbench's tables, and of those that users
/// describe, on any engine: some 230 of the row and its two indexes, as much again for what updates
/// leave behind, and logs.
const SYSBENCH_ROW_BYTES: u64 = 600;

/// Rows a cell's tables hold at their largest.
fn peak_rows(cell: &Cell) -> u64 {
    let mut rows = 0u64;
    let mut peak = 0;
    for step in cell.workload.steps() {
        let inserted = step.all_inserted_rows();
        peak = peak.max(rows.saturating_add(inserted));
        let is_balanced = matches!(
            step.kind,
            StepKind::Write { deletes: true, .. } | StepKind::ReadWrite { deletes: true, .. }
        );
        if !is_balanced {
            rows = rows.saturating_add(inserted);
        } else {
            // Deleted space is reused, with some lag.
            peak = peak.max(rows.saturating_add(rows / 10));
        }
    }
    // With deletes the table never holds more than what was loaded and a little.
    let deletes = cell
        .workload
        .steps()
        .iter()
        .any(|step| matches!(step.kind, StepKind::Write { deletes: true, .. }));
    if deletes {
        rows.saturating_add(rows / 10)
    } else {
        peak
    }
}

/// An estimate of the bytes that a cell's tables and indexes take at their largest.
pub(crate) fn peak_table_bytes(cell: &Cell, settings: &BTreeMap<String, String>) -> u64 {
    let engine = cell.build.engine;
    let row_bytes = match cell.workload {
        Workload::InsertBenchmark(_) => bytes_per_row(engine),
        // Universal compaction may hold all of it twice, and write it a third time.
        Workload::Rocksdb(_) if is_universal(settings) => bytes_per_row(engine) * 2,
        Workload::Rocksdb(_) => bytes_per_row(engine),
        Workload::Sysbench(_) | Workload::File(_) => SYSBENCH_ROW_BYTES,
    };
    peak_rows(cell).saturating_mul(row_bytes)
}

/// Rows a cell's tables hold at their largest, and an estimate of the bytes that its data directory
/// takes then, logs that are made in advance included.
pub(crate) fn peak_size(cell: &Cell, settings: &BTreeMap<String, String>) -> (u64, u64) {
    // An external server has its own disk, which we know nothing of.
    let of_ours = || {
        peak_table_bytes(cell, settings).saturating_add(bytes_at_start(cell.build.engine, settings))
    };
    (
        peak_rows(cell),
        if cell.server.is_some() { 0 } else { of_ours() },
    )
}

/// Trials run one after the other and remove their data, so the largest cell decides.
pub(crate) fn check_disk(
    plan: &Plan,
    headers: &[CellHeader],
    data_dir: &Path,
) -> Result<(), LabError> {
    let sizes = plan
        .cells
        .iter()
        .zip(headers)
        .map(|(cell, header)| (peak_size(cell, &header.settings).1, cell.label.as_str()));
    let (bytes, cell) = sizes.max().unwrap_or_default();
    check_free(bytes, &format!("cell {cell}"), data_dir)
}

/// Refuses a disk without room for so many bytes and a margin.
pub(crate) fn check_free(bytes: u64, what: &str, data_dir: &Path) -> Result<(), LabError> {
    let free = plimsoll_host::free_bytes(data_dir).map_err(|error| {
        LabError::io(
            format!("failed to read the free space of {}", data_dir.display()),
            error,
        )
    })?;
    if (free as f64) < bytes as f64 * DISK_MARGIN {
        return Err(LabError::Machine(format!(
            "the disk is too small: {what} needs about {} in {} and {} are free; lower rows, or \
            choose a larger disk with --data DIR",
            format_bytes((bytes as f64 * DISK_MARGIN) as u64),
            data_dir.display(),
            format_bytes(free)
        )));
    }
    Ok(())
}

/// Makes a campaign in the store, and takes its data folder for it: a campaign that could not run
/// at once is not made. Nothing is written before everything is checked.
pub fn create_campaign(
    store: &Store,
    request: &CampaignRequest<'_>,
) -> Result<(CampaignDir, DataTurn), LabError> {
    let plan = &request.plan.plan;
    let cells = look_up_cells(request.plan, request.builds, Need::Builds(request.missing))?;
    Passwords::check(plan)?;
    check_data_root(request.data_dir)?;
    let turn = take_data_root_once(request.data_dir, || {
        check_disk(plan, &cells, request.data_dir)
    })?;
    let data_dir = prepare_data_root(request.data_dir)?;
    let seed = request.seed.or(plan.seed).unwrap_or_else(seed_from_clock);
    let header = CampaignHeader {
        format: FORMAT,
        id: String::new(),
        created: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%SZ")
            .to_string(),
        plimsoll_version: request.plimsoll_version.to_owned(),
        methodology_version: METHODOLOGY_VERSION,
        seed,
        plan_text: request.plan.text.clone(),
        plan: plan.clone(),
        cells,
        schedule: schedule(plan.cells.len(), plan.blocks, seed),
        data_dir: data_dir.display().to_string(),
        confirm: None,
    };
    Ok((create_in_store(store, header, &plan.name)?, turn))
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
            let error = look_up_cells(&loaded, &builds, Need::Names)
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
            Need::Names,
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
            let threads = [(), ()].map(|()| scope.spawn(|| create_campaign(&store, &request)));
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
        create_campaign(&store, &request).unwrap();
    }
}
