//! Imported campaigns beside native ones.

mod common;

use std::collections::BTreeMap;
use std::fs;

use common::header;
use plimsoll_store::header::CampaignHeader;
use plimsoll_store::imported::{
    Family, IMPORTED_FORMAT, Imported, ImportedCell, ImportedResult, ImportedStep, ImportedValue,
};
use plimsoll_store::{CampaignDir, CampaignState, Store};

fn imported(qps: f64) -> Imported {
    let cell = |build: &str| ImportedCell {
        label: format!("{build}.z"),
        original: format!("x.{build}.z.pk1"),
        build: build.to_owned(),
        config: "z".to_owned(),
        version: String::new(),
        shape: String::new(),
    };
    let value = ImportedValue {
        value: Some(qps),
        classic: Some(format!("{qps:.0}")),
        unavailable: None,
    };
    let result = |cell: usize| ImportedResult {
        cell,
        step: 0,
        era: String::new(),
        failed: None,
        values: BTreeMap::from([("qps".to_owned(), value.clone())]),
        facts: BTreeMap::new(),
        counters: BTreeMap::new(),
        responses: Vec::new(),
        series: Vec::new(),
    };
    Imported {
        format: IMPORTED_FORMAT,
        source: "tree".to_owned(),
        fingerprint: "0123".to_owned(),
        made_with: String::new(),
        family: Family::Sysbench,
        base: 1,
        cells: vec![cell("a"), cell("b")],
        steps: vec![ImportedStep {
            name: "scan".to_owned(),
            test: "scan".to_owned(),
            range: Some(100),
            group: String::new(),
            description: String::new(),
            operation: "query".to_owned(),
            rate: "qps".to_owned(),
        }],
        results: vec![result(0), result(1)],
        files_read: 2,
        files_passed_over: 0,
        passwords_stripped: 0,
        left_out: Vec::new(),
        notes: Vec::new(),
    }
}

fn header_of(id: &str, created: &str) -> CampaignHeader {
    CampaignHeader {
        created: created.to_owned(),
        schedule: Vec::new(),
        ..header(id)
    }
}

#[test]
fn what_is_imported_is_read_back_and_complete() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let header = header_of("imported-1", "2026-01-02T03:04:05Z");
    let campaign = store
        .create_imported(&header, &imported(0.1 + 0.2))
        .unwrap();
    let record = campaign.load().unwrap();
    assert_eq!(record.imported, Some(imported(0.1 + 0.2)));
    assert_eq!(
        (record.state, record.trials.len()),
        (CampaignState::Complete, 0)
    );
    assert_eq!(
        record.imported.as_ref().unwrap().result(1, 0).unwrap().cell,
        1
    );
    assert!(record.imported.unwrap().result(2, 0).is_none());

    // An imported campaign may be made again, a native one is never replaced.
    assert!(store.create_imported(&header, &imported(5.0)).is_err());
    let again = store.replace_imported(&header, &imported(5.0)).unwrap();
    assert_eq!(again.imported().unwrap(), Some(imported(5.0)));
    let native = header_of("20260101T000000Z-native", "2026-01-01T00:00:00Z");
    store.create(&native).unwrap();
    assert!(store.replace_imported(&native, &imported(5.0)).is_err());
    assert_eq!(
        store.find(Some(&native.id)).unwrap().imported().unwrap(),
        None
    );
}

#[test]
fn the_newest_campaign_is_the_one_made_last() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let newest = || store.find(None).unwrap().header.id;
    store
        .create_imported(
            &header_of("imported-b", "2026-01-02T00:00:00Z"),
            &imported(1.0),
        )
        .unwrap();
    store
        .create_imported(
            &header_of("imported-a", "2026-01-03T00:00:00Z"),
            &imported(1.0),
        )
        .unwrap();
    assert_eq!(newest(), "imported-a");
    store
        .create(&header_of(
            "20260102T120000Z-native",
            "2026-01-02T12:00:00Z",
        ))
        .unwrap();
    assert_eq!(newest(), "imported-a");
    store
        .create(&header_of(
            "20260104T000000Z-native",
            "2026-01-04T00:00:00Z",
        ))
        .unwrap();
    assert_eq!(newest(), "20260104T000000Z-native");
}

/// An imported campaign in a store of its own.
fn written() -> (tempfile::TempDir, CampaignDir) {
    let dir = tempfile::tempdir().unwrap();
    let campaign = Store::new(dir.path())
        .create_imported(
            &header_of("imported-1", "2026-01-02T03:04:05Z"),
            &imported(1.0),
        )
        .unwrap();
    (dir, campaign)
}

#[test]
fn what_was_edited_is_refused_with_its_place() {
    let (_dir, campaign) = written();
    let path = campaign.path.join("imported.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, expected) in [
        (
            "\"format\": 1",
            "\"format\": 2",
            "it is of format 2, and this version knows formats up to 1",
        ),
        (
            "\"cell\": 0",
            "\"cell\": 7",
            "its results are not in their order, or point at a cell or step that is not there",
        ),
        (
            "\"cell\": 0",
            "\"cell\": 1",
            "its results are not in their order",
        ),
        (
            "\"family\": \"sysbench\"",
            "\"family\": \"other thing\"",
            "unknown variant",
        ),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from}");
        fs::write(&path, edited).unwrap();
        let error = campaign.load().unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("imported.json"),
            "{error}"
        );
    }
}

#[test]
fn an_index_just_behind_the_last_one_is_refused() {
    let (_dir, campaign) = written();
    let path = campaign.path.join("imported.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"base\": 1", "\"base\": 2"),
        ("\"cell\": 1", "\"cell\": 2"),
        ("\"step\": 0", "\"step\": 1"),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from}");
        fs::write(&path, edited).unwrap();
        let error = campaign.load().unwrap_err().to_string();
        assert!(
            error.contains("point at a cell or step that is not there"),
            "{to}: {error}"
        );
    }
}
