//! The laboratory: makes campaigns of plans, runs their trials in child processes, and resumes what
//! broke.
//!
//! The orchestrator ([`run`], [`resume`]) only watches; a [`trial`] does the work in a process of
//! its own, so that a crash of an embedded engine never takes the campaign down.

pub mod bisect;
pub mod builds;
mod campaign;
mod campaign_run;
pub mod clients;
mod config;
mod confirm;
mod error;
pub mod fleet;
mod forecast;
pub mod guard;
mod input;
mod leftovers;
mod message;
mod observer;
mod orchestrator;
mod passwords;
mod perf;
mod places;
#[cfg(test)]
mod sample_trials;
mod shipped;
mod states;
mod template;
pub mod trial;
mod trial_process;

pub use campaign::{
    CampaignRequest, LoadedPlan, create_campaign, create_fleet_campaign, load_plan, parse_plan,
    plan_as_survey,
};
pub use confirm::{
    ConfirmChoice, ConfirmForecast, ConfirmRequest, DesignChoice, LoadsChoice, PlacementChoice,
    SlicesForecast, StopRule, UntilGated, as_survey, blocks_of_run, create_confirm,
    create_fleet_confirm, unusual_steps,
};
pub use error::LabError;
pub use forecast::{CellForecast, Forecast, PartForecast, StepForecast, forecast};
pub use message::{StepProgress, TrialMessage};
pub use observer::{CampaignEnd, Notice, Observer, StepTurns, TurnsProgress, TurnsRatio};
pub use orchestrator::{run_campaign, run_campaign_until, run_campaign_with_clients};
pub use passwords::keep_passwords_from_children;
pub use places::{DataTurn, default_cache_dir, default_data_dir, prepare_data_root};
pub use shipped::{shipped_plan, shipped_plans, shipped_workload, shipped_workloads};
