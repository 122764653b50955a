//! What differs from the base, by how much, how sure, and why.
//!
//! ```text
//! measured   which numbers are judged
//! pairs      log ratios of a cell and the base, taken at nearly the same time
//! estimates  one ratio with its interval, from pairs; the base against itself
//! hosts      a ratio machine by machine
//! judge      runs -> findings; family: all of one metric -> a verdict each
//! changes    per-operation numbers that moved -> rules: what that usually means
//! lines      all of it in words
//! ```

mod changes;
mod conditions;
mod estimates;
mod family;
mod finding;
mod forms;
mod hosts;
mod judge;
mod lines;
pub(crate) mod measured;
pub(crate) mod pairs;
mod rules;
#[cfg(test)]
mod simulated;
mod stopping;
mod storage;
mod summary;
mod validity;
mod why;

pub use changes::Change;
pub(crate) use changes::changes;
pub use estimates::{CONTROL_LEVEL, Power, StepPower, power_of_blocks};
pub(crate) use estimates::{OfClass, Spreads, machine};
pub(crate) use finding::LEAST;
pub use finding::{Basis, Call, Control, Estimate, Finding, Findings, Modes, OfStart};
pub use hosts::OfHost;
pub(crate) use judge::{Experiment, MOST_EMPTY_TURNS, find};
pub(crate) use lines::change_with_interval;
pub use lines::{
    bases, brief_lines, control_line, counts, ending, facts, farthest, finding_line, is_news,
    largest, no_verdicts, percent, repeats, subject, unjudged, verdict_lines,
};
pub(crate) use measured::companions;
pub use measured::{Role, headline};
pub(crate) use pairs::basis;
pub use plimsoll_stats::{Verdict, as_percent};
pub use stopping::{STARTS_TO_LEAVE, StepDone, StepProgress, is_decided, is_look, progress};
pub use summary::{machine_taken, running_table, sentences};
pub use why::{Explanation, SettingChange, explain};
