//! What the sessions of a cell waited for, next to the base's.

mod change;

use plimsoll_store::CampaignRecord;
use plimsoll_store::series::WaitProfile;

pub use change::WaitChange;
use change::changes;

use crate::runs::attempts::Run;
use crate::runs::cell_runs::{CellRuns, cell_runs};
use crate::verdicts::Explanation;
use crate::verdicts::pairs::by_block;

/// The waits of a cell and of the base in a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Waited {
    pub step: String,
    /// The cell's place among those shown.
    pub cell: usize,
    pub base_label: String,
    pub cell_label: String,
    /// Where each server has its events from: the base's, the cell's.
    pub sources: [String; 2],
    /// Starts, or blocks, in which both were looked at.
    pub starts: usize,
    /// Looks at the base and at the cell, over all starts.
    pub looks: [u64; 2],
    /// The events in the order of their difference, the largest first.
    pub events: Vec<WaitChange>,
    /// Why there are none.
    pub reason: Option<String>,
}

/// Every step of every cell that was looked at, next to the base.
pub(crate) fn waited(cells: &[CellRuns<'_>]) -> Vec<Waited> {
    let Some((base, others)) = cells.split_first() else {
        return Vec::new();
    };
    let same = (1..)
        .zip(others)
        .filter(|(_, cell)| cell.campaign.header.id == base.campaign.header.id);
    same.flat_map(|(index, cell)| {
        let steps = cell.cell.workload.steps().iter();
        steps.filter_map(move |step| {
            Some(Waited {
                cell: index,
                ..pair(base, cell, &step.name)?
            })
        })
    })
    .collect()
}

/// The waits of the two cells of an explanation; none where they were not looked at.
pub fn waits_of(campaign: &CampaignRecord, of: &Explanation) -> Option<Waited> {
    let base = cell_runs(campaign, &of.base)?;
    pair(&base, &cell_runs(campaign, &of.cell)?, &of.step)
}

/// By starts in which both sides were looked at.
fn pair(base: &CellRuns<'_>, cell: &CellRuns<'_>, step: &str) -> Option<Waited> {
    let read = |run: &Run<'_>| run.record?.waits(step).ok()?;
    let both: Vec<(WaitProfile, WaitProfile)> = by_block(base, cell, step)
        .into_iter()
        .filter_map(|(of_base, of_cell)| Some((read(of_base)?, read(of_cell)?)))
        .collect();
    let (first_base, first_cell) = both.first()?;
    let source = |profile: &WaitProfile| profile.source.clone().unwrap_or_default();
    let sides = both.iter().flat_map(|(base, cell)| [base, cell]);
    let mut refusals = sides.filter_map(|profile| profile.source.as_ref().err());
    let (events, starts) = changes(&both);
    let looks = |pick: fn(&(WaitProfile, WaitProfile)) -> u64| both.iter().map(pick).sum();
    let too_few = || (starts == 0).then(|| "nobody was seen at work".to_owned());
    Some(Waited {
        step: step.to_owned(),
        cell: 0,
        base_label: base.cell.label.clone(),
        cell_label: cell.cell.label.clone(),
        sources: [source(first_base), source(first_cell)],
        starts,
        looks: [looks(|(base, _)| base.looks), looks(|(_, cell)| cell.looks)],
        reason: refusals.next().cloned().or_else(too_few),
        events,
    })
}
