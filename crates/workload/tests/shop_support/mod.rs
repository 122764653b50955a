//! The shipped example of a workload file, smaller.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Plan, Workload};
use plimsoll_workload::{SharedServer, WorkloadRun};

use crate::sysbench_support::run_one;

const SHOP: &str = include_str!("../../../../plans/workloads/shop.toml");

/// The workload of a plan of a file; `text` is what the plan says beside it.
pub fn workload(file: &str, text: &str) -> Workload {
    let plan = format!(
        "name = \"t\"\nworkload = {{ file = \"f.toml\" }}\nbuilds = [\"sqlite\"]\nconfigs = \
        [\"wal_off\"]\nwait = \"0s\"\n{text}"
    );
    let plan = Plan::parse_with("t.toml", &plan, &|_| Ok(file.to_owned()))
        .unwrap_or_else(|error| panic!("{error}"));
    plan.cells.into_iter().next().unwrap().workload
}

/// The rows that a query finds.
pub fn rows(server: &SharedServer, sql: &str) -> Vec<String> {
    let mut found = Vec::new();
    server
        .connect()
        .unwrap()
        .for_each_row(sql, &mut |columns| found.push(columns.join("|")))
        .unwrap();
    found
}

/// The example with a tenth of its rows; `text` is what the plan says beside it.
pub fn shop(text: &str) -> Workload {
    workload(&SHOP.replace("K\"", "00\""), text)
}

/// All steps of the example, with so many events each, after which the rows of all tables are
/// counted.
pub fn run_shop(server: &SharedServer, text: &str) -> Vec<String> {
    let workload = shop(text);
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    for step in workload.steps() {
        let (outcome, notes) = run_one(&mut run, step, 60);
        let checks = run.verify(true).unwrap();
        assert_eq!(checks.len(), 4);
        for check in &checks {
            assert_eq!(
                check.found_rows, check.expected_rows,
                "{} after {}",
                check.table, step.name
            );
        }
        if step.name == "load" {
            continue;
        }
        let ok: u64 = outcome
            .operations
            .iter()
            .map(|operation| operation.ok)
            .sum();
        assert_eq!(ok, 60 * u64::from(step.clients), "{}", step.name);
        let statements = ["statements_read", "statements_write", "statements_other"]
            .map(|name| notes[name] as u64);
        assert!(statements.iter().sum::<u64>() >= ok);
        // Statements per event, by kind.
        let facts: BTreeMap<&str, u64> =
            BTreeMap::from([("look", 4), ("history", 4), ("buy", 6), ("pay", 1)]);
        for operation in &outcome.operations {
            assert!(operation.ok > 0, "{} {}", step.name, operation.kind);
            assert!(facts.contains_key(operation.kind.as_str()));
        }
        if outcome
            .operations
            .iter()
            .all(|operation| operation.retried == 0)
        {
            let wanted: u64 = outcome
                .operations
                .iter()
                .map(|operation| facts[operation.kind.as_str()] * operation.ok)
                .sum();
            assert_eq!(statements.iter().sum::<u64>(), wanted, "{}", step.name);
        }
    }
    run.verify(true)
        .unwrap()
        .into_iter()
        .map(|check| check.checksum.unwrap())
        .collect()
}
