//! RocksDB's versions side by side in every output, and in the originals' files.

use std::fs;
use std::path::Path;

use plimsoll_analysis::{
    GateRequest, Options, Stored, View, analyse, explain, gate, verdict_lines,
};
use plimsoll_core::plan::Plan;
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_report::{
    show_json, to_classic_files, to_csv, to_html, to_json, to_markdown, to_terminal,
};
use plimsoll_store::{Confirm, Design};

use crate::common;

fn view() -> View {
    let campaign = common::rocksdb::sample();
    let record = common::in_default_store(campaign.load());
    analyse(&[record], &Options::default()).unwrap()
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == text,
        "{name} differs; UPDATE_GOLDEN=1 rewrites it:\n{text}"
    );
}

#[test]
fn terminal_and_markdown() {
    let view = view();
    compare("rocksdb.txt", &to_terminal(&view, false));
    compare("rocksdb.md", &to_markdown(&view));
}

#[test]
fn each_config_is_a_group_with_its_own_base() {
    let view = view();
    let groups: Vec<(&str, Vec<&str>)> = view
        .version_groups
        .iter()
        .map(|group| {
            (
                group.title.as_str(),
                group
                    .cells
                    .iter()
                    .map(|cell| view.cells[*cell].label.as_str())
                    .collect(),
            )
        })
        .collect();
    let expected = [
        ("lc", vec!["rocksdb@8.0.0.lc", "rocksdb@10.10.1.lc"]),
        ("uc", vec!["rocksdb@8.0.0.uc", "rocksdb@10.10.1.uc"]),
    ];
    assert_eq!(groups, expected, "10 comes after 8");
    let tests: Vec<&str> = view.version_groups[0]
        .tests
        .iter()
        .map(|test| test.step.as_str())
        .collect();
    assert!(
        tests.contains(&"fillseq.wal_disabled.v400")
            && !tests.iter().any(|test| test.contains("overwritesome")),
        "{tests:?}"
    );
    let last = &view.version_groups[1].tests.last().unwrap().ratios;
    assert_eq!(last[0], Some(1.0));
    assert_eq!(last[1], None, "it failed");
}

#[test]
fn each_version_is_judged_against_the_base_of_its_own_config() {
    let record = common::rocksdb::sample().load();
    let view = analyse(std::slice::from_ref(&record), &Options::default()).unwrap();
    let label = |cell: usize| view.cells[cell].label.as_str();
    let mut against: Vec<(&str, &str)> = view
        .findings
        .all
        .iter()
        .map(|of| (label(of.cell), label(of.base)))
        .collect();
    against.dedup();
    assert_eq!(
        against,
        [
            ("rocksdb@10.10.1.lc", "rocksdb@8.0.0.lc"),
            ("rocksdb@10.10.1.uc", "rocksdb@8.0.0.uc")
        ]
    );
    let lines = verdict_lines(&view);
    assert!(
        lines.starts_with("Survey against rocksdb@8.0.0.lc and rocksdb@8.0.0.uc, one run each"),
        "{lines}"
    );
    assert!(
        lines.contains("rocksdb@10.10.1.uc vs rocksdb@8.0.0.uc  unusual  -20.0 %"),
        "{lines}"
    );
    let page = to_html(&view);
    assert!(
        page.contains("rocksdb@10.10.1.uc vs rocksdb@8.0.0.uc"),
        "in the matrix and in the words"
    );
    assert!(
        to_markdown(&view)
            .contains("| rocksdb@10.10.1.uc vs rocksdb@8.0.0.uc | unusual | -20.0 % |")
    );
    let json = show_json(&view);
    let of_uc = json["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .find(|of| of["cell"] == "rocksdb@10.10.1.uc")
        .unwrap();
    assert_eq!(of_uc["base"], "rocksdb@8.0.0.uc");

    let step = "fillseq.wal_disabled.v400";
    for (a, b, base, cell) in [
        (
            None,
            Some("rocksdb@10.10.1.uc"),
            "rocksdb@8.0.0.uc",
            "rocksdb@10.10.1.uc",
        ),
        (
            Some("rocksdb@8.0.0.lc"),
            None,
            "rocksdb@8.0.0.lc",
            "rocksdb@10.10.1.lc",
        ),
        (
            Some("rocksdb@8.0.0.lc"),
            Some("rocksdb@8.0.0.uc"),
            "rocksdb@8.0.0.lc",
            "rocksdb@8.0.0.uc",
        ),
        (
            None,
            Some("rocksdb@8.0.0.uc"),
            "rocksdb@8.0.0.lc",
            "rocksdb@8.0.0.uc",
        ),
    ] {
        let explained = explain(&record, &Stored::default(), step, a, b).unwrap();
        assert_eq!(
            (explained.base.as_str(), explained.cell.as_str()),
            (base, cell),
            "{a:?} {b:?}"
        );
    }
    let largest = explain(&record, &Stored::default(), step, None, None).unwrap();
    assert_eq!(
        largest.base.replace("8.0.0", "10.10.1"),
        largest.cell,
        "a cell against its own base"
    );
    assert_eq!(
        gate(
            &record,
            &Stored::default(),
            &GateRequest::new(&["rocksdb@10.10.1.uc", "rocksdb@10.10.1.lc"], 0.05)
        )
        .unwrap()
        .candidates,
        [
            ("rocksdb@10.10.1.uc", "rocksdb@8.0.0.uc"),
            ("rocksdb@10.10.1.lc", "rocksdb@8.0.0.lc")
        ]
        .map(|(candidate, base)| (candidate.to_owned(), base.to_owned()))
    );
}

#[test]
fn configs_of_one_build_are_set_beside_each_other() {
    let view = analyse(
        &[common::rocksdb::of_one_build().load()],
        &Options::default(),
    )
    .unwrap();
    let of_table = |part: &str| {
        part.contains("relative to the base") && part.contains("col-1 : rocksdb@8.0.0.uc")
    };
    let of_page = |page: &str| {
        page.contains("relative to the base") && page.contains("rocksdb@8.0.0.uc</abbr></th>")
    };
    let terminal = to_terminal(&view, false);
    assert!(
        of_table(&terminal) && terminal.contains("0.70  readrandom.t2"),
        "{terminal}"
    );
    assert!(
        terminal.contains("col-1 : rocksdb@8.0.0.lc\ncol-2 : rocksdb@8.0.0.uc\n"),
        "one table of rates: {terminal}"
    );
    assert!(of_table(&to_markdown(&view)) && of_page(&to_html(&view)));
    assert!(
        !to_html(&view).contains("a line per test"),
        "one version has no figure over versions"
    );
    assert!(
        view.findings
            .all
            .iter()
            .all(|finding| (finding.cell, finding.base) == (1, 0))
            && !view.findings.is_empty()
    );
}

#[test]
fn ratios_to_a_disturbed_base_are_marked() {
    let campaign = common::Campaign::new("20261122T080000Z-rocks", common::rocksdb::PLAN);
    common::rocksdb::fill(&campaign, &|label, made| {
        if label == "rocksdb@8.0.0.lc" && made.done.step == "readrandom.t2" {
            let all = made.done.host[HostReading::CpuTotal].value().unwrap();
            made.done
                .host
                .put(HostReading::CpuSteal, Reading::Ok(all * 0.05));
        }
    });
    let view = analyse(&[campaign.load()], &Options::default()).unwrap();
    let text =
        |table: usize, row: usize| view.published[table].sections[0].rows[row].cells[0].clone();
    assert_eq!(
        (text(0, 0).text(), text(0, 1).text(), text(1, 1).text()),
        ("0.80".into(), "1.00?".into(), "1.00".into())
    );
    assert!(text(0, 1).reason.unwrap().starts_with("the base: "));
}

#[test]
fn a_control_is_no_version_of_its_own() {
    let control = "rocksdb@8.0.0.lc#2";
    let confirm = Confirm {
        base: "rocksdb@8.0.0.lc".to_owned(),
        control: control.to_owned(),
        steps: vec!["readrandom.t2".to_owned()],
        ..common::confirm::design(Design::Blocks, 1)
    };
    let with_control = |plan: &mut Plan| {
        let mut again = plan.cells[0].clone();
        again.label = control.to_owned();
        plan.cells.push(again);
    };
    let campaign = common::Campaign::with_plan(
        "20261122T090000Z-rocks-confirm",
        common::rocksdb::PLAN,
        Some(confirm),
        with_control,
    );
    common::rocksdb::fill(&campaign, &|_, _| {});
    let view = analyse(&[campaign.load()], &Options::default()).unwrap();
    assert!(view.cells.iter().any(|cell| cell.label == control));
    assert!(view.version_groups.iter().all(|group| {
        group.cells.len() == 2
            && group
                .cells
                .iter()
                .all(|cell| view.cells[*cell].label != control)
    }));
    assert!(
        view.published
            .iter()
            .flat_map(|table| &table.columns)
            .all(|column| !column.contains(control))
    );
    assert!(
        view.findings.all.iter().all(|finding| finding.base == 0),
        "a confirm has one base"
    );
}

#[test]
fn the_page_has_figures_for_each_group_and_the_tree() {
    let page = to_html(&view());
    for part in [
        "lc: throughput relative to rocksdb@8.0.0.lc",
        "uc: throughput relative to rocksdb@8.0.0.uc",
        "Shape of the tree",
        "L7 120 files 120 MiB",
        "writes/s in the background",
        "IGNORED by rocksdb@10.10.1.lc, rocksdb@10.10.1.uc: block_cache_low_pri_pool_ratio",
    ] {
        assert!(page.contains(part), "no {part:?}");
    }
    assert!(
        !page.contains("rows/s inserted in the background"),
        "it inserts no rows"
    );
}

#[test]
fn metrics_of_a_step() {
    let json = show_json(&view());
    let of = |cell: &str, step: &str| {
        let results = json["results"].as_array().unwrap();
        results
            .iter()
            .find(|result| result["cell"] == cell && result["step"] == step)
            .unwrap()["metrics"]
            .clone()
    };
    let read = of("rocksdb@8.0.0.lc", "readwhilewriting.t2");
    for (name, value) in [
        ("qps", 120_000.0),
        ("reads_per_s", 120_000.0),
        ("rate_share", 1.0),
        ("mb_sec", 120_000.0 * 420.0 / 1_048_576.0),
        ("w_amp", 47.37 / 12.06),
        ("n_stall", 16.0),
        ("stall_pct", 10.2),
        ("space_amp", 240.0 * 1_048_576.0 / 168e6),
        ("user_cpu_s", 16.0),
        ("found_ratio", 1.0),
    ] {
        let found = read[name]["value"]
            .as_f64()
            .unwrap_or_else(|| panic!("{name}: {}", read[name]));
        assert!(
            (found - value).abs() <= value * 1e-6,
            "{name}: {found} and not {value}"
        );
    }
    let multi = of("rocksdb@8.0.0.lc", "multireadrandom.t2");
    assert!(
        (multi["qps"]["value"].as_f64().unwrap() - 120_000.0).abs() < 1.0,
        "keys, not calls: {}",
        multi["qps"]
    );
    let fill = of("rocksdb@8.0.0.lc", "fillseq.wal_disabled.v400");
    assert_eq!(fill["reads_per_s"]["unavailable"], "the step reads nothing");
    let text = to_json(&view());
    assert!(text.contains("\"w_amp_sum\""), "the catalogue is in it");
    assert!(to_csv(&view()).contains("rocksdb@8.0.0.lc,readwhilewriting.t2,1,1,ok,c_wsecs,2.1,s,"));
}

#[test]
fn native_results_in_the_originals_files() {
    let files = to_classic_files(&common::rocksdb::sample().load(), &Options::default()).unwrap();
    let text: String = files
        .iter()
        .map(|file| format!("== {}\n{}", file.path, file.text))
        .collect();
    compare("rocksdb_export.txt", &text);
    for file in files
        .iter()
        .filter(|file| file.path.ends_with("report.tsv") || file.path.ends_with("summary.tsv"))
    {
        assert!(file.text.starts_with("# native"), "{}", file.path);
        let rows = file.text.lines().filter(|line| line.contains('\t'));
        assert!(
            rows.clone().all(|row| row.split('\t').count() == 28) && rows.count() > 8,
            "{}",
            file.path
        );
    }
    // A block has a row for each version, also where one has no result.
    let summary = files
        .iter()
        .find(|file| file.path == "bm.uc/summary.tsv")
        .unwrap();
    let last = summary.text.trim_end().rsplit("\n\n").next().unwrap();
    assert_eq!(last.lines().count(), 3);
    assert!(
        last.lines().last().unwrap().starts_with("failed\t"),
        "{last}"
    );
}
