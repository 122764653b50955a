//! Posts of native campaigns: words of single runs, words of verdicts, and the files.

use plimsoll_analysis::post::{Form, Part, Post, PostOptions, Said, post, post_beside};
use plimsoll_analysis::view::{Ramp, RampCell, RampLevel, Status};
use plimsoll_analysis::{FlameNode, Options, Profiled, View, analyse};
use plimsoll_report::{to_post_files, to_post_markdown};
use plimsoll_store::ProfileAbout;

use crate::common;
use crate::common::confirm::blocks;
use crate::view;

fn written(view: &View) -> Post {
    post(view, &PostOptions::default()).unwrap()
}

/// All sentences but those that say how to read them.
fn sentences(post: &Post) -> String {
    let sections = post
        .sections
        .iter()
        .filter(|of| of.title.starts_with("Results: "));
    let only = Post {
        sections: sections.cloned().collect(),
        ..post.clone()
    };
    only.sentences()
        .iter()
        .map(|of| format!("{}\n", of.text))
        .collect()
}

/// Words of single runs, which verdicts do not use, and the other way round.
const OF_RUNS: [&str; 8] = [
    "no change",
    "stable",
    "similar",
    "slower",
    "faster",
    "big ",
    "small ",
    "common result",
];
const OF_VERDICTS: [&str; 4] = ["equivalent", "inconclusive", "regressed: ", "verdicts on"];

#[test]
fn verdicts_and_single_runs_share_no_word() {
    let judged = written(&view(&blocks(12, true, &|_, _, _| {})));
    let text = sentences(&judged);
    assert!(
        text.contains("verdicts on sqlite.wal_off vs sqlite.wal_full: 2 regressions"),
        "{text}"
    );
    assert!(text.contains("regressed: q"), "{text}");
    for word in OF_RUNS {
        assert!(!text.contains(word), "{word}: {text}");
    }
    // Each number of a verdict has its interval.
    assert!(
        judged.tables[0]
            .groups
            .iter()
            .flat_map(|of| &of.rows)
            .all(|row| {
                row.cells
                    .iter()
                    .all(|cell| cell.text == "-" || cell.text.contains(" ["))
            })
    );

    let single = written(&view(&common::sample(4).load()));
    let text = sentences(&single);
    assert!(OF_RUNS.iter().any(|word| text.contains(word)), "{text}");
    for word in OF_VERDICTS {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

/// Verdicts against a second base were asked for and not given: its verdicts are its own.
#[test]
fn a_second_base_has_verdicts_of_its_own() {
    let record = blocks(12, true, &|_, _, _| {});
    let second = Options {
        base: Some("sqlite.wal_normal".to_owned()),
        builds: Vec::new(),
    };
    let other = analyse(std::slice::from_ref(&record), &second).unwrap();
    let options = PostOptions {
        bases: ["sqlite.wal_full", "sqlite.wal_normal"]
            .map(str::to_owned)
            .into(),
        ..PostOptions::default()
    };
    let post = post_beside(&view(&record), &[other], &options).unwrap();
    let text = sentences(&post);
    for line in [
        "verdicts on sqlite.wal_off vs sqlite.wal_full: 2 regressions",
        "verdicts on sqlite.wal_off vs sqlite.wal_normal: 2 regressions",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let all = post.sentences();
    let all: Vec<&str> = all.iter().map(|of| of.text.as_str()).collect();
    assert!(
        all.iter()
            .any(|text| text.starts_with("each base is judged on its own"))
    );
    assert!(
        !all.iter()
            .any(|text| text.contains("against the base alone"))
    );
    let names: Vec<&str> = post.tables.iter().map(|of| of.name.as_str()).collect();
    assert!(names.contains(&"verdicts.sqlite.wal-normal"), "{names:?}");
}

#[test]
fn configs_stand_against_the_base_and_not_in_a_row() {
    let text = sentences(&written(&view(&common::sample(4).load())));
    assert!(text.contains(" in place of sqlite."), "{text}");
    assert!(!text.contains("from sqlite."), "{text}");
}

#[test]
fn files_of_a_post_are_the_same_each_time() {
    let campaign = common::sample(4);
    let files = to_post_files(&written(&view(&campaign.load()))).unwrap();
    let again = to_post_files(&written(&view(&campaign.load()))).unwrap();
    assert_eq!(files, again);
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(&paths[..2], ["post.md", "post.html"]);
    let table = files
        .iter()
        .find(|file| file.path.ends_with(".tsv"))
        .unwrap();
    let table = String::from_utf8(table.bytes.clone()).unwrap();
    assert!(table.contains("col-1 : sqlite."), "{table}");
    let page = String::from_utf8(files[1].bytes.clone()).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(
        !page.contains("src=") && !page.contains("<script"),
        "it fetches and runs nothing"
    );
}

#[test]
fn a_post_has_its_sections_in_order() {
    let post = written(&view(&common::sample(4).load()));
    let titles: Vec<&str> = post.sections.iter().map(|of| of.title.as_str()).collect();
    assert_eq!(
        &titles[..3],
        ["Builds, configuration and hardware", "Benchmark", "Results"]
    );
    assert_eq!(
        &titles[titles.len() - 2..],
        ["What this does not show", "How to repeat it, and the data"]
    );
    assert!(!post.tldr.is_empty() && post.tldr.len() <= 5);
    // A step that inserts has its seconds, with rates of each config that came to any.
    let parts = post.sections.iter().flat_map(|of| &of.parts);
    let seconds = parts.filter_map(|part| match part {
        Part::Figure(figure) => match &figure.form {
            Form::Seconds { builds, .. } => Some(builds),
            _ => None,
        },
        _ => None,
    });
    let seconds: Vec<_> = seconds.collect();
    assert!(!seconds.is_empty());
    for builds in seconds {
        assert_eq!(builds.len(), 4);
        assert!(builds[0].rates.iter().flatten().any(|rate| *rate > 0.0));
    }
    let text = to_post_markdown(&post);
    assert!(
        text.contains("\n## tl;dr\n") && text.contains("seed "),
        "{text}"
    );
}

/// The background writers of one cell miss their rate in `qr1000`: no ratio, count or chart of
/// ratios has it.
#[test]
fn a_missed_rate_is_in_no_ratio() {
    let view = view(&common::sample(4).load());
    let post = written(&view);
    let step = view
        .steps
        .iter()
        .find(|step| step.name == "qr1000")
        .unwrap();
    let missed: Vec<&str> = view
        .cells
        .iter()
        .zip(&step.outcomes)
        .filter(|(_, outcome)| outcome.status == Status::SlaMissed)
        .map(|(cell, _)| cell.label.as_str())
        .collect();
    assert_eq!(missed, ["sqlite.wal_off"]);
    let is_missed = |of: &&Said| of.test == "qr1000" && of.to == missed[0];
    let all = post.sentences();
    assert!(!all.iter().flat_map(|of| &of.cells).any(|of| is_missed(&of)));
    let text: String = all.iter().map(|of| format!("{}\n", of.text)).collect();
    assert!(
        text.contains("missed 95% of their rate in qr1000 of sqlite.wal_off"),
        "{text}"
    );
    let table = post
        .tables
        .iter()
        .find(|of| of.name.contains("relative"))
        .unwrap();
    let column = table
        .columns
        .iter()
        .position(|(name, _)| name == missed[0])
        .unwrap();
    let mut rows = table.groups.iter().flat_map(|of| &of.rows);
    let cell = &rows.find(|row| row.label == "qr1000").unwrap().cells[column];
    assert_eq!((cell.text.as_str(), cell.mark), ("-", "*"));
}

/// A level of a ramp without response times.
fn ramp_level(rate: f64, status: Status) -> RampLevel {
    RampLevel {
        status,
        rate: Some(rate),
        tps: None,
        service_us: [None; 4],
        p99_response_us: None,
        excluded_wait_s: None,
        is_lower_bound: false,
    }
}

#[test]
fn a_ramp_has_its_peaks_and_the_gain_before_them() {
    let mut view = view(&common::sample(4).load());
    let cell = |rates: [f64; 3]| RampCell {
        levels: rates.map(|rate| ramp_level(rate, Status::Ok)).to_vec(),
        peak: rates
            .iter()
            .enumerate()
            .max_by(|a, b| a.1.total_cmp(b.1))
            .map(|(place, _)| place),
        knee: None,
    };
    let base = cell([100_000.0, 1_200_000.0, 1_100_000.0]);
    let faster = cell([150_000.0, 1_500_000.0, 1_837_000.0]);
    view.summary.ramps = vec![Ramp {
        test: "point-query".to_owned(),
        rate: view.steps[0].rate,
        events: "transactions",
        users: vec![32, 512, 1024],
        cells: vec![base.clone(), faster, base.clone(), base],
    }];
    let post = written(&view);
    let section = post
        .sections
        .iter()
        .find(|of| of.title.ends_with("over users"))
        .unwrap();
    let text: String = post
        .sentences()
        .iter()
        .map(|of| format!("{}\n", of.text))
        .collect();
    for said in [
        "at 32 users, where none is above half of its peak and throughput follows response time: \
         sqlite.wal_off at 1.50 of sqlite.wal_full",
        "sqlite.wal_full peaks at over 1.2M rows/s with 512 users",
        "sqlite.wal_off peaks at over 1.8M rows/s with 1024 users (the most that were run): 1.5X \
         the peak of sqlite.wal_full",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    let lines = section.parts.iter().find_map(|part| match part {
        Part::Figure(figure) => Some(figure),
        _ => None,
    });
    assert!(
        matches!(&lines.unwrap().form, Form::Lines { x, series, .. } if x.len() == 3 && series.len() == 4)
    );
}

/// What throughput does not show: latency of each group, and where CPU went.
#[test]
fn latency_and_profiles_have_figures() {
    let mut view = view(&common::sample(4).load());
    let figures = |view: &View| -> Vec<(String, String)> {
        let post = written(view);
        let text = to_post_markdown(&post);
        assert!(text.contains("plimsoll run plan.toml --seed"), "{text}");
        let parts = post.sections.into_iter().flat_map(|of| of.parts);
        parts
            .filter_map(|part| match part {
                Part::Figure(figure) => Some((figure.title, figure.alt)),
                _ => None,
            })
            .collect()
    };
    let before = figures(&view);
    let latency: Vec<_> = before
        .iter()
        .filter(|(title, _)| title.contains("latency relative to"))
        .collect();
    assert!(!latency.is_empty(), "{before:?}");
    assert!(
        latency[0].1.contains("percentile of"),
        "the alt text has its range: {:?}",
        latency[0]
    );
    assert!(
        !before
            .iter()
            .any(|(title, _)| title.contains("by function"))
    );

    let node = |base_us: f64, cell_us: f64| FlameNode {
        base_us,
        cell_us,
        ..FlameNode::default()
    };
    let mut tree = node(10.0, 14.0);
    tree.calls
        .insert("btree_search".to_owned(), node(10.0, 14.0));
    let about = ProfileAbout::default();
    view.profiles = vec![Profiled {
        step: view.steps[0].name.clone(),
        cell: 1,
        base_label: view.cells[0].label.clone(),
        cell_label: view.cells[1].label.clone(),
        base: about.clone(),
        about,
        is_judged: false,
        functions: Vec::new(),
        tree,
        reason: None,
        doubt: None,
    }];
    let with = figures(&view);
    let flames: Vec<_> = with
        .iter()
        .filter(|(title, _)| title.contains("server CPU by function"))
        .collect();
    assert_eq!(flames.len(), 1, "{with:?}");
    assert!(flames[0].1.contains("14.00 us/op"), "{:?}", flames[0]);
    // One that is not to be trusted is not drawn.
    view.profiles[0].doubt = Some("it says another thing".to_owned());
    assert_eq!(figures(&view), before);
}

/// The sentences of lists with this in their heading.
fn under(post: &Post, heading: &str) -> Vec<String> {
    let parts = post.sections.iter().flat_map(|of| &of.parts);
    let lists = parts.filter_map(|part| match part {
        Part::List(list) if list.heading.contains(heading) => Some(list),
        _ => None,
    });
    lists
        .flat_map(|list| &list.bullets)
        .map(|bullet| bullet.sentence.text.clone())
        .collect()
}

/// Each config stands against the base by its name, and none is called a version.
#[test]
fn configs_are_not_versions() {
    let post = written(&view(&common::sample(4).load()));
    let text: String = post
        .sentences()
        .iter()
        .map(|of| format!("{}\n", of.text))
        .collect();
    for wrong in ["per version", " versions", "from one to the next"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    assert!(text.contains("one run per config"), "{text}");
    for config in ["wal_off", "wal_normal"] {
        let heading = format!("By step, sqlite.{config} vs sqlite.wal_full");
        let has_any = !under(&post, &heading).is_empty();
        let is_there = text.contains(&format!("sqlite.{config}"));
        assert_eq!(has_any, is_there, "{heading}: {text}");
    }
}

/// A level without a rate, or one that was disturbed, is not a peak, and zeros have no sentence.
#[test]
fn levels_that_count_for_nothing_are_no_peak() {
    let mut view = view(&common::sample(4).load());
    let of = |levels: [(f64, Status); 2]| RampCell {
        levels: levels
            .map(|(rate, status)| ramp_level(rate, status))
            .to_vec(),
        peak: Some(1),
        knee: Some(0),
    };
    let zeros = of([(0.0, Status::Ok); 2]);
    let disturbed = of([(5_000.0, Status::Ok), (9_000.0, Status::Suspect)]);
    view.summary.ramps = vec![Ramp {
        test: "point-query".to_owned(),
        rate: view.steps[0].rate,
        events: "transactions",
        users: vec![1, 2],
        cells: vec![disturbed, zeros.clone(), zeros.clone(), zeros.clone()],
    }];
    let said = under(&written(&view), "Summary");
    let peaks: Vec<&String> = said.iter().filter(|text| text.contains("peaks")).collect();
    assert_eq!(
        peaks,
        ["sqlite.wal_full peaks at over 5.0K rows/s with 1 user"]
    );
    // Zeros alone have no section.
    view.summary.ramps[0].cells = vec![zeros; 4];
    let post = written(&view);
    assert!(
        !post
            .sections
            .iter()
            .any(|of| of.title.contains("over users"))
    );
}
