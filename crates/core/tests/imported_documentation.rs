//! The manual says what the metrics of imported results are.

use std::path::Path;

use plimsoll_core::imported_metric::IMPORTED;
use plimsoll_core::metric::Direction;

#[test]
fn every_imported_metric_is_documented() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/methods.md")).unwrap();
    for metric in IMPORTED {
        let better = match metric.direction {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
            Direction::Neutral => "",
        };
        let cells = [&format!("`{}`", metric.name), metric.unit, better, metric.formula, metric.source, metric.meaning];
        let row = format!("| {} |", cells.join(" | "));
        assert!(text.contains(&row), "docs/methods.md lacks this row:\n{row}");
    }
}
