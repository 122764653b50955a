//! Which build made it slower? Probes are confirm campaigns with the good, the bad and one build
//! between them.
//!
//! ```text
//! candidates -> search -> campaigns (confirm, by blocks or slices)
//!              ^                    |
//!          posterior  <-----  evidence
//! ```

mod campaigns;
mod candidates;
mod recipe;
mod search;
#[cfg(test)]
mod simulated;

pub use campaigns::{BisectRequest, Watcher, bisect};
pub use candidates::{BuildCommand, Candidates, Commit, CommitMaker};
pub use plimsoll_analysis::bisection::{Probe, Weight, weigh};
pub use plimsoll_stats::{Evidence, Step};
pub use recipe::CommitRecipe;
pub use search::{Probed, Prober, Search, SearchEnd, SearchNotice, SearchOutcome, Weigh, search};
