//! What blocks can show, from how far starts of this machine lie apart, said before anything is
//! run.

use plimsoll_core::engines::EngineName;
use plimsoll_core::plan::Plan;
use plimsoll_stats::{PRIOR_SPREAD, as_percent, blocks_needed, minimum_detectable_effect};
use serde::Serialize;
use serde_json::Value;

use super::spreads::{Spreads, facts};
use crate::metrics;
use crate::stored::Stored;
use crate::verdicts::finding::{ALPHA, MARGIN};

/// A difference as large as said is found in so many of all campaigns.
const POWER: f64 = 0.8;
/// Any seed: the answer must be the same each time.
const SEED: u64 = 1;

/// How small a difference a number of blocks can show in one step of one engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepPower {
    pub engine: EngineName,
    pub step: String,
    /// The standard deviation of ln(throughput) between starts of one build.
    pub spread: f64,
    /// Starts of this machine behind it; 0 where it is assumed.
    pub spread_starts: usize,
    /// The smallest change of throughput in percent that is found in four of five campaigns, as one
    /// question at 5 %. None when so few blocks can show nothing.
    pub smallest_percent: Option<f64>,
}

/// What blocks can show in a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The blocks it applies to.
    pub blocks: usize,
    /// By engine and step, the largest spread last.
    pub steps: Vec<StepPower>,
    /// Blocks that find a difference as large as the margin of 3 % in the step with the largest
    /// spread, in four of five campaigns.
    pub blocks_for_margin: Option<usize>,
}

/// What so many blocks of a plan can show on the machine with these facts (those of a trial's
/// environment). A pair of equal builds differs by `sqrt(2) x spread of starts`, and the smallest
/// difference is the signed-rank test's minimum detectable effect in those.
pub fn power_of_blocks(
    plan: &Plan,
    blocks: usize,
    environment: &Value,
    stored: &Stored<'_>,
) -> Power {
    let spreads = Spreads::of_facts(Some(facts(environment)), stored);
    let effect = minimum_detectable_effect(blocks, ALPHA, POWER, SEED);
    let mut steps: Vec<StepPower> = Vec::new();
    for cell in &plan.cells {
        for step in cell
            .workload
            .steps()
            .iter()
            .filter(|step| step.is_reported && !step.makes_data())
        {
            let engine = cell.build.engine;
            if steps
                .iter()
                .any(|known| known.engine == engine && known.step == step.name)
            {
                continue;
            }
            let spread = spreads.of(engine, &step.name, metrics::QPS.name);
            let smallest_percent =
                effect.map(|effect| as_percent(effect * spread.sd * std::f64::consts::SQRT_2));
            steps.push(StepPower {
                engine,
                step: step.name.clone(),
                spread: spread.sd,
                spread_starts: spread.starts,
                smallest_percent,
            });
        }
    }
    steps.sort_by(|a, b| a.spread.total_cmp(&b.spread));
    let largest = steps.last().map_or(PRIOR_SPREAD, |step| step.spread) * std::f64::consts::SQRT_2;
    Power {
        blocks,
        steps,
        blocks_for_margin: blocks_needed(MARGIN.ln_1p() / largest, ALPHA, POWER, SEED),
    }
}

impl Power {
    /// One sentence; empty without a step.
    pub fn to_text(&self) -> String {
        let (Some(least), Some(most)) = (self.steps.first(), self.steps.last()) else {
            return String::new();
        };
        let (Some(small), Some(large)) = (least.smallest_percent, most.smallest_percent) else {
            return format!(
                "{} blocks can show no difference, however large",
                self.blocks
            );
        };
        let is_one = least.spread == most.spread;
        let range = |low: String, high: String| {
            if is_one {
                high
            } else {
                format!("{low} to {high}")
            }
        };
        let found = range(
            format!("{small:.1} % ({})", least.step),
            match is_one {
                true => format!("{large:.1} %"),
                false => format!("{large:.1} % ({})", most.step),
            },
        );
        let spread = range(
            format!("{:.1}", 100.0 * least.spread),
            format!("{:.1} %", 100.0 * most.spread),
        );
        let starts = self
            .steps
            .iter()
            .map(|step| step.spread_starts)
            .max()
            .unwrap_or(0);
        let source = if starts == 0 {
            "assumed, nothing is measured here yet".to_owned()
        } else {
            format!("from up to {starts} starts of this machine")
        };
        let margin = self.blocks_for_margin.map_or(String::new(), |needed| {
            let at = if is_one {
                String::new()
            } else {
                format!(" in {}", most.step)
            };
            format!("; {needed} would find {:.0} %{at}", 100.0 * MARGIN)
        });
        format!(
            "{} blocks find differences from {found} on in four of five campaigns (spread of \
            starts {spread}, {source}){margin}",
            self.blocks
        )
    }
}
