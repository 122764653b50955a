//! Log ratios of a cell and the base, taken at nearly the same time.

use std::collections::BTreeMap;

use plimsoll_store::header::CampaignHeader;
use plimsoll_store::{Design, Turn};

use super::finding::Basis;
use crate::runs::attempts::Run;
use crate::runs::cell_runs::CellRuns;
use crate::runs::status::Status;

/// Log ratios of one metric, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pairs {
    /// Per start of the servers its rounds; by blocks a single list.
    pub starts: Vec<Vec<f64>>,
    /// Pairs that a witness left out; by slices, starts.
    pub left_out: usize,
    /// Blocks or starts that have run on both sides, those left out included.
    pub done: usize,
    /// Seconds of measuring behind the pairs that count.
    pub seconds: f64,
    /// Turns without a single operation, of all turns, as a share.
    pub empty_turns: f64,
}

impl Pairs {
    pub fn all(&self) -> Vec<f64> {
        self.starts.iter().flatten().copied().collect()
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

/// The pairs of a metric. `is_rate` asks for throughput if turns are read, else for CPU per
/// operation.
pub(crate) fn pairs(
    basis: Basis,
    base: &CellRuns<'_>,
    other: &CellRuns<'_>,
    step: &str,
    metric: &str,
    is_rate: bool,
) -> Pairs {
    match basis {
        Basis::Slices => by_slices(base, other, step, is_rate),
        Basis::Blocks | Basis::Screen => by_blocks(base, other, step, metric),
    }
}

/// Finished runs of a step on both sides, by block.
pub(crate) fn by_block<'a, 'b>(
    base: &'b CellRuns<'a>,
    other: &'b CellRuns<'a>,
    step: &str,
) -> Vec<(&'b Run<'a>, &'b Run<'a>)> {
    let of_base: BTreeMap<u32, &Run<'a>> = base.used(step).map(|run| (run.block, run)).collect();
    let both = other
        .used(step)
        .filter_map(|run| Some((*of_base.get(&run.block)?, run)));
    both.filter(|(base, other)| base.status.is_finished() && other.status.is_finished())
        .collect()
}

/// Whether a witness saw the machine disturbed on either side.
pub(crate) fn is_suspect((base, other): &(&Run<'_>, &Run<'_>)) -> bool {
    [base, other]
        .iter()
        .any(|run| run.status == Status::Suspect)
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
    let mut seen = sides.filter(|(_, run)| run.status == Status::Suspect);
    seen.find_map(|(cell, run)| Some(format!("{}: {}", cell.cell.label, run.reason.as_ref()?)))
}

pub(crate) fn value(run: &Run<'_>, metric: &str) -> Option<f64> {
    run.number(metric).filter(|value| *value > 0.0)
}

fn by_blocks(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str, metric: &str) -> Pairs {
    let both = by_block(base, other, step);
    let sound = || both.iter().filter(|pair| !is_suspect(pair));
    let ratios = sound()
        .filter_map(|(base, other)| Some((value(other, metric)? / value(base, metric)?).ln()));
    let elapsed_ns = |run: &Run<'_>| run.done.map_or(0, |done| done.elapsed_ns);
    Pairs {
        starts: vec![ratios.collect()],
        left_out: both.iter().filter(|pair| is_suspect(pair)).count(),
        done: both.len(),
        seconds: sound()
            .map(|(base, other)| elapsed_ns(base) + elapsed_ns(other))
            .sum::<u64>() as f64
            / 1e9,
        empty_turns: 0.0,
    }
}

fn by_slices(base: &CellRuns<'_>, other: &CellRuns<'_>, step: &str, is_rate: bool) -> Pairs {
    let mut pairs = Pairs::default();
    let (mut empty, mut turns) = (0, 0);
    for (of_base, of_other) in by_block(base, other, step) {
        pairs.done += 1;
        if is_suspect(&(of_base, of_other)) {
            pairs.left_out += 1;
            continue;
        }
        let read = |run: &Run<'_>| {
            run.record
                .and_then(|record| record.turns(step).ok())
                .unwrap_or_default()
        };
        let (of_base, of_other) = (read(of_base), read(of_other));
        if let (Some(first), Some(last)) = (of_base.first(), of_base.last()) {
            pairs.seconds += last.begin_ns.saturating_sub(first.begin_ns) as f64 / 1e9;
        }
        turns += of_base.len() + of_other.len();
        empty += of_base
            .iter()
            .chain(&of_other)
            .filter(|turn| turn.operations == 0)
            .count();
        let ratios = rounds(&of_base, &of_other, |turn| of_turn(turn, is_rate));
        if !ratios.is_empty() {
            pairs.starts.push(ratios);
        }
    }
    pairs.empty_turns = if turns == 0 {
        0.0
    } else {
        empty as f64 / turns as f64
    };
    pairs
}

/// The log ratios of two candidates of one start, round by round. A round in which either has no
/// value is left out.
pub(crate) fn rounds(
    base: &[Turn],
    other: &[Turn],
    value: impl Fn(&Turn) -> Option<f64>,
) -> Vec<f64> {
    let values = |turns: &[Turn]| -> Vec<(u32, f64)> {
        let turns = turns.iter();
        turns
            .filter_map(|turn| Some((turn.round, value(turn)?)))
            .collect()
    };
    round_ratios(values(base), values(other))
}

/// The same of values by round, each of a turn that has ended.
pub fn round_ratios(
    base: impl IntoIterator<Item = (u32, f64)>,
    other: impl IntoIterator<Item = (u32, f64)>,
) -> Vec<f64> {
    let of_base: BTreeMap<u32, f64> = base.into_iter().collect();
    other
        .into_iter()
        .filter_map(|(round, value)| Some((value / of_base.get(&round)?).ln()))
        .collect()
}

/// Operations per nanosecond, or nanoseconds of the server's CPU per operation; `None` where it is
/// nothing.
pub(crate) fn of_turn(turn: &Turn, is_rate: bool) -> Option<f64> {
    let operations = turn.operations as f64;
    let value = if is_rate {
        operations / turn.active_ns as f64
    } else {
        turn.server_cpu_ns? as f64 / operations
    };
    (value.is_finite() && value > 0.0).then_some(value)
}
