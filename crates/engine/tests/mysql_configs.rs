//! The shipped configs of MySQL and MariaDB: each starts on what it is for, and twins differ in
//! what they say they do.

mod mysql_support;

use std::fs;
use std::path::PathBuf;

use mysql_support::*;
use plimsoll_engine::mysql::Mysql;
use plimsoll_engine::{Engine, Settings};

/// A shipped config's settings.
fn config(engine: &str, label: &str) -> Settings {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../configs/{engine}/{label}.cnf"));
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let lines = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.split_once(" = ").unwrap_or_else(|| panic!("{line}")))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// The same with small sizes for what takes memory and time on any machine, and nothing else
/// changed.
fn small(engine: &str, label: &str) -> Vec<(String, String)> {
    let sizes = [
        ("innodb_buffer_pool_size", "64M"),
        ("innodb_log_file_size", "64M"),
        ("loose_innodb_log_file_size", "64M"),
        ("loose_innodb_redo_log_capacity", "128M"),
        ("rocksdb_block_cache_size", "32M"),
        ("rocksdb_max_background_jobs", "2"),
    ];
    let mut settings = config(engine, label);
    for (name, size) in sizes {
        if let Some(value) = settings.get_mut(name) {
            *value = size.to_owned();
        }
    }
    settings.into_iter().collect()
}

#[test]
fn every_build_starts_with_its_configs_and_answers() {
    for build in builds("every_build_starts_with_its_configs_and_answers") {
        let innodb = if build.version.starts_with("5.5") {
            "cz12a55"
        } else {
            "cz12a"
        };
        let rocksdb = build
            .storage_plugins
            .contains_key("rocksdb")
            .then_some("cza1");
        for label in [Some(innodb), rocksdb].into_iter().flatten() {
            let what = format!("{label} on {}", build.name);
            let settings = small(build.engine.as_str(), label);
            let pairs: Vec<_> = settings
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let (_folders, server) = server_with(&build, &pairs);
            let mut session = server.connect().unwrap();
            create_table(&*server, &mut *session, "pi1");
            assert_eq!(
                session.write(&insert_text("pi1", 1000), 1000).unwrap(),
                1000,
                "{what}"
            );
            assert_eq!(
                session.query_integer("select count(*) from pi1").unwrap(),
                Some(1000),
                "{what}"
            );
            assert_eq!(
                server.effective_settings().unwrap()["log_bin"],
                "ON",
                "{what}"
            );
            assert!(!server.reset_between_steps().unwrap().is_empty());
            server
                .stop(DEADLINE)
                .unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

#[test]
fn every_other_config_starts_on_a_build_it_is_for() {
    let table = [
        ("mysql", MYSQL_NEW, "cz12aps0"),
        ("mysql", MYSQL_OLD, "cz12adur"),
        ("mysql", MYSQL_OLD, "cz12aio"),
        ("mariadb", MARIADB, "cz12aps0"),
        ("mariadb", MARIADB, "cz12adur"),
        ("mariadb", MARIADB, "cz12aio"),
    ];
    for (engine, wanted, label) in table {
        let Some(build) = build("every_other_config_starts_on_a_build_it_is_for", wanted) else {
            continue;
        };
        let settings = small(engine, label);
        let pairs: Vec<_> = settings
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let (_folders, server) = server_with(&build, &pairs);
        let effective = server.effective_settings().unwrap();
        let (name, value) = match label {
            "cz12aps0" => ("performance_schema", "OFF"),
            "cz12adur" => ("innodb_flush_log_at_trx_commit", "1"),
            _ => ("innodb_flush_method", "O_DIRECT_NO_FSYNC"),
        };
        assert_eq!(effective[name], value, "{label} on {}", build.name);
        server
            .stop(DEADLINE)
            .unwrap_or_else(|error| panic!("{label} on {}: {error}", build.name));
    }
}

#[test]
fn twins_differ_in_what_they_say() {
    let table: [(&str, &[&str]); 3] = [
        ("cz12aps0", &["performance_schema"]),
        (
            "cz12adur",
            &[
                "innodb_flush_log_at_trx_commit",
                "innodb_flush_method",
                "sync_binlog",
            ],
        ),
        (
            "cz12aio",
            &[
                "innodb_buffer_pool_size",
                "loose_innodb_buffer_pool_instances",
            ],
        ),
    ];
    for engine in ["mysql", "mariadb"] {
        let base = config(engine, "cz12a");
        for (label, differing) in table {
            let twin = config(engine, label);
            let found: Vec<&str> = base
                .iter()
                .filter(|(name, value)| twin.get(*name) != Some(value))
                .map(|(name, _)| name.as_str())
                .collect();
            assert_eq!(
                (found.as_slice(), twin.len()),
                (differing, base.len()),
                "{engine} {label}"
            );
        }
    }
}

#[test]
fn every_config_passes_the_check_without_a_server() {
    let Some(build) = build("every_config_passes_the_check_without_a_server", MYSQL_NEW) else {
        return;
    };
    let mut count = 0;
    for engine in ["mysql", "mariadb"] {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../configs")
            .join(engine);
        for entry in fs::read_dir(folder).unwrap() {
            let label = entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let settings = small(engine, &label).into_iter().collect();
            Mysql::new(build.clone())
                .check_settings(&settings)
                .unwrap_or_else(|error| panic!("{label}: {error}"));
            count += 1;
        }
    }
    assert_eq!(count, 10);
}
