//! What a gate says of campaigns whose truth is known.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_analysis::{
    Gate, GateAnswer, GateRequest, Options, StepThreshold, Stored, analyse, gate, undecided,
};
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_report::{Draw, to_junit};
use plimsoll_store::{CampaignRecord, CampaignState, DEFAULT_STORE, Fleet};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::common;
use crate::common::confirm::{BASE, CONTROL, Edit, SAME, SLOW, blocks, crash_in, slices};

const UNTOUCHED: Edit<'static> = &|_, _, _| {};

fn asked(record: &CampaignRecord, request: &GateRequest) -> Gate {
    gate(record, &Stored::default(), request).unwrap()
}

fn of(record: &CampaignRecord, candidate: &str, threshold: f64) -> Gate {
    asked(record, &GateRequest::new(&[candidate], threshold))
}

fn answers(gate: &Gate) -> Vec<(&str, &str, GateAnswer)> {
    gate.rows
        .iter()
        .map(|row| (row.candidate.as_str(), row.step.as_str(), row.answer))
        .collect()
}

/// The base's second instance runs slower in one step, in every second block by this share.
fn restless(share: f64) -> impl Fn(u32, &str, &mut common::Made) {
    move |block: u32, label: &str, made: &mut common::Made| {
        if label == CONTROL && made.done.step == "qr100" {
            let sign = if block.is_multiple_of(2) { 1.0 } else { -1.0 };
            for client in &mut made.done.clients {
                client.ok = (client.ok as f64 * (1.0 + sign * share)) as u64;
            }
        }
    }
}

/// A candidate that is no slower than the base, on the mean, and whose blocks lie far apart.
fn restless_cell(block: u32, label: &str, made: &mut common::Made) {
    if [SAME, CONTROL].contains(&label) && made.done.step == "qr100" {
        let seed = block * 7 + label.len() as u32;
        let factor = common::confirm::noise(seed, 0.12);
        for client in &mut made.done.clients {
            client.ok = (client.ok as f64 * factor) as u64;
        }
    }
}

#[test]
fn a_gate_passes_what_is_the_same_and_stops_what_is_slow() {
    let record = blocks(12, true, UNTOUCHED);
    for (candidate, threshold, code) in [
        (SLOW, 0.05, 1),
        (SAME, 0.05, 0),
        (SLOW, 0.5, 0),
        (SLOW, 0.34, 4),
    ] {
        let answer = of(&record, candidate, threshold);
        assert_eq!(answer.exit_code(), code, "{}", answer.to_text());
    }
    assert_eq!(of(&record, SLOW, 0.05).to_json()["answer"], "regression");
    // The folder must outlive the question: turns are read from it.
    let campaign = slices(5, 40, &|_, _, _| {});
    let answer = of(&campaign.load(), SLOW, 0.05);
    assert_eq!(answer.exit_code(), 1, "{}", answer.to_text());
    assert_eq!(of(&campaign.load(), SAME, 0.05).exit_code(), 0);
}

#[test]
fn several_candidates_are_one_family_and_rows_name_them() {
    let record = blocks(12, true, UNTOUCHED);
    let request = GateRequest::new(&[SLOW, SAME, SLOW], 0.05);
    let both = asked(&record, &request);
    use GateAnswer::{Pass, Regression};
    assert_eq!(
        answers(&both),
        [
            (SLOW, "qr100", Regression),
            (SLOW, "qp100", Regression),
            (SAME, "qr100", Pass),
            (SAME, "qp100", Pass),
        ]
    );
    assert_eq!(both.exit_code(), 1);
    // Twice as many questions: the smallest p counts twice as much.
    let alone = of(&record, SLOW, 0.05);
    let (p, of_four) = (alone.rows[0].p.unwrap(), both.rows[0].p.unwrap());
    assert!((of_four / p - 2.0).abs() < 1e-9, "{p} {of_four}");
    let text = both.to_text();
    assert!(
        text.contains(&format!(
            "gate: {SAME} against {BASE}, at most 5.0 % less throughput"
        )) && text.contains(&format!("{SLOW}     qr100  regression")),
        "{text}"
    );
    let json = both.to_json();
    assert_eq!(json["candidates"], serde_json::json!([SLOW, SAME]));
    assert!(json["candidate"].is_null() && json["steps"][3]["candidate"] == SAME);
}

#[test]
fn steps_thresholds_and_metrics_are_chosen() {
    let record = blocks(12, true, UNTOUCHED);
    let own = |steps: &str, max_regression: f64| StepThreshold {
        steps: steps.to_owned(),
        max_regression,
    };
    let plain = GateRequest::new(&[SLOW], 0.05);
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let cases = [
        (
            GateRequest {
                steps: named(&["qr*"]),
                ..plain.clone()
            },
            1,
            1,
        ),
        (
            GateRequest {
                exclude: named(&["*100"]),
                thresholds: vec![],
                ..plain.clone()
            },
            0,
            9,
        ),
        (
            GateRequest {
                thresholds: vec![own("q*", 0.5)],
                ..plain.clone()
            },
            2,
            0,
        ),
        (
            GateRequest {
                thresholds: vec![own("*", 0.5), own("qp*", 0.1)],
                ..plain.clone()
            },
            2,
            1,
        ),
        // CPU per query rises by half where a third of the throughput goes.
        (
            GateRequest {
                metric: "cpu".parse().unwrap(),
                ..plain.clone()
            },
            2,
            1,
        ),
        (
            GateRequest {
                metric: "cpu".parse().unwrap(),
                ..GateRequest::new(&[SLOW], 0.9)
            },
            2,
            0,
        ),
        (
            GateRequest {
                metric: "cpu".parse().unwrap(),
                ..GateRequest::new(&[SAME], 0.05)
            },
            2,
            0,
        ),
        // Nobody wrote histograms in these campaigns.
        (
            GateRequest {
                metric: "p99".parse().unwrap(),
                ..plain.clone()
            },
            2,
            4,
        ),
    ];
    for (request, rows, code) in cases {
        match gate(&record, &Stored::default(), &request) {
            Ok(answer) => assert_eq!(
                (answer.rows.len(), answer.exit_code()),
                (rows, code),
                "{}",
                answer.to_text()
            ),
            Err(error) => assert!(
                code == 9 && error.to_string().contains("--exclude leaves none"),
                "{error}"
            ),
        }
    }
    let metric = "p99".parse().unwrap();
    let missing = asked(&record, &GateRequest { metric, ..plain });
    assert!(
        missing.rows[0].reason.contains("no interval for p99"),
        "{:?}",
        missing.rows
    );
}

#[test]
fn a_floor_refuses_its_step_and_hides_no_finding() {
    // The base is restless in one step: nobody knows whether a difference of 5 % is one.
    let record = blocks(12, true, &restless_cell);
    let same = of(&record, SAME, 0.05);
    assert_eq!(
        answers(&same),
        [
            (SAME, "qr100", GateAnswer::Refused),
            (SAME, "qp100", GateAnswer::Pass)
        ],
        "{}",
        same.to_text()
    );
    assert_eq!(same.exit_code(), 4);
    let reason = &same.rows[0].reason;
    assert!(
        reason.starts_with("a threshold of 5.0 % is below the noise floor of ")
            && reason.contains("undisturbed blocks would be needed where there are 12"),
        "{reason}"
    );
    let floors: Vec<f64> = same
        .rows
        .iter()
        .map(|row| row.floor_percent.unwrap())
        .collect();
    assert!(floors[0] > 5.0 && floors[1] < 1.0, "{floors:?}");
    // What loses a third is a regression, whatever the floor says.
    let slow = of(&blocks(12, true, &restless(0.06)), SLOW, 0.05);
    assert!(
        slow.rows[0].floor_percent.unwrap() > 5.0,
        "{}",
        slow.to_text()
    );
    assert_eq!(slow.rows[0].answer, GateAnswer::Regression);
    assert_eq!(slow.exit_code(), 1);
    // Thresholds far below the floor of every step.
    let answer = of(&blocks(12, true, UNTOUCHED), SAME, 0.0005);
    assert_eq!(answer.exit_code(), 4, "{}", answer.to_text());
    assert!(
        answer.to_text().contains(
            "this machine cannot tell so small a difference; with 20 blocks a threshold of 0."
        ),
        "{}",
        answer.to_text()
    );
}

#[test]
fn a_step_that_was_above_its_threshold_in_many_campaigns_is_unfit() {
    let record = blocks(12, true, &restless_cell);
    // The campaign itself is in the store, too, and not one of the others.
    let mut others = vec![record.clone()];
    others.extend((1..=3).map(|number| {
        let mut other = record.clone();
        other.header.id = format!("20261120T08000{number}Z-sample-confirm");
        other
    }));
    let strict = GateRequest {
        is_strict: true,
        ..GateRequest::new(&[SAME], 0.05)
    };
    for (campaigns, answer, code, code_if_strict) in
        [(2, GateAnswer::Refused, 4, 4), (3, GateAnswer::Unfit, 0, 4)]
    {
        let stored = Stored::of(&others[..=campaigns]);
        let plain = gate(&record, &stored, &GateRequest::new(&[SAME], 0.05)).unwrap();
        let text = plain.to_text();
        assert_eq!(
            (plain.rows[0].answer, plain.exit_code()),
            (answer, code),
            "{text}"
        );
        assert_eq!(plain.rows[1].answer, GateAnswer::Pass);
        let strictly = gate(&record, &stored, &strict).unwrap();
        assert_eq!(
            strictly.exit_code(),
            code_if_strict,
            "{}",
            strictly.to_text()
        );
        if answer == GateAnswer::Unfit {
            let reason = &plain.rows[0].reason;
            assert!(
                reason.contains("in the median of 3 campaigns on this machine, for 12 blocks"),
                "{reason}"
            );
            assert!(to_junit(&plain, None).contains("<skipped message="));
            assert!(to_junit(&strictly, None).contains("<error message="));
            let only = GateRequest {
                steps: vec!["qr100".to_owned()],
                ..GateRequest::new(&[SAME], 0.05)
            };
            let only = gate(&record, &stored, &only).unwrap();
            assert_eq!(only.exit_code(), 4, "nothing else was judged");
        }
    }
    // Campaigns of another machine say nothing of this one.
    for trial in others[1..].iter_mut().flat_map(|other| &mut other.trials) {
        trial.environment.as_mut().unwrap()["cpu_model"]["known"] = "Other CPU".into();
    }
    let stored = Stored::of(&others);
    let answer = gate(&record, &stored, &GateRequest::new(&[SAME], 0.05)).unwrap();
    assert_eq!(answer.rows[0].answer, GateAnswer::Refused);
}

#[test]
fn what_has_no_number_has_a_reason() {
    let screen = of(&blocks(1, false, UNTOUCHED), SLOW, 0.05);
    let refusal = screen.refusal.clone().unwrap();
    assert_eq!(screen.exit_code(), 4);
    assert!(
        refusal.contains("one run of each decides nothing"),
        "{refusal}"
    );
    let mut crashed = blocks(12, true, UNTOUCHED);
    crash_in(&mut crashed, SAME, 1..=6);
    let answer = of(&crashed, SAME, 0.05);
    assert!(
        answer.exit_code() == 4 && answer.to_text().contains("crashed in 6 of 12 blocks"),
        "{}",
        answer.to_text()
    );
    // The one that crashes does not hide the one that is slow.
    let both = asked(&crashed, &GateRequest::new(&[SAME, SLOW], 0.05));
    assert_eq!(both.exit_code(), 1, "{}", both.to_text());
    let few = of(&blocks(3, false, UNTOUCHED), SLOW, 0.05);
    assert!(
        few.exit_code() == 4 && few.to_text().contains("cannot be decided with 3 blocks"),
        "{}",
        few.to_text()
    );
    let record = blocks(12, true, UNTOUCHED);
    for (candidate, words) in [
        ("nobody", "nobody"),
        ("sqlite", "must stand for one cell"),
        (BASE, "is nothing but the base"),
    ] {
        let request = GateRequest::new(&[SLOW, candidate], 0.05);
        let error = gate(&record, &Stored::default(), &request)
            .unwrap_err()
            .to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_gate_on_an_interrupted_confirm_says_what_goes_on() {
    let mut record = common::in_default_store(blocks(12, true, UNTOUCHED));
    record.state = CampaignState::Broken;
    // One step has not begun: it is not passed over.
    let mut half = record.clone();
    for trial in &mut half.trials {
        trial.events.retain(|event| {
            !matches!(&event.event, plimsoll_store::event::Event::StepDone(done)
                if done.step == "qp100")
        });
    }
    let answer = of(&half, SAME, 0.05);
    assert_eq!(answer.exit_code(), 4, "{}", answer.to_text());
    assert!(
        answer.to_text().contains("has come to this step"),
        "{}",
        answer.to_text()
    );
    record.trials.clear();
    let answer = of(&record, SLOW, 0.05);
    let next = format!("next: plimsoll resume {}   (the", record.header.id);
    let (text, junit) = (answer.to_text(), to_junit(&answer, None));
    assert!(
        answer.exit_code() == 4 && text.contains(&next) && junit.contains(&next),
        "{text}"
    );
}

/// It named no next command, said "6 needed" of a campaign that is judged after 12, and nothing of
/// the campaign's end.
#[test]
fn a_gate_without_a_decision_has_one_number_and_the_command_that_goes_on() {
    let mut record = common::in_default_store(blocks(12, true, UNTOUCHED));
    let done: Vec<u32> = record
        .header
        .schedule
        .iter()
        .filter(|trial| trial.block <= 3)
        .map(|trial| trial.number)
        .collect();
    record.trials.retain(|trial| done.contains(&trial.number));
    record.state = CampaignState::Broken;
    let text = of(&record, SAME, 0.05).to_text();
    let lines: Vec<&str> = text.lines().collect();
    let rows = lines.iter().filter(|line| line.contains("inconclusive"));
    assert!(
        rows.clone().count() == 2
            && rows
                .clone()
                .all(|row| row.ends_with("3 blocks so far: it cannot be judged before 12 blocks")),
        "{text}"
    );
    assert_eq!(
        lines.last(),
        Some(
            &"next: plimsoll resume 20261121T080000Z-sample-confirm   (the campaign is not finished: \
            interrupted, 12 of 48 trials are done), then the gate again"
        )
    );
    // One that is complete goes on by a confirm, and one that passes has nothing to go on with.
    let open = of(
        &common::in_default_store(blocks(12, true, UNTOUCHED)),
        SLOW,
        0.34,
    );
    assert_eq!(
        open.next.as_deref(),
        Some(
            "for narrower intervals: plimsoll confirm 20261121T070000Z-sample --step qr100,qp100 \
            --blocks 24"
        )
    );
    // What ran over hosts goes on there.
    let over = |fleet: Fleet, mut record: CampaignRecord, threshold: f64| {
        record.header.fleet = Some(fleet);
        of(&record, SLOW, threshold).next.unwrap()
    };
    let hosts = || Fleet::Hosts {
        names: vec!["h1".to_owned(), "h2".to_owned()],
        class: None,
    };
    let slurm = Fleet::Slurm {
        spool: "/tmp".to_owned(),
    };
    let next = over(hosts(), blocks(12, true, UNTOUCHED), 0.34);
    assert!(next.ends_with(" --blocks 24 --hosts h1,h2"), "{next}");
    let next = over(hosts(), blocks(1, false, UNTOUCHED), 0.34);
    assert!(next.contains(" --blocks 12 --hosts h1,h2, then"), "{next}");
    let next = over(slurm, record.clone(), 0.5);
    assert!(
        next.starts_with("plimsoll submit --again ") && next.contains(" --slurm"),
        "{next}"
    );
    assert!(of(&record, SLOW, 0.5).next.is_some());
    assert_eq!(of(&blocks(12, true, UNTOUCHED), SAME, 0.05).next, None);
}

/// It printed "floor +-127 %".
#[test]
fn a_width_above_half_is_no_floor() {
    let restless = restless(0.9);
    let both = |block: u32, label: &str, made: &mut common::Made| {
        restless(block, label, made);
        restless_cell(block, label, made);
    };
    let gate = of(&blocks(6, true, &both), SAME, 0.05);
    let text = gate.to_text();
    let row = &gate.rows[0];
    assert!(row.floor_percent.unwrap() > 50.0);
    assert_eq!(row.answer, GateAnswer::Refused, "{text}");
    assert!(
        row.reason.starts_with(
            "it cannot be gated yet: after 6 blocks the base agrees with itself only within +-"
        ) && !text.contains(&format!("floor +-{:.1}", row.floor_percent.unwrap())),
        "{text}"
    );
}

#[test]
fn a_campaign_under_way_has_the_level_of_its_look() {
    // 24 blocks are planned and 12 have run: 0.3 % of the 5 % are there. A loss of 2 % beyond the
    // threshold is shown at 5 % and not at 0.3 %.
    let lossy = |block: u32, label: &str, made: &mut common::Made| {
        if label == SAME && made.done.step == "qr100" {
            // Eight of twelve are beyond: the signed-rank p is between the two levels.
            let factor = if block % 3 == 1 { 0.98 } else { 0.90 };
            for client in &mut made.done.clients {
                client.ok = (client.ok as f64 * factor) as u64;
            }
        }
    };
    let request = GateRequest {
        steps: vec!["qr100".to_owned()],
        ..GateRequest::new(&[SAME], 0.05)
    };
    let done = asked(&blocks(12, true, &lossy), &request);
    assert_eq!(
        done.rows[0].answer,
        GateAnswer::Regression,
        "{}",
        done.to_text()
    );
    let mut running = blocks(24, true, &lossy);
    let blocks_done: Vec<u32> = running
        .header
        .schedule
        .iter()
        .filter(|trial| trial.block <= 12)
        .map(|trial| trial.number)
        .collect();
    running
        .trials
        .retain(|trial| blocks_done.contains(&trial.number));
    running.state = CampaignState::Running;
    let early = asked(&running, &request);
    let row = &early.rows[0];
    assert_eq!(row.answer, GateAnswer::Inconclusive, "{}", early.to_text());
    assert!(
        row.reason
            .starts_with("the interval of 99.7 % at this look holds -5.0 %"),
        "{}",
        row.reason
    );
    assert!(row.p.unwrap() < 0.05 && early.is_open());
}

#[test]
fn a_gate_sees_stalls() {
    // Every tenth turn of the cell takes twice its time for the same operations: the typical turn
    // is as fast as the base's.
    let stall = |_: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        if label == SAME {
            turns
                .iter_mut()
                .step_by(10)
                .for_each(|turn| turn.active_ns *= 3);
        }
    };
    let campaign = slices(5, 60, &stall);
    let answer = of(&campaign.load(), SAME, 0.05);
    assert_eq!(answer.exit_code(), 1, "{}", answer.to_text());
    let typical = answer.rows[0].estimate.unwrap().typical.unwrap();
    assert!(typical > 0.98, "{typical}");
}

/// What the widely read format of JUnit allows: attributes (those with `!` must be there), and
/// children in their order. It is Jenkins' junit-10.xsd with `skipped` of `testsuites` and with
/// `properties` of test cases, which pytest writes and Jenkins, GitLab and others read.
const SCHEMA: [(&str, &[&str], &[&str]); 9] = [
    (
        "testsuites",
        &["name", "time", "tests", "failures", "errors", "skipped"],
        &["testsuite"],
    ),
    (
        "testsuite",
        &[
            "name!",
            "tests!",
            "failures!",
            "errors!",
            "skipped",
            "time",
            "timestamp",
        ],
        &["properties", "testcase"],
    ),
    (
        "testcase",
        &["name!", "time", "classname"],
        &[
            "properties",
            "skipped",
            "error",
            "failure",
            "system-out",
            "system-err",
        ],
    ),
    ("properties", &[], &["property"]),
    ("property", &["name!", "value!"], &[]),
    ("skipped", &["type", "message"], &[]),
    ("error", &["type", "message"], &[]),
    ("failure", &["type", "message"], &[]),
    ("system-out", &[], &[]),
];

/// Reads the XML, fails on what the format does not allow, and counts elements.
fn validated(xml: &str) -> BTreeMap<String, usize> {
    let mut reader = Reader::from_str(xml);
    let mut counts = BTreeMap::new();
    // Each open element, and how far it is in the order of its children.
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut begin = |start: &BytesStart<'_>, open: &mut Vec<(String, usize)>| {
        let name = String::from_utf8(start.name().as_ref().to_vec()).unwrap();
        let allowed = |name: &str| *SCHEMA.iter().find(|of| of.0 == name).unwrap();
        let attributes: Vec<String> = start
            .attributes()
            .map(|of| String::from_utf8(of.unwrap().key.as_ref().to_vec()).unwrap())
            .collect();
        let known = allowed(&name).1;
        for attribute in &attributes {
            let is_known = known.iter().any(|of| of.trim_end_matches('!') == attribute);
            assert!(is_known, "{name} {attribute}");
        }
        for required in known.iter().filter_map(|of| of.strip_suffix('!')) {
            assert!(
                attributes.iter().any(|of| of == required),
                "{name} lacks {required}"
            );
        }
        if let Some((parent, at)) = open.last_mut() {
            let children = allowed(parent).2;
            let place = children.iter().position(|child| *child == name);
            let place = place.unwrap_or_else(|| panic!("{name} in {parent}"));
            assert!(place >= *at, "{name} in {parent} comes too late");
            *at = place;
        } else {
            assert_eq!(name, "testsuites");
        }
        *counts.entry(name.clone()).or_insert(0) += 1;
        name
    };
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                let name = begin(&start, &mut open);
                open.push((name, 0));
            }
            Event::Empty(start) => {
                begin(&start, &mut open);
            }
            Event::End(_) => {
                open.pop();
            }
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(open.is_empty());
    counts
}

#[test]
fn junit_has_a_suite_per_candidate_with_times_and_numbers() {
    let record = blocks(12, true, &restless_cell);
    let answer = asked(&record, &GateRequest::new(&[SLOW, SAME], 0.05));
    let page = Path::new("plimsoll-runs/x/report/index.html");
    let junit = to_junit(&answer, Some(page));
    let counts = validated(&junit);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    assert_eq!(
        (
            count("testsuite"),
            count("testcase"),
            count("failure"),
            count("error")
        ),
        (2, 4, 2, 1),
        "{junit}"
    );
    assert!(
        junit.contains("errors=\"1\"") && junit.contains("<failure message=\"-3"),
        "{junit}"
    );
    let seconds = answer.rows[0].seconds;
    assert!(
        seconds > 1.0 && junit.contains(&format!("time=\"{seconds:.3}\"")),
        "{junit}"
    );
    for (name, values) in [
        ("ratio", 4),
        ("low", 4),
        ("high", 4),
        ("p", 4),
        ("starts", 4),
        ("floor_percent", 4),
        ("report", 6),
    ] {
        let found = junit
            .matches(&format!("<property name=\"{name}\" value="))
            .count();
        assert_eq!(found, values, "{name}: {junit}");
    }
    assert!(junit.contains("value=\"plimsoll-runs/x/report/index.html\""));
    // One that refuses everything has an error per suite, and no page.
    let screen = to_junit(&of(&blocks(1, false, UNTOUCHED), SLOW, 0.05), None);
    let counts = validated(&screen);
    assert_eq!((counts["testsuite"], counts["error"]), (1, 1), "{screen}");
    assert!(screen.contains("type=\"refused\"") && !screen.contains("name=\"report\""));
}

#[test]
fn a_confirm_that_decides_nothing_says_what_to_do_next() {
    let of = |record: &CampaignRecord| {
        let view = analyse(std::slice::from_ref(record), &Options::default()).unwrap();
        let path = Path::new(DEFAULT_STORE).join(&record.header.id);
        undecided(&view, &record.header, &path)
    };
    let few = of(&blocks(3, true, UNTOUCHED)).unwrap();
    let expected = "undecided: none of 4 throughputs has a verdict; for narrower intervals: \
        plimsoll confirm 20261121T070000Z-sample --step qr100,qp100 --blocks 12";
    assert_eq!(few, expected);
    // What the user has said of places and hosts belongs to the next command, too.
    let record = blocks(3, true, UNTOUCHED);
    let mut view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    view.options = " --cache c --hosts a,b".to_owned();
    let path = Path::new(DEFAULT_STORE).join(&record.header.id);
    let said = undecided(&view, &record.header, &path).unwrap();
    assert_eq!(said, format!("{expected} --cache c --hosts a,b"));
    // The folder must outlive the question: turns are read from it.
    let campaign = slices(2, 20, &|_, _, _| {});
    let mut two_starts = campaign.load();
    let words = of(&two_starts).unwrap();
    assert!(words.ends_with("--step qr100,qp100 --starts 5"), "{words}");
    // One start of 100 ms on a busy machine had no round with operations on all sides, and ended
    // with 0 and without a word.
    let mut nothing = analyse(std::slice::from_ref(&two_starts), &Options::default()).unwrap();
    nothing.findings.all.clear();
    let words = undecided(&nothing, &two_starts.header, &path).unwrap();
    assert!(
        words.starts_with("undecided: no throughput could be compared; for narrower intervals: ")
            && words.ends_with("--step qr100,qp100 --starts 5"),
        "{words}"
    );
    two_starts.header.confirm.as_mut().unwrap().budget = Some(plimsoll_core::plan::Budget {
        time_ns: 90_000_000_000,
        reads: 0.01,
        writes: 0.04,
    });
    let words = of(&two_starts).unwrap();
    assert!(words.ends_with("--step qr100,qp100 --budget 3m"), "{words}");
    // A budget of 5 s had room for two starts of 100 s: three need more than twice the budget.
    let budget = two_starts.header.confirm.as_mut().unwrap().budget.as_mut();
    budget.unwrap().time_ns = 5_000_000_000;
    for trial in &mut two_starts.trials {
        let first = trial.events[0].t_ns;
        trial.events.last_mut().unwrap().t_ns = first + 100_000_000_000;
    }
    let words = of(&two_starts).unwrap();
    assert!(words.ends_with("--step qr100,qp100 --budget 7m"), "{words}");
    // More time does not mend what crashed, in any design.
    let mut crashed = blocks(3, true, UNTOUCHED);
    for label in [SAME, SLOW] {
        crash_in(&mut crashed, label, 1..=3);
        crash_in(&mut two_starts, label, 1..=2);
    }
    for record in [&crashed, &two_starts] {
        let words = of(record).unwrap();
        assert!(
            words.ends_with("mend what failed or was disturbed, and confirm again"),
            "{words}"
        );
    }
    assert_eq!(of(&blocks(12, true, UNTOUCHED)), None);
}

#[test]
fn cpu_of_the_machine_does_not_spoil_a_gate() {
    let dearer = |_: u32, label: &str, made: &mut common::Made| {
        if label == SAME {
            let seconds = made.done.host[HostReading::ProcessCpu].value().unwrap();
            let dear = Reading::Ok(seconds * 1.113);
            made.done.host.put(HostReading::ProcessCpu, dear);
        }
    };
    let record = blocks(12, true, &dearer);
    let cpu = GateRequest {
        metric: "cpu".parse().unwrap(),
        ..GateRequest::new(&[SAME], 0.05)
    };
    let answer = asked(&record, &cpu);
    assert_eq!(answer.exit_code(), 1, "{}", answer.to_text());
    assert!(
        answer.to_text().contains("at most 5.0 % more cpu"),
        "{}",
        answer.to_text()
    );
    assert_eq!(
        of(&record, SAME, 0.05).exit_code(),
        0,
        "throughput is the same"
    );
}

/// A turn of 20 ms, or one of twice the length with twice the operations.
fn lengthen(turn: &mut plimsoll_store::Turn, is_long: bool) {
    turn.planned_ns = Some(if is_long { 40_000_000 } else { 20_000_000 });
    if is_long {
        turn.active_ns *= 2;
        turn.operations *= 2;
    }
}

/// Half of the rounds have turns of twice the length, in which these cells are slower than in
/// others. One of them is slow in all.
#[test]
fn a_loss_that_depends_on_turns_fails_if_it_is_too_large_in_each_of_them() {
    let slower_in_long_turns = |_: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        for turn in turns {
            let is_long = turn.round > 30;
            lengthen(turn, is_long);
            if is_long && [SLOW, SAME].contains(&label) {
                turn.operations = turn.operations * 3 / 4;
            }
        }
    };
    let campaign = slices(6, 60, &slower_in_long_turns);
    let record = campaign.load();
    for (label, wanted) in [
        (SLOW, GateAnswer::Regression),
        (SAME, GateAnswer::Inconclusive),
    ] {
        let gate = of(&record, label, 0.05);
        assert_eq!(
            gate.rows.len(),
            2,
            "{label} has no step: {}",
            gate.to_text()
        );
        for row in &gate.rows {
            assert_eq!(row.answer, wanted, "{label}: {row:?}");
            assert!(
                row.reason.contains("in turns twice as long"),
                "{}",
                row.reason
            );
        }
    }
}

/// Half of the rounds of a start are plain; of each fourth start the others have a candidate less, of
/// all other starts turns of twice the length. The slow cell loses in the first two forms, and nothing
/// in the third.
#[test]
fn a_loss_that_one_form_of_turns_takes_away_is_no_regression() {
    let forms = |start: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        for turn in turns {
            let is_special = turn.round > 30;
            let is_alone = is_special && start.is_multiple_of(4);
            let is_long = is_special && !is_alone;
            lengthen(turn, is_long);
            turn.candidates = Some(if is_alone { 3 } else { 4 });
            if label == SLOW && is_long {
                turn.operations = turn.operations * 3 / 4;
            }
            // The same speed as the base, which is 1 / 0.66 times that of the slow cell.
            if label == SLOW && is_alone {
                turn.operations = turn.operations * 100 / 65;
            }
        }
    };
    let campaign = slices(12, 60, &forms);
    for row in &of(&campaign.load(), SLOW, 0.05).rows {
        assert_eq!(row.answer, GateAnswer::Inconclusive, "{row:?}");
    }
}

/// Starts lie apart by 22 % in plain turns: -5.6 % +- 12 % of them says nothing of a loss of 5 %. In
/// longer turns all lose much.
#[test]
fn a_loss_that_is_not_shown_in_plain_turns_is_not_shown_in_all_of_them() {
    let forms = |start: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        for turn in turns {
            let is_long = turn.round > 30;
            lengthen(turn, is_long);
            if label == SAME {
                let of_start = if start.is_multiple_of(2) { 1.06 } else { 0.84 };
                let of_form = if is_long { 0.5 } else { 1.0 };
                turn.operations = (turn.operations as f64 * of_start * of_form) as u64;
            }
        }
    };
    let campaign = slices(6, 60, &forms);
    for row in &of(&campaign.load(), SAME, 0.05).rows {
        assert_eq!(row.answer, GateAnswer::Inconclusive, "{row:?}");
    }
}

/// One candidate crashes in the first step and so has no second; the other has the first, is judged in
/// it, and crashes in the second.
#[test]
fn steps_that_are_not_judged_are_told_by_cell() {
    let mut record = blocks(12, true, UNTOUCHED);
    crash_in(&mut record, SLOW, 1..=6);
    // The same, one step later.
    let header = record.header.clone();
    for trial in &mut record.trials {
        let of = header
            .schedule
            .iter()
            .find(|of| of.number == trial.number)
            .unwrap();
        if header.plan.cells[of.cell].label != SAME || of.block > 6 {
            continue;
        }
        let is_second = |event: &plimsoll_store::event::Event| matches!(event, plimsoll_store::event::Event::StepDone(done) if done.step == "qp100");
        let at = trial
            .events
            .iter()
            .position(|of| is_second(&of.event))
            .unwrap();
        trial.events.truncate(at);
        let mut last = trial.events.last().unwrap().clone();
        last.event =
            plimsoll_store::event::Event::ServerCrashed(plimsoll_store::event::ServerCrashed {
                step: Some("qp100".to_owned()),
                status: "signal 11".to_owned(),
                log_tail: String::new(),
            });
        trial.events.push(last);
    }
    let view = analyse(&[record], &Options::default()).unwrap();
    let judged = view.findings.all.iter().find(|finding| {
        view.cells[finding.cell].label == SAME
            && finding.step == "qr100"
            && finding.role == plimsoll_analysis::verdicts::Role::Throughput
    });
    assert!(judged.unwrap().call.is_judged(), "{judged:?}");
    let lines = plimsoll_analysis::verdicts::unjudged(&view);
    let of_first = lines.iter().find(|line| line.contains("qr100")).unwrap();
    assert!(
        of_first.contains(SLOW) && !of_first.contains(SAME),
        "{SAME} is judged in qr100, and only {SLOW} is not:\n{lines:#?}"
    );
}

/// More starts have the same turns: `undecided` says `--blocks` of such a campaign, as the rows do.
#[test]
fn what_depends_on_turns_goes_on_by_blocks() {
    let slower_in_long_turns = |_: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        for turn in turns {
            let is_long = turn.round > 30;
            lengthen(turn, is_long);
            if is_long && label == SAME {
                turn.operations = turn.operations * 3 / 4;
            }
        }
    };
    let campaign = slices(6, 60, &slower_in_long_turns);
    let gate = of(&campaign.load(), SAME, 0.05);
    for row in &gate.rows {
        assert!(
            row.reason.contains("--blocks measures one server"),
            "{row:?}"
        );
    }
    let next = gate.next.unwrap();
    assert!(next.contains("--blocks"), "next: {next}");
}

/// In turns of twice the length a cell needs so many ns of CPU per operation; else, and in other cells,
/// 30 us.
fn dearer_in_long_turns(
    dear: &'static str,
    long_ns: u64,
) -> impl Fn(u32, &str, &mut Vec<plimsoll_store::Turn>) {
    move |_, label, turns| {
        for turn in turns {
            let is_long = turn.round > 30;
            lengthen(turn, is_long);
            let is_dear = is_long && label == dear;
            let each_ns = if is_dear { long_ns } else { 30_000 };
            turn.server_cpu_ns = Some(turn.operations * each_ns);
        }
    }
}

fn gate_of_cpu() -> GateRequest {
    GateRequest {
        metric: "cpu".parse().unwrap(),
        ..GateRequest::new(&[SAME], 0.05)
    }
}

/// In turns of twice the length a cell needs a third more CPU per operation, and is as fast as ever.
#[test]
fn cpu_that_depends_on_turns_has_no_verdict_and_a_line() {
    let campaign = slices(6, 60, &dearer_in_long_turns(SAME, 40_000));
    let record = campaign.load();
    let view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    let of_same = view
        .findings
        .all
        .iter()
        .filter(|of| view.cells[of.cell].label == SAME);
    let words: Vec<_> = of_same
        .map(|of| (of.role.name(), of.call.word(), of.reason.as_str()))
        .collect();
    let of_cpu = words.iter().filter(|of| of.0 == "cpu");
    for (_, word, reason) in of_cpu.clone() {
        assert_eq!(*word, "depends on turns", "{words:?}");
        assert!(
            reason.starts_with("0.0 % in its turns, +33.3 % in turns twice as long"),
            "{reason}"
        );
    }
    assert_eq!(of_cpu.count(), 2, "{words:?}");
    let dependent = view.findings.all.iter().filter(|of| {
        let is_judged = of.call.word() != "depends on turns";
        assert_eq!(of.p_adjusted.is_some(), is_judged, "{of:?}");
        !is_judged
    });
    assert_eq!(dependent.count(), 2, "they are in no family");
    let is_dependent_rate = words
        .iter()
        .any(|of| of.0 == "throughput" && of.1 == "depends on turns");
    assert!(!is_dependent_rate, "{words:?}");
    let lines = plimsoll_analysis::verdict_lines(&view);
    assert!(
        lines.contains("+33.3 % in turns twice as long"),
        "a verdict is taken away, and no line says so:\n{lines}"
    );
    for row in &asked(&record, &gate_of_cpu()).rows {
        assert_eq!(row.answer, GateAnswer::Inconclusive, "{row:?}");
    }
    let page = plimsoll_report::to_html(&view);
    assert!(page.contains("+33.3 % in turns twice as long"));
    let stored = Stored::default();
    let told = plimsoll_analysis::explain(&record, &stored, "qr100", None, Some(SAME)).unwrap();
    let cost = told.cost_line().unwrap_or_default();
    assert!(
        cost.contains("depends on turns 0.0 % in its turns"),
        "{cost}"
    );
    assert!(!told.likely().starts_with("Likely"), "{}", told.likely());
}

/// It had no finding, so that a budget never let the step leave.
#[test]
fn a_step_of_which_no_start_has_a_number_is_reported_as_invalid() {
    let idle = |_: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        for turn in turns.iter_mut().filter(|_| label == SLOW) {
            turn.operations = 0;
        }
    };
    let called = |starts: u32| {
        let folder = slices(starts, 60, &idle);
        let record = folder.load();
        let view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
        let of_slow = view.findings.all.iter().filter(|of| {
            let is_slow = view.cells[of.cell].label == SLOW;
            is_slow && of.role.name() == "throughput"
        });
        let words = of_slow.map(|of| (of.call.word(), of.reason.clone()));
        words.collect::<Vec<_>>()
    };
    assert!(called(3).is_empty(), "another start may have one");
    let after_four = called(4);
    assert!(!after_four.is_empty());
    for (word, reason) in after_four {
        assert_eq!(word, "invalid");
        assert!(
            reason.contains("of the turns ended without an operation"),
            "{reason}"
        );
    }
}

/// CPU that is quoted as the cause of a lost throughput.
#[test]
fn a_cause_that_depends_on_turns_has_a_line() {
    let campaign = slices(6, 60, &dearer_in_long_turns(SLOW, 40_000));
    let view = analyse(&[campaign.load()], &Options::default()).unwrap();
    let slow = view.cells.iter().position(|cell| cell.label == SLOW);
    let throughput = view.findings.of_throughput(slow.unwrap(), "qr100").unwrap();
    assert_eq!(throughput.call.word(), "regression");
    let lines = plimsoll_analysis::verdict_lines(&view);
    assert!(lines.contains("+33.3 % in turns twice as long"), "{lines}");
}

/// 1 % more CPU in long turns and none in others is less than 5 % in each.
#[test]
fn what_is_within_the_threshold_in_each_form_of_turns_passes() {
    let campaign = slices(6, 60, &dearer_in_long_turns(SAME, 30_300));
    let record = campaign.load();
    let view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    let lines = plimsoll_analysis::verdict_lines(&view);
    assert!(lines.contains("+1.0 % in turns twice as long"), "{lines}");
    for row in &asked(&record, &gate_of_cpu()).rows {
        assert_eq!(row.answer, GateAnswer::Pass, "{row:?}");
    }
}

/// Of two steps one passes: the other one's turns decide nothing, however many more there are.
#[test]
fn one_step_that_depends_on_turns_goes_on_by_blocks_too() {
    let calls = std::cell::Cell::new(0u32);
    // `slices` edits qr100 and then qp100 of each trial.
    let edit = |start: u32, label: &str, turns: &mut Vec<plimsoll_store::Turn>| {
        let is_first = calls.replace(calls.get() + 1).is_multiple_of(2);
        let each_ns = if is_first { 40_000 } else { 30_000 };
        dearer_in_long_turns(SAME, each_ns)(start, label, turns);
    };
    let campaign = slices(6, 60, &edit);
    let gate = asked(&campaign.load(), &gate_of_cpu());
    let answers: Vec<GateAnswer> = gate.rows.iter().map(|row| row.answer).collect();
    assert_eq!(answers.len(), 2);
    assert!(answers.contains(&GateAnswer::Pass) && answers.contains(&GateAnswer::Inconclusive));
    let next = gate.next.unwrap();
    assert!(next.contains("--blocks"), "next: {next}");
}

/// A campaign that an earlier version began, and this one resumed: its first starts are not held.
#[test]
fn starts_that_are_held_are_told_from_starts_that_are_not() {
    let words = |first: u32| {
        let campaign = slices(6, 60, &|_, _, _| {});
        let mut record = campaign.load();
        let schedule = record.header.schedule.clone();
        for trial in &mut record.trials {
            let of = schedule
                .iter()
                .find(|of| of.number == trial.number)
                .unwrap();
            for stamped in &mut trial.events {
                if let plimsoll_store::event::Event::ServerReady(ready) = &mut stamped.event {
                    ready.held = (of.block >= first).then(|| "autovacuum".to_owned());
                }
            }
        }
        let view = analyse(&[record], &Options::default()).unwrap();
        plimsoll_analysis::verdict_lines(&view)
    };
    let (all, some) = (words(1), words(4));
    assert!(all.contains("autovacuum is held meanwhile"), "{all}");
    assert_ne!(
        all, some,
        "in three of six starts autovacuum was at work:\n{some}"
    );
}

/// A survey that was interrupted has one run of each when it is complete, too.
#[test]
fn a_survey_that_is_resumed_is_not_gated_again() {
    let mut record = common::in_default_store(blocks(1, false, UNTOUCHED));
    record.state = CampaignState::Broken;
    let gate = of(&record, SLOW, 0.05);
    assert!(
        gate.refusal
            .as_ref()
            .unwrap()
            .contains("one run of each decides nothing")
    );
    let next = gate.next.clone().unwrap_or_default();
    assert!(!next.contains("then the gate again"), "{}", gate.to_text());
}

/// `plimsoll report` without a campaign is of the newest in the default store.
#[test]
fn the_note_of_changed_files_names_its_campaign() {
    let record = blocks(12, true, UNTOUCHED);
    let mut view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    let changes: Vec<String> = (1..=4).map(|n| format!("{n} was changed")).collect();
    view.note_changed_files(&changes);
    let note = view
        .notes
        .iter()
        .find(|note| note.contains("sealed"))
        .unwrap();
    let name = &view.campaigns[0].name;
    assert!(name.starts_with("--store "), "{name}");
    assert!(
        note.contains(&format!("`plimsoll report {name}`")),
        "{note}"
    );
}
