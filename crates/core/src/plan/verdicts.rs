//! How `run` comes to verdicts: the table `[verdicts]` of a plan.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::document::Document;
use super::{Cell, Plan, PlanError};
use crate::source::Source;
use crate::written::{Duration, Share};

/// With n pairs no two-sided signed-rank test gives less than 2 / 2^n; with fewer than six that is
/// above 0.05.
pub const FEWEST_BLOCKS: u32 = 6;
const MOST_BLOCKS: u32 = 1000;
/// How the cells of a plan are held against its base, which runs twice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdicts {
    /// All steps of each cell, one trial after the other, so many times.
    Blocks(u32),
    /// By slices for as long as the budget lasts.
    Budget(Budget),
}

/// When a campaign of slices has measured enough: a step leaves when its throughputs are known well
/// enough, and no start begins that would end behind the time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// From the campaign's beginning to its end, the making of data included.
    pub time_ns: u64,
    /// The half-width of 95 % intervals that is enough for a step that reads, as a share.
    pub reads: f64,
    /// The same for a step that writes.
    pub writes: f64,
}

impl Budget {
    /// What a campaign of slices has if neither a plan nor its user gives another.
    pub const DEFAULT: Self = Self {
        time_ns: 45 * 60 * 1_000_000_000,
        reads: 0.01,
        writes: 0.04,
    };

    /// That of a plan, if it has one.
    pub fn of(plan: &Plan) -> Self {
        match plan.verdicts {
            Some(Verdicts::Budget(budget)) => budget,
            _ => Self::DEFAULT,
        }
    }
}

/// `[verdicts]` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    blocks: Option<Spanned<u32>>,
    budget: Option<Spanned<Duration>>,
    reads: Option<Share>,
    writes: Option<Share>,
}

impl Source<'_> {
    pub(super) fn verdicts(
        &self,
        document: &Document,
        cells: &[Cell],
    ) -> Result<Option<Verdicts>, PlanError> {
        let Some(written) = &document.verdicts else {
            return Ok(None);
        };
        let at = |message: &str| Err(self.error(Some(written.span()), message));
        if document.blocks.is_some() {
            return at(
                "[verdicts] says how often cells run: take out the plan's own `blocks`, which is \
                for a survey",
            );
        }
        if let Some(cell) = cells.iter().find(|cell| cell.server.is_some()) {
            return at(&format!(
                "[verdicts] is for builds: {} is on an external server, whose data cannot be made \
                again; use `blocks = 6` in place of the table",
                cell.label
            ));
        }
        let Written {
            blocks,
            budget,
            reads,
            writes,
        } = written.get_ref();
        match (blocks, budget) {
            (Some(blocks), None) if reads.is_none() && writes.is_none() => {
                let is_in_range = (FEWEST_BLOCKS..=MOST_BLOCKS).contains(blocks.get_ref());
                if !is_in_range {
                    return Err(self.error(
                        Some(blocks.span()),
                        format!(
                            "blocks must be {FEWEST_BLOCKS} to {MOST_BLOCKS}, not {}: fewer \
                            decide nothing",
                            blocks.get_ref()
                        ),
                    ));
                }
                Ok(Some(Verdicts::Blocks(*blocks.get_ref())))
            }
            (None, Some(budget)) if budget.get_ref().0 > 0 => Ok(Some(Verdicts::Budget(Budget {
                time_ns: budget.get_ref().0,
                reads: reads.map_or(Budget::DEFAULT.reads, |share| share.0),
                writes: writes.map_or(Budget::DEFAULT.writes, |share| share.0),
            }))),
            (None, Some(budget)) => Err(self.error(
                Some(budget.span()),
                "nothing can be measured in no time: budget = \"10m\"",
            )),
            (Some(_), None) => at("reads and writes are widths to be reached within a budget"),
            _ => at("[verdicts] has either blocks = 8 or budget = \"10m\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const PLAN: &str = "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\n\
                        configs = [\"wal_full\", \"wal_off\"]\n";

    fn parsed(more: &str) -> Result<Plan, String> {
        Plan::parse("t.toml", &format!("{PLAN}{more}")).map_err(|error| error.to_string())
    }

    #[test]
    fn blocks_or_a_budget() {
        let verdicts = |more: &str| parsed(more).unwrap().verdicts;
        assert_eq!(verdicts(""), None);
        assert_eq!(
            verdicts("[verdicts]\nblocks = 8\n"),
            Some(Verdicts::Blocks(8))
        );
        let budget = |reads, writes| {
            Some(Verdicts::Budget(Budget {
                time_ns: 600_000_000_000,
                reads,
                writes,
            }))
        };
        assert_eq!(
            verdicts("[verdicts]\nbudget = \"10m\"\n"),
            budget(0.01, 0.04)
        );
        assert_eq!(
            verdicts("[verdicts]\nbudget = \"10m\"\nreads = \"2%\"\nwrites = \"9%\"\n"),
            budget(0.02, 0.09)
        );
        let plan = parsed("[verdicts]\nbudget = \"10m\"\n").unwrap();
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        for (more, expected) in [
            ("[verdicts]\nblocks = 5\n", "t.toml:6:10: blocks must be 6"),
            ("[verdicts]\nblock = 8\n", "did you mean \"blocks\"?"),
            ("[verdicts]\n", "either blocks = 8 or budget"),
            (
                "[verdicts]\nblocks = 8\nbudget = \"1m\"\n",
                "either blocks = 8 or budget",
            ),
            (
                "[verdicts]\nblocks = 8\nreads = \"1%\"\n",
                "within a budget",
            ),
            ("[verdicts]\nbudget = \"0s\"\n", "nothing can be measured"),
            (
                "blocks = 6\n[verdicts]\nblocks = 8\n",
                "take out the plan's own",
            ),
        ] {
            let error = parsed(more).unwrap_err();
            assert!(error.contains(expected), "{more}: {error}");
        }
    }
}
