//! From a source to files: unpacked, compiled and installed in a workshop, then recognised and read
//! back. The caller moves what is whole.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::toolchain::PACKAGER;
use plimsoll_engine::{InstalledBuild, Link};

use crate::builds::error::BuildError;
use crate::builds::fetch::apt::upstream_version;
use crate::builds::fetch::fetcher::Fetcher;
use crate::builds::folder::{self, remove, text_of};
use crate::builds::inspect::server_file::{real_program, sha256};
use crate::builds::lock::Lock;
use crate::builds::make::{Make, Source, verify};
use crate::builds::manifest;
use crate::builds::progress::{Stage, Watch};
use crate::builds::recipes::recipe::{Package, Recipe};
use crate::builds::recipes::resolve::is_patch_of;
use crate::builds::record::{self, Provenance, Record};

/// In the cache's folder: sources as they were fetched. Other flag sets are made of the same ones.
pub(crate) const SOURCES: &str = "sources";
/// In a source's folder, written last: the package's version.
const VERSION: &str = "version";

/// Of the toolchain: the hash of what was compiled, and which features are on and off.
const SOURCE: &str = "source_hash";
const FEATURES: &str = "features";
/// And what the compiler works with.
const BINUTILS: &str = "binutils";
const LIBC: &str = "libc";
/// Who puts builds together here: the same for all of them, so that only the rest makes a †.
pub(crate) const MAKER: &str = "Plimsoll";

/// A build that is to be made and recognised.
pub(crate) struct FromSource<'a> {
    pub make: Make<'a>,
    /// Private; removed by the caller.
    pub partial: &'a Path,
    /// The source's name in the record.
    pub source_name: &'a str,
}

impl FromSource<'_> {
    /// Returns the folder with the whole build, its record written, and the record. `recognise`
    /// asks what was installed what it is.
    pub fn run(
        &self,
        recognise: &dyn Fn(&Path) -> Result<InstalledBuild, BuildError>,
        watch: &mut Watch<'_>,
    ) -> Result<(PathBuf, Record), BuildError> {
        let made = self.make.run(self.make.made_of()?, watch)?;
        watch.begin(Stage::Checking)?;
        let root = self.partial.join("build");
        folder::make(self.partial)?;
        fs::rename(&made.root, &root).map_err(BuildError::io("move the build to", &root))?;
        let mut build = recognise(&root)?;
        build.links = links(&root, &made.links)?;
        if let Some(first) = build.links.first().filter(|of| of.server != build.server) {
            return Err(BuildError::Unfit(format!(
                "the recipe links {} and its server is {}; mend the recipe",
                first.server.display(),
                build.server.display()
            )));
        }
        let told = [
            (PACKAGER, MAKER.to_owned()),
            (SOURCE, made.from.source.clone()),
            (FEATURES, made.from.features.clone()),
            (BINUTILS, made.from.binutils.clone()),
            (LIBC, made.from.libc.clone()),
        ];
        let told = told.map(|(key, value)| (key.to_owned(), value));
        build.toolchain.extend(told);
        let flags = &self.make.plan.flags;
        verify::check(&real_program(&build.server), flags, &mut build.toolchain)?;
        let record = Record {
            provenance: Provenance {
                source: self.source_name.to_owned(),
                packages: Vec::new(),
                files_sha256: Some(manifest::write(&root)?),
                made: Some(made.from),
            },
            build,
        };
        record::write(&root, &record)?;
        self.make.close()?;
        Ok((root, record))
    }
}

/// The links of a server, which all have to be different programs.
fn links(root: &Path, files: &[PathBuf]) -> Result<Vec<Link>, BuildError> {
    let mut links: Vec<Link> = Vec::new();
    for file in files {
        let server = root.join(file);
        let sum = sha256(&server)?;
        if let Some(same) = links.iter().find(|link| link.sha256 == sum) {
            return Err(BuildError::Unfit(format!(
                "{} and {} are the same program: the linker gave both one order of functions; \
                use another version of lld",
                same.server.display(),
                server.display()
            )));
        }
        links.push(Link {
            server,
            sha256: sum,
        });
    }
    Ok(links)
}

/// The source of a recipe: as it was fetched before, or fetched now.
pub(crate) fn fetched_source(
    recipe: &Recipe,
    wanted: Option<&str>,
    fetcher: &dyn Fetcher,
    cache: &Path,
    watch: &mut Watch<'_>,
) -> Result<Source, BuildError> {
    let name = source_folder(&recipe.package);
    let folder = cache.join(SOURCES).join(&name);
    let lock = cache.join("locks").join(format!("source-{name}.lock"));
    let _lock = Lock::take(&lock, watch)?;
    let fits =
        |version: &str| wanted.is_none_or(|wanted| is_patch_of(&upstream_version(version), wanted));
    let kept = text_of(&folder.join(VERSION))?;
    let version = match kept.filter(|version| fits(version)) {
        Some(version) => version,
        None => {
            // What is kept serves others until this is whole.
            let new = cache.join(SOURCES).join(format!("{name}.new"));
            remove(&new)?;
            folder::make(&new)?;
            let fetched = fetch_into(&new, recipe, wanted, fetcher, watch);
            let version = fetched.inspect_err(|_| {
                let _ = remove(&new);
            })?;
            remove(&folder)?;
            fs::rename(&new, &folder).map_err(BuildError::io("move the source to", &folder))?;
            version
        }
    };
    let tarballs = files_of(&folder)?;
    let package = recipe.package.describe();
    let origin = match version.is_empty() {
        true => package,
        false => format!("{package}, package version {version}"),
    };
    Source::of_package(origin, tarballs, watch)
}

/// Whether a folder of sources holds one that was fetched whole.
pub(crate) fn is_whole_source(folder: &Path) -> bool {
    let is_new = folder.extension().is_some_and(|ending| ending == "new");
    !is_new && folder.join(VERSION).is_file()
}

/// Fetches a source into a folder, with its version, which is returned.
fn fetch_into(
    folder: &Path,
    recipe: &Recipe,
    wanted: Option<&str>,
    fetcher: &dyn Fetcher,
    watch: &mut Watch<'_>,
) -> Result<String, BuildError> {
    watch.begin(Stage::Fetching)?;
    let fetched = fetcher.fetch(&recipe.package, wanted, folder, watch)?;
    let version = fetched.package_version.unwrap_or_default();
    for file in &fetched.files {
        let place = folder.join(file.file_name().unwrap_or_default());
        if *file != place {
            fs::rename(file, &place).map_err(BuildError::io("move", file))?;
        }
    }
    keep_only(folder, &fetched.files)?;
    let path = folder.join(VERSION);
    fs::write(&path, &version).map_err(BuildError::io("write", &path))?;
    Ok(version)
}

fn source_folder(package: &Package) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '.' {
            c
        } else {
            '-'
        }
    };
    package.describe().chars().map(plain).collect()
}

/// Removes what a client left beside the files that it was asked for.
fn keep_only(folder: &Path, files: &[PathBuf]) -> Result<(), BuildError> {
    for entry in fs::read_dir(folder).map_err(BuildError::io("read", folder))? {
        let path = entry.map_err(BuildError::io("read", folder))?.path();
        if path.is_dir() {
            remove(&path)?;
        } else if !files
            .iter()
            .any(|file| file.file_name() == path.file_name())
        {
            fs::remove_file(&path).map_err(BuildError::io("remove", &path))?;
        }
    }
    Ok(())
}

/// The tarballs of a source's folder, by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, BuildError> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(BuildError::io("read", folder))? {
        let path = entry.map_err(BuildError::io("read", folder))?.path();
        if path.file_name().is_some_and(|name| name != VERSION) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
