//! The readers against archives of published results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_import::host::{iostat, normalized, vmstat};
use plimsoll_import::names::folder::CellName;
use plimsoll_import::names::test_file::TestFile;
use plimsoll_import::sysbench::{metrics, output, published};
use plimsoll_testkit::archive;

fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    files.sort();
    files
}

#[test]
fn every_test_of_nov25() {
    let Some(folder) = archive(
        "import::archives::every_test_of_nov25",
        "mytools/nov25.sb.mysql/dop1",
    ) else {
        return;
    };
    let table = published::read_rates(&fs::read(folder.join("qps.abs.all.tsv")).unwrap()).unwrap();
    let mut rates: BTreeMap<(String, String), String> = BTreeMap::new();
    let (mut outputs, mut costs) = (0, 0);
    for (name, path) in files(&folder)
        .into_iter()
        .filter(|(name, _)| CellName::of_sysbench(name).is_some())
    {
        for (file, path) in files(&path) {
            let Some(test) = TestFile::of(&file) else {
                continue;
            };
            let bytes = fs::read(&path).unwrap();
            if test.kind == "met" {
                assert_eq!(
                    metrics::read(&bytes).unwrap().to_text().as_bytes(),
                    bytes,
                    "{name}/{file}"
                );
                costs += 1;
            } else if test.kind == "o" {
                let output =
                    output::read(&bytes).unwrap_or_else(|error| panic!("{name}/{file}: {error}"));
                assert_eq!(
                    (output.layout, output.passwords, output.cpus),
                    (output::Layout::V1_1, 1, Some(8)),
                    "{name}/{file}"
                );
                assert!(
                    !output.command.as_deref().unwrap().contains("=pw"),
                    "{name}/{file}"
                );
                let rate = if output.is_scan() {
                    output.scan_krows_per_thread().unwrap()
                } else {
                    output.queries.1.parse().unwrap()
                };
                rates.insert((name.clone(), test.label()), format!("{rate:.0}"));
                outputs += 1;
            }
        }
    }
    assert_eq!((outputs, costs), (9 * 38, 9 * 38));
    let mut cells = 0;
    for row in &table.rows {
        let label = format!("{}_range={}", row.test, row.range.unwrap());
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            assert_eq!(
                rates[&(column.clone(), label.clone())],
                *cell,
                "{label} of {column}"
            );
            cells += 1;
        }
    }
    assert_eq!(cells, 8 * 33);
}

#[test]
fn metrics_of_feb25_from_raw_samples() {
    let name = "import::archives::metrics_of_feb25_from_raw_samples";
    let Some(folder) = archive(
        name,
        "mytools/feb25.pg.flat/x.pg1023_o2nofp.x10a_c32r128.pk1",
    ) else {
        return;
    };
    let mut tests = 0;
    for (file, path) in files(&folder) {
        let Some(suffix) = file.strip_prefix("sb.met.") else {
            continue;
        };
        let read = |kind: &str| fs::read(folder.join(format!("sb.{kind}.{suffix}"))).unwrap();
        let (io, vm) = (
            iostat::read(&read("io")).unwrap(),
            vmstat::read(&read("vm")).unwrap(),
        );
        let output = output::read(&read("o")).unwrap();
        // Before 2025-04-19 scans were those of all threads.
        let op_rate = if output.is_scan() {
            format!("{:.0}", output.scan_krows_of_all_threads().unwrap())
        } else {
            output.queries.1.clone()
        };
        let classic = normalized::classic(
            &io.matching("md2").unwrap(),
            &vm.classic().unwrap(),
            &op_rate,
        )
        .unwrap();
        assert_eq!(
            classic.to_text(),
            fs::read_to_string(&path).unwrap(),
            "{file}"
        );
        let clean = vm.clean().unwrap();
        assert_eq!(clean.samples, vm.samples.len() - 1);
        let counted: u64 = classic.vm[0].parse().unwrap();
        assert_eq!(
            vmstat::samples_without_banners(counted),
            vm.samples.len() as u64,
            "{file}"
        );
        assert!(clean.cpu > vm.classic().unwrap().cpu, "{file}");
        tests += 1;
    }
    assert_eq!(tests, 8);
}
