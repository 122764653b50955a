//! What the view says about cells that did not simply finish, about several blocks, bases and
//! campaigns.

mod common;

use common::{Campaign, Speed, plan_text, step};
use peak_alloc::PeakAlloc;
use plimsoll_analysis::classic::Class;
use plimsoll_analysis::metrics::{self, CATALOGUE};
use plimsoll_analysis::view::{Outcome, Status};
use plimsoll_analysis::{AnalysisError, FactKind, Options, View, analyse, compare};
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_store::CampaignRecord;
use plimsoll_store::event::{Event, ServerCrashed, StepDone, StepFailed, StepStart, TrialFailed};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

fn view(campaign: &Campaign) -> View {
    let record = common::in_default_store(campaign.load());
    analyse(&[record], &Options::default()).unwrap()
}

fn outcome<'a>(view: &'a View, cell: usize, step: &str) -> &'a Outcome {
    &view
        .steps
        .iter()
        .find(|of| of.name == step)
        .unwrap()
        .outcomes[cell]
}

fn said(view: &View, cell: usize, step: &str) -> (Status, String) {
    let outcome = outcome(view, cell, step);
    (outcome.status, outcome.reason.clone().unwrap_or_default())
}

#[test]
fn every_end_of_a_step_has_its_status_and_reason() {
    let view = view(&common::sample(12));
    assert_eq!(view.campaigns[0].state, "broken");
    let cases = [
        (0, "qp1000", Status::Ok, ""),
        (
            1,
            "qr1000",
            Status::SlaMissed,
            "the background writers reached 93.0 % of their rate, less than 95 %",
        ),
        (2, "qr100", Status::Ok, ""),
        (
            2,
            "qp100",
            Status::Crashed,
            "signal 6; its log says: assertion failed: page <7>",
        ),
        (
            2,
            "qr500",
            Status::Missing,
            "not reached: the trial crashed in or before qp100",
        ),
        (
            3,
            "l.i1",
            Status::Suspect,
            "other guests took 5.0 % of all CPU time (steal), more than 1 %",
        ),
        (
            3,
            "qr500",
            Status::Failed,
            "insert into pi1: database is locked after 30s",
        ),
        (
            3,
            "qp500",
            Status::Missing,
            "not reached: qr500 failed before it",
        ),
    ];
    for (cell, step, status, reason) in cases {
        assert_eq!(
            said(&view, cell, step),
            (status, reason.to_owned()),
            "{step} of cell {cell}"
        );
        assert_eq!(
            outcome(&view, cell, step).measures.is_empty(),
            !status.is_finished()
        );
    }
}

/// Changes a step of every attempt at one trial.
fn change(record: &mut CampaignRecord, trial: u32, step: &str, change: impl Fn(&mut StepDone)) {
    for stamped in record
        .trials
        .iter_mut()
        .filter(|record| record.number == trial)
        .flat_map(|record| &mut record.events)
    {
        match &mut stamped.event {
            Event::StepDone(done) if done.step == step => change(done),
            _ => {}
        }
    }
}

#[test]
fn cpu_of_other_processes_makes_a_step_suspect() {
    // An eighth of four CPUs.
    let mut record = common::sample(12).load();
    let busy_for_others = |cores: f64| {
        move |done: &mut StepDone| {
            let seconds = done.host[HostReading::Seconds].value().unwrap();
            let own_s = seconds * (2.0 - cores);
            done.host.put(HostReading::ProcessCpu, Reading::Ok(own_s));
        }
    };
    change(&mut record, 1, "qr100", busy_for_others(1.24));
    change(&mut record, 1, "qp100", busy_for_others(0.24));
    change(&mut record, 2, "qr1000", busy_for_others(0.6));
    change(&mut record, 4, "l.i1", busy_for_others(0.6));
    change(&mut record, 1, "qr500", |done| {
        done.host.put(
            HostReading::ProcessCpu,
            Reading::Unavailable("no clock".to_owned()),
        );
    });
    let view = analyse(&[record], &Options::default()).unwrap();
    let cases = [
        (
            0,
            "qr100",
            Status::Suspect,
            "other processes used 1.24 cores, more than 0.5",
        ),
        (0, "qp100", Status::Ok, ""),
        (0, "qr500", Status::Ok, ""),
        (
            1,
            "qr1000",
            Status::SlaMissed,
            "the background writers reached 93.0 % of their rate, less than 95 %; other processes \
            used 0.60 cores, more than 0.5",
        ),
        (
            3,
            "l.i1",
            Status::Suspect,
            "other guests took 5.0 % of all CPU time (steal), more than 1 %; other processes used \
            0.60 cores, more than 0.5",
        ),
    ];
    for (cell, step, status, reason) in cases {
        assert_eq!(
            said(&view, cell, step),
            (status, reason.to_owned()),
            "{step} of cell {cell}"
        );
    }
    assert_eq!(
        outcome(&view, 0, "qr500")
            .measure(metrics::FOREIGN_CPU_CORES)
            .unwrap()
            .value
            .unavailable
            .as_deref(),
        Some("no clock")
    );
    assert!(
        view.notes
            .iter()
            .any(|note| note.contains("other guests or other processes")),
        "{:?}",
        view.notes
    );
}

#[test]
fn a_ratio_with_a_missed_sla_has_no_colour() {
    let mut record = common::sample(12).load();
    // Without the SLA they would be above and below the base: in l.i0 they are.
    for (trial, step) in [(1, "l.i1"), (2, "l.i2")] {
        change(&mut record, trial, step, |done| done.sla_missed = Some(0.5));
    }
    let view = analyse(&[record], &Options::default()).unwrap();
    let relative = |cell: usize, column: usize| {
        let cell = &view.summary.relative.rows[cell].cells[column];
        (
            cell.text(),
            cell.class,
            cell.reason.clone().unwrap_or_default(),
        )
    };
    // A step without background writers.
    let own = "the clients reached 50.0 % of their rate, less than 95 %";
    let cases = [
        (1, 0, ("2.40", Class::AboveBase, "")),
        (3, 0, ("0.60", Class::BelowBase, "")),
        // The cell missed it.
        (1, 3, ("2.40*", Class::Plain, own)),
        (2, 3, ("1.30", Class::AboveBase, "")),
        // The base missed it.
        (0, 2, ("1.00*", Class::Plain, own)),
        (1, 2, ("2.40*", Class::Plain, "the base missed its SLA")),
    ];
    for (cell, column, (text, class, reason)) in cases {
        assert_eq!(
            relative(cell, column),
            (text.to_owned(), class, reason.to_owned()),
            "column {column} of cell {cell}"
        );
    }
    let disturbed = relative(3, 2);
    assert!(
        disturbed.0 == "0.60*" && disturbed.1 == Class::Plain,
        "{disturbed:?}"
    );
    assert!(
        disturbed
            .2
            .starts_with("the base missed its SLA; other guests took"),
        "{disturbed:?}"
    );
}

#[test]
fn the_insert_rate_is_marked_by_the_recorded_verdict() {
    let mut record = common::sample(12).load();
    // Few arrivals by chance, all of them served; and many, late.
    change(&mut record, 2, "qr1000", |done| done.sla_missed = None);
    change(&mut record, 1, "qr100", |done| done.sla_missed = Some(0.94));
    let view = analyse(&[record], &Options::default()).unwrap();
    let cell = |cell: usize, column: usize| &view.summary.insert_rate.rows[cell].cells[column];
    assert_eq!(
        (cell(1, 4).text().as_str(), cell(1, 4).class),
        ("1858", Class::Plain),
        "93 % of the target"
    );
    assert_eq!(
        (cell(0, 0).text().as_str(), cell(0, 0).class),
        ("200*", Class::Worst),
        "100 % of the target"
    );
}

#[test]
fn a_base_of_zero_gives_no_ratio() {
    let mut record = common::sample(12).load();
    change(&mut record, 1, "l.i0", |done| {
        done.clients
            .iter_mut()
            .for_each(|client| (client.ok, client.rows) = (0, 0));
    });
    let view = analyse(&[record], &Options::default()).unwrap();
    for row in &view.summary.relative.rows {
        assert_eq!(
            (row.cells[0].text().as_str(), row.cells[0].class),
            ("-", Class::Plain),
            "{}",
            row.label
        );
        assert_eq!(row.cells[0].reason.as_deref(), Some("the base is 0"));
    }
}

#[test]
fn index_creation_leads_its_step() {
    let view = view(&common::sample(12));
    let step = view.steps.iter().find(|step| step.name == "l.x").unwrap();
    assert!(
        step.description
            .starts_with("the secondary indexes created"),
        "{}",
        step.description
    );
    assert_eq!(step.latencies[0].kind, "index");
    assert!(
        step.outcomes
            .iter()
            .all(|outcome| outcome.operations[0].kind == "index")
    );
}

#[test]
fn tables_use_the_last_complete_attempt_and_the_first_stays_visible() {
    let view = view(&common::sample(12));
    let of = |step: &str| -> Vec<(u32, bool, Status)> {
        let results = view
            .results
            .iter()
            .filter(|result| result.cell == 1 && result.step == step);
        results
            .map(|result| (result.attempt, result.is_used, result.status))
            .collect()
    };
    assert_eq!(of("l.x"), [(1, false, Status::Ok), (2, true, Status::Ok)]);
    assert_eq!(of("l.i1"), [(2, true, Status::Ok)]);
    assert!(
        view.results
            .iter()
            .filter(|result| result.status.is_finished())
            .all(|result| result.measures.len() == CATALOGUE.len())
    );
}

#[test]
fn a_complete_attempt_is_used_before_a_later_broken_one() {
    let campaign = Campaign::new("c", &plan_text(&["wal_full"], 2, ""));
    let mut first = campaign.attempt(1, 1, &[]);
    campaign
        .steps()
        .iter()
        .for_each(|plan| first.step(step(plan, Speed::default())));
    first.complete();
    let mut second = campaign.attempt(1, 2, &[]);
    second.step(step(
        &campaign.steps()[0],
        Speed {
            writes: 2.0,
            ..Default::default()
        },
    ));
    second.tear();
    let view = view(&campaign);
    assert_eq!(
        outcome(&view, 0, "l.i0")
            .number(metrics::IPS)
            .map(f64::round),
        Some(180_000.0)
    );
    assert_eq!(
        view.results.iter().filter(|result| result.is_used).count(),
        10
    );
    assert_eq!(
        view.results.iter().filter(|result| !result.is_used).count(),
        1
    );
}

#[test]
fn a_trial_that_broke_off_shows_what_it_finished() {
    let configs = ["wal_full", "wal_off", "wal_normal", "delete_full"];
    let campaign = Campaign::new("c", &plan_text(&configs, 2, ""));
    // Killed in l.x.
    let mut killed = campaign.attempt(1, 1, &[]);
    killed.step(step(&campaign.steps()[0], Speed::default()));
    killed.event(Event::StepStart(StepStart {
        step: "l.x".to_owned(),
    }));
    killed.tear();
    // Ctrl-C in l.x.
    let mut interrupted = campaign.attempt(2, 1, &[]);
    interrupted.step(step(&campaign.steps()[0], Speed::default()));
    interrupted.event(Event::StepFailed(StepFailed {
        step: "l.x".to_owned(),
        reason: "interrupted".to_owned(),
        operations: Vec::new(),
    }));
    interrupted.event(Event::TrialFailed(TrialFailed {
        reason: "interrupted".to_owned(),
        interrupted: true,
    }));
    // The server died before the first step.
    let mut crashed = campaign.attempt(3, 1, &[]);
    crashed.event(Event::ServerCrashed(ServerCrashed {
        step: None,
        status: "exit status 1".to_owned(),
        log_tail: String::new(),
    }));
    // The fourth never started.
    let view = view(&campaign);
    let cases = [
        (0, "l.i0", Status::Ok, ""),
        (
            0,
            "l.x",
            Status::Missing,
            "the trial broke off in this step",
        ),
        (
            0,
            "l.i1",
            Status::Missing,
            "the trial broke off before this step",
        ),
        (1, "l.x", Status::Missing, "interrupted"),
        (
            1,
            "qp1000",
            Status::Missing,
            "not reached: l.x was interrupted before it",
        ),
        (2, "l.i0", Status::Crashed, "exit status 1"),
        (
            2,
            "l.x",
            Status::Missing,
            "not reached: the trial crashed in or before l.i0",
        ),
        (
            3,
            "l.i0",
            Status::Missing,
            "the campaign broke off before it; `plimsoll resume c` finishes it",
        ),
    ];
    for (cell, step, status, reason) in cases {
        assert_eq!(
            said(&view, cell, step),
            (status, reason.to_owned()),
            "{step} of cell {cell}"
        );
    }
    let never = view.results.iter().find(|result| result.cell == 3).unwrap();
    assert_eq!((never.attempt, never.is_used), (0, true));
}

#[test]
fn a_running_campaign_says_so() {
    let campaign = Campaign::new("c", &plan_text(&["wal_full", "wal_off"], 2, ""));
    let _lock = campaign.folder.lock().unwrap();
    let mut trial = campaign.attempt(1, 1, &[]);
    trial.step(step(&campaign.steps()[0], Speed::default()));
    trial.event(Event::StepStart(StepStart {
        step: "l.x".to_owned(),
    }));
    let view = view(&campaign);
    assert_eq!(view.campaigns[0].state, "running");
    assert_eq!(said(&view, 0, "l.x").1, "it is running now");
    assert_eq!(said(&view, 0, "l.i1").1, "it has not run yet");
    assert_eq!(said(&view, 1, "l.i0").1, "it has not run yet");
}

#[test]
fn an_empty_campaign_is_a_table_of_gaps() {
    let view = view(&Campaign::new(
        "c",
        &plan_text(&["wal_full", "wal_off"], 2, ""),
    ));
    assert_eq!(view.results.len(), 20);
    let summary = &view.summary;
    for table in [&summary.absolute, &summary.relative] {
        assert!(
            table
                .rows
                .iter()
                .flat_map(|row| &row.cells)
                .all(|cell| cell.text() == "-")
        );
    }
    assert_eq!(
        summary.insert_rate.rows.last().unwrap().cells[0].text(),
        "200"
    );
}

#[test]
fn blocks_give_medians_and_the_worst_status() {
    let campaign = Campaign::new("c", &plan_text(&["wal_full"], 2, "blocks = 3"));
    for (trial, writes) in [(1, 1.0), (2, 3.0)] {
        let mut attempt = campaign.attempt(trial, 1, &[]);
        let steal = if trial == 2 { 0.5 } else { 0.0 };
        for plan in campaign.steps() {
            attempt.step(step(
                plan,
                Speed {
                    writes,
                    steal: if plan.name == "l.i1" { steal } else { 0.0 },
                    ..Default::default()
                },
            ));
        }
        attempt.complete();
    }
    let mut third = campaign.attempt(3, 1, &[]);
    third.step(step(
        &campaign.steps()[0],
        Speed {
            writes: 2.0,
            ..Default::default()
        },
    ));
    let reason = "disk full".to_owned();
    third.event(Event::StepFailed(StepFailed {
        step: "l.x".to_owned(),
        reason,
        operations: Vec::new(),
    }));
    let view = view(&campaign);
    let ips = |step: &str| {
        outcome(&view, 0, step)
            .number(metrics::IPS)
            .unwrap()
            .round()
    };
    // Three finished: the middle one.
    assert_eq!(
        (ips("l.i0"), outcome(&view, 0, "l.i0").blocks_used),
        (360_000.0, 3)
    );
    // Two finished: their mean; the third's failure shows.
    assert_eq!(
        said(&view, 0, "l.x"),
        (Status::Failed, "block 3: disk full".to_owned())
    );
    assert_eq!(
        (
            outcome(&view, 0, "l.x").blocks_used,
            outcome(&view, 0, "l.x").blocks_planned
        ),
        (2, 3)
    );
    assert!(view.summary.absolute.rows[0].cells[1].text().ends_with('!'));
    // The disturbed one is left out where there is another.
    assert_eq!(
        (ips("l.i1"), outcome(&view, 0, "l.i1").blocks_used),
        (22_000.0, 1)
    );
    assert_eq!(said(&view, 0, "l.i1").0, Status::Suspect);
    // Histograms of the used blocks are merged.
    let inserts: u64 = view
        .results
        .iter()
        .filter(|r| r.step == "l.i0")
        .map(|r| r.operations[0].ok)
        .sum();
    assert_eq!(view.steps[0].responses[0].rows[0].total, inserts);
    assert!(
        view.notes
            .iter()
            .any(|note| note.contains("medians over up to 3 blocks")),
        "{:?}",
        view.notes
    );
}

#[test]
fn a_base_without_a_value_gives_no_ratio() {
    let campaign = common::sample(12);
    let options = Options {
        base: Some("sqlite.wal_normal".to_owned()),
        builds: Vec::new(),
    };
    let view = analyse(&[campaign.load()], &options).unwrap();
    assert_eq!(view.cells[0].label, "sqlite.wal_normal");
    let row = &view.summary.relative.rows[1];
    assert_eq!(
        (row.label.as_str(), row.cells[0].text().as_str()),
        ("sqlite.wal_full", "0.77")
    );
    assert_eq!(
        (row.cells[5].text().as_str(), row.cells[5].reason.as_deref()),
        (
            "-",
            Some("no ratio: the base crashed: signal 6; its log says: assertion failed: page <7>")
        )
    );
}

#[test]
fn cells_are_chosen_by_name() {
    let record = common::sample(2).load();
    let choose = |base: Option<&str>, builds: &[&str]| {
        let options = Options {
            base: base.map(str::to_owned),
            builds: builds.iter().map(|b| (*b).to_owned()).collect(),
        };
        analyse(std::slice::from_ref(&record), &options).map(|view| {
            view.cells
                .into_iter()
                .map(|cell| cell.label)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(choose(None, &["sqlite"]).unwrap().len(), 4);
    assert_eq!(
        choose(None, &["sqlite.delete_full"]).unwrap(),
        ["sqlite.delete_full"]
    );
    assert_eq!(
        choose(Some("sqlite.wal_off"), &["sqlite.delete_full"]).unwrap(),
        ["sqlite.wal_off", "sqlite.delete_full"]
    );
    let unknown = choose(Some("sqlite.wal_of"), &[]).unwrap_err();
    assert!(matches!(unknown, AnalysisError::UnknownCell { .. }));
    assert!(
        unknown
            .to_string()
            .contains("did you mean \"sqlite.wal_off\"?"),
        "{unknown}"
    );
    assert!(matches!(
        choose(Some("sqlite"), &[]),
        Err(AnalysisError::AmbiguousBase { .. })
    ));
    assert_eq!(
        analyse(&[], &Options::default()),
        Err(AnalysisError::NoCampaign)
    );
}

#[test]
fn campaigns_with_the_same_cells_are_told_apart() {
    let make = |id: &str, writes: f64| {
        let campaign = Campaign::new(id, &plan_text(&["wal_full"], 2, ""));
        let mut trial = campaign.attempt(1, 1, &[]);
        campaign.steps().iter().for_each(|plan| {
            trial.step(step(
                plan,
                Speed {
                    writes,
                    ..Default::default()
                },
            ))
        });
        trial.complete();
        campaign
    };
    let (one, two) = (make("one", 1.0), make("two", 2.0));
    let view = analyse(&[one.load(), two.load()], &Options::default()).unwrap();
    assert_eq!(
        view.cells
            .iter()
            .map(|cell| cell.label.as_str())
            .collect::<Vec<_>>(),
        ["sqlite.wal_full in one", "sqlite.wal_full in two"]
    );
    assert_eq!(view.summary.relative.rows[1].cells[0].text(), "2.00");
    assert!(view.notes.iter().all(|note| !note.contains("not finished")));
}

#[test]
fn what_cannot_be_read_is_a_gap_with_its_reason() {
    let campaign = Campaign::new("c", &plan_text(&["wal_full"], 12, ""));
    common::fill(&campaign, ["base"]);
    let series = campaign.load().trials[0].dir.join("series");
    std::fs::remove_file(series.join("qr100.operations.tsv")).unwrap();
    std::fs::write(series.join("qp100.operations.tsv"), "second\tother\n").unwrap();
    let mut record = campaign.load();
    for stamped in &mut record.trials[0].events {
        if let Event::StepDone(done) = &mut stamped.event
            && done.step == "qr500"
        {
            done.operations[0].service.0 = "%".to_owned();
            done.host.remove(HostReading::ContextSwitches);
        }
    }
    let view = analyse(&[record], &Options::default()).unwrap();
    let why = |step: &str, metric: &str| {
        outcome(&view, 0, step)
            .measure_of(metric)
            .unwrap()
            .value
            .unavailable
            .clone()
            .unwrap_or_default()
    };
    assert_eq!(why("qr100", "p50_rate"), "it has no 1-s series");
    assert!(
        why("qp100", "p50_rate")
            .starts_with("its 1-s series cannot be read, line 1: the columns are not"),
        "{}",
        why("qp100", "p50_rate")
    );
    assert!(
        why("qr500", "p99_service_us").contains("not base64"),
        "{}",
        why("qr500", "p99_service_us")
    );
    assert_eq!(why("qr500", "csps"), "context_switches was not recorded");
    assert_eq!(why("qr500", "cspq"), "context_switches was not recorded");
    // The rest of those steps is there.
    assert_eq!(outcome(&view, 0, "qr100").status, Status::Ok);
    assert!(outcome(&view, 0, "qr500").number(metrics::QPS).is_some());
    let charts = |step: &str| {
        view.steps
            .iter()
            .find(|of| of.name == step)
            .unwrap()
            .charts
            .iter()
            .map(|chart| chart.title.clone())
            .collect::<Vec<_>>()
    };
    assert!(
        !charts("qr100").contains(&"query rate".to_owned())
            && charts("qr100").contains(&"host CPU busy".to_owned())
    );
}

#[test]
fn differences_name_what_is_not_the_build() {
    let view = view(&common::sample(2));
    let names = |pairs: &[(String, Vec<Option<String>>)]| {
        pairs
            .iter()
            .map(|(name, _)| name.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        names(&view.environment.differing),
        ["session.journal_mode", "data_device"]
    );
    let beyond = view.beyond_build.iter();
    let beyond: Vec<_> = beyond.map(|fact| (fact.kind, fact.name.as_str())).collect();
    assert_eq!(
        beyond,
        [
            (FactKind::Session, "journal_mode"),
            (FactKind::Environment, "data_device"),
            (FactKind::Setting, "journal_mode"),
            (FactKind::Setting, "synchronous"),
        ]
    );
    let two = [(&view, 0), (&view, 1)];
    let beyond = plimsoll_analysis::beyond_build(&two);
    assert_eq!(beyond.len(), 1, "only synchronous: {beyond:?}");
    let settings: Vec<&str> = view
        .settings
        .differing
        .iter()
        .map(|setting| setting.name.as_str())
        .collect();
    assert_eq!(settings, ["journal_mode", "synchronous"]);
    assert!(view.environment.equal.contains(&(
        "cpu_governor".to_owned(),
        "unavailable (no such file)".to_owned()
    )));
}

#[test]
fn two_cells_that_are_compared_are_not_called_lone() {
    let record = common::sample(2).load();
    let of = |name: &str| {
        let options = Options {
            base: None,
            builds: vec![name.to_owned()],
        };
        analyse(std::slice::from_ref(&record), &options).unwrap()
    };
    let (a, b) = (of("sqlite.wal_full"), of("sqlite.wal_off"));
    assert!(
        a.notes
            .iter()
            .any(|note| note.starts_with("There is one cell"))
    );
    let notes = compare((&a, 0), (&b, 0)).notes.join("\n");
    assert!(
        !notes.contains("There is one cell") && notes.contains("Each cell ran once"),
        "{notes}"
    );
}

#[test]
fn numbers_in_files_take_no_memory() {
    let campaign = common::sample(12);
    let series = campaign.load().trials[0].dir.join("series");
    let append = |name: &str, row: &str| {
        let file = series.join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, text + row).unwrap();
    };
    append(
        "qr100.operations.tsv",
        "4294967295\t1\tquery\t1\t0\t1\t1\t1\t1\n",
    );
    let header = std::fs::read_to_string(series.join("qp100.host.tsv")).unwrap();
    let columns = header.lines().next().unwrap().split('\t').count();
    append(
        "qp100.host.tsv",
        &format!("1e300{}\n", "\t".repeat(columns - 1)),
    );
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let view = view(&campaign);
    let taken = MEMORY.peak_usage().saturating_sub(before);
    // Other tests of this program take some meanwhile.
    assert!(taken < 500 << 20, "{taken}");
    let of_step = |name: &str| view.steps.iter().find(|step| step.name == name).unwrap();
    let query_rate = |name: &str| {
        let charts = &of_step(name).charts;
        let chart = charts.iter().find(|chart| chart.title == "query rate");
        chart.is_some_and(|chart| chart.lines.iter().any(|line| line.cell == 0))
    };
    assert!(!query_rate("qr100") && query_rate("qp100"));
}

#[test]
fn a_step_without_its_turns_is_damaged() {
    let campaign = common::confirm::slices(3, 8, &|_, _, _| {});
    let dir = campaign.load().trials[0].dir.join("series");
    let files = std::fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|of| of.path());
    let mut turns = files.filter(|of| of.to_string_lossy().ends_with(".turns.tsv"));
    std::fs::remove_file(turns.next().unwrap()).unwrap();
    let view = view(&campaign);
    assert!(
        view.notes.iter().any(|note| note.contains("damaged")),
        "{:?}",
        view.notes
    );
}

/// A campaign that another version of the program began, and this one resumed.
#[test]
fn trials_of_several_methodology_versions_are_noted() {
    let campaign = common::sample(2);
    let mut record = campaign.load();
    let trial = record.trials.first_mut().unwrap();
    for stamped in &mut trial.events {
        if let Event::TrialStart(start) = &mut stamped.event {
            start.methodology_version += 1;
        }
    }
    let view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    let is_noted = |note: &String| note.contains("different methodology versions");
    assert!(view.notes.iter().any(is_noted), "{:?}", view.notes);
}
