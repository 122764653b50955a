//! Waits and companions of a confirm campaign, as people see them.

use plimsoll_analysis::{Options, Stored, Waited, analyse, companions_of, explain, waits_of};
use plimsoll_report::{Draw, companions_to_json, companions_to_text, to_html};
use plimsoll_store::CampaignRecord;
use plimsoll_store::series::{WaitProfile, waits_path, write_waits};

use crate::common;
use crate::common::confirm::{BASE, SLOW, blocks_campaign};

const STEP: &str = "qr100";

/// In the slow cell more sessions wait for a lock.
fn waits(label: &str, block: u32) -> WaitProfile {
    let locked = if label == SLOW { 60 } else { 10 };
    WaitProfile {
        source: Ok("a view".to_owned()),
        looks: 100,
        active_ns: 10_000_000_000,
        operations: 1_000,
        sessions: [
            ("lock".to_owned(), locked + u64::from(block % 3)),
            ("running".to_owned(), 90),
        ]
        .into(),
    }
}

/// Six blocks; each query costs the same fsyncs everywhere, and a temporary table in the slow cell.
fn campaign(is_looked_at: bool) -> (common::Campaign, CampaignRecord) {
    let campaign = blocks_campaign(6, true, &|_, label, made| {
        let done = &mut made.done;
        let queries: u64 = done
            .operations
            .iter()
            .filter(|operation| done.primary.counts(&operation.kind))
            .map(|operation| operation.ok)
            .sum();
        let count = |each: u64| (each * queries) as i64;
        let tables = if label == SLOW { 2 } else { 1 };
        done.engine_counters = [
            ("innodb_os_log_fsyncs".to_owned(), count(3)),
            ("created_tmp_tables".to_owned(), count(tables)),
        ]
        .into();
    });
    let record = campaign.load();
    for trial in record.trials.iter().filter(|_| is_looked_at) {
        let start = trial.start().unwrap();
        let profile = waits(&start.cell, start.block);
        write_waits(waits_path(&trial.dir, STEP), &profile).unwrap();
    }
    (campaign, record)
}

fn waited(record: &CampaignRecord) -> Option<Waited> {
    let explanation = explain(record, &Stored::default(), STEP, Some(BASE), Some(SLOW)).unwrap();
    waits_of(record, &explanation)
}

#[test]
fn waits_stand_beside_the_explanation_and_on_the_page() {
    let (_folder, record) = campaign(true);
    let waited = waited(&record).unwrap();
    assert_eq!((waited.starts, waited.looks), (6, [600, 600]));
    let lock = &waited.events[0];
    assert!(lock.event == "lock" && lock.is_clear(), "{lock:?}");
    // Fifty sessions more in a hundred looks over 10 s and 1,000 operations.
    assert!((lock.difference_s - 5.0).abs() < 1e-9, "{lock:?}");
    let text = waited.to_text();
    assert!(
        text.contains("+5.0000  [+5.0000, +5.0000]\n") && text.contains("From a view: 600 looks"),
        "{text}"
    );
    assert_eq!(waited.to_json()["events"][0]["event"], "lock");
    let view = analyse(&[record], &Options::default()).unwrap();
    let page = to_html(&view);
    assert!(
        page.contains(&format!(
            "aria-label=\"{STEP} waits of {SLOW} against {BASE}\""
        )),
        "a chart"
    );
    assert_eq!(page.matches("<h3>Waits</h3>").count(), 1, "of one step");
}

#[test]
fn without_looks_there_are_no_waits() {
    let (_folder, record) = campaign(false);
    assert_eq!(waited(&record), None);
    let view = analyse(&[record], &Options::default()).unwrap();
    assert!(view.waits.is_empty() && !to_html(&view).contains("<h3>Waits</h3>"));
}

#[test]
fn a_server_that_reports_no_waits_says_why() {
    let (_folder, record) = campaign(true);
    let refused = WaitProfile::unavailable("SQLite does not report what its sessions wait for");
    for trial in &record.trials {
        write_waits(waits_path(&trial.dir, STEP), &refused).unwrap();
    }
    let text = waited(&record).unwrap().to_text();
    assert!(text.contains("No waits: SQLite does not report"), "{text}");
}

#[test]
fn exact_companions_are_told_from_those_that_moved() {
    let (_folder, record) = campaign(false);
    let explanation = explain(&record, &Stored::default(), STEP, Some(BASE), Some(SLOW)).unwrap();
    let companions = companions_of(&record, &explanation);
    let names: Vec<&str> = companions.iter().map(|companion| companion.name).collect();
    assert_eq!(names, ["temporary tables", "log fsyncs"]);
    let text = companions_to_text(&companions);
    let ends: Vec<&str> = text
        .lines()
        .skip(2)
        .filter_map(|line| line.split("  ").last())
        .collect();
    assert_eq!(
        ends,
        ["the same in every start", "exactly the same"],
        "{text}"
    );
    let value = companions_to_json(&companions);
    assert_eq!(value[1]["exactly_the_same"], true);
    assert_eq!(
        (&value[1]["low"], &value[1]["high"]),
        (&1.0.into(), &1.0.into())
    );
    assert!((value[0]["ratio"].as_f64().unwrap() - 2.0).abs() < 1e-9);
}
