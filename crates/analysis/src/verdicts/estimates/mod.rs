//! From pairs to numbers with intervals.
//!
//! ```text
//! estimate   one ratio with its interval, from pairs
//! priors     what a campaign's comparisons have in common: how far starts lie apart
//! layout     how much of an interval is the order of functions in the builds
//! control    the base against itself: whether errors are as large as they say
//! spreads    how far starts of this machine lie apart, from the store; power: what blocks can show
//! ```

mod control;
mod estimate;
mod layout;
mod power;
mod priors;
mod spreads;

pub use control::CONTROL_LEVEL;
pub(crate) use control::{Scales, control};
pub(crate) use estimate::{Levels, estimate};
pub(crate) use layout::Layout;
pub use power::{Power, StepPower, power_of_blocks};
pub(crate) use priors::{Class, InStep, OfClass, Priors};
pub(crate) use spreads::{Spreads, machine};
