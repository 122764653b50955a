//! The folder of builds: one folder per build, named as plans name it. Builds appear in it whole or
//! not at all.

use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Instant;

use plimsoll_core::engines::{EngineName, Lives};
use plimsoll_core::name::{BuildName, MADE_FROM_SOURCE, check_label, natural_cmp};
use plimsoll_engine::{InstalledBuild, is_built_in};

use crate::builds::error::BuildError;
use crate::builds::fetch::clients::Clients;
use crate::builds::fetch::fetcher::Fetcher;
use crate::builds::fetch::maven::Maven;
use crate::builds::folder::remove;
use crate::builds::inspect::basedir::recognise;
use crate::builds::inspect::server_file::{real_program, sha256, short_version};
use crate::builds::install::from_recipe::Install;
use crate::builds::lock::{COMPILE_DEADLINE, DEADLINE, Lock};
use crate::builds::manifest;
use crate::builds::progress::{FetchProgress, Stage, Watch};
use crate::builds::recipes::recipe::Recipe;
use crate::builds::recipes::resolve::{CachedBuild, MADE, OWN, ResolvedBuild, nearest, resolve};
use crate::builds::recipes::shipped::{recipes, source_recipes};
use crate::builds::record::{self, Provenance, Record};

mod check;
mod clean;
mod copy;
mod list;
mod make;
#[cfg(test)]
mod tests;
mod to_make;

pub use check::{BuildCheck, CheckState};
pub use clean::{Cleaned, Leftover};
pub use list::{BuildState, ListedBuild};
pub use make::{MadeBuild, MakeRequest};
pub use to_make::BuildToMake;

/// In the cache's folder, but no build: locks, and what Maven keeps for itself.
const LOCKS: &str = "locks";
const MAVEN: &str = "maven";

/// The folder of builds.
pub struct BuildCache {
    dir: PathBuf,
    recipes: Vec<Recipe>,
    /// Recipes of what is compiled here.
    sources: Vec<Recipe>,
    fetcher: Box<dyn Fetcher>,
    /// This program's binary, if builds are made under a guard.
    guard: Option<PathBuf>,
    /// How many commands a build runs at the same time; else one for each CPU.
    jobs: Option<NonZero<usize>>,
}

impl BuildCache {
    /// The builds in a folder, which need not exist yet, and all recipes of this version.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        // Clients run in folders of their own, and builds remember where they are.
        let dir = std::path::absolute(&dir).unwrap_or(dir);
        let clients = Clients {
            maven: Maven {
                repository: dir.join(MAVEN),
                lock: dir.join(LOCKS).join("maven.lock"),
            },
        };
        Self {
            recipes: recipes().to_vec(),
            sources: source_recipes().to_vec(),
            fetcher: Box::new(clients),
            dir,
            guard: None,
            jobs: None,
        }
    }

    /// The same, making builds under a guard: when we are killed, nothing compiles on. `program` is
    /// this program's binary.
    pub fn under_guard(self, program: PathBuf) -> Self {
        Self {
            guard: Some(program),
            ..self
        }
    }

    /// The same, making builds with so many commands at a time.
    pub fn with_jobs(self, jobs: NonZero<usize>) -> Self {
        Self {
            jobs: Some(jobs),
            ..self
        }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What a name means, from recipes and the cache alone: nothing is fetched.
    pub fn resolve(&self, name: &BuildName) -> Result<ResolvedBuild, BuildError> {
        let is_offered = self
            .recipes
            .iter()
            .any(|recipe| recipe.engine == name.engine);
        // An engine that nobody packages is compiled: its sources are the only ones.
        let source = (name.source.is_none() && !is_built_in(name) && !is_offered)
            .then(|| MADE_FROM_SOURCE.to_owned());
        let name = &BuildName {
            source: name.source.clone().or(source),
            ..name.clone()
        };
        match self.of_source(name)? {
            Some((name, recipes)) => resolve(&name, &recipes, &self.here()?),
            None => resolve(name, &self.recipes, &self.here()?),
        }
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

    /// [`BuildCache::get`], after a look at all of its files: seconds for a large one.
    pub fn get_whole(&self, name: &BuildName) -> Result<Option<InstalledBuild>, BuildError> {
        let Some(build) = self.get(name)? else {
            return Ok(None);
        };
        let root = self.dir.join(&build.name);
        let Some(record) = record::read(&root)? else {
            return Ok(None);
        };
        if let Some(wanted) = &record.provenance.files_sha256
            && let Some(changed) = manifest::changed(&root, wanted)?
        {
            return Err(unfit(&record, &changed));
        }
        Ok(Some(build))
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
            let name = resolved.name.clone();
            return Err(match to_make::make_command(&resolved) {
                Some(command) => BuildError::NotMade { name, command },
                None => BuildError::NotHere { name },
            });
        }
        check_machine()?;
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
        let is_compiled = resolved.recipes.iter().any(|recipe| recipe.make.is_some());
        let limit = if is_compiled {
            COMPILE_DEADLINE
        } else {
            DEADLINE
        };
        let _lock = Lock::take_within(
            limit,
            &self.dir.join(LOCKS).join(format!("{series}.lock")),
            &mut watch,
        )?;
        // Whoever had the lock may have brought it.
        if let Some(build) = self.get(name)? {
            return Ok(build);
        }
        self.remove_partials(&series)?;
        let partial = PrivateFolder(self.partial(&series));
        self.install(&resolved, &partial, false, &mut watch)?
            .map_err(|refusals| self.gone(name, &resolved, &refusals))
    }

    /// The private folder of a build that comes.
    fn partial(&self, series: &str) -> PathBuf {
        let process = std::process::id();
        self.dir.join(format!("{series}.partial-{process}"))
    }

    fn gone(&self, name: &BuildName, resolved: &ResolvedBuild, refusals: &[String]) -> BuildError {
        let is_source = resolved.recipes.iter().any(|recipe| recipe.make.is_some());
        let known = if is_source {
            &self.sources
        } else {
            &self.recipes
        };
        let others = nearest(name, known, &resolved.name);
        let own = match is_source {
            true => format!(
                "\n  from a tarball or checkout of yours: `plimsoll build make {} --source PATH`",
                name.engine
            ),
            false => String::new(),
        };
        let refusals = refusals.join("\n  ");
        BuildError::Gone(format!(
            "{} is gone; {others}\n  {refusals}{own}",
            resolved.name
        ))
    }

    /// Installs the first of the recipes that still has its package; the inner error says why none
    /// has. A build of its name that is here stays, unless it is to be replaced.
    fn install(
        &self,
        resolved: &ResolvedBuild,
        partial: &PrivateFolder,
        is_replaced: bool,
        watch: &mut Watch<'_>,
    ) -> Result<Result<InstalledBuild, Vec<String>>, BuildError> {
        let mut refusals = Vec::new();
        for recipe in &resolved.recipes {
            let install = Install {
                recipe,
                wanted: resolved.wanted.as_deref(),
                fetcher: self.fetcher.as_ref(),
                partial: &partial.0,
                watch,
                shops: self.shops(),
                objects: self.objects_of(recipe.engine),
            };
            match install.run() {
                Ok((root, record)) => {
                    if is_replaced {
                        remove(&self.dir.join(&record.build.name))?;
                    }
                    return self.keep(&root, &record).map(Ok);
                }
                // Another suite may still have it.
                Err(BuildError::Gone(reason)) => refusals.push(reason),
                Err(error) => return Err(error),
            }
            partial.remove()?;
        }
        Ok(Err(refusals))
    }

    /// Moves a whole build to its place.
    fn keep(&self, root: &Path, record: &Record) -> Result<InstalledBuild, BuildError> {
        let target = self.dir.join(&record.build.name);
        if record::read(&target).ok().flatten().is_none() {
            // What is there without a readable record was not a build.
            remove(&target)?;
            // A power cut behind the rename must not leave a build with empty files.
            File::open(root)
                .and_then(|root| Ok(rustix::fs::syncfs(root)?))
                .map_err(BuildError::io("write to the disk", root))?;
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
    /// is refused, unless it means the same folder, which is then looked at again.
    pub fn add_basedir(&self, basedir: &Path, label: &str) -> Result<InstalledBuild, BuildError> {
        check_label(label, "label").map_err(|error| BuildError::Usage(error.to_string()))?;
        self.check_label_is_free(label)?;
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
        let partial = PrivateFolder(self.dir.join(format!(
            "{}.partial-{}",
            build.name,
            std::process::id()
        )));
        fs::create_dir_all(&partial.0).map_err(BuildError::io("make", &partial.0))?;
        record::write(
            &partial.0,
            &Record {
                provenance: Provenance {
                    source: OWN.to_owned(),
                    packages: Vec::new(),
                    files_sha256: None,
                    made: None,
                },
                build: build.clone(),
            },
        )?;
        remove(&folder)?;
        fs::rename(&partial.0, &folder).map_err(BuildError::io("move the build to", &folder))?;
        sync(&self.dir);
        Ok(build)
    }

    /// A label must not be the name of a source.
    fn check_label_is_free(&self, label: &str) -> Result<(), BuildError> {
        let mut recipes = self.recipes.iter().chain(&self.sources);
        let taken = recipes.find(|recipe| {
            let rest = label.strip_prefix(&recipe.source);
            let is_source = recipe.make.is_some() && rest.is_some_and(|r| r.starts_with('-'));
            recipe.source == label || is_source
        });
        let taken = taken.map(|recipe| recipe.engine);
        match taken.or_else(|| engine_with_part(label)) {
            None => Ok(()),
            Some(engine) => Err(BuildError::Usage(format!(
                "the label \"{label}\" is the name of a source of {engine}; choose another"
            ))),
        }
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
        // Without its record it is not a build, whatever happens next.
        let folder = self.dir.join(&name);
        let record = folder.join(record::FILE);
        fs::remove_file(&record).map_err(BuildError::io("remove", &record))?;
        remove(&folder)?;
        Ok(name)
    }

    /// Every folder with a record, readable or not, by name.
    fn records(&self) -> Result<Vec<FolderRecord>, BuildError> {
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

    fn here(&self) -> Result<Vec<CachedBuild>, BuildError> {
        let readable = self
            .records()?
            .into_iter()
            .filter_map(|(name, record)| record.ok().map(|record| (name, record)));
        Ok(readable
            .map(|(name, record)| CachedBuild {
                name,
                engine: record.build.engine,
                version: short_version(&record.build.version).to_owned(),
                source: record.provenance.source,
                origin: record.build.origin,
            })
            .collect())
    }
}

fn check_machine() -> Result<(), BuildError> {
    match std::env::consts::ARCH {
        "x86_64" => Ok(()),
        other => Err(BuildError::Usage(format!(
            "recipes are for x86-64 and this machine is {other}; add a build of your own with \
            --basedir"
        ))),
    }
}

/// The engine of which one version is part of this program, under this source.
fn engine_with_part(source: &str) -> Option<EngineName> {
    let mut with_builds = EngineName::ALL
        .into_iter()
        .filter(|engine| engine.facts().builds.is_some());
    with_builds.find(|engine| {
        is_built_in(&BuildName {
            engine: *engine,
            version: None,
            source: Some(source.to_owned()),
        })
    })
}

/// A folder may hold several libraries, of which the file that was given is the build.
fn is_other_library(one: &InstalledBuild, other: &InstalledBuild) -> bool {
    one.engine.facts().lives == Lives::Library && one.server != other.server
}

/// A folder's name and what its record says.
type FolderRecord = (String, Result<Record, BuildError>);

/// A private folder that does not outlive its value.
struct PrivateFolder(PathBuf);

impl PrivateFolder {
    fn remove(&self) -> Result<(), BuildError> {
        remove(&self.0)
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next who fetches this build.
        let _ = self.remove();
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
    Err(unfit(record, &format!("{} {problem}", real.display())))
}

/// The error of a build that is not what it was.
fn unfit(record: &Record, problem: &str) -> BuildError {
    let build = &record.build;
    let name = &build.name;
    let next = if record.provenance.source == MADE {
        "make it again with `plimsoll build make`".to_owned()
    } else if record.provenance.source == OWN {
        let label = name.split_once('+').map_or("...", |(_, label)| label);
        format!(
            "add it again with `plimsoll build add --basedir {} --label {label}`",
            build.basedir.display()
        )
    } else {
        format!(
            "fetch it again with `plimsoll build remove {name}` and `plimsoll build add {name}`"
        )
    };
    BuildError::Unfit(format!("{name}: {problem}; {next}"))
}
