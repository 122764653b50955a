//! The metrics line: twenty columns and a tag, one line per cell and step.

use super::relative;
use crate::metrics::CLASSIC_COLUMNS;

/// The line's cells with the original's decimals; `NA` where there is no value.
pub fn cells(values: &[Option<f64>; 20]) -> [String; 20] {
    std::array::from_fn(|i| {
        values[i].map_or_else(
            || "NA".to_owned(),
            |value| format!("{value:.*}", CLASSIC_COLUMNS[i].decimals),
        )
    })
}

/// The line of ratios to the base's line: computed from the printed cells, as the original does.
/// `NA` stays.
pub fn relative_cells(cells: &[String; 20], base: &[String; 20]) -> [String; 20] {
    std::array::from_fn(|i| match (cells[i].parse(), base[i].parse()) {
        (Ok(value), Ok(base)) => relative::format(value, base),
        _ => "NA".to_owned(),
    })
}
