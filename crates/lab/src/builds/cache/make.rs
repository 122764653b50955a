//! Builds of the cache that are made here: `ENGINE@VERSION+source-FLAGS` of packages, and
//! `ENGINE+LABEL` of what a user gives.

use std::num::NonZero;
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::{BuildName, MADE_FROM_SOURCE as SOURCE, check_label};
use plimsoll_engine::{InstalledBuild, directory_bytes};

use super::{BuildCache, LOCKS, PrivateFolder, check_unchanged};
use crate::builds::error::BuildError;
use crate::builds::folder::remove;
use crate::builds::inspect::basedir::recognise;
use crate::builds::install::from_source::FromSource;
use crate::builds::install::open_rights;
use crate::builds::lock::{COMPILE_DEADLINE, Lock};
use crate::builds::make::recipe::MakePlan;
use crate::builds::make::{GivenSource, Make, Shops, Source, needs, version};
use crate::builds::manifest;
use crate::builds::progress::{FetchProgress, Stage, Watch};
use crate::builds::recipes::recipe::Recipe;
use crate::builds::recipes::resolve::{MADE, ResolvedBuild};
use crate::builds::recipes::shipped::flag_sets;
use crate::builds::record::{self, MadeFrom, Record};

/// What to make.
#[derive(Clone, Debug)]
pub struct MakeRequest {
    pub engine: EngineName,
    /// A version or the start of one, of a package's source.
    pub version: Option<String>,
    /// The flag set's name, or the recipe's usual one.
    pub flags: Option<String>,
    /// In place of a package's.
    pub source: Option<GivenSource>,
    /// The name of a given source's build after `ENGINE+`; else its folder's or revision and the
    /// flag set.
    pub label: Option<String>,
}

/// A build, and what making it took.
#[derive(Clone, Debug)]
pub struct MadeBuild {
    pub build: InstalledBuild,
    /// False if the same had been made before.
    pub is_new: bool,
    /// From the unpacked source to what is installed.
    pub took: Duration,
    /// What it takes on the disk.
    pub bytes: u64,
}

impl BuildCache {
    /// Makes a build of a source, unless the cache has the same one: of the same source, with the
    /// same compiler, flags and recipe. One of that name that differs is replaced.
    pub fn make(
        &self,
        request: &MakeRequest,
        progress: &mut dyn FnMut(&FetchProgress),
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<MadeBuild, BuildError> {
        let mut watch = Watch {
            progress,
            is_cancelled,
            name: request.engine.to_string(),
            stage: Stage::Checking,
            started: Instant::now(),
        };
        let watch = &mut watch;
        match &request.source {
            Some(given) => self.make_given(request, given, watch),
            None => self.make_package(request, watch),
        }
    }

    fn make_package(
        &self,
        request: &MakeRequest,
        watch: &mut Watch<'_>,
    ) -> Result<MadeBuild, BuildError> {
        if request.label.is_some() {
            return Err(BuildError::Usage(
                "a label is for a source of your own: give --source, or leave out --label".into(),
            ));
        }
        let plan = self.recipe_of(request.engine, request.flags.as_deref())?;
        let name = BuildName {
            engine: request.engine,
            version: request.version.clone(),
            source: Some(format!("{SOURCE}-{}", plan.flags.name)),
        };
        let resolved = self.resolve(&name)?;
        watch.name = resolved.name.clone();
        let series = resolved
            .recipes
            .first()
            .map_or(resolved.name.clone(), Recipe::name);
        let lock = self.dir.join(LOCKS).join(format!("{series}.lock"));
        let _lock = Lock::take_within(COMPILE_DEADLINE, &lock, watch)?;
        if let Some(record) = record::read(&self.dir.join(&resolved.name)).ok().flatten() {
            let now = record.provenance.made.as_ref();
            let now = now.map(|made| Make::identity(&plan, &made.source, &made.source));
            if self.is_same(&record, &now.transpose()?) {
                return self.done(record, false);
            }
        }
        let build = self.make_resolved(&name, &resolved, &series, watch)?;
        self.done_as(&build.name, true)
    }

    fn make_given(
        &self,
        request: &MakeRequest,
        given: &GivenSource,
        watch: &mut Watch<'_>,
    ) -> Result<MadeBuild, BuildError> {
        if let Some(version) = &request.version {
            return Err(BuildError::Usage(format!(
                "the source says which version it is; write {} in place of {}@{version}",
                request.engine, request.engine
            )));
        }
        let plan = self.recipe_of(request.engine, request.flags.as_deref())?;
        let word = || format!("{}-{}", given.word(), plan.flags.name);
        let label = request.label.clone().unwrap_or_else(word);
        check_label(&label, "label").map_err(|error| BuildError::Usage(error.to_string()))?;
        self.check_label_is_free(&label)?;
        let name = format!("{}+{label}", request.engine);
        watch.name = name.clone();
        watch.begin(Stage::Checking)?;
        if let GivenSource::Folder(folder) = given {
            // Before anything is read or copied.
            version::read(folder, &folder.display().to_string(), &plan.how)?;
        }
        needs::check(&plan.how.needs)?;
        let source = Source::of_given(given, watch)?;
        let key = source.workshop(&name, request.engine, &plan.flags.name);
        // Commits of two checkouts may be asked for under one label.
        let mut locks = vec![&key, &name];
        locks.dedup();
        let locks = locks.into_iter().map(|lock| {
            let lock = self.dir.join(LOCKS).join(format!("{lock}.lock"));
            Lock::take_within(COMPILE_DEADLINE, &lock, watch)
        });
        let _locks: Vec<Lock> = locks.collect::<Result<_, _>>()?;
        self.remove_partials(&name)?;
        let there = record::read(&self.dir.join(&name)).ok().flatten();
        if let Some(record) = there {
            if record.provenance.source != MADE {
                return Err(BuildError::Usage(format!(
                    "{name} is {} already; choose another label, or remove it with `plimsoll \
                    build remove {name}`",
                    record.build.basedir.display()
                )));
            }
            let now = Make::identity(&plan, &source.hash, source.family())?;
            if self.is_same(&record, &Some(now)) {
                return self.done(record, false);
            }
        }
        let partial = PrivateFolder(self.partial(&name));
        let from_source = FromSource {
            make: Make {
                plan: &plan,
                source: &source,
                key: &key,
                shops: self.shops(),
                objects: self.objects_of(request.engine),
            },
            partial: &partial.0,
            source_name: MADE,
        };
        let ask = |root: &Path| {
            open_rights(root)?;
            let build = recognise(root, &label)?;
            if build.engine != request.engine {
                return Err(BuildError::Usage(format!(
                    "the source is {}'s, not {}'s; write {}",
                    build.engine, request.engine, build.engine
                )));
            }
            Ok(InstalledBuild {
                origin: source.origin.clone(),
                ..build
            })
        };
        let (root, record) = from_source.run(&ask, watch)?;
        self.replace(&root, &record)?;
        self.done_as(&name, true)
    }

    /// The recipes of sources that a name means, with its flags, and the name with those; `None` if
    /// it means no source.
    pub(super) fn of_source(
        &self,
        name: &BuildName,
    ) -> Result<Option<(BuildName, Vec<Recipe>)>, BuildError> {
        let Some(flags) = name.source.as_deref().and_then(flags_of) else {
            return Ok(None);
        };
        let plan = self.recipe_of(name.engine, flags)?;
        let recipes = self.sources.iter();
        let recipes: Vec<Recipe> = recipes
            .filter(|recipe| recipe.engine == name.engine)
            .map(|recipe| recipe.with_flags(&plan))
            .collect();
        let name = BuildName {
            source: Some(format!("{SOURCE}-{}", plan.flags.name)),
            ..name.clone()
        };
        Ok(Some((name, recipes)))
    }

    /// How an engine's sources are compiled, with the flags of this name.
    fn recipe_of(&self, engine: EngineName, flags: Option<&str>) -> Result<MakePlan, BuildError> {
        let how = self.sources.iter().find(|recipe| recipe.engine == engine);
        let how = how.and_then(|recipe| recipe.make.clone());
        let Some(how) = how else {
            let mut known: Vec<&str> = self.sources.iter().map(|r| r.engine.as_str()).collect();
            known.dedup();
            return Err(BuildError::Usage(format!(
                "there is no recipe to compile {engine}; there are some of: {}; compile it \
                yourself and name its folder: `plimsoll build add --basedir DIR --label L`",
                known.join(", ")
            )));
        };
        let sets = flag_sets().with_own(&self.dir)?;
        let flags = sets.find(flags.unwrap_or(&how.flags), &self.dir)?;
        let set = flags.name.clone();
        MakePlan::new(how, flags).ok_or_else(|| {
            BuildError::Usage(format!(
                "{engine} cannot be linked several times, as the flag set {set} asks for: its \
                recipe has no [make.link]; choose a set without links"
            ))
        })
    }

    pub(super) fn shops(&self) -> Shops<'_> {
        let jobs = self
            .jobs
            .or_else(|| std::thread::available_parallelism().ok());
        Shops {
            cache: &self.dir,
            guard: self.guard.as_deref(),
            jobs: jobs.map_or(1, NonZero::get),
        }
    }

    /// How many object files the newest build of an engine had.
    pub(super) fn objects_of(&self, engine: EngineName) -> Option<u64> {
        let records = self.records().ok()?;
        let of_engine = records.into_iter().filter_map(|(_, record)| {
            let record = record.ok().filter(|record| record.build.engine == engine)?;
            record.provenance.made.map(|made| made.objects)
        });
        of_engine.filter(|objects| *objects > 0).last()
    }

    /// Whether a build that is here is what would be made now.
    fn is_same(&self, record: &Record, now: &Option<String>) -> bool {
        let made = record.provenance.made.as_ref();
        made.map(|made| &made.identity) == now.as_ref()
            && now.is_some()
            && check_unchanged(record).is_ok()
            && self.is_whole(record)
    }

    /// Whether all of its files are as they were, links of the server too.
    fn is_whole(&self, record: &Record) -> bool {
        let root = self.dir.join(&record.build.name);
        let wanted = record.provenance.files_sha256.as_deref();
        wanted.is_none_or(|wanted| manifest::changed(&root, wanted).is_ok_and(|of| of.is_none()))
    }

    /// Moves a build to its place, where another may be.
    fn replace(&self, root: &Path, record: &Record) -> Result<InstalledBuild, BuildError> {
        remove(&self.dir.join(&record.build.name))?;
        self.keep(root, record)
    }

    /// Makes what a name means even if a build of that name is here.
    fn make_resolved(
        &self,
        name: &BuildName,
        resolved: &ResolvedBuild,
        series: &str,
        watch: &mut Watch<'_>,
    ) -> Result<InstalledBuild, BuildError> {
        super::check_machine()?;
        self.remove_partials(series)?;
        let partial = PrivateFolder(self.partial(series));
        let made = self.install(resolved, &partial, true, watch)?;
        made.map_err(|refusals| self.gone(name, resolved, &refusals))
    }

    fn done_as(&self, name: &str, is_new: bool) -> Result<MadeBuild, BuildError> {
        let folder = self.dir.join(name);
        let record = record::read(&folder)?.ok_or_else(|| {
            BuildError::Unfit(format!("{} vanished; make it again", folder.display()))
        })?;
        self.done(record, is_new)
    }

    fn done(&self, record: Record, is_new: bool) -> Result<MadeBuild, BuildError> {
        let folder = self.dir.join(&record.build.name);
        let bytes = directory_bytes(&folder).map_err(BuildError::io("read", &folder))?;
        let took = record
            .provenance
            .made
            .as_ref()
            .map_or(0, |made: &MadeFrom| made.seconds);
        Ok(MadeBuild {
            build: record.build,
            is_new,
            took: Duration::from_secs(took),
            bytes,
        })
    }
}

/// The flag set of a build's source: none of `source` alone, `o3` of `source-o3`; `None` of others.
fn flags_of(source: &str) -> Option<Option<&str>> {
    match source.strip_prefix(SOURCE)? {
        "" => Some(None),
        rest => rest.strip_prefix('-').map(Some),
    }
}

#[cfg(test)]
mod tests;
