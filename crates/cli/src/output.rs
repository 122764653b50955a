//! What verbs write to standard output.

use std::io::{ErrorKind, Write};

use crate::failure::{Failure, VerbResult};

/// Standard output that is closed early (`| head`) is not an error, a full disk is. Colours are
/// dropped where nobody sees them.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::usage(format!(
            "failed to write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

/// One JSON value, for programs.
pub fn print_json(value: &impl serde::Serialize) -> VerbResult {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::bug(error.to_string()))?;
    print(&format!("{text}\n"))?;
    Ok(0)
}

/// Columns as wide as their widest cell.
pub fn table<const N: usize>(header: [&str; N], rows: Vec<[String; N]>) -> String {
    let rows: Vec<[String; N]> = std::iter::once(header.map(str::to_owned))
        .chain(rows)
        .collect();
    let widths: Vec<usize> = (0..N)
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}
