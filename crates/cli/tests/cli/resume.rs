//! Broken campaigns: nothing finished is lost, nothing is left running, and `resume` completes
//! them.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::support::{DEADLINE, Place, processes_in, text, wait, wait_until};
use rustix::process::{Pid, Signal, kill_process};

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// The trial's process of a running campaign.
fn trial_pid(place: &Place, orchestrator: &Child) -> Option<u32> {
    let is_trial = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.ends_with("\0trial\0"))
    };
    processes_in(place.dir.path())
        .into_iter()
        .filter(is_trial)
        .find(|&pid| pid != orchestrator.id())
}

fn wait_for_step(place: &Place, step: &str) {
    wait_until(&format!("{step} is done"), || {
        place.path("plimsoll-runs").exists()
            && std::fs::read_dir(place.path("plimsoll-runs"))
                .is_ok_and(|mut entries| entries.next().is_some())
            && place.steps_done().iter().any(|(_, done)| done == step)
    });
}

fn resume_completes(place: &Place, before: &[(String, String)]) {
    let output = place.run(&["resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let after = place.steps_done();
    for step in before {
        assert!(after.contains(step), "{step:?} was lost");
    }
    for number in ["1", "2"] {
        let complete: BTreeSet<_> = after
            .iter()
            .filter(|(folder, _)| folder.starts_with(&format!("{number}-")))
            .map(|(_, step)| step.clone())
            .collect();
        assert_eq!(complete.len(), 5, "{after:?}");
    }
    assert_eq!(place.run(&["show"]).status.code(), Some(0));
}

#[test]
fn ctrl_c_ends_the_step_keeps_what_is_done_and_tells_how_to_resume() {
    let place = Place::new();
    let child = place.spawn(&["run", "small.toml", "--seed", "3"]);
    wait_for_step(&place, "l.i0");
    signal(child.id(), Signal::INT);
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("continue with: plimsoll resume "),
        "{stderr}"
    );
    assert!(processes_in(place.dir.path()).is_empty());
    // It said `broken`, and its hint did not run from another store.
    let shown = text(&place.run(&["show"]).stdout);
    let id = place
        .campaign()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(
        shown.contains("interrupted, 0 of 2 trials are done\n")
            && shown.contains(&format!("\ncontinue with: plimsoll resume {id}\n")),
        "{shown}"
    );
    let shown = place.run(&["show", "--store", "./plimsoll-runs/../plimsoll-runs"]);
    let hint = format!("plimsoll resume --store ./plimsoll-runs/../plimsoll-runs {id}\n");
    assert!(text(&shown.stdout).contains(&hint));
    let before = place.steps_done();
    assert!(before.iter().any(|(_, step)| step == "l.i0"));
    assert!(before.len() < 10, "it was interrupted");
    let last = std::fs::read_to_string(place.event_files().remove(0)).unwrap();
    assert!(
        last.lines()
            .last()
            .unwrap()
            .contains("\"interrupted\":true"),
        "{last}"
    );
    resume_completes(&place, &before);
}

#[test]
fn a_killed_orchestrator_leaves_no_orphan() {
    let place = Place::new();
    let child = place.spawn(&["run", "small.toml", "--seed", "3"]);
    wait_for_step(&place, "l.x");
    signal(child.id(), Signal::KILL);
    assert_eq!(wait(child).status.signal(), Some(9));
    wait_until("the trial's process is gone", || {
        processes_in(place.dir.path()).is_empty()
    });
    let before = place.steps_done();
    resume_completes(&place, &before);
    assert!(
        place
            .steps_done()
            .iter()
            .any(|(folder, _)| folder.ends_with("-a2")),
        "the broken trial ran again as attempt 2"
    );
}

#[test]
fn a_killed_trial_is_recorded_and_the_campaign_goes_on() {
    let place = Place::new();
    let child = place.spawn(&["run", "small.toml", "--seed", "3"]);
    wait_for_step(&place, "l.i0");
    let pid = trial_pid(&place, &child).expect("a trial is running");
    signal(pid, Signal::KILL);
    let output = wait(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(
        stderr.contains("the trial's process died") && stderr.contains("signal 9"),
        "{stderr}"
    );
    assert!(
        stderr.contains("try the rest again: plimsoll resume "),
        "{stderr}"
    );
    assert!(
        std::fs::read_to_string(place.event_files().remove(0))
            .unwrap()
            .contains("\"event\":\"server_crashed\"")
    );
    let before = place.steps_done();
    assert_eq!(
        before
            .iter()
            .filter(|(folder, _)| folder.starts_with("2-"))
            .count(),
        5,
        "the other cell is complete"
    );
    resume_completes(&place, &before);
}

#[test]
fn a_campaign_has_one_runner_at_a_time() {
    let place = Place::new();
    let mut child = place.spawn(&["run", "small.toml"]);
    wait_for_step(&place, "l.i0");
    let started = Instant::now();
    let second = place.run(&["resume"]);
    assert!(started.elapsed() < Duration::from_secs(20));
    let stderr = text(&second.stderr);
    assert_eq!(second.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains(&child.id().to_string()),
        "the running process is named: {stderr}"
    );
    assert!(
        child.try_wait().unwrap().is_none(),
        "the first is not disturbed"
    );
    assert_eq!(wait(child).status.code(), Some(0));
}

#[test]
fn resume_of_a_complete_campaign_changes_nothing() {
    let place = Place::new();
    assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
    let before: Vec<_> = place
        .event_files()
        .iter()
        .map(|file| std::fs::read(file).unwrap())
        .collect();
    assert_eq!(place.run(&["resume"]).status.code(), Some(0));
    assert_eq!(
        place
            .event_files()
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect::<Vec<_>>(),
        before
    );
}

/// Kills orchestrator or trial at random moments until the campaign is complete. `PLIMSOLL_KILLS`
/// sets how many moments.
#[test]
fn finished_steps_survive_kills_at_random_moments() {
    let kills: u32 = std::env::var("PLIMSOLL_KILLS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(6);
    let place = Place::new();
    let mut draw = plimsoll_core::seed::Draw::new(u64::from(std::process::id()), &["kills"]);
    let mut known: Vec<(String, String)> = Vec::new();
    let mut lost = 0;
    for round in 0..kills {
        let arguments = if place.path("plimsoll-runs").exists() {
            &["resume"][..]
        } else {
            &["run", "small.toml", "--seed", "3"]
        };
        let child = place.spawn(arguments);
        std::thread::sleep(Duration::from_millis(draw.below(4000)));
        let target = if round % 3 == 2 {
            trial_pid(&place, &child).unwrap_or(child.id())
        } else {
            child.id()
        };
        // The process may have ended by itself a moment ago.
        let _ = kill_process(Pid::from_raw(target as i32).unwrap(), Signal::KILL);
        wait(child);
        let deadline = Instant::now() + DEADLINE;
        while !processes_in(place.dir.path()).is_empty() {
            assert!(
                Instant::now() < deadline,
                "orphans: {:?}",
                processes_in(place.dir.path())
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        if place.path("plimsoll-runs").exists()
            && std::fs::read_dir(place.path("plimsoll-runs"))
                .unwrap()
                .next()
                .is_some()
        {
            let now = place.steps_done();
            lost += known.iter().filter(|step| !now.contains(step)).count();
            known = now;
        } else {
            let _ = std::fs::remove_dir(place.path("plimsoll-runs"));
        }
    }
    println!(
        "{kills} kills, {} finished steps on disk, {lost} lost",
        known.len()
    );
    assert_eq!(lost, 0);
    if !place.path("plimsoll-runs").exists() {
        assert_eq!(
            place
                .run(&["run", "small.toml", "--seed", "3"])
                .status
                .code(),
            Some(0)
        );
    }
    resume_completes(&place, &known);
}
