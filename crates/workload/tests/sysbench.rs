//! Every test of the sysbench presets on a real SQLite, small.

mod sysbench_support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::plan::{Plan, Step, SysbenchWork, TestKind, Work, Workload};
use plimsoll_engine::{StartOptions, engine};
use plimsoll_load::{
    Control, MonotonicClock, Progress, StepOutcome, StepOutputs, no_series, run_step,
};
use plimsoll_workload::{SharedServer, WorkloadRun};

fn workload(preset: &str, text: &str) -> Workload {
    let text = format!(
        "name = \"t\"\nworkload = \"{preset}\"\nbuilds = [\"sqlite\"]\nconfigs = \
        [\"wal_off\"]\nwait = \"0s\"\n{text}"
    );
    Plan::parse("t.toml", &text)
        .unwrap()
        .cells
        .remove(0)
        .workload
}

fn start(dir: &Path) -> SharedServer {
    let settings = BTreeMap::from([
        ("journal_mode".to_owned(), "wal".to_owned()),
        ("synchronous".to_owned(), "off".to_owned()),
    ]);
    let engine = engine(&"sqlite".parse().unwrap(), None).unwrap();
    Arc::new(engine.start(&StartOptions::new(dir, settings)).unwrap())
}

/// A step with so many events per client, after which the rows of all tables are counted.
fn run_one(
    run: &mut WorkloadRun,
    step: &Step,
    events: u64,
) -> (StepOutcome, BTreeMap<String, f64>) {
    let done = sysbench_support::run_one(run, step, events);
    for check in run.verify(false).unwrap() {
        assert_eq!(
            check.found_rows, check.expected_rows,
            "{} after {}",
            check.table, step.name
        );
    }
    done
}

/// Of each client and test.
const EVENTS: u64 = 12;

fn run_all(
    preset: &str,
    text: &str,
    each: impl Fn(&Step, TestKind, &StepOutcome, &BTreeMap<String, f64>),
) {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let workload = workload(preset, text);
    let mut run = WorkloadRun::new(&workload, server.clone(), 42).unwrap();
    for step in workload.steps() {
        let (outcome, notes) = run_one(&mut run, step, EVENTS);
        if let Work::Sysbench(SysbenchWork::Test(test)) = step.work {
            each(step, test.kind, &outcome, &notes);
        }
    }
    drop(run);
    let server = Arc::try_unwrap(server)
        .ok()
        .expect("every session is closed after its step");
    server.stop(Duration::from_secs(10)).unwrap();
}

/// The statements of an event, as the engine answered them, are those of the definition.
fn check_statements(
    step: &Step,
    kind: TestKind,
    outcome: &StepOutcome,
    notes: &BTreeMap<String, f64>,
) {
    let events = &outcome.operations[0];
    assert_eq!(events.ok, EVENTS * u64::from(step.clients), "{}", step.name);
    assert_eq!(
        events.kind,
        if kind == TestKind::Scan {
            "scan"
        } else {
            "transaction"
        }
    );
    let found =
        ["statements_read", "statements_write", "statements_other"].map(|name| notes[name] as u64);
    let mix = kind.statements();
    let wanted = match kind {
        TestKind::Delete => [0, events.rows, events.ok - events.rows],
        _ => [mix.reads, mix.writes, mix.others].map(|per_event| u64::from(per_event) * events.ok),
    };
    // Events that were tried again have left what they had done before.
    if events.retried == 0 {
        assert_eq!(found, wanted, "{}", step.name);
    } else {
        assert!(
            found
                .iter()
                .zip(wanted)
                .all(|(found, wanted)| *found >= wanted),
            "{}: {found:?} {wanted:?} {events:?}",
            step.name
        );
    }
}

#[test]
fn all_tests_of_2025_perform_their_statements_and_keep_the_rows() {
    run_all(
        "sysbench-2025",
        "[sizes]\nrows = \"10K\"\ntables = 2\nclients = 2\n",
        check_statements,
    );
}

#[test]
fn all_tests_of_2023_do_so_in_text() {
    run_all(
        "sysbench-2023",
        "[sizes]\nrows = \"10K\"\nprepared = false\ndistribution = \"special\"\n",
        check_statements,
    );
}

#[test]
fn each_test_fetches_the_rows_of_its_range() {
    let text = "tests = [\"hot-points\", \"point-query\", \"random-points_range=10\", \
               \"range-covered-pk\", \"range-covered-si\", \"points-notcovered-si\", \
               \"read-only-count\", \"read-only-simple\", \"read-only_range=10\", \
               \"read-write_range=10\", \"update-inlist\", \"update-one\", \"scan\", \
               \"distinct-ranges\"]\n[sizes]\nrows = \"100K\"\n";
    run_all("sysbench-2025", text, |step, kind, _, notes| {
        let Some(rows) = notes.get("rows_per_transaction") else {
            return assert_eq!(kind, TestKind::Scan);
        };
        // By range, and by how far the end of the table or a k that is not there moves it.
        let (wanted, slack) = match kind {
            TestKind::HotPoints => (100.0, 0.0),
            TestKind::PointQuery | TestKind::UpdateOne | TestKind::ReadOnlyCount => (1.0, 0.0),
            // Ids may be drawn twice.
            TestKind::RandomPoints | TestKind::UpdateInlist => (10.0, 0.1),
            TestKind::RangeCoveredPk => (101.0, 1.0),
            TestKind::RangeCoveredSi => (101.0, 40.0),
            TestKind::PointsNotcoveredSi => (100.0, 40.0),
            TestKind::ReadOnlySimple => (1010.0, 300.0),
            TestKind::ReadOnly => (10.0 + 10.0 + 1.0 + 10.0 + 10.0, 0.1),
            TestKind::ReadWrite => (10.0 + 10.0 + 1.0 + 10.0 + 10.0 + 4.0, 0.1),
            TestKind::DistinctRanges => (10.0, 0.1),
            other => panic!("{other:?}"),
        };
        assert!(
            (rows - wanted).abs() <= slack,
            "{}: {rows} rows, not {wanted}",
            step.name
        );
    });
}

#[test]
fn the_same_seed_loads_the_same_rows_whatever_the_way() {
    let load = |text: &str, seed: u64| {
        let dir = tempfile::tempdir().unwrap();
        let server = start(dir.path());
        let workload = workload(
            "sysbench-2025",
            &format!("tests = [\"point-query\"]\n[sizes]\nrows = 7001\ntables = 3\n{text}"),
        );
        let mut run = WorkloadRun::new(&workload, server, seed).unwrap();
        run_one(&mut run, &workload.steps()[0], 0);
        let checks = run.verify(true).unwrap();
        checks
            .into_iter()
            .map(|check| check.checksum.unwrap())
            .collect::<Vec<_>>()
    };
    let fast = load("", 42);
    assert_eq!(load("load = \"classic\"\n", 42), fast);
    assert_ne!(load("", 43), fast);
    assert_ne!(fast[0], fast[1]);
}

/// Deletes empty the table: the share of deletes that find a row falls as more are sent, by the
/// formula of the specification.
#[test]
fn deletes_find_fewer_and_fewer_rows() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let workload = workload(
        "sysbench-2025",
        "tests = [\"delete\"]\n[sizes]\nrows = 2000\n",
    );
    let mut run = WorkloadRun::new(&workload, server, 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 0);
    let (outcome, notes) = run_one(&mut run, &workload.steps()[1], 6000);
    let share = outcome.operations[0].ok as f64 / 2000.0;
    let wanted = (1.0 - (-share).exp()) / share;
    let found = notes["delete_hit_ratio"];
    assert!(
        (found / wanted - 1.0).abs() < 0.1,
        "{found}, not {wanted}, after {share} deletes per row"
    );
}

/// What is deleted while the workers warm up is gone too, although nobody counts it as done.
#[test]
fn a_warm_up_changes_the_tables_and_not_the_counts() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let workload = workload(
        "sysbench-2025",
        "tests = [\"delete\"]\n[sizes]\nrows = 100\nduration = \"1s\"\nwarm_up = \"200ms\"\n",
    );
    let mut run = WorkloadRun::new(&workload, server, 42).unwrap();
    run_one(&mut run, &workload.steps()[0], 0);
    let step = &workload.steps()[1];
    let tasks = run.tasks(step).unwrap();
    let control = Arc::new(Control::default());
    let (mut log, mut progress) = (std::io::sink(), |_: &Progress| {});
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
    run.book(step, &tasks.counts, &outcome);
    let notes = run.notes(step, &tasks.counts, &outcome);
    let counted: f64 = notes
        .iter()
        .filter(|(name, _)| name.starts_with("statements_"))
        .map(|(_, count)| count)
        .sum();
    assert_eq!(counted, outcome.operations[0].ok as f64);
    let check = run.verify(false).unwrap().remove(0);
    assert_eq!(check.found_rows, check.expected_rows);
}
