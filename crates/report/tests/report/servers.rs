//! What a report says about servers: who compiled them, what they run with, what they counted, and
//! how they died.

use std::sync::LazyLock;

use plimsoll_analysis::metrics::{self, Metric};
use plimsoll_analysis::view::{CounterKind, Status};
use plimsoll_analysis::{Options, View, analyse};
use plimsoll_core::readings::HostReading;
use plimsoll_report::{show_json, to_csv, to_html, to_json, to_markdown, to_terminal};
use plimsoll_store::CampaignRecord;
use plimsoll_store::event::{Event, StepFailed, StepStart};
use serde_json::{Value, json};

use crate::common;
use crate::common::servers::{CELLS, servers};

/// Nothing goes wrong. Made once: that takes a while.
fn all_good() -> CampaignRecord {
    static RECORD: LazyLock<CampaignRecord> = LazyLock::new(|| servers(["base"; 4], ""));
    RECORD.clone()
}

fn view_of(record: CampaignRecord) -> View {
    analyse(&[record], &Options::default()).unwrap()
}

/// Words of wrapped lines.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn builds_that_are_not_strictly_comparable_are_marked_in_every_output() {
    let view = view_of(all_good());
    let caveat = "not strictly comparable (gcc 4.4 -O3 vs gcc 12 -O2)";
    let unknown = "not strictly comparable (gcc 4.4 -O3, MySQL generic Linux vs unknown compiler, \
                  unknown flags, Debian)";
    let caveats: Vec<Option<String>> = view
        .cells
        .iter()
        .map(|cell| cell.caveat.as_ref().map(ToString::to_string))
        .collect();
    let expected = [
        None,
        Some(caveat.to_owned()),
        Some(caveat.to_owned()),
        Some(unknown.to_owned()),
    ];
    assert_eq!(caveats, expected);

    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains("mysql@8.0.33.cz12a † 1.00")
            && terminal.contains("† builds not strictly comparable"),
        "{terminal}"
    );
    let note = format!(
        "The base {} against {}, {}: {caveat}. Their compilers and optimisation flags differ",
        CELLS[0], CELLS[1], CELLS[2]
    );
    assert!(
        terminal.contains(&note) && terminal.contains(unknown),
        "{terminal}"
    );
    assert!(
        !terminal.contains(&format!("{} †", CELLS[0]))
            && !terminal.contains("mysql@5.7.22.cz12a (base) †")
    );

    let markdown = to_markdown(&view);
    assert!(
        markdown.contains(&format!("| {} / base † |", CELLS[1])) && markdown.contains(&note),
        "{markdown}"
    );
    assert!(
        markdown.contains("| mysql@8.0.33.cz12a † | 1.00 |"),
        "{markdown}"
    );

    let page = to_html(&view);
    assert!(
        page.contains(&format!(
            "<abbr class=\"dagger\" title=\"{caveat}\">†</abbr>"
        )) && page.contains(&note)
    );

    let shown = show_json(&view);
    assert_eq!(shown["cells"][0]["not_comparable"], Value::Null);
    assert_eq!(shown["cells"][1]["not_comparable"], json!(caveat));
    assert_eq!(
        (
            &shown["cells"][1]["server_sha256"],
            &shown["cells"][1]["toolchain"]["compiler"]
        ),
        (&json!("67335ce6765f"), &json!("gcc 12.1.1"))
    );

    let csv = to_csv(&view);
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .ends_with(",not_comparable,is_lower_bound")
    );
    assert!(
        csv.lines()
            .any(|line| line.starts_with("mysql@8.0.33.cz12a,l.i0")
                && line.ends_with(&format!("{caveat},"))),
        "{csv}"
    );
    assert!(
        csv.lines()
            .filter(|line| line.starts_with(CELLS[0]))
            .all(|line| line.ends_with(','))
    );
}

#[test]
fn cells_of_one_build_are_comparable_and_servers_of_unknown_making_are_not() {
    let base = Options {
        base: Some(CELLS[1].to_owned()),
        ..Default::default()
    };
    let view = analyse(&[all_good()], &base).unwrap();
    let caveat = |label: &str| {
        view.cells
            .iter()
            .find(|cell| cell.label == label)
            .unwrap()
            .caveat
            .as_ref()
    };
    assert!(caveat(CELLS[2]).is_none() && caveat(CELLS[0]).is_some());

    let mut record = all_good();
    record
        .header
        .cells
        .iter_mut()
        .for_each(|cell| cell.build = None);
    let view = view_of(record);
    assert_eq!(
        view.cells[1].caveat.as_ref().unwrap().to_string(),
        "not known to be strictly comparable (both: unknown compiler, unknown flags, unknown \
        packager)"
    );
    let embedded = analyse(&[common::sample(12).load()], &Options::default()).unwrap();
    assert!(embedded.cells.iter().all(|cell| cell.caveat.is_none()));
}

#[test]
fn a_server_that_does_not_stop_is_told_and_changes_no_number() {
    let mut record = all_good();
    for stamped in record.trials.iter_mut().flat_map(|trial| &mut trial.events) {
        if let Event::TrialDone(done) = &mut stamped.event {
            done.stop_problem = Some("failed to stop: it did not end within 300 s".to_owned());
        }
    }
    let (view, before) = (view_of(record), view_of(all_good()));
    assert_eq!(view.steps, before.steps);
    let told: Vec<&String> = view
        .notes
        .iter()
        .filter(|note| !before.notes.contains(note))
        .collect();
    assert_eq!(told.len(), CELLS.len(), "{told:?}");
    assert!(
        CELLS.iter().all(|cell| told
            .iter()
            .any(|note| note.starts_with(cell) && note.contains("within 300 s"))),
        "{told:?}"
    );
}

#[test]
fn a_config_that_was_not_applied_is_not_taken_for_one_that_was() {
    let mut record = all_good();
    record.header.cells[1].origin = "external server mine".to_owned();
    let note = format!(
        "{}: on an external server, with that server's own settings; nothing of a config was \
        applied there.",
        CELLS[1]
    );
    assert!(view_of(record).notes.contains(&note));
    assert!(
        !view_of(all_good())
            .notes
            .iter()
            .any(|note| note.contains("external server"))
    );
}

#[test]
fn which_client_the_sessions_used_is_told() {
    let settings =
        |view: &View| serde_json::from_str::<Value>(&to_json(view)).unwrap()["settings"].clone();
    let note_of = |view: &View| {
        view.notes
            .iter()
            .find(|note| note.contains("sessions"))
            .cloned()
    };
    let through = |clients: [Option<&str>; 4]| {
        let mut record = all_good();
        for trial in &mut record.trials {
            let client = clients[trial.number as usize - 1];
            for stamped in &mut trial.events {
                if let (Event::ServerReady(ready), Some(client)) = (&mut stamped.event, client) {
                    ready
                        .effective_settings
                        .insert("session_client".to_owned(), client.to_owned());
                }
            }
        }
        view_of(record)
    };
    const CAPTION: &str = "The workers' sessions went through this client";
    let view = view_of(all_good());
    assert_eq!(
        (note_of(&view), to_html(&view).contains(CAPTION)),
        (None, false)
    );

    let view = through([Some("thin"); 4]);
    assert_eq!(note_of(&view), None);
    assert!(to_html(&view).contains(&format!("{CAPTION}: thin.")));
    assert_eq!(settings(&view)["equal"]["session_client"], json!("thin"));

    let view = through([Some("mysql crate"), None, Some("mysql crate"), None]);
    assert!(
        note_of(&view)
            .unwrap()
            .contains("through the mysql crate, which costs more CPU")
    );

    let view = through([Some("thin"), Some("mysql crate"), None, Some("thin")]);
    let note = format!(
        "thin: {}, {}; mysql crate: {}.",
        CELLS[0], CELLS[3], CELLS[1]
    );
    assert!(
        note_of(&view).unwrap().ends_with(&note),
        "{:?}",
        note_of(&view)
    );
    assert!(flat(&to_terminal(&view, false)).contains(&note) && to_markdown(&view).contains(&note));
    let page = to_html(&view);
    assert!(
        !page.contains(CAPTION) && page.contains("<th>session_client</th><td"),
        "{page}"
    );
    assert_eq!(
        settings(&view)["differing"]["session_client"][CELLS[1]],
        json!("mysql crate")
    );
}

#[test]
fn a_custom_parameter_is_noted_once() {
    let mut record = all_good();
    let events = record.trials.iter_mut().flat_map(|trial| &mut trial.events);
    for stamped in events {
        if let Event::ServerReady(ready) = &mut stamped.event {
            let told = [
                ("bench.share", "3"),
                (
                    "custom parameter: bench.share",
                    "no module of this server defines it",
                ),
            ];
            ready
                .effective_settings
                .extend(told.map(|(name, value)| (name.to_owned(), value.to_owned())));
        }
    }
    let view = view_of(record);
    let note = "bench.share is a custom parameter: no module of the server defines it.";
    for text in [
        to_terminal(&view, false),
        to_markdown(&view),
        to_html(&view),
    ] {
        assert_eq!(flat(&text).matches(note).count(), 1, "{text}");
    }
    let settings = serde_json::from_str::<Value>(&to_json(&view)).unwrap()["settings"].clone();
    assert_eq!(
        (&settings["custom"], &settings["equal"]["bench.share"]),
        (&json!(["bench.share"]), &json!("3"))
    );
    assert!(
        !view_of(all_good())
            .notes
            .iter()
            .any(|note| note.contains("custom"))
    );
}

#[test]
fn what_ran_is_told() {
    let view = view_of(all_good());
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"ran\""))
        .unwrap();
    for text in [
        "10.5.23-MariaDB",
        "package 3",
        "MySQL generic Linux",
        "gcc 12.1.1",
        "-O3 -fno-omit-frame-pointer",
        "title=\"da15c306f94e\"",
        "title=\"-Wall -g\"",
    ] {
        assert!(section.contains(text), "{text}");
    }
    let markdown = to_markdown(&view);
    let row = "| mariadb@10.5.23.cz12a | 10.5.23-MariaDB | package 3 | Debian | unknown | unknown \
              | da15c306f94e |";
    assert!(markdown.contains(row), "{markdown}");
}

#[test]
fn settings_are_compared_by_what_they_mean() {
    let view = view_of(all_good());
    let settings = &view.settings;
    let found: Vec<_> = settings
        .not_as_asked
        .iter()
        .map(|it| {
            (
                it.name.as_str(),
                it.asked.as_str(),
                it.found.as_deref().map_err(String::as_str),
                it.cells.as_slice(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (
                "innodb_buffer_pool_size",
                "1G",
                Ok("536870912"),
                &[1, 2][..]
            ),
            (
                "innodb_redo_log_capacity",
                "2G",
                Err("not known to MySQL 5.7.22"),
                &[0]
            ),
            (
                "innodb_redo_log_capacity",
                "2G",
                Err("not known to MariaDB 10.5.23"),
                &[3]
            ),
        ]
    );
    assert_eq!(settings.untold, ["symbolic_links"]);
    let differing: Vec<(&str, bool)> = settings
        .differing
        .iter()
        .map(|setting| (setting.name.as_str(), setting.is_asked))
        .collect();
    assert_eq!(
        differing,
        [("innodb_buffer_pool_size", true), ("sql_mode", false)]
    );
    assert_eq!(settings.differing[0].shown[1].as_deref(), Some("512 MiB"));
    assert_eq!(
        settings.differing[1].shown[0].as_deref(),
        Some("… NO_AUTO_CREATE_USER")
    );
    let only: Vec<(&[usize], &str)> = settings
        .only_in
        .iter()
        .map(|only| (only.cells.as_slice(), only.settings[0].0.as_str()))
        .collect();
    assert_eq!(
        only,
        [
            (&[0][..], "innodb_file_format"),
            (&[1, 2], "innodb_redo_log_capacity"),
            (&[3], "aria_block_size")
        ]
    );
    let places: Vec<&str> = settings
        .places
        .iter()
        .map(|setting| setting.name.as_str())
        .collect();
    assert_eq!(places, ["datadir", "server_uuid", "version"]);

    let report: Value = serde_json::from_str(&to_json(&view)).unwrap();
    assert_eq!(
        report["settings"]["not_as_asked"][0]["found"],
        json!("536870912")
    );
    assert_eq!(
        report["settings"]["differing"]["innodb_buffer_pool_size"][CELLS[1]],
        json!("536870912")
    );
    assert_eq!(
        report["settings"]["only_in"][2]["settings"]["aria_block_size"],
        json!("8192")
    );
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"settings\""))
        .unwrap();
    assert!(
        section.find("Not as asked") < section.find("2 left out")
            && section.find("2 left out") < section.find("Different, and asked")
    );
    assert!(section.contains("536870912 (512.00 MiB)"), "{section}");
    let told = format!(
        "innodb_buffer_pool_size asked 1G, runs with 536870912 ({}, {})",
        CELLS[1], CELLS[2]
    );
    assert!(flat(&to_terminal(&view, false)).contains(&told));
}

#[test]
fn counters_are_told_per_operation_and_levels_are_not() {
    let view = view_of(all_good());
    let step = view.steps.iter().find(|step| step.name == "qr100").unwrap();
    let counter = |name: &str| {
        step.counters
            .iter()
            .find(|counter| counter.name == name)
            .unwrap_or_else(|| panic!("{name}"))
    };
    let per_operation = |name: &str| {
        counter(name)
            .per_operation
            .iter()
            .map(|value| value.map(|value| (value * 1e3).round() / 1e3))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        per_operation("innodb_os_log_written"),
        [Some(1500.0), Some(2400.0), Some(2400.0), Some(1800.0)]
    );
    assert_eq!(
        per_operation("binlog_bytes_written"),
        [None, None, None, Some(90.0)]
    );
    let kinds: Vec<(&str, CounterKind)> = step
        .counters
        .iter()
        .map(|counter| (counter.name.as_str(), counter.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("innodb_os_log_written", CounterKind::Front),
            ("innodb_rows_inserted", CounterKind::Front),
            ("binlog_bytes_written", CounterKind::Front),
            // It is not among those that the field names, but it changed.
            ("handler_external_lock", CounterKind::Front),
            ("com_stmt_execute", CounterKind::Other),
            ("innodb_buffer_pool_pages_dirty", CounterKind::Level),
            ("innodb_history_list_length", CounterKind::Level),
        ]
    );
    // Every counter is in the file, and no level is divided.
    let report: Value = serde_json::from_str(&to_json(&view)).unwrap();
    let json = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "qr100")
        .unwrap();
    assert_eq!(json["counters"].as_object().unwrap().len(), 7);
    assert_eq!(
        json["levels"],
        json!([
            "innodb_buffer_pool_pages_dirty",
            "innodb_history_list_length"
        ])
    );
    assert_eq!(json["counters_per_operation"].as_object().unwrap().len(), 5);
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"qr100\""))
        .unwrap();
    let open = section
        .split("<details")
        .filter_map(|part| part.split_once("</details>"))
        .map(|(_, after)| after)
        .collect::<String>();
    assert!(
        open.contains("Per query,")
            && open.contains("innodb_os_log_written")
            && open.contains(">2,400<")
            && open.contains("×1.60"),
        "{open}"
    );
    assert!(
        !open.contains("com_stmt_execute") && section.contains("com_stmt_execute"),
        "folded"
    );
    assert!(section.contains("Levels (2)") && section.contains(">-12<"));
}

#[test]
fn server_cpu_and_client_cpu_stand_apart() {
    let view = view_of(all_good());
    let outcome = &view
        .steps
        .iter()
        .find(|step| step.name == "qp100")
        .unwrap()
        .outcomes[1];
    let number = |metric: &Metric| outcome.number(metric).map(f64::round);
    assert_eq!(
        (
            number(metrics::SERVER_CPU_US_PER_OP),
            number(metrics::CLIENT_CPU_US_PER_OP)
        ),
        (Some(50.0), Some(10.0))
    );
    let process = outcome.measure(metrics::PROCESS_CPU_US_PER_OP).unwrap();
    assert_eq!(
        process.value.unavailable.as_deref(),
        Some("the engine has processes of its own")
    );
    let markdown = to_markdown(&view);
    assert!(
        markdown.contains("| cpupq | server_cpu_us_per_op | client_cpu_us_per_op | dbgb1 |")
            && !markdown.contains("process_cpu_us_per_op")
    );
}

#[test]
fn a_crash_is_told_with_its_log_and_leaves_the_others_alone() {
    let view = view_of(servers(["base", "crash", "base", "base"], ""));
    let step = view.steps.iter().find(|step| step.name == "qp100").unwrap();
    assert_eq!(
        step.outcomes
            .iter()
            .map(|outcome| outcome.status)
            .collect::<Vec<_>>(),
        [Status::Ok, Status::Crashed, Status::Ok, Status::Ok]
    );
    assert_eq!(step.outcomes[1].crash.as_ref().unwrap().status, "signal 11");
    let reason = "signal 11; its log says: 2026 UTC - mysqld got signal 11 ;";
    assert_eq!(step.outcomes[1].reason.as_deref(), Some(reason));
    let column = view
        .summary
        .relative
        .columns
        .iter()
        .position(|column| column == "qp100")
        .unwrap();
    let texts: Vec<String> = view
        .summary
        .relative
        .rows
        .iter()
        .map(|row| row.cells[column].text())
        .collect();
    assert_eq!(texts, ["1.00", "crashed", "1.00", "1.00"]);
    let page = to_html(&view);
    assert!(page.contains("The manual page has &lt;information&gt;."));
    let markdown = to_markdown(&view);
    assert!(
        markdown.contains(
            "## Log of mysql@8.0.33.cz12a in qp100\n\nsignal 11\n\n    2026 [Note] ready\n"
        ),
        "{markdown}"
    );
    assert!(flat(&to_terminal(&view, false)).contains(reason));
    let report: Value = serde_json::from_str(&to_json(&view)).unwrap();
    let json = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "qp100")
        .unwrap();
    assert_eq!(json["cells"][1]["crash"]["status"], json!("signal 11"));
}

#[test]
fn without_a_base_there_are_no_ratios_and_the_reason_is_told() {
    let view = view_of(servers(["crash", "base", "base", "base"], ""));
    let column = |name: &str| {
        view.summary
            .relative
            .columns
            .iter()
            .position(|column| column == name)
            .unwrap()
    };
    let cell = |name: &str| &view.summary.relative.rows[1].cells[column(name)];
    assert_eq!(
        (
            cell("qr100").text(),
            cell("qp100").text(),
            cell("qr500").text()
        ),
        ("1.09".to_owned(), "-".to_owned(), "-".to_owned())
    );
    assert_eq!(
        cell("qp100").reason.as_deref(),
        Some(
            "no ratio: the base crashed: signal 11; its log says: 2026 UTC - mysqld got signal 11 ;"
        )
    );
    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains("There are no ratios in qp100: the base crashed: signal 11;"),
        "{terminal}"
    );
    assert!(
        terminal.contains(
            "There are no ratios in qr500, qp500, qr1000, qp1000: the base has no result: not \
            reached"
        ),
        "{terminal}"
    );
    assert!(to_html(&view).contains("There are no ratios in qp100"));
}

#[test]
fn a_hang_is_no_crash_and_no_failure() {
    let mut record = servers(["base", "fail", "base", "base"], "");
    for stamped in record.trials.iter_mut().flat_map(|trial| &mut trial.events) {
        if let Event::StepFailed(StepFailed { reason, .. }) = &mut stamped.event {
            *reason =
                "hung: the server has not answered for 60 s, and no operation was done".to_owned();
        }
    }
    let view = view_of(record);
    let step = view.steps.iter().find(|step| step.name == "qr500").unwrap();
    assert_eq!(step.outcomes[1].status, Status::Hung);
    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains(" hung ") && terminal.contains("! failed, crashed or hung: see below"),
        "{terminal}"
    );
    assert!(terminal.contains("mysql@8.0.33.cz12a qr500: hung: the server has not answered"));
    let shown = show_json(&view);
    let result = shown["results"]
        .as_array()
        .unwrap()
        .iter()
        .find(|result| result["status"] == "hung")
        .unwrap();
    assert_eq!(
        (&result["cell"], &result["step"]),
        (&json!(CELLS[1]), &json!("qr500"))
    );
    assert!(to_markdown(&view).contains("`!` hung: the engine did nothing"));
}

#[test]
fn a_server_that_never_got_ready_shows_the_end_of_its_log() {
    let campaign =
        common::Campaign::new("20261121T090000Z-servers", &common::servers::plan_text(""));
    common::fill(&campaign, ["base"]);
    let mut second = campaign.attempt(2, 1, &[]);
    let log = "2026 [Note] starting\n2026 [ERROR] unknown variable 'x=1'\n2026 [Note] done";
    let reason = format!("the server ended before it was ready; its log ends with:\n{log}");
    second.event(Event::TrialFailed(plimsoll_store::event::TrialFailed {
        reason,
        interrupted: false,
    }));
    let view = view_of(campaign.load());
    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains(
            "mysql@8.0.33.cz12a l.i0: the server ended before it was ready; its log ends with: \
            2026 [ERROR] unknown variable 'x=1' mysql"
        ),
        "{terminal}"
    );
    assert!(to_html(&view).contains("2026 [Note] starting\n2026 [ERROR]"));
}

#[test]
fn drains_are_folded_and_told_in_full() {
    let view = view_of(all_good());
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"l.i2\""))
        .unwrap();
    assert!(
        section.contains("<details><summary>2 actions</summary>")
            && section.contains("<pre>status: OK\nnote: &lt;all&gt; rows read</pre>")
    );
    assert!(
        section.contains(
            "<code>set global innodb_max_dirty_pages_pct = 1</code> 100 us: now 1.000000"
        )
    );
    let report: Value = serde_json::from_str(&to_json(&view)).unwrap();
    let json = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "l.i2")
        .unwrap();
    assert_eq!(
        json["cells"][1]["drain"]["actions"][1],
        json!({"action": "analyze table `pi1`", "seconds": 0.2, "result": "status: OK\nnote: <all> \
            rows read"})
    );
}

#[test]
fn a_plan_that_ends_with_index_creation_is_about_its_seconds() {
    let mut record = servers(["base"; 4], "steps = [\"l.i0\", \"l.x\"]");
    for stamped in record
        .trials
        .iter_mut()
        .filter(|trial| trial.number == 2)
        .flat_map(|trial| &mut trial.events)
    {
        if let Event::StepDone(done) = &mut stamped.event {
            done.clients
                .iter_mut()
                .filter(|client| client.kind == "index")
                .for_each(|client| client.to_ns /= 4);
        }
    }
    let view = view_of(record);
    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains(
            "Index creation: seconds for the indexes of all tables: less is better seconds / base"
        ),
        "{terminal}"
    );
    assert!(
        terminal.contains("mysql@5.7.22.cz12a (base) 1.00 1.00 mysql@8.0.33.cz12a † 0.25 0.25"),
        "{terminal}"
    );
    let page = to_html(&view);
    let section = page
        .split("<section")
        .find(|part| part.contains("id=\"l.x\""))
        .unwrap();
    let seconds = section
        .find("seconds of index creation – <strong>shorter is better")
        .unwrap();
    assert!(seconds < section.find("rows/s – <strong>longer is better").unwrap());
    assert!(
        !page.contains("href=\"#step-seconds\""),
        "a column that is not a step leads nowhere"
    );
    // In a whole run other steps matter more.
    assert!(view_of(all_good()).summary.index_seconds.columns.is_empty());
}

#[test]
fn the_tables_show_the_steps_that_the_plan_is_about() {
    let mut record = all_good();
    let all: Vec<String> = view_of(record.clone()).summary.absolute.columns;
    let wanted = all.last().unwrap().clone();
    record.header.plan.report = vec![wanted.clone()];
    let view = view_of(record);
    assert_eq!(
        (
            &view.summary.absolute.columns,
            &view.summary.relative.columns
        ),
        (&vec![wanted.clone()], &vec![wanted.clone()])
    );
    assert_eq!(view.steps.len(), all.len());
    let note = format!(
        "The plan is about {wanted}: the tables show no other step. All of them are in the details."
    );
    assert!(view.notes.contains(&note), "{:?}", view.notes);
}

#[test]
fn cells_that_differ_in_shape_say_so() {
    let plan = "name = \"shapes\"\nworkload = \"insert-benchmark\"\nbuilds = \
               [\"mysql@8.0.33\"]\nconfigs = [\"cz12a\"]\nwait = \"0s\"\n\
                steps = [\"l.i0\", \"l.x\"]\nbase = \"mysql@8.0.33.cz12a.each\"\n[sizes]\nclients \
               = 2\nrows = \"400K\"\nwrite_rows = \"100K\"\n\
                duration = \"12s\"\n[shapes.each]\n[shapes.quarter]\nrows = \"100K\"\n";
    let campaign = common::Campaign::new("20261121T090000Z-shapes", plan);
    common::fill(&campaign, ["base", "base"]);
    let view = view_of(campaign.load());
    let terminal = flat(&to_terminal(&view, false));
    assert!(
        terminal.contains("mysql@8.0.33.cz12a.quarter"),
        "{terminal}"
    );
    assert!(
        terminal.contains("note: Shapes differ: the base is each (2 clients,")
            && terminal.contains("others are quarter (2 clients,"),
        "{terminal}"
    );
}

#[test]
fn many_disturbed_steps_are_told_once() {
    let mut record = all_good();
    for stamped in record
        .trials
        .iter_mut()
        .filter(|trial| trial.number == 2)
        .flat_map(|trial| &mut trial.events)
    {
        if let Event::StepDone(done) = &mut stamped.event {
            let seconds = done.host[HostReading::Seconds].value().unwrap();
            let own = done.host[HostReading::CpuUser].value().unwrap();
            let foreign = if done.step == "qp100" { 1.5 } else { 0.75 };
            done.host.put(
                HostReading::CpuUser,
                plimsoll_core::readings::Reading::Ok(own + foreign * seconds),
            );
        }
    }
    let view = view_of(record);
    assert_eq!(view.reasons.len(), 1, "{:?}", view.reasons);
    assert_eq!(
        (view.reasons[0].steps.len(), view.reasons[0].text.as_str()),
        (10, "other processes used 0.75 to 1.50 cores")
    );
}

#[test]
fn a_step_that_runs_now_is_missing_and_not_crashed() {
    let campaign =
        common::Campaign::new("20261121T090000Z-servers", &common::servers::plan_text(""));
    common::fill(&campaign, ["base"]);
    let mut second = campaign.attempt(2, 1, &[]);
    second.event(Event::StepStart(StepStart {
        step: "l.i0".to_owned(),
    }));
    let view = view_of(campaign.load());
    assert_eq!(view.steps[0].outcomes[1].status, Status::Missing);
    assert!(view.steps[0].outcomes[1].crash.is_none());
}
