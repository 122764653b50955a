//! `import`, `export` and `compare`: from trees of foreign results to files that equal the
//! published ones byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_testkit::archive;
use serde_json::Value;

use crate::support::{Place, text};

const ARCHIVED: [&str; 8] = [
    "my5651", "my5744", "my8043", "my8044", "my8406", "my8407", "my9400", "my9500",
];

pub(crate) fn json(place: &Place, arguments: &[&str]) -> Value {
    let output = place.run(arguments);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

/// Ids of the campaigns that came of a path.
pub(crate) fn import(place: &Place, path: &Path, options: &[&str]) -> Vec<String> {
    let arguments = [&["import", path.to_str().unwrap(), "--json"], options].concat();
    let value = json(place, &arguments);
    value["imports"][0]["campaigns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|campaign| campaign["id"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn export(place: &Place, campaign: &str, builds: &str) -> PathBuf {
    let out = place.path(&format!(
        "out-{campaign}-{}",
        builds.replace([',', '.'], "_")
    ));
    let mut arguments = vec!["export", campaign, "--classic", out.to_str().unwrap()];
    if !builds.is_empty() {
        arguments.extend(["--builds", builds]);
    }
    let output = place.run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    out
}

fn assert_same(found: &Path, published: &Path) {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    assert_eq!(read(found), read(published), "{}", published.display());
}

pub(crate) fn copy(from: &Path, to: &Path, is_wanted: impl Fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if is_wanted(&name) {
            fs::copy(from.join(&name), to.join(&name)).unwrap();
        }
    }
}

#[test]
fn nov25_comes_out_as_published() {
    let Some(folder) = archive(
        "cli::import::nov25_comes_out_as_published",
        "mytools/nov25.sb.mysql/dop1",
    ) else {
        return;
    };
    let place = Place::new();
    // Without the published tables of rates: every cell comes from an output.
    let tree = place.path("dop1");
    for entry in fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.starts_with("x.") {
            copy(&folder.join(&name), &tree.join(&name), |_| true);
        }
    }
    // The load has no files of its own in this archive: its block is in the summary alone.
    fs::copy(folder.join("o.met.all"), tree.join("o.met.all")).unwrap();
    let ids = import(&place, &tree, &[]);
    let out = export(&place, &ids[0], &ARCHIVED.join(","));
    for file in [
        "qps.abs.all.tsv",
        "qps.abs.all.csv",
        "qps.rel.all.tsv",
        "qps.rel.all.csv",
        "o.met.all",
    ] {
        assert_same(&out.join(file), &folder.join(file));
    }
    let of_build = "x.my9500_rel_o2nofp.z12a_c8r32.pk1/sb.met.scan.range100.pk1.dop1";
    assert_same(&out.join(of_build), &folder.join(of_build));

    // Without the summary all blocks but the load's come from single files.
    fs::remove_file(tree.join("o.met.all")).unwrap();
    let ids = import(&place, &tree, &[]);
    let out = export(&place, &ids[0], &ARCHIVED.join(","));
    let published = fs::read_to_string(folder.join("o.met.all")).unwrap();
    let (_, tests) = published.split_once("\n\n").unwrap();
    assert_eq!(fs::read_to_string(out.join("o.met.all")).unwrap(), tests);

    // What is exported can be imported again, and comes out the same.
    let again = import(&place, &out, &[]);
    let out_again = export(&place, &again[0], "");
    for file in ["qps.abs.all.tsv", "qps.rel.all.csv", "o.met.all"] {
        assert_same(&out_again.join(file), &out.join(file));
    }
}

#[test]
fn relative_tables_of_dec25_follow_from_absolute_ones() {
    let test = "cli::import::relative_tables_of_dec25_follow_from_absolute_ones";
    let Some(folder) = archive(test, "mytools/dec25.sb.socket.my") else {
        return;
    };
    let place = Place::new();
    let tree = place.path("dec25");
    copy(&folder, &tree, |name| {
        name.starts_with("qps.abs.") && name.ends_with(".tsv") || name == "o.met.my.all"
    });
    let ids = import(&place, &tree, &[]);
    for (tag, builds) in [
        ("my.latest", "my5651,my5744,my8044,my8407,my9400,my9500"),
        ("80plus", "my8044,my8407,my9400,my9500"),
        ("my.80", "my8043,my8044"),
        ("my.84", "my8406,my8407"),
        ("my.84plus", "my8407,my9400,my9500"),
    ] {
        let out = export(&place, &ids[0], builds);
        for (kind, end) in [
            ("abs", "tsv"),
            ("abs", "csv"),
            ("rel", "tsv"),
            ("rel", "csv"),
        ] {
            assert_same(
                &out.join(format!("qps.{kind}.all.{end}")),
                &folder.join(format!("qps.{kind}.{tag}.{end}")),
            );
        }
    }
    assert_same(
        &export(&place, &ids[0], "").join("o.met.all"),
        &folder.join("o.met.my.all"),
    );
}

/// What the post of this archive says, from its own numbers: percentages come from rounded ratios,
/// and steps from 5.7 on are counted down at 0.96 or less, up at 1.06 or more.
#[test]
fn prose_of_dec25() {
    let Some(folder) = archive("cli::import::prose_of_dec25", "mytools/dec25.sb.socket.my") else {
        return;
    };
    let place = Place::new();
    let ids = import(&place, &folder, &[]);
    let shown = json(&place, &["show", &ids[0], "--json"]);
    let classic = |build: &str, step: &str, metric: &str| -> f64 {
        let is_it = |result: &&Value| {
            result["cell"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{build}_"))
                && result["step"].as_str().unwrap() == step
        };
        let result = shown["results"]
            .as_array()
            .unwrap()
            .iter()
            .find(is_it)
            .unwrap();
        result["metrics"][metric]["classic"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let percent = |from: &str, to: &str, step: &str, metric: &str| {
        100.0 * (classic(to, step, metric) / classic(from, step, metric) - 1.0)
    };
    let rounded = |build: &str, step: &str, metric: &str| -> f64 {
        format!(
            "{:.2}",
            classic(build, step, metric) / classic("my5651", step, metric)
        )
        .parse()
        .unwrap()
    };
    let by_rounded = |from: &str, to: &str, step: &str, metric: &str| {
        100.0 * (rounded(to, step, metric) / rounded(from, step, metric) - 1.0)
    };
    let (hot, scan, count, insert) = ("hot-points", "scan", "read-only-count", "insert");
    let near = |found: f64, said: f64| {
        assert!(
            (found - said).abs() < 0.55,
            "{found} is not the {said} of the post"
        )
    };
    near(percent("my5651", "my5744", hot, "cpupo"), -35.0);
    near(by_rounded("my5744", "my8043", hot, "cpupo"), 23.0);
    near(percent("my5651", "my5744", scan, "cpupo"), 11.0);
    near(percent("my5744", "my8043", scan, "cpupo"), 15.0);
    near(percent("my5651", "my5744", count, "cpupo"), 16.0);
    near(by_rounded("my5744", "my8043", count, "cpupo"), 15.0);
    near(percent("my5651", "my5744", insert, "cpupo"), -30.0);
    near(by_rounded("my5744", "my8043", insert, "cpupo"), 36.0);
    near(percent("my8406", "my9500", insert, "cpupo"), 3.0);
    near(by_rounded("my8406", "my9500", insert, "cspq"), 23.0);
    // The exception: with 8.0.44 the exact growth is another one.
    assert!(percent("my5744", "my8044", count, "cpupo") < 12.0);

    // Tests by group with the ratio of two builds: up, same, down.
    let counts = |from: &str, to: &str, group: &[(&str, u32)]| -> [usize; 3] {
        let mut counts = [0; 3];
        for (test, range) in group {
            let is_named = ["random-points", "read-only", "read-write"].contains(test);
            let step = if is_named {
                format!("{test}_range={range}")
            } else {
                (*test).to_owned()
            };
            let ratio: f64 = format!(
                "{:.2}",
                classic(to, &step, "qps") / classic(from, &step, "qps")
            )
            .parse()
            .unwrap();
            counts[if ratio >= 1.06 {
                0
            } else if ratio <= 0.96 {
                2
            } else {
                1
            }] += 1;
        }
        counts
    };
    let tests = &plimsoll_core::plan::published::PUBLISHED;
    let (point, range_2, writes) = (&tests[..9], &tests[14..22], &tests[22..]);
    assert_eq!(counts("my5651", "my5744", point), [5, 2, 2]);
    assert_eq!(counts("my5651", "my5744", range_2), [2, 1, 5]);
    assert_eq!(counts("my5651", "my5744", writes), [9, 1, 0]);
    assert_eq!(counts("my8407", "my9500", writes), [0, 2, 8]);
    assert_eq!(counts("my5651", "my9500", writes), [2, 3, 5]);
    // "Regressions for all writes from 5.7 to 8.0" has an exception.
    assert_eq!(counts("my5744", "my8044", writes), [0, 1, 9]);
    let inlist = "update-inlist";
    assert_eq!(
        (
            classic("my5744", inlist, "qps"),
            classic("my8044", inlist, "qps")
        ),
        (31366.0, 31280.0)
    );
}

#[test]
fn metrics_of_feb25_come_out_of_raw_samples() {
    let test = "cli::import::metrics_of_feb25_come_out_of_raw_samples";
    let Some(folder) = archive(
        test,
        "mytools/feb25.pg.flat/x.pg1023_o2nofp.x10a_c32r128.pk1",
    ) else {
        return;
    };
    let place = Place::new();
    let name = folder.file_name().unwrap();
    // Without any metrics file, the device is named; scans of that time need a witness, so theirs
    // stays.
    let tree = place.path("feb25").join(name);
    copy(&folder, &tree, |file| {
        !file.starts_with("sb.met.") || file.starts_with("sb.met.scan.")
    });
    let ids = import(&place, tree.parent().unwrap(), &["--device", "md2"]);
    let out = export(&place, &ids[0], "").join(name);
    let mut tests = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        if file.starts_with("sb.met.") {
            assert_same(&out.join(&file), &folder.join(&file));
            tests += 1;
        }
    }
    assert_eq!(tests, 8);
    // Which of ten devices is meant is not guessed.
    fs::remove_file(tree.join("sb.met.scan.range100.pk1.dop40")).unwrap();
    let output = place.run(&["import", tree.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        text(&output.stdout).contains("name it with --device"),
        "{}",
        text(&output.stdout)
    );
}

/// The files that `export --classic` writes of a native campaign of two versions and two configs.
const EXPORTED: &str = include_str!("../../../report/tests/golden/rocksdb_export.txt");

#[test]
fn what_was_exported_of_rocksdb_comes_back_once_and_says_whose_it_is() {
    let place = Place::new();
    let tree = place.path("out");
    for file in EXPORTED.split("== ").skip(1) {
        let (path, content) = file.split_once('\n').unwrap();
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    for (path, cells) in [("out", 4), ("out/bm.uc", 2)] {
        let run = place.run(&["import", path, "--json"]);
        assert_eq!(
            run.status.code(),
            Some(0),
            "{}{}",
            text(&run.stdout),
            text(&run.stderr)
        );
        let value: Value = serde_json::from_slice(&run.stdout).unwrap();
        let [campaign] = &value["imports"][0]["campaigns"].as_array().unwrap()[..] else {
            panic!("{value}")
        };
        // A report of each version, a list of all, and the tables that follow from it, for each
        // config.
        let found = ["results", "files_read", "files_passed_over"]
            .map(|count| campaign[count].as_u64().unwrap());
        assert_eq!(found, [9 * cells, cells + cells / 2, cells], "{campaign}");
        let labels: Vec<&str> = campaign["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell.as_str().unwrap())
            .collect();
        assert!(
            labels.contains(&"rocksdb@10.10.1.uc") && labels.len() as u64 == cells,
            "{labels:?}"
        );
        let shown = text(
            &place
                .run(&["show", campaign["id"].as_str().unwrap()])
                .stdout,
        );
        assert!(
            shown.contains("RocksDB db_bench results exported by Plimsoll"),
            "{shown}"
        );
        assert!(
            shown
                .contains("note: Exported by Plimsoll: native: measured by plimsoll's own threads"),
            "{shown}"
        );
    }
}

#[test]
fn rocksdb_tables_of_nov23_follow_from_summaries() {
    let test = "cli::import::rocksdb_tables_of_nov23_follow_from_summaries";
    let Some(folder) = archive(test, "mytools/nov23.u.db_bench.8x/u5") else {
        return;
    };
    for set in ["byrx.8x", "iobuf.8x", "iodir.8x"] {
        let place = Place::new();
        let tree = place.path("u5");
        copy(&folder, &tree, |name| name == format!("sum.{set}.txt"));
        let ids = import(&place, &tree, &[]);
        let out = export(&place, &ids[0], "");
        assert_same(
            &out.join(format!("abs.{set}.tsv")),
            &folder.join(format!("abs.{set}.tsv")),
        );
        assert_same(
            &out.join(format!("rel2.{set}.csv")),
            &folder.join(format!("rel2.{set}.csv")),
        );
        // The rows of every version come out as they stood in the summary.
        let summary = fs::read_to_string(folder.join(format!("sum.{set}.txt"))).unwrap();
        let report = fs::read_to_string(out.join("8.8.fb.gcc/report.tsv")).unwrap();
        assert_eq!(report.lines().count(), 11);
        assert!(
            report
                .lines()
                .all(|row| summary.lines().any(|line| line == row)),
            "{report}"
        );
    }
}

#[test]
fn merged_tables_of_2021_follow_from_summaries() {
    let Some(folder) = archive(
        "cli::import::merged_tables_of_2021_follow_from_summaries",
        "mytools/ibench.jan2021/20m",
    ) else {
        return;
    };
    let place = Place::new();
    let tree = place.path("20m");
    copy(&folder, &tree, |name| name.starts_with("o.sum.t."));
    let ids = import(&place, &tree, &[]);
    let all = export(&place, &ids[0], "");
    for entry in fs::read_dir(&tree).unwrap() {
        let name = entry.unwrap().file_name();
        assert_same(&all.join(&name), &folder.join(&name));
    }
    let mut tables = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let results = entry.unwrap().path();
        let Ok(merged) = fs::read_to_string(results.join("mrg.l.i0")) else {
            continue;
        };
        // The tags of the lines, and the separators between groups.
        let builds: Vec<&str> = merged
            .lines()
            .skip(1)
            .map(|line| line.rsplit('\t').next().unwrap())
            .collect();
        let out = export(&place, &ids[0], &builds.join(","));
        for file in fs::read_dir(&results).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".some") {
                assert_same(&out.join(&name), &results.join(&name));
                tables += 1;
            }
        }
    }
    assert_eq!(tables, 6 * 30 + 15);
}

#[test]
fn raw_client_output_of_17_fields() {
    let Some(folder) = archive(
        "cli::import::raw_client_output_of_17_fields",
        "insert_benchmark_17_fields",
    ) else {
        return;
    };
    let place = Place::new();
    let ids = import(&place, &folder, &[]);
    let shown = json(&place, &["show", &ids[0], "--json"]);
    let metric = |step: &str, name: &str| {
        let result = shown["results"]
            .as_array()
            .unwrap()
            .iter()
            .find(|result| result["step"] == step)
            .unwrap();
        result["metrics"][name].clone()
    };
    // Rows and queries over whole seconds of wall clock; over the client's own seconds beside it.
    for (step, name, classic, clean) in [
        ("l.i0", "ips", "57143", 57100.3),
        ("l.x", "ips", "100025", 400_100.0 / 2.8),
        ("l.i1", "ips", "9412", 160_000.0 / 17.0),
        ("qr100.L1", "ips", "100", 100.0),
        ("qr100.L1", "qps", "4190", 125_712.0 / 30.0),
        ("qr100.L1", "p50_rate", "3839", 3839.0),
        ("qr100.L1", "p99_rate", "2623", 2623.0),
        ("qr100.L1", "maxop", "0.005", 0.005_042),
    ] {
        let found = metric(step, name);
        assert_eq!(found["classic"], classic, "{step} {name}: {found}");
        let value = found["value"].as_f64().unwrap();
        assert!(
            (value / clean - 1.0).abs() < 0.07,
            "{step} {name}: {value}, not {clean}"
        );
    }
    // Averages of the samples, computed here once more from the text.
    let vmstat = fs::read_to_string(folder.join("qr100.L1/o.vm.dop1")).unwrap();
    let samples: Vec<f64> = vmstat
        .lines()
        .filter(|line| !line.starts_with("procs") && !line.contains("swpd"))
        .map(|line| line.split_whitespace().nth(11).unwrap().parse().unwrap())
        .collect();
    let counted = samples.len() + vmstat.matches("procs").count() - 1;
    assert_eq!(
        metric("qr100.L1", "csps")["classic"],
        format!("{:.0}", samples.iter().sum::<f64>() / counted as f64)
    );
    let clean = samples[1..].iter().sum::<f64>() / (samples.len() - 1) as f64;
    assert!((metric("qr100.L1", "csps")["value"].as_f64().unwrap() - clean).abs() < 1e-6);
    let iostat = fs::read_to_string(folder.join("qr100.L1/o.io.dop1")).unwrap();
    let writes: Vec<f64> = iostat
        .lines()
        .filter(|line| line.starts_with("vda"))
        .map(|line| line.split_whitespace().nth(7).unwrap().parse().unwrap())
        .collect();
    let mean = writes.iter().sum::<f64>() / writes.len() as f64;
    assert_eq!(
        metric("qr100.L1", "wpi")["classic"],
        format!("{:.3}", mean / 100.0)
    );
    // The response time tables of inserts and deletes, from the report.
    let report = json(&place, &["report", &ids[0], "--format", "json"]);
    let step = report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["step"] == "qr100.L1")
        .unwrap()
        .clone();
    let kinds: Vec<&str> = step["response_times"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| table["operation"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["query", "insert", "delete"]);
    let delete = &step["response_times"][2]["cells"][0];
    assert_eq!(
        (
            &delete["operations"],
            &delete["buckets"]["4ms"],
            &delete["max_s"]
        ),
        (&Value::from(60), &Value::from(53), &Value::from(0.005_906))
    );
    // The metrics line comes out with all its columns.
    let line = fs::read_to_string(export(&place, &ids[0], "").join("mrg.qr100.L1")).unwrap();
    let cells: Vec<&str> = line.lines().nth(1).unwrap().split('\t').collect();
    assert_eq!(
        (cells.len(), cells[0], cells[1], cells[17]),
        (21, "100", "4190", "0.005")
    );
}

#[test]
fn a_tree_imports_once() {
    let Some(folder) = archive(
        "cli::import::a_tree_imports_once",
        "mytools/nov25.sb.mysql/dop1",
    ) else {
        return;
    };
    let place = Place::new();
    let first = json(&place, &["import", folder.to_str().unwrap(), "--json"]);
    let again = json(&place, &["import", folder.to_str().unwrap(), "--json"]);
    let unit = |value: &Value| value["imports"][0]["campaigns"][0].clone();
    assert_eq!(unit(&first)["id"], unit(&again)["id"]);
    assert_eq!(
        (&unit(&first)["known"], &unit(&again)["known"]),
        (&Value::from(false), &Value::from(true))
    );
    assert_eq!(unit(&first)["passwords_stripped"], 342);
    assert_eq!(first["imports"][0]["left_out"], Value::Array(Vec::new()));
    // Another base is another way to look at the same tree: same id, other tables.
    let based = json(
        &place,
        &[
            "import",
            folder.to_str().unwrap(),
            "--json",
            "--base",
            "my8044",
        ],
    );
    assert_eq!(unit(&based)["id"], unit(&first)["id"]);
    assert_eq!(unit(&based)["base"], "my8044_rel_o2nofp.z12a_c8r32");
    let stored = fs::read_to_string(place.campaign().join("imported.json")).unwrap();
    assert!(!stored.contains("password=pw"));
    assert!(place.campaign().join("campaign.json").is_file());
}

/// Trees of our own making.
mod small {
    use std::os::unix::fs::symlink;

    use super::*;

    fn output(qps: &str) -> String {
        let count: f64 = qps.parse::<f64>().unwrap() * 100.0;
        format!(
            "sysbench --db-driver=mysql --table-size=1000 --tables=1 --threads=2 \
            /x/oltp_point_select.lua run --mysql-password=secret\n8 CPUs\n\
             sysbench 1.1.0-1 (using bundled LuaJIT)\n\nNumber of threads: 2\n\nSQL \
            statistics:\n    queries performed:\n        read:  1\n        write: 0\n        \
            other: 0\n        total: 1\n    transactions: {count:.0} ({qps} per sec.)\n    \
            queries: {count:.0} ({qps} per sec.)\n    ignored errors: 0 (0.00 per sec.)\n    \
            reconnects: 0 (0.00 per sec.)\n\nThroughput:\n    events/s (eps): {qps}\n    time \
            elapsed: 100.0000s\n    total number of events: {count:.0}\n\nLatency (ms):\n         \
            min: 0.10\n         avg: 0.20\n         max: 9.00\n         95th percentile: \
            0.30\n         sum: 1.00\n\nThreads fairness:\n    events (avg/stddev): 1.0/0.0\n    \
            execution time (avg/stddev): 1.0/0.0\n"
        )
    }

    fn write(tree: &Path, build: &str, file: &str, content: impl AsRef<[u8]>) {
        let folder = tree.join(format!("x.{build}_rel.z1_c2.pk1"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), content).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_listed_and_the_rest_is_imported() {
        let place = Place::new();
        let tree = place.path("tree");
        for (build, qps) in [
            ("my8000", "1000.00"),
            ("my5700", "2000.00"),
            ("my10000", "500.00"),
        ] {
            write(
                &tree,
                build,
                "sb.o.point-query.range100.pk1.dop2",
                output(qps),
            );
        }
        write(
            &tree,
            "my8000",
            "sb.o.insert.range100.pk1.dop2",
            "FATAL: mysql_drv_query() returned error 1114\n",
        );
        write(
            &tree,
            "my5700",
            "sb.o.insert.range100.pk1.dop2",
            output("100.00"),
        );
        write(
            &tree,
            "my5700",
            "sb.o.delete.range100.pk1.dop2",
            &output("100.00")[..600],
        );
        write(&tree, "my5700", "junk", [0u8, 159, 146, 150]);
        write(&tree, "my5700", "sb.o.nonsense", "words\n");
        write(
            &tree,
            "my5700",
            "sb.gv.insert.range100.pk1",
            "version\t5.7\n",
        );
        fs::write(tree.join("empty"), "").unwrap();
        fs::File::create(tree.join("giant"))
            .unwrap()
            .set_len(2 << 30)
            .unwrap();
        symlink(&tree, tree.join("x.my5700_rel.z1_c2.pk1/loop")).unwrap();
        let run = place.run(&["import", tree.to_str().unwrap(), "--json"]);
        assert_eq!(run.status.code(), Some(3), "{}", text(&run.stderr));
        let value: Value = serde_json::from_slice(&run.stdout).unwrap();
        let left_out: Vec<(&str, &str)> = value["imports"][0]["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .map(|out| {
                (
                    out["path"].as_str().unwrap().rsplit('/').next().unwrap(),
                    out["reason"].as_str().unwrap(),
                )
            })
            .collect();
        let reason = |name: &str| {
            left_out
                .iter()
                .find(|(path, _)| *path == name)
                .unwrap_or_else(|| panic!("{name}: {left_out:?}"))
                .1
        };
        assert_eq!(left_out.len(), 7, "{left_out:?}");
        assert_eq!(reason("junk"), "line 1: it is binary");
        assert_eq!(reason("empty"), "line 1: it is empty");
        assert_eq!(reason("sb.o.nonsense"), "line 1: it is of no known format");
        assert_eq!(reason("loop"), "the link leads back to a folder above it");
        assert!(reason("giant").starts_with("it has 2147483648 bytes"));
        assert!(reason("sb.o.delete.range100.pk1.dop2").contains("the file is truncated"));
        assert!(reason("sb.o.insert.range100.pk1.dop2").contains("error 1114"));

        // By version, not by name; a failed test says so and the rest has its numbers.
        let shown = text(&place.run(&["show"]).stdout);
        let columns: Vec<&str> = shown
            .lines()
            .filter(|line| line.starts_with("col-"))
            .take(3)
            .collect();
        assert_eq!(
            columns,
            [
                "col-1 : my5700_rel.z1_c2",
                "col-2 : my8000_rel.z1_c2",
                "col-3 : my10000_rel.z1_c2"
            ]
        );
        assert!(
            shown.contains("  2000    1000    500  point-query"),
            "{shown}"
        );
        assert!(
            shown.contains("the test failed: FATAL: mysql_drv_query() returned error 1114"),
            "{shown}"
        );
        assert!(
            shown.contains("one run cannot tell a regression from noise"),
            "{shown}"
        );
        for format in ["html", "md", "csv", "tsv", "json"] {
            let out = place.path("page");
            let report = place.run(&["report", "--format", format, "--out", out.to_str().unwrap()]);
            assert_eq!(
                report.status.code(),
                Some(0),
                "{format}: {}",
                text(&report.stderr)
            );
            let page = fs::read_to_string(&out).unwrap();
            assert!(
                page.contains("my10000_rel.z1_c2") && !page.contains("secret"),
                "{format}"
            );
        }
        let resumed = place.run(&["resume"]);
        assert_eq!(resumed.status.code(), Some(2));
        assert!(
            text(&resumed.stderr).contains("is imported"),
            "{}",
            text(&resumed.stderr)
        );
        // A missing test is not a number in the tables that are exported.
        let ids = place
            .campaign()
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        let table = fs::read_to_string(export(&place, &ids, "").join("qps.abs.all.csv")).unwrap();
        assert_eq!(
            table,
            "point-query_range=100,2000,1000,500\ninsert_range=100,100,NA,NA\n"
        );
    }

    #[test]
    fn what_lies_beside_an_output_is_kept_with_it() {
        let place = Place::new();
        let tree = place.path("tree");
        write(
            &tree,
            "my8000",
            "sb.o.point-query.range100.pk1.dop2",
            output("1000.00"),
        );
        write(
            &tree,
            "my8000",
            "sb.time.point-query.range100.pk1.dop2",
            "1.50user 0.50system 1:40.00elapsed 2%CPU (0avgtext)k\n",
        );
        for (sample, cycles) in [(1, 4_000_000), (2, 6_000_000)] {
            write(
                &tree,
                "my8000",
                &format!("sb.perf.hw.point-query.range100.pk1.{sample}.sorted"),
                format!("LLC-loads\t-1\ncycles\t{cycles}\nipc\t1.5\n"),
            );
        }
        let ids = import(&place, &tree, &[]);
        let report = json(&place, &["report", &ids[0], "--format", "json"]);
        // 2 s of CPU for 100,000 queries; 5,000,000 cycles in 10 s at 1000 queries/s.
        assert_eq!(
            report["results"][0]["metrics"]["client_cpu_us_per_op"]["value"],
            20.0
        );
        assert_eq!(
            report["steps"][0]["counters"],
            serde_json::json!({"cycles": [5_000_000]})
        );
        assert_eq!(
            report["steps"][0]["counters_per_operation"],
            serde_json::json!({"cycles": [500.0]})
        );
    }

    #[test]
    fn other_tools_results_are_read_from_any_folder() {
        let place = Place::new();
        let tree = place.path("mixed");
        for build in ["one", "two"] {
            fs::create_dir_all(tree.join(build)).unwrap();
            fs::write(
                tree.join(build).join("tpcb.txt"),
                "pgbench (16.1)\nnumber of clients: 2\nscaling factor: 1\nnumber of transactions \
                actually processed: 500\nlatency average = 2.0 ms\n\
                 tps = 1000.5 (without initial connection time)\n",
            )
            .unwrap();
        }
        fs::write(
            tree.join("table.csv"),
            "build,step,metric,value\na,read,qps,10\nb,read,qps,20\n",
        )
        .unwrap();
        let ids = import(&place, &tree, &[]);
        assert_eq!(ids.len(), 1);
        let shown = json(&place, &["show", &ids[0], "--json"]);
        // Folders are cells, and so are the builds of the table.
        let labels: Vec<&str> = shown["cells"]
            .as_array()
            .unwrap()
            .iter()
            .map(|cell| cell["cell"].as_str().unwrap())
            .collect();
        assert_eq!(labels, ["a", "b", "one", "two"]);
        let metric = |cell: &str, step: &str, name: &str| {
            let is_it = |result: &&Value| result["cell"] == cell && result["step"] == step;
            shown["results"]
                .as_array()
                .unwrap()
                .iter()
                .find(is_it)
                .unwrap()["metrics"][name]
                .clone()
        };
        assert_eq!(metric("b", "read", "qps")["value"], 20.0);
        assert_eq!(shown["campaign"]["state"], "imported");
        assert_eq!(metric("one", "tpcb", "tps")["classic"], "1000.5");
        assert_eq!(metric("two", "tpcb", "mean_service_us")["value"], 2000.0);
        // Nothing of the originals' files exists for them.
        let out = place.path("none");
        let run = place.run(&["export", &ids[0], "--classic", out.to_str().unwrap()]);
        assert_eq!((run.status.code(), out.exists()), (Some(2), false));
    }

    #[test]
    fn builds_campaigns_and_folders_are_compared() {
        let place = Place::new();
        let (one, two) = (place.path("one"), place.path("two"));
        for (tree, build, qps) in [
            (&one, "my5700", "2000.00"),
            (&one, "my8000", "1000.00"),
            (&two, "my5700", "1500.00"),
            (&two, "my8000", "1000.00"),
        ] {
            write(
                tree,
                build,
                "sb.o.point-query.range100.pk1.dop2",
                output(qps),
            );
        }
        let one_id = import(&place, &one, &[]).remove(0);
        let two_id = import(&place, &two, &[]).remove(0);
        let ratio = |a: &str, b: &str, more: &[&str]| {
            let value = json(&place, &[&["compare", a, b, "--json"], more].concat());
            let ratios: Vec<f64> = value["comparisons"]
                .as_array()
                .unwrap()
                .iter()
                .map(|c| c["steps"][0]["ratio"].as_f64().unwrap())
                .collect();
            ratios
        };
        assert_eq!(ratio("my5700", "my8000", &["--campaign", &one_id]), [0.5]);
        assert_eq!(
            ratio("my8000_rel", "my5700_rel.z1_c2", &["--campaign", &one_id]),
            [2.0]
        );
        assert_eq!(ratio(&one_id, &two_id, &[]), [0.75, 1.0]);
        assert_eq!(
            ratio(one.to_str().unwrap(), two.to_str().unwrap(), &[]),
            [0.75, 1.0]
        );
        let cell = |tree: &Path, build: &str| {
            tree.join(format!("x.{build}_rel.z1_c2.pk1"))
                .to_str()
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            ratio(&cell(&one, "my5700"), &cell(&two, "my8000"), &[]),
            [0.5]
        );
        let words = text(
            &place
                .run(&["compare", "my5700", "my8000", "--campaign", &one_id])
                .stdout,
        );
        assert!(
            words.contains("point-query  2000  1000  0.50")
                && words.contains("0.500  point queries (1)"),
            "{words}"
        );
        let csv = text(
            &place
                .run(&[
                    "compare",
                    "my5700",
                    "my8000",
                    "--campaign",
                    &one_id,
                    "--format",
                    "csv",
                ])
                .stdout,
        );
        assert!(
            csv.contains("point queries,point-query,qps,queries/s,2000,1000,0.5,,,,,,false,"),
            "{csv}"
        );
        for (arguments, way_out) in [
            (
                &[
                    "gate",
                    &one_id,
                    "--candidate",
                    "my8000",
                    "--max-regression",
                    "5%",
                ][..],
                "it is imported, and a gate needs runs that took turns or were repeated; \
                `plimsoll compare` has its ratios; to gate, run both builds: `plimsoll gate PLAN",
            ),
            (
                &["explain", "point-query", "--campaign", &one_id],
                "is imported, and has neither repeats nor the server's counters to explain with; \
                `plimsoll compare` has its ratios",
            ),
        ] {
            let refused = place.run(arguments);
            let stderr = text(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{stderr}");
            assert!(
                stderr.contains(way_out) && stderr.contains(&one_id),
                "{stderr}"
            );
        }
        let unknown = place.run(&["compare", "my5700", "my9999", "--campaign", &one_id]);
        assert_eq!(unknown.status.code(), Some(2));
        assert!(
            text(&unknown.stderr).contains("my8000_rel.z1_c2"),
            "{}",
            text(&unknown.stderr)
        );
    }

    #[test]
    fn nothing_to_read_is_said() {
        let place = Place::new();
        let tree = place.path("nothing");
        fs::create_dir(&tree).unwrap();
        let run = place.run(&["import", tree.to_str().unwrap()]);
        assert_eq!(
            (
                run.status.code(),
                text(&run.stdout).contains("no results were found")
            ),
            (Some(3), true)
        );
        let missing = place.run(&["import", "not-there"]);
        assert_eq!(missing.status.code(), Some(2));
        assert!(
            text(&missing.stderr).contains("failed to import not-there"),
            "{}",
            text(&missing.stderr)
        );
        assert!(!place.path("plimsoll-runs").exists());
    }

    #[test]
    fn a_native_run_comes_out_in_the_originals_layout() {
        let place = Place::new();
        assert_eq!(place.run(&["run", "small.toml"]).status.code(), Some(0));
        let out = place.path("native");
        let run = place.run(&["export", "--classic", out.to_str().unwrap()]);
        assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
        assert!(
            text(&run.stdout).contains("a native run: clean values"),
            "{}",
            text(&run.stdout)
        );
        let merged = fs::read_to_string(out.join("mrg.l.i0")).unwrap();
        let lines: Vec<Vec<&str>> = merged
            .lines()
            .map(|line| line.split('\t').collect())
            .collect();
        assert_eq!(
            (lines.len(), lines[0].len(), lines[1][20], lines[2][20]),
            (3, 21, "sqlite.wal_full", "sqlite.wal_off")
        );
        assert_eq!(
            fs::read_to_string(out.join("o.sum.t.sqlite.wal_off"))
                .unwrap()
                .lines()
                .count(),
            6
        );
        assert_eq!(
            fs::read_to_string(out.join("rel.qr100"))
                .unwrap()
                .lines()
                .count(),
            2
        );
    }
}
