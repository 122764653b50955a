//! Confirm campaigns: every candidate many times, interleaved, on copies of the same data, with
//! the base twice among them.

mod forecast;
mod gating;
mod memory;
mod profiles;
mod request;
mod slices;
mod stop_rule;
mod unusual;
mod witness;

pub(crate) use forecast::{CellSteps, forecast_confirm};
pub use forecast::{ConfirmForecast, SlicesForecast};
pub use gating::UntilGated;
pub(crate) use profiles::{is_profiled, run_profiles};
pub use request::{
    ConfirmChoice, ConfirmRequest, DesignChoice, LoadsChoice, PlacementChoice, as_survey,
    blocks_of_run, create_confirm, create_fleet_confirm,
};
pub(crate) use request::{LOADS, no_turns_elsewhere, run_by_blocks};
pub(crate) use slices::{run_starts, wait_in_turns};
pub(crate) use stop_rule::PlannedLooks;
pub use stop_rule::StopRule;
pub use unusual::unusual_steps;
pub(crate) use witness::Witness;
