//! Every output of an analysis: terminal, HTML, Markdown, CSV, TSV, JSON, other tools' files.
//!
//! ```text
//! View -> terminal, HTML, Markdown, CSV, TSV, JSON
//! ```
//! Outputs format; they compute nothing: what they show is in the view.

mod answers;
mod comment;
mod delimited;
mod export;
mod html;
mod json;
mod junit;
mod markdown;
pub mod post;
mod published;
mod terminal;

pub use answers::{
    Draw, companions_to_json, companions_to_text, comparison_to_csv, comparison_to_markdown,
    row_costs_to_json, row_costs_to_text,
};
pub use comment::to_comment;
pub use delimited::{to_csv, to_tsv};
pub use export::{ExportFile, to_classic_files};
pub use html::to_html;
pub use json::{confirm_json, show_json, to_json};
pub use junit::to_junit;
pub use markdown::to_markdown;
pub use post::{PostFile, checked_to_json, checked_to_text, to_post_files, to_post_markdown};
pub use terminal::to_terminal;
