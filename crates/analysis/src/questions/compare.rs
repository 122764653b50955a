//! Two cells side by side: ratios per step, means per group, what moved most.

use itertools::Itertools;
use plimsoll_core::plan::published::{PUBLISHED, group_of};
use plimsoll_stats::{RESAMPLES, mann_whitney, median_ratio, seed_of};

use crate::cells::beyond::{BeyondBuild, between};
use crate::cells::machines;
use crate::post::{
    OVER_USERS, PairWords, RowRatio, has_verdicts, has_writes, is_rocksdb, missed_named_rate,
    of_pair,
};
use crate::runs::status::Status;
use crate::steps::step_view::StepView;
use crate::view::View;
use crate::words::notes::ONE_CELL;

/// How many movers are named.
const MOVERS: usize = 5;

/// Runs on each side from which on they are compared as samples: with fewer no Mann-Whitney test
/// finds anything at 0.05.
const LEAST_RUNS: usize = 4;
/// The level of the intervals.
pub const LEVEL: f64 = 0.95;

/// What is concluded about two campaigns' runs.
pub const UNPAIRED: &str = "Values are medians over runs. The campaigns ran one after the other: p \
                       (Mann-Whitney) and the 95 % interval of the ratio of medians (bootstrap) \
                       tell chance apart from a difference, but not the builds from what changed \
                       on the machine in between. `plimsoll confirm` runs both in turn.";

/// One cell against another.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub a: String,
    pub b: String,
    /// The campaigns that they are of.
    pub campaigns: [String; 2],
    /// What differs beyond the builds, `a` first in each.
    pub beyond_build: Vec<BeyondBuild>,
    /// Steps that at least one has, in the order of reports.
    pub rows: Vec<Row>,
    /// Groups in the order of their first step: name, geometric mean of the ratios, steps.
    pub groups: Vec<(String, f64, usize)>,
    /// What single runs are called in a post; `None` where intervals or pairs of blocks say more.
    pub words: Option<PairWords>,
    /// Why this is not a verdict.
    pub caveat: &'static str,
    /// What the campaigns' reports say of their numbers.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub step: String,
    pub group: String,
    /// The metric: a rate, more is better.
    pub metric: &'static str,
    pub unit: &'static str,
    /// The base's value: printed, and in full precision.
    pub a: Option<(String, f64)>,
    pub b: Option<(String, f64)>,
    /// Whether a witness saw the machine disturbed, or the writers missed their rate, on either
    /// side.
    pub is_doubtful: bool,
    /// The runs of both sides as samples, where two campaigns have at least [`LEAST_RUNS`] each.
    pub unpaired: Option<Unpaired>,
}

/// Two samples that are not paired: b against a.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unpaired {
    /// The 95 % bootstrap interval of the ratio of medians.
    pub interval: (f64, f64),
    /// The exact two-sided p of Mann and Whitney.
    pub p: f64,
    /// Runs of a and of b.
    pub runs: (usize, usize),
}

impl Unpaired {
    /// None where either side has too few runs.
    pub fn of(a: &[f64], b: &[f64]) -> Option<Self> {
        if a.len().min(b.len()) < LEAST_RUNS {
            return None;
        }
        let (_, interval) = median_ratio(a, b, LEVEL, RESAMPLES, seed_of(&[a, b].concat()))?;
        Some(Self {
            interval: (interval.low.exp(), interval.high.exp()),
            p: mann_whitney(a, b)?.p_two_sided,
            runs: (a.len(), b.len()),
        })
    }
}

impl Row {
    /// b / a from values in full precision.
    pub fn ratio(&self) -> Option<f64> {
        let (a, b) = (self.a.as_ref()?.1, self.b.as_ref()?.1);
        (a > 0.0 && b > 0.0).then_some(b / a)
    }
}

/// Compares a cell of one view with a cell of another, which may be the same view.
pub fn compare(a: (&View, usize), b: (&View, usize)) -> Comparison {
    let names =
        a.0.steps
            .iter()
            .chain(&b.0.steps)
            .map(|step| step.name.as_str())
            .unique();
    let is_rocksdb = is_rocksdb(a) || is_rocksdb(b);
    let rows: Vec<Row> = names
        .filter_map(|name| row(name, a, b, is_rocksdb))
        .collect();
    let mut groups: Vec<(String, Vec<f64>)> = Vec::new();
    for row in &rows {
        let Some(ratio) = row.ratio() else { continue };
        match groups.iter_mut().find(|(name, _)| *name == row.group) {
            Some((_, ratios)) => ratios.push(ratio),
            None => groups.push((row.group.clone(), vec![ratio])),
        }
    }
    let is_once = |(view, cell): (&View, usize)| {
        view.steps
            .iter()
            .all(|step| step.outcomes[cell].blocks_used <= 1)
    };
    let mut notes: Vec<String> = a.0.notes.iter().chain(&b.0.notes).cloned().collect();
    if let Some(difference) = machines::difference(&a.0.cells[a.1].machine, &b.0.cells[b.1].machine)
    {
        notes.push(format!(
            "‡ a and b ran on different machines ({difference}): a ratio compares the machines too."
        ));
    }
    let mut seen = std::collections::BTreeSet::new();
    // A side may be a view of one cell: here it has another beside it.
    notes.retain(|note| note != ONE_CELL && seen.insert(note.clone()));
    let has_samples = rows.iter().any(|row| row.unpaired.is_some());
    let is_judged = has_verdicts(a.0) || (!is_once(a) && !is_once(b));
    let is_in_pairs = campaign(a) == campaign(b) && is_judged;
    let words = (!has_samples && !is_in_pairs).then(|| {
        let counted = rows.iter().map(|row| RowRatio {
            group: &row.group,
            step: &row.step,
            ratio: row.ratio().filter(|_| !row.is_doubtful),
        });
        of_pair(a, b, &counted.collect::<Vec<_>>())
    });
    Comparison {
        words,
        notes,
        beyond_build: between(&[a, b]),
        a: a.0.cells[a.1].label.clone(),
        b: b.0.cells[b.1].label.clone(),
        campaigns: [a, b].map(|side| campaign(side).to_owned()),
        groups: groups
            .into_iter()
            .map(|(name, ratios)| (name, geometric_mean(&ratios), ratios.len()))
            .collect(),
        caveat: if is_once(a) || is_once(b) {
            "Each value is from one run: a difference is something to look at, not a \
                verdict."
        } else if campaign(a) == campaign(b) {
            "Values are medians over blocks; `plimsoll show` judges them by pairs."
        } else if has_samples {
            UNPAIRED
        } else {
            "Values are medians over few blocks: a difference is something to look at, not a \
                verdict."
        },
        rows,
    }
}

fn campaign((view, cell): (&View, usize)) -> &str {
    &view.campaigns[view.cells[cell].campaign].id
}

fn row(name: &str, a: (&View, usize), b: (&View, usize), is_rocksdb: bool) -> Option<Row> {
    let find =
        |view: &'_ View| -> Option<usize> { view.steps.iter().position(|step| step.name == name) };
    let (in_a, in_b) = (
        find(a.0).map(|i| &a.0.steps[i]),
        find(b.0).map(|i| &b.0.steps[i]),
    );
    let step = in_a.or(in_b)?;
    let value = |step: Option<&StepView>, cell: usize| {
        let measure = step?.outcomes[cell].measure(step?.rate)?;
        let number = measure
            .value
            .value
            .or_else(|| measure.classic.as_ref()?.parse().ok())?;
        Some((measure.classic.clone().or_else(|| measure.text())?, number))
    };
    let is_doubtful = |step: Option<&StepView>, cell: usize| {
        step.is_some_and(|step| {
            let outcome = &step.outcomes[cell];
            let has_missed = missed_named_rate(step, outcome);
            has_missed || matches!(outcome.status, Status::Suspect | Status::SlaMissed)
        })
    };
    let row = Row {
        step: name.to_owned(),
        group: if is_rocksdb && has_writes(name) {
            "steps with writes".to_owned()
        } else if is_rocksdb {
            "read-only steps".to_owned()
        } else {
            group(name)
        },
        metric: step.rate.name,
        unit: step.rate.unit,
        a: value(in_a, a.1),
        b: value(in_b, b.1),
        is_doubtful: is_doubtful(in_a, a.1) || is_doubtful(in_b, b.1),
        unpaired: match (in_a, in_b) {
            (Some(of_a), Some(of_b)) if campaign(a) != campaign(b) => Unpaired::of(
                &of_a.outcomes[a.1].rate_of_blocks,
                &of_b.outcomes[b.1].rate_of_blocks,
            ),
            _ => None,
        },
    };
    (row.a.is_some() || row.b.is_some()).then_some(row)
}

/// The group that a step is listed in.
pub fn group(step: &str) -> String {
    let test = step.split_once("_range=").map_or(step, |(test, _)| test);
    let (base, variant) = test.split_once('.').unwrap_or((test, ""));
    let is_known = PUBLISHED.iter().any(|(known, _)| *known == base);
    if let Some((test, _)) = step
        .rsplit_once('@')
        .filter(|(_, at)| at.parse::<u32>().is_ok())
    {
        return format!("{test}{OVER_USERS}");
    }
    let text = if is_known && !variant.is_empty() {
        "warm-ups and tests before the writes"
    } else if is_known {
        group_of(test).title()
    } else if step == "prepare" || step.starts_with("l.") {
        "load steps"
    } else if step.starts_with('q') {
        "query steps"
    } else {
        "all steps"
    };
    text.to_owned()
}

/// The geometric mean of ratios.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

impl Comparison {
    /// The steps that are farthest from 1, the farthest first.
    pub fn movers(&self) -> Vec<&Row> {
        let mut rows: Vec<(&Row, f64)> = self
            .rows
            .iter()
            .filter_map(|row| Some((row, row.ratio()?.ln().abs())))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        // What may well be chance has not moved.
        rows.retain(|(row, _)| {
            row.unpaired
                .is_none_or(|unpaired| unpaired.p <= 1.0 - LEVEL)
        });
        rows.into_iter()
            .take(MOVERS)
            .filter(|(_, distance)| *distance > 0.005)
            .map(|(row, _)| row)
            .collect()
    }
}

/// Which cells of two views belong together: the only ones, those with the same label, else those
/// with the same config and shape. Empty when neither rule pairs any.
pub fn pairs(a: &View, b: &View) -> Vec<(usize, usize)> {
    if let ([_], [_]) = (&a.cells[..], &b.cells[..]) {
        return vec![(0, 0)];
    }
    let by = |is_pair: fn(
        &crate::cells::cell_info::CellInfo,
        &crate::cells::cell_info::CellInfo,
    ) -> bool|
     -> Vec<(usize, usize)> {
        let of = |i: usize| {
            let mut found = b
                .cells
                .iter()
                .enumerate()
                .filter(|(_, cell)| is_pair(&a.cells[i], cell))
                .map(|(j, _)| j);
            let first = found.next()?;
            found.next().is_none().then_some((i, first))
        };
        (0..a.cells.len()).filter_map(of).collect()
    };
    let same_label = by(|a, b| a.label == b.label);
    let is_one_build = |view: &View| {
        view.cells
            .iter()
            .all(|cell| cell.build == view.cells[0].build)
    };
    if !same_label.is_empty() {
        same_label
    } else if is_one_build(a) && is_one_build(b) {
        by(|a, b| (&a.config, &a.shape) == (&b.config, &b.shape))
    } else {
        Vec::new()
    }
}
