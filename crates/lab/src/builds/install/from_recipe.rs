//! From a recipe to files: fetch, unpack, recognise. All of it happens in a private folder; the
//! caller moves what is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use glob::Pattern;
use plimsoll_core::engines::Lives;
use plimsoll_core::toolchain::{OPTIMISATION, UNKNOWN};
use plimsoll_engine::{DataInit, InstalledBuild};

use crate::builds::error::BuildError;
use crate::builds::fetch::fetcher::{Fetched, Fetcher};
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::library::library_path;
use crate::builds::inspect::server_file::{real_program, sha256, short_version};
use crate::builds::inspect::toolchain::toolchain;
use crate::builds::install::from_source::{FromSource, fetched_source};
use crate::builds::install::libraries::bring_missing;
use crate::builds::install::own_loader::wrap_programs;
use crate::builds::install::unpack::{open_rights, unpack, unpack_debs};
use crate::builds::make::recipe::MakePlan;
use crate::builds::make::{Make, Shops, needs};
use crate::builds::manifest;
use crate::builds::progress::{Stage, Watch};
use crate::builds::recipes::recipe::{Layout, Package, Recipe};
use crate::builds::recipes::resolve::is_patch_of;
use crate::builds::recipes::shipped::debian;
use crate::builds::record::{self, Provenance, Record};

/// What an installation works with.
pub(crate) struct Install<'a, 'w> {
    pub recipe: &'a Recipe,
    /// The exact version or the series the source must still have.
    pub wanted: Option<&'a str>,
    pub fetcher: &'a dyn Fetcher,
    /// Private; removed by the caller.
    pub partial: &'a Path,
    pub watch: &'a mut Watch<'w>,
    pub shops: Shops<'a>,
    /// How many object files an earlier build of the engine had.
    pub objects: Option<u64>,
}

impl<'a> Install<'a, '_> {
    /// Returns the folder with the whole build, its record written, and the record.
    pub fn run(mut self) -> Result<(PathBuf, Record), BuildError> {
        if let (Some(how), Some(flags)) = (&self.recipe.make, &self.recipe.flags) {
            let plan = MakePlan {
                how: how.clone(),
                flags: flags.clone(),
            };
            return self.make(&plan);
        }
        let root = self.partial.join("build");
        fs::create_dir_all(&root).map_err(BuildError::io("make", &root))?;
        self.watch.begin(Stage::Fetching)?;
        let (package, fetched) = self.fetch()?;

        self.watch.begin(Stage::Unpacking)?;
        let is_debian = matches!(package, Package::Apt { .. });
        let packages = self.unpack(is_debian, &fetched.files, &root)?;
        open_rights(&root)?;
        check_layout(&self.recipe.layout, &root)?;
        let env = self.bring_libraries(is_debian, &root)?;

        self.watch.begin(Stage::Checking)?;
        let origin = match &fetched.package_version {
            Some(version) => format!("{}, package version {version}", package.describe()),
            None => package.describe(),
        };
        let build = recognise(self.recipe, &root, env, origin)?;
        let record = Record {
            provenance: Provenance {
                source: self.recipe.source.clone(),
                packages,
                files_sha256: Some(manifest::write(&root)?),
                made: None,
            },
            build,
        };
        record::write(&root, &record)?;
        Ok((root, record))
    }

    /// Compiles a source.
    fn make(self, plan: &MakePlan) -> Result<(PathBuf, Record), BuildError> {
        // Before anything is fetched.
        needs::check(&plan.how.needs)?;
        let recipe = self.recipe;
        let cache = self.shops.cache;
        let source = fetched_source(recipe, self.wanted, self.fetcher, cache, self.watch)?;
        let from_source = FromSource {
            make: Make {
                plan,
                source: &source,
                key: &recipe.name(),
                shops: self.shops,
                objects: self.objects,
            },
            partial: self.partial,
            source_name: &recipe.source,
        };
        let ask = |root: &Path| {
            check_layout(&recipe.layout, root)?;
            open_rights(root)?;
            recognise(recipe, root, BTreeMap::new(), source.origin.clone())
        };
        from_source.run(&ask, self.watch)
    }

    /// The package; where it is gone, the recipe's other one.
    fn fetch(&mut self) -> Result<(&'a Package, Fetched), BuildError> {
        let download = self.partial.join("download");
        fs::create_dir_all(&download).map_err(BuildError::io("make", &download))?;
        let recipe = self.recipe;
        let mut fetch = |package| {
            let fetched = self
                .fetcher
                .fetch(package, self.wanted, &download, self.watch)?;
            Ok((package, fetched))
        };
        match (fetch(&recipe.package), &recipe.otherwise) {
            (Err(BuildError::Gone(_)), Some(otherwise)) => fetch(otherwise),
            (fetched, _) => fetched,
        }
    }

    /// Unpacks all files; returns the names of Debian's packages.
    fn unpack(
        &mut self,
        is_debian: bool,
        files: &[PathBuf],
        root: &Path,
    ) -> Result<Vec<String>, BuildError> {
        if is_debian {
            let skip: Vec<Pattern> = debian()
                .skip
                .iter()
                .filter_map(|pattern| Pattern::new(pattern).ok())
                .collect();
            return unpack_debs(files, &skip, root, self.watch);
        }
        for archive in files {
            unpack(archive, &self.recipe.layout.unpack, root, self.watch)?;
        }
        Ok(Vec::new())
    }

    /// Lets the build find its libraries; returns the environment that its programs need.
    fn bring_libraries(
        &mut self,
        is_debian: bool,
        root: &Path,
    ) -> Result<BTreeMap<String, String>, BuildError> {
        let server = root.join(&self.recipe.layout.server);
        if !is_debian {
            return bring_missing(
                &server,
                root,
                debian(),
                self.fetcher,
                &self.partial.join("libraries"),
                self.watch,
            );
        }
        if self.recipe.engine.facts().lives == Lives::Library {
            // Loaded into our own process, which has its C library already.
            return Ok(library_path(&server).into_iter().collect());
        }
        wrap_programs(root)?;
        Ok(BTreeMap::new())
    }
}

/// Everything the recipe promises must be there.
fn check_layout(layout: &Layout, root: &Path) -> Result<(), BuildError> {
    let mut wanted = vec![layout.server.clone(), layout.basedir.clone()];
    wanted.extend(layout.share.clone());
    wanted.extend(layout.plugin.clone());
    wanted.extend(layout.db_bench.clone());
    wanted.extend(match &layout.init {
        DataInit::Initialize | DataInit::Library => Vec::new(),
        DataInit::Bootstrap { scripts } => scripts.clone(),
        DataInit::Copy { dir } => vec![dir.clone()],
        DataInit::InstallDb { script, .. } => vec![script.clone()],
        DataInit::Initdb { program } => vec![program.clone()],
    });
    let plugins = layout
        .storage_plugins
        .values()
        .filter_map(|option| option.strip_prefix("--plugin-load-add="));
    wanted
        .extend(plugins.filter_map(|file| layout.plugin.as_ref().map(|folder| folder.join(file))));
    match wanted.iter().find(|path| !root.join(path).exists()) {
        Some(missing) => Err(BuildError::Unfit(format!(
            "the package lacks {}; it has changed, mend the recipe",
            missing.display()
        ))),
        None => Ok(()),
    }
}

/// Asks the unpacked server what it is, and compares the answer with the recipe.
fn recognise(
    recipe: &Recipe,
    root: &Path,
    env: BTreeMap<String, String>,
    origin: String,
) -> Result<InstalledBuild, BuildError> {
    let layout = &recipe.layout;
    let in_root = |path: &PathBuf| below(root, path);
    let server = in_root(&layout.server);
    let basedir = in_root(&layout.basedir);
    let facts = StatedFacts::ask(recipe.engine, &server, &env)?;
    let version = facts.version;
    check_version(recipe, &version)?;
    let real = real_program(&server);
    let mut toolchain = toolchain(&real, &basedir, &recipe.packager);
    toolchain.extend(facts.toolchain);
    if let (Some(stated), Some(UNKNOWN)) = (
        &recipe.optimisation,
        toolchain.get(OPTIMISATION).map(String::as_str),
    ) {
        toolchain.insert(OPTIMISATION.to_owned(), stated.clone());
    }
    Ok(InstalledBuild {
        name: recipe.name_at(short_version(&version)),
        engine: recipe.engine,
        origin,
        toolchain,
        server_sha256: sha256(&real)?,
        version,
        share_dir: layout.share.as_ref().map(in_root),
        plugin_dir: layout.plugin.as_ref().map(in_root),
        server,
        basedir,
        init: init_below(&layout.init, root),
        env,
        server_options: layout.server_options.clone(),
        storage_plugins: layout.storage_plugins.clone(),
        db_bench: layout.db_bench.as_ref().map(in_root),
        links: Vec::new(),
    })
}

/// A path of a recipe below the build's folder; the folder itself for an empty one.
fn below(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() {
        root.to_owned()
    } else {
        root.join(path)
    }
}

fn check_version(recipe: &Recipe, stated: &str) -> Result<(), BuildError> {
    let short = short_version(stated);
    let is_right = if recipe.is_series() {
        is_patch_of(short, &recipe.version)
    } else {
        short == recipe.version
    };
    if is_right {
        return Ok(());
    }
    Err(BuildError::Unfit(format!(
        "{} should be {} {}, and its server says {stated}; the package has changed, mend the \
        recipe",
        recipe.package.describe(),
        recipe.engine,
        recipe.version
    )))
}

/// How a data directory is made, with the recipe's paths below the build's folder.
fn init_below(init: &DataInit, root: &Path) -> DataInit {
    let in_root = |path: &PathBuf| below(root, path);
    match init {
        DataInit::Initialize => DataInit::Initialize,
        DataInit::Bootstrap { scripts } => DataInit::Bootstrap {
            scripts: scripts.iter().map(in_root).collect(),
        },
        DataInit::Copy { dir } => DataInit::Copy { dir: in_root(dir) },
        DataInit::InstallDb {
            script,
            has_auth_method,
        } => DataInit::InstallDb {
            script: in_root(script),
            has_auth_method: *has_auth_method,
        },
        DataInit::Initdb { program } => DataInit::Initdb {
            program: in_root(program),
        },
        DataInit::Library => DataInit::Library,
    }
}
