//! The account of client hosts on servers of a trial: what it may do, and where its password is not.

mod mysql_support;
mod postgres_support;

use std::fs;
use std::path::Path;

use plimsoll_engine::{
    GuestOrder, Guests, InstalledBuild, Password, Server, SessionClient, Settings, StartOptions,
    guest_server,
};

const PASSWORD: &str = "00112233445566778899aabbccddeeff";

fn guests() -> Guests {
    let here = vec!["127.0.0.1".parse().unwrap()];
    Guests {
        listen: here.clone(),
        from: here,
        password: Password::new(PASSWORD.to_owned()),
    }
}

/// The same server as a client host reaches it.
fn reached(server: &dyn Server, build: &InstalledBuild, settings: &Settings) -> Box<dyn Server> {
    let order = GuestOrder {
        engine: build.engine,
        address: "127.0.0.1".parse().unwrap(),
        port: server.guest_port().unwrap(),
        password: Password::new(PASSWORD.to_owned()),
        settings: settings.clone(),
        client: SessionClient::default(),
    };
    guest_server(&order).unwrap()
}

/// Whether the text is in a file below the folder.
fn is_below(folder: &Path, text: &str) -> Option<String> {
    fs::read_dir(folder).unwrap().flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return is_below(&path, text);
        }
        let content = fs::read(&path).unwrap_or_default();
        let has = content
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        has.then(|| path.display().to_string())
    })
}

/// It was a member of the superuser's role, which it could take.
#[test]
fn the_account_on_postgres_owns_the_tables_and_becomes_no_superuser() {
    let test = "the_account_on_postgres_owns_the_tables_and_becomes_no_superuser";
    for build in postgres_support::builds(test) {
        let folders = postgres_support::Folders::new();
        let loud = [
            ("log_statement", "all"),
            ("log_min_duration_statement", "0"),
            ("log_transaction_sample_rate@12-99", "1"),
            ("debug_print_parse", "on"),
        ];
        let options = StartOptions {
            guests: Some(guests()),
            ..folders.options(&[postgres_support::QUICK, &loud])
        };
        let server = postgres_support::start(&build, &options).unwrap();
        let mut home = server.sql().unwrap().connect().unwrap();
        home.define("create table t (a int)").unwrap();
        server.give_tables_to_guests().unwrap();
        server.give_tables_to_guests().unwrap();
        let guest = reached(&*server, &build, &options.settings);
        let mut session = guest.sql().unwrap().connect().unwrap();
        for sql in [
            "create index on t (a)",
            "create table of_guest (a int)",
            "analyze t",
        ] {
            let done = session.define(sql);
            assert!(done.is_ok(), "{}: {sql}: {done:?}", build.name);
        }
        session.write("insert into t values (1)", 1).unwrap();
        for sql in [
            "set role postgres",
            "set session authorization postgres",
            "copy t from program 'true'",
            "alter role plimsoll_clients superuser",
            "select pg_read_file('PG_VERSION')",
        ] {
            let done = session.define(sql);
            assert!(done.is_err(), "{}: may {sql}", build.name);
        }
        drop((home, session));
        let log = folders.logs.path();
        assert!(is_below(log, "create table t (a int)").is_some());
        assert_eq!(is_below(log, PASSWORD), None, "{}", build.name);
        server.stop(postgres_support::DEADLINE).unwrap();
    }
}

/// MariaDB's general log had it.
#[test]
fn the_password_on_the_mysql_family_is_in_no_log() {
    let test = "the_password_on_the_mysql_family_is_in_no_log";
    for build in mysql_support::builds(test) {
        let folders = mysql_support::Folders::new();
        let loud = [
            ("general_log", "1"),
            ("slow_query_log", "1"),
            ("long_query_time", "0"),
            ("log-bin", "on"),
        ];
        let options = StartOptions {
            guests: Some(guests()),
            ..folders.options(&loud)
        };
        let server = mysql_support::start(&build, &options).unwrap();
        let mut home = server.sql().unwrap().connect().unwrap();
        home.define("create table t (a int)").unwrap();
        server.give_tables_to_guests().unwrap();
        let guest = reached(&*server, &build, &options.settings);
        let mut session = guest.sql().unwrap().connect().unwrap();
        session.define("create index a on t (a)").unwrap();
        session.write("insert into t values (1)", 1).unwrap();
        for sql in ["create table mysql.t (a int)", "set global general_log = 0"] {
            let done = session.define(sql);
            assert!(done.is_err(), "{}: may {sql}", build.name);
        }
        drop((home, session));
        server.stop(mysql_support::DEADLINE).unwrap();
        let data = folders.data.path();
        assert!(is_below(data, "create table t (a int)").is_some());
        for folder in [data, folders.logs.path()] {
            assert_eq!(is_below(folder, PASSWORD), None, "{}", build.name);
        }
    }
}
