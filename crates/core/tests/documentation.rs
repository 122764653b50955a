//! The manual says what the catalogue says.

use std::path::Path;

use plimsoll_core::imported_metric::IMPORTED;
use plimsoll_core::metric::{CATALOGUE, Direction, Metric, OF_ROCKSDB, OF_SYSBENCH};
use plimsoll_core::readings::HostReading;

#[test]
fn every_metric_is_documented_as_the_catalogue_defines_it() {
    check_rows(CATALOGUE.iter().chain(OF_SYSBENCH).chain(OF_ROCKSDB));
}

#[test]
fn every_imported_metric_is_documented() {
    check_rows(IMPORTED.iter());
}

#[test]
fn every_reading_of_the_host_is_documented() {
    let text = pages("formats");
    for reading in HostReading::ALL {
        let cells = [
            &format!("`{}`", reading.name()),
            reading.unit(),
            reading.source(),
            reading.meaning(),
        ];
        let row = format!("| {} |", cells.join(" | "));
        assert!(text.contains(&row), "docs/formats lacks this row:\n{row}");
    }
}

/// All pages of a folder of the book.
fn pages(folder: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    std::fs::read_dir(docs.join(folder))
        .unwrap()
        .map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap())
        .collect()
}

fn check_rows(metrics: impl Iterator<Item = &'static Metric>) {
    let text = pages("methods");
    for metric in metrics {
        let better = match metric.direction {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neutral => "",
        };
        let cells = [
            &format!("`{}`", metric.name),
            metric.unit,
            better,
            metric.formula,
            metric.source,
            metric.meaning,
        ];
        let row = format!("| {} |", cells.join(" | "));
        assert!(text.contains(&row), "docs/methods lacks this row:\n{row}");
    }
}
