//! `explain`, `history` and `gate` from the command line.

use crate::support::{Place, text};
use serde_json::Value;

#[test]
fn a_screen_is_explained_and_decides_nothing() {
    let place = Place::new();
    assert_eq!(
        place
            .run(&["run", "small.toml", "--seed", "7"])
            .status
            .code(),
        Some(0)
    );

    let shown: Value = serde_json::from_slice(&place.run(&["show", "--json"]).stdout).unwrap();
    let comparisons = shown["comparisons"].as_array().unwrap();
    assert!(!comparisons.is_empty());
    for comparison in comparisons {
        assert!(
            comparison["verdict"].is_null() || comparison["verdict"] == "invalid",
            "{comparison}"
        );
        assert_eq!(
            (&comparison["design"], &comparison["base"]),
            (&"screen".into(), &"sqlite.wal_full".into())
        );
    }

    let output = place.run(&["explain", "l.i1"]);
    let explained = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        explained.contains("sqlite.wal_off against sqlite.wal_full")
            && explained.contains("process CPU/op"),
        "{explained}"
    );
    assert!(explained.contains("unconfirmed"), "{explained}");
    let explained: Value =
        serde_json::from_slice(&place.run(&["explain", "l.i1", "wal_off", "--json"]).stdout)
            .unwrap_or_default();
    assert!(
        explained.is_null(),
        "wal_off is a config: no cell and no build"
    );
    let both = place.run(&[
        "explain",
        "l.i1",
        "sqlite.wal_off",
        "sqlite.wal_full",
        "--json",
    ]);
    let explained: Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!(
        (&explained["base"], &explained["confirmed"]),
        (&"sqlite.wal_off".into(), &false.into())
    );

    let history = place.run(&["history"]);
    assert!(
        text(&history.stdout).contains("has no series"),
        "{}",
        text(&history.stdout)
    );

    let gate = place.run(&[
        "gate",
        "--candidate",
        "sqlite.wal_off",
        "--max-regression",
        "5%",
        "--junit",
        "gate.xml",
    ]);
    assert_eq!(gate.status.code(), Some(4), "{}", text(&gate.stderr));
    assert!(
        text(&gate.stdout).contains("one run of each decides nothing"),
        "{}",
        text(&gate.stdout)
    );
    let junit = std::fs::read_to_string(place.path("gate.xml")).unwrap();
    let mut elements = junit.split('<').filter(|text| text.starts_with("error "));
    let is_refused = |text: &str| text.split('>').next().unwrap().contains("type=\"refused\"");
    assert!(
        junit.starts_with("<?xml") && elements.any(is_refused),
        "{junit}"
    );

    for (arguments, words) in [
        (
            vec![
                "gate",
                "--candidate",
                "sqlite.wal_off",
                "--max-regression",
                "5",
            ],
            "0.05 or 5%",
        ),
        (
            vec![
                "gate",
                "--candidate",
                "sqlite.wal_off",
                "--max-regression",
                "-1%",
            ],
            "write a share between 0 and 1, or percent: 0.05 or 5%",
        ),
        (
            vec!["gate", "--candidate", "nobody", "--max-regression", "5%"],
            "nobody",
        ),
        (
            vec![
                "gate",
                "--candidate",
                "sqlite",
                "--max-regression",
                "5%",
                "--campaign",
                "x",
            ],
            "--campaign",
        ),
        (vec!["explain", "l.i7"], "l.i7"),
        (vec!["history", "--step", "l.i7"], "l.i7"),
    ] {
        let output = place.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(words),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn two_campaigns_of_a_plan_are_a_series() {
    let place = Place::new();
    for seed in ["1", "2"] {
        assert_eq!(
            place
                .run(&["run", "small.toml", "--seed", seed])
                .status
                .code(),
            Some(0)
        );
    }
    let output = place.run(&["history", "--step", "l.i0", "--json"]);
    let history: Value = serde_json::from_slice(&output.stdout).unwrap();
    let series = history["series"].as_array().unwrap();
    assert_eq!(series.len(), 2, "one per cell: {history}");
    assert_eq!(series[0]["points"].as_array().unwrap().len(), 2);
    assert!(
        text(&place.run(&["history", "--step", "l.i0"]).stdout)
            .contains("over campaigns (surveys): sqlite.wal_full")
    );
}
