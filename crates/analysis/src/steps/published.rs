//! Tables with a row per test, as results of many tests are published.

use crate::steps::classic_table::ClassicCell;

/// A table in published form: a row per test, a column per cell.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedTable {
    pub title: &'static str,
    /// What the numbers are.
    pub caption: &'static str,
    /// What relative tables divide by.
    pub base: Option<String>,
    /// The cells, the base first; without it in relative tables.
    pub columns: Vec<String>,
    /// Groups of tests.
    pub sections: Vec<Section>,
}

/// A group of tests.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Its heading; empty where the table has no groups.
    pub title: String,
    pub rows: Vec<PublishedRow>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRow {
    pub label: String,
    /// One per column.
    pub cells: Vec<ClassicCell>,
}
