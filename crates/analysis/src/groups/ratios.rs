//! What each start or block says of a finding.

use std::collections::BTreeMap;

use plimsoll_stats::StartRatio;

use crate::runs::cell_runs::CellRuns;
use crate::verdicts::pairs::{counting, value};
use crate::verdicts::{Basis, Finding};

/// Log ratios of a cell and the base with their errors from within, by the number of the start or
/// block. A block's has no error of its own. Empty for a survey.
pub(crate) type Ratios = BTreeMap<u32, StartRatio>;

pub(crate) fn ratios(finding: &Finding, cells: &[CellRuns<'_>]) -> Ratios {
    match finding.basis {
        Basis::Screen => Ratios::new(),
        Basis::Slices => {
            let starts = finding.by_start.iter();
            starts
                .map(|of| {
                    let ratio = StartRatio {
                        ratio: of.ratio.ln(),
                        within: of.within,
                        load: of.load,
                    };
                    (of.start, ratio)
                })
                .collect()
        }
        Basis::Blocks => {
            let (base, cell) = (&cells[finding.base], &cells[finding.cell]);
            let metric = finding.metric.name;
            let of_block = |(base, cell)| Some((value(cell, metric)? / value(base, metric)?).ln());
            let (pairs, _) = counting(finding.basis, base, cell, &finding.step);
            pairs
                .into_iter()
                .filter_map(|pair| {
                    let block = pair.0.unit.block;
                    let ratio = of_block(pair)?;
                    Some((
                        block,
                        StartRatio {
                            ratio,
                            within: None,
                            load: 1,
                        },
                    ))
                })
                .collect()
        }
    }
}

/// The numbers of the starts that all of these have.
pub(crate) fn common<'a>(all: impl IntoIterator<Item = &'a Ratios>) -> Vec<u32> {
    let mut all = all.into_iter();
    let Some(first) = all.next() else {
        return Vec::new();
    };
    let others: Vec<&Ratios> = all.collect();
    let is_in_all = |start: &&u32| others.iter().all(|ratios| ratios.contains_key(start));
    first.keys().filter(is_in_all).copied().collect()
}

/// How many times as large as they say the errors of a mean are whose parts have these factors: the
/// root of the mean of their squares.
pub(crate) fn scale_of(scales: impl IntoIterator<Item = f64>) -> f64 {
    let (count, squares) = scales.into_iter().fold((0.0, 0.0), |(count, sum), scale| {
        (count + 1.0, sum + scale * scale)
    });
    match count > 0.0 {
        true => f64::sqrt(squares / count),
        false => 1.0,
    }
}
