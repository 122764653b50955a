//! The shipped example of a workload file on real servers.

#![allow(
    clippy::duplicate_mod,
    reason = "the helpers of both families bring the same third file"
)]

#[path = "../../engine/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "../../engine/tests/postgres_support/mod.rs"]
mod postgres_support;
mod shop_support;
mod sysbench_support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_core::engines::EngineName;
use plimsoll_workload::{SharedServer, WorkloadRun};
use shop_support::{rows, run_shop, shop, workload};
use sysbench_support::run_one;

/// The example with prepared statements and in text; both leave the same rows, whoever loads which
/// part.
fn check(start: impl Fn() -> SharedServer) -> Vec<String> {
    let steps = "steps = [\"day\", \"reads\", \"buy\", \"pay\"]\n";
    let sums = [
        "",
        "[sizes]\nprepared = false\nload = \"classic\"\n",
        "[step.load]\nclients = 13\n",
    ]
    .map(|text| {
        let server = start();
        let sums = run_shop(&server, &format!("{steps}{text}"));
        assert_eq!(
            rows(&server, "select min(id) from purchase where id > 5000"),
            ["5001"]
        );
        sums
    });
    assert_eq!((&sums[1], &sums[2]), (&sums[0], &sums[0]));
    reads_secondary_indexes_after_a_start(start());
    let server = start();
    // Clients that meet try again, and no row is lost.
    run_shop(&server, &format!("{steps}[sizes]\nclients = 4\n"));
    let [found, distinct] = ["count(*)", "count(distinct id)"]
        .map(|what| rows(&server, &format!("select {what} from purchase")));
    assert_eq!(found, distinct);
    sums.into_iter().next().unwrap()
}

/// What is read after a start has the rows of secondary indexes, by the server's own count of rows
/// that it read by an index.
fn reads_secondary_indexes_after_a_start(server: SharedServer) {
    let workload = shop("");
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 60);
    let read_by_index = || {
        let count = match server.sql().unwrap().forms().engine() {
            EngineName::Postgres => {
                "select sum(idx_tup_read) from pg_stat_user_indexes where indexrelname in \
                ('customer_region', 'purchase_customer_id')"
            }
            _ => "show global status like 'handler_read_next'",
        };
        rows(&server, count)[0]
            .rsplit('|')
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = read_by_index();
    run.read_all(&server).unwrap();
    // PostgreSQL's counts may come later than the answer.
    let deadline = Instant::now() + Duration::from_secs(20);
    let (customers, purchases) = (2_000, 5_000);
    while read_by_index() < before + customers + purchases - 2 {
        assert!(
            Instant::now() < deadline,
            "{} rows were read by secondary indexes",
            read_by_index() - before
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_example_runs_on_mysql_and_mariadb() {
    let mut found: Vec<Vec<String>> = Vec::new();
    for wanted in [
        mysql_support::MYSQL_OLD,
        mysql_support::MYSQL_NEW,
        mysql_support::MARIADB,
    ] {
        let Some(build) = mysql_support::build("workload_file_servers::mysql", wanted) else {
            continue;
        };
        let folders = std::cell::RefCell::new(Vec::new());
        found.push(check(|| {
            let (folder, server) = mysql_support::server(&build, &[]);
            folders.borrow_mut().push(folder);
            Arc::new(server)
        }));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
}

#[test]
fn the_example_runs_on_postgres() {
    let mut found: Vec<Vec<String>> = Vec::new();
    for major in postgres_support::MAJORS {
        let Some(build) = postgres_support::build("workload_file_servers::postgres", major) else {
            continue;
        };
        let folders = std::cell::RefCell::new(Vec::new());
        found.push(check(|| {
            let (folder, server) = postgres_support::quick(&build, &[]);
            folders.borrow_mut().push(folder);
            Arc::new(server)
        }));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
}

/// One row that must not be waited for, and, on PostgreSQL, a statement that reads what the config
/// says.
const SPOTS: &str = "
name = \"spots\"
[table.spot]
rows = 10
columns = [{ name = \"id\", type = \"bigint\" }]
[statement.take]
sql = \"SELECT id FROM spot WHERE id = :id FOR UPDATE NOWAIT\"
parameters.id = { constant = 1 }
[statement.share]
sql = \"SELECT id FROM spot WHERE id <= 3\"
postgres = \"SELECT id FROM spot WHERE id <= current_setting('bench.share')::int\"
[event.take]
statements = [\"take\", \"share\"]
[event.share]
statements = [\"share\"]
";

/// Somebody has the row when the step begins, and gives it back when it was asked for.
fn meets_a_row_that_is_taken(server: &SharedServer) {
    let is_postgres = server.sql().unwrap().forms().engine() == EngineName::Postgres;
    let workload = workload(SPOTS, "steps = [\"take\", \"share\"]\n");
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    let [load, take, share] = workload.steps() else {
        panic!()
    };
    run_one(&mut run, load, 0);
    let mut holder = server.connect().unwrap();
    holder.perform("begin").unwrap();
    holder
        .perform("select id from spot where id = 1 for update")
        .unwrap();
    // A try that was refused is taken back.
    let rollbacks = || {
        let sql = match is_postgres {
            true => {
                "select count(*) from pg_stat_activity where query = 'ROLLBACK' and state = 'idle'"
            }
            false => "show global status like 'com_rollback'",
        };
        rows(server, sql)[0]
            .rsplit('|')
            .next()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = rollbacks();
    let (outcome, _) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while rollbacks() == before && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
            }
            holder.perform("commit").unwrap();
        });
        run_one(&mut run, take, 3)
    });
    let met = &outcome.operations[0];
    assert!(
        met.ok == 3 && met.retried > 0 && met.failed == 0 && met.wait_ns > 0,
        "{met:?}"
    );
    assert_eq!(met.errors.keys().collect::<Vec<_>>(), ["busy"]);
    let (outcome, _) = run_one(&mut run, share, 5);
    assert_eq!(
        (outcome.operations[0].ok, outcome.operations[0].rows),
        (5, 15)
    );
}

#[test]
fn a_row_that_is_taken_is_waited_for_by_the_loop_on_every_server() {
    for wanted in [mysql_support::MYSQL_NEW, mysql_support::MARIADB] {
        let Some(build) = mysql_support::build("workload_file_servers::taken_rows", wanted) else {
            continue;
        };
        let (_folders, server) = mysql_support::server(&build, &[]);
        meets_a_row_that_is_taken(&Arc::new(server));
    }
    for major in postgres_support::MAJORS {
        let Some(build) = postgres_support::build("workload_file_servers::taken_rows", major)
        else {
            continue;
        };
        let (_folders, server) = postgres_support::quick(&build, &[("bench.share", "3")]);
        meets_a_row_that_is_taken(&Arc::new(server));
    }
}
