//! A campaign that an earlier format wrote must be read by every later version.
//!
//! `golden/format-N` is written by the code of that format, once, and checked in. With
//! PLIMSOLL_WRITE_GOLDEN=1 the test writes the folder of today's format again, which is right only
//! as long as no release has written that format.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{METHODOLOGY_VERSION, SEED, header, trial_done, trial_start};
use plimsoll_core::plan::Operation;
use plimsoll_core::readings::Reading;
use plimsoll_core::record::{EncodedHistogram, OperationRecord, Pacing, TableCheck};
use plimsoll_store::event::{
    DrainDone, DrainStep, Event, ServerCrashed, ServerReady, StepDone, StepStart,
};
use plimsoll_store::header::FORMAT;
use plimsoll_store::series::{host_path, operations_path, write_host, write_operations};
use plimsoll_store::{
    CampaignState, EventWriter, HostSeries, OperationSecond, Store, check_seal, seal,
    write_json_atomically,
};

const ID: &str = "20261121T080000Z-tiny";
const FIRST: &str = "sqlite.wal_full.default";
const SECOND: &str = "sqlite.wal_off.default";

fn golden(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/format-{format}"))
}

fn step_done() -> StepDone {
    StepDone {
        step: "l.i0".into(),
        primary: Operation::Insert,
        elapsed_ns: 2_000_000_000,
        operations: vec![OperationRecord {
            kind: "insert".into(),
            attempts: 11,
            ok: 10,
            retried: 1,
            rows: 1000,
            errors: [("busy".to_owned(), 1)].into(),
            worker_ns: 1_900_000_000,
            service: EncodedHistogram("HISTFAAAABx4nJNpmSzMwMAAAA".into()),
            pacing: Some(Pacing {
                target_per_s: 5.0,
                achieved_per_s: 4.9,
                seconds: 2,
                seconds_under: 1,
                backlog: 0,
            }),
            ..OperationRecord::default()
        }],
        host: [
            ("cpu_user_s".to_owned(), Reading::Ok(0.1)),
            (
                "psi_cpu_share".to_owned(),
                Reading::Unavailable("the kernel has no /proc/pressure".into()),
            ),
        ]
        .into_iter()
        .collect(),
        engine_counters: [("cache_miss".to_owned(), -1)].into(),
        tables: vec![TableCheck {
            table: "pi1".into(),
            expected_rows: 1000,
            found_rows: 1000,
            checksum: Some("c0ffee".into()),
        }],
        notes: [("rows_per_query".to_owned(), 9.75)].into(),
        sla_missed: Some(0.9),
        ..StepDone::default()
    }
}

fn first_trial() -> Vec<Event> {
    vec![
        trial_start(1, 1),
        Event::ServerReady(ServerReady {
            version: "3.50.4".into(),
            build_options: vec!["THREADSAFE=1".into()],
            embedded: true,
            effective_settings: [("journal_mode".to_owned(), "wal".to_owned())].into(),
            session: None,
            held: None,
            seconds: 0.002,
        }),
        Event::StepStart(StepStart {
            step: "l.i0".into(),
        }),
        Event::StepDone(Box::new(step_done())),
        Event::DrainDone(DrainDone {
            step: "l.i0".into(),
            actions: vec![DrainStep {
                action: "ANALYZE".into(),
                seconds: 0.25,
                result: String::new(),
            }],
            drained_s: 0.25,
            waited_s: 1.75,
        }),
        trial_done(),
    ]
}

fn second_trial() -> Vec<Event> {
    let crash = ServerCrashed {
        step: Some("l.i0".into()),
        status: "signal 9".into(),
        log_tail: "line one\nline \"two\"".into(),
    };
    vec![
        trial_start(2, 1),
        Event::StepStart(StepStart {
            step: "l.i0".into(),
        }),
        Event::ServerCrashed(crash),
    ]
}

fn operations() -> Vec<OperationSecond> {
    let row = OperationSecond {
        second: 0,
        client: 1,
        kind: "insert".into(),
        ok: 6,
        unsuccessful: 1,
        rows: 600,
        service_sum_ns: 900_000_000,
        service_max_ns: 400_000_000,
        response_max_ns: 0,
    };
    vec![
        row.clone(),
        OperationSecond {
            second: 1,
            ok: 4,
            unsuccessful: 0,
            rows: 400,
            ..row
        },
    ]
}

fn host() -> HostSeries {
    let columns = ["second", "cpu_user_pct", "read_kib"]
        .map(str::to_owned)
        .to_vec();
    HostSeries {
        columns,
        rows: vec![
            vec![Some(0.0), Some(12.5), None],
            vec![Some(1.0), Some(13.0), Some(4.0)],
        ],
    }
}

fn write(store: &Path) {
    let campaign = Store::new(store).create(&header(ID)).unwrap();
    for (number, cell, events) in [(1, FIRST, first_trial()), (2, SECOND, second_trial())] {
        let mut writer =
            EventWriter::create(campaign.trial_dir(number, cell, 1).join("events.jsonl")).unwrap();
        events
            .iter()
            .for_each(|event| writer.append(event).unwrap());
        writer.sync().unwrap();
    }
    let done = campaign.trial_dir(1, FIRST, 1);
    write_operations(operations_path(&done, "l.i0"), operations()).unwrap();
    write_host(host_path(&done, "l.i0"), &host()).unwrap();
    write_json_atomically(
        done.join("env.json"),
        &serde_json::json!({"kernel": "6.18", "cpus": 2}),
    )
    .unwrap();
    seal(&done).unwrap();
    let torn = campaign.trial_dir(2, SECOND, 1).join("events.jsonl");
    let text = fs::read_to_string(&torn).unwrap();
    fs::write(&torn, text + "{\"v\":1,\"seq\":4,\"t_ns\":17").unwrap();
}

/// The events but for the process id of their writer.
fn assert_events(found: Vec<Event>, expected: Vec<Event>) {
    let without_pid = |event: Event| match event {
        Event::TrialStart(mut start) => {
            start.pid = 0;
            Event::TrialStart(start)
        }
        event => event,
    };
    let without_pids = |events: Vec<Event>| events.into_iter().map(without_pid).collect::<Vec<_>>();
    assert_eq!(without_pids(found), without_pids(expected));
}

fn assert_is_read(store: &Path) {
    let store = Store::new(store);
    let campaign = store.find(Some("20261121")).unwrap().load().unwrap();
    let header = &campaign.header;
    assert_eq!(
        (header.id.as_str(), header.seed, header.methodology_version),
        (ID, SEED, METHODOLOGY_VERSION)
    );
    assert_eq!(
        (header.format, &header.plan),
        (FORMAT, &common::header(ID).plan)
    );
    assert_eq!(
        (header.plan.name.as_str(), header.data_dir.as_str()),
        ("tiny", "/var/tmp/plimsoll")
    );
    assert!(
        header
            .cells
            .iter()
            .map(|cell| cell.label.as_str())
            .eq(["sqlite.wal_full", "sqlite.wal_off"])
    );
    assert!(
        header
            .plan
            .cells
            .iter()
            .zip(&header.cells)
            .all(|(planned, found)| planned.label == found.label)
    );
    assert!(
        header
            .schedule
            .iter()
            .map(|trial| (trial.number, trial.block))
            .eq([(1, 1), (2, 1)])
    );
    assert_eq!(campaign.state, CampaignState::Broken);
    let [done, crashed] = &campaign.trials[..] else {
        panic!("{:?}", campaign.trials)
    };

    assert!(done.is_complete() && !done.is_torn);
    assert_events(
        done.events
            .iter()
            .map(|stamped| stamped.event.clone())
            .collect(),
        first_trial(),
    );
    assert_eq!(done.steps_done().collect::<Vec<_>>(), [&step_done()]);
    assert_eq!(done.series("l.i0").unwrap(), operations());
    assert_eq!(done.host_series("l.i0").unwrap(), host());
    assert_eq!(done.environment.as_ref().unwrap()["kernel"], "6.18");
    assert_eq!(check_seal(&done.dir).unwrap(), Some(Vec::new()));

    assert!(!crashed.is_complete() && crashed.is_torn);
    assert_events(
        crashed
            .events
            .iter()
            .map(|stamped| stamped.event.clone())
            .collect(),
        second_trial(),
    );
    assert!(crashed.environment.is_none());
    assert_eq!(check_seal(&crashed.dir).unwrap(), None);
}

#[test]
fn a_campaign_of_every_format_is_still_read() {
    if std::env::var_os("PLIMSOLL_WRITE_GOLDEN").is_some() {
        let _ = fs::remove_dir_all(golden(FORMAT));
        write(&golden(FORMAT));
    }
    for format in 1..=FORMAT {
        assert_is_read(&golden(format));
    }
}

#[test]
fn what_is_written_today_is_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    assert_is_read(folder.path());
}
