//! Builds and configs of a plan's cells, looked up before anything is written.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_core::plan::{Cell, Driver, config_error};
use plimsoll_engine::rocksdb::db_bench::DbBench;
use plimsoll_engine::{InstalledBuild, engine, is_built_in};
use plimsoll_store::header::{BuildHeader, CellHeader};
use plimsoll_store::{CampaignDir, CampaignLock};

use super::LoadedPlan;
use crate::builds::BuildCache;
use crate::config::{ResolvedConfig, resolve};
use crate::error::LabError;

/// Whether a lookup accepts builds that are not here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RequiredBuilds<'a> {
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
    need: RequiredBuilds<'_>,
) -> Result<Vec<CellHeader>, LabError> {
    let look_up = LookUp { plan, builds, need };
    let mut headers = Vec::new();
    // Cells of one config are refused for one reason, which is reported once.
    let mut refused: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in &plan.plan.cells {
        match look_up.cell(cell)? {
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

struct LookUp<'a> {
    plan: &'a LoadedPlan,
    builds: &'a BuildCache,
    need: RequiredBuilds<'a>,
}

impl LookUp<'_> {
    /// The header of a cell. The inner error says why its config does not suit its build.
    fn cell(&self, cell: &Cell) -> Result<Result<CellHeader, String>, LabError> {
        let in_cell = |message: String| LabError::Usage(format!("cell {}: {message}", cell.label));
        if let Some(server) = &cell.server {
            // Looked up when a trial starts: now nobody is asked for a password.
            let config = self.config(cell)?;
            return Ok(Ok(CellHeader {
                version: "known after the start".to_owned(),
                origin: format!("external server {}", server.label),
                ..header(cell, config, None)
            }));
        }
        let (installed, known) = if is_built_in(&cell.build) {
            (None, None)
        } else {
            let known = self
                .builds
                .resolve(&cell.build)
                .map_err(|error| in_cell(error.to_string()))?;
            let installed = self
                .builds
                .get(&cell.build)
                .map_err(|error| in_cell(error.to_string()))?;
            (installed, Some(known))
        };
        let config = self.config(cell)?;
        let prefix = cell.config.prefix.first();
        if let Some(program) = prefix.filter(|program| !is_program(program)) {
            return Err(in_cell(format!(
                "[config.{}] prefix: there is no program {program} in PATH",
                cell.config.label
            )));
        }
        let missing_build = match self.need {
            RequiredBuilds::Builds(missing) => missing.get(&cell.build.to_string()).cloned(),
            RequiredBuilds::Names => None,
        };
        let may_be_missing = missing_build.is_some() || matches!(self.need, RequiredBuilds::Names);
        let header = header(cell, config, missing_build);
        Ok(match known {
            Some(known) if installed.is_none() && may_be_missing => Ok(CellHeader {
                version: known.version,
                origin: known.origin,
                ..header
            }),
            _ => with_build(cell, header, installed),
        })
    }

    fn config(&self, cell: &Cell) -> Result<ResolvedConfig, LabError> {
        let plan = self.plan;
        resolve(cell, plan.dir.as_deref()).map_err(|error| match error {
            LabError::Usage(message) => {
                LabError::Plan(config_error(&plan.file, &plan.text, cell, message))
            }
            error => error,
        })
    }
}

/// A cell's header before its build is known.
fn header(cell: &Cell, config: ResolvedConfig, missing_build: Option<String>) -> CellHeader {
    CellHeader {
        label: cell.label.clone(),
        version: String::new(),
        origin: String::new(),
        build: None,
        missing_build,
        config_source: config.source,
        settings: config.settings,
    }
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
        links: build.links.into_iter().map(|link| link.sha256).collect(),
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
