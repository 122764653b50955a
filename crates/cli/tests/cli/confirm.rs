//! Confirm campaigns: who has a turn when, what is recorded of it, and what is left of one that
//! breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::sync::atomic::AtomicUsize;

use plimsoll_core::readings::HostReading;
use plimsoll_lab::builds::BuildCache;
use plimsoll_lab::{
    CampaignEnd, ConfirmChoice, ConfirmRequest, DesignChoice, LoadsChoice, Notice, Observer,
    PlacementChoice, StopRule, create_confirm, run_campaign_until,
};
use plimsoll_store::{
    CampaignDir, CampaignRecord, CampaignState, Design, Store, TrialRecord, check_seal,
};
use plimsoll_testkit::cached_build;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{
    LIMITS, Place, UNDECIDED, assert_nothing_is_left, processes_in, text, wait, wait_until,
};

const PLAN: &str = r#"
name = "tests"
workload = "sysbench-2025"
comparable = false
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_full"
verify = "end"
wait = "100ms"
tests = ["point-query", "update-nonindex", "delete"]
seed = 5
[sizes]
clients = 1
tables = 1
rows = "10K"
duration = "100ms"
warm_up = "0ms"
"#;
const CELLS: [&str; 3] = ["sqlite.wal_full", "sqlite.wal_full#2", "sqlite.wal_off"];

/// [`PLAN`] with steps that are long enough to be judged in a screen.
fn plan_to_judge() -> String {
    PLAN.replace("duration = \"100ms\"", "duration = \"1s\"")
}

/// A place with a screen of this plan.
fn screened(plan: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("plan.toml"), plan).unwrap();
    let output = place.run(&["run", "plan.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    place
}

fn newest(place: &Place) -> CampaignRecord {
    Store::new(place.path("plimsoll-runs"))
        .find(None)
        .unwrap()
        .load()
        .unwrap()
}

fn confirm_dir(place: &Place) -> Option<PathBuf> {
    let entries = fs::read_dir(place.path("plimsoll-runs")).ok()?;
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_str().is_some_and(|path| path.ends_with("-confirm")))
}

fn label(campaign: &CampaignRecord, trial: &TrialRecord) -> String {
    let scheduled = campaign
        .header
        .schedule
        .iter()
        .find(|scheduled| scheduled.number == trial.number)
        .unwrap();
    campaign.header.plan.cells[scheduled.cell].label.clone()
}

/// What `show --json` says of a cell's throughput in a step of the newest campaign.
fn comparison(place: &Place, step: &str, cell: &str) -> Value {
    let output = place.run(&["show", "--json"]);
    let mut shown: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let all = shown["comparisons"].as_array_mut().unwrap();
    let is_it =
        |of: &Value| of["step"] == step && of["cell"] == cell && of["is_throughput"] == true;
    all.iter()
        .position(is_it)
        .map(|at| all.swap_remove(at))
        .unwrap_or_else(|| panic!("nothing on {cell} in {step}: {all:?}"))
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Waits until these trials have begun a step, and gives the folders of all that have.
fn wait_for_step(place: &Place, step: &str, trials: usize) -> Vec<PathBuf> {
    let wanted = format!("\"event\":\"step_start\",\"step\":\"{step}\"");
    let mut found = Vec::new();
    wait_until(&format!("{step} has begun in {trials} trials"), || {
        let folders = confirm_dir(place)
            .and_then(|dir| fs::read_dir(dir.join("trials")).ok())
            .into_iter()
            .flatten();
        found = folders
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        found.retain(|dir| {
            fs::read_to_string(dir.join("events.jsonl"))
                .is_ok_and(|events| events.contains(&wanted))
        });
        found.len() == trials
    });
    found
}

/// Every round has every candidate once, and over as many rounds as there are candidates each has
/// every place once.
fn assert_turns(campaign: &CampaignRecord, start: u32, attempt: u32, step: &str) {
    let of_start = |trial: &&TrialRecord| {
        trial.attempt == attempt
            && campaign
                .header
                .schedule
                .iter()
                .any(|s| s.number == trial.number && s.block == start)
    };
    let turns: BTreeMap<String, Vec<(u32, u32)>> = campaign
        .trials
        .iter()
        .filter(of_start)
        .map(|trial| {
            let turns = trial.turns(step).unwrap();
            assert!(turns.iter().all(|turn| turn.speed.is_some()), "{turns:?}");
            assert!(
                turns
                    .iter()
                    .any(|turn| turn.operations > 0 && turn.active_ns > 0),
                "{turns:?}"
            );
            assert!(
                turns
                    .windows(2)
                    .all(|pair| pair[0].begin_ns < pair[1].begin_ns)
            );
            (
                label(campaign, trial),
                turns
                    .iter()
                    .map(|turn| (turn.round, turn.position))
                    .collect(),
            )
        })
        .collect();
    let candidates = turns.len();
    let rounds = turns.values().next().unwrap().len();
    assert!(rounds >= candidates, "{turns:?}");
    for round in 0..rounds {
        let places: BTreeSet<(u32, u32)> = turns.values().map(|turns| turns[round]).collect();
        assert_eq!(
            places,
            (1..=candidates as u32)
                .map(|position| (round as u32 + 1, position))
                .collect(),
            "round {round}"
        );
    }
    for turns in turns.values() {
        assert_eq!(turns.len(), rounds);
        for group in turns.chunks_exact(candidates) {
            assert_eq!(
                group
                    .iter()
                    .map(|(_, position)| position)
                    .collect::<BTreeSet<_>>()
                    .len(),
                candidates,
                "{group:?}"
            );
        }
    }
}

#[test]
fn slices_go_round_in_balanced_order_and_are_recorded() {
    let place = screened(PLAN);
    let output = place.run(&[
        "confirm",
        "--step",
        "point-query,update-nonindex,delete",
        "--slices",
        "4ms,6ms",
        "--time",
        "2s",
        "--starts",
        "2",
        "--json",
    ]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(UNDECIDED), "{stderr}");
    assert!(
        stderr.contains("undecided: none of 3 throughputs has a verdict; "),
        "{stderr}"
    );
    let campaign = newest(&place);
    let confirm = campaign.header.confirm.clone().unwrap();
    assert_eq!(
        (confirm.design, confirm.starts, confirm.blocks),
        (Design::Slices, Some(2), None)
    );
    assert_eq!(
        confirm.placement, None,
        "workers and engine are one process"
    );
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("nothing is pinned: the engine is in the workers' process"),
        "{stderr}"
    );
    assert_eq!(
        (confirm.turn_ns_read, confirm.turn_ns_write, confirm.time_ns),
        (4_000_000, 6_000_000, 2_000_000_000)
    );
    // In the order of the preset, whatever the order of the wish.
    assert_eq!(confirm.steps, ["update-nonindex", "point-query", "delete"]);
    assert!(
        campaign.header.id.ends_with("-tests-confirm"),
        "{}",
        campaign.header.id
    );
    assert!(
        confirm
            .before
            .iter()
            .all(|steps| steps.len() == 1 && steps[0].name == "prepare")
    );
    assert_eq!(campaign.trials.len(), 6);
    for trial in &campaign.trials {
        assert!(trial.is_complete(), "{trial:?}");
        assert_eq!(check_seal(&trial.dir).unwrap(), Some(Vec::new()));
        // The last step changes the tables, and its rows were verified.
        let last = trial.steps_done().last().unwrap().clone();
        assert_eq!((last.step.as_str(), last.tables.len()), ("delete", 1));
        assert_eq!(last.tables[0].found_rows, last.tables[0].expected_rows);
        assert!(last.tables[0].found_rows < 10_000, "rows were deleted");
        assert!(last.host.contains(HostReading::ProcessCpu));
    }
    for (start, step) in [1, 2]
        .into_iter()
        .flat_map(|start| confirm.steps.iter().map(move |step| (start, step)))
    {
        assert_turns(&campaign, start, 1, step);
    }
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparisons = json["comparisons"].as_array().unwrap();
    let of_throughput = comparisons
        .iter()
        .filter(|row| row["is_throughput"] == true)
        .count();
    assert_eq!(
        of_throughput, 3,
        "one candidate beside the base, three steps: {json:#}"
    );
    let control = json["control"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["step"] == "point-query" && row["metric"] == "qps")
        .unwrap();
    assert_eq!(control["cell"], "sqlite.wal_full#2");
    assert!(
        control["estimate"].is_null() || control["estimate"]["pairs"].as_u64().unwrap() > 8,
        "{control}"
    );
    assert!(
        comparisons.iter().all(|row| row["design"] == "slices"),
        "{json:#}"
    );
    assert_nothing_is_left(&place);
    // It is a campaign like any other, and none to be confirmed itself.
    assert_eq!(place.run(&["show"]).status.code(), Some(0));
    let again = place.run(&["confirm", campaign.header.id.as_str()]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        text(&again.stderr).contains("is a confirm campaign itself"),
        "{}",
        text(&again.stderr)
    );
}

#[test]
fn steps_with_background_writers_take_turns_and_keep_their_rows() {
    let place = Place::new();
    assert_eq!(
        place
            .run(&["run", "small.toml", "--seed", "4"])
            .status
            .code(),
        Some(0)
    );
    let output = place.run(&[
        "confirm",
        "--step",
        "qr100",
        "--cells",
        "sqlite.wal_off",
        "--slices",
        "20ms",
        "--time",
        "4s",
        "--starts",
        "1",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let campaign = newest(&place);
    assert_eq!(
        campaign
            .header
            .plan
            .cells
            .iter()
            .map(|cell| cell.label.as_str())
            .collect::<Vec<_>>(),
        ["sqlite.wal_off", "sqlite.wal_off#2"]
    );
    assert!(
        text(&output.stderr).contains("there is one cell: nothing but the A/A control is measured"),
        "{}",
        text(&output.stderr)
    );
    assert_turns(&campaign, 1, 1, "qr100");
    for trial in &campaign.trials {
        let done = trial.steps_done().next().unwrap();
        let ok = |kind: &str| {
            done.operations
                .iter()
                .find(|operation| operation.kind == kind)
                .unwrap()
        };
        assert_eq!(ok("insert").rows, ok("delete").rows);
        assert!(
            done.tables
                .iter()
                .all(|table| table.found_rows == table.expected_rows && table.found_rows == 20_100),
            "{:?}",
            done.tables
        );
        // Writers owe nothing for the time in which others had their turns: their rate is that of
        // active seconds.
        let pacing = ok("insert").pacing.as_ref().unwrap();
        assert!(pacing.backlog <= 1 && pacing.seconds < 4, "{pacing:?}");
    }
}

#[test]
fn blocks_swap_two_candidates_and_begin_with_a_canary() {
    let place = screened(PLAN);
    let output = place.run(&[
        "confirm",
        "--step",
        "point-query",
        "--blocks",
        "2",
        "--time",
        "100ms",
    ]);
    assert_eq!(
        output.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&output.stderr)
    );
    assert!(
        text(&output.stderr).contains("2 blocks cannot decide anything"),
        "{}",
        text(&output.stderr)
    );
    // The newest campaign has this step alone; `show` takes the campaign as `explain` does.
    let other = place.run(&["explain", "delete"]);
    let why = text(&other.stderr);
    assert_eq!(other.status.code(), Some(2), "{why}");
    let hint = why
        .split_once("has it: `plimsoll explain delete --campaign ")
        .unwrap()
        .1;
    let (survey, _) = hint.split_once('`').unwrap();
    for command in [
        vec!["explain", "delete", "--campaign", survey],
        vec!["show", "--campaign", survey],
    ] {
        let output = place.run(&command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let comparison = comparison(&place, "point-query", "sqlite.wal_off");
    let reason = comparison["reason"].as_str().unwrap();
    match comparison["verdict"].as_str().unwrap() {
        "inconclusive" => assert!(
            reason.starts_with("cannot be decided with ") && reason.ends_with(" needed"),
            "{reason}"
        ),
        // Somebody else was at work here.
        verdict => assert!(
            verdict == "invalid" && reason.contains("left out"),
            "{comparison}"
        ),
    }
    let campaign = newest(&place);
    let cells: Vec<usize> = campaign
        .header
        .schedule
        .iter()
        .map(|trial| trial.cell)
        .collect();
    assert_eq!(cells[3..], [cells[2], cells[1], cells[0]]);
    let confirm = campaign.header.confirm.as_ref().unwrap();
    assert_eq!(
        (confirm.design, confirm.blocks, &confirm.placement),
        (Design::Blocks, Some(2), &None)
    );
    for trial in campaign.trials.iter().filter(|trial| trial.attempt == 1) {
        let events = fs::read_to_string(trial.dir.join("events.jsonl")).unwrap();
        assert!(
            events.contains("\"event\":\"canary\",\"integer_per_us\":"),
            "{events}"
        );
        assert_eq!(
            trial
                .steps_done()
                .map(|done| done.step.as_str())
                .collect::<Vec<_>>(),
            ["point-query"],
            "the load is in the copied data"
        );
        // One that a witness speaks against has run again, at the end, if the machine was quiet
        // enough for that.
        if text(&output.stderr).contains("none runs again") {
            continue;
        }
        let is_suspect = events.contains("\"event\":\"suspect\"");
        assert_eq!(
            campaign
                .trials
                .iter()
                .any(|other| other.number == trial.number && other.attempt == 2),
            is_suspect
        );
        assert_eq!(check_seal(&trial.dir).unwrap(), Some(Vec::new()));
    }
    assert_nothing_is_left(&place);
}

/// Has enough after two blocks.
struct Content(AtomicUsize);

impl Observer for Content {
    fn notice(&mut self, _: Notice<'_>) {}

    fn stop_requests(&self) -> &AtomicUsize {
        &self.0
    }
}

impl StopRule for Content {
    fn is_enough(&mut self, campaign: &CampaignDir, block: u32) -> bool {
        assert_eq!(campaign.load().unwrap().state, CampaignState::Running);
        block == 2
    }
}

#[test]
fn blocks_end_when_there_is_enough_and_resume_runs_the_rest() {
    let place = screened(PLAN);
    let store = Store::new(place.path("plimsoll-runs"));
    let screen = store.find(None).unwrap();
    let choice = ConfirmChoice {
        budget: None,
        loads: LoadsChoice::Shared,
        steps: vec!["point-query".to_owned()],
        is_all: false,
        cells: Vec::new(),
        design: DesignChoice::Blocks(3),
        time_ns: Some(100_000_000),
        starts: None,
        age_ns: None,
        placement: PlacementChoice::Auto,
        profile_ns: None,
    };
    let data_dir = place.path("data").canonicalize().unwrap();
    let request = ConfirmRequest {
        survey: &screen.header,
        choice,
        bisection: None,
        data_dir: &data_dir,
        plimsoll_version: "test",
        client_hosts: None,
    };
    let (mut campaign, turn, _) = create_confirm(&store, &request).unwrap();
    let builds = BuildCache::new(place.path("cache"));
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let end = run_campaign_until(
        &mut campaign,
        Some(turn),
        &builds,
        program,
        &mut Content(AtomicUsize::new(0)),
    )
    .unwrap();
    let (block, broken, has_time) = (2, 0, true);
    let expected = CampaignEnd::Decided {
        block,
        broken,
        has_time,
    };
    assert_eq!(end, expected);
    let decided = newest(&place);
    assert_eq!(
        (decided.state, decided.trials.len()),
        (CampaignState::Decided, 6),
        "three candidates, two blocks"
    );
    let shown = text(&place.run(&["show"]).stdout);
    assert!(
        shown.contains("ended at a planned look, because all was decided"),
        "{shown}"
    );

    let output = place.run(&["resume"]);
    assert_eq!(
        output.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&output.stderr)
    );
    let whole = newest(&place);
    assert_eq!(whole.state, CampaignState::Complete);
    assert!(!whole.path.join("decided.json").exists());
    assert_nothing_is_left(&place);
}

fn start_slices(place: &Place) -> Child {
    place.spawn(&[
        "confirm",
        "--step",
        "point-query,update-nonindex",
        "--time",
        "6s",
        "--starts",
        "2",
        "--loads",
        "1",
    ])
}

/// Resumes, and checks that the first start was repeated whole.
fn resume_repeats_the_start(place: &Place) -> Output {
    let output = place.run(&["resume"]);
    assert_eq!(
        output.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&output.stderr)
    );
    let campaign = newest(place);
    for start in [1, 2] {
        let trials = || {
            campaign
                .header
                .schedule
                .iter()
                .filter(|trial| trial.block == start)
        };
        let last = |number: u32| {
            campaign
                .trials
                .iter()
                .rfind(|trial| trial.number == number)
                .unwrap()
        };
        let attempts: BTreeSet<u32> = trials().map(|trial| last(trial.number).attempt).collect();
        assert_eq!(
            attempts.len(),
            1,
            "candidates of a start are of one attempt"
        );
        assert!(trials().all(|trial| last(trial.number).is_complete()));
        let attempt = attempts.into_iter().next().unwrap();
        assert!(
            start == 2 || attempt == 2,
            "start {start} is of attempt {attempt}"
        );
        assert_turns(&campaign, start, attempt, "point-query");
    }
    assert_nothing_is_left(place);
    output
}

#[test]
fn ctrl_c_ends_all_candidates_and_resume_repeats_the_start() {
    let place = screened(PLAN);
    let child = start_slices(&place);
    wait_for_step(&place, "point-query", 3);
    signal(child.id(), Signal::INT);
    let output = wait(child);
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert_nothing_is_left(&place);
    let output = resume_repeats_the_start(&place);
    assert!(
        text(&output.stdout).contains("point-query"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn a_killed_orchestrator_leaves_no_candidate_and_resume_repeats_the_start() {
    let place = screened(PLAN);
    let child = start_slices(&place);
    wait_for_step(&place, "point-query", 3);
    signal(child.id(), Signal::KILL);
    assert_eq!(wait(child).status.signal(), Some(9));
    wait_until("all trials are gone", || {
        processes_in(place.dir.path()).is_empty()
    });
    resume_repeats_the_start(&place);
}

#[test]
fn a_candidate_that_dies_is_told_and_the_others_go_on() {
    let place = screened(PLAN);
    let child = place.spawn(&[
        "confirm",
        "--step",
        "point-query,update-nonindex",
        "--time",
        "3s",
        "--starts",
        "1",
    ]);
    let trials = wait_for_step(&place, "point-query", 3);
    let off = trials
        .iter()
        .find(|dir| dir.to_str().unwrap().contains("wal_off"))
        .unwrap();
    let start: Value = serde_json::from_str(
        fs::read_to_string(off.join("events.jsonl"))
            .unwrap()
            .lines()
            .next()
            .unwrap(),
    )
    .unwrap();
    signal(start["pid"].as_u64().unwrap() as u32, Signal::KILL);
    let output = wait(child);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains(
            "sqlite.wal_off: not complete: the trial's process died during point-query (signal 9"
        ),
        "{stderr}"
    );
    let line = stdout
        .lines()
        .find(|line| line.contains("point-query") && line.contains("sqlite.wal_off "))
        .unwrap();
    assert!(
        line.contains("invalid") && !line.contains('['),
        "never a ratio of one that died: {line}"
    );
    let died = comparison(&place, "point-query", "sqlite.wal_off");
    assert!(
        died["reason"]
            .as_str()
            .unwrap()
            .starts_with("the cell crashed: signal 9"),
        "{died}"
    );
    let control = stdout
        .lines()
        .find(|line| line.contains("point-query") && line.contains("#2"))
        .unwrap();
    assert!(control.contains("A/A"), "{control}");
    let campaign = newest(&place);
    let complete: BTreeSet<String> = campaign
        .trials
        .iter()
        .filter(|trial| trial.is_complete())
        .map(|trial| label(&campaign, trial))
        .collect();
    assert_eq!(
        complete,
        CELLS[..2].iter().map(|&label| label.to_owned()).collect()
    );
    assert_eq!(place.run(&["resume"]).status.code(), Some(UNDECIDED));
    assert_eq!(
        newest(&place).trials.len(),
        6,
        "the start was repeated whole"
    );
}

/// It ended with 0, and `resume` ran the start again without the step that had broken: the crash was
/// forgotten, and so was all that this start had measured.
#[test]
fn a_candidate_that_dies_within_a_budget_is_told_and_its_start_runs_again_whole() {
    let place = screened(&format!("{PLAN}{LIMITS}"));
    let child = place.spawn(&[
        "confirm",
        "--step",
        "point-query,delete",
        "--budget",
        "60s",
        "--reads",
        "99%",
        "--writes",
        "99%",
    ]);
    let events = |dir: &PathBuf| fs::read_to_string(dir.join("events.jsonl")).unwrap();
    let trials = wait_for_step(&place, "delete", 6);
    let open = trials.iter().find(|dir| {
        dir.to_str().unwrap().contains("wal_off") && !events(dir).contains("trial_done")
    });
    let start: Value = serde_json::from_str(events(open.unwrap()).lines().next().unwrap()).unwrap();
    signal(start["pid"].as_u64().unwrap() as u32, Signal::KILL);
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("1 trial is not complete; logs are in "),
        "{stderr}"
    );
    let starts = |of: &Value| -> Vec<u64> {
        let starts = of["starts"].as_array().unwrap().iter();
        starts.map(|of| of["start"].as_u64().unwrap()).collect()
    };
    let died = comparison(&place, "delete", "sqlite.wal_off");
    let reason = died["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("the cell crashed in 1 of 2 starts: signal 9"),
        "later starts left it out: {reason}"
    );
    let read = comparison(&place, "point-query", "sqlite.wal_off");
    let before = starts(&read);
    assert!(before.contains(&2), "{read:#}");

    let output = place.run(&["resume"]);
    let stderr = text(&output.stderr);
    assert!(
        matches!(output.status.code(), Some(0 | UNDECIDED)),
        "{stderr}"
    );
    let campaign = newest(&place);
    let again = campaign.trials.iter().filter(|trial| trial.attempt == 2);
    for trial in again.clone() {
        let steps: Vec<&str> = trial.steps_done().map(|done| done.step.as_str()).collect();
        assert_eq!(steps, ["point-query", "delete"]);
    }
    assert_eq!(again.count(), 3, "the start was repeated whole");
    let read = comparison(&place, "point-query", "sqlite.wal_off");
    assert_eq!(starts(&read), before, "{read:#}");
    let written = comparison(&place, "delete", "sqlite.wal_off");
    assert!(starts(&written).contains(&2), "{written:#}");
}

#[test]
fn what_cannot_be_confirmed_is_said() {
    let empty = Place::new();
    let output = empty.run(&["confirm"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr)
            .contains("there is no campaign to confirm: `plimsoll run PLAN` makes one"),
        "{}",
        text(&output.stderr)
    );

    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    for (arguments, expected) in [
        (
            &["--step", "qr1OO"][..],
            "there is no step qr1OO (did you mean \"qr100\"?)",
        ),
        (
            &["--step", "qr100", "--cells", "sqlite.wal_of"],
            "has no cell sqlite.wal_of (did you mean \"sqlite.wal_off\"?)",
        ),
        (
            &["--step", "l.i1", "--slices"],
            "l.i1 does a fixed number of things and cannot be cut into turns; take --blocks 12",
        ),
        (
            &["--step", "qr100", "--placement", "0-9999/1"],
            "--placement: 0-9999 is not a set of CPUs that may be used",
        ),
        (
            &["--step", "qr100", "--placement", "0"],
            "write the CPUs of clients and servers as in 0/1-3, or none",
        ),
        (&["--step", "qr100", "--slices", "20"], "--slices 20"),
        (
            &["--step", "qr100", "--time", "0s"],
            "nothing can be measured in no time",
        ),
        (
            &["--step", "qr100", "--budget", "-5m"],
            "--budget -5m: \"-5m\" is not a duration such as 250ms, 30s, 5m or 2h",
        ),
        (
            &["--step", "qr100", "--blocks", "0"],
            "--blocks must be at least 1",
        ),
        (
            &["--step", "qr100", "--starts", "0"],
            "--starts must be at least 1",
        ),
        (
            &["--step", "qr100", "--slices", "20ms,900us"],
            "--slices 900us: a turn is 1ms at least",
        ),
        (
            &["--step", "l.i1", "--starts", "2"],
            "--starts is for slices, which cannot be: l.i1 does a fixed number of things and \
            cannot be cut into turns; take --blocks 12",
        ),
    ] {
        let output = place.run(&[&["confirm"], arguments].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    assert_eq!(
        fs::read_dir(place.path("plimsoll-runs")).unwrap().count(),
        1,
        "no campaign was made"
    );
}

/// Two instances of one build and two configs on real servers; one server is killed in the middle.
#[test]
fn a_server_that_is_killed_in_its_turns_is_a_crash_of_that_candidate_alone() {
    let settings = [
        (
            "mysql@5.7",
            "innodb_buffer_pool_size = \"64M\", innodb_log_file_size = \"16M\", performance_schema \
            = \"0\"",
        ),
        ("postgres@18", "shared_buffers = \"64MB\", fsync = \"off\""),
    ];
    for (wanted, settings) in settings {
        let test =
            "cli::confirm::a_server_that_is_killed_in_its_turns_is_a_crash_of_that_candidate_alone";
        let Some(build) = cached_build(test, wanted) else {
            continue;
        };
        let place = Place::new();
        fs::set_permissions(place.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let plan = format!(
            "name = \"t-confirm\"\nworkload = \"sysbench-2025\"\ncomparable = false\nbuilds = \
            [\"{}\"]\nconfigs = [\"first\", \"second\"]\nseed = 3\nwait = \"100ms\"\n\
             tests = [\"point-query\", \"insert\"]\n[sizes]\nclients = 2\ntables = 1\nrows = \
            \"5K\"\nduration = \"1s\"\nwarm_up = \"0ms\"\n\
             [config.first]\nsettings = {{ {settings} }}\n[config.second]\nsettings = \
            {{ {settings} }}\n",
            build.name
        );
        fs::write(place.path("plan.toml"), plan).unwrap();
        let cache = build.cache.to_str().unwrap().to_owned();
        let arguments = [
            "confirm",
            "plan.toml",
            "--time",
            "4s",
            "--starts",
            "1",
            "--cache",
            &cache,
        ];
        let child = place
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let trials = wait_for_step(&place, "insert", 3);
        let second = trials
            .iter()
            .find(|dir| dir.to_str().unwrap().contains(".second."))
            .unwrap();
        signal(server_pid(second), Signal::KILL);
        let output = wait(child);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            text(&output.stdout).contains("A/A")
                && stderr.contains(
                    ".second: not complete: the server crashed during insert (signal 9, SIGKILL"
                ),
            "{stderr}"
        );
        let second = format!("{}.second", build.name);
        let crashed = comparison(&place, "insert", &second);
        assert!(
            crashed["verdict"] == "invalid"
                && crashed["estimate"].is_null()
                && crashed["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with("the cell crashed: "),
            "{crashed}"
        );
        let before = comparison(&place, "point-query", &second);
        assert!(
            !before["reason"].as_str().unwrap().contains("crashed"),
            "what it did before it crashed counts: {before}"
        );
        let campaign = newest(&place);
        let control = campaign
            .trials
            .iter()
            .find(|trial| label(&campaign, trial).ends_with("#2"))
            .unwrap();
        let turns = control.turns("point-query").unwrap();
        let suffered: u64 = turns
            .iter()
            .filter_map(|turn| turn.other_servers_cpu_ns)
            .sum();
        let active: u64 = turns.iter().map(|turn| turn.active_ns).sum();
        assert!(
            suffered * 100 < active,
            "{suffered} ns of servers that are stopped in {active} ns"
        );
        for turn in turns {
            assert!(
                turn.server_cpu_ns.is_some()
                    && turn.client_cpu_ns.is_some()
                    && turn.other_servers_cpu_ns.is_some(),
                "{turn:?}"
            );
        }
        assert_nothing_is_left(&place);
        for dir in trials {
            assert!(!Path::new(&format!("/proc/{}/stat", server_pid(&dir))).exists());
        }
        // That is the same whatever the servers are.
        if !wanted.starts_with("postgres") {
            continue;
        }
        let resumed = place.run(&["resume", "--cache", &cache]);
        assert_eq!(
            resumed.status.code(),
            Some(UNDECIDED),
            "{}",
            text(&resumed.stderr)
        );
        assert_nothing_is_left(&place);
    }
}

fn server_pid(trial: &Path) -> u32 {
    let identity: Value =
        serde_json::from_slice(&fs::read(trial.join("server/server-process.json")).unwrap())
            .unwrap();
    identity["pid"].as_u64().unwrap() as u32
}

#[test]
fn the_newest_screen_is_taken_and_nothing_unusual_is_said() {
    let plan = plan_to_judge()
        .replace(
            "configs = [\"wal_full\", \"wal_off\"]",
            "configs = [\"wal_off\"]",
        )
        .replace("sqlite.wal_full", "sqlite.wal_off");
    let place = screened(&plan);
    let output = place.run(&["confirm", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stderr).contains(
            "is unusual: every difference that can be judged is within normal restart-to-restart \
            variation; --all"
        ),
        "{}",
        text(&output.stderr)
    );
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["comparisons"], Value::Array(Vec::new()));
    let arguments = [
        "confirm",
        "--step",
        "point-query",
        "--time",
        "200ms",
        "--starts",
        "1",
    ];
    for _ in 0..2 {
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let of: BTreeSet<Option<String>> = Store::new(place.path("plimsoll-runs"))
        .campaigns()
        .unwrap()
        .iter()
        .map(|path| {
            CampaignDir::open(path)
                .unwrap()
                .header
                .confirm
                .and_then(|confirm| confirm.of)
        })
        .collect();
    assert_eq!(of.len(), 2, "both confirm the one screen: {of:?}");
}

#[test]
fn all_by_slices_leaves_out_what_cannot_take_turns() {
    let place = Place::new();
    let plan = "name = \"tests\"\nworkload = \"insert-benchmark-2017\"\ncomparable = false\nbuilds \
               = [\"sqlite\"]\n\
        configs = [\"wal_full\", \"wal_off\"]\n[sizes]\nclients = 1\nrows = \"5K\"\nduration = \
               \"200ms\"\n";
    fs::write(place.path("plan.toml"), plan).unwrap();
    let explained = place.run(&["plan", "explain", "plan.toml"]);
    let told = text(&explained.stdout);
    assert!(
        told.contains("confirm --all: by slices at most")
            && told.contains(" of disk, without scan, which cannot take turns;"),
        "{told}"
    );
    let with_budget = format!("{plan}[verdicts]\nbudget = \"2m\"\n");
    fs::write(place.path("budget.toml"), with_budget).unwrap();
    let explained = place.run(&["plan", "explain", "budget.toml"]);
    let told = text(&explained.stdout);
    let wanted = "by slices as the plan has it, without scan, which cannot take turns;";
    assert!(told.contains(wanted), "{told}{}", text(&explained.stderr));
    let run = place.run(&["run", "plan.toml", "--seed", "3"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let output = place.run(&["confirm", "--all", "--starts", "1", "--time", "500ms"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(UNDECIDED), "{stderr}");
    assert!(
        stderr.contains(
            "left out: scan does a fixed number of things: --step scan --blocks 12 confirms it"
        ),
        "{stderr}"
    );
    assert!(
        stderr
            .contains("left out, for the data of the others: l; --step NAME confirms one of them"),
        "{stderr}"
    );
    let confirm = newest(&place).header.confirm.unwrap();
    assert_eq!(
        (confirm.design, confirm.steps),
        (Design::Slices, vec!["q1000".to_owned(), "q100".to_owned()])
    );
    let output = place.run(&[
        "confirm",
        confirm.of.as_deref().unwrap(),
        "--all",
        "--blocks",
        "1",
        "--time",
        "200ms",
    ]);
    assert_eq!(
        output.status.code(),
        Some(UNDECIDED),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(
        newest(&place).header.confirm.unwrap().steps,
        ["scan", "q1000", "q100"],
        "by blocks there is room for all of them"
    );
}

/// A build that dies in half of the blocks: what is left would be its good days.
#[test]
fn a_cell_that_dies_in_half_of_the_blocks_gets_a_sentence_and_no_verdict() {
    let place = screened(PLAN);
    let child = place.spawn(&[
        "confirm",
        "--step",
        "point-query",
        "--blocks",
        "4",
        "--loads",
        "1",
        "--time",
        "1s",
    ]);
    let mut killed = BTreeSet::new();
    let wanted = "\"event\":\"step_start\",\"step\":\"point-query\"";
    while killed.len() < 2 {
        wait_until("the cell has begun its step", || {
            let folders = confirm_dir(&place)
                .and_then(|dir| fs::read_dir(dir.join("trials")).ok())
                .into_iter()
                .flatten();
            let off = folders
                .filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|dir| dir.to_str().unwrap().contains("wal_off"));
            for dir in off.filter(|dir| !killed.contains(dir)).collect::<Vec<_>>() {
                let events = fs::read_to_string(dir.join("events.jsonl")).unwrap_or_default();
                if events.contains(wanted) && !events.contains("\"event\":\"step_done\"") {
                    let start: Value =
                        serde_json::from_str(events.lines().next().unwrap()).unwrap();
                    signal(start["pid"].as_u64().unwrap() as u32, Signal::KILL);
                    killed.insert(dir);
                    return true;
                }
            }
            false
        });
    }
    let output = wait(child);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let dead = comparison(&place, "point-query", "sqlite.wal_off");
    let reason = dead["reason"].as_str().unwrap();
    assert_eq!(dead["verdict"], "invalid");
    assert!(
        reason.starts_with("the cell crashed in 2 of 4 blocks: signal 9"),
        "{reason}"
    );
    assert!(
        text(&output.stdout).contains("the cell crashed in 2 of 4 blocks"),
        "{}",
        text(&output.stdout)
    );
    let gate = place.run(&[
        "gate",
        "--candidate",
        "sqlite.wal_off",
        "--max-regression",
        "50%",
    ]);
    assert_eq!(gate.status.code(), Some(4), "{}", text(&gate.stdout));
}

/// A rate that no disk keeps up with: what is measured then is not a throughput of queries.
#[test]
fn a_base_that_missed_its_rate_is_left_out() {
    let place = Place::new();
    let plan = plan_to_judge().replace(
        "tests = [\"point-query\", \"update-nonindex\", \"delete\"]",
        "tests = [\"update-nonindex\"]",
    );
    fs::write(place.path("plan.toml"), format!("{plan}rate = 2000000\n")).unwrap();
    assert_eq!(place.run(&["run", "plan.toml"]).status.code(), Some(0));
    let output = place.run(&["confirm"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("update-nonindex: left out for sqlite.wal_off: the base missed its rate"),
        "{stderr}"
    );
    assert!(
        stderr.contains("could be judged: its one result is left out")
            && !stderr.contains("is unusual"),
        "{stderr}"
    );
    assert_eq!(
        fs::read_dir(place.path("plimsoll-runs")).unwrap().count(),
        1,
        "no campaign was made"
    );
}

#[test]
fn cells_with_other_data_are_not_compared() {
    let place = Place::new();
    let shapes = PLAN.replace("rows = \"10K\"\n", "")
        + "[shapes.small]\nrows = \"10K\"\n[shapes.large]\nrows = \"20K\"\n";
    let shapes = shapes.replace(
        "base = \"sqlite.wal_full\"",
        "base = \"sqlite.wal_full.small\"",
    );
    fs::write(place.path("plan.toml"), shapes).unwrap();
    let run = place.run(&["run", "plan.toml"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let output = place.run(&["confirm", "--step", "point-query"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("do not have the same data states"),
        "{}",
        text(&output.stderr)
    );
    let output = place.run(&["confirm"]);
    assert!(
        text(&output.stderr).contains("the cells' shapes differ"),
        "{}",
        text(&output.stderr)
    );

    // A load that made a row too many in one of the cells.
    let place = screened(&plan_to_judge().replace("verify = \"end\"", "verify = \"full\""));
    let screen = newest(&place);
    let off = screen
        .trials
        .iter()
        .find(|trial| label(&screen, trial) == "sqlite.wal_off")
        .unwrap();
    let events = fs::read_to_string(off.dir.join("events.jsonl")).unwrap();
    assert!(events.contains("\"found_rows\":10000"), "{events}");
    let mut lines: Vec<String> = events.lines().map(str::to_owned).collect();
    let line = lines
        .iter_mut()
        .find(|line| line.contains("\"found_rows\":10000"))
        .unwrap();
    let content = line.replacen("\"found_rows\":10000", "\"found_rows\":10001", 1);
    let content = content.rsplit_once(",\"crc\":").unwrap().0;
    *line = format!(
        "{content},\"crc\":\"{:08x}\"}}",
        crc32fast::hash(format!("{content}}}").as_bytes())
    );
    fs::write(off.dir.join("events.jsonl"), lines.join("\n") + "\n").unwrap();
    let output = place.run(&["confirm"]);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains(
            "the data states differ: sbtest1 holds 10000 rows in the base and sbtest1 holds 10001 \
            in the cell"
        ),
        "{stderr}"
    );
}
