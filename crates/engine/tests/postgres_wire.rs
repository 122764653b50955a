//! The thin client at real servers: beside the full one, with every way to prove who one is, and
//! when a session is ended.

mod external_support;
mod postgres_support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::thread;
use std::time::Duration;

use external_support::*;
use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::ServerPlace;
use plimsoll_engine::{
    ErrorClass, External, InstalledBuild, Password, Server, SqlError, SqlSession, StartOptions,
    Transport,
};
use postgres_support::*;
use rustix::process::geteuid;

/// A server of somebody else, and what its owner can do.
struct Somebody {
    folders: Folders,
    server: Box<dyn Server>,
    root: Box<dyn SqlSession>,
    place: ServerPlace,
}

impl Somebody {
    fn new(build: &InstalledBuild, transport: Transport, settings: &[(&str, &str)]) -> Self {
        let mut somebody = Self::start(Folders::new(), build, transport, settings);
        somebody
            .root
            .define(&format!("create database {DATABASE}"))
            .unwrap();
        somebody
    }

    fn start(
        folders: Folders,
        build: &InstalledBuild,
        transport: Transport,
        settings: &[(&str, &str)],
    ) -> Self {
        let options = StartOptions {
            transport,
            ..folders.options(&[QUICK, settings])
        };
        let server =
            start(build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        let mut root = server.connect().unwrap();
        let port = root
            .query_integer("select setting from pg_settings where name = 'port'")
            .unwrap()
            .unwrap() as u16;
        let place = match transport {
            Transport::Tcp => ServerPlace::Tcp {
                host: "127.0.0.1".to_owned(),
                port,
            },
            Transport::Socket => {
                let mut path = String::new();
                root.for_each_row(
                    "select setting from pg_settings where name = 'unix_socket_directories'",
                    &mut |row| {
                        path = row[0].trim_matches('"').to_owned();
                    },
                )
                .unwrap();
                ServerPlace::Socket { path, port }
            }
        };
        Self {
            folders,
            server,
            root,
            place,
        }
    }

    /// Writes a file of the server's and makes it read its files.
    fn write(&mut self, name: &str, text: &str) {
        fs::write(self.folders.data.path().join("pgdata").join(name), text).unwrap();
        self.root.query("select pg_reload_conf()").unwrap();
    }

    fn external(&self, user: &str, database: &str) -> External {
        let mut external = external(EngineName::Postgres, 0);
        external.server.place = self.place.clone();
        user.clone_into(&mut external.server.user);
        database.clone_into(&mut external.server.database);
        external
    }

    /// The same server over TCP, started again with our certificate.
    fn with_tls(
        self,
        build: &InstalledBuild,
        settings: &[(&str, &str)],
        certificates: &Certificates,
    ) -> Self {
        let Self {
            folders,
            server,
            root,
            ..
        } = self;
        drop(root);
        server.stop(DEADLINE).unwrap();
        for (name, file) in [
            ("server-cert.pem", "server.crt"),
            ("server-key.pem", "server.key"),
        ] {
            let file = folders.data.path().join("pgdata").join(file);
            certificates.copy(name, &file);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            if geteuid().is_root() {
                chown(&file, Some(65534), Some(65534)).unwrap();
            }
        }
        Self::start(folders, build, Transport::Tcp, settings)
    }

    fn end(self) {
        drop(self.root);
        self.server.stop(DEADLINE).unwrap();
    }
}

fn user_name() -> String {
    String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned()
}

#[test]
fn everybody_proves_who_they_are_as_the_server_wants() {
    let test = "postgres_wire::everybody_proves_who_they_are_as_the_server_wants";
    for (build, transport) in builds(test)
        .into_iter()
        .flat_map(|build| [(build.clone(), Transport::Socket), (build, Transport::Tcp)])
    {
        let has_scram = !build.version.starts_with("9.");
        let mut somebody = Somebody::new(&build, transport, &[]);
        let mut methods = vec![("trust", "md5"), ("md5", "md5"), ("password", "md5")];
        if has_scram {
            // With `md5` in its file a server asks for what it keeps of the password.
            methods.extend([
                ("scram-sha-256", "scram-sha-256"),
                ("md5", "scram-sha-256"),
                ("password", "scram-sha-256"),
            ]);
        }
        let kind = if transport == Transport::Socket {
            "local"
        } else {
            "host"
        };
        let address = if transport == Transport::Socket {
            ""
        } else {
            "127.0.0.1/32"
        };
        let mut lines = format!("{kind} all postgres {address} trust\n");
        let mut users = Vec::new();
        for (position, (method, kept)) in methods.iter().enumerate() {
            let user = format!("u{position}");
            if has_scram {
                somebody
                    .root
                    .define(&format!("set password_encryption = '{kept}'"))
                    .unwrap();
            }
            somebody
                .root
                .define(&format!(
                    "create role {user} superuser login password '{SECRET}'"
                ))
                .unwrap();
            lines += &format!("{kind} all {user} {address} {method}\n");
            users.push((user, *method));
        }
        if transport == Transport::Socket {
            somebody
                .root
                .define("create role peer superuser login")
                .unwrap();
            lines += "local all peer peer map=ours\n";
            somebody.write("pg_ident.conf", &format!("ours {} peer\n", user_name()));
            users.push(("peer".to_owned(), "peer"));
        }
        somebody.write("pg_hba.conf", &lines);
        let trusted = somebody.external("u0", DATABASE);
        wait_until("the new pg_hba.conf", || {
            enter(&trusted).is_ok_and(|server| server.stop(DEADLINE).is_ok())
        });
        for (user, method) in users {
            let about = format!("{} {transport:?} {user} {method}", build.name);
            let server = enter(&somebody.external(&user, DATABASE))
                .unwrap_or_else(|error| panic!("{about}: {error}"));
            assert_eq!(
                server.effective_settings().unwrap()["session_client"],
                "thin"
            );
            let mut session = server
                .connect()
                .unwrap_or_else(|error| panic!("{about}: {error}"));
            let sql = format!(
                "select count(*) from pg_stat_activity where pid = pg_backend_pid() and usename = \
                '{user}' and application_name = 'plimsoll' and datname = '{DATABASE}'"
            );
            assert_eq!(session.query_integer(&sql).unwrap(), Some(1), "{about}");
            if !["trust", "peer"].contains(&method) {
                somebody
                    .root
                    .define(&format!("alter role {user} password 'another'"))
                    .unwrap();
                let error = server.connect().map(drop).unwrap_err().message;
                assert!(
                    error.contains("password authentication failed")
                        && error.contains("SQLSTATE 28P01"),
                    "{about}: {error}"
                );
                assert!(!error.contains(SECRET));
                somebody
                    .root
                    .define(&format!("alter role {user} password '{SECRET}'"))
                    .unwrap();
            }
            drop(session);
            server.stop(DEADLINE).unwrap();
        }
        somebody.end();
    }
}

#[test]
fn a_server_that_takes_nothing_but_tls_says_what_to_set() {
    for major in MAJORS {
        let Some(build) = build(
            "postgres_wire::a_server_that_takes_nothing_but_tls_says_what_to_set",
            major,
        ) else {
            continue;
        };
        let mut somebody = Somebody::new(&build, Transport::Tcp, &[]);
        somebody
            .root
            .define("create role bench superuser login")
            .unwrap();
        let external = somebody.external("bench", DATABASE);
        let server = enter(&external).unwrap();
        // What a client without TLS gets is the same where there are lines for TLS, which not
        // every build takes.
        somebody.write("pg_hba.conf", "host all postgres 127.0.0.1/32 trust\n");
        let mut message = String::new();
        wait_until("the new pg_hba.conf", || {
            server
                .connect()
                .map(drop)
                .map_err(|error| message = error.message)
                .is_err()
        });
        assert!(
            message.contains("SQLSTATE 28000") && message.contains("set tls = \"verify-full\""),
            "{message}"
        );
        let message = refused(&external);
        assert!(message.contains("set tls = \"verify-full\""), "{message}");
        somebody.write("pg_hba.conf", "host all all 127.0.0.1/32 trust\n");
        wait_until("the old pg_hba.conf", || server.connect().is_ok());
        server.stop(DEADLINE).unwrap();
        somebody.end();
    }
}

/// What a call says: a count, or all of its error.
type Said = Result<String, SqlError>;

/// Statements of each kind, right and wrong ones.
fn exercise(session: &mut dyn SqlSession, seed: u64) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    let text = |count: Result<u64, SqlError>| count.map(|count| count.to_string());
    for sql in [
        "create table t (small smallint, usual int not null primary key, big bigint, real float, \
        text varchar(4000))",
        "create index t_big on t (big, real)",
        "create table t (n int)",
        "nonsense",
    ] {
        said.push(session.define(sql).map(|()| String::new()));
    }
    for sql in [
        "insert into t select n % 100, n, n * 10, n / 2.0, repeat('a', n % 50) from \
        generate_series(1, 500) n",
        "insert into t values (1, 1, 1, 1, 'there already')",
        "insert into t values (1, 1000, null, null, 'é ☃ ''?'' \\'), (2, 1001, 1, 'NaN', null)",
        "update t set big = 1 / 0",
        "update t set small = 7 where usual <= 10; delete from t where usual = 3; insert into t \
        values (0, 3, 0, 0, '')",
        "insert into t values (1, 2000, 0, 0, 0); insert into t values (1, 2000, 0, 0, 0)",
        "select 1 from t where usual <= 5",
        "",
        ";",
        "begin; update t set big = -1 where usual = 4; commit",
        "do $$ begin raise notice 'hm'; end $$",
        "set timezone to 'Asia/Tokyo'; set timezone to 'UTC'",
        "drop table if exists nowhere",
        "fetch 3 from nowhere",
    ] {
        said.push(text(session.write(sql, 0)));
        said.push(text(session.query(sql)));
    }
    for sql in [
        "select count(*) from t",
        "select max(usual) from t where usual < 0",
        "select 1 where false",
        "select text from t where usual = 5",
        "select usual from t order by 1",
        "select 1 / (usual - 100) from t where usual <= 100 order by usual",
        "select 9223372036854775807",
        "select 9223372036854775808",
        "select",
    ] {
        said.push(session.query_integer(sql).map(|found| format!("{found:?}")));
    }
    let prepared = [
        ("select 1 from t", 0),
        ("select * from t where small = ?", 1),
        ("select * from t where usual = ?", 1),
        (
            "select usual from t where big >= ? order by usual limit ?",
            2,
        ),
        ("select usual from t where real < ?", 1),
        (
            "select usual from t where usual in (?,?,?,?,?,?,?,?,?,?)",
            10,
        ),
        ("delete from t where usual = ?", 1),
        ("update t set big = big + ? where usual between ? and ?", 3),
        ("insert into t values (?, ?, ?, ?, 'prepared')", 4),
        ("select 1 / (? - usual) from t order by usual", 1),
        ("select ?", 1),
        ("select * from t where text = ?", 1),
        ("select nothing from t where usual = ?", 1),
        ("create index t_real on t (real)", 0),
    ];
    let mut statements = Vec::new();
    for (sql, arguments) in prepared {
        match session.prepare(sql) {
            Ok(statement) => {
                said.push(Ok(format!("{statement:?}")));
                statements.push((statement, arguments));
            }
            Err(error) => said.push(Err(error)),
        }
    }
    // A generator of the simplest kind: what matters is that both sides see the same.
    let mut state = seed;
    let mut next = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    for round in 0..400 {
        let (statement, count) = statements[next(statements.len() as u64) as usize];
        let mut arguments: Vec<i64> = (0..count).map(|_| next(700) as i64).collect();
        match round % 40 {
            7 => arguments.push(1),
            13 => arguments
                .iter_mut()
                .for_each(|argument| *argument = i64::MAX),
            _ => {}
        }
        said.push(text(if round % 2 == 0 {
            session.query_prepared(statement, &arguments)
        } else {
            session.write_prepared(statement, &arguments, 0)
        }));
    }
    for sql in [
        "select * from t order by usual",
        "select 1 / (usual - 10) from t where usual <= 100 order by usual",
        "nonsense",
    ] {
        let mut rows = String::new();
        let end = session.for_each_row(sql, &mut |row| {
            rows += &row.join("|");
            rows += "\n";
        });
        said.push(Ok(rows));
        said.push(end.map(|()| String::new()));
    }
    said
}

/// What a server's log has of one database, without the names that a client gives to its
/// statements.
fn logged(log: &str, database: &str) -> Vec<String> {
    let lines = log
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("<{database}>")));
    let lines = lines.filter(|line| {
        [
            "LOG:  statement",
            "LOG:  execute",
            "DETAIL:  parameters",
            "DETAIL:  Parameters",
            "ERROR",
        ]
        .iter()
        .any(|kind| line.starts_with(kind))
    });
    lines
        .map(|line| {
            match line
                .strip_prefix("LOG:  execute ")
                .and_then(|rest| rest.split_once(": "))
            {
                // The rows of a check are copied by a statement in text, and by a prepared one.
                Some((_, sql)) if sql.starts_with("copy (") => format!("LOG:  statement: {sql}"),
                Some((_, sql)) => format!("execute {sql}"),
                None => line.to_owned(),
            }
        })
        .collect()
}

#[test]
fn the_thin_client_says_and_does_what_the_full_one_does() {
    let test = "postgres_wire::the_thin_client_says_and_does_what_the_full_one_does";
    let Some(certificates) = Certificates::new(test) else {
        return;
    };
    // Recipes compile without TLS.
    let is_package = |build: &InstalledBuild| !build.name.contains("+source");
    for build in builds(test).into_iter().filter(is_package) {
        let settings = [
            ("log_statement", "all"),
            ("log_line_prefix", "<%d>"),
            ("autovacuum", "off"),
        ];
        let mut somebody = Somebody::new(&build, Transport::Tcp, &settings);
        if somebody.root.define("alter system set ssl = on").is_err() {
            plimsoll_testkit::skip(
                &format!("engine::{test}"),
                &format!("{} was built without TLS", build.name),
            );
            continue;
        }
        let mut somebody = somebody.with_tls(&build, &settings, &certificates);
        somebody
            .root
            .define("create role bench superuser login")
            .unwrap();
        somebody.root.define("create database other").unwrap();
        let thin = enter(&somebody.external("bench", DATABASE)).unwrap();
        let demanding = certificates.demand(&somebody.external("bench", "other"));
        let full = enter(&demanding).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        assert_eq!(thin.effective_settings().unwrap()["session_client"], "thin");
        assert_eq!(
            full.effective_settings().unwrap()["session_client"],
            "postgres crate"
        );
        let (mut one, mut other) = (thin.connect().unwrap(), full.connect().unwrap());
        let begin = somebody.folders.log().len();
        let (by_thin, by_full) = (exercise(&mut *one, 42), exercise(&mut *other, 42));
        let log = somebody.folders.log()[begin..].to_owned();
        assert_eq!(by_thin.len(), by_full.len());
        for (position, (one, other)) in by_thin.iter().zip(&by_full).enumerate() {
            let essence = |said: &Said| match said {
                Ok(answer) => Ok(answer.clone()),
                // What the client itself refuses it says in its own words.
                Err(error)
                    if error.message.ends_with("SQLSTATE 22023")
                        || error.message.ends_with("ask for one") =>
                {
                    Err(SqlError {
                        message: String::new(),
                        ..error.clone()
                    })
                }
                Err(error) => Err(error.clone()),
            };
            assert_eq!(
                essence(one),
                essence(other),
                "{}: call {position}",
                build.name
            );
        }
        assert!(by_thin.iter().filter(|said| said.is_err()).count() > 20);
        let (one_log, other_log) = (logged(&log, DATABASE), logged(&log, "other"));
        assert!(one_log.len() > 400, "{log}");
        for (one, other) in one_log.iter().zip(&other_log) {
            assert_eq!(one, other, "{}", build.name);
        }
        assert_eq!(one_log.len(), other_log.len());
        drop((one, other));
        thin.stop(DEADLINE).unwrap();
        full.stop(DEADLINE).unwrap();
        somebody.end();
    }
}

#[test]
fn a_statement_is_cancelled_and_a_session_ended() {
    for build in builds("postgres_wire::a_statement_is_cancelled_and_a_session_ended") {
        let (_folders, server) = quick(&build, &[]);
        let mut killer = server.connect().unwrap();
        let mut session = server.connect().unwrap();
        session.define("create table t (n int)").unwrap();
        let slow = session.prepare("select pg_sleep(?)").unwrap();
        let backend = |session: &mut dyn SqlSession| {
            session
                .query_integer("select pg_backend_pid()")
                .unwrap()
                .unwrap()
        };
        let first = backend(&mut *session);
        let mut while_it_runs =
            |action: &str, pid: i64, run: &mut (dyn FnMut() -> Result<u64, SqlError> + Send)| {
                thread::scope(|scope| {
                    let running = scope.spawn(run);
                    let sql = format!(
                        "select {action}({pid}) from pg_stat_activity where pid = {pid} and state \
                        = 'active'"
                    );
                    wait_until("the statement", || killer.query(&sql).unwrap() == 1);
                    running.join().unwrap().unwrap_err()
                })
            };
        let error = while_it_runs("pg_cancel_backend", first, &mut || {
            session.query_prepared(slow, &[1000])
        });
        assert_eq!(
            (error.class, error.statement.as_str()),
            (ErrorClass::Cancelled, "select pg_sleep(?)"),
            "{error}"
        );
        assert!(error.message.ends_with("SQLSTATE 57014"), "{error}");
        let error = while_it_runs("pg_cancel_backend", first, &mut || {
            session.write("insert into t select 1 from pg_sleep(1000)", 1)
        });
        assert_eq!(error.class, ErrorClass::Cancelled, "{error}");
        assert_eq!(backend(&mut *session), first);

        let error = while_it_runs("pg_terminate_backend", first, &mut || {
            session.write("insert into t select 1 from pg_sleep(1000)", 1)
        });
        assert_eq!(error.class, ErrorClass::Unsent, "{error}");
        assert!(error.message.ends_with("SQLSTATE 57P01"), "{error}");
        let second = backend(&mut *session);
        assert_ne!(second, first);
        let endless = "select repeat('x', 1000) from generate_series(1, 100000000)";
        let error = while_it_runs("pg_terminate_backend", second, &mut || {
            session.query(endless)
        });
        assert!(error.class.is_disconnected(), "{error}");
        assert_eq!(session.query_prepared(slow, &[0]).unwrap(), 1);
        assert_eq!(
            session.query_integer("select count(*) from t").unwrap(),
            Some(0)
        );
    }
}

/// A server's own restart after the crash of a session is switched off, so that is the end of it.
#[test]
fn a_server_that_is_killed_is_lost_and_named() {
    let Some(build) = build(
        "postgres_wire::a_server_that_is_killed_is_lost_and_named",
        "18",
    ) else {
        return;
    };
    let (_folders, server) = quick(&build, &[]);
    let mut session = server.connect().unwrap();
    let backend = session
        .query_integer("select pg_backend_pid()")
        .unwrap()
        .unwrap();
    let mut other = server.connect().unwrap();
    let killer = thread::spawn(move || {
        let sql =
            format!("select 1 from pg_stat_activity where pid = {backend} and state = 'active'");
        wait_until("the statement", || other.query(&sql).unwrap() == 1);
        let pid = rustix::process::Pid::from_raw(backend as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    });
    let error = session.write("select pg_sleep(1000)", 1).unwrap_err();
    killer.join().unwrap();
    assert_eq!(error.class, ErrorClass::Lost, "{error}");
    wait_until("the end of the server", || {
        server.health() != plimsoll_engine::Health::Running
    });
    let error = session.query("select 1").unwrap_err();
    assert_eq!(error.class, ErrorClass::Unsent, "{error}");
    assert!(
        error.message.contains("the server has ended with"),
        "{error}"
    );
}

#[test]
fn rows_and_statements_may_be_longer_than_16_mib() {
    for (major, transport) in [
        ("9.6", Transport::Tcp),
        ("18", Transport::Socket),
        ("18", Transport::Tcp),
    ] {
        let Some(build) = build(
            "postgres_wire::rows_and_statements_may_be_longer_than_16_mib",
            major,
        ) else {
            continue;
        };
        let folders = Folders::new();
        let server = start(
            &build,
            &StartOptions {
                transport,
                ..folders.options(&[QUICK])
            },
        )
        .unwrap();
        let mut session = server.connect().unwrap();
        session.define("create table t (n int, text text)").unwrap();
        let long = 20 << 20;
        let insert = format!(
            "insert into t values (1, '{}'), (2, 'short')",
            "x".repeat(long)
        );
        assert_eq!(session.write(&insert, 2).unwrap(), 2);
        assert_eq!(
            session
                .query("select n, text, text from t order by n")
                .unwrap(),
            2
        );
        let statement = session
            .prepare("select text, n from t where n >= ?")
            .unwrap();
        assert_eq!(session.query_prepared(statement, &[1]).unwrap(), 2);
        let mut lengths = Vec::new();
        session
            .for_each_row("select text from t order by n", &mut |row| {
                lengths.push(row[0].len())
            })
            .unwrap();
        assert_eq!(lengths, [long, 5]);
        let error = session
            .query_integer("select text from t order by n")
            .unwrap_err();
        assert!(
            error.message.starts_with("\"xxx")
                && error
                    .message
                    .ends_with("is not a whole number; ask for one")
        );
        let error = session
            .write(
                &format!("{} nonsense", insert.replace("(2, ", "(2, 3, ")),
                2,
            )
            .unwrap_err();
        assert_eq!(
            (error.class, error.statement.len()),
            (ErrorClass::Statement, 200),
            "{}",
            error.class.as_str()
        );
        assert_eq!(
            session.query_integer("select count(*) from t").unwrap(),
            Some(2)
        );
    }
}

#[test]
fn what_comes_unasked_is_passed_over() {
    for major in MAJORS {
        let Some(build) = build("postgres_wire::what_comes_unasked_is_passed_over", major) else {
            continue;
        };
        let (_folders, server) = quick(&build, &[]);
        let (mut session, mut other) = (server.connect().unwrap(), server.connect().unwrap());
        session
            .define("create table t (n int); insert into t values (1)")
            .unwrap();
        session.define("listen news").unwrap();
        let statement = session.prepare("select n from t").unwrap();
        for _ in 0..3 {
            other.define("notify news, 'hear'").unwrap();
            other
                .define("alter system set timezone to 'Asia/Tokyo'")
                .unwrap();
            other.query("select pg_reload_conf()").unwrap();
            // The server tells a session that waits: both a parameter that has changed and the
            // news.
            thread::sleep(Duration::from_millis(50));
            assert_eq!(session.query_prepared(statement, &[]).unwrap(), 1);
            assert_eq!(session.query_integer("select n from t").unwrap(), Some(1));
            other.define("alter system set timezone to 'UTC'").unwrap();
            other.query("select pg_reload_conf()").unwrap();
        }
        let error = session.write("copy t from stdin", 0).unwrap_err();
        assert!(
            error.message.contains("nobody sends rows")
                && error.message.ends_with("SQLSTATE 57014"),
            "{error}"
        );
        let error = session.query("copy t to stdout").unwrap_err();
        assert!(error.message.contains("copies rows out"), "{error}");
        // A copy that gets no rows is cancelled, as the server has it.
        for (sql, class) in [
            ("copy t from stdin", ErrorClass::Cancelled),
            ("copy t to stdout", ErrorClass::Statement),
        ] {
            // Not every version prepares such a thing; none may be left hanging.
            if let Ok(statement) = session.prepare(sql) {
                assert_eq!(
                    session.query_prepared(statement, &[]).unwrap_err().class,
                    class
                );
            }
        }
        assert_eq!(
            session.query_integer("select count(*) from t").unwrap(),
            Some(1)
        );
    }
}

/// A password is in no error and no debug text, whichever way it was wanted.
#[test]
fn a_wrong_password_is_not_shown() {
    let Some(build) = build("postgres_wire::a_wrong_password_is_not_shown", "18") else {
        return;
    };
    let mut somebody = Somebody::new(&build, Transport::Socket, &[]);
    somebody
        .root
        .define(&format!(
            "create role bench superuser login password '{SECRET}'"
        ))
        .unwrap();
    somebody.write(
        "pg_hba.conf",
        "local all postgres trust\nlocal all bench scram-sha-256\n",
    );
    let mut external = somebody.external("bench", DATABASE);
    external.password = Some(Password::new("falsch".to_owned()));
    let mut message = String::new();
    wait_until("the new pg_hba.conf", || {
        enter(&external).map_err(|error| message = error).is_err()
    });
    assert!(
        message.contains("check the user in the dsn, and the password")
            && !message.contains("falsch"),
        "{message}"
    );
    somebody.end();
}
