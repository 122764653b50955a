//! Campaigns are made whole, found by name, and believed only as far as their files hold.

mod common;

use std::fs;
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use common::{header, trial_done, trial_start};
use plimsoll_store::event::{Event, StepDone};
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::series::{operations_path, write_operations};
use plimsoll_store::{
    BisectionProbe, CampaignDir, CampaignState, Confirm, Design, EventWriter, OperationSecond,
    Placement, Store, StoreError, write_json_atomically,
};

fn write_trial(
    campaign: &CampaignDir,
    trial: u32,
    attempt: u32,
    events: &[Event],
) -> std::path::PathBuf {
    let dir = campaign.trial_dir(trial, "sqlite.wal_full.default", attempt);
    let mut writer = EventWriter::create(dir.join("events.jsonl")).unwrap();
    events
        .iter()
        .for_each(|event| writer.append(event).unwrap());
    writer.sync().unwrap();
    dir
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_campaign_is_found_by_id_beginning_path_or_as_the_newest() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("runs"));
    assert_eq!(store.campaigns().unwrap(), Vec::<std::path::PathBuf>::new());
    let ids = [
        "20260101T000000Z-a",
        "20260102T000000Z-a",
        "20260102T000000Z-a-2",
        "20260102T000000Z-a-10",
        "20260103T000000Z-b",
        "20260104T000000Z-b",
    ];
    for id in ids.iter().rev() {
        let made = store.create(&header(id)).unwrap();
        assert_eq!(made, CampaignDir::open(&made.path).unwrap());
        assert_eq!(names(&made.path), ["campaign.json", "trials"]);
    }
    fs::create_dir(folder.path().join("runs/.20270101T000000Z-x.1.tmp")).unwrap();
    fs::copy(
        store.campaigns().unwrap()[0].join("campaign.json"),
        folder
            .path()
            .join("runs/.20270101T000000Z-x.1.tmp/campaign.json"),
    )
    .unwrap();
    fs::create_dir(folder.path().join("runs/notes")).unwrap();
    fs::write(folder.path().join("runs/README"), "").unwrap();
    let listed: Vec<_> = store
        .campaigns()
        .unwrap()
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, ids);

    let path = folder.path().join("runs").join(ids[1]);
    for (wanted, id) in [
        (None, ids[5]),
        (Some("20260102T000000Z-a"), ids[1]),
        (Some("20260102T000000Z-a-2"), ids[2]),
        (Some("20260101"), ids[0]),
        (Some(path.to_str().unwrap()), ids[1]),
    ] {
        assert_eq!(store.find(wanted).unwrap().header.id, id, "{wanted:?}");
    }
    for (wanted, expected) in [
        (
            "2027",
            "the newest are 20260104T000000Z-b, 20260103T000000Z-b, 20260102T000000Z-a-10, \
            20260102T000000Z-a-2, 20260102T000000Z-a; --store",
        ),
        ("", "find campaign \"\" in"),
        ("notes", "it is not there"),
        (
            "20260102",
            "it fits 20260102T000000Z-a-10, 20260102T000000Z-a-2, 20260102T000000Z-a; write more \
            of the id",
        ),
    ] {
        let error = store.find(Some(wanted)).unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("runs"),
            "{error}"
        );
    }
    let error = Store::new(folder.path().join("nowhere"))
        .find(None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("nowhere: there are no campaigns; `plimsoll run` makes one"),
        "{error}"
    );
}

#[test]
fn an_id_is_made_once_and_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let start = Barrier::new(8);
    let made = thread::scope(|scope| {
        let makers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    store.create(&header("20260101T000000Z-a"))
                })
            })
            .collect();
        makers
            .into_iter()
            .map(|maker| maker.join().unwrap())
            .collect::<Vec<_>>()
    });
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1);
    assert!(
        made.iter()
            .all(|made| matches!(made, Ok(_) | Err(StoreError::Exists { .. }))),
        "{made:?}"
    );
    assert_eq!(names(folder.path()), ["20260101T000000Z-a"]);

    fs::create_dir(folder.path().join("empty")).unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    for taken in ["empty", "file"] {
        assert!(
            matches!(store.create(&header(taken)), Err(StoreError::Exists { .. })),
            "{taken}"
        );
    }
    for bad in ["", "a/b", "..", ".hidden"] {
        assert!(
            matches!(store.create(&header(bad)), Err(StoreError::BadId { .. })),
            "{bad}"
        );
    }
    assert_eq!(
        names(folder.path()),
        ["20260101T000000Z-a", "empty", "file"]
    );
}

#[test]
fn the_state_follows_from_the_trials_and_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path())
        .create(&header("20260101T000000Z-a"))
        .unwrap();
    let state = || campaign.load().unwrap().state;
    assert_eq!(state(), CampaignState::Broken);
    write_trial(&campaign, 1, 1, &[trial_start(1, 1), trial_done()]);
    write_trial(&campaign, 2, 1, &[trial_start(2, 1)]);
    assert_eq!(state(), CampaignState::Broken);
    let lock = campaign.lock().unwrap();
    assert_eq!(state(), CampaignState::Running);
    write_trial(&campaign, 2, 2, &[trial_start(2, 2), trial_done()]);
    assert_eq!(state(), CampaignState::Complete);
    drop(lock);
    assert_eq!(state(), CampaignState::Complete);
    assert_eq!(
        serde_json::to_string(&CampaignState::Complete).unwrap(),
        "\"complete\""
    );
}

#[test]
fn a_trial_is_read_with_all_its_parts() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path())
        .create(&header("20260101T000000Z-a"))
        .unwrap();
    let step = StepDone {
        step: "l.i0".into(),
        elapsed_ns: 7,
        ..StepDone::default()
    };
    let dir = write_trial(
        &campaign,
        1,
        2,
        &[trial_start(1, 2), Event::StepDone(Box::new(step.clone()))],
    );
    assert_eq!(
        dir,
        campaign.path.join("trials/1-sqlite.wal_full.default-a2")
    );
    let rows = vec![OperationSecond {
        second: 1,
        client: 1,
        kind: "insert".into(),
        ok: 3,
        ..OperationSecond::default()
    }];
    write_operations(operations_path(&dir, "l.i0"), &rows).unwrap();
    write_json_atomically(dir.join("env.json"), &serde_json::json!({"cpus": 2})).unwrap();
    // A child that died before it wrote anything.
    fs::create_dir(campaign.trial_dir(1, "sqlite.wal_full.default", 1)).unwrap();
    fs::write(campaign.path.join("trials/.DS_Store"), "").unwrap();

    let trials = campaign.trials().unwrap();
    let [empty, trial] = &trials[..] else {
        panic!("{trials:?}")
    };
    assert_eq!(
        (
            empty.number,
            empty.attempt,
            empty.events.len(),
            empty.is_torn
        ),
        (1, 1, 0, false)
    );
    assert!(empty.start().is_none() && empty.environment.is_none() && !empty.is_complete());
    assert_eq!((trial.number, trial.attempt, &trial.dir), (1, 2, &dir));
    assert_eq!(trial.start().unwrap().attempt, 2);
    assert_eq!(trial.steps_done().collect::<Vec<_>>(), [&step]);
    assert_eq!(trial.environment.as_ref().unwrap()["cpus"], 2);
    assert_eq!(trial.series("l.i0").unwrap(), rows);
    let error = trial.host_series("l.i0").unwrap_err().to_string();
    assert!(error.contains("series/l.i0.host.tsv"), "{error}");
}

#[test]
fn what_cannot_be_believed_costs_one_attempt() {
    type Damage = fn(&CampaignDir, &Path);
    let cases: [(Damage, &[&str]); 12] = [
        (
            |_, trial| {
                let path = trial.join("events.jsonl");
                fs::write(
                    &path,
                    fs::read_to_string(&path)
                        .unwrap()
                        .replace("wal_full", "wal_off1"),
                )
                .unwrap();
            },
            &["events.jsonl, line 1", "checksum"],
        ),
        (
            |_, trial| fs::write(trial.join("env.json"), "{").unwrap(),
            &["env.json, line 1"],
        ),
        (
            |campaign, trial| fs::rename(trial, campaign.trial_dir(2, "x", 1)).unwrap(),
            &["of trial 1", "belongs trial 2"],
        ),
        (
            |campaign, trial| fs::rename(trial, campaign.trial_dir(1, "x", 3)).unwrap(),
            &["attempt 1", "attempt 3"],
        ),
        (
            |campaign, _| fs::create_dir(campaign.trial_dir(1, "x", 1)).unwrap(),
            &["2 folders are the same attempt at the same trial"],
        ),
        (
            |_, trial| {
                fs::remove_file(trial.join("events.jsonl")).unwrap();
                fs::create_dir(trial.join("events.jsonl")).unwrap();
            },
            &["events.jsonl: it is not a file"],
        ),
        (
            |_, trial| {
                let path = trial.join("events.jsonl");
                fs::remove_file(&path).unwrap();
                std::os::unix::fs::symlink(&path, &path).unwrap();
            },
            &["events.jsonl: "],
        ),
        (
            |_, trial| {
                let path = trial.join("events.jsonl");
                fs::remove_file(&path).unwrap();
                drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            },
            &["events.jsonl: "],
        ),
        (
            |_, trial| {
                let path = trial.join("events.jsonl");
                fs::rename(&path, trial.join("f")).unwrap();
                std::os::unix::fs::symlink("f/x", &path).unwrap();
            },
            &["events.jsonl: "],
        ),
        // A torn line at the end is a live trial's, but not a sealed one's.
        (
            |_, trial| {
                plimsoll_store::seal(trial).unwrap();
                let path = trial.join("events.jsonl");
                let text = fs::read(&path).unwrap();
                fs::write(&path, &text[..text.len() / 2]).unwrap();
            },
            &["events.jsonl", "longer when its trial ended"],
        ),
        (
            |_, trial| {
                plimsoll_store::seal(trial).unwrap();
                fs::remove_file(trial.join("events.jsonl")).unwrap();
            },
            &["events.jsonl", "longer when its trial ended"],
        ),
        (
            |campaign, _| {
                let other = Store::new(campaign.path.parent().unwrap());
                let mut header = header("20260102T000000Z-b");
                header.seed += 1;
                let other = other.create(&header).unwrap();
                fs::rename(campaign.path.join("trials"), other.path.join("old")).unwrap();
                fs::remove_dir(other.path.join("trials")).unwrap();
                fs::rename(other.path.join("old"), other.path.join("trials")).unwrap();
            },
            &["seed 42", "seed 43"],
        ),
    ];
    for (damage, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let campaign = store.create(&header("20260101T000000Z-a")).unwrap();
        let trial = write_trial(&campaign, 1, 1, &[trial_start(1, 1)]);
        let other = write_trial(&campaign, 2, 7, &[trial_start(2, 7)]);
        assert!(
            campaign
                .trials()
                .unwrap()
                .iter()
                .all(|trial| trial.damage.is_none())
        );
        let is_moved = |campaign: &CampaignDir| !campaign.path.join("trials").exists();
        damage(&campaign, &trial);
        let loaded = store.find(None).unwrap().load().unwrap();
        let damaged: Vec<_> = loaded.trials.iter().filter(|of| of.dir != other).collect();
        assert!(!damaged.is_empty());
        for trial in damaged {
            let damage = trial.damage.as_deref().unwrap_or_default();
            assert!(
                expected.iter().all(|part| damage.contains(part)),
                "{damage}"
            );
            assert!(!trial.is_complete() && trial.events.is_empty());
        }
        let beside = loaded.trials.iter().find(|of| of.dir == other);
        assert!(is_moved(&campaign) || beside.is_some_and(|of| of.events.len() == 1));
    }
}

#[test]
fn a_folder_that_is_no_trial_is_passed_over_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let campaign = store.create(&header("20260101T000000Z-a")).unwrap();
    write_trial(&campaign, 1, 1, &[trial_start(1, 1)]);
    for name in ["old", "1-sqlite-a1 (copy)"] {
        fs::create_dir(campaign.path.join("trials").join(name)).unwrap();
    }
    let loaded = campaign.load().unwrap();
    assert_eq!(loaded.trials.len(), 1);
    assert_eq!(loaded.strangers, ["1-sqlite-a1 (copy)", "old"]);
}

#[test]
fn a_header_that_is_damaged_or_newer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let path = store
        .create(&header("20260101T000000Z-a"))
        .unwrap()
        .path
        .join("campaign.json");
    let text = fs::read_to_string(&path).unwrap();
    for (bad, expected) in [
        (
            text.replacen("\"format\": 2", "\"format\": 7", 1),
            "it is of format 7, and this version knows formats up to 2",
        ),
        (text.replacen("\"seed\": 42", "\"seed\": 4x", 1), "line 7"),
        (
            text.replacen("\"seed\": 42,", "", 1),
            "missing field `seed`",
        ),
        (String::new(), "restore it from a copy"),
    ] {
        fs::write(&path, bad).unwrap();
        let error = store.find(None).unwrap_err().to_string();
        assert!(
            error.contains("campaign.json") && error.contains(expected),
            "{error}"
        );
    }
}

/// The campaign has two trials, which a start by slices runs together.
#[test]
fn by_slices_a_campaign_is_complete_when_all_of_a_start_went_through_together() {
    for (design, both_once) in [
        (Design::Slices, CampaignState::Broken),
        (Design::Blocks, CampaignState::Complete),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut header = header("20260101T000000Z-a");
        assert_eq!(header.schedule.len(), 2);
        header.schedule.iter_mut().for_each(|trial| trial.block = 1);
        header.confirm = Some(Confirm {
            design,
            ..by_slices()
        });
        let campaign = Store::new(folder.path()).create(&header).unwrap();
        let state = || campaign.load().unwrap().state;
        let ends = |trial, attempt, is_done: bool| {
            let events = [trial_start(trial, attempt), trial_done()];
            write_trial(
                &campaign,
                trial,
                attempt,
                &events[..1 + usize::from(is_done)],
            );
        };
        ends(1, 1, true);
        ends(2, 1, false);
        assert_eq!(state(), CampaignState::Broken);
        ends(1, 2, false);
        ends(2, 2, true);
        assert_eq!(state(), both_once, "{design:?}");
        ends(1, 3, true);
        ends(2, 3, true);
        assert_eq!(state(), CampaignState::Complete);
    }
}

fn by_slices() -> Confirm {
    Confirm {
        of: Some("20260101T000000Z-a".to_owned()),
        design: Design::Slices,
        steps: vec!["qr100".to_owned()],
        base: "sqlite.wal_full".to_owned(),
        control: "sqlite.wal_full#2".to_owned(),
        starts: Some(3),
        budget: None,
        blocks: None,
        turn_ns_read: 20_000_000,
        turn_ns_write: 50_000_000,
        time_ns: 60_000_000_000,
        loads: None,
        before: vec![
            Vec::new(),
            header("20260101T000000Z-a").plan.cells[0].workload.steps()[..1].to_vec(),
            Vec::new(),
        ],
        placement: Some(Placement {
            client_cpus: "0".to_owned(),
            server_cpus: "1-3".to_owned(),
        }),
        more_placements: Vec::new(),
        age_ns: None,
        delta: 0.03,
        alpha: 0.05,
        profile_ns: Some(5_000_000_000),
        bisection: None,
    }
}

#[test]
fn the_design_of_a_confirm_campaign_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let slices = by_slices();
    let blocks = Confirm {
        of: None,
        design: Design::Blocks,
        starts: None,
        blocks: Some(12),
        placement: None,
        more_placements: Vec::new(),
        age_ns: None,
        profile_ns: None,
        ..slices.clone()
    };
    let probe = BisectionProbe {
        search: String::new(),
        candidates: vec!["a".to_owned(), "b".to_owned()],
        probe: Some(1),
    };
    let bisection = Confirm {
        bisection: Some(probe),
        ..blocks.clone()
    };
    for (id, confirm) in [
        ("20260102T000000Z-a-confirm", Some(slices)),
        ("20260103T000000Z-a-confirm", Some(blocks)),
        ("20260103T000001Z-a-bisect", Some(bisection)),
        ("20260104T000000Z-a", None),
    ] {
        let made = store
            .create(&CampaignHeader {
                confirm: confirm.clone(),
                ..header(id)
            })
            .unwrap();
        assert_eq!(
            CampaignDir::open(&made.path).unwrap().header.confirm,
            confirm
        );
        let text = fs::read_to_string(made.path.join("campaign.json")).unwrap();
        assert_eq!(
            text.contains("\"confirm\""),
            confirm.is_some(),
            "an ordinary campaign is written as before"
        );
    }
}

/// What `campaign.json` says of a campaign of format 1, with a change.
fn changed_format_1(change: impl Fn(&str) -> String) -> Result<CampaignDir, StoreError> {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1");
    let text = fs::read_to_string(golden.join("20261121T080000Z-tiny/campaign.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("20261121T080000Z-tiny");
    fs::create_dir_all(path.join("trials")).unwrap();
    fs::write(path.join("campaign.json"), change(&text)).unwrap();
    CampaignDir::open(path)
}

#[test]
fn a_list_in_place_of_a_header_of_format_1_is_refused() {
    let error = changed_format_1(|_| "[1]".to_owned()).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[test]
fn a_damaged_header_of_format_1_names_no_line_that_is_not_there() {
    assert!(changed_format_1(str::to_owned).is_ok());
    let error = changed_format_1(|text| text.replacen("\"seed\"", "\"sed\"", 1)).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("campaign.json: missing field `seed`"),
        "{message}"
    );
}

/// Found by fuzzing: the indices went into the plan's cells unseen.
#[test]
fn a_schedule_of_cells_that_are_not_in_the_plan_is_refused() {
    for (member, damaged) in [
        ("\"cell\": 1", "\"cell\": 2"),
        ("\"base\": 0", "\"base\": 2"),
    ] {
        let change = |text: &str| {
            assert!(text.contains(member), "{text}");
            text.replacen(member, damaged, 1)
        };
        let error = changed_format_1(change).unwrap_err();
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
}

#[test]
fn a_background_writer_that_writes_in_no_time_is_refused() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/format-1-plans");
    let text = fs::read_to_string(golden.join("insert-benchmark.toml")).unwrap();
    let plan = plimsoll_core::plan::Plan::parse("t.toml", &text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path());
    let made = store
        .create(&CampaignHeader {
            plan,
            ..header("20260101T000000Z-a")
        })
        .unwrap();
    let path = made.path.join("campaign.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(CampaignDir::open(&made.path).is_ok());
    let hostile = text.replace("\"per_ns\": 1000000000", "\"per_ns\": 0");
    assert_ne!(hostile, text);
    fs::write(&path, hostile).unwrap();
    let error = CampaignDir::open(&made.path).unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

/// As a link that leads to itself, or below a file: something else is where a file was.
#[test]
fn a_link_to_a_name_that_is_too_long_costs_one_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path())
        .create(&header("20260101T000000Z-a"))
        .unwrap();
    for (number, label) in [(1, "sqlite.wal_full"), (2, "sqlite.wal_off")] {
        let dir = campaign.trial_dir(number, label, 1);
        let mut events = EventWriter::create(dir.join("events.jsonl")).unwrap();
        events.append(&trial_start(number, 1)).unwrap();
        events.append(&trial_done()).unwrap();
    }
    let path = campaign
        .trial_dir(1, "sqlite.wal_full", 1)
        .join("events.jsonl");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("x".repeat(300), &path).unwrap();
    let loaded = campaign
        .load()
        .unwrap_or_else(|error| panic!("the whole campaign: {error}"));
    assert!(loaded.trials[0].damage.is_some() && loaded.trials[1].is_complete());
}

/// docs/reliability.md: "`events.jsonl` or `env.json` of a trial is damaged, or shorter than its
/// seal says | that attempt: it is `damaged`".
#[test]
fn a_sealed_trial_that_lost_its_environment_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Store::new(folder.path())
        .create(&header("20260101T000000Z-a"))
        .unwrap();
    let dir = campaign.trial_dir(1, "sqlite.wal_full", 1);
    let mut events = EventWriter::create(dir.join("events.jsonl")).unwrap();
    events.append(&trial_start(1, 1)).unwrap();
    events.append(&trial_done()).unwrap();
    let env = dir.join("env.json");
    write_json_atomically(&env, &serde_json::json!({"cpus_online": {"known": "4"}})).unwrap();
    plimsoll_store::seal(&dir).unwrap();
    fs::remove_file(&env).unwrap();
    let loaded = campaign.load().unwrap();
    let trial = &loaded.trials[0];
    assert!(
        trial.damage.is_some(),
        "complete: {}, environment: {:?}",
        trial.is_complete(),
        trial.environment
    );
}

#[test]
fn a_header_with_no_starts_is_refused_for_that() {
    let folder = tempfile::tempdir().unwrap();
    let confirm = serde_json::json!({
        "of": null, "design": "slices", "steps": ["qr100"], "base": "sqlite.wal_full",
        "control": "sqlite.wal_full#2", "starts": 3, "turn_ns_read": 1, "turn_ns_write": 1,
        "time_ns": 1, "placement": null, "delta": 0.03, "alpha": 0.05,
    });
    let mut header = header("20260101T000000Z-a");
    header.confirm = Some(serde_json::from_value(confirm).unwrap());
    let made = Store::new(folder.path()).create(&header).unwrap();
    let path = made.path.join("campaign.json");
    let mut text: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    CampaignDir::open(&made.path).unwrap();
    text["confirm"]["starts"] = serde_json::json!(0);
    fs::write(&path, serde_json::to_vec(&text).unwrap()).unwrap();
    let error = CampaignDir::open(&made.path).unwrap_err().to_string();
    assert!(error.contains("starts"), "{error}");
}

#[test]
fn each_block_has_the_cpus_of_its_placement() {
    let cpus = |client: &str, server: &str| Placement {
        client_cpus: client.to_owned(),
        server_cpus: server.to_owned(),
    };
    let confirm = |loads: u32, placements: &[Placement]| -> Confirm {
        let (first, more) = (placements.first(), placements.get(1..).unwrap_or_default());
        let confirm = serde_json::json!({
            "of": null, "design": "slices", "steps": ["qr100"], "base": "sqlite.wal_full",
            "control": "sqlite.wal_full#2", "starts": 6, "turn_ns_read": 1, "turn_ns_write": 1,
            "time_ns": 1, "loads": loads, "placement": first, "more_placements": more,
            "delta": 0.03, "alpha": 0.05,
        });
        serde_json::from_value(confirm).unwrap()
    };
    let (first, second) = (cpus("0", "1-3"), cpus("3", "0-2"));
    let one = confirm(1, std::slice::from_ref(&first));
    assert!((1..=6).all(|block| one.placement_of(block) == Some(&first)));
    let two = confirm(2, &[first.clone(), second.clone()]);
    let found: Vec<Option<&Placement>> = (1..=6).map(|block| two.placement_of(block)).collect();
    assert_eq!(
        found,
        [&first, &first, &second, &second, &first, &first].map(Some),
        "each with both loads"
    );
    assert_eq!(confirm(1, &[]).placement_of(1), None);
}

/// What cannot be read is not empty: nothing would be shown, and `resume` would run all of it again.
#[test]
fn a_folder_that_cannot_be_read_is_not_an_empty_one() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::new(folder.path().join("runs"));
    let campaign = store.create(&header("20260101T000000Z-a")).unwrap();
    let trials = campaign.path.join("trials");
    fs::remove_dir(&trials).unwrap();
    assert!(campaign.trials().unwrap().is_empty(), "nothing ran yet");
    fs::write(&trials, "").unwrap();
    assert!(matches!(campaign.trials(), Err(StoreError::Io { .. })));
    assert!(matches!(campaign.load(), Err(StoreError::Io { .. })));

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let store = Store::new(&file);
    assert!(matches!(store.campaigns(), Err(StoreError::Io { .. })));
    assert!(matches!(store.find(None), Err(StoreError::Io { .. })));
}
