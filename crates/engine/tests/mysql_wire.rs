//! MySQL and MariaDB over the thin client: the same as over the full one, with every
//! authentication, and packets of all sizes.

mod external_support;
mod mysql_support;

use std::sync::mpsc;
use std::thread;

use external_support::*;
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Value};
use mysql_support::*;
use plimsoll_core::plan::ServerPlace;
use plimsoll_engine::{
    ErrorClass, External, InstalledBuild, Password, Server, SqlSession, StartOptions, Transport,
};

/// A connection of the full client to the same database.
fn full(session: &mut dyn SqlSession) -> Conn {
    let mut socket = String::new();
    session
        .for_each_row("select @@socket", &mut |row| socket = row[0].to_owned())
        .unwrap();
    let init = vec![
        "set names latin1",
        "set session sql_mode = concat(@@session.sql_mode, ',NO_ENGINE_SUBSTITUTION')",
    ];
    let opts = OptsBuilder::new()
        .user(Some("root"))
        .db_name(Some("ib"))
        .socket(Some(socket))
        .prefer_socket(false)
        .init(init);
    Conn::new(opts).unwrap()
}

fn full_texts(connection: &mut Conn, sql: &str) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::NULL => "\\N".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?} in a row of texts"),
    };
    let rows: Vec<Row> = connection.query(sql).unwrap();
    rows.into_iter()
        .map(|row| row.unwrap().iter().map(text).collect::<Vec<_>>().join("|"))
        .collect()
}

fn thin_texts(session: &mut dyn SqlSession, sql: &str) -> Vec<String> {
    let mut rows = Vec::new();
    session
        .for_each_row(sql, &mut |row| rows.push(row.join("|")))
        .unwrap();
    rows
}

/// All kinds of columns.
const TABLE: &str = "create table TABLE (id bigint unsigned not null auto_increment primary key, i \
                    int, u bigint unsigned, d double, f float, m decimal(20,4), t varchar(100), b \
                    varbinary(100), l longtext, w datetime, h time, y year, e enum('one','two'), z \
                    bit(9)) engine=innodb";

const WRITES: &[&str] = &[
    "insert into TABLE (i,u,d,f,m,t,b,l,w,h,y,e,z) values \
    (-1,18446744073709551615,0.1,1e30,-12345678.9,'caf\u{e9}',x'00ff80','','2026-06-17 \
    01:02:03','-12:34:56',2026,'two',b'100000001'), \
    (null,null,null,null,null,null,null,null,null,null,null,null,null)",
    "insert into TABLE (i, t) select i, concat(t, t) from TABLE",
    "insert into TABLE (i, l) values (5, repeat('x', 70000)), (6, repeat('y', 251)), (7, \
    repeat('z', 250))",
    "insert ignore into TABLE (id, i) values (1, 8), (1000, 9)",
    "insert into TABLE (id, i) values (1000, 10) on duplicate key update i = values(i)",
    "update TABLE set i = 11 where i is null",
    "update TABLE set i = 11 where i = 11",
    "delete from TABLE where i = 5",
    "delete from TABLE where i = 12345",
    "replace into TABLE (id, i) values (1000, 12), (1001, 13)",
    "alter table TABLE add index (i)",
    "set @a = 1",
    "select 1",
];

#[test]
fn the_thin_client_and_the_full_one_agree() {
    for build in builds("the_thin_client_and_the_full_one_agree") {
        let (_folders, server) = server(&build, &[]);
        assert_eq!(
            server.effective_settings().unwrap()["session_client"],
            "thin"
        );
        let mut thin = server.connect().unwrap();
        let mut full = full(&mut *thin);
        let name = &build.name;
        thin.define(&TABLE.replace("TABLE", "a")).unwrap();
        full.query_drop(TABLE.replace("TABLE", "b")).unwrap();
        for sql in WRITES {
            let expected = full
                .query_iter(sql.replace("TABLE", "b"))
                .unwrap()
                .affected_rows();
            assert_eq!(
                thin.write(&sql.replace("TABLE", "a"), 0).unwrap(),
                expected,
                "{name}: {sql}"
            );
        }
        let rows = thin_texts(&mut *thin, "select * from a order by id");
        assert_eq!(
            rows,
            full_texts(&mut full, "select * from b order by id"),
            "{name}"
        );
        assert!(
            rows.len() > 5
                && rows[0].starts_with("1|-1|18446744073709551615|0.1|1e30|-12345678.9000|")
                && rows[1].contains("|\\N|")
        );
        let sums = full_texts(&mut full, "checksum table a, b");
        assert_eq!(
            sums[0].split('|').nth(1),
            sums[1].split('|').nth(1),
            "{name}: {sums:?}"
        );

        for sql in [
            "select * from a",
            "select * from a where id < 0",
            "show tables",
            "select 1 union all select 2",
            "do 1",
        ] {
            let expected = full.query::<Row, _>(sql).unwrap().len() as u64;
            assert_eq!(thin.query(sql).unwrap(), expected, "{name}: {sql}");
        }
        let session = "select @@character_set_client, @@character_set_connection, \
                      @@character_set_results, @@collation_connection, @@sql_mode, @@autocommit, \
                      @@max_allowed_packet, database(), user()";
        assert_eq!(
            thin_texts(&mut *thin, session),
            full_texts(&mut full, session),
            "{name}"
        );

        for sql in [
            "select from",
            "insert into nowhere values (1)",
            "insert into a (id) values (1)",
            "select * from a where id = (select id from a)",
            "",
        ] {
            let expected = match full.query_drop(sql).unwrap_err() {
                mysql::Error::MySqlError(error) => error,
                other => panic!("{name}: {sql}: {other}"),
            };
            let found = thin.query(sql).unwrap_err();
            assert_eq!(
                (found.code, &*found.message),
                (expected.code.into(), &*expected.message),
                "{name}: {sql}"
            );
        }

        let reads: [(&str, &[i64]); 5] = [
            ("select * from a", &[]),
            ("select * from a where id <= ?", &[3]),
            (
                "select * from a where i in (?,?,?,?,?,?,?,?,?,?)",
                &[1, 2, 3, 4, 5, 6, 7, 11, i64::MIN, i64::MAX],
            ),
            ("select ?, ?, ? from a limit ?", &[i64::MIN, 0, i64::MAX, 2]),
            ("select * from a where id < ?", &[-1]),
        ];
        for (sql, arguments) in reads {
            let statement = thin.prepare(sql).unwrap();
            let expected = full
                .exec::<Row, _, _>(
                    sql,
                    arguments
                        .iter()
                        .map(|&value| Value::Int(value))
                        .collect::<Vec<_>>(),
                )
                .unwrap()
                .len();
            for _ in 0..3 {
                assert_eq!(
                    thin.query_prepared(statement, arguments).unwrap(),
                    expected as u64,
                    "{name}: {sql}"
                );
            }
            let error = thin
                .query_prepared(statement, &[&[1][..], arguments].concat())
                .unwrap_err();
            assert!(
                error
                    .message
                    .contains(&format!("has {} placeholders", arguments.len())),
                "{error}"
            );
        }
        for table in ["a", "b"] {
            full.query_drop(format!("truncate table {table}")).unwrap();
        }
        let insert = "insert into TABLE (i, u, d, m, t) values (?,?,?,?,?), (?,?,?,?,?)";
        let statement = thin.prepare(&insert.replace("TABLE", "a")).unwrap();
        for n in 0..10_i64 {
            let arguments: Vec<i64> = (0..10).map(|m| n * 1000 + m).collect();
            full.exec_drop(
                insert.replace("TABLE", "b"),
                arguments
                    .iter()
                    .map(|&value| Value::Int(value))
                    .collect::<Vec<_>>(),
            )
            .unwrap();
            assert_eq!(thin.write_prepared(statement, &arguments, 2).unwrap(), 2);
        }
        // A table that is changed behind a prepared statement.
        thin.define("alter table a add column extra int, drop column y")
            .unwrap();
        assert_eq!(thin.write_prepared(statement, &[1; 10], 2).unwrap(), 2);
        full.exec_drop(insert.replace("TABLE", "b"), vec![Value::Int(1); 10])
            .unwrap();
        let columns = "id, i, u, d, m, t";
        assert_eq!(
            thin_texts(&mut *thin, &format!("select {columns} from a order by id")),
            full_texts(&mut full, &format!("select {columns} from b order by id")),
            "{name}"
        );
        drop(thin);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn statements_and_rows_of_any_length_pass() {
    const ALLOWED: usize = 40 << 20;
    for build in builds("statements_and_rows_of_any_length_pass") {
        let (_folders, server) = server(&build, &[("max_allowed_packet", "40M")]);
        let mut session = server.connect().unwrap();
        let name = &build.name;
        for length in [100, 65_536, (1 << 24) - 30, (1 << 24) + 30, 35 << 20] {
            let sql = format!("select '{}' union all select 'x'", "x".repeat(length));
            assert_eq!(session.query(&sql).unwrap(), 2, "{name}: {length}");
            let read = thin_texts(
                &mut *session,
                &format!("select repeat('y', {length}) union all select 'x'"),
            );
            assert!(
                read.len() == 2
                    && read[0].len() == length
                    && read[0].bytes().all(|byte| byte == b'y'),
                "{name}: {length}"
            );
            let prepared = session
                .prepare("select repeat('y', ?) union all select 'x'")
                .unwrap();
            assert_eq!(
                session.query_prepared(prepared, &[length as i64]).unwrap(),
                2,
                "{name}: {length}"
            );
        }
        // Payloads about as long as a packet: what follows its end is a packet too, if need be an
        // empty one.
        for around in -3..=3 {
            let length = ((1_i64 << 24) - 1 + around) as usize - "select length('')".len() - 1;
            let sql = format!("select length('{}')", "z".repeat(length));
            assert_eq!(
                session.query_integer(&sql).unwrap(),
                Some(length as i64),
                "{name}: {around}"
            );
        }
        // The longest that the server takes, and one more, which is not sent.
        let longest = ALLOWED - "select length('')".len() - 2;
        assert_eq!(
            session
                .query_integer(&format!("select length('{}')", "z".repeat(longest)))
                .unwrap(),
            Some(longest as i64),
            "{name}"
        );
        let id = session.query_integer("select connection_id()").unwrap();
        let error = session
            .write(&format!("select length('{}')", "z".repeat(longest + 1)), 0)
            .unwrap_err();
        let words = format!(
            "it has {ALLOWED} bytes, and the server takes fewer than {ALLOWED}; raise \
            max_allowed_packet"
        );
        assert_eq!(
            (error.code, error.message.contains(&words)),
            (2020, true),
            "{name}: {error}"
        );
        assert_eq!(
            session.query_integer("select connection_id()").unwrap(),
            id,
            "{name}"
        );
        drop(session);
        server.stop(DEADLINE).unwrap();
    }
}

#[test]
fn a_query_that_is_killed_among_its_rows_is_an_error() {
    for build in builds("a_query_that_is_killed_among_its_rows_is_an_error") {
        let (_folders, server) = server(&build, &[]);
        let mut other = server.connect().unwrap();
        other
            .define("create table t (a varchar(100)) engine=innodb")
            .unwrap();
        other
            .write(
                &format!(
                    "insert into t values {}",
                    vec!["(repeat('x', 100))"; 1000].join(",")
                ),
                1000,
            )
            .unwrap();
        for (kill, is_query) in [("kill query", true), ("kill", false)] {
            let mut session = server.connect().unwrap();
            let id = session
                .query_integer("select connection_id()")
                .unwrap()
                .unwrap();
            let ((began, begin), (killed, kill_sent)) = (mpsc::channel(), mpsc::channel());
            let worker = thread::spawn(move || {
                let mut rows = 0_u64;
                // 100 MB, which no buffer holds: until we go on, the server cannot.
                let error = session.for_each_row("select one.a from t one, t two", &mut |_| {
                    rows += 1;
                    if rows == 1000 {
                        began.send(()).unwrap();
                        kill_sent.recv_timeout(DEADLINE).unwrap();
                    }
                });
                (rows, error, session)
            });
            begin
                .recv_timeout(DEADLINE)
                .unwrap_or_else(|error| panic!("{}: {kill}: {error}", build.name));
            other.define(&format!("{kill} {id}")).unwrap();
            killed.send(()).unwrap();
            let (rows, outcome, mut session) = worker.join().unwrap();
            let error = outcome.unwrap_err();
            let place = format!("{}: {kill}: {rows}: {error}", build.name);
            assert!((1000..1_000_000).contains(&rows), "{place}");
            // Of a query alone the connection stands, and nothing of its rows is left on it.
            assert_eq!(
                (
                    error.class == ErrorClass::Cancelled,
                    error.class.is_disconnected()
                ),
                (is_query, !is_query),
                "{place}"
            );
            assert_eq!(session.query("select * from t").unwrap(), 1000, "{place}");
            assert_eq!(
                session.query_integer("select connection_id()").unwrap() == Some(id),
                is_query,
                "{place}"
            );
        }
        drop(other);
        server.stop(DEADLINE).unwrap();
    }
}

/// An account for these tests.
struct Account {
    name: &'static str,
    /// Statements that make it, with USER in place of name and host. The first that works is enough
    /// of each.
    make: &'static [&'static [&'static str]],
    /// What follows from it, with the password and a server that offers TLS: a session, or an error
    /// with this in it.
    refusal: Option<&'static str>,
}

const NATIVE: &[&[&str]] = &[&[
    "create user USER identified with mysql_native_password by 'geh3im!wort'",
    "create user USER identified via mysql_native_password using password('geh3im!wort')",
    // 5.6, and MariaDB 10.1
    "create user USER identified by 'geh3im!wort'",
]];

const ACCOUNTS: &[Account] = &[
    Account {
        name: "native",
        make: NATIVE,
        refusal: None,
    },
    Account {
        name: "sha2",
        make: &[&["create user USER identified with caching_sha2_password by 'geh3im!wort'"]],
        refusal: None,
    },
    Account {
        name: "sha256",
        make: &[&["create user USER identified with sha256_password by 'geh3im!wort'"]],
        refusal: Some("authenticated with sha256_password, which this program does not speak"),
    },
    Account {
        name: "ed25519",
        make: &[&["create user USER identified via ed25519 using password('geh3im!wort')"]],
        refusal: Some("authenticated with client_ed25519, which this program does not speak"),
    },
    Account {
        name: "secure",
        make: &[
            &[
                "create user USER identified with caching_sha2_password by 'geh3im!wort'",
                "create user USER identified by 'geh3im!wort'",
            ],
            &[
                "alter user USER require ssl",
                "grant usage on *.* to USER require ssl",
            ],
        ],
        refusal: Some("set tls = \"verify-full\""),
    },
];

/// Makes an account where the server can.
fn make(root: &mut dyn SqlSession, account: &Account) -> bool {
    ["127.0.0.1", "localhost"].iter().all(|host| {
        let user = format!("'{}'@'{host}'", account.name);
        let mut works = |choices: &&[&str]| {
            choices
                .iter()
                .any(|sql| root.define(&sql.replace("USER", &user)).is_ok())
        };
        account.make.iter().all(&mut works)
            && works(&&[&*format!("grant all on {DATABASE}.* to USER")][..])
    })
}

fn use_it(external: &External) -> Result<Option<i64>, String> {
    let mut entered: Option<Result<Box<dyn Server>, String>> = None;
    // The lock of the use before is gone when the server has noticed the end of its connection.
    wait_until("the database for another use", || {
        let next = enter(external);
        let is_locked = next
            .as_ref()
            .is_err_and(|error| error.contains("another campaign uses"));
        entered = Some(next);
        !is_locked
    });
    let server = entered.unwrap()?;
    assert_eq!(
        server.effective_settings().unwrap()["session_client"],
        "thin"
    );
    let mut session = server.connect().map_err(|error| error.message)?;
    let answer = session.query_integer("select 40 + 2").unwrap();
    drop(session);
    server.stop(DEADLINE).unwrap();
    Ok(answer)
}

#[test]
fn accounts_of_every_plugin_get_in_or_are_told_why() {
    let test = "accounts_of_every_plugin_get_in_or_are_told_why";
    for build in builds(test) {
        let folders = Folders::new();
        let options = StartOptions {
            transport: Transport::Tcp,
            ..folders.options(&[])
        };
        let server =
            start(&build, &options).unwrap_or_else(|error| panic!("{}: {error}", build.name));
        let mut root = server.connect().unwrap();
        root.define(&format!("create database {DATABASE}")).unwrap();
        // It comes with some builds.
        let _ = root.define("install soname 'auth_ed25519'");
        let port = root.query_integer("select @@port").unwrap().unwrap() as u16;
        let path = thin_texts(&mut *root, "select @@socket").remove(0);
        let mut found = Vec::new();
        for account in ACCOUNTS {
            if !make(&mut *root, account) {
                continue;
            }
            found.push(account.name);
            let by_network = external(build.engine, port);
            let mut by_socket = by_network.clone();
            by_socket.server.place = ServerPlace::Socket {
                path: path.clone(),
                port,
            };
            for right in [by_network, by_socket] {
                check(&build, &mut *root, account, right);
            }
        }
        // Not in every version.
        if root
            .define("set global require_secure_transport = on")
            .is_ok()
        {
            let mut plain = external(build.engine, port);
            plain.server.user = "native".to_owned();
            let error = use_it(&plain).unwrap_err();
            assert!(
                error.contains("set tls = \"verify-full\""),
                "{}: {error}",
                build.name
            );
            let error = server.connect().err().unwrap().message;
            // MariaDB 10 denies the access, and says no more.
            let words = if build.name.starts_with("mariadb@10.") {
                "Access denied"
            } else {
                "set tls = \"verify-full\""
            };
            assert!(error.contains(words), "{}: {error}", build.name);
            root.define("set global require_secure_transport = off")
                .unwrap();
            found.push("transport");
        }
        let expected: &[&str] = match &*build.name {
            name if name.starts_with("mysql@8") => &["native", "sha2", "sha256", "secure"],
            name if name.starts_with("mysql@9") => &["native", "sha2", "secure"],
            _ => &["native", "secure"],
        };
        assert!(
            expected.iter().all(|name| found.contains(name)),
            "{}: {found:?}",
            build.name
        );
        drop(root);
        server.stop(DEADLINE).unwrap();
    }
}

fn check(
    build: &InstalledBuild,
    root: &mut dyn SqlSession,
    account: &Account,
    mut right: External,
) {
    right.server.user = account.name.to_owned();
    let place = format!("{}: {} at {}", build.name, account.name, right.server.place);
    // The server knows no password's hash any more.
    root.define("flush privileges").unwrap();
    match account.refusal {
        None => {
            for _ in 0..2 {
                assert_eq!(use_it(&right), Ok(Some(42)), "{place}");
            }
        }
        Some(words) => {
            let error = use_it(&right).unwrap_err();
            assert!(error.contains(words), "{place}: {error}");
        }
    }
    if account.refusal.is_none() {
        for wrong in [None, Some("falsch"), Some(&*"x".repeat(300))] {
            let mut external = right.clone();
            external.password = wrong.map(|text| Password::new(text.to_owned()));
            assert!(use_it(&external).is_err(), "{place}: {wrong:?}");
        }
        assert_eq!(use_it(&right), Ok(Some(42)), "{place}");
    }
}
