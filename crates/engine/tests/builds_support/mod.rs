//! Builds for the tests: those that `tests/builds.txt` lists and `make test` fetches, in the cache.

use std::path::Path;

use plimsoll_core::name::natural_cmp;
use plimsoll_engine::InstalledBuild;
use plimsoll_testkit::{build_record, builds_dir};

/// Names and series.
const LISTED: &str = include_str!("../../../../tests/builds.txt");

/// With this variable set, tests that go through many builds take all in the cache.
const ALL_BUILDS: &str = "PLIMSOLL_ALL_BUILDS";

/// All builds in the cache, by name.
pub fn in_cache() -> Vec<InstalledBuild> {
    let folders = std::fs::read_dir(builds_dir());
    let mut builds: Vec<InstalledBuild> = folders
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|folder| installed(&folder.path()))
        .collect();
    builds.sort_by(|one, other| natural_cmp(&one.name, &other.name));
    builds
}

fn installed(folder: &Path) -> Option<InstalledBuild> {
    serde_json::from_str(&build_record(folder).ok()?).ok()
}

/// The builds of these engines that a test goes through: the newest of each listed name, or all in
/// the cache. A listed one that is not there is reported as a skip of the test.
pub fn to_go_through(test: &str, engines: &[&str]) -> Vec<InstalledBuild> {
    let builds: Vec<InstalledBuild> = in_cache()
        .into_iter()
        .filter(|build| engines.contains(&build.engine.as_str()))
        .collect();
    if std::env::var_os(ALL_BUILDS).is_some() {
        return builds;
    }
    let mut found = Vec::new();
    for name in listed(engines) {
        match builds.iter().rfind(|build| is_of(&build.name, name)) {
            Some(build) => found.push(build.clone()),
            None => skip(test, name),
        }
    }
    found
}

fn listed<'a>(engines: &'a [&str]) -> impl Iterator<Item = &'a str> {
    let lines = LISTED
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter(|line| engines.contains(&line.split('@').next().unwrap_or_default()))
}

/// Whether a build's name is the listed one, or one of the listed series from the same source.
fn is_of<'a>(name: &'a str, listed: &'a str) -> bool {
    let parts = |name: &'a str| {
        name.split_once('+')
            .map_or((name, None), |(name, source)| (name, Some(source)))
    };
    let ((name, source), (listed, listed_source)) = (parts(name), parts(listed));
    source == listed_source
        && name
            .strip_prefix(listed)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Tells that a test had no build of this name.
pub fn skip(test: &str, name: &str) {
    let reason = format!(
        "no build of {name} in {}; fetch it with `plimsoll build add {name}`",
        builds_dir().display()
    );
    plimsoll_testkit::skip(&format!("engine::{test}"), &reason);
}
