//! Analysis of campaigns, one view model, and every output of it.
//!
//! ```text
//! campaigns -> analyse -> View -> terminal, HTML, Markdown, CSV, TSV, JSON
//! ```
//! Outputs format; they compute nothing. What is missing stays visible with its reason.

mod analysis;
mod attempts;
mod charts;
pub mod classic;
mod differences;
mod error;
mod formulas;
mod histogram;
mod latency;
mod notes;
mod selection;
mod summary;
pub mod value;
pub mod view;

pub use analysis::{Options, analyse};
pub use error::ReportError;
pub use view::View;
