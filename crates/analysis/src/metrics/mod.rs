//! Numbers by name: a value or its reason, formulas, ratios, and which ones a table shows.

pub mod columns;
pub(crate) mod formulas;
pub mod ratio;
pub mod value;
