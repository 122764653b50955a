//! The book says what the sets of metrics say.

use std::path::Path;

use plimsoll_analysis::metrics::{self, Direction, Metric, imported};

#[test]
fn every_metric_is_documented_as_its_set_defines_it() {
    check_rows(metrics::native());
}

#[test]
fn every_imported_metric_is_documented() {
    check_rows(imported::METRICS.iter().copied());
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
