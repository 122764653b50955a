//! Numbers, verdicts and the answers to questions, computed from what the store has.
//!
//! ```text
//! campaigns -> analyse -> View     everything that an output shows
//! campaigns -> explain, compare, gate, history
//!
//! latencies    decoded histograms: percentiles, buckets, curves
//! metrics      numbers with names, each with its formula
//! runs         what a step came to in a trial
//! cells        what tells one cell from another
//! steps        a step over all cells: outcomes, tables, charts
//! verdicts     what differs, how sure that is, and why
//! words        notes and reasons
//! waits        what sessions waited for, side by side
//! companions   what engines count exactly, side by side
//! groups       what several tests report together
//! questions    explain, compare, gate, history, bisection
//! post         the text that an author would write about it
//! ```
//! Nothing here draws: `report` does, and it computes nothing. What is missing stays visible with
//! its reason.

mod analysis;
mod cells;
pub mod classic;
mod companions;
mod error;
pub mod groups;
mod imported;
mod latencies;
pub mod metrics;
pub mod post;
pub mod profiles;
pub mod questions;
mod runs;
mod steps;
mod stored;
pub mod verdicts;
pub mod view;
mod waits;
pub mod words;

pub use analysis::{Options, analyse, analyse_among, default_view};
pub use cells::beyond::{BeyondBuild, FactKind, between as beyond_build};
pub use cells::selection;
pub use companions::{Companion, companions_of};
pub use error::AnalysisError;
pub use profiles::{FlameNode, FunctionChange, Profiled, Shown, nameless_percent, profiles_of};
pub use questions::bisection;
pub use questions::compare::{
    Comparison, LEVEL as INTERVAL_LEVEL, Row as ComparisonRow, Unpaired, compare, pairs,
};
pub use questions::gate::{
    AaHistory, Accepted, Answer as GateAnswer, Gate, GateMetric, GateRequest, GateRow, KnownSteps,
    StepThreshold, gate, gate_among,
};
pub use questions::history::{HistoryOptions, Point, Series, history};
pub use questions::undecided::undecided;
pub use questions::unusual::{Unusual, unusual};
pub use stored::Stored;
pub use verdicts::{
    Basis, CONTROL_LEVEL, Call, Change, Control, Estimate, Explanation, Finding, Findings, Power,
    STARTS_TO_LEAVE, SettingChange, StepDone, StepPower, StepProgress, brief_lines, explain,
    finding_line, is_decided, is_look, machine_taken, power_of_blocks, progress, running_table,
    verdict_lines,
};
pub use view::View;
pub use waits::{WaitChange, Waited, waits_of};
pub use words::changed_files::changed_files;
