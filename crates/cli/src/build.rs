//! `build add`, `list`, `show`, `remove` and `check`.

use std::io::{IsTerminal, Write, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_core::name::BuildName;
use plimsoll_core::toolchain::{ASSERTIONS, CRC32};
use plimsoll_core::units::format_bytes;
use plimsoll_lab::builds::{
    self, BuildCache, BuildError, BuildState, CheckState, DataInit, FetchProgress, InstalledBuild,
    Stage,
};
use plimsoll_lab::{LabError, default_cache_dir};
use serde_json::json;

use crate::Outcome;
use crate::arguments::{AddBuild, BuildVerb, Places};
use crate::failure::{Failure, INCOMPLETE, INTERRUPTED};
use crate::progress::stop_signals;

/// Without a terminal a long fetch says this often how it goes.
const PLAIN_INTERVAL: Duration = Duration::from_secs(10);

pub fn cache_dir(places: &Places) -> Result<PathBuf, Failure> {
    Ok(places.cache.clone().map_or_else(default_cache_dir, Ok)?)
}

pub fn build(places: &Places, verb: &BuildVerb) -> Outcome {
    let cache = BuildCache::new(cache_dir(places)?);
    match verb {
        BuildVerb::Add(AddBuild {
            basedir: Some(basedir),
            label: Some(label),
            ..
        }) => {
            print_added(&cache.add_basedir(basedir, label).map_err(failure)?);
            Ok(0)
        }
        BuildVerb::Add(AddBuild { names, .. }) => add(&cache, names),
        BuildVerb::List { json } => list(&cache, *json),
        BuildVerb::Show { name, json } => show(&cache, name, *json),
        BuildVerb::Remove { names } => remove(&cache, names),
        BuildVerb::Check { names, json } => check(&cache, names, *json),
    }
}

fn failure(error: BuildError) -> Failure {
    match error {
        BuildError::Cancelled { .. } => Failure::interrupted(error.to_string()),
        error => LabError::from(error).into(),
    }
}

/// Fetches one build after the other. What cannot be fetched does not keep the others from being
/// tried.
fn add(cache: &BuildCache, names: &[BuildName]) -> Outcome {
    let failed = bring(cache, names, false, &mut print_added)?;
    Ok(failed
        .iter()
        .map(|(_, failure)| failure.exit_code())
        .max()
        .unwrap_or(0))
}

/// Fetches what a plan needs and is not here; returns what could not be fetched. Results have
/// standard output to themselves: this says on standard error what it brought.
pub fn fetch(
    cache: &BuildCache,
    names: &[BuildName],
    is_offline: bool,
) -> Result<Vec<(BuildName, Failure)>, Failure> {
    let mut missing = Vec::new();
    for name in names {
        if !missing.contains(name) && cache.get(name).map_err(failure)?.is_none() {
            missing.push(name.clone());
        }
    }
    bring(cache, &missing, is_offline, &mut |build| {
        tell!("fetched {} from {}", build.name, build.origin)
    })
}

/// Fails as a whole only when it is stopped, or when a name means nothing.
fn bring(
    cache: &BuildCache,
    names: &[BuildName],
    is_offline: bool,
    tell: &mut dyn FnMut(&InstalledBuild),
) -> Result<Vec<(BuildName, Failure)>, Failure> {
    // Typing mistakes are reported before the first download.
    for name in names {
        cache.resolve(name).map_err(failure)?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in stop_signals() {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::bug(format!("failed to listen for signals: {error}")))?;
    }
    let mut failed = Vec::new();
    for name in names {
        let mut line = ProgressLine::new();
        let added = cache.add(
            name,
            is_offline,
            &mut |progress| line.show(progress),
            &|| stop.load(Ordering::SeqCst),
        );
        line.clear();
        match added {
            Ok(build) => tell(&build),
            Err(error) => {
                let failure = failure(error);
                if failure.exit_code() == INTERRUPTED {
                    return Err(failure);
                }
                tell!("plimsoll: {name}: {failure}");
                failed.push((name.clone(), failure));
            }
        }
    }
    Ok(failed)
}

fn print_added(build: &InstalledBuild) {
    print(&format!(
        "{}  {}  {}\n",
        build.name,
        build.version,
        build.server.display()
    ));
    if let Some(note) = note(build) {
        tell!("plimsoll: {}: {note}", build.name);
    }
}

/// What should be known before a build is measured.
fn note(build: &InstalledBuild) -> Option<String> {
    let has_assertions = build
        .toolchain
        .get(ASSERTIONS)
        .is_some_and(|assertions| assertions == "on");
    let untested = builds::is_untested(build)
        .then_some("older than any version that this program is tested with");
    let slow = has_assertions
        .then_some("compiled with assertions: slower than other builds of its version");
    let notes: Vec<&str> = untested.into_iter().chain(slow).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The body of a library's first trial: what it says of itself, as one JSON value.
pub fn probe_rocksdb(library: &Path, folder: &Path, companions: Option<&Path>) -> Outcome {
    let probe = builds::probe_rocksdb(library, companions, folder)
        .map_err(|error| Failure::usage(error.message))?;
    print_json(&probe)
}

/// How a fetch goes, on standard error: one moving line on a terminal, plain lines elsewhere.
struct ProgressLine {
    is_terminal: bool,
    has_line: bool,
    told: Option<(Stage, Instant)>,
}

impl ProgressLine {
    fn new() -> Self {
        Self {
            is_terminal: stderr().is_terminal(),
            has_line: false,
            told: None,
        }
    }

    fn show(&mut self, progress: &FetchProgress) {
        let what = match progress.stage {
            Stage::Waiting => "waiting for another process that fetches",
            Stage::Fetching => "fetching",
            Stage::Unpacking => "unpacking",
            Stage::Checking => "checking",
        };
        let bytes = if progress.bytes > 0 {
            format!("  {}", format_bytes(progress.bytes))
        } else {
            String::new()
        };
        let text = format!(
            "{}  {what}{bytes}  {} s",
            progress.name,
            progress.elapsed.as_secs()
        );
        if self.is_terminal {
            let _ = write!(stderr(), "\r\x1b[K{text}");
            let _ = stderr().flush();
            self.has_line = true;
        } else if self
            .told
            .is_none_or(|(stage, at)| stage != progress.stage || at.elapsed() >= PLAIN_INTERVAL)
        {
            tell!("{text}");
            self.told = Some((progress.stage, Instant::now()));
        }
    }

    fn clear(&mut self) {
        if self.has_line {
            let _ = write!(stderr(), "\r\x1b[K");
            self.has_line = false;
        }
    }
}

fn list(cache: &BuildCache, is_json: bool) -> Outcome {
    let builds = cache.list().map_err(failure)?;
    if is_json {
        return print_json(&builds);
    }
    let rows = builds.iter().map(|build| {
        let state = match build.state {
            BuildState::Here => "here",
            BuildState::Available => "available",
            BuildState::Damaged => "damaged",
        };
        let size = build
            .bytes
            .filter(|bytes| *bytes > 0)
            .map_or("-".to_owned(), format_bytes);
        [
            build.name.clone(),
            build.version.clone(),
            build.source.clone(),
            state.to_owned(),
            size,
        ]
    });
    print(&table(
        ["name", "version", "source", "state", "size"],
        rows.collect(),
    ));
    Ok(0)
}

fn show(cache: &BuildCache, name: &BuildName, is_json: bool) -> Outcome {
    let resolved = cache.resolve(name).map_err(failure)?;
    let build = cache.get(name).map_err(failure)?;
    let state = if build.is_some() { "here" } else { "available" };
    if is_json {
        return print_json(&json!({
            "name": resolved.name,
            "version": resolved.version,
            "is_exact": resolved.is_exact,
            "source": resolved.source,
            "origin": resolved.origin,
            "state": state,
            "build": build,
        }));
    }
    let mut rows = vec![
        ("name", resolved.name),
        ("state", state.to_owned()),
        ("source", resolved.source),
    ];
    match build {
        None => {
            rows.push((
                "version",
                if resolved.is_exact {
                    resolved.version
                } else {
                    format!("{}.* (its newest)", resolved.version)
                },
            ));
            rows.push(("origin", resolved.origin));
        }
        Some(build) => {
            rows.push(("version", build.version.clone()));
            rows.push(("origin", build.origin.clone()));
            rows.extend(note(&build).map(|note| ("note", note)));
            rows.push((
                if build.init == DataInit::Library {
                    "library"
                } else {
                    "server"
                },
                build.server.display().to_string(),
            ));
            rows.push(("sha256", build.server_sha256));
            rows.extend(
                [
                    "packager",
                    "compiler",
                    "optimisation",
                    "flags",
                    ASSERTIONS,
                    CRC32,
                    "commit",
                ]
                .iter()
                .filter_map(|key| Some((*key, build.toolchain.get(*key)?.clone()))),
            );
            rows.push(("basedir", build.basedir.display().to_string()));
            rows.extend(
                build
                    .share_dir
                    .map(|path| ("share", path.display().to_string())),
            );
            rows.extend(
                build
                    .db_bench
                    .map(|path| ("db_bench", path.display().to_string())),
            );
            rows.extend(
                build
                    .plugin_dir
                    .map(|path| ("plugins", path.display().to_string())),
            );
            rows.extend(
                build
                    .env
                    .iter()
                    .map(|(key, value)| ("environment", format!("{key}={value}"))),
            );
            rows.extend(
                build
                    .server_options
                    .into_iter()
                    .map(|option| ("option", option)),
            );
            rows.extend(
                build
                    .storage_plugins
                    .iter()
                    .map(|(engine, option)| ("storage", format!("{engine}: {option}"))),
            );
        }
    }
    print(
        &rows
            .iter()
            .map(|(key, value)| format!("{key:<12}  {value}\n"))
            .collect::<String>(),
    );
    Ok(0)
}

fn remove(cache: &BuildCache, names: &[BuildName]) -> Outcome {
    for name in names {
        let removed = cache.remove(name).map_err(failure)?;
        print(&format!("{removed}  removed\n"));
    }
    Ok(0)
}

fn check(cache: &BuildCache, names: &[BuildName], is_json: bool) -> Outcome {
    let mut checks = if names.is_empty() {
        cache.check(None).map_err(failure)?
    } else {
        Vec::new()
    };
    for name in names {
        checks.extend(cache.check(Some(name)).map_err(failure)?);
    }
    if is_json {
        print_json(&checks)?;
    } else {
        let rows = checks.iter().map(|check| {
            let state = match check.state {
                CheckState::Ok => "ok",
                CheckState::Changed => "changed",
                CheckState::Missing => "missing",
            };
            [check.name.clone(), state.to_owned(), check.finding.clone()]
        });
        print(&table(["name", "state", "finding"], rows.collect()));
    }
    Ok(
        if checks.iter().all(|check| check.state == CheckState::Ok) {
            0
        } else {
            INCOMPLETE
        },
    )
}

/// Columns as wide as their widest cell.
fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned))
        .chain(rows)
        .collect();
    let widths: Vec<usize> = (0..N)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn print_json(value: &impl serde::Serialize) -> Outcome {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::bug(error.to_string()))?;
    print(&format!("{text}\n"));
    Ok(0)
}

/// A reader that has seen enough (`| head`) is not an error.
fn print(text: &str) {
    let _ = anstream::stdout().write_all(text.as_bytes());
}
