//! What waited is in no service time, and every output says so beside them.

use plimsoll_analysis::metrics;
use plimsoll_analysis::view::{EventRow, Quantiles, Ramp, RampCell, RampLevel, Status, View};
use plimsoll_analysis::{Options, analyse};
use plimsoll_report::{show_json, to_csv, to_html, to_json, to_markdown, to_terminal};
use plimsoll_store::event::Event;
use serde_json::{Value, json};

use crate::common;

/// The sample, whose second cell waited in a step of inserts and in one of queries.
fn view(insert_ns: u64, query_ns: u64) -> View {
    let mut record = common::sample(12).load();
    let cell = record
        .header
        .schedule
        .iter()
        .find(|trial| trial.cell == 1)
        .unwrap()
        .number;
    for stamped in record
        .trials
        .iter_mut()
        .filter(|trial| trial.number == cell)
        .flat_map(|trial| &mut trial.events)
    {
        if let Event::StepDone(done) = &mut stamped.event {
            for operation in &mut done.operations {
                operation.wait_ns = match (done.step.as_str(), operation.kind.as_str()) {
                    ("l.i0", "insert") => insert_ns,
                    ("qr100", "query") => query_ns,
                    _ => 0,
                };
            }
        }
    }
    analyse(&[record], &Options::default()).unwrap()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn waiting_that_no_service_time_has_is_told_beside_them() {
    let view = view(31_200_000_000, 60_000_000);
    let label = view.cells[1].label.clone();
    let note = format!(
        "all clients together: {label} l.i0 insert 31 s, {label} qr100 query 0.06 s. Response \
        times include it."
    );
    let (terminal, markdown, page) = (
        to_terminal(&view, false),
        to_markdown(&view),
        to_html(&view),
    );
    assert!(flat(&terminal).contains(&note), "{terminal}");
    assert!(
        markdown.contains(&note) && page.contains(&note),
        "{markdown}"
    );

    // Under the step's own table; none under others.
    let words =
        |kind: &str, seconds: &str| format!("\n{label} {kind}: excludes {seconds} of waiting\n");
    assert!(
        markdown.contains(&words("insert", "31 s")) && markdown.contains(&words("query", "0.06 s")),
        "{markdown}"
    );
    assert_eq!(markdown.matches("of waiting\n").count(), 2, "{markdown}");

    // In the row of percentiles, and on hover over the metrics: the response times of a schedule
    // have it.
    assert_eq!(page.matches("service, excludes 31 s of waiting").count(), 1);
    assert!(
        page.contains("title=\"excludes 31 s of waiting\"") && !page.contains("response, excludes")
    );

    let full: Value = serde_json::from_str(&to_json(&view)).unwrap();
    let step = full["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "l.i0")
        .unwrap();
    let rows = step["percentiles"][0]["rows"].as_array().unwrap();
    let told: Vec<(&Value, &Value)> = rows
        .iter()
        .map(|row| (&row["cell"], &row["excluded_wait_s"]))
        .filter(|(_, told)| !told.is_null())
        .collect();
    assert_eq!(told, [(&json!(label), &json!(31.2))]);

    let csv = to_csv(&view);
    let line = |cell: &str, step: &str, attempt: u32, value: &str| {
        format!("{cell},{step},1,{attempt},ok,excluded_wait_s,{value},s,,,\n")
    };
    let told: Vec<&str> = csv
        .lines()
        .filter(|line| line.contains("excluded_wait_s"))
        .collect();
    assert!(
        csv.contains(&line(&label, "l.i0", 2, "31.2"))
            && csv.contains(&line(&label, "qr100", 2, "0.06")),
        "{told:#?}"
    );
    assert!(
        csv.contains(&line(&view.cells[0].label, "l.i0", 1, "0")),
        "{csv}"
    );
    let results = show_json(&view)["results"].clone();
    let of_step = |result: &&Value| result["cell"] == json!(label) && result["step"] == "l.i0";
    assert_eq!(
        results.as_array().unwrap().iter().find(of_step).unwrap()["operations"]["insert"]["excluded_wait_s"],
        json!(31.2)
    );
}

#[test]
fn next_to_no_waiting_is_not_told() {
    let view = view(49_000_000, 0);
    for text in [
        to_terminal(&view, false),
        to_markdown(&view),
        to_html(&view),
    ] {
        assert!(
            !text.contains("of waiting") && !text.contains("the waiting of callers"),
            "{text}"
        );
    }
}

/// The step's own numbers of a ramp and of kinds of events, in the tables of each output.
#[test]
fn ramps_and_events_tell_it_too() {
    let mut view = view(31_200_000_000, 0);
    let quantiles = Quantiles {
        count: 9,
        mean_ns: 1e6,
        p50_ns: 1,
        p90_ns: 1,
        p99_ns: 1,
        p999_ns: 1,
        p9999_ns: 1,
        max_ns: 1,
        are_lower_bounds: [false; 7],
    };
    let event = |cell| EventRow {
        cell,
        kind: "insert".to_owned(),
        ok: 9,
        retried: 1,
        failed: 0,
        per_s: None,
        statements: None,
        service: Some(quantiles),
        response: None,
    };
    let step = view
        .steps
        .iter_mut()
        .find(|step| step.name == "l.i0")
        .unwrap();
    step.events = vec![event(0), event(1)];
    let level = |excluded_wait_s| RampLevel {
        status: Status::Ok,
        rate: Some(5.0),
        tps: None,
        service_us: [Some(7.0); 4],
        p99_response_us: None,
        is_lower_bound: false,
        excluded_wait_s,
    };
    let ramp = |told| RampCell {
        levels: vec![level(None), level(told)],
        peak: Some(0),
        knee: Some(0),
    };
    view.summary.ramps = vec![Ramp {
        test: "point-query".to_owned(),
        rate: metrics::QPS,
        events: "events",
        users: vec![1, 8],
        cells: (0..view.cells.len())
            .map(|cell| ramp((cell == 1).then_some(2.5)))
            .collect(),
    }];
    let terminal = to_terminal(&view, false);
    let lines = |what: &str| {
        terminal
            .lines()
            .filter(|line| line.ends_with(what))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let told = lines("  excludes 31 s of waiting");
    assert!(
        told.len() == 1 && told[0].starts_with(&format!("insert {}", view.cells[1].label)),
        "{terminal}"
    );
    let told = lines("  excludes 2.50 s of waiting");
    assert!(
        told.len() == 1 && told[0].starts_with("         8"),
        "{terminal}"
    );
    let markdown = to_markdown(&view);
    assert_eq!(
        markdown
            .matches("\n8 clients: excludes 2.50 s of waiting\n")
            .count(),
        1,
        "{markdown}"
    );
    // Mean, 95th and 99th percentile, longest; of an event also the median and one more percentile.
    let page = to_html(&view);
    assert_eq!(
        page.matches("<td title=\"excludes 2.50 s of waiting\">")
            .count(),
        4
    );
    let events = page
        .split("<h3>Events</h3>")
        .nth(1)
        .unwrap()
        .split("</table>")
        .next()
        .unwrap();
    assert_eq!(
        events
            .matches("<td title=\"excludes 31 s of waiting\">")
            .count(),
        5
    );
}
