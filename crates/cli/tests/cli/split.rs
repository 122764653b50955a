//! `[hosts] split = "tests"`: the tests of a plan in parts, at home and over hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

use crate::host_faults::told_when;
use crate::hosts::{begun, campaign, check, data_of, events, is_complete};
use crate::lab_hosts::Lab;
use crate::support::{Place, text, wait_until};

/// Three parts of two tests each.
const PLAN: &str = r#"
name = "divided"
workload = "sysbench-2025"
builds = ["sqlite"]
configs = ["wal_full", "wal_off"]
base = "sqlite.wal_off"
verify = "full"
wait = "0s"
comparable = false
BLOCKS
tests = ["point-query", "scan", "read-only_range=10", "update-one", "delete", "insert"]
[hosts]
split = "tests"
parts = 3
[sizes]
tables = 1
rows = 2000
duration = "DURATION"
warm_up = "0s"
"#;

const PARTS: [[&str; 2]; 3] = [
    ["update-one", "scan"],
    ["read-only_range=10", "point-query"],
    ["delete", "insert"],
];

pub fn write_plan(place: &Place, blocks: &str, duration: &str) {
    let plan = PLAN.replace("BLOCKS", blocks).replace("DURATION", duration);
    fs::write(place.path("divided.toml"), plan).unwrap();
}

/// Trials that went through, with their first event: the latest attempt at each.
fn latest(campaign: &Path) -> BTreeMap<u64, (Value, Vec<Value>)> {
    let mut latest: BTreeMap<u64, (Value, Vec<Value>)> = BTreeMap::new();
    for events in events(campaign).into_values().filter(|of| is_complete(of)) {
        let start = events[0].clone();
        let trial = start["trial"].as_u64().unwrap();
        let attempt = |of: &Value| of["attempt"].as_u64().unwrap();
        let known = latest.get(&trial).map_or(0, |(known, _)| attempt(known));
        if attempt(&start) > known {
            latest.insert(trial, (start, events));
        }
    }
    latest
}

/// By block and part: its host. Every trial of the schedule is there, has the steps of its part,
/// and all of a part ran on one host.
pub fn hosts_of_parts(campaign: &Path) -> BTreeMap<(u64, u64), String> {
    let latest = latest(campaign);
    let text = fs::read(campaign.join("campaign.json")).unwrap();
    let header: Value = serde_json::from_slice(&text).unwrap();
    let schedule = header["schedule"].as_array().unwrap();
    assert_eq!(latest.len(), schedule.len(), "trials are missing");
    let mut hosts = BTreeMap::new();
    for trial in schedule {
        let (start, events) = &latest[&trial["number"].as_u64().unwrap()];
        for member in ["block", "part"] {
            assert_eq!(start[member], trial[member], "{start}");
        }
        assert_eq!(start["campaign"], header["id"], "{start}");
        let number = |name: &str| trial[name].as_u64().unwrap();
        let (block, part) = (number("block"), number("part"));
        let done = events.iter().filter(|event| event["event"] == "step_done");
        let steps: Vec<&str> = done.map(|event| event["step"].as_str().unwrap()).collect();
        let wanted = PARTS[part as usize - 1];
        assert_eq!(steps, ["prepare", wanted[0], wanted[1]], "{start}");
        let host = start["host"].as_str().unwrap_or("home").to_owned();
        let of = hosts.entry((block, part)).or_insert_with(|| host.clone());
        assert_eq!(*of, host, "part {part} of block {block} is on two hosts");
    }
    hosts
}

/// What the load made. Writes of tests go on for a time, and leave more on a fast machine.
fn loaded(events: &[Value]) -> Value {
    let of_load = data_of(events).swap_remove(0);
    assert_eq!(of_load[0], "prepare");
    of_load
}

fn shown(place: &Place) -> Value {
    serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap()
}

#[test]
fn the_tests_of_a_plan_run_in_parts_at_home() {
    let place = Place::new();
    write_plan(&place, "", "300ms");
    let said = text(&place.run(&["plan", "check", "divided.toml"]).stdout);
    for line in [
        "2 cells, 6 trials: sqlite.wal_full, sqlite.wal_off",
        "part 1 of each block: 2 tests, update-one to scan; about ",
        "part 3 of each block: 2 tests, delete to insert; about ",
    ] {
        assert!(said.contains(line), "{said}");
    }
    let explain = |hosts: &str| place.run(&["plan", "explain", "divided.toml", "--hosts", hosts]);
    let said = text(&explain("3").stdout);
    assert!(
        said.contains("over 3 hosts: at most 1 part on each, about "),
        "{said}"
    );
    let said = text(&explain("9").stdout);
    assert!(
        said.contains("over 3 hosts: at most 1 part on each"),
        "{said}"
    );
    let json = |more: &[&str]| -> Value {
        let arguments = [&["plan", "explain", "divided.toml", "--json"], more].concat();
        serde_json::from_slice(&place.run(&arguments).stdout).unwrap()
    };
    let whole = json(&[])["seconds"].as_f64().unwrap();
    let over = json(&["--hosts", "3"]);
    let third = over["hosts"]["seconds"].as_f64().unwrap();
    assert!((third / whole - 1.0 / 3.0).abs() < 0.01, "{over}");
    let submit = ["submit", "divided.toml", "--slurm", "--dry-run"];
    let said = text(&place.run(&submit).stdout);
    assert!(said.contains("#SBATCH --array=1-3\n"), "{said}");

    check(&place.run(&["run", "divided.toml", "--seed", "7"]), 0);
    let campaign = place.campaign();
    assert_eq!(hosts_of_parts(&campaign).len(), 3);
    let value = shown(&place);
    let results = value["results"].as_array().unwrap();
    let of_step = |step: &str| results.iter().filter(|of| of["step"] == step).count();
    for (part, tests) in (1..).zip(PARTS) {
        for test in tests {
            assert_eq!(of_step(test), 2, "once per cell");
            let mut own = results.iter().filter(|of| of["step"] == test);
            // A busy machine makes results suspect.
            let is_done = |of: &Value| of["status"] == "ok" || of["status"] == "suspect";
            assert!(own.all(|of| of["part"] == part && is_done(of)), "{test}");
        }
    }
    assert_eq!(of_step("prepare"), 6, "each part loads the tables");
    let said = text(&place.run(&["show"]).stdout);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("ran in 3 parts, each on a load of its own"),
        "{said}"
    );
    assert!(
        words.contains("part 2 has 2 tests, read-only_range=10 to point-query"),
        "{said}"
    );
    assert!(words.contains("Each cell ran once"), "{said}");

    // A part that is lost runs again, and nothing else.
    let before = events(&campaign);
    let lost = before.iter().find(|(_, events)| events[0]["part"] == 2);
    let lost = lost.unwrap().0.clone();
    fs::remove_dir_all(campaign.join("trials").join(&lost)).unwrap();
    check(&place.run(&["resume"]), 0);
    let after = events(&campaign);
    assert_eq!(hosts_of_parts(&campaign).len(), 3);
    for (folder, events) in before {
        match folder == lost {
            true => assert_eq!(loaded(&events), loaded(&after[&folder])),
            false => assert_eq!(&events, &after[&folder], "{folder}"),
        }
    }
}

/// It took the lengths of the plan, which blocks with verdicts cut to a minute: ten times as long,
/// and other parts than those that ran.
#[test]
fn a_plan_with_verdicts_says_the_parts_and_times_that_it_runs() {
    let place = Place::new();
    write_plan(&place, "", "600s");
    let plan = fs::read_to_string(place.path("divided.toml")).unwrap();
    // The first test takes as long as all others in the plan, and a minute like them in a block.
    let plan = plan.replace("[hosts]", "[verdicts]\nblocks = 6\n[hosts]");
    let plan = format!("{plan}[step.update-one]\nduration = \"50m\"\n");
    fs::write(place.path("divided.toml"), plan).unwrap();
    let explain = ["plan", "explain", "divided.toml", "--json"];
    let forecast: Value = serde_json::from_slice(&place.run(&explain).stdout).unwrap();
    for step in forecast["cells"][0]["steps"].as_array().unwrap() {
        assert!(step["seconds"].as_f64().unwrap() <= 60.0, "{step}");
    }
    // Six blocks of six tests, the base twice.
    let seconds = forecast["seconds"].as_f64().unwrap();
    let tests = 6.0 * 3.0 * 6.0 * 60.0;
    assert!(seconds > tests && seconds < 1.2 * tests, "{forecast}");

    let mut run = place.command(&["run", "divided.toml", "--seed", "7"]);
    let mut child = run.stderr(std::process::Stdio::null()).spawn().unwrap();
    let header = || -> Option<Value> {
        let store = fs::read_dir(place.path("plimsoll-runs")).ok()?;
        let mut folders = store.map(|entry| entry.unwrap().path());
        folders
            .find_map(|of| serde_json::from_slice(&fs::read(of.join("campaign.json")).ok()?).ok())
    };
    wait_until("the campaign is there", || header().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    let parts = header().unwrap()["plan"]["split"]["parts"].clone();
    let said: Vec<&Value> = forecast["parts"].as_array().unwrap().iter().collect();
    let said: Vec<&Value> = said.into_iter().map(|part| &part["tests"]).collect();
    assert_eq!(parts.as_array().unwrap().iter().collect::<Vec<_>>(), said);
}

/// Verdicts about two tests are in two parts, whatever the plan says of all its tests.
#[test]
fn a_dry_run_has_the_jobs_of_the_tests_that_are_reported() {
    let place = Place::new();
    write_plan(&place, "report = [\"scan\", \"insert\"]", "300ms");
    let plan = fs::read_to_string(place.path("divided.toml")).unwrap();
    let plan = plan.replace("[hosts]", "[verdicts]\nblocks = 6\n[hosts]");
    fs::write(place.path("divided.toml"), plan).unwrap();
    let submit = ["submit", "divided.toml", "--slurm", "--dry-run"];
    let said = text(&place.run(&submit).stdout);
    assert!(said.contains("#SBATCH --array=1-12\n"), "{said}");
    let said = text(&place.run(&["plan", "check", "divided.toml"]).stdout);
    assert!(
        said.contains("part 2 of each block: 1 test, ") && !said.contains("part 3"),
        "{said}"
    );
}

/// A verdict over hosts of two machine types is about none of them.
#[test]
fn a_campaign_is_not_resumed_on_hosts_of_another_class() {
    let place = Place::new();
    write_plan(&place, "", "100ms");
    check(&place.run(&["run", "divided.toml", "--seed", "7"]), 0);
    let file = place.campaign().join("campaign.json");
    let mut header: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    header["fleet"] = serde_json::json!({"hosts": {"names": ["a"], "class": "m5"}});
    fs::write(&file, serde_json::to_vec(&header).unwrap()).unwrap();
    // Nobody is there: the class is looked at before the host.
    let hosts = "[host.a]\nssh = \"u@127.0.0.1\"\nclass = \"m5\"\n[host.b]\nssh = \
                 \"u@127.0.0.1\"\nclass = \"r6\"\n";
    fs::write(place.path("hosts.toml"), hosts).unwrap();
    let resume = ["resume", "--hosts", "b", "--hosts-file", "hosts.toml"];
    let said = check(&place.run(&resume), 2);
    assert!(
        said.contains("began on hosts of class m5, and these are of class r6"),
        "{said}"
    );
}

#[test]
fn parts_are_divided_among_hosts_and_the_campaign_is_that_of_home() {
    let name = "cli::split::parts_are_divided_among_hosts_and_the_campaign_is_that_of_home";
    let Some(lab) = Lab::new(name, 3) else { return };
    write_plan(&lab.place, "blocks = 2", "300ms");
    let home = ["run", "divided.toml", "--seed", "7", "--store", "home"];
    check(&lab.place.run(&home), 0);
    lab.push();
    let run = ["run", "divided.toml", "--seed", "7", "--hosts", "h1,h2,h3"];
    check(&lab.run(&run), 0);

    let (home, over) = (campaign(&lab, "home"), campaign(&lab, "plimsoll-runs"));
    let header = |campaign: &Path| -> Value {
        serde_json::from_slice(&fs::read(campaign.join("campaign.json")).unwrap()).unwrap()
    };
    for member in ["schedule", "plan", "seed", "cells"] {
        assert_eq!(header(&home)[member], header(&over)[member], "{member}");
    }
    let (at_home, on_hosts) = (events(&home), events(&over));
    assert_eq!(at_home.len(), 12);
    for (folder, events) in &at_home {
        assert_eq!(loaded(events), loaded(&on_hosts[folder]), "{folder}");
        // Nothing writes in the second part: its checksum is that of what was loaded.
        if events[0]["part"] == 2 {
            assert_eq!(data_of(events), data_of(&on_hosts[folder]), "{folder}");
            let last = data_of(events).pop().unwrap();
            assert!(last[1][0]["checksum"].is_string(), "{last}");
        }
    }
    let hosts = hosts_of_parts(&over);
    let used: BTreeSet<&String> = hosts.values().collect();
    assert_eq!(used.len(), 3, "{hosts:?}");

    let value = shown(&lab.place);
    let compared = value["comparisons"].as_array().unwrap();
    let is_of_scan = |of: &&Value| of["step"] == "scan" && of["is_throughput"] == true;
    let compared = compared.iter().find(is_of_scan).unwrap();
    let pairs = &compared["estimate"]["pairs"];
    assert_eq!(
        *pairs, 2,
        "both cells of a test ran on one host: {compared}"
    );
    for result in value["results"].as_array().unwrap() {
        let number = |name: &str| result[name].as_u64().unwrap();
        let host = &hosts[&(number("block"), number("part"))];
        assert_eq!(result["host"], **host, "{result}");
    }
    let said = text(&lab.place.run(&["show"]).stdout);
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Parts of blocks of") && words.contains(" by host: h1 "),
        "{said}"
    );
    assert!(words.contains("update-one to scan, on h"), "{said}");

    // What is lost of a part runs again where the rest of it is.
    let lost = on_hosts.iter().find(|(_, events)| events[0]["part"] == 3);
    let (folder, of_lost) = lost.unwrap();
    fs::remove_dir_all(over.join("trials").join(folder)).unwrap();
    check(&lab.run(&["resume"]), 0);
    assert_eq!(hosts_of_parts(&over), hosts);
    assert_eq!(loaded(of_lost), loaded(&events(&over)[folder]));
}

#[test]
fn a_host_that_is_cut_off_costs_a_part_and_no_block() {
    let name = "cli::split::a_host_that_is_cut_off_costs_a_part_and_no_block";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab.place, "blocks = 2", "700ms");
    lab.push();
    let run = ["run", "divided.toml", "--seed", "7", "--hosts", "h1,h2"];
    let child = begun(&lab, &run);
    lab.link(2, "down");
    let (code, said, _) = told_when(child, Instant::now(), "h2: lost with part ");
    assert_eq!(code, Some(0), "{said}");
    let hosts = hosts_of_parts(&campaign(&lab, "plimsoll-runs"));
    assert_eq!(hosts.len(), 6);
    lab.link(2, "up");
    lab.wait_for_silence();
}

#[test]
fn verdicts_are_made_test_by_test_from_the_blocks_of_its_part() {
    let name = "cli::split::verdicts_are_made_test_by_test_from_the_blocks_of_its_part";
    let Some(lab) = Lab::on_disk(name, 2) else {
        return;
    };
    write_plan(&lab.place, "", "100ms");
    let plan = fs::read_to_string(lab.place.path("divided.toml")).unwrap();
    let plan = plan.replace("[hosts]", "[verdicts]\nblocks = 6\n[hosts]");
    let begin = plan.find("tests = ").unwrap();
    let end = begin + plan[begin..].find('\n').unwrap();
    let tests = "tests = [\"point-query\", \"scan\"]";
    let plan = format!("{}{tests}{}", &plan[..begin], &plan[end..]);
    let plan = plan.replace("parts = 3", "parts = 2");
    fs::write(lab.place.path("divided.toml"), plan).unwrap();
    let submit = ["submit", "divided.toml", "--slurm", "--dry-run"];
    let said = text(&lab.place.run(&submit).stdout);
    assert!(said.contains("#SBATCH --array=1-12\n"), "{said}");
    lab.push();
    let run = ["run", "divided.toml", "--seed", "7", "--hosts", "h1,h2"];
    let code = lab.run(&run).status.code();
    assert!(matches!(code, Some(0 | 1 | 4)), "{code:?}");
    let value = shown(&lab.place);
    let compared = value["comparisons"].as_array().unwrap();
    let pairs = |step: &str| {
        let of_step = compared.iter().find(|of| {
            of["step"] == step && of["cell"] == "sqlite.wal_full" && of["is_throughput"] == true
        });
        of_step.unwrap_or_else(|| panic!("{step}: {value}"))["estimate"]["pairs"].clone()
    };
    // The load runs in every part, and counts once per block all the same.
    for step in ["point-query", "scan", "prepare"] {
        assert_eq!(pairs(step), 6, "{step}");
    }
    let said = text(&lab.place.run(&["show"]).stdout);
    assert!(said.contains("of 2 hosts"), "{said}");
}
