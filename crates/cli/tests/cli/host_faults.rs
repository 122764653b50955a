//! What hosts do wrong, one fault at a time: what is lost, and how long it takes until it is
//! noticed. The figures are printed, and are in docs/guides/lost-hosts.md.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::hosts::{begun, blocks_on_one_host, campaign, check, events, is_complete, write_plan};
use crate::lab_hosts::{Lab, kill};
use crate::support::{DEADLINE, Mount};

const RUN: [&str; 6] = ["run", "spread.toml", "--seed", "7", "--hosts", "h1,h2"];

/// Waits for the end of the program at the desk. What it said, and how long after `since` it said
/// these words first.
pub fn told_when(mut desk: Child, since: Instant, words: &str) -> (Option<i32>, String, Duration) {
    let (sender, lines) = channel();
    let said = BufReader::new(desk.stderr.take().unwrap());
    std::thread::spawn(move || {
        let mut lines = said.lines().map_while(Result::ok);
        lines.try_for_each(|line| sender.send(line))
    });
    let mut output = desk.stdout.take().unwrap();
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    let (mut text, mut after) = (String::new(), None);
    while let Ok(line) = lines.recv_timeout(DEADLINE) {
        if line.contains(words) {
            after.get_or_insert_with(|| since.elapsed());
        }
        text.push_str(&line);
        text.push('\n');
    }
    let code = desk.wait().unwrap().code();
    let after = after.unwrap_or_else(|| panic!("not said: {words}\n{text}"));
    println!("{words}: said after {after:.2?}");
    (code, text, after)
}

/// Attempts that did not come to their end, of all that have begun.
fn lost(over: &Path) -> (usize, usize) {
    let events = events(over);
    let broken = events
        .values()
        .filter(|events| !is_complete(events))
        .count();
    (broken, events.len())
}

/// Its `work` says the hour that comes next, and runs a day ahead of the desk's monotonic clock.
#[test]
fn a_host_whose_clock_is_an_hour_ahead_is_refused_and_may_be_allowed() {
    let name =
        "cli::host_faults::a_host_whose_clock_is_an_hour_ahead_is_refused_and_may_be_allowed";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 2, 5, "200ms");
    lab.push();
    lab.filter(
        2,
        r#"$. == 1 && s/"unix_ns":(\d+)/'"unix_ns":'.($1 + 3600000000000)/e"#,
    );
    lab.stop_sshd(2);
    lab.start_sshd_in(
        2,
        &[
            "-m",
            "-T",
            "--monotonic",
            "86400",
            "--boottime",
            "86400",
            "--fork",
        ],
    );
    let begin = Instant::now();
    let said = check(&lab.run(&RUN), 5);
    println!(
        "a clock an hour ahead: refused after {:.2?}",
        begin.elapsed()
    );
    assert!(
        said.contains("h2: its clock is +36") && said.contains("--allow-skew"),
        "{said}"
    );
    assert!(
        !lab.place.path("plimsoll-runs").exists(),
        "no campaign is made"
    );

    check(&lab.run(&[&RUN[..], &["--allow-skew"]].concat()), 0);
    let over = campaign(&lab, "plimsoll-runs");
    let hosts = blocks_on_one_host(&over);
    assert_eq!(
        hosts.values().collect::<BTreeSet<_>>().len(),
        2,
        "{hosts:?}"
    );
    for (name, events) in events(&over) {
        let done = events.iter().find(|event| event["event"] == "trial_done");
        let seconds = done.and_then(|done| done["seconds"].as_f64()).unwrap();
        assert!(seconds < 100.0, "{name} took {seconds} s by its own clock");
    }
}

#[test]
fn a_trial_that_comes_damaged_once_is_sent_again() {
    let name = "cli::host_faults::a_trial_that_comes_damaged_once_is_sent_again";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 4, 5, "200ms");
    lab.push();
    // As many bytes as before, in the first stream alone.
    lab.filter(
        2,
        r#"$done ||= s/"event":"trial_done"/"event":"trial_dOne"/"#,
    );
    check(&lab.run(&RUN), 0);
    let over = campaign(&lab, "plimsoll-runs");
    let hosts = blocks_on_one_host(&over);
    assert!(hosts.values().any(|host| host == "h2"), "{hosts:?}");
    assert_eq!(lost(&over), (0, 8));
    assert!(lab.is_filtered(2), "a stream was damaged");
}

#[test]
fn a_trial_that_always_comes_damaged_stays_on_its_host_for_resume() {
    let name = "cli::host_faults::a_trial_that_always_comes_damaged_stays_on_its_host_for_resume";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 2, 5, "200ms");
    lab.push();
    lab.filter(2, r#"s/"event":"trial_done"/"event":"trial_dOne"/"#);
    let (code, said, _) = told_when(lab.spawn(&RUN), Instant::now(), "came damaged 3 times");
    assert_eq!(code, Some(3), "{said}");
    let over = campaign(&lab, "plimsoll-runs");
    let before: Vec<String> = events(&over).into_keys().collect();
    assert!(!before.is_empty() && before.len() < 4, "{before:?}");
    lab.unfilter(2);
    check(&lab.run(&["resume"]), 0);
    blocks_on_one_host(&over);
    assert_eq!(
        lost(&over),
        (0, 4),
        "what had stayed was fetched, and nothing ran again"
    );
}

#[test]
fn a_killed_sshd_costs_the_trial_in_flight() {
    let Some(lab) = Lab::new(
        "cli::host_faults::a_killed_sshd_costs_the_trial_in_flight",
        2,
    ) else {
        return;
    };
    write_plan(&lab, 4, 20, "300ms");
    lab.push();
    let desk = begun(&lab, &RUN);
    let sessions = lab.matching(1, |line| line.starts_with("sshd: root"));
    assert!(!sessions.is_empty());
    let killed = Instant::now();
    sessions.iter().for_each(|pid| kill("KILL", pid));
    let (code, said, after) = told_when(desk, killed, "h1: lost with block");
    assert_eq!(code, Some(0), "{said}");
    assert!(after < Duration::from_secs(10), "{after:?}");
    let over = campaign(&lab, "plimsoll-runs");
    blocks_on_one_host(&over);
    println!("a killed sshd: (lost, all) attempts {:?}", lost(&over));
    let was_kept = |events: &Vec<Value>| events.iter().any(|event| event["interrupted"] == true);
    assert!(
        events(&over).values().any(was_kept),
        "it was sealed and came later"
    );
}

#[test]
fn a_disk_that_gets_full_in_a_block_gives_the_host_up() {
    let name = "cli::host_faults::a_disk_that_gets_full_in_a_block_gives_the_host_up";
    let Some(lab) = Lab::new(name, 2) else { return };
    write_plan(&lab, 4, 20, "300ms");
    lab.push();
    let spool = lab.dir(2).join("spool");
    let _ = fs::remove_dir_all(&spool);
    let Some(_mount) = Mount::new(spool.clone(), 96) else {
        return;
    };
    lab.stop_sshd(2);
    lab.start_sshd(2);
    let desk = begun(&lab, &RUN);
    let full = Instant::now();
    fs::write(spool.join("other"), vec![0; 60 << 20]).unwrap();
    let (code, said, _) = told_when(desk, full, "h2: is given up with block");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("MiB free, and a trial needs 64"), "{said}");
    assert!(!said.contains("h2: is back"), "{said}");
    let over = campaign(&lab, "plimsoll-runs");
    blocks_on_one_host(&over);
    let (broken, all) = lost(&over);
    assert_eq!(broken, 0, "the trial in flight went on to its end");
    println!("a full spool: {} of 8 trials ran twice", all - 8);
}
