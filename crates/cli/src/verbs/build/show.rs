//! `build show`.

use plimsoll_core::name::BuildName;
use plimsoll_core::toolchain::{ASSERTIONS, CRC32};
use plimsoll_lab::builds::{self, BuildCache, DataInit, InstalledBuild};
use serde_json::json;

use crate::failure::VerbResult;
use crate::output::{print, print_json};

/// Of the toolchain, what a build may be compared by.
const TOOLCHAIN: [&str; 11] = [
    "packager",
    "compiler",
    "optimisation",
    "flags",
    ASSERTIONS,
    CRC32,
    "commit",
    "binutils",
    "libc",
    "source_hash",
    "features",
];

pub(super) fn show(cache: &BuildCache, name: &BuildName, is_json: bool) -> VerbResult {
    let resolved = cache.resolve(name)?;
    let build = cache.get(name)?;
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
        Some(build) => rows.extend(rows_of(build)),
        None => {
            let version = if resolved.is_exact {
                resolved.version
            } else {
                format!("{}.* (its newest)", resolved.version)
            };
            rows.extend([("version", version), ("origin", resolved.origin)]);
        }
    }
    print(
        &rows
            .iter()
            .map(|(key, value)| format!("{key:<12}  {value}\n"))
            .collect::<String>(),
    )?;
    Ok(0)
}

/// What is known of a build that is here.
fn rows_of(build: InstalledBuild) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("version", build.version.clone()),
        ("origin", build.origin.clone()),
    ];
    rows.extend(note(&build).map(|note| ("note", note)));
    let program = if build.init == DataInit::Library {
        "library"
    } else {
        "server"
    };
    rows.push((program, build.server.display().to_string()));
    rows.push(("sha256", build.server_sha256));
    let links = build.links.into_iter().enumerate();
    rows.extend(links.map(|(number, link)| {
        let path = link.server.display();
        ("link", format!("{} {} {path}", number + 1, link.sha256))
    }));
    rows.extend(
        TOOLCHAIN
            .iter()
            .filter_map(|key| Some((*key, build.toolchain.get(*key)?.clone()))),
    );
    let paths = [
        ("basedir", Some(build.basedir)),
        ("share", build.share_dir),
        ("db_bench", build.db_bench),
        ("plugins", build.plugin_dir),
    ];
    rows.extend(
        paths
            .into_iter()
            .filter_map(|(key, path)| Some((key, path?.display().to_string()))),
    );
    let env = build.env.iter();
    rows.extend(env.map(|(key, value)| ("environment", format!("{key}={value}"))));
    let options = build.server_options.into_iter();
    rows.extend(options.map(|option| ("option", option)));
    let plugins = build.storage_plugins.iter();
    rows.extend(plugins.map(|(engine, option)| ("storage", format!("{engine}: {option}"))));
    rows
}

/// What should be known before a build is measured.
pub(super) fn note(build: &InstalledBuild) -> Option<String> {
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
