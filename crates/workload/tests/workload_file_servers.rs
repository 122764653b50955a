//! The shipped example of a workload file on real servers.

#![allow(clippy::duplicate_mod, reason = "the helpers of both families bring the same third file")]

#[path = "../../engine/tests/mysql_support/mod.rs"]
mod mysql_support;
#[path = "../../engine/tests/postgres_support/mod.rs"]
mod postgres_support;
mod shop_support;
mod sysbench_support;

use std::sync::Arc;

use plimsoll_workload::SharedServer;
use shop_support::{rows, run_shop};

/// The example with prepared statements and in text; both leave the same rows, whoever loads which part.
fn check(start: impl Fn() -> SharedServer) -> Vec<String> {
    let steps = "steps = [\"day\", \"reads\", \"buy\", \"pay\"]\n";
    let sums = ["", "[sizes]\nprepared = false\nload = \"classic\"\n", "[step.load]\nclients = 13\n"].map(|text| {
        let server = start();
        let sums = run_shop(&server, &format!("{steps}{text}"));
        assert_eq!(rows(&server, "select min(id) from purchase where id > 5000"), ["5001"]);
        sums
    });
    assert_eq!((&sums[1], &sums[2]), (&sums[0], &sums[0]));
    let server = start();
    // Clients that meet try again, and no row is lost.
    run_shop(&server, &format!("{steps}[sizes]\nclients = 4\n"));
    let [found, distinct] = ["count(*)", "count(distinct id)"].map(|what| rows(&server, &format!("select {what} from purchase")));
    assert_eq!(found, distinct);
    sums.into_iter().next().unwrap()
}

#[test]
fn the_example_runs_on_mysql_and_mariadb() {
    let mut found: Vec<Vec<String>> = Vec::new();
    for wanted in [mysql_support::MYSQL_OLD, mysql_support::MYSQL_NEW, mysql_support::MARIADB] {
        let Some(build) = mysql_support::build("workload_file_servers::mysql", wanted) else { continue };
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
        let Some(build) = postgres_support::build("workload_file_servers::postgres", major) else { continue };
        let folders = std::cell::RefCell::new(Vec::new());
        found.push(check(|| {
            let (folder, server) = postgres_support::quick(&build, &[]);
            folders.borrow_mut().push(folder);
            Arc::new(server)
        }));
    }
    assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{found:?}");
}
