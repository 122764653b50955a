//! What sessions of real servers tell about themselves, and what others see them do.

mod mysql_support;
mod postgres_support;

use plimsoll_engine::{Server, Settings, StartOptions, engine};

/// The facts of a session that was opened as a worker's is.
fn facts(server: &dyn Server) -> Settings {
    let sql = server.sql().unwrap();
    let mut session = sql.connect().unwrap();
    sql.forms().session_facts(&mut *session).unwrap()
}

/// Names that engines share.
const COMMON: [&str; 7] = [
    "autocommit",
    "character_set",
    "collation",
    "compression",
    "isolation",
    "protocol",
    "tls",
];

fn check(server: &dyn Server, expected: &[(&str, &str)], build: &str) {
    let facts = facts(server);
    for name in COMMON {
        assert!(facts.contains_key(name), "{build} lacks {name}: {facts:?}");
    }
    for (name, value) in expected {
        assert_eq!(
            facts.get(*name).map(String::as_str),
            Some(*value),
            "{build}: {name}"
        );
    }
}

#[test]
fn sessions_of_mysql_tell_their_facts() {
    let common = [
        ("autocommit", "on"),
        ("tls", "none"),
        ("protocol", "MySQL 10"),
    ];
    for build in mysql_support::builds("sessions_of_mysql_tell_their_facts") {
        let (_folders, server) = mysql_support::server(&build, &[]);
        let defaults = [&common[..], &[("isolation", "repeatable read")]].concat();
        check(&*server, &defaults, &build.name);
        drop(server);
        let changed = [
            ("transaction_isolation", "READ-COMMITTED"),
            ("sql_mode", "ANSI_QUOTES"),
        ];
        let (_folders, server) = mysql_support::server(&build, &changed);
        let modes = "ANSI_QUOTES, NO_ENGINE_SUBSTITUTION";
        let other = [("isolation", "read committed"), ("sql_mode", modes)];
        check(&*server, &[&common[..], &other].concat(), &build.name);
    }
}

#[test]
fn sessions_of_postgres_tell_their_facts() {
    let common = [
        ("autocommit", "on"),
        ("compression", "off"),
        ("protocol", "PostgreSQL 3"),
        ("tls", "none"),
    ];
    for build in postgres_support::builds("sessions_of_postgres_tell_their_facts") {
        let (_folders, server) = postgres_support::quick(&build, &[]);
        let defaults = [
            ("isolation", "read committed"),
            ("synchronous_commit", "on"),
        ];
        check(&*server, &[&common[..], &defaults].concat(), &build.name);
        drop(server);
        let changed = [
            ("default_transaction_isolation", "serializable"),
            ("synchronous_commit", "off"),
        ];
        let (_folders, server) = postgres_support::quick(&build, &changed);
        let other = [("isolation", "serializable"), ("synchronous_commit", "off")];
        check(&*server, &[&common[..], &other].concat(), &build.name);
    }
}

#[test]
fn sessions_of_sqlite_tell_their_facts() {
    let dir = tempfile::tempdir().unwrap();
    let settings = [("journal_mode", "wal"), ("synchronous", "normal")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let server = engine(&"sqlite".parse().unwrap(), None)
        .unwrap()
        .start(&StartOptions::new(dir.path(), settings.into()))
        .unwrap();
    let expected = [
        ("character_set", "utf-8"),
        ("journal_mode", "wal"),
        ("synchronous", "normal"),
    ];
    check(&*server, &expected, "sqlite");
}
