//! A table as the field prints it: rates, ratios to the base, and their colours.

use crate::classic::Class;
use crate::runs::status::Status;

/// A classic table: a row per cell, a column per step.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicTable {
    pub title: &'static str,
    /// What the numbers are.
    pub caption: &'static str,
    pub columns: Vec<String>,
    /// The base first.
    pub rows: Vec<ClassicRow>,
}

/// A row of a classic table.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicRow {
    /// The cell's label, or `target`.
    pub label: String,
    /// Whether this is the base's row.
    pub is_base: bool,
    /// Of ratios: what [`CellInfo::mark`] says; empty elsewhere.
    pub mark: &'static str,
    /// One per column.
    pub cells: Vec<ClassicCell>,
}

/// A cell of a classic table.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassicCell {
    /// The number as it is printed; `None` where there is none.
    pub number: Option<String>,
    /// How it is coloured.
    pub class: Class,
    /// How the step ended; ok for targets.
    pub status: Status,
    /// Why it is not ok.
    pub reason: Option<String>,
}

impl ClassicCell {
    /// The number with its status mark, or what stands in its place.
    pub fn text(&self) -> String {
        self.number.as_ref().map_or_else(
            || self.status.in_place().to_owned(),
            |number| format!("{number}{}", self.status.mark()),
        )
    }
}
