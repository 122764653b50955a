//! Log ratios of a cell and the base, taken at nearly the same time.
//!
//! ```text
//! meetings   runs of a cell and the base in one block or start -> the pairs of a metric
//! starts     turns of a start -> what the start says; round by round
//! stalls     turns in which operations took far longer than in a typical one
//! ```

mod meetings;
pub(crate) mod stalls;
pub(crate) mod starts;

use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use plimsoll_core::schedule::Unit;
use plimsoll_stats::{FEWEST_BLOCKS, StartRatio, mean};
use plimsoll_store::Design;
use plimsoll_store::header::CampaignHeader;

pub(crate) use self::meetings::{Meetings, Shapes};
pub(crate) use self::starts::{Form, StartPairs};
use super::finding::Basis;
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;

/// Log ratios of one metric, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pairs {
    /// One per block, in a campaign of blocks and in a survey.
    pub blocks: Vec<f64>,
    /// The same with the machine of each, where a campaign runs on several.
    pub of_hosts: Vec<(String, f64)>,
    /// The starts of a campaign of slices.
    pub starts: Vec<StartPairs>,
    /// Pairs that a witness left out; by slices, starts.
    pub left_out: usize,
    /// Blocks or starts that have run on both sides, those left out included.
    pub done: usize,
    /// Seconds of measuring behind the pairs that count.
    pub seconds: f64,
}

impl Pairs {
    /// All ratios for a plot: blocks, or rounds over all starts; starts where there are no rounds.
    pub fn all(&self) -> Vec<f64> {
        let of_start = |start: &StartPairs| match start.rounds.is_empty() {
            true => vec![start.whole],
            false => start.rounds.clone(),
        };
        let of_starts = self.starts.iter().flat_map(of_start);
        self.blocks.iter().copied().chain(of_starts).collect()
    }

    /// What each start or each block says.
    pub fn units(&self) -> Vec<StartRatio> {
        let of_block = |ratio: &f64| StartRatio {
            ratio: *ratio,
            within: None,
            load: 1,
        };
        let of_blocks = self.blocks.iter().map(of_block);
        of_blocks
            .chain(self.starts.iter().map(StartPairs::ratio))
            .collect()
    }

    /// What each start says.
    pub fn start_ratios(&self) -> Vec<StartRatio> {
        self.starts.iter().map(StartPairs::ratio).collect()
    }

    /// Whether several links of the cell's build ran: then what its starts say differs by layout,
    /// too.
    pub fn has_links(&self) -> bool {
        let links: BTreeSet<u32> = self.starts.iter().filter_map(|start| start.link).collect();
        links.len() > 1
    }

    /// The log ratio of a typical round, the mean over starts.
    pub fn typical(&self) -> Option<f64> {
        let starts: Option<Vec<f64>> = self.starts.iter().map(StartPairs::typical).collect();
        starts
            .filter(|starts| !starts.is_empty())
            .map(|starts| mean(&starts))
    }
}

/// How a campaign's runs are set beside each other.
pub(crate) fn basis(campaign: &CampaignHeader) -> Basis {
    match &campaign.confirm {
        Some(confirm) if confirm.design == Design::Slices => Basis::Slices,
        Some(_) => Basis::Blocks,
        None if campaign.plan.blocks > 1 => Basis::Blocks,
        None => Basis::Screen,
    }
}

/// Finished runs of a step on both sides, by block and part. What ran on two machines does not count
/// as a pair: its ratio would be that of the machines, too.
pub(crate) fn by_block<'a, 'b>(
    base: &'b CellRuns<'a>,
    other: &'b CellRuns<'a>,
    step: &str,
) -> Vec<(&'b Run<'a>, &'b Run<'a>)> {
    let of_base: BTreeMap<Unit, &Run<'a>> = base.used(step).map(|run| (run.unit, run)).collect();
    let both = other
        .used(step)
        .filter_map(|run| Some((*of_base.get(&run.unit)?, run)));
    both.filter(|(base, other)| base.status.is_finished() && other.status.is_finished())
        .filter(|(of_base, of_other)| can_meet(basis(&base.campaign.header), of_base, of_other))
        .collect()
}

/// Whether two runs of a block may be compared: on one machine, and by slices up at the same time.
fn can_meet(basis: Basis, one: &Run<'_>, other: &Run<'_>) -> bool {
    let were_up_together = basis != Basis::Slices || one.attempt == other.attempt;
    were_up_together && one.is_on_machine_of(other)
}

/// The pairs that count, and how many starts or blocks a witness left out.
///
/// By slices a start is left out if leakage shifts its ratios. By blocks a pair is left out if a
/// canary found the machine slow before one of its trials, for no known reason; but if fewer than
/// [`FEWEST_BLOCKS`] or than half of the pairs would stay, all of them do. A slow machine hits the
/// base as often as the cell, so a pair that stays widens the interval and shifts nothing.
pub(crate) fn counting<'a, 'b>(
    basis: Basis,
    base: &'b CellRuns<'a>,
    other: &'b CellRuns<'a>,
    step: &str,
) -> (Vec<(&'b Run<'a>, &'b Run<'a>)>, usize) {
    let all = by_block(base, other, step);
    let is_void = |(base, other): &&(&Run<'_>, &Run<'_>)| base.is_void || other.is_void;
    let done = count_blocks(all.iter());
    let staying = count_blocks(all.iter().filter(|pair| !is_void(pair)));
    let are_enough = staying >= FEWEST_BLOCKS && 2 * staying >= done;
    if basis == Basis::Blocks && !are_enough {
        return (all, 0);
    }
    let counting = all.into_iter().filter(|pair| !is_void(&pair)).collect();
    (counting, done - staying)
}

/// How many blocks pairs are of: what runs in every part of a block has several pairs there.
fn count_blocks<'p, 'r: 'p, 'a: 'r>(
    pairs: impl Iterator<Item = &'p (&'r Run<'a>, &'r Run<'a>)>,
) -> usize {
    pairs.map(|(base, _)| base.unit.block).unique().count()
}

/// What a witness saw of the last pair that it leaves out.
pub(crate) fn last_disturbance(
    base: &CellRuns<'_>,
    other: &CellRuns<'_>,
    step: &str,
) -> Option<String> {
    let both = by_block(base, other, step);
    let sides = both
        .iter()
        .rev()
        .flat_map(|(of_base, of_other)| [(other, of_other), (base, of_base)]);
    let mut seen = sides.filter(|(_, run)| run.is_void);
    seen.find_map(|(cell, run)| Some(format!("{}: {}", cell.cell.label, run.reason.as_ref()?)))
}

pub(crate) fn value(run: &Run<'_>, metric: &str) -> Option<f64> {
    run.number(metric).filter(|value| *value > 0.0)
}
