//! Blocks over hosts: namespaces with an sshd each, the real ssh, the real program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use plimsoll_testkit::skip;
use serde_json::Value;

use crate::host_faults::told_when;
use crate::lab_hosts::{Lab, kill};
use crate::support::{Mount, Place, UNDECIDED, text, wait, wait_until};

/// Blocks of two cells.
const PLAN: &str = r#"
name = "spread"
workload = "insert-benchmark"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_off"
verify = "full"
wait = "0s"
comparable = false
blocks = BLOCKS
steps = ["l.i0", "l.x", "l.i1", "l.i2", "qr100"]
[sizes]
rows = "ROWSK"
write_rows = "1K"
duration = "DURATION"
"#;

/// `rows` in thousands; `duration` is that of the only step that ends by time.
pub fn write_plan(lab: &Lab, blocks: u32, rows: u32, duration: &str) {
    let plan = PLAN
        .replace("BLOCKS", &blocks.to_string())
        .replace("ROWS", &rows.to_string())
        .replace("DURATION", duration);
    fs::write(lab.place.path("spread.toml"), plan).unwrap();
}

pub fn check(output: &Output, code: i32) -> String {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The only campaign of a store.
pub fn campaign(lab: &Lab, store: &str) -> PathBuf {
    let entries = fs::read_dir(lab.place.path(store)).unwrap();
    let mut folders: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders.remove(0)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Events of each attempt, by the name of its folder.
pub fn events(campaign: &Path) -> BTreeMap<String, Vec<Value>> {
    let Ok(trials) = fs::read_dir(campaign.join("trials")) else {
        return BTreeMap::new();
    };
    let of_trial = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let log = fs::read_to_string(entry.path().join("events.jsonl")).unwrap_or_default();
        let lines = log
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        (
            name,
            lines
                .map(|line| serde_json::from_str(line).unwrap())
                .collect(),
        )
    };
    let trials = trials.map(Result::unwrap);
    trials
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(of_trial)
        .collect()
}

pub fn is_complete(events: &[Value]) -> bool {
    events.iter().any(|event| event["event"] == "trial_done")
}

/// What of a trial follows from plan and seed alone, wherever it ran.
pub fn data_of(events: &[Value]) -> Vec<Value> {
    let of_step = |event: &Value| {
        let keep = |name: &str| event[name].clone();
        serde_json::json!([keep("step"), keep("tables")])
    };
    events
        .iter()
        .filter(|event| event["event"] == "step_done")
        .map(of_step)
        .collect()
}

/// Every block has complete trials of all cells on one host: the latest of each.
pub fn blocks_on_one_host(campaign: &Path) -> BTreeMap<u64, String> {
    let mut latest: BTreeMap<u64, (u64, u64, String)> = BTreeMap::new();
    for events in events(campaign)
        .into_values()
        .filter(|events| is_complete(events))
    {
        let start = &events[0];
        let number = |name: &str| start[name].as_u64().unwrap();
        let (trial, attempt, block) = (number("trial"), number("attempt"), number("block"));
        let host = start["host"].as_str().unwrap().to_owned();
        let entry = latest
            .entry(trial)
            .or_insert((attempt, block, host.clone()));
        if attempt > entry.0 {
            *entry = (attempt, block, host);
        }
    }
    let schedule = json(&campaign.join("campaign.json"))["schedule"].clone();
    assert_eq!(
        latest.len(),
        schedule.as_array().unwrap().len(),
        "{latest:?}"
    );
    let mut hosts = BTreeMap::new();
    for (_, block, host) in latest.into_values() {
        let of = hosts.entry(block).or_insert_with(|| host.clone());
        assert_eq!(*of, host, "block {block} is on two hosts");
    }
    hosts
}

fn nothing_is_spooled(lab: &Lab, hosts: usize) {
    for host in 1..=hosts {
        let spool = fs::read_dir(lab.dir(host).join("spool")).unwrap();
        let left: Vec<_> = spool.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{left:?}");
        let data = fs::read_dir(lab.dir(host).join("data")).unwrap();
        let left: Vec<_> = data.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".plimsoll-data"], "data of h{host}");
    }
}

#[test]
fn a_campaign_over_hosts_is_the_campaign_at_home() {
    let Some(lab) = Lab::new(
        "cli::hosts::a_campaign_over_hosts_is_the_campaign_at_home",
        3,
    ) else {
        return;
    };
    write_plan(&lab, 4, 5, "200ms");
    let home = lab
        .place
        .run(&["run", "spread.toml", "--seed", "7", "--store", "home"]);
    check(&home, 0);

    // A host without the program says what to do.
    let refused = lab.run(&["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2,h3"]);
    let said = check(&refused, 5);
    assert!(said.contains("plimsoll host push h2"), "{said}");
    assert!(
        !lab.place.path("plimsoll-runs").exists(),
        "no campaign is made"
    );
    lab.push();
    let output = lab.run(&["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2,h3"]);
    let said = check(&output, 0);
    assert!(said.contains("h2: sqlite.wal_"), "{said}");

    let (home, over) = (campaign(&lab, "home"), campaign(&lab, "plimsoll-runs"));
    let header = |campaign: &Path| json(&campaign.join("campaign.json"));
    let (of_home, of_hosts) = (header(&home), header(&over));
    for member in ["schedule", "plan", "seed", "cells"] {
        assert_eq!(of_home[member], of_hosts[member], "{member}");
    }
    let (at_home, on_hosts) = (events(&home), events(&over));
    let names = |of: &BTreeMap<String, Vec<Value>>| of.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&at_home), names(&on_hosts));
    for (name, events) in &at_home {
        assert_eq!(data_of(events), data_of(&on_hosts[name]), "{name}");
        assert!(!data_of(events).is_empty());
    }
    let hosts = blocks_on_one_host(&over);
    let used: std::collections::BTreeSet<&String> = hosts.values().collect();
    assert_eq!(used.len(), 3, "{hosts:?}");
    for name in on_hosts.keys() {
        let environment = json(&over.join("trials").join(name).join("env.json"));
        let host = &environment["host"]["known"];
        assert_eq!(*host, on_hosts[name][0]["host"], "{name}");
        assert!(over.join("trials").join(name).join("seal.json").exists());
    }
    nothing_is_spooled(&lab, 3);

    let shown = text(&lab.place.run(&["show"]).stdout);
    assert!(
        shown.contains("by host: h1 ") && shown.contains(", h2 "),
        "{shown}"
    );
    let value: Value = serde_json::from_slice(&lab.place.run(&["show", "--json"]).stdout).unwrap();
    let results = value["results"].as_array().unwrap();
    assert!(results.iter().all(|result| result["host"].is_string()));
    let compared = value["comparisons"].as_array().unwrap();
    let of_hosts = compared
        .iter()
        .filter(|one| one["hosts"].is_array())
        .count();
    assert!(of_hosts > 0, "{compared:?}");

    // Complete: nothing is left to do, and nothing changes.
    check(&lab.run(&["resume"]), 0);
    assert_eq!(names(&events(&over)), names(&on_hosts));
}

/// Starts a campaign on `h1` and `h2` and waits until a trial runs on both.
pub fn begun(lab: &Lab, arguments: &[&str]) -> std::process::Child {
    let child = lab.spawn(arguments);
    wait_until("a trial runs on both hosts", || {
        (1..=2).all(|host| !lab.processes(host, " trial").is_empty())
    });
    child
}

#[test]
fn a_host_that_is_cut_off_costs_its_block_which_runs_again_elsewhere() {
    let name = "cli::hosts::a_host_that_is_cut_off_costs_its_block_which_runs_again_elsewhere";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 4, 20, "1s");
    lab.push();
    let child = begun(
        &lab,
        &["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"],
    );
    lab.link(2, "down");
    let cut = Instant::now();
    let told = std::thread::spawn(move || told_when(child, cut, "h2: lost with block"));
    // What is in flight there ends, and nothing runs on.
    wait_until("the trial on the host that is cut off has ended", || {
        lab.processes(2, " ").is_empty()
    });
    assert!(
        cut.elapsed() < Duration::from_secs(60),
        "{:?}",
        cut.elapsed()
    );
    println!("nothing runs {:?} after the cut", cut.elapsed());
    let (code, said, _) = told.join().unwrap();
    assert_eq!(code, Some(0), "{said}");
    let hosts = blocks_on_one_host(&campaign(&lab, "plimsoll-runs"));
    assert_eq!(hosts.len(), 4);

    // Back again: what it had is fetched by the next who asks.
    let spooled = || fs::read_dir(lab.dir(2).join("spool")).unwrap().count();
    assert_eq!(spooled(), 1);
    lab.link(2, "up");
    check(&lab.run(&["resume"]), 0);
    assert_eq!(spooled(), 0);
    blocks_on_one_host(&campaign(&lab, "plimsoll-runs"));
}

#[test]
fn a_killed_desk_leaves_nothing_running_and_resume_completes() {
    let name = "cli::hosts::a_killed_desk_leaves_nothing_running_and_resume_completes";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 4, 20, "300ms");
    lab.push();
    let child = begun(
        &lab,
        &["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"],
    );
    let desk = child.id().to_string();
    let over = campaign(&lab, "plimsoll-runs");
    wait_until("a trial is done", || {
        events(&over).values().any(|events| is_complete(events))
    });
    let killed = Instant::now();
    kill("KILL", &desk);
    wait(child);
    lab.wait_for_silence();
    assert!(
        killed.elapsed() < Duration::from_secs(20),
        "{:?}",
        killed.elapsed()
    );
    println!(
        "nothing runs {:?} after the desk was killed",
        killed.elapsed()
    );
    let before = events(&over);

    let output = lab.run(&["resume"]);
    check(&output, 0);
    let after = events(&over);
    for (folder, events) in &before {
        assert_eq!(
            after.get(folder),
            Some(events),
            "{folder} changed or is lost"
        );
    }
    blocks_on_one_host(&over);
    nothing_is_spooled(&lab, 2);
}

#[test]
fn a_killed_work_costs_its_trial() {
    let Some(lab) = Lab::new("cli::hosts::a_killed_work_costs_its_trial", 2) else {
        return;
    };
    write_plan(&lab, 4, 20, "300ms");
    lab.push();
    let child = begun(
        &lab,
        &["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"],
    );
    let works = lab.processes(1, " work --dir");
    // The shell that sshd starts has the same words; it may be replaced by the program.
    let killed = Instant::now();
    works.iter().for_each(|pid| kill("KILL", pid));
    let (code, said, _) = told_when(child, killed, "h1: lost with block");
    assert_eq!(code, Some(0), "{said}");
    let over = campaign(&lab, "plimsoll-runs");
    blocks_on_one_host(&over);
    let was_killed = |events: &Vec<Value>| {
        let reason = events.last().and_then(|event| event["reason"].as_str());
        reason.is_some_and(|reason| reason.contains("`plimsoll work` was killed"))
    };
    assert!(
        events(&over).values().any(was_killed),
        "the host came back and told"
    );
    nothing_is_spooled(&lab, 2);
}

/// The connection, not the host: its trial is stopped, and the host is back at once.
#[test]
fn a_killed_ssh_costs_the_trial_in_flight() {
    let Some(lab) = Lab::new("cli::hosts::a_killed_ssh_costs_the_trial_in_flight", 2) else {
        return;
    };
    write_plan(&lab, 4, 20, "300ms");
    lab.push();
    let arguments = ["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"];
    let child = begun(&lab, &arguments);
    let clients = lab.clients(1);
    assert_eq!(clients.len(), 1, "{clients:?}");
    let killed = Instant::now();
    kill("KILL", &clients[0]);
    let (code, said, _) = told_when(child, killed, "h1: lost with block");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("ssh was killed"), "{said}");
    blocks_on_one_host(&campaign(&lab, "plimsoll-runs"));
    nothing_is_spooled(&lab, 2);
}

#[test]
fn ctrl_c_at_the_desk_ends_the_steps_in_flight() {
    let Some(lab) = Lab::new("cli::hosts::ctrl_c_at_the_desk_ends_the_steps_in_flight", 2) else {
        return;
    };
    write_plan(&lab, 4, 20, "5s");
    lab.push();
    let child = begun(
        &lab,
        &["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"],
    );
    kill("INT", &child.id().to_string());
    let output = wait(child);
    let said = check(&output, 130);
    assert!(said.contains("continue with: plimsoll resume "), "{said}");
    lab.wait_for_silence();
    nothing_is_spooled(&lab, 2);
    let over = campaign(&lab, "plimsoll-runs");
    let was_stopped = |events: &Vec<Value>| events.iter().any(|event| event["interrupted"] == true);
    assert!(events(&over).values().any(was_stopped));
}

#[test]
fn hosts_that_cannot_be_trusted_are_refused() {
    let Some(lab) = Lab::new("cli::hosts::hosts_that_cannot_be_trusted_are_refused", 2) else {
        return;
    };
    write_plan(&lab, 2, 5, "200ms");
    lab.push();
    let run = || lab.run(&["run", "spread.toml", "--hosts", "h1,h2"]);
    // A host with another key.
    lab.stop_sshd(2);
    let public = lab.key("key2");
    lab.start_sshd(2);
    let begin = Instant::now();
    let said = check(&run(), 5);
    assert!(
        said.contains("h2: ") && said.contains("/known -R 10.99.0.12"),
        "{said}"
    );
    assert!(begin.elapsed() < Duration::from_secs(20));
    println!("another key: refused after {:.2?}", begin.elapsed());
    // One that ssh has never seen.
    fs::write(lab.place.path("known"), "").unwrap();
    let said = check(&run(), 5);
    assert!(said.contains("does not know the host's key"), "{said}");
    // Right keys, and a key of the user that they do not take.
    let first = fs::read_to_string(lab.place.path("key1.pub")).unwrap();
    let known = format!("10.99.0.11 {}\n10.99.0.12 {public}\n", first.trim());
    fs::write(lab.place.path("known"), known).unwrap();
    let (id, public) = (lab.place.path("id"), lab.place.path("id.pub"));
    let (old, old_public) = (fs::read(&id).unwrap(), fs::read(&public).unwrap());
    lab.key("id");
    fs::write(&public, &old_public).unwrap();
    let said = check(&run(), 5);
    assert!(said.contains("takes none of your keys"), "{said}");
    fs::write(&id, old).unwrap();
    // Another version.
    let hello = r#"{"hello":{"version":"9.9","program_sha256":"ab","unix_ns":0,"free_bytes":1,
        "machine_id":null,"cpu_model":"x","cpus":"2","builds":[],"spooled":[]}}"#
        .replace('\n', "");
    lab.replace_program(2, &format!("#!/bin/sh\necho '{hello}'\ncat >/dev/null\n"));
    let begin = Instant::now();
    let said = check(&run(), 5);
    println!("another version: refused after {:.2?}", begin.elapsed());
    assert!(
        said.contains("h2: it has plimsoll 9.9 ") && said.contains("host push h2"),
        "{said}"
    );
    lab.run(&["host", "push"]);
    assert!(
        !lab.place.path("plimsoll-runs").exists(),
        "no campaign is made"
    );
    // No room for another trial.
    if let Some(_mount) = Mount::new(lab.dir(2).join("spool.small"), 16) {
        let spool = lab.dir(2).join("spool");
        let _ = fs::remove_dir_all(&spool);
        std::os::unix::fs::symlink(lab.dir(2).join("spool.small"), &spool).unwrap();
        lab.stop_sshd(2);
        lab.start_sshd(2);
        let said = check(&run(), 5);
        assert!(said.contains("MiB free, and a trial needs"), "{said}");
        fs::remove_file(&spool).unwrap();
    }
}

#[test]
fn the_hint_to_confirm_repeats_where_builds_data_and_hosts_are() {
    let name = "cli::hosts::the_hint_to_confirm_repeats_where_builds_data_and_hosts_are";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 2, 5, "200ms");
    lab.push();
    let confirm = [
        "confirm",
        "spread.toml",
        "--step",
        "qr100",
        "--blocks",
        "2",
        "--cache",
        "cache",
        "--data",
        "data",
        "--hosts",
        "h1,h2",
    ];
    // Two blocks are never enough for a verdict.
    let said = check(&lab.run(&confirm), UNDECIDED);
    let hint = "--step qr100 --blocks 12 --cache cache --data data --hosts h1,h2\n";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn two_names_of_one_machine_are_not_two_hosts() {
    let name = "cli::hosts::two_names_of_one_machine_are_not_two_hosts";
    if !Path::new("/etc/machine-id").exists() {
        skip(name, "this machine has no id");
        return;
    }
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 2, 5, "200ms");
    lab.push();
    check(&lab.run(&["run", "spread.toml", "--hosts", "h1,h2"]), 0);
    lab.set_machine_id(2, 1);
    for arguments in [
        &["run", "spread.toml", "--hosts", "h1,h2", "--store", "other"][..],
        &["resume"],
    ] {
        let said = check(&lab.run(arguments), 5);
        assert!(
            said.contains("h1 and h2 are one machine (machine id "),
            "{said}"
        );
    }
    assert!(!lab.place.path("other").exists(), "no campaign is made");
}

#[test]
fn hosts_are_added_checked_listed_and_cleaned() {
    let name = "cli::hosts::hosts_are_added_checked_listed_and_cleaned";
    let Some(lab) = Lab::new(name, 2) else { return };
    // Without the second one.
    let file = lab.place.path("hosts.toml");
    let whole = fs::read_to_string(&file).unwrap();
    let (first, _) = whole.split_once("[host.h2]").unwrap();
    fs::write(&file, first).unwrap();
    let dir = lab.dir(2).display().to_string();
    let added = lab.run(&[
        "host", "add", "h2", "--ssh", "h2", "--class", "test", "--dir", &dir,
    ]);
    check(&added, 0);
    let said = text(&added.stdout);
    assert!(
        said.contains("h2: 2 CPUs") || said.contains(" CPUs ("),
        "{said}"
    );
    assert!(fs::read_to_string(&file).unwrap().starts_with(first));
    let again = lab.run(&["host", "add", "h2", "--ssh", "h2"]);
    let said = check(&again, 2);
    assert!(said.contains("has a host \"h2\" already"), "{said}");
    let listed = text(&lab.run(&["host", "list"]).stdout);
    assert_eq!(listed.lines().count(), 2, "{listed}");
    // The first one has no program yet; the second is checked all the same.
    let checked = lab.run(&["host", "check"]);
    let said = check(&checked, 5);
    assert!(said.contains("plimsoll host push h1"), "{said}");
    assert!(text(&checked.stdout).contains("h2: "));
    fs::write(lab.dir(2).join("bin/plimsoll-old"), "").unwrap();
    let cleaned = lab.run(&["host", "clean", "h2"]);
    check(&cleaned, 0);
    assert!(
        text(&cleaned.stdout).contains("removed ") && !lab.dir(2).join("bin/plimsoll-old").exists()
    );
}

/// The base runs twice, each host makes the data of its own trials, and all of it is one campaign.
#[test]
fn a_plan_with_verdicts_runs_over_hosts() {
    let name = "cli::hosts::a_plan_with_verdicts_runs_over_hosts";
    let Some(lab) = Lab::on_disk(name, 2) else {
        return;
    };
    let plan = PLAN
        .replace("blocks = BLOCKS\n", "")
        .replace("ROWS", "5")
        .replace("DURATION", "300ms");
    let plan = format!("{plan}[verdicts]\nblocks = 6\n");
    fs::write(lab.place.path("spread.toml"), plan).unwrap();
    lab.push();
    let output = lab.run(&["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"]);
    let code = output.status.code();
    assert!(
        [Some(0), Some(UNDECIDED)].contains(&code),
        "{}",
        text(&output.stderr)
    );
    let hosts = blocks_on_one_host(&campaign(&lab, "plimsoll-runs"));
    let used: std::collections::BTreeSet<&String> = hosts.values().collect();
    assert_eq!((hosts.len(), used.len()), (6, 2), "{hosts:?}");
    let said = text(&output.stdout);
    assert!(said.contains(" of 2 hosts"), "{said}");
    nothing_is_spooled(&lab, 2);
    // By slices all servers are on one machine.
    let budget = fs::read_to_string(lab.place.path("spread.toml")).unwrap();
    let budget = budget.replace("blocks = 6", "budget = \"2m\"");
    fs::write(lab.place.path("budget.toml"), budget).unwrap();
    let said = check(&lab.run(&["run", "budget.toml", "--hosts", "h1,h2"]), 2);
    assert!(
        said.contains("by slices all servers are on one machine"),
        "{said}"
    );
}

#[test]
fn a_plan_says_what_it_takes_over_hosts() {
    let place = Place::new();
    let plan = PLAN
        .replace("BLOCKS", "7")
        .replace("ROWS", "2")
        .replace("DURATION", "300ms");
    fs::write(place.path("spread.toml"), plan).unwrap();
    let explain = |more: &[&str]| place.run(&[&["plan", "explain", "spread.toml"], more].concat());
    let said = text(&explain(&["--hosts", "3"]).stdout);
    assert!(
        said.contains("over 3 hosts: at most 3 blocks on each, about "),
        "{said}"
    );
    let value: Value =
        serde_json::from_slice(&explain(&["--hosts", "9", "--json"]).stdout).unwrap();
    assert_eq!(value["hosts"]["hosts"], 7);
    let seconds = |value: &Value| value["seconds"].as_f64().unwrap();
    let share = seconds(&value["hosts"]) / seconds(&value);
    assert!((share - 1.0 / 7.0).abs() < 1e-9, "{value}");
}

/// As behind ssh: the number of the orchestrator means nothing to the trial.
#[test]
fn a_trial_that_does_not_see_its_orchestrator_runs() {
    let name = "cli::hosts::a_trial_that_does_not_see_its_orchestrator_runs";
    let unshare = ["-p", "--fork", "--mount-proc"];
    let tried = std::process::Command::new("unshare")
        .args(unshare)
        .arg("true")
        .output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skip(name, "no process namespaces here");
        return;
    }
    let place = Place::new();
    let plan = PLAN
        .replace("BLOCKS", "1")
        .replace("ROWS", "2")
        .replace("DURATION", "300ms")
        .replace(
            "configs = [\"wal_full\", \"wal_off\"]",
            "configs = [\"far\"]",
        )
        .replace("base = \"sqlite.wal_off\"\n", "");
    let far = "[config.far]\nfrom = \"wal_off\"\nprefix = [\"unshare\", \"-p\", \"--fork\", \
               \"--mount-proc\"]\n";
    fs::write(place.path("far.toml"), format!("{plan}{far}")).unwrap();
    check(&place.run(&["run", "far.toml"]), 0);
    assert_eq!(place.steps_done().len(), 5);
}
