//! Real servers for the tests: builds from the cache, started in folders that vanish.

// Each test binary uses a part of this.
#![allow(dead_code)]

use std::os::unix::fs::PermissionsExt;
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

/// The installed build of this major version. Without one that the server's user can reach the test is skipped. `PLIMSOLL_CACHE` names
/// the folder of the builds' folder, else it is where `plimsoll build add` puts them.
pub fn build(test: &str, major: &str) -> Option<InstalledBuild> {
    let cache = std::env::var_os("PLIMSOLL_CACHE").map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| home.map(|home| home.join(".cache")));
        cache.map(|cache| cache.join("plimsoll"))
    });
    let folders = cache.and_then(|cache| std::fs::read_dir(cache.join("builds")).ok());
    let builds = folders.into_iter().flatten().flatten().filter_map(|folder| installed(&folder.path()));
    // The folders come in any order; the same build is taken each time.
    let found = builds.filter(|build| is_postgres(build, major)).min_by(|one, other| one.name.cmp(&other.name));
    let reason = match &found {
        Some(build) => closed_folder(&build.server).map(|folder| {
            format!(
                "root's servers run as nobody, who may not enter {}; set PLIMSOLL_CACHE to a cache that everybody may enter",
                folder.display()
            )
        }),
        None => Some(format!("no build of postgres {major} in the cache; fetch it with `plimsoll build add postgres@{major}`")),
    };
    match reason {
        Some(reason) => {
            skip(&format!("engine::{test}"), &reason);
            None
        }
        None => found,
    }
}

fn is_postgres(build: &InstalledBuild, major: &str) -> bool {
    let rest = build.version.strip_prefix(major);
    build.engine.as_str() == "postgres" && rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// Paths below a build's folder are kept as `{build}/...`.
fn installed(folder: &Path) -> Option<InstalledBuild> {
    let text = std::fs::read_to_string(folder.join("build.json")).ok()?;
    serde_json::from_str(&text.replace("{build}", &folder.display().to_string())).ok()
}

/// A folder on the way to `path` that keeps out everybody but root, when we are root.
fn closed_folder(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok().filter(|_| rustix::process::geteuid().is_root())?;
    let is_closed = |folder: &&Path| std::fs::metadata(folder).is_ok_and(|metadata| metadata.permissions().mode() & 1 == 0);
    path.ancestors().skip(1).filter(is_closed).last().map(Path::to_owned)
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
