//! SQLite's versions as shared libraries behind the traits: each in a process of its own, against
//! the library in this program.

mod builds_support;
mod library_support;

use std::path::Path;
use std::time::{Duration, Instant};

use library_support::for_each_build;
use plimsoll_engine::sqlite::Sqlite;
use plimsoll_engine::{
    DrainLimits, Engine, ErrorClass, InstalledBuild, Server, Settings, SqlSession, StartOptions,
};
use rusqlite::Connection;

/// Generous: no test waits this long unless it fails.
const DEADLINE: Duration = Duration::from_secs(120);

fn settings(pairs: &[(&str, &str)]) -> Settings {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

const WAL: &[(&str, &str)] = &[
    ("journal_mode", "wal"),
    ("synchronous", "normal"),
    ("cache_size", "-65536"),
    ("mmap_size", "1048576"),
];

fn start(engine: &Sqlite, dir: &Path, pairs: &[(&str, &str)]) -> Result<Box<dyn Server>, String> {
    let options = StartOptions::new(dir, settings(pairs));
    engine.start(&options).map_err(|error| error.message)
}

fn texts(session: &mut dyn SqlSession, sql: &str) -> Vec<String> {
    let mut texts = Vec::new();
    session
        .for_each_row(sql, &mut |row| texts.push(row.join("|")))
        .unwrap();
    texts
}

#[test]
fn a_version_says_itself_which_one_it_is() {
    for_each_build(
        "a_version_says_itself_which_one_it_is",
        "sqlite",
        |build, dir| {
            let engine = Sqlite::installed(build.clone());
            assert_eq!(engine.build().version, build.version);
            let has = |beginning: &str| {
                let options = engine.build().options;
                options.iter().any(|option| option.starts_with(beginning))
            };
            assert!(
                has("optimisation: ") && !has("THREADSAFE="),
                "not loaded yet"
            );
            let server = start(&engine, dir, WAL).unwrap();
            let mut session = server.connect().unwrap();
            assert_eq!(
                texts(&mut *session, "select sqlite_version()"),
                [&*build.version]
            );
            assert_ne!(
                build.version,
                rusqlite::version(),
                "another one than the bundled"
            );
            assert_eq!(engine.build().version, build.version);
            for beginning in [
                "optimisation: ",
                "source_id: 20",
                "THREADSAFE=1",
                "ENABLE_STAT4",
            ] {
                assert!(has(beginning), "{beginning}: {:?}", engine.build().options);
            }
            let effective = server.effective_settings().unwrap();
            for (name, value) in WAL.iter().chain(&[("foreign_keys", "on")]) {
                assert_eq!(effective[*name], *value, "{name}");
            }
        },
    );
}

#[test]
fn rows_are_those_of_the_bundled_library() {
    for_each_build(
        "rows_are_those_of_the_bundled_library",
        "sqlite",
        |build, dir| {
            let engine = Sqlite::installed(build);
            let server = start(&engine, dir, WAL).unwrap();
            let mut session = server.connect().unwrap();
            session
                .define("create table t (id integer primary key, r real, s text, b blob)")
                .unwrap();
            session.define("create index t_s on t (s)").unwrap();
            let rows = "insert into t values (1, 0.1, 'é|', x'00ff'), (2, 250, null, null), (3, 1e300, \
            '', x'')";
            assert_eq!(session.write(rows, 3).unwrap(), 3);
            let insert = session.prepare("insert into t (r) values (?)").unwrap();
            for n in 0..100 {
                assert_eq!(session.write_prepared(insert, &[n], 1).unwrap(), 1);
            }
            let range = session
                .prepare("select * from t where id >= ? limit 10")
                .unwrap();
            assert_eq!(session.query_prepared(range, &[98]).unwrap(), 6);
            let error = session.write(rows, 3).unwrap_err();
            assert_eq!(error.class, ErrorClass::Duplicate, "{error}");

            let actions = server
                .drain(
                    &["t".to_owned()],
                    &DrainLimits::new(Instant::now(), Instant::now() + DEADLINE, &|| false),
                )
                .unwrap();
            assert!(actions[1].result.starts_with("busy 0, "), "{actions:?}");
            let question = "select * from t where id <= 3 order by id";
            let found = texts(&mut *session, question);
            assert_eq!(found, ["1|0.1|é||00ff", "2|250.0|\\N|\\N", "3|1e300||"]);
            drop(session);
            server.stop(DEADLINE).unwrap();

            // What an old version wrote the newest one reads, and finds sound.
            let newest = Connection::open(dir.join("ib.db")).unwrap();
            let count: i64 = newest
                .query_row("select count(*) from t", [], |row| row.get(0))
                .unwrap();
            let verdict: String = newest
                .query_row("pragma integrity_check", [], |row| row.get(0))
                .unwrap();
            assert_eq!((count, verdict.as_str()), (103, "ok"));
        },
    );
}

#[test]
fn two_writers_and_a_lock_behave_as_with_the_bundled_library() {
    let name = "two_writers_and_a_lock_behave_as_with_the_bundled_library";
    for_each_build(name, "sqlite", |build, dir| {
        let engine = Sqlite::installed(build);
        let server = start(&engine, dir, WAL).unwrap();
        let mut one = server.connect().unwrap();
        let mut other = server.connect().unwrap();
        one.define("create table t (id integer primary key)")
            .unwrap();
        one.perform("begin immediate").unwrap();
        let error = other.write("insert into t values (1)", 1).unwrap_err();
        assert_eq!((error.class, error.code), (ErrorClass::Busy, 5), "{error}");
        one.perform("commit").unwrap();
        assert_eq!(other.write("insert into t values (1)", 1).unwrap(), 1);
        std::thread::scope(|scope| {
            scope.spawn(move || assert_eq!(other.query("select * from t").unwrap(), 1));
        });
    });
}

#[test]
fn what_a_version_lacks_or_is_not_is_told() {
    for_each_build(
        "what_a_version_lacks_or_is_not_is_told",
        "sqlite",
        |build, dir| {
            let engine = Sqlite::installed(build.clone());
            // Known since 3.32.
            let old = plimsoll_core::name::natural_cmp(&build.version, "3.32").is_lt();
            let with_limit = start(&engine, dir, &[("analysis_limit", "100")]);
            assert_eq!(with_limit.is_err(), old, "{}", build.version);
            if let Err(message) = with_limit {
                assert_eq!(
                    message,
                    "this version of sqlite does not know the pragma analysis_limit; leave it out of \
                the config, or take a newer version"
                );
            } else {
                let known = start(&engine, dir, &[])
                    .unwrap()
                    .effective_settings()
                    .unwrap();
                assert!(known.contains_key("analysis_limit"));
            }

            let renamed = InstalledBuild {
                version: "3.1.4".to_owned(),
                ..build.clone()
            };
            let message = start(&Sqlite::installed(renamed), dir, WAL).err().unwrap();
            let wanted = format!("is version {}, and ", build.version);
            assert!(
                message.contains(&wanted) && message.ends_with("add or make the build again"),
                "{message}"
            );

            // A second library in this process.
            let copy = dir.join("libsqlite3.so");
            std::fs::copy(&build.server, &copy).unwrap();
            let second = InstalledBuild {
                server: copy,
                ..build
            };
            let message = start(&Sqlite::installed(second), dir, WAL).err().unwrap();
            assert!(message.ends_with("use one process for each"), "{message}");
        },
    );
}
