//! The folder of builds: one folder per build, named as plans name it. Builds appear in it whole or
//! not at all.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use plimsoll_core::name::{BuildName, EngineName, check_label, natural_cmp};
use plimsoll_engine::{InstalledBuild, directory_bytes};

use super::basedir::recognise;
use super::client::{Clients, Fetcher};
use super::error::BuildError;
use super::facts::Facts;
use super::install::Install;
use super::lock::Lock;
use super::progress::{FetchProgress, Stage, Watch};
use super::recipe::Recipe;
use super::record::{self, Record};
use super::resolve::{Here, OWN, ResolvedBuild, is_patch_of, nearest, resolve};
use super::server_file::{real_program, sha256, short_version};
use super::shipped::recipes;

/// In the cache's folder, but no build: locks, and what Maven keeps for itself.
const LOCKS: &str = "locks";
const MAVEN: &str = "maven";

/// The folder of builds.
pub struct BuildCache {
    dir: PathBuf,
    recipes: Vec<Recipe>,
    fetcher: Box<dyn Fetcher>,
}

/// A build that is offered, or here, or both.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ListedBuild {
    /// The name for plans and for `build add`.
    pub name: String,
    /// The exact version, or a series followed by `.*`.
    pub version: String,
    /// The recipe's source, or `own`.
    pub source: String,
    /// Whether it can be used at once.
    pub state: BuildState,
    /// Its bytes on the disk; unknown for what is not here, and zero for a folder that is the
    /// user's own.
    pub bytes: Option<u64>,
    /// The package or folder.
    pub origin: String,
}

/// Whether a build can be used at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildState {
    /// In the cache.
    Here,
    /// To be fetched.
    Available,
    /// In the cache, with a record that cannot be read.
    Damaged,
}

/// What a check of a build found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct BuildCheck {
    /// The build.
    pub name: String,
    /// What it is like.
    pub state: CheckState,
    /// What differs, or the version.
    pub finding: String,
}

/// What a build is like after it was installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// As it was.
    Ok,
    /// The server is another one, or does not run.
    Changed,
    /// The server's file, or the build, is not there.
    Missing,
}

impl BuildCache {
    /// The builds in a folder, which need not exist yet, and all recipes of this version.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        // Clients run in folders of their own, and builds remember where they are.
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        let clients = Clients {
            maven_repository: dir.join(MAVEN),
            maven_lock: dir.join(LOCKS).join("maven.lock"),
        };
        Self {
            recipes: recipes().to_vec(),
            fetcher: Box::new(clients),
            dir,
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What a name means, from recipes and the cache alone: nothing is fetched.
    pub fn resolve(&self, name: &BuildName) -> Result<ResolvedBuild, BuildError> {
        resolve(name, &self.recipes, &self.here()?)
    }

    /// The build, if it is here. Its server must be the one that was added.
    pub fn get(&self, name: &BuildName) -> Result<Option<InstalledBuild>, BuildError> {
        let resolved = self.resolve(name)?;
        if !resolved.is_here {
            return Ok(None);
        }
        let Some(record) = record::read(&self.dir.join(&resolved.name))? else {
            return Ok(None);
        };
        check_unchanged(&record)?;
        Ok(Some(record.build))
    }

    /// The build; fetched where it is not here and `is_offline` allows it. Another process that
    /// fetches the same build is waited for.
    pub fn add(
        &self,
        name: &BuildName,
        is_offline: bool,
        progress: &mut dyn FnMut(&FetchProgress),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<InstalledBuild, BuildError> {
        if let Some(build) = self.get(name)? {
            return Ok(build);
        }
        let resolved = self.resolve(name)?;
        if is_offline {
            return Err(BuildError::NotHere {
                name: resolved.name,
            });
        }
        if std::env::consts::ARCH != "x86_64" {
            return Err(BuildError::Usage(format!(
                "recipes are for x86-64 and this machine is {}; add a build of your own with \
                --basedir",
                std::env::consts::ARCH
            )));
        }
        let mut watch = Watch {
            progress,
            is_cancelled,
            name: resolved.name.clone(),
            stage: Stage::Fetching,
            started: Instant::now(),
        };
        // One lock for all that a moving series can become.
        let series = resolved
            .recipes
            .first()
            .map_or(resolved.name.clone(), Recipe::name);
        let _lock = Lock::take(
            &self.dir.join(LOCKS).join(format!("{series}.lock")),
            &mut watch,
        )?;
        // Whoever had the lock may have brought it.
        if let Some(build) = self.get(name)? {
            return Ok(build);
        }
        self.remove_partials(&series)?;
        let partial = Partial(
            self.dir
                .join(format!("{series}.partial-{}", std::process::id())),
        );
        let mut refusals = Vec::new();
        for recipe in &resolved.recipes {
            let install = Install {
                recipe,
                wanted: resolved.wanted.as_deref(),
                fetcher: self.fetcher.as_ref(),
                partial: &partial.0,
                watch: &mut watch,
            };
            match install.run() {
                Ok((root, record)) => return self.keep(&root, &record),
                // Another suite may still have it.
                Err(BuildError::Gone(reason)) => refusals.push(reason),
                Err(error) => return Err(error),
            }
            partial.remove()?;
        }
        let others = nearest(name, &self.recipes, &resolved.name);
        Err(BuildError::Gone(format!(
            "{} is gone; {others}\n  {}",
            resolved.name,
            refusals.join("\n  ")
        )))
    }

    /// Moves a whole build to its place.
    fn keep(&self, root: &Path, record: &Record) -> Result<InstalledBuild, BuildError> {
        let target = self.dir.join(&record.build.name);
        if record::read(&target).ok().flatten().is_none() {
            // What is there without a readable record was not a build.
            remove(&target)?;
            fs::rename(root, &target).map_err(BuildError::io("move the build to", &target))?;
            sync(&self.dir);
        }
        let kept = record::read(&target)?;
        kept.map(|record| record.build).ok_or_else(|| {
            BuildError::Unfit(format!(
                "{} vanished; add the build again",
                target.display()
            ))
        })
    }

    /// What a killed process left. The lock of `series` is held.
    fn remove_partials(&self, series: &str) -> Result<(), BuildError> {
        let prefix = format!("{series}.partial-");
        for entry in fs::read_dir(&self.dir).map_err(BuildError::io("read", &self.dir))? {
            let path = entry.map_err(BuildError::io("read", &self.dir))?.path();
            if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
            {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Registers a user's own build under `ENGINE+LABEL`. Nothing is copied. A label that is taken
    /// is refused, unless it means the same folder, which is then looked at anew.
    pub fn add_basedir(&self, basedir: &Path, label: &str) -> Result<InstalledBuild, BuildError> {
        check_label(label, "label").map_err(|error| BuildError::Usage(error.to_string()))?;
        if let Some(recipe) = self.recipes.iter().find(|recipe| recipe.source == label) {
            return Err(BuildError::Usage(format!(
                "the label \"{label}\" is the name of a source of {}; choose another",
                recipe.engine
            )));
        }
        let build = recognise(basedir, label)?;
        let folder = self.dir.join(&build.name);
        if let Some(taken) = record::read(&folder)?.filter(|taken| {
            taken.build.basedir != build.basedir || is_other_library(&taken.build, &build)
        }) {
            return Err(BuildError::Usage(format!(
                "{} is {} already; choose another label, or remove it with `plimsoll build remove \
                {}`",
                build.name,
                taken.build.basedir.display(),
                build.name
            )));
        }
        let partial = Partial(self.dir.join(format!(
            "{}.partial-{}",
            build.name,
            std::process::id()
        )));
        fs::create_dir_all(&partial.0).map_err(BuildError::io("make", &partial.0))?;
        record::write(
            &partial.0,
            &Record {
                source: OWN.to_owned(),
                packages: Vec::new(),
                build: build.clone(),
            },
        )?;
        remove(&folder)?;
        fs::rename(&partial.0, &folder).map_err(BuildError::io("move the build to", &folder))?;
        sync(&self.dir);
        Ok(build)
    }

    /// What recipes offer and what is here, by engine and version. A series that is here is not
    /// listed again as available.
    pub fn list(&self) -> Result<Vec<ListedBuild>, BuildError> {
        let records = self.records()?;
        let mut listed = Vec::new();
        for (name, record) in &records {
            let bytes = directory_bytes(&self.dir.join(name)).ok();
            listed.push(match record {
                Ok(record) => ListedBuild {
                    name: name.clone(),
                    version: record.build.version.clone(),
                    source: record.source.clone(),
                    state: BuildState::Here,
                    bytes: if record.source == OWN { Some(0) } else { bytes },
                    origin: record.build.origin.clone(),
                },
                Err(_) => ListedBuild {
                    name: name.clone(),
                    version: "-".to_owned(),
                    source: "-".to_owned(),
                    state: BuildState::Damaged,
                    bytes,
                    origin: self.dir.join(name).display().to_string(),
                },
            });
        }
        for recipe in &self.recipes {
            let is_here = |listed: &ListedBuild| {
                let version = short_version(&listed.version);
                let is_of_recipe = listed.source == recipe.source
                    && listed.name.starts_with(recipe.engine.as_str());
                let is_same_version = if recipe.is_series() {
                    is_patch_of(version, &recipe.version)
                } else {
                    version == recipe.version
                };
                listed.name == recipe.name() || (is_of_recipe && is_same_version)
            };
            if !listed.iter().any(is_here) {
                listed.push(ListedBuild {
                    name: recipe.name(),
                    version: if recipe.is_series() {
                        format!("{}.*", recipe.version)
                    } else {
                        recipe.version.clone()
                    },
                    source: recipe.source.clone(),
                    state: BuildState::Available,
                    bytes: None,
                    origin: recipe.package.describe(),
                });
            }
        }
        let engine = |build: &ListedBuild| {
            build
                .name
                .split(['@', '+'])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        listed.sort_by(|a, b| {
            engine(a)
                .cmp(&engine(b))
                .then_with(|| natural_cmp(&a.version, &b.version))
                .then_with(|| a.name.cmp(&b.name))
        });
        Ok(listed)
    }

    /// Removes a build from the cache; of a user's own build only what we remember of it. Returns
    /// what was removed.
    pub fn remove(&self, name: &BuildName) -> Result<String, BuildError> {
        // The folder's own name comes first, so that a damaged build can be removed.
        let exact = name.to_string();
        let name = if self.dir.join(&exact).join(record::FILE).exists() {
            exact
        } else {
            let resolved = self.resolve(name)?;
            if !resolved.is_here {
                return Err(BuildError::Usage(format!(
                    "{} is not here; see `plimsoll build list`",
                    resolved.name
                )));
            }
            resolved.name
        };
        // Without its record it is no build, whatever happens next.
        let folder = self.dir.join(&name);
        let record = folder.join(record::FILE);
        fs::remove_file(&record).map_err(BuildError::io("remove", &record))?;
        remove(&folder)?;
        Ok(name)
    }

    /// Looks at builds again: the hash of the server, and whether it starts and states the same
    /// version. Without a name, at all.
    pub fn check(&self, name: Option<&BuildName>) -> Result<Vec<BuildCheck>, BuildError> {
        let records = self.records()?;
        let Some(name) = name else {
            return Ok(records
                .into_iter()
                .map(|(name, record)| check(name, record))
                .collect());
        };
        let exact = name.to_string();
        let wanted = if records.iter().any(|(known, _)| *known == exact) {
            exact
        } else {
            self.resolve(name)?.name
        };
        Ok(
            match records.into_iter().find(|(known, _)| *known == wanted) {
                Some((name, record)) => vec![check(name, record)],
                None => {
                    let finding = format!("not here; fetch it with `plimsoll build add {wanted}`");
                    vec![BuildCheck {
                        name: wanted,
                        state: CheckState::Missing,
                        finding,
                    }]
                }
            },
        )
    }

    /// Every folder with a record, readable or not, by name.
    fn records(&self) -> Result<Vec<Found>, BuildError> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(BuildError::io("read", &self.dir)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(BuildError::io("read", &self.dir))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains(".partial-") {
                continue;
            }
            match record::read(&entry.path()) {
                Ok(Some(record)) => found.push((name, Ok(record))),
                Ok(None) => {}
                // A plain file in the folder is not ours to judge.
                Err(_) if !entry.path().is_dir() => {}
                Err(error) => found.push((name, Err(error))),
            }
        }
        found.sort_by(|(a, _), (b, _)| natural_cmp(a, b));
        Ok(found)
    }

    fn here(&self) -> Result<Vec<Here>, BuildError> {
        let readable = self
            .records()?
            .into_iter()
            .filter_map(|(name, record)| record.ok().map(|record| (name, record)));
        Ok(readable
            .map(|(name, record)| Here {
                name,
                engine: record.build.engine,
                version: short_version(&record.build.version).to_owned(),
                source: record.source,
                origin: record.build.origin,
            })
            .collect())
    }
}

/// A folder may hold several libraries, of which the file that was given is the build.
fn is_other_library(one: &InstalledBuild, other: &InstalledBuild) -> bool {
    one.engine == EngineName::Rocksdb && one.server != other.server
}

/// A folder's name and what its record says.
type Found = (String, Result<Record, BuildError>);

/// A private folder that does not outlive its value.
struct Partial(PathBuf);

impl Partial {
    fn remove(&self) -> Result<(), BuildError> {
        remove(&self.0)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next who fetches this build.
        let _ = self.remove();
    }
}

fn remove(folder: &Path) -> Result<(), BuildError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(BuildError::io("remove", folder)(error))
        }
        _ => Ok(()),
    }
}

/// Makes names in a folder durable, where the file system can.
fn sync(folder: &Path) {
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
}

fn check_unchanged(record: &Record) -> Result<(), BuildError> {
    let build = &record.build;
    let real = real_program(&build.server);
    let problem = if !real.is_file() {
        "is not there any more"
    } else if sha256(&real)? != build.server_sha256 {
        "is another program than when it was added"
    } else {
        return Ok(());
    };
    let name = &build.name;
    let next = if record.source == OWN {
        let label = name.split_once('+').map_or("...", |(_, label)| label);
        format!(
            "add it again with `plimsoll build add --basedir {} --label {label}`",
            build.basedir.display()
        )
    } else {
        format!("fetch it anew with `plimsoll build remove {name}` and `plimsoll build add {name}`")
    };
    Err(BuildError::Unfit(format!(
        "{name}: {} {problem}; {next}",
        real.display()
    )))
}

fn check(name: String, record: Result<Record, BuildError>) -> BuildCheck {
    let (state, finding) = match record {
        Err(error) => (CheckState::Changed, error.to_string()),
        Ok(record) => check_build(&record.build),
    };
    BuildCheck {
        name,
        state,
        finding,
    }
}

fn check_build(build: &InstalledBuild) -> (CheckState, String) {
    let real = real_program(&build.server);
    if !real.is_file() || !build.server.is_file() {
        return (
            CheckState::Missing,
            format!("{} is not there", build.server.display()),
        );
    }
    match sha256(&real) {
        Err(error) => return (CheckState::Changed, error.to_string()),
        Ok(hash) if hash != build.server_sha256 => {
            return (
                CheckState::Changed,
                format!(
                    "{} has sha256 {hash}, recorded is {}",
                    real.display(),
                    build.server_sha256
                ),
            );
        }
        Ok(_) => {}
    }
    match Facts::ask(build.engine, &build.server, &build.env) {
        Err(error) => (CheckState::Changed, error.to_string()),
        Ok(Facts { version, .. }) if version != build.version => (
            CheckState::Changed,
            format!("it says {version}, recorded is {}", build.version),
        ),
        Ok(Facts { version, .. }) => (CheckState::Ok, version),
    }
}

#[cfg(test)]
mod tests;
