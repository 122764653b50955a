//! Real servers for the tests: builds from the cache, started in folders that vanish.

// Each test binary uses a part of this.
#![allow(dead_code)]

// Twice in a test of both families.
#[allow(clippy::duplicate_mod)]
#[path = "../builds_support/mod.rs"]
mod builds_support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_engine::postgres::Postgres;
use plimsoll_engine::{Engine, InstalledBuild, Server, Settings, StartOptions};
use plimsoll_testkit::skip;
use tempfile::TempDir;

/// Generous: no test waits this long unless it fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The oldest and the newest: what changed between them is in the tests.
pub const MAJORS: [&str; 2] = ["9.6", "18"];

/// The installed build of this major version. Without one that the server's user can reach the test
/// is skipped.
pub fn build(test: &str, major: &str) -> Option<InstalledBuild> {
    // The same build is taken each time: of several sources the one with the short name.
    let Some(found) = builds_support::in_cache()
        .into_iter()
        .find(|build| is_postgres(build, major))
    else {
        builds_support::skip(test, &format!("postgres@{major}"));
        return None;
    };
    can_reach(test, &found).then_some(found)
}

/// The builds that a test of many versions goes through.
pub fn builds(test: &str) -> Vec<InstalledBuild> {
    builds_support::to_go_through(test, &["postgres"])
        .into_iter()
        .filter(|build| can_reach(test, build))
        .collect()
}

fn can_reach(test: &str, build: &InstalledBuild) -> bool {
    let Some(folder) = closed_folder(&build.server) else {
        return true;
    };
    let advice = "set PLIMSOLL_CACHE to a cache that everybody may enter";
    skip(
        &format!("engine::{test}"),
        &format!(
            "root's servers run as nobody, who may not enter {}; {advice}",
            folder.display()
        ),
    );
    false
}

fn is_postgres(build: &InstalledBuild, major: &str) -> bool {
    let rest = build.version.strip_prefix(major);
    build.engine.as_str() == "postgres"
        && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// A folder on the way to `path` that keeps out everybody but root, when we are root.
fn closed_folder(path: &Path) -> Option<PathBuf> {
    let path = path
        .canonicalize()
        .ok()
        .filter(|_| rustix::process::geteuid().is_root())?;
    let is_closed = |folder: &&Path| {
        std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 1 == 0)
    };
    path.ancestors()
        .skip(1)
        .filter(is_closed)
        .last()
        .map(Path::to_owned)
}

pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// Small and quick.
pub const QUICK: &[(&str, &str)] = &[
    ("shared_buffers", "16MB"),
    ("fsync", "off"),
    ("max_connections", "20"),
];

/// The folders of one server.
pub struct Folders {
    pub data: TempDir,
    pub logs: TempDir,
}

impl Folders {
    pub fn new() -> Self {
        Self {
            data: tempfile::tempdir().unwrap(),
            logs: tempfile::tempdir().unwrap(),
        }
    }

    pub fn options(&self, settings: &[&[(&str, &str)]]) -> StartOptions {
        let settings = self::settings(&settings.concat());
        StartOptions {
            log_dir: self.logs.path().to_owned(),
            ..StartOptions::new(self.data.path(), settings)
        }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.logs.path().join("server.log")).unwrap_or_default()
    }
}

pub fn start(build: &InstalledBuild, options: &StartOptions) -> Result<Box<dyn Server>, String> {
    Postgres::new(build.clone())
        .start(options)
        .map_err(|error| error.message)
}

/// A quick server of its own, with these settings too.
pub fn quick(build: &InstalledBuild, more: &[(&str, &str)]) -> (Folders, Box<dyn Server>) {
    let folders = Folders::new();
    let server = start(build, &folders.options(&[QUICK, more])).unwrap();
    (folders, server)
}

/// Waits until it is so.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} did not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A field of `/proc/PID/status`, or nothing when the process is gone.
pub fn status(pid: u32, field: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .unwrap_or_default()
        .to_owned();
    line.split_whitespace().map(str::to_owned).collect()
}
