//! What a reader must know before the numbers.

use crate::view::{Status, View};

pub(crate) fn notes(view: &View) -> Vec<String> {
    let mut notes = Vec::new();
    if !view.is_comparable {
        notes.push("This is a shortened plan: its numbers are not comparable with those of full runs.".to_owned());
    }
    for campaign in &view.campaigns {
        match campaign.state {
            "running" => notes.push(format!("Campaign {} is still running: cells without a number have not run yet.", campaign.id)),
            "broken" => {
                notes.push(format!("Campaign {} is not finished: `plimsoll resume {}` runs what is missing.", campaign.id, campaign.id))
            }
            _ => {}
        }
    }
    let versions: Vec<u32> = view.campaigns.iter().map(|campaign| campaign.methodology_version).collect();
    if versions.iter().any(|version| *version != versions[0]) {
        notes.push("The campaigns were measured by different methodology versions: see the changelog before comparing them.".to_owned());
    }
    let blocks = |used: bool| {
        let outcomes = view.steps.iter().flat_map(|step| &step.outcomes).filter(|outcome| outcome.blocks_planned > 0);
        outcomes.map(|outcome| if used { outcome.blocks_used } else { outcome.blocks_planned }).max().unwrap_or(0)
    };
    if blocks(false) <= 1 {
        notes.push(
            "Each cell ran once: a difference here is something to look at, not a verdict. One run cannot tell a regression from noise."
                .to_owned(),
        );
    } else {
        notes.push(format!(
            "Values are medians over up to {} blocks; charts, counters, drains and row checks show each cell's first finished block. \
             No verdict is given here.",
            blocks(true).max(1)
        ));
    }
    if view.cells.len() < 2 {
        notes.push("There is one cell: nothing to compare it with.".to_owned());
    }
    if view.steps.iter().flat_map(|step| &step.latencies).any(|table| !table.is_open_loop) {
        notes.push(
            "Closed loops (the l steps, and the queries of the q steps) have no schedule and so no response time: their service time does not \
             show what waiting callers would have seen. Background writers follow a schedule and show both."
                .to_owned(),
        );
    }
    if view.cells.iter().any(|cell| cell.is_embedded == Some(true)) {
        notes.push("An embedded engine shares its process with the client: server and client CPU cannot be told apart.".to_owned());
    }
    let count = |status| view.steps.iter().flat_map(|step| &step.outcomes).filter(|outcome| outcome.status == status).count();
    for (status, what) in [
        (Status::SlaMissed, "missed the SLA of their background writers: their query rates do not count as a comparison"),
        (Status::Suspect, "ran while other guests or other processes took CPU: treat their numbers as suspect"),
        (Status::Failed, "failed"),
        (Status::Crashed, "crashed"),
    ] {
        let cells = count(status);
        if cells > 0 {
            notes.push(format!("{cells} of {} cell-steps {what}.", view.steps.len() * view.cells.len()));
        }
    }
    let surplus = view.steps.iter().flat_map(|step| step.outcomes.iter().map(move |outcome| (step, outcome)));
    for (step, outcome) in surplus {
        if outcome.checks.iter().any(|check| check.expected_rows != check.found_rows) {
            notes.push(format!("A table does not hold the rows it should after {}.", step.name));
        }
    }
    notes
}
