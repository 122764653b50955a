//! Confirm campaigns: every candidate many times, interleaved, on copies of the same data, with
//! the base twice among them.

mod copy;
mod forecast;
mod memory;
mod order;
mod profiles;
mod request;
mod starts;
mod states;
mod turns;
mod witness;

pub(crate) use forecast::{CellSteps, forecast_confirm};
pub use forecast::{ConfirmForecast, SlicesForecast};
pub(crate) use profiles::run_profiles;
pub use request::{ConfirmChoice, ConfirmRequest, DesignChoice, PlacementChoice, create_confirm};
pub(crate) use starts::run_starts;
pub(crate) use states::{STATES_FOLDER, States};
pub use turns::{StepTurns, TurnsProgress, TurnsRatio};
pub(crate) use witness::Witness;
