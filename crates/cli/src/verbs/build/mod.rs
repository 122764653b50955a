//! `build add`, `make`, `list`, `show`, `remove`, `clean` and `check`.

mod fetch;
mod make;
mod show;

use std::path::Path;

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::BuildName;
use plimsoll_core::units::format_bytes;
use plimsoll_lab::builds::{self, BuildCache, BuildState, CheckState, InstalledBuild, ListedBuild};

use self::fetch::bring;
pub use self::fetch::fetch;
use self::show::{note, show};
use crate::arguments::{AddBuild, BuildVerb, Places};
use crate::failure::{Failure, INCOMPLETE, VerbResult};
use crate::output::{print, print_json, table};

pub fn build(places: &Places, verb: &BuildVerb) -> VerbResult {
    let cache = places.builds()?;
    match verb {
        BuildVerb::Add(AddBuild {
            basedir: Some(basedir),
            label: Some(label),
            ..
        }) => {
            print_added(&cache.add_basedir(basedir, label)?);
            Ok(0)
        }
        BuildVerb::Add(AddBuild { names, .. }) => add(&cache, names),
        BuildVerb::Make(arguments) => make::make(cache, arguments),
        BuildVerb::List { name, here, json } => list(&cache, name.as_ref(), *here, *json),
        BuildVerb::Show { name, json } => show(&cache, name, *json),
        BuildVerb::Remove { names } => remove(&cache, names),
        BuildVerb::Clean { all } => clean(&cache, *all),
        BuildVerb::Check { names, json } => check(&cache, names, *json),
    }
}

/// Fetches one build after the other. What cannot be fetched does not keep the others from being
/// tried.
fn add(cache: &BuildCache, names: &[BuildName]) -> VerbResult {
    let failed = bring(cache, names, false, &mut print_added)?;
    Ok(failed
        .iter()
        .map(|(_, failure)| failure.exit_code())
        .max()
        .unwrap_or(0))
}

fn print_added(build: &InstalledBuild) {
    // The build is there even when nobody reads about it.
    let _ = print(&format!(
        "{}  {}  {}\n",
        build.name,
        build.version,
        build.server.display()
    ));
    if let Some(note) = note(build) {
        tell!("plimsoll: {}: {note}", build.name);
    }
}

/// The body of a library's first trial: what it says of itself, as one JSON value.
pub fn probe_library(
    engine: EngineName,
    library: &Path,
    folder: &Path,
    companions: Option<&Path>,
) -> VerbResult {
    let probed = builds::probe_library(engine, library, companions, folder)
        .map_err(|error| Failure::usage(error.message))?;
    print_json(&probed)
}

fn list(
    cache: &BuildCache,
    wanted: Option<&BuildName>,
    is_here: bool,
    is_json: bool,
) -> VerbResult {
    let mut builds = cache.list()?;
    builds.retain(|build| {
        let is_wanted = wanted.is_none_or(|name| is_called(build, name));
        is_wanted && !(is_here && build.state == BuildState::Available)
    });
    if is_json {
        return print_json(&builds);
    }
    let rows = builds.iter().map(|build| {
        let state = match build.state {
            BuildState::Here => "here",
            BuildState::Available => "available",
            BuildState::Damaged => "damaged",
            BuildState::Unfinished => "unfinished",
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
    ))?;
    Ok(0)
}

/// Whether a build is of this engine, version or series, and source or flag set.
fn is_called(build: &ListedBuild, name: &BuildName) -> bool {
    // `9.7` is `9.7.4-2`, and `19` is `19rc1`.
    let is_version = |version: &String| {
        let rest = build.version.strip_prefix(version.as_str());
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let is_source =
        |source: &String| build.source == *source || build.name.ends_with(&format!("+{source}"));
    build.engine() == name.engine.as_str()
        && name.version.as_ref().is_none_or(is_version)
        && name.source.as_ref().is_none_or(is_source)
}

fn remove(cache: &BuildCache, names: &[BuildName]) -> VerbResult {
    for name in names {
        let removed = cache.remove(name)?;
        print(&format!("{removed}  removed\n"))?;
    }
    Ok(0)
}

fn clean(cache: &BuildCache, is_all: bool) -> VerbResult {
    let cleaned = cache.clean(is_all)?;
    let rows = cleaned.iter().map(|cleaned| {
        let state = if cleaned.is_removed {
            "removed"
        } else {
            "in use"
        };
        let leftover = &cleaned.leftover;
        let bytes = format_bytes(leftover.bytes);
        [leftover.name.clone(), state.to_owned(), bytes]
    });
    let rows: Vec<[String; 3]> = rows.collect();
    if rows.is_empty() {
        print("nothing is left over\n")?;
    } else {
        print(&table(["name", "state", "size"], rows))?;
    }
    Ok(0)
}

fn check(cache: &BuildCache, names: &[BuildName], is_json: bool) -> VerbResult {
    let mut checks = if names.is_empty() {
        cache.check(None)?
    } else {
        Vec::new()
    };
    for name in names {
        checks.extend(cache.check(Some(name))?);
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
        print(&table(["name", "state", "finding"], rows.collect()))?;
    }
    Ok(
        if checks.iter().all(|check| check.state == CheckState::Ok) {
            0
        } else {
            INCOMPLETE
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Servers add to their versions what packages do not have.
    #[test]
    fn builds_are_found_by_the_names_that_plans_have() {
        let listed = |name: &str, version: &str, source: &str| ListedBuild {
            name: name.to_owned(),
            version: version.to_owned(),
            source: source.to_owned(),
            state: BuildState::Here,
            bytes: None,
            origin: String::new(),
        };
        let mysql = listed("mysql@9.7.4", "9.7.4-2", "maven");
        let mariadb = listed("mariadb@10.11.19", "10.11.19-MariaDB", "debian");
        let release = listed("postgres@19rc1", "19rc1", "pgdg");
        let made = listed("sqlite@3.13.0+source-o2nofp", "3.13.0", "source-o2nofp");
        for (build, name, is_found) in [
            (&mysql, "mysql", true),
            (&mysql, "mysql@9.7.4", true),
            (&mysql, "mysql@9.7", true),
            (&mysql, "mysql@9.7+maven", true),
            (&mysql, "mysql@9.7+debian", false),
            (&mysql, "mysql@9", true),
            (&mysql, "mysql@9.70", false),
            (&mariadb, "mariadb@10.1", false),
            (&mariadb, "mariadb@10.11.19", true),
            (&release, "postgres@19", true),
            (&release, "postgres@1", false),
            (&made, "sqlite@3.13+source-o2nofp", true),
            (&made, "mysql", false),
        ] {
            let name = name.parse().unwrap();
            assert_eq!(is_called(build, &name), is_found, "{name} {build:?}");
        }
    }
}
