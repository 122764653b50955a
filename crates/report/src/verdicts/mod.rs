//! What differs from the base, by how much, how sure, and why.
//!
//! ```text
//! runs -> pairs -> estimates -> control, family -> verdicts -> words
//! ```

mod control;
mod finding;
mod judge;
mod lines;
mod measured;
mod pairs;
mod spreads;
mod validity;
mod why;

pub use finding::{Basis, Call, Control, Estimate, Finding, Findings};
pub(crate) use judge::{Setting, find};
pub use lines::verdict_lines;
pub(crate) use lines::{control_line, counts, finding_line, floor_line, largest, percent};
pub(crate) use measured::headline;
pub(crate) use pairs::basis;
pub(crate) use spreads::{Spreads, machine};
pub use why::{Change, Explanation, explain};
