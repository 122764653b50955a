//! What several tests of a campaign report together.
//!
//! ```text
//! ratios   what each start or block says of a finding
//! group    the tests of one section together: how much they moved, how many regressed
//! rows     tests that differ in their size: microseconds per statement and per row
//! lines    groups in words
//! costs    rows in words
//! ```

mod costs;
mod group;
mod lines;
mod ratios;
mod rows;
#[cfg(test)]
mod simulated;

pub use group::Group;
pub(crate) use group::groups;
pub use lines::{group_lines, section, starts_in_words, tests_in_words};
pub use rows::{CostPart, RowCost, SizeCost};
pub(crate) use rows::{row_costs, test_of};
