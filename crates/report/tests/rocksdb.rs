//! RocksDB's versions side by side in every output, and in the originals' files.

mod common;

use std::fs;
use std::path::Path;

use plimsoll_report::{Options, View, analyse, show_json, to_classic_files, to_csv, to_html, to_json, to_markdown, to_terminal};

fn view() -> View {
    analyse(&[common::rocksdb::sample().load()], &Options::default()).unwrap()
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{name} differs; UPDATE_GOLDEN=1 rewrites it:\n{text}");
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
        .map(|group| (group.title.as_str(), group.cells.iter().map(|cell| view.cells[*cell].label.as_str()).collect()))
        .collect();
    let expected = [("lc", vec!["rocksdb@8.0.0.lc", "rocksdb@10.10.1.lc"]), ("uc", vec!["rocksdb@8.0.0.uc", "rocksdb@10.10.1.uc"])];
    assert_eq!(groups, expected, "10 comes after 8");
    let tests: Vec<&str> = view.version_groups[0].tests.iter().map(|test| test.step.as_str()).collect();
    assert!(tests.contains(&"fillseq.wal_disabled.v400") && !tests.iter().any(|test| test.contains("overwritesome")), "{tests:?}");
    let last = &view.version_groups[1].tests.last().unwrap().ratios;
    assert_eq!(last[0], Some(1.0));
    assert_eq!(last[1], None, "it failed");
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
    assert!(!page.contains("rows/s inserted in the background"), "it inserts no rows");
}

#[test]
fn metrics_of_a_step() {
    let json = show_json(&view());
    let of = |cell: &str, step: &str| {
        let results = json["results"].as_array().unwrap();
        results.iter().find(|result| result["cell"] == cell && result["step"] == step).unwrap()["metrics"].clone()
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
        let found = read[name]["value"].as_f64().unwrap_or_else(|| panic!("{name}: {}", read[name]));
        assert!((found - value).abs() <= value * 1e-6, "{name}: {found} and not {value}");
    }
    let multi = of("rocksdb@8.0.0.lc", "multireadrandom.t2");
    assert!((multi["qps"]["value"].as_f64().unwrap() - 120_000.0).abs() < 1.0, "keys, not calls: {}", multi["qps"]);
    let fill = of("rocksdb@8.0.0.lc", "fillseq.wal_disabled.v400");
    assert_eq!(fill["reads_per_s"]["unavailable"], "the step reads nothing");
    let text = to_json(&view());
    assert!(text.contains("\"w_amp_sum\""), "the catalogue is in it");
    assert!(to_csv(&view()).contains("rocksdb@8.0.0.lc,readwhilewriting.t2,1,1,ok,c_wsecs,2.1,s,"));
}

#[test]
fn native_results_in_the_originals_files() {
    let files = to_classic_files(&common::rocksdb::sample().load(), &Options::default()).unwrap();
    let text: String = files.iter().map(|file| format!("== {}\n{}", file.path, file.text)).collect();
    compare("rocksdb_export.txt", &text);
    for file in files.iter().filter(|file| file.path.ends_with("report.tsv") || file.path.ends_with("summary.tsv")) {
        assert!(file.text.starts_with("# native"), "{}", file.path);
        let rows = file.text.lines().filter(|line| line.contains('\t'));
        assert!(rows.clone().all(|row| row.split('\t').count() == 28) && rows.count() > 8, "{}", file.path);
    }
    // A block has a row for each version, also where one has no result.
    let summary = files.iter().find(|file| file.path == "bm.uc/summary.tsv").unwrap();
    let last = summary.text.trim_end().rsplit("\n\n").next().unwrap();
    assert_eq!(last.lines().count(), 3);
    assert!(last.lines().last().unwrap().starts_with("failed\t"), "{last}");
}
