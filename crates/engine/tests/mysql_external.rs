//! MySQL and MariaDB that the plan gives by their address: used, and left as they were.

mod external_support;
mod mysql_support;

use std::net::TcpListener;
use std::time::Instant;

use external_support::*;
use mysql_support::*;
use plimsoll_core::plan::{ServerPlace, TlsMode};
use plimsoll_engine::{
    DrainLimits, External, Health, InstalledBuild, Server, SessionClient, SqlSession, StartOptions,
    Transport,
};

/// Somebody's server: with a database for us, and an account that has rights on nothing else.
struct Somebody {
    folders: Folders,
    server: Box<dyn Server>,
    root: Box<dyn SqlSession>,
}

impl Somebody {
    fn new(build: &InstalledBuild) -> Self {
        Self::started(Folders::new(), build, &[])
    }

    fn started(folders: Folders, build: &InstalledBuild, pairs: &[(&str, &str)]) -> Self {
        let options = StartOptions {
            transport: Transport::Tcp,
            ..folders.options(pairs)
        };
        let server =
            start(build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        let mut root = server.connect().unwrap();
        root.define(&format!("create database if not exists {DATABASE}"))
            .unwrap();
        // An account without a name for localhost, where there is one, comes before one for all
        // hosts.
        for host in ["127.0.0.1", "localhost"] {
            if root
                .query(&format!(
                    "select 1 from mysql.user where user = 'bench' and host = '{host}'"
                ))
                .unwrap()
                == 0
            {
                root.define(&format!(
                    "create user 'bench'@'{host}' identified by '{SECRET}'"
                ))
                .unwrap();
                root.define(&format!("grant all on {DATABASE}.* to 'bench'@'{host}'"))
                    .unwrap();
            }
        }
        Self {
            folders,
            server,
            root,
        }
    }

    fn external(&mut self, build: &InstalledBuild) -> External {
        external(
            build.engine,
            self.root.query_integer("select @@port").unwrap().unwrap() as u16,
        )
    }

    fn tables(&mut self) -> Vec<String> {
        let sql = format!(
            "select table_name from information_schema.tables where table_schema = '{DATABASE}' \
            order by 1"
        );
        let mut tables = Vec::new();
        self.root
            .for_each_row(&sql, &mut |row| tables.push(row[0].to_owned()))
            .unwrap();
        tables
    }
}

#[test]
fn a_external_server_is_used_and_left_as_it_was() {
    for wanted in ALL {
        let Some(build) = build(
            "mysql_external::a_external_server_is_used_and_left_as_it_was",
            wanted,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build);
        let before = somebody.server.effective_settings().unwrap();
        let external = somebody.external(&build);
        let server = enter(&external).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        assert_eq!(
            (server.health(), server.processes()),
            (Health::Running, Vec::new())
        );
        assert_eq!(server.sql().unwrap().table_suffix(), " engine=innodb");
        server
            .sql()
            .unwrap()
            .claim_tables(&["pi1".to_owned(), "pi2".to_owned()])
            .unwrap();
        let mut session = server.connect().unwrap();
        create_table(&*server, &mut *session, "pi1");
        assert_eq!(
            session.write(&insert_text("pi1", 1000), 1000).unwrap(),
            1000
        );
        server
            .sql()
            .unwrap()
            .check_tables(&["pi1".to_owned()])
            .unwrap();
        assert!(
            server
                .sql()
                .unwrap()
                .check_tables(&["pi2".to_owned()])
                .unwrap_err()
                .message
                .contains("pi2 should be innodb's and is not there")
        );

        let settings = server.effective_settings().unwrap();
        assert_eq!(
            (
                settings["session_tls"].as_str(),
                settings["innodb_buffer_pool_size"].as_str()
            ),
            ("off", "67108864")
        );
        assert_eq!(settings["session_client"], "thin");
        assert!(server.counters().unwrap()["com_insert"] >= 1);
        assert!(server.database_bytes().unwrap() > 0);
        assert_eq!(server.reset_between_steps().unwrap(), []);
        let dir = tempfile::tempdir().unwrap();
        server.save_state(dir.path(), "l.i0").unwrap();
        assert!(holds(dir.path(), "Com_insert") || holds(dir.path(), "COM_INSERT"));
        assert!(!holds(dir.path(), SECRET) && !dir.path().join("l.i0.innodb-status.txt").exists());

        // The wait is over, so the watching is short.
        let now = Instant::now();
        let actions = server
            .drain(
                &["pi1".to_owned()],
                &DrainLimits::new(now, now + DEADLINE, &|| false),
            )
            .unwrap();
        let left_out: Vec<&str> = actions
            .iter()
            .filter(|action| action.result == "left out: the server is not ours")
            .map(|action| action.action.as_str())
            .collect();
        assert_eq!(left_out[0], "reset of the binary logs");
        assert!(
            left_out[1].starts_with("set global innodb_max_dirty_pages_pct_lwm = 1; "),
            "{left_out:?}"
        );
        let analyzed = actions
            .iter()
            .find(|action| action.action == "analyze table `pi1`")
            .unwrap();
        assert!(analyzed.result.contains("OK"), "{analyzed:?}");
        let waited = actions
            .iter()
            .find(|action| action.action == "wait for writeback")
            .unwrap();
        assert!(waited.result.contains("dirty pages "), "{waited:?}");

        assert_eq!(somebody.tables(), ["pi1", "plimsoll_marker"]);
        drop(session);
        server.stop(DEADLINE).unwrap();
        assert_eq!(somebody.tables(), [""; 0]);
        assert_eq!(somebody.server.effective_settings().unwrap(), before);

        let mut full = None;
        wait_until("the lock of the first use", || {
            full = enter_through(SessionClient::Full, &external).ok();
            full.is_some()
        });
        let full = full.unwrap();
        assert_eq!(
            full.effective_settings().unwrap()["session_client"],
            "mysql crate"
        );
        assert_eq!(
            full.connect()
                .unwrap()
                .query_integer("select 40 + 2")
                .unwrap(),
            Some(42)
        );
        full.stop(DEADLINE).unwrap();
        drop(somebody.root);
        somebody.server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn what_is_foreign_is_left_alone_and_what_is_ours_goes() {
    for wanted in [MYSQL_OLD, MARIADB] {
        let Some(build) = build(
            "mysql_external::what_is_foreign_is_left_alone_and_what_is_ours_goes",
            wanted,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build);
        let external = somebody.external(&build);
        somebody
            .root
            .define(&format!(
                "create table {DATABASE}.precious as select 42 as answer"
            ))
            .unwrap();
        let message = refused(&external);
        assert!(
            message.contains(
                "the database not_ours holds what is not ours (precious; there is no Plimsoll \
                marker)"
            ),
            "{message}"
        );
        assert_eq!(somebody.tables(), ["precious"]);

        // A view and a procedure are somebody's too.
        for (make, name) in [
            ("view v as select 1 as one", "v"),
            ("procedure p() select 1", "routine p"),
        ] {
            somebody
                .root
                .define(&format!("drop table if exists {DATABASE}.precious"))
                .unwrap();
            somebody
                .root
                .define(&format!(
                    "create {}",
                    make.replacen(' ', &format!(" {DATABASE}."), 1)
                ))
                .unwrap();
            let message = refused(&external);
            assert!(message.contains(&format!("({name}; ")), "{message}");
            let kind = make.split(' ').next().unwrap();
            somebody
                .root
                .define(&format!(
                    "drop {kind} {DATABASE}.{}",
                    name.rsplit(' ').next().unwrap()
                ))
                .unwrap();
        }

        // A campaign that was killed: its tables stay, and its lock goes with its connection.
        let killed = enter(&external).unwrap();
        killed
            .sql()
            .unwrap()
            .claim_tables(&["pi1".to_owned()])
            .unwrap();
        create_table(&*killed, &mut *killed.connect().unwrap(), "pi1");
        let message = refused(&external);
        assert!(
            message.contains("another campaign uses the database not_ours now"),
            "{message}"
        );
        std::mem::forget(killed);
        let mut connections = Vec::new();
        let sql = "select id from information_schema.processlist where user = 'bench'";
        somebody
            .root
            .for_each_row(sql, &mut |row| connections.push(row[0].to_owned()))
            .unwrap();
        for id in connections {
            // One that ends by itself just now is as good.
            let _ = somebody.root.define(&format!("kill {id}"));
        }
        assert_eq!(somebody.tables(), ["pi1", "plimsoll_marker"]);

        // A foreign table beside the marker: nothing is touched.
        somebody
            .root
            .define(&format!(
                "create table {DATABASE}.precious as select 42 as answer"
            ))
            .unwrap();
        let mut message = String::new();
        wait_until("the lock's end", || {
            message = refused(&external);
            !message.contains("another campaign")
        });
        assert!(
            message.contains("(precious; are not in its marker)"),
            "{message}"
        );
        assert_eq!(somebody.tables(), ["pi1", "plimsoll_marker", "precious"]);
        assert_eq!(
            somebody
                .root
                .query_integer(&format!("select answer from {DATABASE}.precious"))
                .unwrap(),
            Some(42)
        );

        // Without it our tables go, and a value that is dropped after an error cleans up as well.
        somebody
            .root
            .define(&format!("drop table {DATABASE}.precious"))
            .unwrap();
        let server = enter(&external).unwrap();
        assert_eq!(somebody.tables(), ["plimsoll_marker"]);
        drop(server);
        assert_eq!(somebody.tables(), [""; 0]);

        // A table of that name that is not Plimsoll's marker.
        somebody
            .root
            .define(&format!(
                "create table {DATABASE}.plimsoll_marker (made_by varchar(100))"
            ))
            .unwrap();
        let message = refused(&external);
        assert!(
            message.contains("has a table plimsoll_marker that is not as ours are"),
            "{message}"
        );
        assert_eq!(somebody.tables(), ["plimsoll_marker"]);
    }
}

#[test]
fn a_server_that_goes_silent_is_not_waited_for() {
    for wanted in [MYSQL_NEW, MARIADB] {
        let Some(build) = build(
            "mysql_external::a_server_that_goes_silent_is_not_waited_for",
            wanted,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build);
        let external = somebody.external(&build);
        let server = enter(&external).unwrap();
        let message = stop_in_silence(server, somebody.server.processes()[0])
            .expect("the stop waited for the server");
        assert!(
            message.contains("leave the server prod: 127.0.0.1:")
                && message.contains("did not answer within 100ms"),
            "{message}"
        );
        // What was left undone is done late, or by the next.
        wait_until("the database for another use", || enter(&external).is_ok());
        assert_eq!(somebody.tables(), [""; 0]);
    }
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    for wanted in [MYSQL_NEW, MARIADB] {
        let Some(build) = build(
            "mysql_external::a_server_that_cannot_be_used_says_why",
            wanted,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build);
        let right = somebody.external(&build);
        let port_of_nobody = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        type Change<'a> = Box<dyn Fn(&mut External) + 'a>;
        let table: [(Change<'_>, &str); 7] = [
            (
                Box::new(|external| {
                    external.password = Some(plimsoll_engine::Password::new("falsch".into()))
                }),
                "check the user in the dsn, and the password",
            ),
            (
                Box::new(|external| external.password = None),
                "name a password_file or a password_env",
            ),
            (
                Box::new(|external| external.server.database = "nowhere".into()),
                "nowhere",
            ),
            (
                Box::new(|external| {
                    external.server.place = ServerPlace::Tcp {
                        host: "127.0.0.1".into(),
                        port: port_of_nobody,
                    }
                }),
                "nobody answers at 127.0.0.1:",
            ),
            (
                Box::new(|external| {
                    external.server.place = ServerPlace::Socket {
                        path: "/does/not/exist.sock".into(),
                        port: 1,
                    }
                }),
                "nobody answers at /does/not/exist.sock",
            ),
            (
                Box::new(|external| {
                    external
                        .settings
                        .insert("storage_engine".into(), "tokudb".into());
                }),
                "the server prod has no storage engine \"tokudb\"; it has ",
            ),
            (
                Box::new(|external| {
                    external
                        .settings
                        .insert("innodb_io_capacity".into(), "100".into());
                }),
                "setting innodb_io_capacity is for servers of our own",
            ),
        ];
        for (change, wanted) in table {
            let mut external = right.clone();
            change(&mut external);
            let message = refused(&external);
            assert!(message.contains(wanted), "wanted {wanted}: {message}");
        }
        let mut other = right.clone();
        other.server.engine = if wanted == MARIADB {
            plimsoll_core::engines::EngineName::Mysql
        } else {
            plimsoll_core::engines::EngineName::Mariadb
        };
        assert!(refused(&other).contains("write what it is in its dsn and in builds"));
        assert_eq!(somebody.tables(), [""; 0]);
    }
}

/// A server with our certificates.
fn with_certificates(build: &InstalledBuild, certificates: &Certificates) -> Somebody {
    let folders = Folders::new();
    start(build, &folders.options(&[]))
        .unwrap()
        .stop(DEADLINE)
        .unwrap();
    let names = ["ca.pem", "server-cert.pem", "server-key.pem"];
    for name in names {
        certificates.copy(name, &folders.data.path().join("data").join(name));
    }
    Somebody::started(
        folders,
        build,
        &[
            ("ssl_ca", names[0]),
            ("ssl_cert", names[1]),
            ("ssl_key", names[2]),
        ],
    )
}

#[test]
fn tls_is_checked_in_full_and_recorded() {
    let test = "mysql_external::tls_is_checked_in_full_and_recorded";
    let Some(certificates) = Certificates::new(test) else {
        return;
    };
    for wanted in [MYSQL_NEW, MARIADB] {
        let Some(build) = build(test, wanted) else {
            continue;
        };
        let mut somebody = with_certificates(&build, &certificates);
        let plain = somebody.external(&build);
        let demanding = certificates.demand(&plain);
        let server = enter(&demanding).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        let settings = server.effective_settings().unwrap();
        assert_eq!(settings["session_client"], "mysql crate");
        let tls = &settings["session_tls"];
        assert!(
            tls.starts_with("TLSv1.3 TLS_") || tls.starts_with("TLSv1.2 "),
            "{}: {tls}",
            build.name
        );
        let mut session = server.connect().unwrap();
        server
            .sql()
            .unwrap()
            .claim_tables(&["pi1".to_owned()])
            .unwrap();
        create_table(&*server, &mut *session, "pi1");
        assert_eq!(session.write(&insert_text("pi1", 100), 100).unwrap(), 100);
        let prepared = session
            .prepare(
                "select price, dateandtime, customerid from pi1 where price >= ? order by price \
                limit 10",
            )
            .unwrap();
        for _ in 0..3 {
            assert_eq!(session.query_prepared(prepared, &[0]).unwrap(), 10);
        }
        assert_eq!(
            session.query_integer("select count(*) from pi1").unwrap(),
            Some(100)
        );
        drop(session);
        server.stop(DEADLINE).unwrap();

        let mut stranger = demanding.clone();
        stranger.server.tls_ca = None;
        let message = refused(&stranger);
        assert!(
            message.contains("the certificate of 127.0.0.1:")
                && message.contains("tls_ca in [server.prod]"),
            "{message}"
        );
        let mut misnamed = demanding.clone();
        if let ServerPlace::Tcp { host, .. } = &mut misnamed.server.place {
            *host = "127.0.0.2".to_owned();
        }
        let message = refused(&misnamed);
        // MariaDB and MySQL listen on 127.0.0.1 alone here; where the way ends does not matter,
        // only that it does.
        assert!(
            message.contains("does not hold") || message.contains("nobody answers"),
            "{message}"
        );
        let mut unreadable = demanding.clone();
        unreadable.server.tls_ca = Some("/does/not/exist.pem".to_owned());
        assert!(
            refused(&unreadable).contains("read /does/not/exist.pem, the tls_ca of [server.prod]")
        );

        // Whoever demands TLS may not come without.
        if wanted == MYSQL_NEW {
            somebody
                .root
                .define("set global require_secure_transport = on")
                .unwrap();
            assert!(
                refused(&plain).contains("set tls = \"verify-full\" in [server.prod]"),
                "{}",
                refused(&plain)
            );
            enter(&demanding).unwrap().stop(DEADLINE).unwrap();
        }
        drop(somebody.root);
        somebody.server.stop(DEADLINE).unwrap();
        drop(somebody.folders);
    }
}

#[test]
fn a_server_without_tls_or_with_an_old_one_says_so() {
    let test = "mysql_external::a_server_without_tls_or_with_an_old_one_says_so";
    let Some(certificates) = Certificates::new(test) else {
        return;
    };
    let Some(build) = build(test, MYSQL_OLD) else {
        return;
    };
    let mut somebody = Somebody::new(&build);
    let mut external = somebody.external(&build);
    external.server.tls = TlsMode::VerifyFull;
    let message = refused(&external);
    assert!(
        message.contains(
            "offers no TLS; give it a certificate, or set tls = \"off\" in [server.prod]"
        ),
        "{message}"
    );
    drop(somebody);

    let mut old = with_certificates(&build, &certificates);
    let mut versions = String::new();
    old.root
        .for_each_row("show global variables like 'tls_version'", &mut |row| {
            versions = row[1].to_owned()
        })
        .unwrap();
    assert!(
        !versions.contains("TLSv1.2"),
        "{} is newer than this test: {versions}",
        build.name
    );
    let message = refused(&certificates.demand(&old.external(&build)));
    assert!(
        message.contains("TLS 1.2 is the least")
            && message.contains("tls = \"off\" in [server.prod]"),
        "{message}"
    );
}
