//! Every text output, byte for byte. `UPDATE_GOLDEN=1 cargo test -p plimsoll-report` rewrites the
//! files; read the difference before keeping it.

use std::fs;
use std::path::Path;

use plimsoll_analysis::{Options, View, analyse, verdict_lines};
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_report::{show_json, to_csv, to_html, to_json, to_markdown, to_terminal, to_tsv};
use plimsoll_store::event::Event;

use crate::common;
use crate::common::confirm::{self, SAME, SLOW};

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    let at = golden
        .lines()
        .zip(text.lines())
        .position(|(a, b)| a != b)
        .unwrap_or_else(|| golden.lines().count().min(text.lines().count()));
    assert!(
        golden == text,
        "{name} differs in line {}:\n  golden {:?}\n  now    {:?}\nUPDATE_GOLDEN=1 rewrites it",
        at + 1,
        golden.lines().nth(at),
        text.lines().nth(at)
    );
}

fn full() -> View {
    let campaign = common::sample(12);
    let record = common::in_default_store(campaign.load());
    analyse(&[record], &Options::default()).unwrap()
}

/// Two cells and the first five steps; only the cell with two attempts is shown.
fn small() -> View {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\"]";
    let campaign = common::Campaign::new(
        "20261121T080000Z-small",
        &common::plan_text(&["wal_full", "wal_off"], 12, steps),
    );
    common::fill(&campaign, ["base", "killed"]);
    let options = Options {
        builds: vec!["sqlite.wal_off".to_owned()],
        ..Default::default()
    };
    analyse(&[campaign.load()], &options).unwrap()
}

#[test]
fn terminal() {
    let text = to_terminal(&full(), false);
    compare("terminal.txt", &text);
    for line in text.lines() {
        assert!(
            line.chars().count() <= 120,
            "{} columns: {line}",
            line.chars().count()
        );
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
    let trimmed = |text: &str| {
        text.lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(trimmed(&plain), trimmed(&text));
}

/// It said `broken`, and nothing of what to do.
#[test]
fn an_interrupted_campaign_says_how_far_it_is_and_what_goes_on() {
    let record = common::sample(12).load();
    let text = |record: &plimsoll_store::CampaignRecord| {
        let view = analyse(std::slice::from_ref(record), &Options::default()).unwrap();
        assert_eq!(view.campaigns[0].state, "broken", "files have this word");
        (to_terminal(&view, false), to_html(&view))
    };
    let resume = format!(
        "\ncontinue with: plimsoll resume --store {} {}\n",
        record.path.parent().unwrap().display(),
        record.header.id
    );
    let (shown, _) = text(&record);
    assert!(
        shown.contains("not complete, 2 of 4 trials are done\n") && shown.contains(&resume),
        "{shown}"
    );
    let mut begun = common::in_default_store(record);
    begun.trials.truncate(1);
    let (shown, page) = text(&begun);
    assert!(
        shown.contains("  interrupted, 1 of 4 trials are done\ncontinue with: plimsoll resume 20261121T080000Z-sample\n"),
        "{shown}"
    );
    assert!(page.contains(">interrupted, 1 of 4 trials are done</span>"));
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
    assert!(text.contains("[2J wiped; next"), "{text}");
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
fn a_description_ends_once() {
    let mut record = common::sample(12).load();
    for (description, ends) in [
        ("does it help?", "\ndoes it help?\n"),
        ("it helps.", "\nit helps.\n"),
        ("it helps", "\nit helps.\n"),
    ] {
        record.header.plan.description = description.to_owned();
        let text = to_markdown(&analyse(&[record.clone()], &Options::default()).unwrap());
        assert!(text.contains(ends), "{description}: {}", &text[..300]);
    }
}

#[test]
fn two_cells_have_no_best_and_no_worst() {
    let two = Options {
        builds: vec!["sqlite.wal_full".to_owned(), "sqlite.wal_off".to_owned()],
        ..Default::default()
    };
    let text = to_markdown(&analyse(&[common::sample(12).load()], &two).unwrap());
    let throughput = text
        .split("\n## ")
        .find(|part| part.starts_with("Throughput"))
        .unwrap();
    assert!(
        throughput.contains("| 432000 |") && !throughput.contains("**432000**"),
        "{throughput}"
    );
    assert!(
        text.contains("**2.40**") && !text.contains("best or worst"),
        "what differs from the base stays bold"
    );
}

#[test]
fn ratios_come_from_values_in_full_precision() {
    let gib = 1_073_741_824.0;
    let mut record = common::sample(12).load();
    for (trial, rss) in [(1, 0.0757), (2, 0.0352)] {
        for stamped in record
            .trials
            .iter_mut()
            .filter(|record| record.number == trial)
            .flat_map(|record| &mut record.events)
        {
            if let Event::StepDone(done) = &mut stamped.event {
                done.host.put(HostReading::RssMax, Reading::Ok(rss * gib));
            }
        }
    }
    let view = analyse(&[record], &Options::default()).unwrap();
    let text = to_markdown(&view);
    let step = text
        .split("\n## ")
        .find(|part| part.starts_with("l.i0\n"))
        .unwrap();
    let line = |start: &str| {
        step.lines()
            .find(|line| line.starts_with(start))
            .unwrap()
            .split(" | ")
            .collect::<Vec<_>>()
    };
    let column = |name: &str| {
        line("|  | ips")
            .iter()
            .position(|cell| *cell == name)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!(line("| sqlite.wal_off |")[column("rss")], "0.0");
    assert_eq!(line("| sqlite.wal_off / base")[column("rss")], "0.46");
    assert_eq!(line("| sqlite.wal_off / base")[column("qps")], "-", "0 / 0");
    // An embedded engine has no CPU of its own: only the process has.
    assert_eq!(column("process_cpu_us_per_op"), column("cpupq") + 1);
    assert!(!step.contains("server_cpu_us_per_op"));
    let page = to_html(&view);
    assert!(
        page.contains("<td>0.46</td>")
            && page.contains("<span class=\"none\" title=\"the base is 0\">–</span>")
    );
}

#[test]
fn the_page_groups_thousands_and_tells_where_cpu_comes_from() {
    let page = to_html(&full());
    assert!(
        page.contains(">5,000</span>") && !page.contains(">5000</span>"),
        "context switches per second"
    );
    assert!(page.contains("whole host: includes everything else that ran"));
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"qr100\""))
        .unwrap();
    let table = section.split("<details>").next().unwrap();
    assert!(
        table.contains(">process_cpu_us_per_op</abbr>"),
        "not in the fold"
    );
    for id in ["id=\"qr100\"", "id=\"step-qr100\"", "id=\"l.x\""] {
        assert_eq!(page.matches(id).count(), 1, "{id}");
    }
    assert!(page.contains("SLA missed by the cell or the base: the ratio proves nothing"));
}

#[test]
fn one_operation_is_a_time_and_not_a_distribution() {
    let mut record = common::sample(12).load();
    for stamped in record.trials.iter_mut().flat_map(|trial| &mut trial.events) {
        if let Event::StepDone(done) = &mut stamped.event
            && done.step == "l.x"
        {
            for operation in &mut done.operations {
                operation.ok = 1;
                operation.service = common::histogram([(
                    if operation.kind == "index" {
                        1_690_000_000
                    } else {
                        2_000_000
                    },
                    1,
                )]);
            }
        }
    }
    let view = analyse(&[record], &Options::default()).unwrap();
    let step = view.steps.iter().find(|step| step.name == "l.x").unwrap();
    assert!(
        step.latencies
            .iter()
            .flat_map(|table| &table.rows)
            .all(|row| row.curve.is_empty())
    );
    assert!(
        step.charts
            .iter()
            .all(|chart| !chart.title.contains("insert")),
        "one insert has no rate"
    );
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"step-l-x\""))
        .unwrap();
    assert!(!section.contains("insert percentiles"), "no plot");
    assert_eq!(section.matches("1 operation: 1.69 s").count(), 4);
    assert_eq!(section.matches("1 operation: 2.00 ms").count(), 4);
    assert!(section.find("1.69 s") < section.find("2.00 ms"));
}

#[test]
fn csv_and_tsv() {
    let view = small();
    let (csv, tsv) = (to_csv(&view), to_tsv(&view));
    compare("report.csv", &csv);
    compare("report.tsv", &tsv);
    assert!(tsv.lines().all(|line| line.matches('\t').count() == 10));
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
    for member in [
        "title",
        "comparable",
        "notes",
        "steps",
        "environment",
        "settings",
        "metrics",
    ] {
        assert!(!report[member].is_null(), "{member}");
    }
}

/// Verdicts as each output has them: blocks with something left out, and slices.
#[test]
fn verdicts_in_every_output() {
    let steal = |block: u32, label: &str, made: &mut common::Made| {
        if block == 2 && label == SLOW {
            let all = made.done.host[HostReading::CpuTotal].value().unwrap();
            made.done
                .host
                .put(HostReading::CpuSteal, Reading::Ok(all * 0.05));
        }
        if block == 3 && label == SAME && made.done.step == "qp100" {
            made.done.sla_missed = Some(0.9);
        }
    };
    let of_blocks = analyse(&[confirm::blocks(12, true, &steal)], &Options::default()).unwrap();
    let slices = confirm::slices(4, 12, &|_, _, _| {});
    let of_slices = analyse(&[slices.load()], &Options::default()).unwrap();
    for (name, view) in [("blocks", &of_blocks), ("slices", &of_slices)] {
        compare(&format!("verdicts_{name}.txt"), &verdict_lines(view));
        let markdown = to_markdown(view);
        let part = markdown
            .split("\n## ")
            .find(|part| part.starts_with("Verdicts"))
            .unwrap();
        compare(&format!("verdicts_{name}.md"), part);
        let page = to_html(view);
        let (_, rest) = page.split_once("<h2 id=\"verdicts\">").unwrap();
        compare(
            &format!("verdicts_{name}.html"),
            &rest
                .split_once("</section>")
                .unwrap()
                .0
                .replace("><", ">\n<"),
        );
        let value = show_json(view);
        compare(
            &format!("verdicts_{name}.json"),
            &format!("{:#}\n{:#}\n", value["comparisons"], value["control"]),
        );
    }
    assert!(
        to_terminal(&of_blocks, false)
            .lines()
            .all(|line| line.chars().count() <= 120)
    );
}

/// A tenth of the operations of `l.i1` was due and never sent, and waited for longer than any
/// other: from the 90th percentile on the response times are lower bounds, wherever they are shown.
#[test]
fn lower_bounds_are_told_as_such() {
    use plimsoll_analysis::view::{EventRow, LatencyTable, Ramp, RampCell, RampLevel, Status};
    let mut record = common::sample(12).load();
    for stamped in record
        .trials
        .iter_mut()
        .filter(|trial| trial.number == 2)
        .flat_map(|trial| &mut trial.events)
    {
        let Event::StepDone(done) = &mut stamped.event else {
            continue;
        };
        for operation in done
            .operations
            .iter_mut()
            .filter(|operation| done.step == "l.i1" && operation.kind == "insert")
        {
            operation.response = Some(common::histogram([(1_000_000, 900), (50_000_000, 100)]));
            operation.unsent_response = Some(common::histogram([(50_000_000, 100)]));
            operation.unsent = 100;
        }
    }
    let mut view = analyse(&[record], &Options::default()).unwrap();
    let show = show_json(&view);
    let results = show["results"].as_array().unwrap();
    let result = results
        .iter()
        .find(|result| {
            result["step"] == "l.i1" && result["is_used"] == true && result["trial"] == 2
        })
        .unwrap();
    assert_eq!(result["operations"]["insert"]["unsent"], 100);
    let is_bound = |name: &str| result["metrics"][name]["is_lower_bound"].as_bool().unwrap();
    assert!(
        !is_bound("p90_response_us")
            && is_bound("p99_response_us")
            && is_bound("max_response_us")
            && !is_bound("p99_service_us")
    );
    let csv = to_csv(&view);
    let line = |metric: &str| {
        let is_it = |line: &&str| {
            line.starts_with("sqlite.wal_off,l.i1,") && line.contains(&format!(",{metric},"))
        };
        csv.lines()
            .find(is_it)
            .unwrap_or_else(|| panic!("no {metric}"))
    };
    assert!(
        line("p99_response_us").ends_with(",true") && line("p90_response_us").ends_with(','),
        "{}",
        line("p99_response_us")
    );
    let json: serde_json::Value = serde_json::from_str(&to_json(&view)).unwrap();
    let steps = json["steps"].as_array().unwrap();
    let table = &steps.iter().find(|step| step["step"] == "l.i1").unwrap()["percentiles"][0];
    let rows: Vec<_> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["clock"] == "response")
        .collect();
    assert_eq!(
        rows[0]["lower_bounds"],
        serde_json::json!(["mean", "p99", "p999", "p9999", "max"])
    );

    // The tables of tests with a rate, and of events of workload files.
    let step = view
        .steps
        .iter_mut()
        .find(|step| step.name == "l.i1")
        .unwrap();
    let is_response = |table: &&LatencyTable| table.is_open_loop;
    let response = step
        .latencies
        .iter()
        .find(is_response)
        .unwrap()
        .rows
        .iter()
        .find(|row| !row.quantiles.lower_bounds().is_empty())
        .unwrap();
    assert!(
        response.curve.last().unwrap().nines < 1.1,
        "the curve ends where it is known"
    );
    let quantiles = response.quantiles;
    step.events = vec![EventRow {
        cell: 1,
        kind: "look".to_owned(),
        ok: 900,
        retried: 0,
        failed: 0,
        per_s: Some(1.0),
        statements: None,
        service: None,
        response: Some(quantiles),
    }];
    let level = RampLevel {
        status: Status::Ok,
        rate: Some(1.0),
        tps: Some(1.0),
        service_us: [Some(2.0); 4],
        p99_response_us: Some(50_123.0),
        is_lower_bound: true,
        excluded_wait_s: None,
    };
    let rate = view.steps[0].rate;
    let cells = view
        .cells
        .iter()
        .map(|_| RampCell {
            levels: vec![level],
            peak: None,
            knee: None,
        })
        .collect();
    view.summary.ramps = vec![Ramp {
        test: "look".to_owned(),
        rate,
        events: "events",
        users: vec![1],
        cells,
    }];
    let page = to_html(&view);
    assert!(
        page.contains("title=\"at least 50")
            && page.contains("≥ 50.1 ms")
            && page.contains("never sent end a curve")
    );
    assert_eq!(
        page.matches("<abbr title=\"due before the end, and never sent\">unsent</abbr>")
            .count(),
        1
    );
    for text in [to_terminal(&view, false), to_markdown(&view)] {
        assert!(
            text.contains(">=50123") && text.contains("never sent (l.i1 of sqlite.wal_off: 100)"),
            "{text}"
        );
        assert_eq!(text.matches(">=50").count(), 1 + view.cells.len(), "{text}");
    }
}

#[test]
fn a_campaign_without_results_has_nothing_to_draw_and_is_drawn() {
    let plan = common::plan_text(&["wal_full", "wal_off"], 2, "");
    let record = common::Campaign::new("c", &plan).load();
    let view = analyse(&[record], &Options::default()).unwrap();
    assert!(to_html(&view).contains("no result"));
    assert!(to_terminal(&view, true).contains("- no result"));
}
