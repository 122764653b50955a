//! A writer killed at any moment loses nothing that it synced.

mod common;

use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use common::{as_child, child_folder};
use plimsoll_store::event::{Event, TrialFailed};
use plimsoll_store::{EventWriter, read_events, write_json_atomically};

const FILES: usize = 8;
const KILLS_PER_FILE: usize = 25;
/// So that a writer whose parent died ends by itself.
const MOST_EVENTS: u64 = 50_000;

/// The event at a place: some lines are short, some are longer than a page.
fn event(seq: u64) -> Event {
    Event::TrialFailed(TrialFailed {
        reason: format!("{seq} {}", "x".repeat((seq * 389 % 9001) as usize)),
        interrupted: false,
    })
}

/// Continues the events of the folder. After each sync the seq goes to `progress.json`, then it is
/// said.
fn append_until_killed(folder: &Path) {
    let path = folder.join("events.jsonl");
    let mut writer = if path.exists() {
        EventWriter::reopen(&path)
    } else {
        EventWriter::create(&path)
    }
    .unwrap();
    let first = read_events(&path).unwrap().events.len() as u64 + 1;
    for seq in first..first + MOST_EVENTS {
        writer.append(&event(seq)).unwrap();
        writer.sync().unwrap();
        write_json_atomically(folder.join("progress.json"), &seq).unwrap();
        // The parent is gone when this fails.
        if writeln!(std::io::stderr(), "synced {seq}").is_err() {
            return;
        }
    }
}

/// Below `most`, different each time: these moments are meant to be hit by chance.
fn random_below(most: u64) -> u64 {
    RandomState::new().hash_one(0) % most
}

#[test]
fn what_was_synced_survives_kill_at_200_random_moments() {
    if let Some(folder) = child_folder() {
        return append_until_killed(&folder);
    }
    for _ in 0..FILES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("events.jsonl");
        let (mut synced, mut written) = (0, 0);
        for round in 0..KILLS_PER_FILE {
            let mut child = as_child(
                &[],
                "what_was_synced_survives_kill_at_200_random_moments",
                folder.path(),
            )
            .spawn()
            .unwrap();
            let mut said = BufReader::new(child.stderr.take().unwrap());
            let mut lines = String::new();
            // Every fifth writer may be killed before it has begun, or while it reopens the file.
            if round % 5 != 4 {
                said.read_line(&mut lines).unwrap();
                assert!(lines.starts_with("synced "), "{lines}");
            }
            thread::sleep(Duration::from_micros(random_below(12_000)));
            child.kill().unwrap();
            child.wait().unwrap();
            for line in said
                .lines()
                .map(|line| line.unwrap())
                .chain(lines.lines().map(str::to_owned))
            {
                // A kill may cut the line off, not the sync before it.
                if let Some(seq) = line
                    .strip_prefix("synced ")
                    .and_then(|seq| seq.parse::<u64>().ok())
                {
                    synced = synced.max(seq);
                }
            }
            if !path.exists() {
                assert_eq!(synced, 0);
                continue;
            }
            let log = read_events(&path).unwrap();
            let events = log.events.len() as u64;
            assert!(
                events >= synced && events >= written,
                "{synced} synced, {written} were there, {events} are"
            );
            assert!(
                log.events
                    .iter()
                    .all(|stamped| stamped.event == event(stamped.seq))
            );
            written = events;
            let progress = std::fs::read_to_string(folder.path().join("progress.json"));
            let progress: u64 = progress.map_or(0, |text| serde_json::from_str(&text).unwrap());
            assert!(
                synced <= progress && progress <= events,
                "{synced} synced, progress is {progress} of {events}"
            );
        }
        assert!(synced >= KILLS_PER_FILE as u64 * 4 / 5, "{synced}");
    }
}
