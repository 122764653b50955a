//! Libraries of embedded engines: found, tried in a process that may die of it, and asked what they
//! are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::engines::{ENGINES, EngineName, Layout};
use plimsoll_core::name::natural_cmp;
use plimsoll_core::toolchain::{ASSERTIONS, UNKNOWN};
use plimsoll_engine::rocksdb::LIBRARY_PATH;
use plimsoll_engine::{InstalledBuild, Probed};

use crate::builds::error::BuildError;
use crate::builds::inspect::elf::assertions;
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::server_file::run;

/// The verb of this program that loads and tries a library.
const PROBE_VERB: &str = "probe-library";

/// Where an installation keeps its library.
const FOLDERS: [&str; 5] = [
    ".",
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
];

/// Where it keeps RocksDB's benchmark program.
const PROGRAM_FOLDERS: [&str; 3] = [".", "bin", "usr/bin"];

/// A library of RocksDB has 127 calls of the C library's assertion with its own ones off, all from
/// compression libraries, and 6000 with them on; one of SQLite has none or thousands.
const MOST_CALLS_WITHOUT_ASSERTIONS: usize = 1000;

/// What an engine's libraries are called, and the oldest version that the tests have run with;
/// `None` if its builds are something else.
fn library_of(engine: EngineName) -> Option<(&'static str, &'static str)> {
    match engine.facts().builds.as_ref()?.layout {
        Layout::Library {
            file,
            oldest_tested,
        } => Some((file, oldest_tested)),
        _ => None,
    }
}

/// Whether a build is a library that is older than any that this program is tested with.
pub fn is_untested(build: &InstalledBuild) -> bool {
    library_of(build.engine).is_some_and(|(_, oldest)| natural_cmp(&build.version, oldest).is_lt())
}

/// The engine that a library's file is named after.
pub(crate) fn engine_of_file(file: &Path) -> Option<EngineName> {
    let name = file.file_name()?.to_string_lossy();
    let mut engines = ENGINES.iter().map(|facts| facts.name);
    engines.find(|engine| {
        library_of(*engine).is_some_and(|(beginning, _)| name.starts_with(beginning))
    })
}

/// Loads, writes and reads with a library in a child process. What it complains of, or dies of, is
/// the error.
pub(crate) fn ask(
    engine: EngineName,
    library: &Path,
    env: &BTreeMap<String, String>,
) -> Result<StatedFacts, BuildError> {
    let unfit = |problem: String| {
        BuildError::Unfit(format!("{} cannot be used: {problem}", library.display()))
    };
    let program = std::env::current_exe()
        .map_err(|error| unfit(format!("this program is not found: {error}")))?;
    let dir =
        tempfile::tempdir().map_err(|error| unfit(format!("no temporary folder: {error}")))?;
    let (library_text, dir_text) = (
        library.display().to_string(),
        dir.path().display().to_string(),
    );
    let mut arguments = vec![PROBE_VERB, engine.as_str(), &library_text, &dir_text];
    arguments.extend(env.get(LIBRARY_PATH).map(String::as_str));
    let answer = run(&program, &arguments, &BTreeMap::new())
        .map_err(|problem| unfit(problem.replace("plimsoll: ", "")))?;
    let Probed {
        version,
        mut toolchain,
    } = serde_json::from_str(&answer).map_err(|error| {
        unfit(format!(
            "the answer of its trial run makes no sense: {error}"
        ))
    })?;
    let assertions = match assertions(library) {
        None => UNKNOWN,
        Some(calls) if calls > MOST_CALLS_WITHOUT_ASSERTIONS => "on",
        Some(_) => "off",
    };
    toolchain.insert(ASSERTIONS.to_owned(), assertions.to_owned());
    Ok(StatedFacts { version, toolchain })
}

/// Where a library finds what it needs and the machine lacks: beside it.
pub(crate) fn library_path(library: &Path) -> Option<(String, String)> {
    Some((
        LIBRARY_PATH.to_owned(),
        library.parent()?.display().to_string(),
    ))
}

/// The libraries of an installation, one of each engine: the newest of a name, behind its links.
pub(crate) fn find_libraries(basedir: &Path) -> Vec<(EngineName, PathBuf)> {
    let engines = ENGINES.iter().map(|facts| facts.name);
    let found = engines.filter_map(|engine| {
        let (beginning, _) = library_of(engine)?;
        Some((engine, find_library(basedir, beginning)?))
    });
    found.collect()
}

fn find_library(basedir: &Path, beginning: &str) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        name.starts_with(beginning) && name.contains(".so") && path.is_file()
    };
    let in_folder = |folder: &str| {
        let entries = fs::read_dir(basedir.join(folder)).ok()?;
        let found = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(is_library);
        found
            .filter_map(|path| path.canonicalize().ok())
            .max_by(|one, other| natural_cmp(&one.to_string_lossy(), &other.to_string_lossy()))
    };
    FOLDERS.iter().find_map(|folder| in_folder(folder))
}

/// The benchmark program of an installation.
pub(crate) fn find_db_bench(basedir: &Path) -> Option<PathBuf> {
    PROGRAM_FOLDERS
        .iter()
        .map(|folder| basedir.join(folder).join("db_bench"))
        .find(|path| path.is_file())?
        .canonicalize()
        .ok()
}
