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
mod columns;
mod compare;
mod counters;
mod delimited;
mod differences;
mod error;
mod events;
mod export;
mod formulas;
mod gate;
mod histogram;
mod history;
mod html;
mod imported;
mod json;
mod latency;
mod machines;
mod markdown;
mod notes;
mod profiles;
mod published;
mod ratio;
mod reasons;
mod rocksdb_description;
mod rocksdb_notes;
mod selection;
mod setting_value;
mod settings;
mod settling;
mod shapes;
mod starved;
mod summary;
mod terminal;
mod test_tables;
pub mod value;
mod verdicts;
mod version_groups;
pub mod view;
mod waiting;

pub use analysis::{Options, analyse, analyse_among};
pub use compare::{Comparison, Row as ComparisonRow, compare, pairs};
pub use delimited::{to_csv, to_tsv};
pub use error::ReportError;
pub use export::{ExportFile, to_classic_files};
pub use gate::{Answer as GateAnswer, Gate, GateRow, gate};
pub use history::{HistoryOptions, Point, Series, history};
pub use html::to_html;
pub use json::{confirm_json, show_json, to_json};
pub use markdown::to_markdown;
pub use profiles::{FlameNode, FunctionChange, Profiled, profiles_of};
pub use terminal::to_terminal;
pub use verdicts::{
    Basis, Call, Change, Control, Estimate, Explanation, Finding, Findings, Power, SettingChange,
    StepPower, explain, finding_line, is_decided, is_look, power_of_blocks, verdict_lines,
};
pub use view::View;
