//! The book says what the table of readings says.

use std::path::Path;

use plimsoll_core::readings::HostReading;

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
