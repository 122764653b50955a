//! The answers of analysis to questions, drawn as text, JSON, CSV and Markdown.

mod companions;
mod comparison;
mod explanation;
mod gate;
pub(crate) mod profile;
pub(crate) mod row_costs;
mod series;
pub(crate) mod waits;

use serde_json::Value;

pub use companions::{companions_to_json, companions_to_text};
pub use comparison::{comparison_to_csv, comparison_to_markdown};
pub use row_costs::{row_costs_to_json, row_costs_to_text};

/// An answer of analysis that can be drawn.
pub trait Draw {
    /// Text for a terminal, its last line ended.
    fn to_text(&self) -> String;

    /// One JSON value.
    fn to_json(&self) -> Value;
}
