//! What differs from the base, by how much, how sure, and why.
//!
//! ```text
//! pairs      log ratios of a cell and the base, taken at nearly the same time
//! estimate   one ratio with its interval, from pairs
//! control    the base against itself; spreads: what two starts of one build differ by
//! judge      the family of a campaign's estimates -> a verdict each
//! changes    per-operation numbers that moved -> rules: what that usually means
//! lines      all of it in words
//! ```

mod changes;
mod control;
mod estimate;
mod finding;
mod judge;
mod lines;
mod measured;
pub(crate) mod pairs;
mod power;
mod rules;
mod spreads;
mod stopping;
mod validity;
mod why;

pub use changes::Change;
pub(crate) use changes::changes;
pub use control::CONTROL_LEVEL;
pub use finding::{Basis, Call, Control, Estimate, Finding, Findings};
pub(crate) use judge::{Experiment, find};
pub(crate) use lines::change_with_interval;
pub use lines::{
    NO_VERDICTS, bases, control_line, counts, farthest, finding_line, floor_line, is_news, largest,
    percent, repeats, subject, verdict_lines,
};
pub use measured::headline;
pub(crate) use pairs::basis;
pub use plimsoll_stats::{Verdict, as_percent};
pub use power::{Power, StepPower, power_of_blocks};
pub(crate) use spreads::{Spreads, machine};
pub use stopping::{is_decided, is_look};
pub use why::{Explanation, SettingChange, explain};
