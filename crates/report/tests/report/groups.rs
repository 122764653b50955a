//! What several tests report together: groups, and costs per statement and per row.

use plimsoll_analysis::post::check::{Standing, check};
use plimsoll_analysis::post::{PostOptions, post};
use plimsoll_analysis::{Stored, View, explain, verdict_lines};
use plimsoll_core::plan::{STATEMENT_NOTES, Split, Step, TestName};
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord};
use plimsoll_report::{
    row_costs_to_json, row_costs_to_text, show_json, to_html, to_markdown, to_post_markdown,
    to_terminal,
};
use plimsoll_store::event::StepDone;
use plimsoll_store::series::{turns_path, write_turns};
use plimsoll_store::{Confirm, Design, HostSeries, Turn};

use crate::common;
use crate::common::confirm::noise;
use crate::common::{Campaign, Made, SECOND_NS};
use crate::view;

const BASE: &str = "sqlite.wal_full";
const SLOW: &str = "sqlite.wal_off";
const TESTS: [&str; 7] = [
    "point-query",
    "hot-points",
    "random-points_range=10",
    "random-points_range=100",
    "random-points_range=1000",
    "range-covered-pk",
    "range-covered-si",
];
const STARTS: u32 = 5;
const ROUNDS: u32 = 40;
const TURN_NS: u64 = 18_000_000;

/// Microseconds of a statement: of the base 60 and 0.2 a row, of the slow cell 7.1 and 0.021 more.
fn cost_us(label: &str, rows: f64) -> f64 {
    match label == SLOW {
        true => 67.1 + 0.221 * rows,
        false => 60.0 + 0.2 * rows,
    }
}

fn rows(step: &str) -> f64 {
    let test = TestName::parse(step).unwrap();
    test.kind.rows(test.range).unwrap_or(1) as f64
}

fn design(design: Design) -> Confirm {
    Confirm {
        steps: TESTS.map(str::to_owned).to_vec(),
        ..common::confirm::design(design, STARTS)
    }
}

/// What a step of a client came to whose statements take so many microseconds.
fn made(step: &Step, us: f64) -> Made {
    let ok = (2e6 / us).round() as u64;
    let mut done = StepDone {
        step: step.name.clone(),
        primary: step.operation,
        elapsed_ns: 2 * SECOND_NS,
        clients: vec![ClientRecord {
            client: 1,
            kind: step.operation.as_str().to_owned(),
            ok,
            rows: ok,
            from_ns: 0,
            to_ns: 2 * SECOND_NS,
            turns: None,
        }],
        operations: vec![OperationRecord {
            kind: step.operation.as_str().to_owned(),
            attempts: ok,
            ok,
            retried: 0,
            failed: 0,
            rows: ok,
            errors: Default::default(),
            statements: None,
            wait_ns: 0,
            worker_ns: 2 * SECOND_NS,
            service: EncodedHistogram::default(),
            unsent: 0,
            unsent_response: None,
            response: None,
            lag: None,
            unsuccessful: None,
            pacing: None,
        }],
        ..StepDone::default()
    };
    let statements = [ok as f64, 0.0, 0.0];
    done.notes.extend(
        STATEMENT_NOTES
            .map(str::to_owned)
            .into_iter()
            .zip(statements),
    );
    done.host.put(
        HostReading::ProcessCpu,
        Reading::Ok(1.6 * ok as f64 * us / 2e6),
    );
    Made {
        done,
        series: Vec::new(),
        host: HostSeries {
            columns: vec!["second".to_owned()],
            rows: Vec::new(),
        },
    }
}

/// A confirm campaign of a base, its second instance and a slow cell. `has_start` says which tests
/// a start has.
fn campaign(by: Design, has_start: impl Fn(&str, u32) -> bool) -> Campaign {
    in_parts(by, None, has_start)
}

/// The same whose blocks are divided: the machine of the second part takes three times as long.
fn in_parts(by: Design, split: Option<Split>, has_start: impl Fn(&str, u32) -> bool) -> Campaign {
    let tests = TESTS.map(|test| format!("{test:?}")).join(", ");
    let plan = format!(
        "name = \"sample\"\ndescription = \"tests of several sizes\"\nworkload = \
         \"sysbench-2025\"\ncomparable = false\nbuilds = [\"sqlite\"]\nconfigs = [\"wal_full\", \
         \"wal_off\"]\ntests = [{tests}]\nblocks = {STARTS}\n[sizes]\nclients = 1\ntables = \
         1\nrows = \"20K\"\nduration = \"2s\"\n"
    );
    let id = "20261121T090000Z-sample-confirm";
    let campaign = Campaign::with_plan(id, &plan, Some(design(by)), |plan| {
        let mut again = plan.cells[0].clone();
        again.label = format!("{BASE}#2");
        plan.cells.push(again);
        plan.split = split;
    });
    for scheduled in &campaign.folder.header.schedule {
        let plan = &campaign.folder.header.plan;
        let factor = if scheduled.part == Some(2) { 3.0 } else { 1.0 };
        let (label, start) = (
            campaign.folder.header.plan.cells[scheduled.cell]
                .label
                .clone(),
            scheduled.block,
        );
        let mut trial = campaign.attempt(scheduled.number, 1, &[]);
        let steps = plan.steps_of(scheduled.cell, scheduled.part);
        for (i, step) in (0..).zip(steps) {
            if !TESTS.contains(&step.name.as_str()) || !has_start(&step.name, start) {
                continue;
            }
            let seed = start * 97 + i * 13 + label.len() as u32 * 1009;
            let us = factor * cost_us(&label, rows(&step.name)) * noise(seed, 0.003);
            trial.step(made(step, us));
            if by == Design::Slices {
                write_turns(turns_path(&trial.dir, &step.name), turns(us, seed)).unwrap();
            }
        }
        trial.complete();
    }
    campaign
}

fn turns(us: f64, seed: u32) -> Vec<Turn> {
    let turn = |round: u32| Turn {
        round,
        position: 1 + round % 3,
        begin_ns: u64::from(round) * 80_000_000,
        active_ns: TURN_NS,
        operations: (TURN_NS as f64 / 1e3 / us * noise(seed * 57 + round, 0.01)).round() as u64,
        server_cpu_ns: Some(TURN_NS * 2 / 3),
        client_cpu_ns: Some(TURN_NS / 4),
        ..Turn::default()
    };
    (1..=ROUNDS).map(turn).collect()
}

/// The mean change of the section's tests, as a ratio.
fn truth(tests: &[&str]) -> f64 {
    let log = |test: &&str| (cost_us(BASE, rows(test)) / cost_us(SLOW, rows(test))).ln();
    (tests.iter().map(log).sum::<f64>() / tests.len() as f64).exp()
}

#[test]
fn sections_have_one_verdict_by_slices_and_by_blocks() {
    for (by, word) in [(Design::Slices, "starts"), (Design::Blocks, "blocks")] {
        let folder = campaign(by, |_, _| true);
        let view = view(&folder.load());
        let throughput: Vec<_> = view
            .groups
            .iter()
            .filter(|group| group.role.name() == "throughput")
            .collect();
        assert_eq!(throughput.len(), 2, "two sections, one candidate");
        for (group, tests) in throughput.iter().zip([&TESTS[..5], &TESTS[5..]]) {
            let estimate = group.estimate.unwrap();
            let (low, high) = estimate.interval.unwrap();
            let truth = truth(tests);
            assert!(
                low < truth && truth < high && high - low < 0.02,
                "{group:?}"
            );
            assert_eq!((group.tests.len(), estimate.starts), (tests.len(), 5));
        }
        let lines = verdict_lines(&view);
        let above = lines
            .lines()
            .position(|line| line.starts_with("Throughput relative to "))
            .unwrap();
        let first = lines.lines().nth(above - 2).unwrap();
        assert!(
            first.starts_with("  point queries") && first.contains(&format!("5 {word}")),
            "{lines}"
        );
        let (page, markdown) = (to_html(&view), to_markdown(&view));
        assert!(page.contains("<h3>Over tests</h3>") && markdown.contains("| point queries | "));
        assert!(to_terminal(&view, false).contains("Over tests:"));
        let json = show_json(&view);
        assert_eq!(json["groups"][0]["group"], "point queries");
        assert_eq!(json["groups"][0]["cell"], SLOW);
        assert_eq!(json["groups"][0]["starts"].as_array().unwrap().len(), 5);
    }
}

#[test]
fn a_test_that_left_early_counts_with_its_starts() {
    let folder = campaign(Design::Slices, |test, start| {
        test != "hot-points" || start <= 3
    });
    let view = view(&folder.load());
    let estimate = view.groups[0].estimate.unwrap();
    assert_eq!((view.groups[0].tests.len(), estimate.starts), (5, 3));
    // With one start a test says too little to take the others' from the group.
    let folder = campaign(Design::Slices, |test, start| {
        test != "hot-points" || start == 2
    });
    let view = self::view(&folder.load());
    let group = &view.groups[0];
    assert_eq!((group.tests.len(), group.estimate.unwrap().starts), (4, 5));
    assert_eq!(group.left_out, ["hot-points"]);
    let lines = verdict_lines(&view);
    assert!(
        lines.contains("4 of 4 tests regressed; 1 left out"),
        "{lines}"
    );
}

#[test]
fn statements_and_rows_have_a_price_each() {
    let folder = campaign(Design::Slices, |_, _| true);
    let record = folder.load();
    let view = view(&record);
    let cost = &view.row_costs[0];
    assert_eq!(
        (cost.test.as_str(), cost.sizes.len(), cost.starts),
        ("random-points", 3, 5)
    );
    let holds = |part: plimsoll_analysis::groups::CostPart, truth: f64| {
        let (low, high) = part.interval.unwrap();
        low < truth && truth < high && part.is_clear()
    };
    assert!(
        holds(cost.per_statement, 7.1) && holds(cost.per_row, 0.021),
        "{cost:?}"
    );
    assert!(
        (cost.per_row.base_us / 0.2 - 1.0).abs() < 0.01 && cost.misfit < 0.01,
        "{cost:?}"
    );

    let step = "random-points_range=100";
    let of = |step: &str| explain(&record, &Stored::default(), step, Some(BASE), Some(SLOW));
    let explanation = of(step).unwrap();
    let text = row_costs_to_text(&explanation.row_costs);
    assert!(
        text.contains("random-points with 10, 100, 1000 rows (5 starts)")
            && text.contains("time (clients / rate)"),
        "{text}"
    );
    let json = row_costs_to_json(&explanation.row_costs);
    assert_eq!(json[0]["sizes"][2]["step"], "random-points_range=1000");
    assert_eq!(show_json(&view)["row_costs"][0]["cell"], SLOW);
    assert!(to_html(&view).contains("Per statement and per row"));
    let none = of("point-query").unwrap();
    assert!(none.row_costs.is_empty() && row_costs_to_text(&none.row_costs).is_empty());
}

/// A test whose CPU depends on turns is left out of CPU, and not of throughput: the line named the
/// tests and sizes of throughput for both.
#[test]
fn what_is_left_out_of_cpu_alone_is_named() {
    let folder = campaign(Design::Slices, |_, _| true);
    let mut view = view(&folder.load());
    let text = |view: &View| to_post_markdown(&post(view, &PostOptions::default()).unwrap());
    let of_cpu = |group: &&mut plimsoll_analysis::groups::Group| group.role.name() == "cpu";
    let all = text(&view);
    assert!(all.contains("; CPU per operation ") && !all.contains(" over 4 tests"));
    for group in view.groups.iter_mut().filter(of_cpu) {
        group.left_out.extend(group.tests.pop());
    }
    assert!(text(&view).contains(" over 4 tests"), "{}", text(&view));

    let costs = &mut view.row_costs;
    assert!(!row_costs_to_text(costs).contains("\n                           over "));
    let cost = costs.iter_mut().find(|of| of.role.name() == "cpu").unwrap();
    cost.sizes.pop();
    let text = row_costs_to_text(costs);
    let named = "over random-points with 10, 100 rows (5 starts)";
    assert!(text.contains(named), "{text}");
}

/// A size of another part ran on another machine: the line through all of them said that a row costs
/// three times as much.
#[test]
fn sizes_of_several_parts_are_not_on_one_line() {
    let costs = |second: &[&str]| {
        let of_part = |is_second: bool| {
            let tests = TESTS
                .iter()
                .filter(|test| second.contains(test) == is_second);
            tests.map(|test| (*test).to_owned()).collect()
        };
        let parts = vec![of_part(false), of_part(true)];
        let folder = in_parts(Design::Blocks, Some(Split { parts }), |_, _| true);
        view(&folder.load()).row_costs
    };
    let apart = costs(&["random-points_range=1000", "range-covered-pk"]);
    assert!(apart.is_empty(), "{apart:?}");
    let together = costs(&["range-covered-pk", "range-covered-si"]);
    let cost = &together[0];
    assert!((cost.per_row.base_us / 0.2 - 1.0).abs() < 0.02, "{cost:?}");
    assert_eq!(cost.sizes.len(), 3);
}

/// A post has what the report has of several tests: a verdict per group, and a price per row.
#[test]
fn a_post_has_groups_and_prices_too() {
    let folder = campaign(Design::Slices, |_, _| true);
    let view = view(&folder.load());
    let post = post(&view, &PostOptions::default()).unwrap();
    let text = to_post_markdown(&post);
    for wanted in [
        "all of them together, sqlite.wal_off vs sqlite.wal_full: regression -",
        "(5 of 5 tests regressed)",
        "random-points with 10, 100, 1000 rows, sqlite.wal_off vs sqlite.wal_full, time (clients / \
         rate): ",
        "both intervals leave 0 out",
        "- the tests of each group together:",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
    assert!(post.tldr.len() <= 5);
    let checked = check(&view, &PostOptions::default(), &text).unwrap();
    let missed: Vec<_> = checked
        .iter()
        .filter(|of| of.standing != Standing::Found)
        .collect();
    assert!(checked.len() > 20 && missed.is_empty(), "{missed:?}");
    // Each number of the sentence is in the table beside it.
    let table = post
        .tables
        .iter()
        .find(|of| of.name.starts_with("rows."))
        .unwrap();
    assert_eq!(table.columns.len(), 3);
    let cost = &view.row_costs[0];
    let row = &table.groups[0].rows[0];
    let cells: Vec<&str> = row.cells.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(cells, cost.per_statement.texts());
    assert!(
        text.contains(&cost.per_row.in_words().replace(['[', ']'], "")) || {
            let escaped = cost
                .per_row
                .in_words()
                .replace('[', "\\[")
                .replace(']', "\\]");
            text.contains(&escaped)
        }
    );
    // Ratios of rates: a slower cell is below 1.
    let said = post.sentences().into_iter().flat_map(|of| &of.cells);
    let of_rows: Vec<_> = said
        .filter(|of| of.test == "random-points_range=1000")
        .collect();
    assert!(
        of_rows
            .iter()
            .all(|of| of.ratio < 1.0 || of.metric.contains("cpu")),
        "{of_rows:?}"
    );
}

/// Attack: page, terminal, Markdown and JSON tell the same of each group; names are escaped.
#[test]
fn all_forms_of_groups_agree() {
    let folder = campaign(Design::Slices, |test, start| {
        test != "hot-points" || start == 2
    });
    let mut view = view(&folder.load());
    let cell = view.groups[0].cell;
    view.cells[cell].label = "<script>alert(1)</script>|x\"y".to_owned();
    let (page, markdown, lines) = (to_html(&view), to_markdown(&view), verdict_lines(&view));
    assert!(!page.contains("<script>alert(1)"));
    let begin = page.find("<h3>Over tests</h3>").unwrap();
    let table = &page[begin..begin + page[begin..].find("</table>").unwrap()];
    assert!(table.contains("&lt;script&gt;"), "{table}");
    for group in &view.groups {
        let estimate = group.estimate.unwrap();
        let (low, high) = estimate.interval.unwrap();
        let of = |ratio: f64| plimsoll_analysis::verdicts::percent(ratio);
        let shown = format!("{} [{}, {}]", of(estimate.ratio), of(low), of(high));
        assert!(table.contains(&shown), "{shown} {table}");
        if group.role.name() == "throughput" {
            let plain = |text: &str| text.replace([' ', '%', '\\'], "");
            let shown = plain(&shown);
            assert!(plain(&lines).contains(&shown), "{shown} {lines}");
            assert!(plain(&markdown).contains(&shown), "{shown} {markdown}");
        }
    }
    let names = view
        .groups
        .iter()
        .flat_map(|group| group.tests.iter().chain(&group.left_out));
    assert_eq!(names.count(), 2 * TESTS.len());
}
