//! The sysbench microbenchmarks on real servers: the statements of every event, as the server
//! itself counts them, and rows that are the same everywhere.

#![allow(
    clippy::duplicate_mod,
    reason = "the helpers of both families bring the same third file"
)]

#[path = "../../engine/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "../../engine/tests/postgres_support/mod.rs"]
mod postgres_support;
mod sysbench_support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::{Plan, SysbenchWork, TestKind, Work, Workload};
use plimsoll_workload::{SharedServer, WorkloadRun};
use sysbench_support::run_one;

/// Of each test.
const EVENTS: u64 = 7;

fn workload(text: &str) -> Workload {
    let text = format!(
        "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"mysql\"]\nconfigs = [\"c\"]\nwait \
        = \"0s\"\n{text}"
    );
    Plan::parse("t.toml", &text)
        .unwrap()
        .cells
        .remove(0)
        .workload
}

/// Runs `test` on the oldest and the newest MySQL, on a MariaDB, and on the oldest and the newest
/// PostgreSQL, as far as they are here.
fn on_each(name: &str, test: impl Fn(SharedServer)) {
    for wanted in [
        mysql_support::MYSQL_OLD,
        mysql_support::MYSQL_NEW,
        mysql_support::MARIADB,
    ] {
        if let Some(build) = mysql_support::build(&format!("sysbench_servers::{name}"), wanted) {
            let (_folders, server) = mysql_support::server(&build, &[]);
            test(Arc::new(server));
        }
    }
    for major in postgres_support::MAJORS {
        if let Some(build) = postgres_support::build(&format!("sysbench_servers::{name}"), major) {
            let (_folders, server) = postgres_support::quick(
                &build,
                &[("shared_preload_libraries", "pg_stat_statements")],
            );
            test(Arc::new(server));
        }
    }
}

fn engine_of(server: &SharedServer) -> EngineName {
    server.sql().unwrap().forms().engine()
}

/// Of PostgreSQL, e.g. 160004; 0 of others.
fn version_num(server: &SharedServer) -> u32 {
    let settings = server.effective_settings().unwrap();
    let number = settings.get("server_version_num");
    number.map_or(0, |number| number.parse().unwrap())
}

/// Statements that read, write, and begin or end transactions, as the server has counted them so
/// far. MySQL takes a session off its list before it adds the session's counts to the totals, so
/// totals are read until three readings agree.
fn counted(server: &SharedServer) -> [i64; 3] {
    let deadline = Instant::now() + Duration::from_secs(10);
    let readings = if engine_of(server) == EngineName::Mysql {
        3
    } else {
        1
    };
    let (mut last, mut agreed) = (counted_now(server), 1);
    while agreed < readings {
        assert!(
            Instant::now() < deadline,
            "counters do not settle: {last:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
        let now = counted_now(server);
        agreed = if now == last { agreed + 1 } else { 1 };
        last = now;
    }
    last
}

fn counted_now(server: &SharedServer) -> [i64; 3] {
    if engine_of(server) == EngineName::Mysql {
        let counters = server.counters().unwrap();
        let sum = |names: &[&str]| names.iter().map(|name| counters[*name]).sum();
        return [
            sum(&["com_select"]),
            sum(&["com_update", "com_delete", "com_insert"]),
            sum(&["com_begin", "com_commit"]),
        ];
    }
    let mut session = server.connect().unwrap();
    let mut counts = [0; 3];
    session
        .for_each_row(
            "select lower(query), calls from pg_stat_statements",
            &mut |columns| {
                let (query, calls) = (columns[0], columns[1].parse::<i64>().unwrap());
                let kind = match query.split_whitespace().next().unwrap_or_default() {
                    "select" if query.contains("sbtest") => 0,
                    "update" | "delete" | "insert" if query.contains("sbtest") => 1,
                    "begin" | "commit" => 2,
                    _ => return,
                };
                counts[kind] += calls;
            },
        )
        .unwrap();
    counts
}

fn check_statements(server: &SharedServer, text: &str) {
    if engine_of(server) == EngineName::Postgres {
        server
            .connect()
            .unwrap()
            .define("create extension if not exists pg_stat_statements")
            .unwrap();
    }
    let workload = workload(text);
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    for step in workload.steps() {
        let Work::Sysbench(SysbenchWork::Test(test)) = step.work else {
            run_one(&mut run, step, 0);
            continue;
        };
        // What connecting and preparing take, and asking for the counters.
        let before = counted(server);
        run_one(&mut run, step, 0);
        let around = counted(server);
        let (outcome, notes) = run_one(&mut run, step, EVENTS);
        let after = counted(server);
        let mut found: Vec<i64> = (0..3)
            .map(|i| (after[i] - around[i]) - (around[i] - before[i]))
            .collect();
        let mix = test.kind.statements();
        let events = EVENTS as i64 * i64::from(step.clients);
        let wanted =
            [mix.reads, mix.writes, mix.others].map(|per_event| i64::from(per_event) * events);
        if version_num(server) >= 140_000 && found[2] == 2 * i64::from(step.clients) {
            // Since 14 pg_stat_statements sees a prepared `BEGIN` or `COMMIT` in its first run
            // only; in text it sees them all.
            found[2] = wanted[2];
        }
        assert_eq!(
            found,
            wanted,
            "{} on {:?}: what the server counted",
            step.name,
            engine_of(server)
        );
        // Ours are the same, but that a delete without a row is not a write.
        let ours = ["statements_read", "statements_write", "statements_other"]
            .map(|name| notes[name] as i64);
        match test.kind {
            TestKind::Delete => assert_eq!(
                ours,
                [
                    0,
                    outcome.operations[0].rows as i64,
                    events - outcome.operations[0].rows as i64
                ]
            ),
            _ => assert_eq!(
                ours,
                wanted,
                "{} on {:?}: what we counted",
                step.name,
                engine_of(server)
            ),
        }
    }
    for check in run.verify(false).unwrap() {
        assert_eq!(check.found_rows, check.expected_rows, "{}", check.table);
    }
}

const SMALL: &str = "[sizes]\nrows = \"10K\"\ntables = 2\n";

#[test]
fn servers_count_the_statements_of_the_definition() {
    on_each("servers_count_the_statements_of_the_definition", |server| {
        check_statements(&server, SMALL)
    });
}

#[test]
fn statements_in_text_are_the_same_statements() {
    on_each("statements_in_text_are_the_same_statements", |server| {
        check_statements(&server, &format!("{SMALL}prepared = false\n"))
    });
}

#[test]
fn every_engine_is_loaded_with_the_same_rows_in_either_way() {
    let checksums = std::cell::RefCell::new(BTreeMap::<String, Vec<String>>::new());
    let name = "every_engine_is_loaded_with_the_same_rows_in_either_way";
    on_each(name, |server| {
        // Two tables by two connections and by one, and as sysbench does.
        for load in [
            "fast\"",
            "fast\"\n[step.prepare]\nclients = 1 #",
            "classic\"",
        ] {
            // PostgreSQL pads `char`, the others do not.
            let family = if engine_of(&server) == EngineName::Postgres {
                "postgres"
            } else {
                "mysql"
            };
            let found = load_and_drop(&server, load);
            let known = checksums
                .borrow_mut()
                .entry(family.to_owned())
                .or_insert_with(|| Vec::clone(&found))
                .clone();
            assert_eq!(found, known, "{load} on {:?}", engine_of(&server));
        }
    });
}

/// Loads two tables, and drops them; the checksums of what was in them.
fn load_and_drop(server: &SharedServer, load: &str) -> Vec<String> {
    let workload = workload(&format!(
        "tests = [\"point-query\"]\n{}load = \"{load}\n",
        SMALL.replace("10K", "5K")
    ));
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 0);
    let checks = run.verify(true).unwrap();
    assert!(
        checks
            .iter()
            .all(|check| check.found_rows == 5000 && check.expected_rows == 5000),
        "{checks:?}"
    );
    drop(run);
    // The engine numbers new rows behind the loaded ones.
    let mut session = server.connect().unwrap();
    session
        .write("insert into sbtest2 (k, c, pad) values (1, '', '')", 1)
        .unwrap();
    assert_eq!(
        session
            .query_integer("select max(id) from sbtest2")
            .unwrap(),
        Some(5001),
        "{load} on {:?}",
        engine_of(server)
    );
    for table in ["sbtest1", "sbtest2"] {
        session.define(&format!("drop table {table}")).unwrap();
    }
    let checksums = checks.into_iter().map(|check| check.checksum.unwrap());
    checksums.collect()
}

/// Clients that delete and insert the same rows meet, and none of them fails.
#[test]
fn clients_that_meet_try_again() {
    on_each("clients_that_meet_try_again", |server| {
        let workload = workload(
            "tests = [\"write-only\", \"read-write_range=10\", \"update-inlist\", \
            \"update-one\"]\n[sizes]\nrows = 60\nclients = 4\n\
             distribution = \"zipfian\"\n",
        );
        let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
        for step in workload.steps() {
            let (outcome, _) = run_one(&mut run, step, 150);
            if !step.makes_data() {
                assert_eq!(
                    (outcome.operations[0].ok, outcome.operations[0].failed),
                    (600, 0),
                    "{}",
                    step.name
                );
            }
        }
        for check in run.verify(false).unwrap() {
            assert_eq!(
                check.found_rows,
                check.expected_rows,
                "{} on {:?}",
                check.table,
                engine_of(&server)
            );
        }
    });
}

/// What sysbench itself does in so many events of one of its scripts, as the server counts it.
fn counted_of_sysbench(server: &SharedServer, data: &Path, script: &str, events: u64) -> [i64; 3] {
    let before = counted(server);
    // What servers report about their paths has the data directory left out.
    let socket =
        server.effective_settings().unwrap()["socket"].replace("DATA", data.to_str().unwrap());
    let output = std::process::Command::new("sysbench")
        .args([
            script,
            "--db-driver=mysql",
            "--mysql-user=root",
            "--mysql-db=ib",
            "--tables=2",
            "--table-size=10000",
        ])
        .args(["--rand-type=uniform", "--threads=1", "--time=0"])
        .arg(format!("--events={events}"))
        .arg(format!("--mysql-socket={socket}"))
        .arg("run")
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{script}: {}",
        String::from_utf8_lossy(&said)
    );
    let after = counted(server);
    std::array::from_fn(|i| after[i] - before[i])
}

/// Five of sysbench's own tests on our tables send what ours send.
#[test]
fn sysbench_sends_the_same_statements() {
    const NAME: &str = "sysbench_servers::sysbench_sends_the_same_statements";
    if std::process::Command::new("sysbench")
        .arg("--version")
        .output()
        .is_err()
    {
        plimsoll_testkit::skip(NAME, "no sysbench; install it");
        return;
    }
    for wanted in [mysql_support::MYSQL_OLD, mysql_support::MARIADB] {
        let Some(build) = mysql_support::build(NAME, wanted) else {
            continue;
        };
        let (folders, server) = mysql_support::server(&build, &[]);
        let server: SharedServer = Arc::new(server);
        let data = folders.data.path();
        let tests = [
            ("point-query", "oltp_point_select"),
            ("read-only_range=100", "oltp_read_only"),
            ("update-index", "oltp_update_index"),
            ("update-nonindex", "oltp_update_non_index"),
            ("write-only", "oltp_write_only"),
        ];
        let names = tests.map(|(name, _)| format!("{name:?}")).join(", ");
        let workload = workload(&format!("tests = [{names}]\n{SMALL}"));
        let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
        run_one(&mut run, &workload.steps()[0], 0);
        for (name, script) in tests {
            let step = workload
                .steps()
                .iter()
                .find(|step| step.name == name)
                .unwrap();
            let ours = |run: &mut WorkloadRun, events: u64| -> [i64; 3] {
                let before = counted(&server);
                run_one(run, step, events);
                let after = counted(&server);
                std::array::from_fn(|i| after[i] - before[i])
            };
            // The difference of two runs: what starting takes is in both.
            let difference = |more: [i64; 3], less: [i64; 3]| -> [i64; 3] {
                std::array::from_fn(|i| more[i] - less[i])
            };
            let of_sysbench = difference(
                counted_of_sysbench(&server, data, script, 50),
                counted_of_sysbench(&server, data, script, 20),
            );
            let of_ours = difference(ours(&mut run, 50), ours(&mut run, 20));
            assert_eq!(of_ours, of_sysbench, "{name} on {}", build.name);
        }
    }
}

/// As a server of a group is set up. Tests ask for the ids from 1 to the number of rows.
#[test]
fn ids_are_those_of_the_rows_however_an_engine_numbers() {
    on_each(
        "ids_are_those_of_the_rows_however_an_engine_numbers",
        |server| {
            let mut session = server.connect().unwrap();
            if engine_of(&server) != EngineName::Postgres {
                session
                    .define("set global auto_increment_increment = 7")
                    .unwrap();
            }
            let workload =
                workload("tests = [\"point-query\"]\n[sizes]\nrows = \"5K\"\ntables = 1\n");
            let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
            run_one(&mut run, &workload.steps()[0], 0);
            let last = session.query_integer("select max(id) from sbtest1");
            assert_eq!(last.unwrap(), Some(5000), "{:?}", engine_of(&server));
            session.define("drop table sbtest1").unwrap();
        },
    );
}

/// Whoever loads a table with several connections leaves it to time which rows come to lie on a page:
/// in MariaDB `hot-points` was 2 % slower on one load than on another.
#[test]
fn every_load_lays_a_table_out_alike() {
    on_each("every_load_lays_a_table_out_alike", |server| {
        let [first, again] = [(); 2].map(|()| layout(&server));
        assert!(first.len() > 100, "{} pages or rows", first.len());
        assert!(first == again, "on {:?}", engine_of(&server));
    });
}

/// What lies on the pages of a table that is loaded for it, as many connections as a plan has.
fn layout(server: &SharedServer) -> Vec<String> {
    let workload = workload(
        "tests = [\"point-query\"]\n[sizes]\nrows = \"40K\"\ntables = 1\n[step.prepare]\nclients = 4\n",
    );
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 0);
    drop(run);
    let mut session = server.connect().unwrap();
    let pages = match engine_of(server) {
        EngineName::Postgres => "select ctid, id from sbtest1 order by ctid",
        _ => {
            "select page_number, number_records from information_schema.innodb_buffer_page \
             where table_name like '%sbtest1%' and index_name = 'PRIMARY' order by page_number"
        }
    };
    let mut found = Vec::new();
    let mut keep = |row: &[&str]| found.push(row.join(" "));
    session.for_each_row(pages, &mut keep).unwrap();
    session.define("drop table sbtest1").unwrap();
    found
}

/// Tables are filled in the order of their ids by one connection, and indexed when they are full:
/// their trees have as many pages.
#[test]
fn trees_are_as_large_after_a_fast_load_as_after_a_classic_one() {
    let name = "trees_are_as_large_after_a_fast_load_as_after_a_classic_one";
    on_each(name, |server| {
        for tables in [2, 1] {
            let [classic, fast] = ["classic", "fast"].map(|load| pages(&server, tables, load));
            let name = format!("{tables} tables on {:?}", engine_of(&server));
            assert!(classic > 500, "{name}: {classic} pages");
            assert!(
                (fast - classic).abs() * 50 <= classic,
                "{name}: {fast} pages after a fast load, {classic} after a classic one"
            );
        }
    });
}

/// Pages of the first table that hold rows or entries after a load: InnoDB reserves others in
/// extents of 64, PostgreSQL 20 for each connection that waits to extend the table. The tables are
/// dropped.
fn pages(server: &SharedServer, tables: u32, load: &str) -> i64 {
    let workload = workload(&format!(
        "tests = [\"point-query\"]\n[sizes]\nrows = \"40K\"\ntables = {tables}\nload = \
        \"{load}\"\n"
    ));
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 0);
    drop(run);
    let mut session = server.connect().unwrap();
    let (analyze, count) = match engine_of(server) {
        EngineName::Postgres => (
            "vacuum analyze sbtest1",
            "select pg_indexes_size('sbtest1') / 8192 + (select count(distinct \
            (ctid::text::point)[0]) from sbtest1)",
        ),
        _ => (
            "analyze table sbtest1",
            "select cast(sum(stat_value) as signed) from mysql.innodb_index_stats where \
            table_name = 'sbtest1' and stat_name = 'n_leaf_pages'",
        ),
    };
    session.query(analyze).unwrap();
    let found = session.query_integer(count).unwrap().unwrap();
    for table in 1..=tables {
        session
            .define(&format!("drop table sbtest{table}"))
            .unwrap();
    }
    found
}
