//! Tests that cannot run here say so.

use std::fs::OpenOptions;
use std::io::Write;

/// Prints that a test is skipped and why. `make test` names a file in `PLIMSOLL_SKIPS`, collects
/// the lines there, and fails on a skip that `tests/allowed-skips.txt` does not list.
pub fn skip(test: &str, reason: &str) {
    // In one write: tests of several programs append to one file.
    let line = format!("SKIP {test}: {reason}\n");
    print!("{line}");
    if let Some(path) = std::env::var_os("PLIMSOLL_SKIPS") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .expect("PLIMSOLL_SKIPS names a file that can be written");
    }
}
