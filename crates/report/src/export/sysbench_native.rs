//! The originals' files of sysbench results: `qps.abs`, `qps.rel`, `sb.met` and `o.met`, in their
//! layout, order and rounding.
//!
//! The values are those of a native run: rates over the measured window, and host readings over the
//! same window. The originals' own defects (headers counted as samples, warm-up in the host
//! readings) are not in them.

use plimsoll_analysis::metrics::{self, Metric};
use plimsoll_core::plan::{PublishedPosition, TestKind, TestName, published_position};

use crate::export::ExportFile;
use crate::export::sysbench_layout::{self, lead_of_ratios, rates_csv, rates_tsv};
use plimsoll_analysis::view::{Outcome, StepView, View};

/// Queries per second by test and build, as integers: what both tables are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QpsTable {
    /// The folders of the builds, the base first.
    pub folders: Vec<String>,
    /// The tests in the order of the file, each with a number per folder.
    pub rows: Vec<(String, Vec<Option<u64>>)>,
}

impl QpsTable {
    /// `qps.abs`: what the columns are, and a line per test.
    pub fn absolute_tsv(&self) -> String {
        rates_tsv("", &self.folders(), &self.rows(whole))
    }

    /// The same with the name first, and without what the columns are.
    pub fn absolute_csv(&self) -> String {
        rates_csv(&self.rows(whole))
    }

    /// `qps.rel`: each but the first divided by the first.
    pub fn relative_tsv(&self) -> String {
        let folders = self.folders();
        let (base, others) = folders
            .split_first()
            .map_or(("", &[][..]), |(base, others)| (*base, others));
        rates_tsv(&lead_of_ratios(base), others, &self.rows(ratios))
    }

    /// The same with the name first, and without what the columns are.
    pub fn relative_csv(&self) -> String {
        rates_csv(&self.rows(ratios))
    }

    fn folders(&self) -> Vec<&str> {
        self.folders.iter().map(String::as_str).collect()
    }

    fn rows(&self, cells: fn(&[Option<u64>]) -> Vec<String>) -> Vec<(&str, Vec<String>)> {
        self.rows
            .iter()
            .map(|(name, values)| (name.as_str(), cells(values)))
            .collect()
    }
}

fn whole(values: &[Option<u64>]) -> Vec<String> {
    values
        .iter()
        .map(|value| value.map_or(String::new(), |value| value.to_string()))
        .collect()
}

/// Of the rounded integers, with two decimals.
fn ratios(values: &[Option<u64>]) -> Vec<String> {
    let base = values.first().copied().flatten();
    let ratio = |value: &Option<u64>| match (value, base) {
        (Some(value), Some(base)) if base > 0 => format!("{:.2}", *value as f64 / base as f64),
        _ => String::new(),
    };
    values.iter().skip(1).map(ratio).collect()
}

/// One test of one build in `sb.met`, in the units of that file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Seconds that were sampled.
    pub samples: u64,
    /// Storage reads, KiB read, storage writes, KiB written; per second.
    pub disk: [f64; 4],
    /// Context switches per second.
    pub switches: f64,
    /// CPU of the host in percent of all CPUs.
    pub cpu: f64,
    /// Operations per second.
    pub operations: f64,
}

/// The printed numbers of a line of `o.met`: cpu/o, cs/o, r/o, rKB/o, wKB/o, o/s.
type Printed = [String; 6];

impl Metrics {
    fn per_operation(&self, value: f64) -> f64 {
        if self.operations > 0.0 {
            value / self.operations
        } else {
            0.0
        }
    }

    /// The file `sb.met`.
    pub fn text(&self) -> String {
        let [reads, read_kib, writes, written_kib] = self.disk;
        let per = |value: f64| self.per_operation(value);
        let storage = format!(
            "{}\t{reads:.1}\t{:.1}\t{writes:.1}\t{:.1}\t{:.3}\t{:.3}\t{:.3}\t{:.2}",
            self.samples,
            read_kib / 1024.0,
            written_kib / 1024.0,
            per(reads),
            per(read_kib),
            per(written_kib),
            self.operations,
        );
        let (switches, cpu) = (per(self.switches), per(self.cpu));
        let host = format!(
            "{}\t{:.0}\t{:.1}\t{switches:.3}\t{cpu:.6}",
            self.samples, self.switches, self.cpu
        );
        sysbench_layout::metrics(&storage, &host)
    }

    fn printed(&self) -> Printed {
        let per = |value: f64| self.per_operation(value);
        // Three decimals in sb.met, and here without the zeros at their end.
        let short = |value: f64| {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let [reads, read_kib, _, written_kib] = self.disk;
        [
            format!("{:.6}", per(self.cpu)),
            format!("{:.3}", per(self.switches)),
            short(per(reads)),
            short(per(read_kib)),
            short(per(written_kib)),
            format!("{:.0}", self.operations),
        ]
    }
}

/// A block of `o.met`: absolute lines, and those divided by the first, computed from what is
/// printed.
pub fn metrics_block(title: &str, lines: &[(String, Metrics)]) -> String {
    let printed: Vec<(&str, Printed)> = lines
        .iter()
        .map(|(folder, metrics)| (folder.as_str(), metrics.printed()))
        .collect();
    sysbench_layout::costs(title, &printed)
}

/// The section and the place in it, by the originals' sorting: `scan` comes behind the other
/// ranges. None for what their filters drop.
fn classic_position(name: TestName<'_>) -> Option<(u8, u8, PublishedPosition)> {
    use plimsoll_core::plan::TestGroup::{Point, Range1, Range2, Write};
    let is_scan = name.kind == TestKind::Scan;
    let group = match name.kind.group() {
        // What warms up is dropped among the points, and stays among the ranges.
        Point if name.variant == "warm" => return None,
        _ if name.variant.contains("pre") => return None,
        Point => 0,
        Range1 | Range2 => 1,
        Write => 2,
    };
    Some((group, u8::from(is_scan), published_position(name)))
}

fn test_of(step: &StepView) -> Option<TestName<'_>> {
    step.test.filter(|test| test.level.is_none())?;
    TestName::parse(&step.name)
}

/// The rate as the originals count it: an aborted transaction's statements are in it.
fn rate(step: &StepView, outcome: &Outcome) -> Option<f64> {
    outcome.classic_rate.or_else(|| outcome.number(step.rate))
}

fn metrics_of(step: &StepView, outcome: &Outcome) -> Option<Metrics> {
    let number = |metric: &Metric| outcome.number(metric).unwrap_or(0.0);
    let operations = rate(step, outcome)?;
    Some(Metrics {
        samples: outcome.elapsed_s.unwrap_or(0.0) as u64,
        disk: [
            number(metrics::RPS),
            number(metrics::RMBPS) * 1024.0,
            number(metrics::WPS),
            number(metrics::WMBPS) * 1024.0,
        ],
        switches: number(metrics::CSPS),
        cpu: number(metrics::CPUPS),
        operations,
    })
}

/// All files of a campaign; nothing when it has no such test.
pub fn export(view: &View) -> Vec<ExportFile> {
    let folders: Vec<String> = view
        .cells
        .iter()
        .map(|cell| format!("x.{}.pk1", cell.label.replace(['/', ' '], "_")))
        .collect();
    let tests: Vec<(&StepView, TestName<'_>)> = view
        .steps
        .iter()
        .filter_map(|step| Some((step, test_of(step)?)))
        .collect();
    if tests.is_empty() {
        return Vec::new();
    }
    let mut files = rate_files(&folders, &tests);
    let mut blocks = String::new();
    for (title, step, is_in_summary) in metrics_titles(view, tests) {
        let found = folders
            .iter()
            .zip(&step.outcomes)
            .filter_map(|(folder, outcome)| Some((folder.clone(), metrics_of(step, outcome)?)));
        let found: Vec<(String, Metrics)> = found.collect();
        files.extend(
            found
                .iter()
                .map(|(folder, metrics)| file(&format!("{folder}/{title}"), metrics.text())),
        );
        if is_in_summary && !found.is_empty() {
            blocks.push_str(&metrics_block(&title, &found));
        }
    }
    files.push(file("o.met.all", blocks));
    files
}

fn file(path: &str, text: String) -> ExportFile {
    ExportFile {
        path: path.to_owned(),
        text,
    }
}

/// `qps.abs` and `qps.rel`, in the order of the originals.
fn rate_files(folders: &[String], tests: &[(&StepView, TestName<'_>)]) -> Vec<ExportFile> {
    let mut placed: Vec<_> = tests
        .iter()
        .filter_map(|(step, name)| Some((classic_position(*name)?, *step, *name)))
        .collect();
    placed.sort_by_key(|(position, ..)| *position);
    let rows = placed.into_iter().map(|(_, step, name)| {
        let rate = |outcome: &Outcome| rate(step, outcome).map(|rate| rate.round() as u64);
        (
            format!("{}_range={}", name.without_range(), name.classic_range()),
            step.outcomes.iter().map(rate).collect(),
        )
    });
    let table = QpsTable {
        folders: folders.to_vec(),
        rows: rows.collect(),
    };
    vec![
        file("qps.abs.all.tsv", table.absolute_tsv()),
        file("qps.abs.all.csv", table.absolute_csv()),
        file("qps.rel.all.tsv", table.relative_tsv()),
        file("qps.rel.all.csv", table.relative_csv()),
    ]
}

/// The load and the tests as they ran, the scans behind the others: the name of each one's file,
/// and whether it is in the summary of all.
fn metrics_titles<'a>(
    view: &'a View,
    tests: Vec<(&'a StepView, TestName<'a>)>,
) -> impl Iterator<Item = (String, &'a StepView, bool)> {
    const LOAD: &str = "sb.prepare.met.point-query.warm.range100.pk1";
    let load = view.steps.iter().find(|step| step.name == "prepare");
    let load = load.map(|load| (LOAD.to_owned(), load, true));
    let (scans, others): (Vec<_>, Vec<_>) = tests
        .into_iter()
        .partition(|(_, name)| name.kind == TestKind::Scan);
    let tests = others.into_iter().chain(scans).map(|(step, name)| {
        let title = format!(
            "sb.met.{}.range{}.pk1.dop{}",
            name.without_range(),
            name.classic_range(),
            step.clients
        );
        let is_warming = name.kind == TestKind::PointQuery && name.variant == "warm";
        (title, step, !is_warming)
    });
    load.into_iter().chain(tests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::sysbench_layout::printed_ratio;

    fn table() -> QpsTable {
        let row = |name: &str, values: [u64; 3]| (name.to_owned(), values.map(Some).to_vec());
        QpsTable {
            folders: ["x.my5651.pk1", "x.my5744.pk1", "x.my9500.pk1"]
                .map(str::to_owned)
                .to_vec(),
            // Of the published results of 2025-12.
            rows: vec![
                row("hot-points_range=100", [17_772, 27_585, 22_524]),
                row("update-index_range=100", [9104, 53_639, 34_641]),
                row("scan_range=100", [3226, 2911, 2599]),
            ],
        }
    }

    #[test]
    fn tables_have_the_layout_and_rounding_of_the_originals() {
        assert_eq!(
            table().absolute_tsv(),
            "col-1 : x.my5651.pk1\ncol-2 : x.my5744.pk1\ncol-3 : \
            x.my9500.pk1\n\ncol-1\tcol-2\tcol-3\n\
             17772\t27585\t22524\thot-points_range=100\n9104\t53639\t34641\tupdate-index_range=100\n3226\t2911\t2599\tscan_range=100\n"
        );
        assert_eq!(
            table().relative_tsv(),
            "Relative to: x.my5651.pk1\ncol-1 : x.my5744.pk1\ncol-2 : \
            x.my9500.pk1\n\ncol-1\tcol-2\n\
             1.55\t1.27\thot-points_range=100\n5.89\t3.81\tupdate-index_range=100\n0.90\t0.81\tscan_range=100\n"
        );
        assert!(
            table()
                .absolute_csv()
                .starts_with("hot-points_range=100,17772,27585,22524\n")
        );
        assert!(
            table()
                .relative_csv()
                .starts_with("hot-points_range=100,1.55,1.27\n")
        );
        let mut with_hole = table();
        with_hole.rows[0].1[1] = None;
        assert!(
            with_hole
                .relative_csv()
                .starts_with("hot-points_range=100,,1.27\n")
        );
    }

    #[test]
    fn metrics_are_rounded_and_then_divided() {
        let metrics = |cpu: f64, switches: f64, written: f64, operations: f64| Metrics {
            samples: 904,
            disk: [0.0, 0.0, 1567.3, written],
            switches,
            cpu,
            operations,
        };
        let first = metrics(14.0, 47_417.0, 50_757.0, 7968.15);
        assert_eq!(
            first.text(),
            "iostat, vmstat normalized by operation \
            rate\nsamp\tr/s\trMB/s\tw/s\twMB/s\tr/o\trKB/o\twKB/o\to/s\n\
             904\t0.0\t0.0\t1567.3\t49.6\t0.000\t0.000\t6.370\t7968.15\n\n\
             samp\tcs/s\tcpu/s\tcs/o\tcpu/o\n904\t47417\t14.0\t5.951\t0.001757\n"
        );
        let block = metrics_block(
            "sb.met.delete.range100.pk1.dop1",
            &[
                ("a".into(), first),
                ("b".into(), metrics(7.0, 0.0, 1.0, 15_936.3)),
            ],
        );
        assert_eq!(
            block,
            "sb.met.delete.range100.pk1.dop1\n--- \
            absolute\ncpu/o\t\tcs/o\tr/o\trKB/o\twKB/o\to/s\tdbms\n\
             0.001757\t5.951\t0\t0\t6.37\t7968\ta\n0.000439\t0.000\t0\t0\t0\t15936\tb\n\
             --- relative to first result\n0.25\t\t0.00\t1\t1\t0.00\t2.00\tb\n\n"
        );
        assert_eq!(
            [
                printed_ratio("0", "0"),
                printed_ratio("5", "0"),
                printed_ratio("0.995", "1")
            ],
            ["1", "inf", "0.99"]
        );
    }

    #[test]
    fn rows_are_sorted_as_the_originals_are() {
        let names = [
            "scan",
            "scan.warm",
            "read-only-sum",
            "point-query.warm",
            "point-query.pre",
            "point-query",
            "insert",
            "range-covered-pk",
        ];
        let mut placed: Vec<_> = names
            .iter()
            .filter_map(|name| TestName::parse(name))
            .filter_map(|name| Some((classic_position(name)?, name)))
            .collect();
        placed.sort_by_key(|(position, _)| *position);
        let sorted: Vec<String> = placed
            .into_iter()
            .map(|(_, name)| format!("{}_range={}", name.without_range(), name.classic_range()))
            .collect();
        let expected = [
            "point-query_range=100",
            "range-covered-pk_range=100",
            "read-only-sum_range=1000",
            "scan_range=100",
            "scan.warm_range=100",
            "insert_range=100",
        ];
        assert_eq!(sorted, expected);
        assert_eq!(
            TestName::parse("write-only").unwrap().classic_range(),
            10_000
        );
    }
}
