//! Real servers for the tests: builds from the cache, started in folders that vanish.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plimsoll_engine::postgres::Postgres;
use plimsoll_engine::{Engine, InstalledBuild, Server, Settings, StartOptions};
use plimsoll_testkit::skip;
use tempfile::TempDir;

/// Generous: no test waits this long unless it fails.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// The oldest, one in the middle, a common one and a new one: what changed between them is in the tests.
pub const MAJORS: [&str; 4] = ["9.6", "13", "16", "18"];

/// The installed build of this major version. Without one the test is skipped. `PLIMSOLL_CACHE` names the folder of the builds' folder,
/// else it is where `plimsoll build add` puts them.
pub fn build(test: &str, major: &str) -> Option<InstalledBuild> {
    let cache = std::env::var_os("PLIMSOLL_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home.map(|home| home.join(".cache")));
        cache.map(|cache| cache.join("plimsoll"))
    });
    let found = cache.and_then(|cache| {
        let folders = std::fs::read_dir(cache.join("builds")).ok()?;
        let builds = folders.flatten().filter_map(|folder| installed(&folder.path().join("build.json")));
        // The folders come in any order; the same build is taken each time.
        builds
            .filter(|build| {
                build.engine.to_string() == "postgres" && build.version.split('.').collect::<Vec<_>>().starts_with(&parts(major))
            })
            .max_by(|one, other| one.name.cmp(&other.name))
    });
    if found.is_none() {
        skip(
            &format!("engine::{test}"),
            &format!("no build of postgres {major} in the cache; fetch it with `plimsoll build add postgres@{major}`"),
        );
    }
    found
}

fn parts(version: &str) -> Vec<&str> {
    version.split('.').collect()
}

fn installed(path: &Path) -> Option<InstalledBuild> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

pub fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Small and quick.
pub const QUICK: &[(&str, &str)] = &[("shared_buffers", "16MB"), ("fsync", "off"), ("max_connections", "20")];

/// The folders of one server.
pub struct Folders {
    pub data: TempDir,
    pub logs: TempDir,
}

impl Folders {
    pub fn new() -> Self {
        Self { data: tempfile::tempdir().unwrap(), logs: tempfile::tempdir().unwrap() }
    }

    pub fn options(&self, settings: &[&[(&str, &str)]]) -> StartOptions {
        let settings = self::settings(&settings.concat());
        StartOptions { log_dir: self.logs.path().to_owned(), ..StartOptions::new(self.data.path(), settings) }
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.logs.path().join("server.log")).unwrap_or_default()
    }
}

pub fn start(build: &InstalledBuild, options: &StartOptions) -> Result<Box<dyn Server>, String> {
    Postgres::new(build.clone()).start(options).map_err(|error| error.message)
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
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default().to_owned();
    line.split_whitespace().map(str::to_owned).collect()
}
