//! The sysbench microbenchmarks from a plan to the originals' files.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, text, wait, wait_until};

const PLAN: &str = r#"
name = "tests"
workload = "sysbench-2025"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_off"
verify = "full"
wait = "100ms"
comparable = false
tests = ["insert", "point-query", "scan", "read-only_range=10", "update-one", "delete"]
[sizes]
tables = 2
clients = 2
rows = 500
duration = "1s"
warm_up = "100ms"
"#;

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("tests.toml"), PLAN).unwrap();
    place
}

#[test]
fn tests_run_in_their_order_and_leave_tables_pages_and_the_originals_files() {
    let place = place();
    let output = place.run(&["run", "tests.toml", "--seed", "3"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let order: Vec<String> = place
        .steps_done()
        .into_iter()
        .filter(|(folder, _)| folder.starts_with("1-"))
        .map(|(_, step)| step)
        .collect();
    assert_eq!(
        order,
        [
            "prepare",
            "update-one",
            "scan",
            "read-only_range=10",
            "point-query",
            "delete",
            "insert"
        ]
    );
    for section in [
        "- point queries",
        "- range queries without aggregation",
        "- range queries with aggregation",
        "- writes",
    ] {
        assert!(stdout.contains(section), "{stdout}");
    }
    assert!(stdout.contains("The plan leaves tests out"), "{stdout}");
    let words: Vec<&str> = stdout.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("and 26 more (`plimsoll workload show sysbench-2025` lists all tests)"),
        "{stdout}"
    );
    let longest = stdout.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(120), "{longest:?} columns: {stdout}");
    // The rate of the load is that of its inserts; beside it stand the seconds of all it did.
    let load = stdout
        .lines()
        .skip_while(|line| !line.starts_with("Throughput: rows/s inserted"))
        .find(|line| line.contains("prepare"));
    assert_eq!(
        load.map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["prepare", "seconds"]),
        "{stdout}"
    );
    assert!(
        std::fs::read_to_string(place.campaign().join("report/index.html"))
            .unwrap()
            .contains("What a statement costs")
    );

    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let results = shown["results"].as_array().unwrap();
    assert_eq!(results.len(), 14);
    let find = |step: &str| {
        results
            .iter()
            .find(|result| result["step"] == step && result["cell"] == "sqlite.wal_off")
            .unwrap()
    };
    let value = |step: &str, metric: &str| {
        find(step)["metrics"][metric]["value"]
            .as_f64()
            .unwrap_or_else(|| panic!("{step} {metric}"))
    };
    let ratio = value("read-only_range=10", "qps") / value("read-only_range=10", "tps");
    assert!(
        (ratio - 16.0).abs() < 1e-6,
        "{ratio} statements per transaction"
    );
    assert!((value("point-query", "qps") / value("point-query", "tps") - 1.0).abs() < 1e-9);
    assert!(value("scan", "krps") > 0.0 && value("delete", "qps") > 0.0);
    assert!(
        find("point-query")["metrics"]["ips"].is_null(),
        "the Insert Benchmark's metrics are not there"
    );

    // Any base.
    let other = text(&place.run(&["show", "--base", "sqlite.wal_full"]).stdout);
    assert!(other.contains("sqlite.wal_full (base)"), "{other}");

    let output = place.run(&["export", "--classic", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let table = std::fs::read_to_string(place.path("out/qps.abs.all.tsv")).unwrap();
    assert!(
        table.starts_with(
            "col-1 : x.sqlite.wal_off.pk1\ncol-2 : x.sqlite.wal_full.pk1\n\ncol-1\tcol-2\n"
        ),
        "{table}"
    );
    let names: Vec<&str> = table
        .lines()
        .skip(4)
        .map(|line| line.split('\t').next_back().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "point-query_range=100",
            "read-only_range=10",
            "scan_range=100",
            "delete_range=100",
            "insert_range=100",
            "update-one_range=100"
        ]
    );
    assert!(
        place
            .path("out/x.sqlite.wal_off.pk1/sb.met.scan.range100.pk1.dop2")
            .exists()
    );
    assert!(
        std::fs::read_to_string(place.path("out/o.met.all"))
            .unwrap()
            .starts_with("sb.prepare.met.")
    );
}

#[test]
fn a_broken_campaign_of_tests_is_resumed() {
    let place = place();
    let child = place.spawn(&["run", "tests.toml", "--seed", "3"]);
    wait_until("update-one is done", || {
        let has_campaign = std::fs::read_dir(place.path("plimsoll-runs"))
            .is_ok_and(|mut entries| entries.next().is_some());
        has_campaign
            && place
                .steps_done()
                .iter()
                .any(|(_, step)| step == "update-one")
    });
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    assert_eq!(wait(child).status.code(), Some(130));
    let before = place.steps_done();
    assert!(before.len() < 14);
    let output = place.run(&["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let after = place.steps_done();
    assert!(before.iter().all(|step| after.contains(step)));
    for trial in ["1-", "2-"] {
        let steps = after
            .iter()
            .filter(|(folder, _)| folder.starts_with(trial))
            .map(|(_, step)| step.as_str());
        assert_eq!(steps.collect::<std::collections::BTreeSet<_>>().len(), 7);
    }
}

#[test]
fn a_ramp_shows_rates_over_clients() {
    let place = place();
    let plan = PLAN
        .replace(
            "tests = [\"insert\", \"point-query\", \"scan\", \"read-only_range=10\", \
            \"update-one\", \"delete\"]",
            "tests = [\"point-query\"]",
        )
        .replace("clients = 2", "ramp = [1, 2, 3]")
        .replace("[\"wal_full\", \"wal_off\"]", "[\"wal_off\"]");
    std::fs::write(place.path("ramp.toml"), plan).unwrap();
    let output = place.run(&["run", "ramp.toml", "--seed", "3"]);
    let stdout = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        stdout.contains("Ramp of point-query") && stdout.contains("peak at "),
        "{stdout}"
    );
    let page = std::fs::read_to_string(place.campaign().join("report/index.html")).unwrap();
    assert!(page.contains("point-query over clients"));
    assert!(
        !stdout.contains("relative to the base") && !page.contains("relative to the base</h3>"),
        "a lone cell: {stdout}"
    );
    assert_eq!(
        place.run(&["export", "--classic", "out"]).status.code(),
        Some(2),
        "a ramp is not a test of the originals' tables"
    );
}

#[test]
fn workloads_are_shown_and_bad_plans_are_refused() {
    let place = place();
    let shown = text(&place.run(&["workload", "show", "sysbench-2025"]).stdout);
    // A title, the size, a blank line, the header, the load, and the tests.
    assert_eq!(shown.lines().count(), 5 + 38, "{shown}");
    for (wrong, wanted) in [
        (
            "tests = [\"point-qeury\"]",
            "there is no test \"point-qeury\" (did you mean \"point-query\"?)",
        ),
        (
            "tests = [\"random-points_range=1000\"]",
            "random-points_range=1000 reads 1,000 rows of tables of 500 rows",
        ),
    ] {
        let first = PLAN.lines().find(|line| line.starts_with("tests")).unwrap();
        std::fs::write(place.path("wrong.toml"), PLAN.replace(first, wrong)).unwrap();
        let output = place.run(&["run", "wrong.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(
            text(&output.stderr).contains(wanted),
            "{}",
            text(&output.stderr)
        );
    }
    assert!(!place.path("plimsoll-runs").exists());
}

#[test]
fn a_test_with_a_rate_has_response_times() {
    let place = place();
    let first = PLAN.lines().find(|line| line.starts_with("tests")).unwrap();
    let plan = PLAN
        .replace(first, "tests = [\"point-query\", \"update-one\"]")
        .replace("[\"wal_full\", \"wal_off\"]", "[\"wal_off\"]")
        .replace("[sizes]", "[sizes]\narrival = \"poisson\"");
    std::fs::write(
        place.path("rate.toml"),
        format!("{plan}\n[step.point-query]\nrate = 40\n"),
    )
    .unwrap();
    let output = place.run(&["run", "rate.toml", "--seed", "3"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let results = shown["results"].as_array().unwrap();
    let metric = |step: &str, metric: &str| {
        results
            .iter()
            .find(|result| result["step"] == step)
            .unwrap()["metrics"][metric]
            .clone()
    };
    assert!(
        metric("point-query", "p99_response_us")["value"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    // As many as the seed's gaps put into a second.
    assert!((20.0..65.0).contains(&metric("point-query", "tps")["value"].as_f64().unwrap()));
    assert!(
        metric("update-one", "p99_response_us")["unavailable"]
            .as_str()
            .unwrap()
            .contains("closed loop")
    );
}
