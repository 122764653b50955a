//! PostgreSQL that the plan gives by its address: used, and left as it was.

mod external_support;
mod postgres_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::time::Instant;

use external_support::*;
use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{ServerPlace, TlsMode};
use plimsoll_engine::{
    DrainLimits, External, Health, InstalledBuild, Server, SessionClient, SqlSession, StartOptions,
    Transport,
};
use postgres_support::*;
use rustix::process::geteuid;

/// Somebody's server: with a database for us, and an account that has rights on nothing else and
/// needs its password.
struct Somebody {
    folders: Folders,
    server: Box<dyn Server>,
    root: Box<dyn SqlSession>,
}

impl Somebody {
    fn new(build: &InstalledBuild) -> Self {
        let folders = Folders::new();
        let server = start(
            build,
            &StartOptions {
                transport: Transport::Tcp,
                ..folders.options(&[QUICK])
            },
        )
        .unwrap();
        let mut root = server.connect().unwrap();
        root.define(&format!("create role bench login password '{SECRET}'"))
            .unwrap();
        root.define(&format!("create database {DATABASE} owner bench"))
            .unwrap();
        let hba = "host all postgres 127.0.0.1/32 trust\nhost all bench 127.0.0.1/32 md5\n";
        fs::write(folders.data.path().join("pgdata/pg_hba.conf"), hba).unwrap();
        root.query("select pg_reload_conf()").unwrap();
        Self {
            folders,
            server,
            root,
        }
    }

    fn external(&mut self) -> External {
        external(
            EngineName::Postgres,
            self.root
                .query_integer("select setting from pg_settings where name = 'port'")
                .unwrap()
                .unwrap() as u16,
        )
    }
}

#[test]
fn a_external_server_is_used_and_left_as_it_was() {
    for major in ["9.6", "18"] {
        let Some(build) = build(
            "postgres_external::a_external_server_is_used_and_left_as_it_was",
            major,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build);
        let before = somebody.server.effective_settings().unwrap();
        let external = somebody.external();
        let server = enter(&external).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        assert_eq!(
            (
                server.health(),
                server.processes(),
                server.sql().unwrap().table_suffix()
            ),
            (Health::Running, Vec::new(), String::new())
        );
        server
            .sql()
            .unwrap()
            .claim_tables(&["pi1".to_owned()])
            .unwrap();
        let mut session = server.connect().unwrap();
        session
            .define("create table pi1 (id bigserial primary key, price int not null)")
            .unwrap();
        assert_eq!(
            session
                .write(
                    "insert into pi1 (price) select generate_series(1, 1000)",
                    1000
                )
                .unwrap(),
            1000
        );

        let settings = server.effective_settings().unwrap();
        assert_eq!(
            (
                settings["session_tls"].as_str(),
                settings["shared_buffers"].as_str()
            ),
            ("off", "16MB")
        );
        assert_eq!(settings["session_client"], "thin");
        assert!(!settings.contains_key("archive_command"));
        assert!(
            server
                .counters()
                .unwrap()
                .contains_key("pg_stat_database.xact_commit")
        );
        assert!(server.database_bytes().unwrap() > 1 << 20);
        let dir = tempfile::tempdir().unwrap();
        server.save_state(dir.path(), "l.i0").unwrap();
        assert!(holds(dir.path(), "pi1_pkey") && !holds(dir.path(), SECRET));
        assert!(!dir.path().join("l.i0.pg_stat_activity.tsv").exists());

        let now = Instant::now();
        let actions = server
            .drain(
                &["pi1".to_owned()],
                &DrainLimits::new(now, now + DEADLINE, &|| false),
            )
            .unwrap();
        assert!(
            actions[1].action.starts_with("vacuum (verbose, analyze")
                && actions[1].result.contains("pi1"),
            "{actions:?}"
        );
        assert_eq!(
            (actions[2].action.as_str(), actions[2].result.as_str()),
            ("checkpoint", "left out: the server is not ours")
        );

        drop(session);
        server.stop(DEADLINE).unwrap();
        // Empty again: it can be entered by somebody who has never heard of us.
        let again = enter_through(SessionClient::Full, &external).unwrap();
        assert_eq!(
            again.effective_settings().unwrap()["session_client"],
            "postgres crate"
        );
        assert_eq!(
            again
                .connect()
                .unwrap()
                .query_integer("select 40 + 2")
                .unwrap(),
            Some(42)
        );
        again.stop(DEADLINE).unwrap();
        assert_eq!(somebody.server.effective_settings().unwrap(), before);
        drop(somebody.root);
        somebody.server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn what_is_foreign_is_left_alone_and_what_is_ours_goes() {
    let Some(build) = build(
        "postgres_external::what_is_foreign_is_left_alone_and_what_is_ours_goes",
        "18",
    ) else {
        return;
    };
    let mut somebody = Somebody::new(&build);
    let external = somebody.external();
    // A session that was made while the database was ours for a moment, and that outlives it.
    let server = enter(&external).unwrap();
    let mut inside = server.connect().unwrap();
    server.stop(DEADLINE).unwrap();
    let tables = |inside: &mut dyn SqlSession| {
        let mut tables = Vec::new();
        let sql =
            "select tablename from pg_tables where schemaname in ('public', 'private') order by 1";
        inside
            .for_each_row(sql, &mut |row| tables.push(row[0].to_owned()))
            .unwrap();
        tables
    };
    assert_eq!(tables(&mut *inside), [""; 0]);
    for (make, name, clean) in [
        (
            "create table precious as select 42 as answer",
            "precious",
            "drop table precious",
        ),
        ("create view v as select 1 as one", "v", "drop view v"),
        ("create sequence s", "s", "drop sequence s"),
        (
            "create schema private create table t (n int)",
            "private.t",
            "drop schema private cascade",
        ),
        (
            "create function f() returns int language sql as 'select 1'",
            "function public.f",
            "drop function f()",
        ),
    ] {
        inside.define(make).unwrap();
        // A server takes its time to end the session of the try before, which holds the lock.
        let mut message = String::new();
        wait_until("the lock's end", || {
            message = refused(&external);
            !message.contains("another campaign")
        });
        assert!(
            message.contains(&format!(
                "the database not_ours holds what is not ours ({name}; there is no Plimsoll marker)"
            )),
            "{message}"
        );
        inside.define(clean).unwrap();
    }

    // A campaign that was killed: its tables stay, and its lock goes with its connection.
    let killed = enter(&external).unwrap();
    killed
        .sql()
        .unwrap()
        .claim_tables(&["pi1", "pi1_p0", "pi2"].map(str::to_owned))
        .unwrap();
    inside
        .define("create table pi1 (id bigserial) partition by range (id)")
        .unwrap();
    inside
        .define("create table pi1_p0 partition of pi1 default")
        .unwrap();
    assert!(refused(&external).contains("another campaign uses the database not_ours now"));
    std::mem::forget(killed);
    somebody
        .root
        .query("select pg_terminate_backend(l.pid) from pg_locks l where l.locktype = 'advisory'")
        .unwrap();

    // A foreign table beside the marker: nothing is touched.
    inside
        .define("create table precious as select 42 as answer")
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
    assert_eq!(
        tables(&mut *inside),
        ["pi1", "pi1_p0", "plimsoll_marker", "precious"]
    );
    assert_eq!(
        inside.query_integer("select answer from precious").unwrap(),
        Some(42)
    );

    // Without it our tables go, and a value that is dropped after an error cleans up as well.
    inside.define("drop table precious").unwrap();
    let server = enter(&external).unwrap();
    assert_eq!(tables(&mut *inside), ["plimsoll_marker"]);
    drop(server);
    assert_eq!(tables(&mut *inside), [""; 0]);

    // A table of that name that is not Plimsoll's marker.
    inside
        .define("create table plimsoll_marker (made_by text)")
        .unwrap();
    assert!(refused(&external).contains("has a table plimsoll_marker that is not as ours are"));
    assert_eq!(tables(&mut *inside), ["plimsoll_marker"]);
}

#[test]
fn a_server_that_goes_silent_is_not_waited_for() {
    let Some(build) = build(
        "postgres_external::a_server_that_goes_silent_is_not_waited_for",
        "18",
    ) else {
        return;
    };
    let mut somebody = Somebody::new(&build);
    let external = somebody.external();
    let server = enter(&external).unwrap();
    let holder = somebody
        .root
        .query_integer("select pid from pg_locks where locktype = 'advisory'")
        .unwrap()
        .unwrap();
    let message = stop_in_silence(server, holder as u32).expect("the stop waited for the server");
    assert!(
        message.contains("leave the server prod: 127.0.0.1:")
            && message.contains("did not answer within 100ms"),
        "{message}"
    );
    wait_until("the database for another use", || enter(&external).is_ok());
    drop(somebody.root);
    somebody.server.stop(DEADLINE).unwrap();
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    let Some(build) = build(
        "postgres_external::a_server_that_cannot_be_used_says_why",
        "18",
    ) else {
        return;
    };
    let mut somebody = Somebody::new(&build);
    let right = somebody.external();
    let port_of_nobody = std::net::TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    type Change = Box<dyn Fn(&mut External)>;
    let table: [(Change, &str); 8] = [
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
            Box::new(|external| external.server.user = "nobody_known".into()),
            "check the user in the dsn",
        ),
        (
            Box::new(|external| external.server.database = "nowhere".into()),
            "has no database nowhere; make an empty one for this",
        ),
        (
            Box::new(move |external| {
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
                    path: "/does/not/exist".into(),
                    port: 5432,
                }
            }),
            "nobody answers at /does/not/exist",
        ),
        (
            Box::new(|external| external.server.tls = TlsMode::VerifyFull),
            "offers no TLS; switch it on there (ssl = on), or set tls = \"off\"",
        ),
        (
            Box::new(|external| {
                external.settings.insert("work_mem".into(), "4MB".into());
            }),
            "setting work_mem is for servers of our own",
        ),
    ];
    for (change, wanted) in table {
        let mut external = right.clone();
        change(&mut external);
        let message = refused(&external);
        assert!(message.contains(wanted), "wanted {wanted}: {message}");
    }
    drop(somebody.root);
    somebody.server.stop(DEADLINE).unwrap();
}

#[test]
fn tls_is_checked_in_full_and_recorded() {
    let test = "postgres_external::tls_is_checked_in_full_and_recorded";
    let Some(certificates) = Certificates::new(test) else {
        return;
    };
    let Some(build) = build(test, "18") else {
        return;
    };
    let mut somebody = Somebody::new(&build);
    let data = somebody.folders.data.path().join("pgdata");
    for (name, file) in [
        ("server-cert.pem", "server.crt"),
        ("server-key.pem", "server.key"),
    ] {
        let file = data.join(file);
        certificates.copy(name, &file);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if geteuid().is_root() {
            chown(&file, Some(65534), Some(65534)).unwrap();
        }
    }
    if somebody.root.define("alter system set ssl = on").is_err() {
        return plimsoll_testkit::skip(
            &format!("engine::{test}"),
            &format!("{} was built without TLS", build.name),
        );
    }
    somebody.root.query("select pg_reload_conf()").unwrap();
    let demanding = certificates.demand(&somebody.external());
    wait_until("TLS", || {
        !enter(&demanding).is_err_and(|error| error.contains("offers no TLS"))
    });
    let server = enter(&demanding).unwrap();
    assert!(server.effective_settings().unwrap()["session_tls"].starts_with("TLSv1.3 TLS_"));
    assert_eq!(
        server.connect().unwrap().query_integer("select 1").unwrap(),
        Some(1)
    );
    // A cancelled statement needs a connection of its own, with TLS too.
    server
        .sql()
        .unwrap()
        .claim_tables(&["pi1".to_owned()])
        .unwrap();
    server
        .connect()
        .unwrap()
        .define("create table pi1 as select generate_series(1, 10) as n")
        .unwrap();
    let now = Instant::now();
    let actions = server
        .drain(
            &["pi1".to_owned()],
            &DrainLimits::new(now, now + DEADLINE, &|| false),
        )
        .unwrap();
    assert!(actions[1].result.contains("pi1"), "{actions:?}");
    server.stop(DEADLINE).unwrap();

    let mut stranger = demanding.clone();
    stranger.server.tls_ca = None;
    let message = refused(&stranger);
    assert!(
        message.contains("the certificate of 127.0.0.1:")
            && message.contains("tls_ca in [server.prod]"),
        "{message}"
    );
    let mut empty = demanding.clone();
    empty.server.tls_ca = Some(certificates.path("names").to_str().unwrap().to_owned());
    assert!(
        refused(&empty).contains("it holds no certificate; it must be PEM"),
        "{}",
        refused(&empty)
    );
    drop(somebody.root);
    somebody.server.stop(DEADLINE).unwrap();
}
