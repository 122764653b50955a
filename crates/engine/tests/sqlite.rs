//! SQLite through the traits, on real files.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_engine::{
    DrainLimits, ErrorClass, Server, Settings, SqlError, SqlSession, StartOptions, engine,
};
use rusqlite::Connection;
use tempfile::TempDir;

/// Generous: no test waits this long unless it fails.
const DEADLINE: Duration = Duration::from_secs(120);

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn start(dir: &Path, pairs: &[(&str, &str)]) -> Result<Box<dyn Server>, String> {
    let options = StartOptions::new(dir, settings(pairs));
    engine(&"sqlite".parse().unwrap(), None)
        .unwrap()
        .start(&options)
        .map_err(|error| error.message)
}

fn server(pairs: &[(&str, &str)]) -> (TempDir, Box<dyn Server>) {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), pairs).unwrap();
    (dir, server)
}

/// A connection that is not the engine's.
fn foreign(dir: &TempDir) -> Connection {
    let connection = Connection::open(dir.path().join("ib.db")).unwrap();
    connection.busy_timeout(Duration::from_secs(30)).unwrap();
    connection
}

fn count(session: &mut dyn SqlSession, table: &str) -> i64 {
    session
        .query_integer(&format!("select count(*) from {table}"))
        .unwrap()
        .unwrap()
}

const WAL: &[(&str, &str)] = &[("journal_mode", "wal"), ("synchronous", "off")];
const DELETE: &[(&str, &str)] = &[("journal_mode", "delete"), ("synchronous", "off")];

#[test]
fn the_build_tells_version_origin_and_options() {
    let build = engine(&"sqlite".parse().unwrap(), None).unwrap().build();
    assert_eq!(
        (
            build.engine.as_str(),
            build.version.as_str(),
            build.origin.as_str()
        ),
        ("sqlite", rusqlite::version(), "bundled")
    );
    assert!(
        build
            .options
            .iter()
            .any(|option| option.starts_with("COMPILER=")),
        "{:?}",
        build.options
    );
    assert!(build.options.is_sorted());
}

#[test]
fn settings_reach_every_connection_and_the_file() {
    let (dir, server) = server(&[
        ("journal_mode", "WAL"),
        ("synchronous", "1"),
        ("cache_size", "-65536"),
        ("page_size", "8192"),
        ("auto_vacuum", "incremental"),
        ("mmap_size", "1048576"),
        ("wal_autocheckpoint", "500"),
        ("temp_store", "memory"),
    ]);
    let effective = server.effective_settings().unwrap();
    for (name, value) in [
        ("journal_mode", "wal"),
        ("synchronous", "normal"),
        ("cache_size", "-65536"),
        ("page_size", "8192"),
        ("auto_vacuum", "incremental"),
        ("mmap_size", "1048576"),
        ("wal_autocheckpoint", "500"),
        ("temp_store", "memory"),
        ("foreign_keys", "on"),
    ] {
        assert_eq!(effective[name], value, "{name}");
    }
    let mut session = server.connect().unwrap();
    for (pragma, value) in [
        ("synchronous", 1),
        ("cache_size", -65536),
        ("page_size", 8192),
        ("temp_store", 2),
        ("wal_autocheckpoint", 500),
    ] {
        assert_eq!(
            session.query_integer(&format!("pragma {pragma}")).unwrap(),
            Some(value),
            "{pragma}"
        );
    }
    assert_eq!(
        session.query_integer("pragma busy_timeout").unwrap(),
        Some(0),
        "waiting for locks is the load loop's business"
    );
    let page_size: i64 = foreign(&dir)
        .query_row("pragma page_size", [], |row| row.get(0))
        .unwrap();
    assert_eq!(page_size, 8192);
}

#[test]
fn page_size_holds_without_a_wal_too() {
    let (_dir, server) = server(&[("journal_mode", "delete"), ("page_size", "1024")]);
    assert_eq!(server.effective_settings().unwrap()["page_size"], "1024");
    assert_eq!(server.database_bytes().unwrap(), 1024);
}

#[test]
fn a_start_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let message = start(dir.path(), &[("syncronous", "full")]).err().unwrap();
    assert!(
        message.ends_with("(did you mean \"synchronous\"?)"),
        "{message}"
    );
    let message = start(dir.path(), &[("cache_size", "1; drop table pi1")])
        .err()
        .unwrap();
    assert!(
        message.starts_with("setting cache_size cannot be"),
        "{message}"
    );
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "a refused config makes no file"
    );

    let message = start(&dir.path().join("missing"), WAL).err().unwrap();
    assert!(
        message.contains("missing") && message.contains("check that the data directory exists"),
        "{message}"
    );

    // The library has a ceiling for mmap_size that it applies silently.
    let message = start(dir.path(), &[("mmap_size", "9000000000000")])
        .err()
        .unwrap();
    assert!(
        message.starts_with("sqlite did not take mmap_size = 9000000000000: it runs with "),
        "{message}"
    );
}

#[test]
fn a_database_of_someone_else_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    foreign(&dir)
        .execute_batch("create table theirs (a)")
        .unwrap();
    let before = std::fs::read(dir.path().join("ib.db")).unwrap();
    let message = start(dir.path(), WAL).err().unwrap();
    assert!(
        message.contains("ib.db is a database that this program did not make"),
        "{message}"
    );
    assert_eq!(std::fs::read(dir.path().join("ib.db")).unwrap(), before);

    std::fs::write(
        dir.path().join("ib.db"),
        "not a database at all, but long enough to hold a header: ".repeat(20),
    )
    .unwrap();
    let message = start(dir.path(), WAL).err().unwrap();
    assert!(message.contains("file is not a database"), "{message}");
}

#[test]
fn data_survives_a_stop_and_the_log_is_gone() {
    let (dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session.define("create table t (a integer)").unwrap();
    assert_eq!(
        session
            .write("insert into t values (1), (2), (3)", 3)
            .unwrap(),
        3
    );
    assert!(server.counters().unwrap()["wal_bytes"] > 0);
    drop(session);
    assert!(
        dir.path().join("ib.db-wal").exists(),
        "the end of the last session is not the end of the server"
    );
    server.stop(DEADLINE).unwrap();
    assert!(!dir.path().join("ib.db-wal").exists());

    let server = start(dir.path(), WAL).unwrap();
    assert_eq!(count(&mut *server.connect().unwrap(), "t"), 3);
    let message = start(dir.path(), &[("page_size", "8192")]).err().unwrap();
    assert!(
        message.starts_with("sqlite did not take page_size = 8192: it runs with 4096"),
        "{message}"
    );
}

#[test]
fn writes_and_queries_count_their_rows() {
    let (_dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session
        .define("create table t (id integer primary key, a integer, b text)")
        .unwrap();
    let delete = session
        .prepare("delete from t where id in (select id from t where id >= ? order by id limit ?)")
        .unwrap();
    let range = session
        .prepare("select id, b from t where id >= ? order by id limit 10")
        .unwrap();
    let rows = (1..=100)
        .map(|id| format!("({id}, {}, 'x{id}')", id * 2))
        .collect::<Vec<_>>()
        .join(",\n");
    // The returned number is the engine's, whatever the caller expected.
    assert_eq!(
        session
            .write(&format!("insert into t values {rows}"), 7)
            .unwrap(),
        100
    );
    assert_eq!(session.query_prepared(range, &[1]).unwrap(), 10);
    assert_eq!(session.query_prepared(range, &[96]).unwrap(), 5);
    assert_eq!(session.write_prepared(delete, &[0, 40], 7).unwrap(), 40);
    assert_eq!(session.write_prepared(delete, &[90, 40], 7).unwrap(), 11);
    assert_eq!(session.query("select * from t").unwrap(), 49);
    assert_eq!(
        session.query_integer("select min(id) from t").unwrap(),
        Some(41)
    );
    assert_eq!(
        session
            .query_integer("select max(id) from t where id > 1000")
            .unwrap(),
        None
    );
    assert_eq!(
        session
            .query_integer("select id from t where id > 1000")
            .unwrap(),
        None
    );
}

#[test]
fn many_prepared_statements_are_kept_apart() {
    let (_dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    let statements: Vec<_> = (0..60)
        .map(|n| {
            session
                .prepare(&format!(
                    "with recursive c(x) as (select 1 union all select x + 1 from c where x < {n} \
                    + ?) select x from c"
                ))
                .unwrap()
        })
        .collect();
    for _ in 0..2 {
        for (n, statement) in statements.iter().enumerate() {
            assert_eq!(
                session.query_prepared(*statement, &[5]).unwrap(),
                n as u64 + 5
            );
        }
    }
}

#[test]
fn rows_render_as_stable_text() {
    let (_dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session
        .define("create table t (id integer primary key, r real, s text, b blob)")
        .unwrap();
    session
        .write(
            "insert into t values (1, 0.1, 'é|\n', x'00ff'), (-5, 250, null, null), (3, 1e300, '', \
            x'')",
            3,
        )
        .unwrap();
    for _ in 0..2 {
        let mut rows = Vec::new();
        session
            .for_each_row("select * from t order by id", &mut |row| {
                rows.push(row.join("|"))
            })
            .unwrap();
        assert_eq!(rows, ["-5|250.0|\\N|\\N", "1|0.1|é|\n|00ff", "3|1e300||"]);
    }
}

/// Runs a bad statement in every way there is and checks that the session still writes afterwards.
#[test]
fn wrong_statements_are_errors_and_leave_the_session_usable() {
    let (_dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session
        .define("create table t (id integer primary key)")
        .unwrap();
    let insert = session.prepare("insert into t values (?)").unwrap();
    session.write_prepared(insert, &[1], 1).unwrap();

    type Attempt<'a> = &'a dyn Fn(&mut dyn SqlSession) -> Result<(), SqlError>;
    let table: [(&str, Attempt); 10] = [
        ("syntax error", &|s| {
            s.write("insert inot t values (2)", 1).map(drop)
        }),
        ("no such table", &|s| {
            s.write("insert into nowhere values (2)", 1).map(drop)
        }),
        ("no such table", &|s| {
            s.prepare("select * from nowhere").map(drop)
        }),
        ("no such table", &|s| s.define("drop table nowhere")),
        ("UNIQUE constraint failed", &|s| {
            s.write("insert into t values (2), (1)", 2).map(drop)
        }),
        ("UNIQUE constraint failed", &|s| {
            s.write_prepared(insert, &[1], 1).map(drop)
        }),
        ("Wrong number of parameters", &|s| {
            s.write_prepared(insert, &[], 1).map(drop)
        }),
        ("Multiple statements", &|s| {
            s.write("insert into t values (2); delete from t", 1)
                .map(drop)
        }),
        ("Execute returned results", &|s| {
            s.write("select * from t", 1).map(drop)
        }),
        ("Invalid column type Text", &|s| {
            s.query_integer("select 'a'").map(drop)
        }),
    ];
    for (part, attempt) in table {
        let error = attempt(&mut *session).unwrap_err();
        let class = if part.starts_with("UNIQUE") {
            ErrorClass::Duplicate
        } else {
            ErrorClass::Statement
        };
        assert_eq!(error.class, class, "{error}");
        assert!(error.message.contains(part), "{part}: {error}");
        assert_eq!(
            count(&mut *session, "t"),
            1,
            "{part}: nothing of a failed statement stays"
        );
        assert_eq!(
            session.write("insert into t values (99)", 1).unwrap(),
            1,
            "{part}"
        );
        assert_eq!(
            session.write("delete from t where id = 99", 1).unwrap(),
            1,
            "{part}"
        );
    }
    let mut other = server.connect().unwrap();
    let error = other.query_prepared(insert, &[1]).unwrap_err();
    assert!(error.message.contains("did not prepare"), "{error}");
    assert!(other.write("delete from t", 1).is_ok());
}

#[test]
fn a_full_database_is_full_and_recovers() {
    let (dir, server) = server(&[
        ("journal_mode", "wal"),
        ("synchronous", "off"),
        ("max_page_count", "40"),
    ]);
    let mut session = server.connect().unwrap();
    session
        .define("create table t (id integer primary key, s text)")
        .unwrap();
    let fill = "insert into t (s) select hex(randomblob(500)) from (values (1),(2),(3),(4),(5))";
    let mut rows = 0;
    let error = loop {
        match session.write(fill, 5) {
            Ok(written) => rows += written,
            Err(error) => break error,
        }
        assert!(rows < 1000, "40 pages cannot hold this");
    };
    assert_eq!((error.class, error.code), (ErrorClass::Full, 13), "{error}");
    assert!(error.statement.starts_with("insert into t (s)"), "{error}");
    assert!(rows > 0);
    assert_eq!(
        count(&mut *session, "t"),
        rows as i64,
        "the statement that did not fit left nothing"
    );
    assert_eq!(
        session.write("delete from t where id <= 10", 10).unwrap(),
        10
    );
    assert_eq!(session.write(fill, 5).unwrap(), 5, "room again");
    drop(dir);
}

#[test]
fn another_ones_lock_is_busy_at_once_and_the_session_stays_usable() {
    for pairs in [WAL, DELETE] {
        let (dir, server) = server(pairs);
        let mut session = server.connect().unwrap();
        session
            .define("create table t (id integer primary key)")
            .unwrap();
        let insert = session.prepare("insert into t values (?)").unwrap();

        let holder = foreign(&dir);
        holder
            .execute_batch("begin immediate; insert into t values (100)")
            .unwrap();
        for _ in 0..3 {
            let error = session.write("insert into t values (1)", 1).unwrap_err();
            assert_eq!((error.class, error.code), (ErrorClass::Busy, 5), "{error}");
            assert!(error.class.is_retryable());
            assert_eq!(
                session.write_prepared(insert, &[1], 1).unwrap_err().class,
                ErrorClass::Busy
            );
        }
        assert_eq!(
            session.query("select * from t").unwrap(),
            0,
            "readers go on"
        );
        holder.execute_batch("commit").unwrap();
        assert_eq!(session.write_prepared(insert, &[1], 1).unwrap(), 1);
        assert_eq!(count(&mut *session, "t"), 2);
    }
}

#[test]
fn a_reader_in_the_way_of_a_commit_is_busy_and_rolled_back() {
    let (dir, server) = server(DELETE);
    let mut session = server.connect().unwrap();
    session
        .define("create table t (id integer primary key)")
        .unwrap();
    let reader = foreign(&dir);
    reader.execute_batch("begin; select * from t").unwrap();
    assert_eq!(
        session
            .write("insert into t values (1)", 1)
            .unwrap_err()
            .class,
        ErrorClass::Busy
    );
    reader.execute_batch("commit").unwrap();
    // Were the transaction still open, BEGIN would fail, and another connection could not write.
    foreign(&dir)
        .execute_batch("insert into t values (2)")
        .unwrap();
    assert_eq!(session.write("insert into t values (1)", 1).unwrap(), 1);
    assert_eq!(count(&mut *session, "t"), 2);
}

#[test]
fn define_reports_a_lock_and_works_afterwards() {
    let (dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    let holder = foreign(&dir);
    holder
        .execute_batch("begin immediate; create table theirs (a)")
        .unwrap();
    assert_eq!(
        session.define("create table ours (a)").unwrap_err().class,
        ErrorClass::Busy
    );
    holder.execute_batch("commit").unwrap();
    session.define("create table ours (a)").unwrap();
    assert_eq!(
        count(&mut *session, "ours") + count(&mut *session, "theirs"),
        0
    );
}

/// What a worker of the load loop does with a lock.
fn until_done(mut attempt: impl FnMut() -> Result<u64, SqlError>, deadline: Instant) -> u64 {
    let mut pause = Duration::from_micros(50);
    loop {
        match attempt() {
            Ok(rows) => return rows,
            Err(error) if error.class.is_retryable() && Instant::now() < deadline => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_micros(500));
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Two writers in a closed loop, and a reader that never pauses, on one file.
#[test]
fn both_writers_make_progress_and_no_row_is_lost() {
    const TRANSACTIONS: i64 = 150;
    for pairs in [WAL, DELETE] {
        let (_dir, server) = server(pairs);
        server
            .connect()
            .unwrap()
            .define("create table t (id integer primary key, writer integer, n integer)")
            .unwrap();
        let deadline = Instant::now() + DEADLINE;
        let together = Barrier::new(3);
        let are_writers_done = AtomicBool::new(false);
        let (inserted, deleted) = thread::scope(|scope| {
            let (server, together, are_writers_done) = (&server, &together, &are_writers_done);
            let writers: Vec<_> = (0..2)
                .map(|writer| {
                    scope.spawn(move || {
                        write_and_delete(&**server, writer, TRANSACTIONS, together, deadline)
                    })
                })
                .collect();
            let reader = scope.spawn(move || {
                let mut session = server.connect().unwrap();
                let query = session
                    .prepare("select * from t where id >= ? order by id limit 10")
                    .unwrap();
                together.wait();
                while !are_writers_done.load(Ordering::Relaxed) {
                    until_done(|| session.query_prepared(query, &[1]), deadline);
                }
            });
            // A writer that fails must not leave the reader running for ever.
            let parts: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
            are_writers_done.store(true, Ordering::Relaxed);
            reader.join().unwrap();
            parts
                .into_iter()
                .map(Result::unwrap)
                .fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
        });
        assert_eq!((inserted, deleted), (900, 600));
        let mut session = server.connect().unwrap();
        assert_eq!(count(&mut *session, "t"), 300);
        assert_eq!(
            session.query("select * from t where n >= 50").unwrap(),
            300,
            "each writer deleted its oldest"
        );
    }
}

/// One writer: inserts three rows and deletes its two oldest, as two transactions, `rounds` times.
fn write_and_delete(
    server: &dyn Server,
    writer: i64,
    rounds: i64,
    together: &Barrier,
    deadline: Instant,
) -> (u64, u64) {
    let mut session = server.connect().unwrap();
    let delete = session
        .prepare(
            "delete from t where id in (select id from t where writer = ? order by id limit ?)",
        )
        .unwrap();
    together.wait();
    let (mut inserted, mut deleted) = (0, 0);
    for n in 0..rounds {
        let sql = format!(
            "insert into t (writer, n) values ({writer}, {n}), ({writer}, {n}), ({writer}, {n})"
        );
        inserted += until_done(|| session.write(&sql, 3), deadline);
        deleted += until_done(|| session.write_prepared(delete, &[writer, 2], 2), deadline);
    }
    (inserted, deleted)
}

#[test]
fn drain_analyzes_and_takes_the_log_back() {
    let (dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session
        .define("create table \"a\"\"b\" (id integer primary key, n integer)")
        .unwrap();
    session.define("create index i on \"a\"\"b\" (n)").unwrap();
    session
        .write("insert into \"a\"\"b\" (n) values (1), (2), (2)", 3)
        .unwrap();
    let actions = server
        .drain(
            &["a\"b".to_owned()],
            &DrainLimits::new(Instant::now(), Instant::now() + DEADLINE, &|| false),
        )
        .unwrap();
    let names: Vec<_> = actions
        .iter()
        .map(|action| action.action.as_str())
        .collect();
    assert_eq!(
        names,
        ["ANALYZE \"a\"\"b\"", "PRAGMA wal_checkpoint(TRUNCATE)"]
    );
    assert!(
        actions[1]
            .result
            .starts_with("busy 0, log 0, checkpointed 0; wal bytes "),
        "{actions:?}"
    );
    assert!(actions[1].result.ends_with(" -> 0"), "{actions:?}");
    assert_eq!(server.counters().unwrap()["wal_bytes"], 0);
    assert_eq!(
        server
            .connect()
            .unwrap()
            .query_integer("select count(*) from sqlite_stat1 where idx = 'i'")
            .unwrap(),
        Some(1)
    );

    // A reader of the old state keeps the log busy: the drain ends at its deadline all the same,
    // and says what is left.
    let reader = foreign(&dir);
    reader
        .execute_batch("begin; select * from \"a\"\"b\"")
        .unwrap();
    session
        .write("insert into \"a\"\"b\" (n) values (9)", 1)
        .unwrap();
    let actions = server
        .drain(
            &[],
            &DrainLimits::new(
                Instant::now(),
                Instant::now() + Duration::from_millis(80),
                &|| false,
            ),
        )
        .unwrap();
    assert!(
        actions[0].result.starts_with("busy 1, ")
            && actions[0].result.contains("stayed busy until the deadline"),
        "{actions:?}"
    );
    reader.execute_batch("commit").unwrap();

    let actions = server
        .drain(
            &["nothing".to_owned()],
            &DrainLimits::new(Instant::now(), Instant::now(), &|| false),
        )
        .unwrap();
    assert!(
        actions
            .iter()
            .all(|action| action.result == "left out: the deadline had passed"),
        "{actions:?}"
    );
    let message = server
        .drain(
            &["nothing".to_owned()],
            &DrainLimits::new(Instant::now(), Instant::now() + DEADLINE, &|| false),
        )
        .unwrap_err()
        .message;
    assert!(message.contains("no such table: nothing"), "{message}");
}

#[test]
fn drain_leaves_out_what_a_lock_keeps_it_from() {
    let (dir, server) = server(WAL);
    server
        .connect()
        .unwrap()
        .define("create table t (a)")
        .unwrap();
    let holder = foreign(&dir);
    holder.execute_batch("begin immediate").unwrap();
    let actions = server
        .drain(
            &["t".to_owned()],
            &DrainLimits::new(
                Instant::now(),
                Instant::now() + Duration::from_millis(50),
                &|| false,
            ),
        )
        .unwrap();
    assert!(
        actions[0].result.contains("another writer held the lock"),
        "{actions:?}"
    );
}

#[test]
fn drain_without_a_wal_says_so() {
    let (_dir, server) = server(DELETE);
    let actions = server
        .drain(
            &[],
            &DrainLimits::new(Instant::now(), Instant::now() + DEADLINE, &|| false),
        )
        .unwrap();
    assert!(
        actions[0].result.contains("journal_mode is delete"),
        "{actions:?}"
    );
}

/// Loads the Insert Benchmark's table, indexes it, and then replaces as many rows by insert and
/// delete: the most space it takes on the way must fit the engine's estimate, and not by far too
/// much.
#[test]
fn bytes_per_row_is_cautious_but_not_wild() {
    const ROWS: u64 = 50_000;
    let (dir, server) = server(WAL);
    let mut session = server.connect().unwrap();
    session
        .define(
            "create table pi1 (transactionid integer primary key, dateandtime text, cashregisterid \
            integer not null, customerid integer not null, productid integer not null, price \
            integer not null, data text)",
        )
        .unwrap();
    // The specified ranges; 15 characters is the mean length of `data`.
    let insert = |rows: u64| {
        format!(
            "with recursive c(x) as (select 1 union all select x + 1 from c where x < {rows}) \
            insert into pi1 (dateandtime, cashregisterid, customerid, productid, price, data) \
            select '2026-06-17 01:23:08', abs(random() % 1000), abs(random() % 100000), \
            abs(random() % 10000), abs(random() % 500), 'aaaaaaaaaa' || substr(hex(randomblob(3)), \
            1, 5) from c"
        )
    };
    for _ in 0..ROWS / 1000 {
        session.write(&insert(1000), 1000).unwrap();
    }
    for (name, columns) in [
        ("marketsegment", "productid, customerid, price"),
        ("registersegment", "cashregisterid, customerid, price"),
        ("pdc", "price, dateandtime, customerid"),
    ] {
        session
            .define(&format!("create index pi1_{name} on pi1 ({columns})"))
            .unwrap();
    }
    let directory_bytes = || plimsoll_engine::directory_bytes(dir.path()).unwrap();
    let (loaded, mut largest) = (server.database_bytes().unwrap(), directory_bytes());
    for _ in 0..ROWS / 50 {
        session.write(&insert(50), 50).unwrap();
        session
            .write(
                "delete from pi1 where transactionid in (select transactionid from pi1 order by \
                transactionid limit 50)",
                50,
            )
            .unwrap();
        largest = largest.max(directory_bytes());
    }
    let replaced = server.database_bytes().unwrap();
    assert_eq!(count(&mut *session, "pi1"), ROWS as i64);
    println!(
        "bytes per row: loaded {}, replaced {}, directory at most {}",
        loaded / ROWS,
        replaced / ROWS,
        largest / ROWS
    );

    let estimate = plimsoll_core::engines::EngineName::Sqlite
        .facts()
        .bytes_per_row
        * ROWS;
    assert!(
        estimate >= largest,
        "{} bytes a row with the log, estimated {}",
        largest / ROWS,
        estimate / ROWS
    );
    assert!(
        estimate < 4 * loaded,
        "{} bytes a row loaded, estimated {}",
        loaded / ROWS,
        estimate / ROWS
    );
}
