//! MySQL and MariaDB: statements, errors and sizes.

mod mysql_support;

use std::thread;
use std::time::Instant;

use mysql_support::*;
use plimsoll_engine::{DrainLimits, ErrorClass, SqlSession};

#[test]
fn statements_of_all_kinds_do_what_they_say() {
    for wanted in ALL {
        let Some(build) = build("statements_of_all_kinds_do_what_they_say", wanted) else {
            continue;
        };
        let (folders, server) = server(&build, &[]);
        let mut session = server.connect().unwrap();
        create_table(&*server, &mut *session, "pi1");
        assert_eq!(
            session
                .query_integer("select min(transactionid) from pi1")
                .unwrap(),
            None
        );
        assert_eq!(
            session
                .query_integer("select transactionid from pi1")
                .unwrap(),
            None
        );
        assert_eq!(session.write(&insert_text("pi1", 100), 100).unwrap(), 100);
        assert_eq!(
            session
                .query_integer("select max(transactionid) from pi1")
                .unwrap(),
            Some(100)
        );

        // Text and prepared, both ways.
        assert_eq!(
            session
                .write(
                    "delete from pi1 where transactionid >= 1 order by transactionid asc limit 10",
                    10
                )
                .unwrap(),
            10
        );
        let delete = session
            .prepare("delete from pi1 where transactionid >= ? order by transactionid asc limit ?")
            .unwrap();
        assert_eq!(session.write_prepared(delete, &[0, 10], 10).unwrap(), 10);
        assert_eq!(session.write_prepared(delete, &[99, 10], 10).unwrap(), 2);
        let range = "SELECT price,dateandtime,customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE \
                    (price >= 10) ORDER BY price, dateandtime, customerid LIMIT 10";
        assert_eq!(session.query(range).unwrap(), 10);
        let point = session
            .prepare(
                "SELECT transactionid, productid, data FROM pi1 WHERE transactionid in (?,?,?)",
            )
            .unwrap();
        assert_eq!(session.query_prepared(point, &[30, 31, 1000]).unwrap(), 2);
        assert_eq!(session.query_prepared(point, &[30, 30, 30]).unwrap(), 1);
        assert_eq!(
            session
                .query("select * from pi1 where transactionid = 0")
                .unwrap(),
            0
        );

        let mut rows = Vec::new();
        let sql =
            "select transactionid, dateandtime, null, data from pi1 order by transactionid limit 1";
        session
            .for_each_row(sql, &mut |row| rows.push(row.join("|")))
            .unwrap();
        assert_eq!(rows, ["21|2026-06-17 01:23:08|\\N|aaaaaaaaaaaaaaa"]);
        let charset = "select concat(@@character_set_client, @@character_set_connection, \
                      @@character_set_results, character_set_name) from information_schema.columns \
                      where table_schema = 'ib' and table_name = 'pi1' and column_name = 'data'";
        session
            .for_each_row(charset, &mut |row| {
                assert_eq!(row[0], "latin1latin1latin1latin1")
            })
            .unwrap();

        // Errors leave the session fit for use.
        let table = [
            (
                session
                    .write("insert into nowhere values (1)", 1)
                    .unwrap_err(),
                1146,
            ),
            (session.query("select from").unwrap_err(), 1064),
            (
                session
                    .prepare("select * from nowhere where a = ?")
                    .unwrap_err(),
                1146,
            ),
            (
                session
                    .write(
                        "insert into pi1 (transactionid,cashregisterid,customerid,productid,price) \
                        values (30,1,1,1,1)",
                        1,
                    )
                    .unwrap_err(),
                1062,
            ),
        ];
        for (error, code) in table {
            let class = if code == 1062 {
                ErrorClass::Duplicate
            } else {
                ErrorClass::Statement
            };
            assert_eq!((error.class, error.code), (class, code), "{error}");
        }
        assert_eq!(
            session.query_prepared(point, &[30]).unwrap_err().class,
            ErrorClass::Statement
        );
        assert_eq!(session.query_prepared(point, &[30, 31, 32]).unwrap(), 3);
        let other = server
            .connect()
            .unwrap()
            .query_prepared(point, &[1, 2, 3])
            .unwrap_err();
        assert!(other.message.contains("did not prepare"), "{other}");

        // 100 rows and three indexes are small, a database of nothing would be smaller.
        let bytes = server.database_bytes().unwrap();
        let file = std::fs::metadata(folders.data.path().join("data/ib/pi1.ibd"))
            .unwrap()
            .len();
        assert!(
            bytes >= file && bytes < file + (1 << 20),
            "{bytes} and {file}"
        );
        let before = server.counters().unwrap();
        session.write(&insert_text("pi1", 7), 7).unwrap();
        let after = server.counters().unwrap();
        assert_eq!(
            after["com_insert"] - before["com_insert"],
            1,
            "{}",
            build.name
        );

        let dir = folders.logs.path().join("state");
        server.save_state(&dir, "l.i0").unwrap();
        let read = |name: &str| {
            std::fs::read_to_string(dir.join(format!("l.i0.{name}")))
                .unwrap_or_else(|error| panic!("{name}: {error}"))
        };
        assert!(read("innodb-status.txt").contains("BUFFER POOL AND MEMORY"));
        assert!(
            read("create-table.sql").contains("KEY `pi1_pdc` (`price`,`dateandtime`,`customerid`)")
        );
        assert!(
            read("global-variables.tsv")
                .lines()
                .any(|line| line.starts_with("innodb_page_size\t"))
        );
        assert!(read("table-status.tsv").starts_with("Name\tEngine\t"));
        assert!(!dir.join("l.i0.rocksdb-status.txt").exists());
        drop(session);
        server.stop(DEADLINE).unwrap();
    }
}

/// Runs a transaction by hand: these statements are not operations.
fn begin(session: &mut dyn SqlSession, sql: &str) {
    session.define("begin").unwrap();
    session.write(sql, 1).unwrap();
}

#[test]
fn locks_are_told_apart_by_code() {
    for wanted in ALL {
        let Some(build) = build("locks_are_told_apart_by_code", wanted) else {
            continue;
        };
        let (_folders, server) = server(&build, &[("innodb_lock_wait_timeout", "1")]);
        let (mut one, mut two) = (server.connect().unwrap(), server.connect().unwrap());
        one.define("create table t (id int primary key, n int) engine=innodb")
            .unwrap();
        one.write("insert into t values (1, 0), (2, 0)", 2).unwrap();

        // The lock is never given up: the wait ends by itself.
        begin(&mut *one, "update t set n = n + 1 where id = 1");
        let error = two
            .write("update t set n = n + 1 where id = 1", 1)
            .unwrap_err();
        assert_eq!(
            (error.class, error.code),
            (ErrorClass::Busy, 1205),
            "{error}"
        );
        one.define("rollback").unwrap();
        assert_eq!(
            two.write("update t set n = n + 1 where id = 1", 1).unwrap(),
            1
        );

        // Each waits for the other: one of them gets the deadlock, the other its row.
        one.define("set innodb_lock_wait_timeout = 50").unwrap();
        two.define("set innodb_lock_wait_timeout = 50").unwrap();
        begin(&mut *one, "update t set n = n + 1 where id = 1");
        begin(&mut *two, "update t set n = n + 1 where id = 2");
        let waiting = thread::spawn(move || one.write("update t set n = n + 1 where id = 2", 1));
        let second = two.write("update t set n = n + 1 where id = 1", 1);
        let results = [waiting.join().unwrap(), second];
        let (done, failed): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        assert_eq!((done.len(), failed.len()), (1, 1));
        let error = failed.into_iter().next().unwrap().unwrap_err();
        assert_eq!(
            (error.class, error.code),
            (ErrorClass::Deadlock, 1213),
            "{error}"
        );
    }
}

#[test]
fn a_lost_connection_is_told_once_and_made_again() {
    for wanted in ALL {
        let Some(build) = build("a_lost_connection_is_told_once_and_made_again", wanted) else {
            continue;
        };
        let (_folders, server) = server(&build, &[]);
        let mut session = server.connect().unwrap();
        session
            .define("create table t (id int primary key) engine=innodb")
            .unwrap();
        let insert = session.prepare("insert into t values (?)").unwrap();
        session.write_prepared(insert, &[1], 1).unwrap();
        let id = session
            .query_integer("select connection_id()")
            .unwrap()
            .unwrap();
        let mut other = server.connect().unwrap();
        other.define(&format!("kill {id}")).unwrap();
        wait_until("the end of the connection", || {
            other
                .query_integer(&format!(
                    "select count(*) from information_schema.processlist where id = {id}"
                ))
                .unwrap()
                == Some(0)
        });
        let error = session.write_prepared(insert, &[2], 1).unwrap_err();
        // The kernel took nothing of the statement: the other side was closed.
        assert_eq!(error.class, ErrorClass::Unsent, "{error}");
        // Not retried: the row is not there. The statement is prepared again by itself.
        assert_eq!(session.write_prepared(insert, &[3], 1).unwrap(), 1);
        assert_eq!(
            session.query_integer("select sum(id) from t").unwrap(),
            Some(4)
        );
    }
}

#[test]
fn too_many_connections_are_an_error_that_says_so() {
    let Some(build) = build("too_many_connections_are_an_error_that_says_so", MYSQL_OLD) else {
        return;
    };
    let (_folders, server) = server(&build, &[("max_connections", "3")]);
    let mut sessions = Vec::new();
    let error = loop {
        match server.connect() {
            Ok(session) => sessions.push(session),
            Err(error) => break error,
        }
        assert!(sessions.len() < 10);
    };
    assert!(
        error.message.contains("(code 1040)") && error.message.contains("max_connections"),
        "{error}"
    );
}

#[test]
fn a_storage_engine_that_failed_says_why() {
    let Some(build) = build("a_storage_engine_that_failed_says_why", MARIADB) else {
        return;
    };
    let settings = [
        ("storage_engine", "rocksdb"),
        ("rocksdb_default_cf_options", "nonsense=1"),
    ];
    let message = start(&build, &Folders::new().options(&settings))
        .map(|_| ())
        .unwrap_err();
    assert!(
        message.contains("has no storage engine \"rocksdb\"")
            && message.contains("Failed to initialize CF options"),
        "{message}"
    );
}

#[test]
fn rocksdb_tables_load_read_and_count() {
    let Some(build) = build("rocksdb_tables_load_read_and_count", MARIADB) else {
        return;
    };
    let (folders, server) = server(
        &build,
        &[
            ("storage_engine", "rocksdb"),
            ("rocksdb_block_cache_size", "32M"),
            ("log_bin", "on"),
            ("binlog_format", "row"),
        ],
    );
    assert_eq!(server.sql().unwrap().table_suffix(), " engine=rocksdb");
    let two = [("a".to_owned(), "a"), ("b".to_owned(), "b")];
    let forms = server.sql().unwrap().forms();
    assert_eq!(forms.create_indexes("t", &two).len(), 2, "as RocksDB's");
    let mut session = server.connect().unwrap();
    create_table(&*server, &mut *session, "pi1");
    for _ in 0..50 {
        session.write(&insert_text("pi1", 100), 100).unwrap();
    }
    assert_eq!(
        session.query_integer("select count(*) from pi1").unwrap(),
        Some(5000)
    );
    let later = Instant::now() + DEADLINE;
    let actions = server
        .drain(
            &["pi1".to_owned()],
            &DrainLimits::new(Instant::now(), later, &|| false),
        )
        .unwrap();
    let names: Vec<&str> = actions
        .iter()
        .map(|action| action.action.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "reset master",
            "rocksdb: flush, flush with level 0, wait for quiet statistics",
            "set global rocksdb_force_flush_memtable_now = 1",
            "set global rocksdb_force_flush_memtable_and_lzero_now = 1",
            "wait for rocksdb_cfstats to be quiet",
            "analyze table `pi1`",
        ]
    );
    assert!(
        actions[4].result.starts_with("done; 0 pending"),
        "{actions:?}"
    );
    // 5000 rows with three indexes, compressed or not, and nothing that is logs.
    let bytes = server.database_bytes().unwrap();
    assert!((50_000..5_000_000).contains(&bytes), "{bytes}");
    let counters = server.counters().unwrap();
    assert!(
        counters["rocksdb_compactions"] > 0 && counters.contains_key("rocksdb_compaction_cpu_us"),
        "{counters:?}"
    );
    let dir = folders.logs.path().join("state");
    server.save_state(&dir, "end").unwrap();
    assert!(
        std::fs::read_to_string(dir.join("end.rocksdb-status.txt"))
            .unwrap()
            .contains("Compaction Stats [default]")
    );
    assert!(
        folders
            .logs
            .path()
            .join("drain-before.rocksdb-status.txt")
            .exists()
    );
    drop(session);
    server.stop(DEADLINE).unwrap();
}
