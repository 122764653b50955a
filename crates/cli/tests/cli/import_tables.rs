//! Tables that were edited for a post, tables of versions, and files that hold several builds or
//! thread counts: read digit for digit, checked against what lies beside them, and never dropped in
//! silence.

use std::fs;
use std::path::Path;

use plimsoll_testkit::archive;
use serde_json::Value;

use crate::import::{copy, export, import, json};
use crate::support::{Place, text};

/// The campaign's notes, joined.
fn notes(place: &Place) -> String {
    let value: Value =
        serde_json::from_str(&fs::read_to_string(place.campaign().join("imported.json")).unwrap())
            .unwrap();
    let notes = value["notes"].as_array().unwrap();
    let notes = notes.iter().map(|note| note.as_str().unwrap());
    notes.collect::<Vec<_>>().join("\n")
}

/// What an import left out: path and reason.
fn left_out(value: &Value) -> Vec<(String, String)> {
    let of = |out: &Value, name: &str| out[name].as_str().unwrap().to_owned();
    let all = value["imports"][0]["left_out"].as_array().unwrap();
    all.iter()
        .map(|out| (of(out, "path"), of(out, "reason")))
        .collect()
}

/// A relative table as authors edit it: sections with titles, folders without `x.` and `.pk1`, the
/// range only where a test has several, without the warm-up.
fn edited(table: &str) -> String {
    let several = ["random-points", "read-only", "read-write"];
    let mut text = String::new();
    let mut heading = "";
    let mut section = "";
    for line in table.lines() {
        if line.starts_with("col-1\t") {
            heading = line;
            continue;
        }
        let Some((numbers, label)) = line.rsplit_once('\t') else {
            text.push_str(&format!("{}\n", line.replace("x.", "").replace(".pk1", "")));
            continue;
        };
        let (test, _) = label.split_once("_range=").unwrap();
        if test == "scan.warm" {
            continue;
        }
        let title = match test {
            test if test.contains("point") => "- point queries",
            test if test.starts_with("range-") || test == "scan" => {
                "- range queries without aggregation"
            }
            test if test.starts_with("read-only") => "- range queries with aggregation",
            _ => "- writes",
        };
        if title != section {
            section = title;
            text.push_str(&format!("\n{title}\n{heading}\n"));
        }
        let label = if several.contains(&test) { label } else { test };
        text.push_str(&format!("{numbers}\t{label}\n"));
    }
    text
}

/// Numbers and labels of a table, its range left out as edited ones do.
fn rows(table: &str) -> Vec<String> {
    let of = edited(table);
    let mut rows: Vec<String> = of
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .collect();
    rows.sort();
    rows
}

#[test]
fn edited_tables_of_dec25_keep_their_digits() {
    let test = "cli::import_tables::edited_tables_of_dec25_keep_their_digits";
    let Some(folder) = archive(test, "mytools/dec25.sb.socket.my") else {
        return;
    };
    let published = fs::read_to_string(folder.join("qps.rel.my.latest.tsv")).unwrap();
    let name = "qps.rel.my.latest.tsv.edit";
    // Beside the rates every ratio follows from them.
    let place = Place::new();
    let tree = place.path("dec25");
    copy(&folder, &tree, |name| name == "qps.abs.my.latest.tsv");
    fs::write(tree.join(name), edited(&published)).unwrap();
    import(&place, &tree, &[]);
    assert_eq!(notes(&place), "");

    // One that does not is reported, and the rates stay.
    let place = Place::new();
    fs::write(
        tree.join(name),
        edited(&published).replace("5.89\t", "5.88\t"),
    )
    .unwrap();
    import(&place, &tree, &[]);
    let told = notes(&place);
    assert!(
        told.contains("1 of 160 ratios do not follow from the rates, which are kept: update-index")
            && told.contains("is 5.88, and")
            && told.contains("is 5.89"),
        "{told}"
    );

    // Alone its ratios are the campaign.
    let place = Place::new();
    let tree = place.path("alone");
    fs::create_dir_all(&tree).unwrap();
    fs::write(tree.join(name), edited(&published)).unwrap();
    let ids = import(&place, &tree, &[]);
    let out = export(&place, &ids[0], "");
    let again = fs::read_to_string(out.join("qps.rel.all.tsv")).unwrap();
    assert_eq!(rows(&again), rows(&published));
    assert_eq!(rows(&again).len(), 32);
    assert!(
        !out.join("qps.abs.all.tsv").exists(),
        "a ratio is not a rate"
    );
    assert!(
        notes(&place).starts_with("Only ratios to my5651_rel_o2nofp.z12a_c24r64 were published")
    );
    let shown = text(&place.run(&["show"]).stdout);
    assert!(
        shown.contains("Relative to: my5651_rel_o2nofp.z12a_c24r64"),
        "{shown}"
    );
}

/// The tables of 2025 of an archive of 2023: with versions as columns.
#[test]
fn tables_of_versions_follow_from_rows() {
    let test = "cli::import_tables::tables_of_versions_follow_from_rows";
    let Some(folder) = archive(test, "mytools/nov23.u.db_bench.8x/u5") else {
        return;
    };
    for set in ["byrx.8x", "iobuf.8x", "iodir.8x"] {
        let read = |name: String| fs::read_to_string(folder.join(name)).unwrap();
        let summary = read(format!("sum.{set}.txt"));
        let rows_of = |test: &str| -> Vec<Vec<String>> {
            let rows = summary
                .lines()
                .map(|line| line.split('\t').map(str::to_owned).collect());
            rows.filter(|row: &Vec<String>| row.get(23).is_some_and(|cell| cell == test))
                .collect()
        };
        let first = rows_of("fillseq.wal_disabled.v400");
        let versions: Vec<&str> = first.iter().map(|row| row[25].as_str()).collect();
        let rates = format!(
            "{}\ttest\n{}",
            versions.join("\t"),
            read(format!("abs.{set}.tsv"))
        );
        let ratios: String = read(format!("rel2.{set}.csv"))
            .lines()
            .map(|line| line.replacen(',', ",1.00,", 1) + "\n")
            .collect();
        let ratios = format!("test,{},\n{ratios}", versions.join(","));
        let place = Place::new();
        let tree = place.path("u5");
        fs::create_dir_all(&tree).unwrap();
        let write = |name: String, text: &str| fs::write(tree.join(name), text).unwrap();
        write(format!("sum.{set}.txt"), &summary);
        write(format!("fmt.{set}.abs0.csv"), &ratios);
        write(format!("sum.abs1.{set}.tsv"), &rates);
        let value = json(&place, &["import", tree.to_str().unwrap(), "--json"]);
        assert_eq!(left_out(&value), [], "{set}");
        assert_eq!(notes(&place), "", "{set}");

        // Alone, rates come out as they went in, and so do ratios.
        for (file, content, out) in [
            (
                format!("fmt.{set}.abs1.tsv"),
                &rates,
                format!("abs.{set}.tsv"),
            ),
            (
                format!("fmt.{set}.abs1.csv"),
                &ratios,
                format!("rel2.{set}.csv"),
            ),
        ] {
            let place = Place::new();
            let tree = place.path("alone");
            fs::create_dir_all(&tree).unwrap();
            fs::write(tree.join(file), content).unwrap();
            let ids = import(&place, &tree, &[]);
            let exported = export(&place, &ids[0], "").join(&out);
            assert_eq!(fs::read_to_string(exported).unwrap(), read(out), "{set}");
        }
    }
}

/// A folder of the scripts with files of its tests.
fn write(tree: &Path, build: &str, file: &str, content: &str) {
    let folder = tree.join(format!("x.{build}_rel.z1_c2.pk1"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(file), content).unwrap();
}

#[test]
fn a_number_per_thread_count_goes_to_its_thread_count() {
    let place = Place::new();
    let tree = place.path("tree");
    let metrics = |rate: &str| {
        format!(
            "iostat, vmstat normalized by operation rate\n\
             samp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\n\
             10\t0\t0\t0\t0\t0\t0\t0\t{rate}\n\n\
             samp\tcs/s\tcpu/s\tcs/o\tcpu/o\n10\t1\t1\t1\t0.1\n"
        )
    };
    for (dop, rate) in [(1, "100"), (2, "190"), (40, "900")] {
        let file = format!("sb.met.insert.range100.pk1.dop{dop}");
        write(&tree, "my8000", &file, &metrics(rate));
    }
    let lines = [
        (
            "sb.r.qps.insert.range100.pk1",
            "100\t190\t900\tinnodb insert range=100\n",
        ),
        // No other file of this test: the thread counts are those of the cell.
        (
            "sb.r.qps.delete.range100.pk1",
            "50\t80\t300\tinnodb delete range=100\n",
        ),
        (
            "sb.r.rtavg.delete.range100.pk1",
            "0.13\t0.2\t1.5\tinnodb delete range=100\n",
        ),
        (
            "sb.r.rt95.delete.range100.pk1",
            "0.22\t0.3\tinnodb delete range=100\n",
        ),
    ];
    for (file, line) in lines {
        write(&tree, "my8000", file, line);
    }
    let value = json(&place, &["import", tree.to_str().unwrap(), "--json"]);
    let left_out = left_out(&value);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(
        left_out[0].0.ends_with("sb.r.rt95.delete.range100.pk1"),
        "{left_out:?}"
    );
    assert_eq!(
        left_out[0].1,
        "it has 2 numbers, and other files know 3 thread counts: it is not known which is whose"
    );
    let stored: Value =
        serde_json::from_str(&fs::read_to_string(place.campaign().join("imported.json")).unwrap())
            .unwrap();
    let cells = stored["cells"].as_array().unwrap();
    let cells: Vec<&str> = cells
        .iter()
        .map(|cell| cell["label"].as_str().unwrap())
        .collect();
    assert_eq!(
        cells,
        [
            "my8000_rel.z1_c2.dop1",
            "my8000_rel.z1_c2.dop2",
            "my8000_rel.z1_c2.dop40"
        ]
    );
    let of = |cell: u64, step: &str, metric: &str| -> Value {
        let steps = stored["steps"].as_array().unwrap();
        let step = steps
            .iter()
            .position(|known| known["name"] == step)
            .unwrap();
        let results = stored["results"].as_array().unwrap();
        let found = results
            .iter()
            .find(|result| result["cell"] == cell && result["step"] == step as u64)
            .unwrap();
        found["values"][metric].clone()
    };
    for (cell, insert, delete, mean_us) in [
        (0, "100", "50", 130.0),
        (1, "190", "80", 200.0),
        (2, "900", "300", 1500.0),
    ] {
        assert_eq!(of(cell, "insert", "qps")["classic"], insert);
        assert_eq!(of(cell, "delete", "qps")["classic"], delete);
        assert_eq!(of(cell, "delete", "mean_service_us")["value"], mean_us);
    }
}

const RATES: &str = "col-1 : x.pg1023_rel.z1_c2.pk1\ncol-2 : x.pg1110_rel.z1_c2.pk1\n\n\
                     col-1\tcol-2\n1000\t900\tupdate-index_range=100\n";
const JOIN: &str = "sb.perf.hw.update-index.range100.pk1.1.sorted";

#[test]
fn joined_counters_go_to_the_builds_of_the_table_with_their_tag() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir_all(&tree).unwrap();
    let write = |name: &str, text: &str| fs::write(tree.join(name), text).unwrap();
    write("qps.abs.pgcmp.tsv", RATES);
    write(
        &format!("join1.abs.pgcmp.{JOIN}"),
        "cycles 10000 18000\nLLC-loads -1 -1\nipc 0.7 0.8\n",
    );
    write(
        &format!("join1.rel.pgcmp.{JOIN}"),
        "1.800\tcycles\n1.000\tLLC-loads\n1.143\tipc\n",
    );
    write(&format!("join0.abs.pgcmp.{JOIN}"), "\n");
    // Of another tag it is not known whose they are.
    write(&format!("join1.abs.other.{JOIN}"), "cycles 1 2\n");
    let value = json(&place, &["import", tree.to_str().unwrap(), "--json"]);
    let left_out = left_out(&value);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(
        left_out[0].0.starts_with("join1.abs.other."),
        "{left_out:?}"
    );
    assert!(
        left_out[0].1.starts_with("its 2 columns have no names"),
        "{left_out:?}"
    );
    assert!(notes(&place).contains("those of pgcmp are taken for the builds"));
    let stored = fs::read_to_string(place.campaign().join("imported.json")).unwrap();
    let stored: Value = serde_json::from_str(&stored).unwrap();
    let counters: Vec<&Value> = stored["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| &result["counters"])
        .collect();
    assert_eq!(counters.len(), 2);
    for (counters, cycles, ipc) in [(counters[0], 10_000.0, 0.7), (counters[1], 18_000.0, 0.8)] {
        assert_eq!(
            (&counters["cycles"], &counters["ipc"]),
            (&cycles.into(), &ipc.into())
        );
        assert_eq!(counters["LLC-loads"], Value::Null);
    }
}

#[test]
fn joined_counters_are_those_of_the_samples_beside_them() {
    for (last, told) in [
        ("18000", ""),
        ("18001", "column 2 is none of the samples beside it"),
    ] {
        let place = Place::new();
        let tree = place.path("tree");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("qps.abs.pgcmp.tsv"), RATES).unwrap();
        for (build, cycles) in [("pg1023", "10000"), ("pg1110", "18000")] {
            write(
                &tree,
                build,
                JOIN,
                &format!("cycles\t{cycles}\nmigratons\t3\n"),
            );
            let line = "1000\tpgsql update-index range=100\n";
            write(&tree, build, "sb.r.qps.update-index.range100.pk1", line);
        }
        let join = format!("cycles 10000 {last}\nmigratons 3 3\n");
        fs::write(tree.join(format!("join1.abs.pgcmp.{JOIN}")), join).unwrap();
        import(&place, &tree, &[]);
        let notes = notes(&place);
        assert!(notes.contains(told), "{notes}");
        assert_eq!(
            notes.contains("none of the samples"),
            !told.is_empty(),
            "{notes}"
        );
    }
}

#[test]
fn columns_of_one_version_are_told_apart_by_their_place() {
    for (header, cells) in [
        ("10.2.1\t10.3.4\ttest", ["10.2.1", "10.3.4"]),
        ("10.2.1\t10.2.1\ttest", ["10.2.1.row1", "10.2.1.row2"]),
    ] {
        let place = Place::new();
        let tree = place.path("tree");
        fs::create_dir_all(&tree).unwrap();
        let table = format!("{header}\n41147\t44996\treadwhilewriting.t1\n");
        fs::write(tree.join("fmt.byrx.both.abs1.tsv"), table).unwrap();
        let value = json(&place, &["import", tree.to_str().unwrap(), "--json"]);
        let found = &value["imports"][0]["campaigns"][0]["cells"];
        assert_eq!(*found, serde_json::json!(cells), "{value}");
    }
}

#[test]
fn tables_of_several_bases_are_told_apart() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir_all(&tree).unwrap();
    let table = |base: &str, other: &str| {
        format!(
            "Relative to: {base}_rel.z1\ncol-1 : {other}_rel.z1\n\n- writes\ncol-1\n1.50\tdelete\n"
        )
    };
    fs::write(tree.join("qps.rel.a.tsv.edit"), table("my8407", "ma110806")).unwrap();
    fs::write(tree.join("qps.rel.b.tsv.edit"), table("pg1023", "pg1110")).unwrap();
    let value = json(&place, &["import", tree.to_str().unwrap(), "--json"]);
    let left_out = left_out(&value);
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert_eq!(left_out[0].0, "qps.rel.b.tsv.edit");
    assert!(
        left_out[0].1.contains("relative to pg1023_rel.z1"),
        "{left_out:?}"
    );
    // The base is the table's, not the oldest version.
    assert_eq!(value["imports"][0]["campaigns"][0]["base"], "my8407_rel.z1");
}
