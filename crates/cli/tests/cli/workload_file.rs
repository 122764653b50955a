//! Workload files: checked, shown, run from a plan, reported and resumed.

use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::support::{Place, text, wait, wait_until};

const FILE: &str = r#"
name = "notes"
description = "people and what they write"
[table.person]
rows = 500
columns = [{ name = "id", type = "integer" }, { name = "name", type = "varchar(20)", values = { letters = [3, 20] } }]
[table.note]
rows = 1000
columns = [
  { name = "id", type = "integer" },
  { name = "person_id", type = "integer", values = { id = "person", distribution = "zipfian" } },
  { name = "words", type = "varchar(30)", values = { pattern = "@@@@ ####" } },
]
indexes = [{ columns = ["person_id"] }]
[statement.person]
sql = "SELECT name FROM person WHERE id = :person"
parameters.person = { id = "person" }
[statement.notes]
sql = "SELECT words FROM note WHERE person_id = :person"
parameters.person = { same = "person" }
[statement.write]
sql = "INSERT INTO note (id, person_id, words) VALUES (:id, :person, :words)"
parameters.id = { next_id = "note" }
parameters.person = { id = "person" }
parameters.words = { letters = [1, 30] }
[event.read]
statements = ["person", "notes"]
[event.write]
statements = ["write"]
[mix.all]
read = 3
write = 1
"#;

const PLAN: &str = r#"
name = "own"
workload = { file = "mine/notes.toml" }
builds = ["sqlite"]
configs = ["wal_off"]
verify = "full"
wait = "100ms"
comparable = false
steps = ["mixed", "writes", "again"]
[sizes]
clients = 2
duration = "1s"
[step.mixed]
mix = "all"
[step.writes]
event = "write"
clients = 1
[step.again]
mix = "all"
rate = 100
"#;

fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir_all(place.path("plans/mine")).unwrap();
    std::fs::write(place.path("plans/mine/notes.toml"), FILE).unwrap();
    std::fs::write(place.path("plans/own.toml"), PLAN).unwrap();
    place
}

#[test]
fn a_workload_file_is_checked_and_shown() {
    let place = place();
    let output = place.run(&["workload", "check", "plans/mine/notes.toml"]);
    assert_eq!(
        text(&output.stdout),
        "plans/mine/notes.toml: ok\n2 tables, 3 statements, 2 events, 1 mix, 1.5K rows in all\n"
    );
    let shown = text(
        &place
            .run(&["workload", "show", "plans/mine/notes.toml"])
            .stdout,
    );
    for wanted in [
        "table note, 1K rows, key id",
        "index note_person_id",
        "the same as :person before it",
        "event read, transaction, 4 statements",
        "75.00 %",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    assert!(text(&place.run(&["workload", "list"]).stdout).contains("workloads/shop.toml  "));
    assert_eq!(
        place
            .run(&["workload", "check", "workloads/shop.toml"])
            .status
            .code(),
        Some(0)
    );

    std::fs::write(
        place.path("bad.toml"),
        FILE.replace("id = :person\"\nparameters", "id = :persno\"\nparameters")
            .replace("read = 3", "raed = 3"),
    )
    .unwrap();
    let output = place.run(&["workload", "check", "bad.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(
        error.contains(
            "bad.toml:16:7: statement person: the parameter :persno is not bound (did you mean \
            \"person\"?)"
        ),
        "{error}"
    );
    assert!(
        error.contains("bad.toml:31:1: there is no event \"raed\" (did you mean \"read\"?)"),
        "{error}"
    );

    let explained = text(&place.run(&["plan", "explain", "plans/own.toml"]).stdout);
    assert!(
        explained.contains("2 connections, at most 1.5K rows") && !explained.contains("batch"),
        "{explained}"
    );
    let line = |step: &str| {
        explained
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|line| line.first() == Some(&step))
    };
    assert_eq!(
        line("load").map(|line| line[1..3].to_vec()),
        Some(vec!["1.5K", "1"]),
        "one connection loads: {explained}"
    );
    assert_eq!(
        line("mixed").map(|line| line[1..3].to_vec()),
        Some(vec!["-", "2"]),
        "{explained}"
    );
    let error = text(&place.run(&["workload", "show", "sysbench-2026"]).stderr);
    assert!(error.contains("did you mean \"sysbench-2025\"?"), "{error}");
}

#[test]
fn a_workload_file_runs_and_every_output_shows_its_events() {
    let place = place();
    let output = place.run(&["run", "plans/own.toml", "--seed", "3"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stdout.contains("Events of mixed: each kind by itself"),
        "{stdout}"
    );
    assert!(
        stdout.contains("99th percentile of response time: microseconds of an event"),
        "{stdout}"
    );
    let heading = |step: &str| {
        let title = format!("Events of {step}:");
        let mut lines = stdout
            .lines()
            .skip_while(|line| !line.starts_with(&title))
            .skip(1);
        lines.next().unwrap_or_default().to_owned()
    };
    assert!(
        heading("again").ends_with("resp p99") && heading("mixed").ends_with("max"),
        "{stdout}"
    );
    assert!(
        !stdout.contains("Relative") && !stdout.contains("transaction") && !stdout.contains("scan"),
        "words of tests: {stdout}"
    );
    let page = std::fs::read_to_string(place.campaign().join("report/index.html")).unwrap();
    assert!(
        page.contains("Each kind by itself") && page.contains("read rate"),
        "no events in the page"
    );

    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let results = shown["results"].as_array().unwrap();
    let find = |step: &str| {
        results
            .iter()
            .find(|result| result["step"] == step)
            .unwrap()
    };
    let mixed = find("mixed");
    assert_eq!(
        (
            &mixed["events"]["read"]["statements_per_event"],
            &mixed["events"]["write"]["statements_per_event"]
        ),
        (&4.0.into(), &1.0.into())
    );
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
    let (reads, writes) = (
        number(&mixed["events"]["read"]["events"]),
        number(&mixed["events"]["write"]["events"]),
    );
    // A busy machine may do few events in a second.
    let share = reads / (reads + writes);
    assert!(
        reads + writes < 200.0 || (share > 0.6 && share < 0.9),
        "{reads} {writes}"
    );
    // The step's own numbers are those of all its events.
    let metric = |step: &Value, name: &str| number(&step["metrics"][name]["value"]);
    let per_event = metric(mixed, "qps") / metric(mixed, "tps");
    let wanted = (4.0 * reads + writes) / (reads + writes);
    assert!(
        (per_event / wanted - 1.0).abs() < 0.01,
        "{per_event} statements per event, not {wanted}"
    );
    assert!(metric(mixed, "p99_service_us") >= metric(mixed, "p50_service_us"));
    assert_eq!(
        find("writes")["operations"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["write"]
    );
    let again = find("again");
    assert!(
        metric(again, "rate_share") > 0.0 && metric(again, "p99_response_us") > 0.0,
        "{}",
        again["metrics"]
    );

    assert!(
        number(&again["events"]["read"]["p99_response_us"]) > 0.0
            && mixed["events"]["read"]["p99_response_us"].is_null()
    );

    let csv = text(&place.run(&["report", "--format", "csv"]).stdout);
    assert!(
        csv.contains(",mixed,1,1,") && csv.contains(",statements_per_event{read},4,statements,"),
        "{csv}"
    );
    let markdown = text(&place.run(&["report", "--format", "md"]).stdout);
    assert!(
        markdown.contains("| cell | events | events_retried |")
            && markdown.contains("| read | sqlite.wal\\_off |")
            || markdown.contains("| read | sqlite.wal_off |"),
        "{markdown}"
    );
    let output = place.run(&["export", "--classic", "out"]);
    assert!(
        text(&output.stderr).contains("and none of ramps or workload files"),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_campaign_is_resumed_without_its_workload_file() {
    let place = place();
    let child = place.spawn(&["run", "plans/own.toml", "--seed", "3"]);
    wait_until("the load is done", || {
        let has_campaign = std::fs::read_dir(place.path("plimsoll-runs"))
            .is_ok_and(|mut entries| entries.next().is_some());
        has_campaign && place.steps_done().iter().any(|(_, step)| step == "load")
    });
    kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    wait(child);
    std::fs::remove_dir_all(place.path("plans")).unwrap();
    let output = place.run(&["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("Events of again"),
        "{}",
        text(&output.stdout)
    );
}
