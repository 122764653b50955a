//! From a recipe to files: fetch, unpack, recognise. All of it happens in a private folder; the
//! caller moves what is whole.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use glob::Pattern;
use plimsoll_core::name::EngineName;
use plimsoll_core::toolchain::{OPTIMISATION, UNKNOWN};
use plimsoll_engine::{DataInit, InstalledBuild};

use super::client::Fetcher;
use super::error::BuildError;
use super::facts::Facts;
use super::libraries::bring_missing;
use super::library::library_path;
use super::own_loader::wrap_programs;
use super::progress::{Stage, Watch};
use super::recipe::{Layout, Package, Recipe};
use super::record::{self, Record};
use super::resolve::is_patch_of;
use super::server_file::{real_program, sha256, short_version};
use super::shipped::debian;
use super::toolchain::toolchain;
use super::unpack::{open_rights, unpack, unpack_debs};

/// What an installation works with.
pub(crate) struct Install<'a, 'w> {
    pub recipe: &'a Recipe,
    /// The exact version or the series the source must still have.
    pub wanted: Option<&'a str>,
    pub fetcher: &'a dyn Fetcher,
    /// Private; removed by the caller.
    pub partial: &'a Path,
    pub watch: &'a mut Watch<'w>,
}

impl Install<'_, '_> {
    /// Returns the folder with the whole build, its record written, and the record.
    pub fn run(self) -> Result<(PathBuf, Record), BuildError> {
        let Self {
            recipe,
            wanted,
            fetcher,
            partial,
            watch,
        } = self;
        let root = partial.join("build");
        let download = partial.join("download");
        for folder in [&root, &download] {
            fs::create_dir_all(folder).map_err(BuildError::io("make", folder))?;
        }
        watch.begin(Stage::Fetching)?;
        let (package, fetched) = match (
            fetcher.fetch(&recipe.package, wanted, &download, watch),
            &recipe.otherwise,
        ) {
            (Err(BuildError::Gone(_)), Some(otherwise)) => (
                otherwise,
                fetcher.fetch(otherwise, wanted, &download, watch)?,
            ),
            (fetched, _) => (&recipe.package, fetched?),
        };

        watch.begin(Stage::Unpacking)?;
        let mut packages = Vec::new();
        let is_debian = matches!(package, Package::Apt { .. });
        if is_debian {
            let skip: Vec<Pattern> = debian()
                .skip
                .iter()
                .filter_map(|pattern| Pattern::new(pattern).ok())
                .collect();
            packages = unpack_debs(&fetched.files, &skip, &root, watch)?;
        } else {
            for archive in &fetched.files {
                unpack(archive, &recipe.layout.unpack, &root, watch)?;
            }
        }
        open_rights(&root)?;
        check_layout(&recipe.layout, &root)?;
        let mut env = BTreeMap::new();
        if is_debian && recipe.engine == EngineName::Rocksdb {
            // Loaded into a process of ours, which has its C library already.
            env.extend(library_path(&root.join(&recipe.layout.server)));
        } else if is_debian {
            wrap_programs(&root)?;
        } else {
            let server = root.join(&recipe.layout.server);
            env = bring_missing(
                &server,
                &root,
                debian(),
                fetcher,
                &partial.join("libraries"),
                watch,
            )?;
        }

        watch.begin(Stage::Checking)?;
        let origin = match &fetched.package_version {
            Some(version) => format!("{}, package version {version}", package.describe()),
            None => package.describe(),
        };
        let build = recognise(recipe, &root, env, origin)?;
        let record = Record {
            source: recipe.source.clone(),
            packages,
            build,
        };
        record::write(&root, &record)?;
        Ok((root, record))
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

/// Asks the unpacked server what it is, and holds it against the recipe.
fn recognise(
    recipe: &Recipe,
    root: &Path,
    env: BTreeMap<String, String>,
    origin: String,
) -> Result<InstalledBuild, BuildError> {
    let layout = &recipe.layout;
    let in_root = |path: &PathBuf| {
        if path.as_os_str().is_empty() {
            root.to_owned()
        } else {
            root.join(path)
        }
    };
    let server = in_root(&layout.server);
    let basedir = in_root(&layout.basedir);
    let facts = Facts::ask(recipe.engine, &server, &env)?;
    let version = facts.version;
    let short = short_version(&version);
    let is_right = if recipe.is_series() {
        is_patch_of(short, &recipe.version)
    } else {
        short == recipe.version
    };
    if !is_right {
        return Err(BuildError::Unfit(format!(
            "{} should be {} {}, and its server says {version}; the package has changed, mend the \
            recipe",
            recipe.package.describe(),
            recipe.engine,
            recipe.version
        )));
    }
    let real = real_program(&server);
    let init = match &layout.init {
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
    };
    let mut toolchain = toolchain(&real, &basedir, &recipe.packager);
    toolchain.extend(facts.toolchain);
    if let (Some(stated), Some(UNKNOWN)) = (
        &recipe.optimisation,
        toolchain.get(OPTIMISATION).map(String::as_str),
    ) {
        toolchain.insert(OPTIMISATION.to_owned(), stated.clone());
    }
    Ok(InstalledBuild {
        name: recipe.name_at(short),
        engine: recipe.engine,
        origin,
        toolchain,
        server_sha256: sha256(&real)?,
        version,
        share_dir: layout.share.as_ref().map(in_root),
        plugin_dir: layout.plugin.as_ref().map(in_root),
        server,
        basedir,
        init,
        env,
        server_options: layout.server_options.clone(),
        storage_plugins: layout.storage_plugins.clone(),
        db_bench: layout.db_bench.as_ref().map(in_root),
    })
}
