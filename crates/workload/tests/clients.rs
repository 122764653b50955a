//! The thin client and the full one are the same to a server: the same plan and seed leave the same
//! tables and send the same statements, as the server's own log has them.

mod log_support;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use log_support::*;
use plimsoll_core::engines::EngineName;
use plimsoll_core::seed::Draw;
use plimsoll_engine::{Server, SessionClient};
use plimsoll_workload::SharedServer;

const PATIENCE: Duration = Duration::from_secs(60);

/// Steps whose sessions each send the same sequence of statements in every run.
const WRITES: [&str; 4] = ["l.i0", "l.x", "l.i1", "l.i2"];
/// Here the writers do. The reader draws the same queries, but fills the time that the writers
/// take, which is never the same; with point queries it asks for rows by what the deleter has
/// reached.
const READ_WRITES: [&str; 2] = ["qr100", "qr500"];

/// Of a reader so many queries are compared.
const QUERIES: usize = 100;

type Parse = fn(&str) -> Vec<Logged>;

/// What each session of a step said, in an order that does not depend on who came first.
type Sessions = Vec<Vec<String>>;

/// What a run left behind.
struct Trace {
    /// Each step's sessions.
    steps: Vec<(&'static str, Sessions)>,
    /// Each table's rows and their hash.
    tables: Vec<(String, u64, Option<String>)>,
    /// Of the prepared statements outside the benchmark.
    answers: Vec<u64>,
}

/// Nothing is left out: at the beginning of a session both clients ask the same too. A family's log
/// has the number of the session, which the server gives, and PostgreSQL's the name of a prepared
/// statement, which a client may choose; the parsers keep neither in the text.
fn sessions(log: &str, parse: Parse) -> Sessions {
    let mut sessions: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for Logged { session, text } in parse(log) {
        sessions.entry(session).or_default().push(text);
    }
    let mut sessions: Sessions = sessions.into_values().collect();
    sessions.sort();
    sessions
}

fn trace(server: Box<dyn Server>, mut log: Log, parse: Parse) -> Trace {
    let server: SharedServer = Arc::new(server);
    let (mut run, steps) = benchmark(
        &server,
        "insert-benchmark",
        "duration = \"1s\"\nrows = 20_000\nwrite_rows = 10_000\n",
    );
    let mut traced = Vec::new();
    for name in WRITES.into_iter().chain(READ_WRITES) {
        let step = steps.iter().find(|step| step.name == name).unwrap();
        log.take();
        perform(&mut run, step);
        traced.push((name, sessions(&log.take(), parse)));
    }
    log.take();
    let answers = prepared_statements(&**server);
    traced.push(("prepared statements", sessions(&log.take(), parse)));
    let tables = run.verify(true).unwrap().into_iter().map(|check| {
        assert_eq!(check.found_rows, check.expected_rows, "{}", check.table);
        (check.table, check.found_rows, check.checksum)
    });
    let tables = tables.collect();
    drop(run);
    Arc::try_unwrap(server)
        .ok()
        .expect("every session is closed after its step")
        .stop(PATIENCE)
        .unwrap();
    Trace {
        steps: traced,
        tables,
        answers,
    }
}

/// Prepared reads and writes, of which the benchmark has some on PostgreSQL and none on MySQL.
/// Returns their counts of rows.
fn prepared_statements(server: &dyn Server) -> Vec<u64> {
    let mut session = server.connect().unwrap();
    let id = if server.sql().unwrap().forms().engine() == EngineName::Mysql {
        "bigint auto_increment"
    } else {
        "bigserial"
    };
    session
        .define(&format!(
            "create table prepared (id {id} primary key, a bigint, b int, c smallint){}",
            server.sql().unwrap().table_suffix()
        ))
        .unwrap();
    let mut draw = Draw::new(7, &["prepared"]);
    let insert = session
        .prepare("insert into prepared (a, b, c) values (?,?,?),(?,?,?)")
        .unwrap();
    let update = session
        .prepare("update prepared set a = ? where b >= ?")
        .unwrap();
    let delete = session
        .prepare("delete from prepared where id = ?")
        .unwrap();
    let select = session
        .prepare("select a, b, c from prepared where id in (?,?,?) order by id")
        .unwrap();
    let none = session.prepare("select count(*) from prepared").unwrap();
    let mut answers = Vec::new();
    for n in 0..200_i64 {
        let mut below = |bound| draw.below(bound) as i64;
        let row = [
            i64::MIN + n,
            -below(1 << 31),
            below(1 << 15),
            i64::MAX - n,
            below(1 << 31),
            -below(1 << 15),
        ];
        answers.push(session.write_prepared(insert, &row, 2).unwrap());
        answers.push(
            session
                .query_prepared(select, &[below(300), below(300), n])
                .unwrap(),
        );
        if n % 10 == 0 {
            answers.push(
                session
                    .write_prepared(update, &[n, below(1 << 31)], 0)
                    .unwrap(),
            );
            answers.push(session.write_prepared(delete, &[below(300)], 1).unwrap());
            answers.push(session.query_prepared(none, &[]).unwrap());
        }
    }
    let mut rows = 0;
    session
        .for_each_row("select id, a, b, c from prepared order by id", &mut |row| {
            rows += row.join("|").len() as u64
        })
        .unwrap();
    answers.push(rows);
    session.define("drop table prepared").unwrap();
    answers
}

/// The reader's session is cut off where the comparison ends.
fn cut_off_reader(mut sessions: Sessions) -> Sessions {
    let is_query = |text: &String| text.contains("ORDER BY") && text.contains(" LIMIT 10");
    for session in &mut sessions {
        if let Some(first) = session.iter().position(is_query) {
            assert!(
                session.len() - first >= QUERIES,
                "the reader came to {} queries",
                session.len() - first
            );
            session.truncate(first + QUERIES);
        }
    }
    sessions.sort();
    sessions
}

fn compare(
    parse: Parse,
    mut start: impl FnMut(SessionClient) -> Option<(Box<dyn Any>, Box<dyn Server>, Log)>,
) {
    let mut traces = Vec::new();
    for client in [SessionClient::Full, SessionClient::Thin] {
        let Some((_folders, server, log)) = start(client) else {
            return;
        };
        let is_thin = server.effective_settings().unwrap()["session_client"] == "thin";
        assert_eq!(is_thin, client == SessionClient::Thin);
        traces.push(trace(server, log, parse));
    }
    let [full, thin] = <[Trace; 2]>::try_from(traces).ok().unwrap();
    for ((step, full), (_, thin)) in full.steps.into_iter().zip(thin.steps) {
        let (full, thin) = if READ_WRITES.contains(&step) {
            (cut_off_reader(full), cut_off_reader(thin))
        } else {
            (full, thin)
        };
        assert_eq!(full.len(), thin.len(), "{step}: sessions");
        for (full, thin) in full.iter().zip(&thin) {
            let first = full.iter().zip(thin).position(|(full, thin)| full != thin);
            if let Some(first) = first {
                panic!(
                    "{step}: statement {first} of a session\nfull: {}\nthin: {}",
                    full[first], thin[first]
                );
            }
            let (longer, shorter) = if full.len() > thin.len() {
                (full, thin)
            } else {
                (thin, full)
            };
            assert_eq!(
                longer.len(),
                shorter.len(),
                "{step}: only one client sends {:?}",
                longer.get(shorter.len())
            );
        }
        // Each has sent what it was told to: 200 inserts and more.
        let statements: usize = thin.iter().map(Vec::len).sum();
        let least = match step {
            "l.i0" => 200,
            "l.x" => 2,
            "l.i1" => 2 * 160,
            "l.i2" => 2 * 400,
            "qr100" => QUERIES + 2 * 2,
            "qr500" => QUERIES + 2 * 10,
            _ => 400,
        };
        assert!(statements > least, "{step}: {statements} statements");
    }
    assert_eq!(full.tables, thin.tables);
    assert!(
        full.tables
            .iter()
            .all(|(_, rows, hash)| *rows > 0 && hash.is_some())
    );
    assert_eq!(full.answers, thin.answers);
}

fn compare_mysql(test: &str, build: &str) {
    compare(parse_mysql, |client| {
        let (folders, server, log) = mysql_through(client, test, build, "innodb")?;
        Some((Box::new(folders), server, log))
    });
}

fn compare_postgres(test: &str, major: &str) {
    compare(parse_postgres, |client| {
        let (folders, server, log) = postgres_through(client, test, major)?;
        Some((Box::new(folders), server, log))
    });
}

#[test]
fn both_clients_are_the_same_to_mysql_5_7() {
    compare_mysql("clients_mysql_5_7", mysql_support::MYSQL_OLD);
}

#[test]
fn both_clients_are_the_same_to_mysql_9() {
    compare_mysql("clients_mysql_9", mysql_support::MYSQL_NEW);
}

#[test]
fn both_clients_are_the_same_to_mariadb() {
    compare_mysql("clients_mariadb", mysql_support::MARIADB);
}

#[test]
fn both_clients_are_the_same_to_postgres_9_6() {
    compare_postgres("clients_postgres_9_6", "9.6");
}

#[test]
fn both_clients_are_the_same_to_postgres_18() {
    compare_postgres("clients_postgres_18", "18");
}
