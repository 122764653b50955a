//! Loads of the data that trials begin with: those of a start are made side by side, and one that
//! breaks costs its candidate alone.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use plimsoll_store::{CampaignRecord, CampaignState, Store};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    Place, UNDECIDED, assert_nothing_is_left, processes_in, text, wait, wait_until,
};

/// Loads take long enough to be met at work.
const PLAN: &str = r#"
name = "loads"
workload = "sysbench-2025"
comparable = false
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_full"
verify = "end"
wait = "100ms"
tests = ["point-query"]
seed = 5
[sizes]
clients = 1
tables = 1
rows = "150K"
duration = "1s"
warm_up = "0ms"
"#;
/// The states of the first load, by the number of their cell: base, candidate, control.
const STATES: [&str; 3] = ["0-a1", "1-a1", "2-a1"];

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("plan.toml"), PLAN).unwrap();
    place
}

fn start(place: &Place) -> Child {
    place.spawn(&[
        "confirm",
        "plan.toml",
        "--all",
        "--slices",
        "--time",
        "2s",
        "--starts",
        "2",
        "--loads",
        "2",
    ])
}

fn campaign(place: &Place) -> CampaignRecord {
    let store = Store::new(place.path("plimsoll-runs"));
    store.find(None).unwrap().load().unwrap()
}

fn states(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(place.path("plimsoll-runs")).ok()?;
    let mut campaigns = entries.filter_map(|entry| Some(entry.ok()?.path().join("states")));
    campaigns.find(|states| states.exists())
}

fn events(state: &Path) -> Vec<Value> {
    let text = fs::read_to_string(state.join("events.jsonl")).unwrap_or_default();
    let whole = text
        .lines()
        .map_while(|line| serde_json::from_str(line).ok());
    whole.collect()
}

/// When a state's log has an event.
fn at(state: &Path, event: &str) -> Option<u64> {
    let events = events(state);
    events.iter().find(|of| of["event"] == event)?["t_ns"].as_u64()
}

/// The folders of trials of the first load once two of them load, the first of which has not ended:
/// as many are made side by side on one CPU.
fn at_work(place: &Place) -> Vec<PathBuf> {
    let mut found = Vec::new();
    wait_until("two loads are under way", || {
        let states = states(place).into_iter();
        found = states
            .flat_map(|states| STATES.map(|state| states.join(state)))
            .filter(|state| at(state, "step_start").is_some())
            .collect();
        found.len() >= 2
    });
    let has_ended = |state: &PathBuf| at(state, "step_done").is_some();
    assert!(!found.iter().any(has_ended), "a load was made alone");
    found
}

fn resume_completes(place: &Place) {
    let output = place.run(&["resume"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(UNDECIDED), "{said}");
    assert_eq!(campaign(place).state, CampaignState::Complete, "{said}");
    assert_nothing_is_left(place);
}

#[test]
fn loads_of_a_start_are_made_side_by_side_and_said_with_their_cells() {
    let place = place();
    let child = start(&place);
    at_work(&place);
    let output = wait(child);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(UNDECIDED), "{said}");
    assert_eq!(campaign(&place).state, CampaignState::Complete);
    for cell in ["sqlite.wal_full", "sqlite.wal_full#2", "sqlite.wal_off"] {
        let of_cell = format!("{cell}: ");
        let loads = said.lines().filter(|line| line.starts_with(&of_cell));
        let loads = loads.filter(|line| line.contains("the time has the indexes"));
        assert_eq!(loads.count(), 2, "{cell}: {said}");
    }
    // No server of a start is up before all of its data is there.
    let states = states(&place).unwrap();
    let made: Vec<u64> = STATES
        .iter()
        .map(|state| at(&states.join(state), "trial_done").unwrap())
        .collect();
    let trials = fs::read_dir(states.with_file_name("trials")).unwrap();
    let begun = trials.filter_map(|trial| at(&trial.unwrap().path(), "trial_start"));
    assert!(made.iter().max() < begun.min().as_ref(), "{made:?}");
    assert_nothing_is_left(&place);
}

#[test]
fn a_load_that_is_killed_beside_others_costs_its_candidate_alone() {
    let place = place();
    let child = start(&place);
    let candidate = || Some(states(&place)?.join(STATES[1]));
    wait_until("the candidate loads", || {
        candidate().is_some_and(|state| at(&state, "step_start").is_some())
    });
    let pid = events(&candidate().unwrap())[0]["pid"].as_u64().unwrap();
    kill_process(Pid::from_raw(pid as i32).unwrap(), Signal::KILL).unwrap();
    let output = wait(child);
    let said = text(&output.stderr);
    assert!(
        said.contains(
            "sqlite.wal_off: not complete: the data that its trials begin with could not be made: \
            the trial's process died during prepare (signal 9"
        ),
        "{said}"
    );
    let campaign = campaign(&place);
    let of_first = |cell: usize| {
        let schedule = &campaign.header.schedule;
        let trial = schedule.iter().find(|of| of.block == 1 && of.cell == cell);
        let number = trial.unwrap().number;
        let mut trials = campaign.trials.iter();
        trials.rfind(|trial| trial.number == number)
    };
    assert!(of_first(0).unwrap().is_complete(), "{said}");
    assert!(of_first(2).unwrap().is_complete(), "{said}");
    assert!(
        !of_first(1).is_some_and(|trial| trial.is_complete()),
        "{said}"
    );
    assert_nothing_is_left(&place);
}

#[test]
fn ctrl_c_ends_all_loads_and_resume_makes_them_again() {
    let place = place();
    let child = start(&place);
    at_work(&place);
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_nothing_is_left(&place);
    resume_completes(&place);
}

/// Each load has a folder for what it writes, from before the first of them began: of those that
/// were still to begin an empty one stayed.
#[test]
fn a_load_that_never_began_leaves_no_folder() {
    let place = place();
    let cells = 2 * std::thread::available_parallelism().unwrap().get() + 2;
    let mut configs = vec!["\"wal_full\"".to_owned()];
    let mut plan = PLAN.to_owned();
    for number in 1..cells {
        configs.push(format!("\"c{number}\""));
        plan.push_str(&format!(
            "[config.c{number}]\nsettings = {{ journal_mode = \"wal\" }}\n"
        ));
    }
    plan = plan.replace("\"wal_full\", \"wal_off\"", &configs.join(", "));
    fs::write(place.path("plan.toml"), plan).unwrap();
    let child = start(&place);
    at_work(&place);
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let output = wait(child);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let loads = fs::read_dir(states(&place).unwrap()).unwrap();
    let loads: Vec<PathBuf> = loads.map(|load| load.unwrap().path()).collect();
    assert!(loads.len() < cells, "all had begun: {loads:?}");
    for load in loads {
        assert!(load.join("events.jsonl").exists(), "{}", load.display());
    }
    assert_nothing_is_left(&place);
}

#[test]
fn a_killed_orchestrator_leaves_no_load_at_work() {
    let place = place();
    let child = start(&place);
    at_work(&place);
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::KILL).unwrap();
    assert_eq!(wait(child).status.signal(), Some(9));
    wait_until("all loads are gone", || {
        processes_in(place.dir.path()).is_empty()
    });
    resume_completes(&place);
}
