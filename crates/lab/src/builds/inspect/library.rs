//! RocksDB's libraries: found, tried in a process that may die of it, and asked what they are.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_core::engines::Lives;
use plimsoll_core::name::natural_cmp;
use plimsoll_core::toolchain::{ASSERTIONS, CRC32, UNKNOWN};
use plimsoll_engine::InstalledBuild;
use plimsoll_engine::rocksdb::{LIBRARY_PATH, OLDEST_TESTED, Probe};

use crate::builds::error::BuildError;
use crate::builds::inspect::elf::assertions;
use crate::builds::inspect::facts::StatedFacts;
use crate::builds::inspect::server_file::run;

/// The verb of this program that loads and tries a library.
const PROBE_VERB: &str = "probe-rocksdb";

/// Where an installation keeps its library.
const FOLDERS: [&str; 5] = [
    ".",
    "lib",
    "lib64",
    "lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu",
];

/// Where it keeps the benchmark program.
const PROGRAM_FOLDERS: [&str; 3] = [".", "bin", "usr/bin"];

/// A library has 127 calls of the C library's assertion with its own ones off, all from compression
/// libraries, and 6000 with them on.
const MOST_CALLS_WITHOUT_ASSERTIONS: usize = 1000;

/// Whether a build is a RocksDB that is older than any that this program is tested with.
pub fn is_untested(build: &InstalledBuild) -> bool {
    build.engine.facts().lives == Lives::Library
        && natural_cmp(&build.version, OLDEST_TESTED).is_lt()
}

/// Loads, writes and reads with a library in a child process. What it complains of, or dies of, is
/// the error.
pub(crate) fn ask(
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
    let mut arguments = vec![PROBE_VERB, &library_text, &dir_text];
    arguments.extend(env.get(LIBRARY_PATH).map(String::as_str));
    let answer = run(&program, &arguments, &BTreeMap::new())
        .map_err(|problem| unfit(problem.replace("plimsoll: ", "")))?;
    let probe: Probe = serde_json::from_str(&answer).map_err(|error| {
        unfit(format!(
            "the answer of its trial run makes no sense: {error}"
        ))
    })?;
    let crc32 = match probe.fast_crc32.as_str() {
        text if text.starts_with("Supported") => "hardware",
        text if text.starts_with("Not supported") => "software",
        _ => UNKNOWN,
    };
    let assertions = match assertions(library) {
        None => UNKNOWN,
        Some(calls) if calls > MOST_CALLS_WITHOUT_ASSERTIONS => "on",
        Some(_) => "off",
    };
    let mut toolchain = BTreeMap::from([
        (CRC32.to_owned(), crc32.to_owned()),
        (ASSERTIONS.to_owned(), assertions.to_owned()),
    ]);
    toolchain.extend(probe.git_sha.map(|sha| ("commit".to_owned(), sha)));
    Ok(StatedFacts {
        version: probe.version,
        toolchain,
    })
}

/// Where a library finds what it needs and the machine lacks: beside it.
pub(crate) fn library_path(library: &Path) -> Option<(String, String)> {
    Some((
        LIBRARY_PATH.to_owned(),
        library.parent()?.display().to_string(),
    ))
}

/// The library of an installation: the newest of a name, behind its links.
pub(crate) fn find_library(basedir: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        name.starts_with("librocksdb") && name.contains(".so") && path.is_file()
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
