//! What sessions of real servers tell about themselves, and what others see them do.

mod mysql_support;
mod postgres_support;

use std::time::{Duration, Instant};

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

/// What one look at the server's sessions sees, while another session runs `sql`.
fn seen_during(server: &dyn Server, sql: &str) -> (&'static str, Vec<String>) {
    let sql_server = server.sql().unwrap();
    let own = sql_server.connect().unwrap();
    let mut sampler = sql_server.forms().wait_sampler(own).unwrap().unwrap();
    // The session that asked if the server is ready may still be leaving.
    let deadline = Instant::now() + mysql_support::DEADLINE;
    loop {
        let mut working = Vec::new();
        sampler
            .sample(&mut |event| working.push(event.to_owned()))
            .unwrap();
        if working.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "nobody works: {working:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut session = sql_server.connect().unwrap();
    let seen = std::thread::scope(|scope| {
        let working = scope.spawn(move || session.query(sql).map(drop));
        let mut seen = Vec::new();
        let deadline = Instant::now() + mysql_support::DEADLINE;
        while seen.is_empty() && Instant::now() < deadline && !working.is_finished() {
            std::thread::sleep(Duration::from_millis(20));
            sampler
                .sample(&mut |event| seen.push(event.to_owned()))
                .unwrap();
        }
        working.join().unwrap().unwrap();
        seen
    });
    (sampler.source(), seen)
}

#[test]
fn waits_of_mysql_are_seen() {
    for build in mysql_support::builds("waits_of_mysql_are_seen") {
        for (has_schema, expected) in [
            ("0", "show processlist"),
            ("1", "performance_schema.threads"),
        ] {
            let settings = [("performance_schema", has_schema)];
            let (_folders, server) = mysql_support::server(&build, &settings);
            let (source, seen) = seen_during(&*server, "select sleep(2)");
            assert_eq!(
                (source, &seen[..]),
                (expected, &["User sleep".to_owned()][..]),
                "{}",
                build.name
            );
        }
    }
}

#[test]
fn waits_of_postgres_are_seen() {
    for build in postgres_support::builds("waits_of_postgres_are_seen") {
        let (_folders, server) = postgres_support::quick(&build, &[]);
        let (source, seen) = seen_during(&*server, "select pg_sleep(2)");
        // The wait of a sleep has a name since 10.
        let expected = if build.version.starts_with("9.") {
            "running"
        } else {
            "Timeout: PgSleep"
        };
        assert_eq!(
            (source, &seen[..]),
            ("pg_stat_activity", &[expected.to_owned()][..]),
            "{}",
            build.name
        );
    }
}
