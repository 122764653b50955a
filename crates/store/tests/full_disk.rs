//! A file that can grow no further: the kernel writes what fits, then refuses.

mod common;

use std::fs;
use std::path::Path;

use common::{as_child, child_folder, trial_done, trial_start};
use plimsoll_store::{EventWriter, StoreError, read_events, write_json_atomically};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files of this process may have so many bytes.
fn limit(bytes: Option<u64>) {
    let maximum = getrlimit(Resource::Fsize).maximum;
    setrlimit(
        Resource::Fsize,
        Rlimit {
            current: bytes.or(maximum),
            maximum,
        },
    )
    .unwrap();
}

fn append_with_little_room(folder: &Path) {
    let path = folder.join("events.jsonl");
    let line_bytes = {
        EventWriter::create(&path)
            .unwrap()
            .append(&trial_start(1, 1))
            .unwrap();
        fs::read(&path).unwrap().len() as u64
    };
    for room in 0..line_bytes - 3 {
        fs::remove_file(&path).unwrap();
        let mut writer = EventWriter::create(&path).unwrap();
        writer.append(&trial_done()).unwrap();
        let good_bytes = fs::metadata(&path).unwrap().len();
        limit(Some(good_bytes + room));
        for _ in 0..2 {
            let error = writer.append(&trial_start(1, 1)).unwrap_err();
            assert!(
                matches!(error, StoreError::Io { .. }) && error.to_string().contains("make room"),
                "{error}"
            );
            let log = read_events(&path).unwrap();
            assert_eq!((log.events.len(), log.is_torn), (1, room > 0));
            assert_eq!(
                fs::metadata(&path).unwrap().len(),
                good_bytes + room,
                "the write was not cut short"
            );
        }
        limit(None);
        writer.append(&trial_start(1, 1)).unwrap();
        let log = read_events(&path).unwrap();
        assert_eq!((log.events.len(), log.is_torn), (2, false));
    }
    let path = folder.join("env.json");
    write_json_atomically(&path, "old").unwrap();
    limit(Some(100));
    let error = write_json_atomically(&path, &"n".repeat(200)).unwrap_err();
    limit(None);
    assert!(
        error.to_string().contains("env.json") && error.to_string().contains("make room"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "\"old\"\n");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2);
}

#[test]
fn a_file_that_cannot_grow_keeps_its_whole_lines() {
    if let Some(folder) = child_folder() {
        return append_with_little_room(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    // The signal of the limit would end the process; ignored, the write returns an error as on a
    // full disk.
    let through = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "sh"];
    let output = as_child(
        &through,
        "a_file_that_cannot_grow_keeps_its_whole_lines",
        folder.path(),
    )
    .output()
    .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(folder.path().join("env.json").exists());
}
