//! What a report adds to the words that plans have about their steps.

use plimsoll_core::plan::Step;
use plimsoll_core::units::{count, format_duration_ns};
use plimsoll_store::{CampaignRecord, Confirm, Design};

/// By slices a step has another length than the plan gives it.
pub(crate) fn in_turns(campaign: &CampaignRecord, step: &Step) -> String {
    let of_step =
        |confirm: &&Confirm| confirm.design == Design::Slices && confirm.steps.contains(&step.name);
    campaign
        .header
        .confirm
        .as_ref()
        .filter(of_step)
        .map_or_else(String::new, |confirm| {
            let turn_ns = if step.is_writing() {
                confirm.turn_ns_write
            } else {
                confirm.turn_ns_read
            };
            let starts = confirm.starts.unwrap_or(1).max(1);
            let length = match confirm.budget {
                Some(_) => format!(
                    "{} or more in each start",
                    format_duration_ns(confirm.time_ns / u64::from(starts))
                ),
                None => format!(
                    "{} at most over {}",
                    format_duration_ns(confirm.time_ns),
                    count(starts, "start")
                ),
            };
            let turn = format_duration_ns(turn_ns);
            format!("; here in turns of {turn} or more, {length}, whatever the plan's length")
        })
}
