//! `gate` of a plan: it measures, decides, and can be interrupted.

use std::fs;

use plimsoll_store::{CampaignRecord, Design, Store};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, UNDECIDED, text, wait, wait_until};

const PLAN: &str = r#"
name = "ci"
workload = "sysbench-2025"
comparable = false
builds = ["sqlite"]
configs = ["wal_full", "wal_normal", "wal_off"]
base = "sqlite.wal_full"
verify = "end"
wait = "100ms"
tests = ["point-query", "update-nonindex", "delete"]
seed = 5
[sizes]
clients = 1
tables = 1
rows = "10K"
duration = "1s"
warm_up = "0ms"
"#;

/// Where a sync takes its time.
fn place() -> Place {
    let place = Place::on_disk();
    fs::write(place.path("ci.toml"), PLAN).unwrap();
    place
}

fn newest(place: &Place) -> CampaignRecord {
    Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap()
}

/// Updates without a sync are many times as fast as those with one. How many starts it takes to
/// show that depends on the disk, so that the answer may be missing, but never the other one.
#[test]
fn a_plan_is_measured_until_the_gate_has_its_answer() {
    let place = place();
    let arguments = [
        "gate",
        "ci.toml",
        "--candidate",
        "sqlite.wal_off",
        "--step",
        "update-*",
        "--max-regression",
        "50%",
        "--budget",
        "20s",
        "--junit",
        "gate.xml",
        "--json",
    ];
    let output = place.run(&arguments);
    let stderr = text(&output.stderr);
    let code = output.status.code().unwrap();
    assert!([0, UNDECIDED].contains(&code), "{stderr}");
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&answer["exit_code"], &answer["base"], &answer["candidate"]),
        (
            &code.into(),
            &"sqlite.wal_full".into(),
            &"sqlite.wal_off".into()
        )
    );
    let steps = answer["steps"].as_array().unwrap();
    assert!(
        steps.len() == 1 && steps[0]["step"] == "update-nonindex",
        "{answer}"
    );
    assert!(steps[0]["ratio"].as_f64().unwrap() > 1.0, "{answer}");

    let campaign = newest(&place);
    let confirm = campaign.header.confirm.as_ref().unwrap();
    assert_eq!(campaign.header.id, answer["campaign"]);
    assert_eq!(
        (confirm.design, &confirm.of, confirm.steps.as_slice()),
        (Design::Slices, &None, &["update-nonindex".to_owned()][..])
    );
    let labels: Vec<&str> = campaign
        .header
        .plan
        .cells
        .iter()
        .map(|cell| cell.label.as_str())
        .collect();
    assert_eq!(
        labels,
        ["sqlite.wal_full", "sqlite.wal_off", "sqlite.wal_full#2"],
        "the third config is nobody's candidate"
    );
    if code == 0 {
        assert!(steps[0]["starts"].as_u64().unwrap() >= 3, "{answer}");
    }
    let junit = fs::read_to_string(place.path("gate.xml")).unwrap();
    let page = format!("plimsoll-runs/{}/report/index.html", campaign.header.id);
    assert!(
        junit.contains(&page) && place.path(&page).is_file(),
        "{junit}"
    );

    // The base's second instance is nobody's candidate.
    let again = place.run(&[
        "gate",
        "--base",
        "sqlite.wal_off",
        "--candidate",
        "sqlite.wal_full#2",
        "--max-regression",
        "50%",
    ]);
    assert_eq!(
        again.status.code(),
        Some(2),
        "the control is not a candidate"
    );
}

#[test]
fn an_interrupted_gate_is_resumed() {
    let place = place();
    let child = place.spawn(&[
        "gate",
        "ci.toml",
        "--candidate",
        "sqlite.wal_off,sqlite.wal_normal",
        "--exclude",
        "point-*,delete",
        "--max-regression",
        "50%",
        "--budget",
        "12s",
    ]);
    let begun = "\"event\":\"step_start\",\"step\":\"update-nonindex\"";
    wait_until("a start is under way", || {
        let runs = fs::read_dir(place.path("plimsoll-runs"))
            .into_iter()
            .flatten();
        let trials = runs.filter_map(|entry| fs::read_dir(entry.ok()?.path().join("trials")).ok());
        trials.flatten().flatten().any(|entry| {
            let events = fs::read_to_string(entry.path().join("events.jsonl"));
            events.is_ok_and(|events| events.contains(begun))
        })
    });
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("continue with: plimsoll resume ")
            && stderr.contains("and then: plimsoll gate "),
        "{stderr}"
    );
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let resumed = place.run(&["resume"]);
    let code = resumed.status.code();
    assert!(
        matches!(code, Some(0 | UNDECIDED)),
        "{}",
        text(&resumed.stderr)
    );
    let gate = place.run(&[
        "gate",
        "--candidate",
        "sqlite.wal_off,sqlite.wal_normal",
        "--max-regression",
        "99%",
    ]);
    let shown = text(&gate.stdout);
    assert!(matches!(gate.status.code(), Some(0 | UNDECIDED)), "{shown}");
    let is_row = |line: &&str| line.starts_with("sqlite.") && line.contains("update-nonindex");
    assert_eq!(shown.lines().filter(is_row).count(), 2, "{shown}");
}

#[test]
fn what_cannot_be_gated_is_said_before_anything_is_measured() {
    let place = place();
    let common = ["--candidate", "sqlite.wal_off", "--max-regression", "5%"];
    let cases: [(&[&str], &str); 8] = [
        (&["--budget", "10m"], "--budget is for plans"),
        (&["ci.toml", "--budget", "soon"], "--budget soon: "),
        (
            &["ci.toml", "--budget", "0s"],
            "nothing can be measured in no time",
        ),
        (
            &["ci.toml", "--metric", "qps"],
            "a gate does not judge it; take one of throughput",
        ),
        (
            &["ci.toml", "--threshold", "update"],
            "write steps and their share",
        ),
        (&["ci.toml", "--step", "scan"], "no such step"),
        (
            &["ci.toml", "--candidate", "sqlite"],
            "stands for several cells",
        ),
        (
            &["ci.toml", "--candidate", "sqlite.wal_full"],
            "is nothing but the base",
        ),
    ];
    for (arguments, words) in cases {
        let output = place.run(&[&["gate"], arguments, &common].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
    assert!(
        !place.path("plimsoll-runs").exists(),
        "no campaign was made"
    );
}
