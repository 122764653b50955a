//! One process runs a campaign, one writer appends to an events file.

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use common::{as_child, child_folder, header, trial_start};
use plimsoll_store::{CampaignState, EventWriter, Store, StoreError, read_events};

/// Holds everything until its input ends.
fn hold(store: &Path) {
    let campaign = Store::new(store).find(None).unwrap();
    let _lock = campaign.lock().unwrap();
    let mut writer =
        EventWriter::create(campaign.trial_dir(1, "cell", 1).join("events.jsonl")).unwrap();
    writer.append(&trial_start(1, 1)).unwrap();
    eprintln!("holding");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_second_process_is_refused_with_the_pid_of_the_first_until_that_dies() {
    if let Some(store) = child_folder() {
        return hold(&store);
    }
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path())
        .create(&header("20261121T080000Z-tiny"))
        .unwrap();
    let mut child = as_child(
        &[],
        "a_second_process_is_refused_with_the_pid_of_the_first_until_that_dies",
        folder.path(),
    )
    .stdin(Stdio::piped())
    .spawn()
    .unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert_eq!(said, "holding\n");

    assert!(campaign.is_running());
    assert_eq!(campaign.load().unwrap().state, CampaignState::Running);
    let error = campaign.lock().unwrap_err();
    assert!(
        matches!(error, StoreError::Running { pid: Some(pid), .. } if pid == child.id()),
        "{error}"
    );
    assert!(
        error
            .to_string()
            .contains(&format!("process {}", child.id())),
        "{error}"
    );

    let path = campaign.trial_dir(1, "cell", 1).join("events.jsonl");
    let inode = std::fs::metadata(&path).unwrap().ino();
    // Some sandboxes have no list of locks: then there is no pid to name. One reading of a list that
    // changes may miss a lock.
    let is_listed = (0..10).any(|_| {
        std::fs::read_to_string("/proc/locks")
            .is_ok_and(|locks| locks.contains(&format!(":{inode} ")))
    });
    for refused in [EventWriter::reopen(&path), EventWriter::create(&path)] {
        let error = refused.unwrap_err();
        let StoreError::Writing { pid, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(pid, is_listed.then_some(child.id()));
        assert!(error.to_string().contains("events.jsonl"), "{error}");
    }

    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!campaign.is_running());
    assert_eq!(campaign.load().unwrap().state, CampaignState::Broken);
    let _lock = campaign.lock().unwrap();
    EventWriter::reopen(&path)
        .unwrap()
        .append(&trial_start(1, 1))
        .unwrap();
    assert_eq!(read_events(&path).unwrap().events.len(), 2);
}

#[test]
fn a_second_handle_in_the_same_process_is_refused_until_the_first_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let campaign = store.create(&header("20261121T080000Z-tiny")).unwrap();
    let lock = campaign.lock().unwrap();
    let again = store.find(None).unwrap();
    assert!(
        matches!(again.lock(), Err(StoreError::Running { pid: Some(pid), .. }) if pid == std::process::id())
    );
    drop(lock);
    drop(again.lock().unwrap());

    let path = campaign.trial_dir(1, "cell", 1).join("events.jsonl");
    let writer = EventWriter::create(&path).unwrap();
    assert!(matches!(
        EventWriter::reopen(&path),
        Err(StoreError::Writing { .. })
    ));
    drop(writer);
    EventWriter::reopen(&path).unwrap();
}
