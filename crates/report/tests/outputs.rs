//! Every text output, byte for byte. `UPDATE_GOLDEN=1 cargo test -p plimsoll-report` rewrites the files; read the difference before keeping it.

mod common;

use std::fs;
use std::path::Path;

use plimsoll_report::{Options, View, analyse, show_json, to_csv, to_json, to_markdown, to_terminal, to_tsv};
use plimsoll_store::event::Event;

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let at = golden.lines().zip(text.lines()).position(|(a, b)| a != b).unwrap_or_else(|| golden.lines().count().min(text.lines().count()));
    assert!(
        golden == text,
        "{name} differs in line {}:\n  golden {:?}\n  now    {:?}\nUPDATE_GOLDEN=1 rewrites it",
        at + 1,
        golden.lines().nth(at),
        text.lines().nth(at)
    );
}

fn full() -> View {
    analyse(&[common::sample(12).load()], &Options::default()).unwrap()
}

/// Two cells and the first five steps; only the cell with two attempts is shown.
fn small() -> View {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]";
    let campaign = common::Campaign::new("20261121T080000Z-small", &common::plan_text(&["wal_full", "wal_off"], 12, steps));
    common::fill(&campaign, ["base", "killed"]);
    let options = Options { builds: vec!["sqlite.wal_off".to_owned()], ..Default::default() };
    analyse(&[campaign.load()], &options).unwrap()
}

#[test]
fn terminal() {
    let text = to_terminal(&full(), false);
    compare("terminal.txt", &text);
    for line in text.lines() {
        assert!(line.chars().count() <= 120, "{} columns: {line}", line.chars().count());
        assert!(!line.ends_with(' ') && !line.contains('\u{1b}'));
    }
    let coloured = to_terminal(&full(), true);
    compare("terminal_coloured.txt", &coloured);
    // Colours are all that differs.
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    let trimmed = |text: &str| text.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
    assert_eq!(trimmed(&plain), trimmed(&text));
}

#[test]
fn an_engines_message_cannot_move_the_cursor() {
    let mut record = common::sample(12).load();
    for stamped in record.trials.iter_mut().flat_map(|trial| &mut trial.events) {
        if let Event::StepFailed(failed) = &mut stamped.event {
            failed.reason = "\u{1b}[2J\u{7}wiped\r\nnext".to_owned();
        }
    }
    let text = to_terminal(&analyse(&[record], &Options::default()).unwrap(), false);
    assert!(text.contains("[2J wiped next"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn markdown() {
    compare("report.md", &to_markdown(&full()));
}

#[test]
fn markdown_cells_stay_cells() {
    let mut record = common::sample(12).load();
    record.header.plan.cells[1].label = "a|b <i>*c*".to_owned();
    let text = to_markdown(&analyse(&[record], &Options::default()).unwrap());
    assert!(text.contains("| a\\|b &lt;i>\\*c\\* |"), "{text}");
}

#[test]
fn csv_and_tsv() {
    let view = small();
    let (csv, tsv) = (to_csv(&view), to_tsv(&view));
    compare("report.csv", &csv);
    compare("report.tsv", &tsv);
    assert!(tsv.lines().all(|line| line.matches('\t').count() == 8));
    assert_eq!(csv.lines().count(), tsv.lines().count());
}

#[test]
fn delimited_cells_are_quoted_or_cleaned() {
    let mut record = common::sample(12).load();
    record.header.plan.cells[1].label = "a,\"b\"\tc".to_owned();
    let view = analyse(&[record], &Options::default()).unwrap();
    assert!(to_csv(&view).contains("\n\"a,\"\"b\"\"\tc\",l.i0,1,1,ok,ips,432000"));
    assert!(to_tsv(&view).contains("\na,\"b\" c\tl.i0\t1\t1\tok\tips\t432000"));
}

#[test]
fn show_json_is_as_documented() {
    let view = small();
    let value = show_json(&view);
    compare("show.json", &format!("{value:#}\n"));
    let report: serde_json::Value = serde_json::from_str(&to_json(&view)).unwrap();
    for member in ["format", "campaign", "cells", "results"] {
        assert_eq!(report[member], value[member], "{member}");
    }
    for member in ["title", "comparable", "notes", "steps", "environment", "settings", "metrics"] {
        assert!(!report[member].is_null(), "{member}");
    }
}
