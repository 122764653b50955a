//! The whole sequence on a real SQLite, small.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::plan::{InsertBenchmark, Plan, Step};
use plimsoll_core::record::TableCheck;
use plimsoll_engine::{StartOptions, engine};
use plimsoll_load::{
    Control, Ended, MonotonicClock, Progress, StepOutcome, StepOutputs, no_series, run_step,
};
use plimsoll_workload::insert_benchmark::{InsertBenchmarkRun, SharedServer};

fn settings(workload: &str, sizes: &str) -> InsertBenchmark {
    let text = format!(
        "name = \"t\"\nworkload = \"{workload}\"\nbuilds = [\"sqlite\"]\nconfigs = \
        [\"wal_off\"]\nwait = \"0s\"\n[sizes]\nrows = 5000\n{sizes}"
    );
    Plan::parse("t.toml", &text).unwrap().cells[0]
        .workload
        .insert_benchmark()
        .unwrap()
        .clone()
}

fn start(dir: &Path, journal_mode: &str) -> SharedServer {
    let settings = BTreeMap::from([
        ("journal_mode".to_owned(), journal_mode.to_owned()),
        ("synchronous".to_owned(), "off".to_owned()),
    ]);
    let engine = engine(&"sqlite".parse().unwrap(), None).unwrap();
    Arc::new(engine.start(&StartOptions::new(dir, settings)).unwrap())
}

fn run_one(run: &mut InsertBenchmarkRun, step: &Step) -> StepOutcome {
    let tasks = run
        .tasks(step, step.work.insert_benchmark().unwrap())
        .unwrap();
    let mut progress = |_: &Progress| {};
    let control = Arc::new(Control::default());
    let mut log = std::io::sink();
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &tasks.kinds,
        tasks.tasks,
        &control,
        &tasks.options,
        StepOutputs {
            log: &mut log,
            progress: &mut progress,
            seconds: &mut no_series,
        },
    )
    .unwrap();
    assert_eq!(outcome.ended, Ended::Finished, "{}", step.name);
    run.book(step, &outcome);
    outcome
}

fn rows(outcome: &StepOutcome, kind: &str) -> u64 {
    outcome
        .operations
        .iter()
        .find(|operation| operation.kind == kind)
        .map_or(0, |operation| operation.rows)
}

/// Runs every step and checks rows after each; returns the last check and each step's inserted and
/// deleted rows.
fn run_all(
    settings: &InsertBenchmark,
    journal_mode: &str,
    seed: u64,
) -> (Vec<TableCheck>, Vec<(String, u64, u64)>) {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), journal_mode);
    let mut run = InsertBenchmarkRun::new(settings.clone(), server.clone(), seed).unwrap();
    let mut moved = Vec::new();
    for step in &settings.steps {
        let outcome = run_one(&mut run, step);
        for check in run.verify(false).unwrap() {
            assert_eq!(
                check.found_rows, check.expected_rows,
                "{} after {}",
                check.table, step.name
            );
        }
        for operation in &outcome.operations {
            assert_eq!(
                operation.attempts,
                operation.ok + operation.retried + operation.failed,
                "{} {}",
                step.name,
                operation.kind
            );
        }
        moved.push((
            step.name.clone(),
            rows(&outcome, "insert"),
            rows(&outcome, "delete"),
        ));
    }
    let checks = run.verify(true).unwrap();
    drop(run);
    let server = Arc::try_unwrap(server)
        .ok()
        .expect("every session is closed after its step");
    server.stop(Duration::from_secs(10)).unwrap();
    (checks, moved)
}

const SMALL: &str = "write_rows = 2000\nduration = \"1s\"\n";

#[test]
fn ten_steps_keep_the_row_count_and_the_same_seed_gives_the_same_data() {
    let settings = settings("insert-benchmark", &format!("{SMALL}clients = 2\n"));
    let (checks, moved) = run_all(&settings, "wal", 42);
    let wanted = [
        ("l.i0", 10_000, 0),
        ("l.x", 200, 0),
        ("l.i1", 3200, 3200),
        ("l.i2", 800, 800),
        ("qr100", 200, 200),
        ("qp100", 200, 200),
        ("qr500", 1000, 1000),
        ("qp500", 1000, 1000),
        ("qr1000", 2000, 2000),
        ("qp1000", 2000, 2000),
    ];
    assert_eq!(
        moved,
        wanted.map(|(step, inserted, deleted)| (step.to_owned(), inserted, deleted))
    );
    assert_eq!(checks.len(), 2);
    assert!(checks.iter().all(|check| check.found_rows == 5100));
    assert_ne!(
        checks[0].checksum, checks[1].checksum,
        "clients draw different rows"
    );
    assert_eq!(checks, run_all(&settings, "wal", 42).0);
    assert_ne!(checks, run_all(&settings, "wal", 43).0);
}

#[test]
fn a_journal_that_locks_readers_out_changes_nothing_but_time() {
    let settings = settings("insert-benchmark", SMALL);
    assert_eq!(
        run_all(&settings, "delete", 42).0,
        run_all(&settings, "wal", 42).0
    );
}

#[test]
fn the_arrival_of_background_writes_does_not_change_the_data() {
    let even = run_all(&settings("insert-benchmark", SMALL), "wal", 42).0;
    for arrival in ["classic-burst", "poisson"] {
        let settings = settings(
            "insert-benchmark",
            &format!("{SMALL}arrival = \"{arrival}\"\n"),
        );
        assert_eq!(run_all(&settings, "wal", 42).0, even, "{arrival}");
    }
}

#[test]
fn steps_that_end_by_time_keep_the_row_count_too() {
    let settings = settings("insert-benchmark", &format!("{SMALL}end = \"time\"\n"));
    let (checks, moved) = run_all(&settings, "wal", 42);
    assert_eq!(checks[0].found_rows, 5100);
    assert!(
        moved[4].1 <= 100,
        "at most two batches in one second: {moved:?}"
    );
    for (step, inserted, deleted) in moved.iter().skip(2) {
        assert_eq!(inserted, deleted, "{step}");
    }
}

#[test]
fn one_shared_table_grows() {
    let settings = settings(
        "insert-benchmark",
        &format!("{SMALL}clients = 3\ntables = \"shared\"\n"),
    );
    let (checks, _) = run_all(&settings, "wal", 42);
    assert_eq!(checks.len(), 1);
    assert_eq!(
        checks[0].found_rows,
        3 * 5000 + 100 + 3 * 2000 + 3 * (2 * 100 + 2 * 500 + 2 * 1000)
    );
}

#[test]
fn older_eras_run() {
    let (checks, moved) = run_all(&settings("insert-benchmark-2023-05", SMALL), "wal", 42);
    assert_eq!(
        checks[0].found_rows, 105_000,
        "the index step inserted 100,000 rows then"
    );
    assert_eq!(
        moved
            .iter()
            .map(|(step, _, _)| step.as_str())
            .collect::<Vec<_>>(),
        ["l.i0", "l.x", "l.i1", "q100", "q500", "q1000"]
    );
    let (checks, moved) = run_all(
        &settings("insert-benchmark-2017", "duration = \"1s\"\n"),
        "wal",
        42,
    );
    assert_eq!(checks[0].found_rows, 5000 + 1000 + 100);
    assert_eq!(
        moved
            .iter()
            .map(|(step, _, _)| step.as_str())
            .collect::<Vec<_>>(),
        ["l", "scan", "q1000", "q100"]
    );
}

#[test]
fn a_planted_fault_shows_in_the_row_count() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), "wal");
    let settings = settings("insert-benchmark", SMALL);
    let mut run = InsertBenchmarkRun::new(settings.clone(), server.clone(), 1).unwrap();
    run_one(&mut run, &settings.steps[0]);
    server
        .connect()
        .unwrap()
        .write("delete from pi1 where transactionid = 77", 1)
        .unwrap();
    let check = &run.verify(false).unwrap()[0];
    assert_eq!((check.expected_rows, check.found_rows), (5000, 4999));
}

#[test]
fn a_statement_that_loses_a_row_fails_its_operation() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path(), "wal");
    let settings = settings("insert-benchmark", SMALL);
    let mut run = InsertBenchmarkRun::new(settings.clone(), server.clone(), 1).unwrap();
    run_one(&mut run, &settings.steps[0]);
    run_one(&mut run, &settings.steps[1]);
    // The engine silently drops rows with a price over 100.
    server
        .connect()
        .unwrap()
        .define(
            "create trigger lossy before insert on pi1 when new.price > 100 begin select \
            raise(ignore); end",
        )
        .unwrap();
    let step = &settings.steps[2];
    let tasks = run
        .tasks(step, step.work.insert_benchmark().unwrap())
        .unwrap();
    let control = Arc::new(Control::default());
    let outcome = run_step(
        &Arc::new(MonotonicClock),
        &tasks.kinds,
        tasks.tasks,
        &control,
        &tasks.options,
        StepOutputs {
            log: &mut std::io::sink(),
            progress: &mut |_: &Progress| {},
            seconds: &mut no_series,
        },
    )
    .unwrap();
    let Ended::Failed(failure) = outcome.ended else {
        panic!("{:?}", outcome.ended)
    };
    assert!(
        failure
            .message
            .starts_with("an insert of 50 rows affected "),
        "{}",
        failure.message
    );
    let insert = outcome
        .operations
        .iter()
        .find(|operation| operation.kind == "insert")
        .unwrap();
    assert_eq!(
        (insert.failed, insert.attempts),
        (1, insert.ok + insert.retried + 1)
    );
}
