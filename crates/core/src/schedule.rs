//! Which trial runs when: a pure function of the plan and the seed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::seed::Draw;

/// One server start on one data state: a cell in a block, or in a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledTrial {
    /// Position in the schedule, from 1. Part of the trial's folder name.
    pub number: u32,
    /// The block, from 1.
    pub block: u32,
    /// The part of the block, from 1; none if blocks are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
    /// Index of the cell in the plan.
    pub cell: usize,
}

impl ScheduledTrial {
    /// What it may not leave its host without.
    pub fn unit(&self) -> Unit {
        Unit {
            block: self.block,
            part: self.part,
        }
    }
}

/// What never leaves a host: a block, or a part of one. Trials of one unit are of all cells, and
/// their ratios are those of one machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Unit {
    /// From 1.
    pub block: u32,
    /// From 1; none if blocks are whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<u32>,
}

impl fmt::Display for Unit {
    /// `block 3`, `part 2 of block 3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            None => write!(f, "block {}", self.block),
            Some(part) => write!(f, "part {part} of block {}", self.block),
        }
    }
}

/// How often all cells run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    pub count: u32,
    /// How many parts each block has; none if it is whole.
    pub parts: Option<u32>,
}

impl Blocks {
    /// Blocks, or parts of them.
    pub fn units(self) -> u32 {
        self.count * self.parts.unwrap_or(1)
    }
}

impl From<u32> for Blocks {
    /// So many that are whole.
    fn from(count: u32) -> Self {
        Self { count, parts: None }
    }
}

/// Every cell once per block, or per part of one; the order inside each is shuffled by the seed.
///
/// Two cells have balanced order: every second block has the order of the one before it reversed
/// (ABBA), so that what changes evenly over time does as much to the one as to the other. So has
/// the same part of every second block.
pub fn schedule(cells: usize, blocks: impl Into<Blocks>, seed: u64) -> Vec<ScheduledTrial> {
    arrange(cells, cells == 2, blocks.into(), seed)
}

/// The same where one of the cells is the A/A control of another, and two candidates are balanced.
pub fn schedule_with_control(
    cells: usize,
    blocks: impl Into<Blocks>,
    seed: u64,
) -> Vec<ScheduledTrial> {
    arrange(cells, cells == 3, blocks.into(), seed)
}

fn arrange(cells: usize, is_balanced: bool, blocks: Blocks, seed: u64) -> Vec<ScheduledTrial> {
    let parts: Vec<Option<u32>> = match blocks.parts {
        None => vec![None],
        Some(parts) => (1..=parts).map(Some).collect(),
    };
    let mut orders: Vec<Vec<usize>> = vec![(0..cells).collect(); parts.len()];
    let mut trials = Vec::new();
    for block in 1..=blocks.count {
        for (&part, order) in parts.iter().zip(&mut orders) {
            if is_balanced && block % 2 == 0 {
                order.reverse();
            } else {
                order.sort_unstable();
                draw(seed, Unit { block, part }).shuffle(order);
            }
            for &cell in order.iter() {
                trials.push(ScheduledTrial {
                    number: trials.len() as u32 + 1,
                    block,
                    part,
                    cell,
                });
            }
        }
    }
    trials
}

fn draw(seed: u64, unit: Unit) -> Draw {
    let block = unit.block.to_string();
    match unit.part {
        None => Draw::new(seed, &["schedule", &block]),
        Some(part) => Draw::new(seed, &["schedule", &block, &part.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_holds_every_cell_once() {
        let trials = schedule(5, 3, 99);
        assert_eq!(trials, schedule(5, 3, 99));
        assert_ne!(trials, schedule(5, 3, 100));
        for block in 1..=3 {
            let mut cells: Vec<_> = trials
                .iter()
                .filter(|t| t.block == block)
                .map(|t| t.cell)
                .collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn two_cells_swap_places_from_block_to_block() {
        let of = |trials: Vec<ScheduledTrial>| -> Vec<usize> {
            trials.iter().map(|trial| trial.cell).collect()
        };
        for seed in 0..20 {
            let two = of(schedule(2, 4, seed));
            assert_eq!((two[0], two[1]), (two[3], two[2]), "{two:?}");
            assert_eq!((two[4], two[5]), (two[7], two[6]), "{two:?}");
            let with_control = of(schedule_with_control(3, 4, seed));
            assert_eq!(
                with_control[3..6],
                [with_control[2], with_control[1], with_control[0]]
            );
        }
        let firsts: Vec<usize> = (0..20).map(|seed| of(schedule(2, 4, seed))[0]).collect();
        assert!(
            firsts.contains(&0) && firsts.contains(&1),
            "which of them begins is the seed's choice"
        );
        assert!(
            (0..20).any(|seed| of(schedule(3, 4, seed))[3..6]
                != [2, 1, 0].map(|at| of(schedule(3, 4, seed))[at])),
            "three are shuffled"
        );
    }

    #[test]
    fn parts_of_a_block_hold_every_cell_and_have_orders_of_their_own() {
        let blocks = Blocks {
            count: 4,
            parts: Some(3),
        };
        assert_eq!(blocks.units(), 12);
        let of_unit = |trials: &[ScheduledTrial], block, part| -> Vec<usize> {
            let part = Some(part);
            let of = trials.iter().filter(|of| of.unit() == Unit { block, part });
            of.map(|trial| trial.cell).collect()
        };
        let trials = schedule(5, blocks, 7);
        assert_eq!(trials, schedule(5, blocks, 7));
        assert_eq!(trials.len(), 60);
        let mut orders = std::collections::BTreeSet::new();
        for (block, part) in (1..=4).flat_map(|block| (1..=3).map(move |part| (block, part))) {
            let mut cells = of_unit(&trials, block, part);
            orders.insert(cells.clone());
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4]);
        }
        assert!(orders.len() > 6, "{orders:?}");
        let two = schedule(2, blocks, 7);
        for part in 1..=3 {
            let mut first = of_unit(&two, 1, part);
            first.reverse();
            assert_eq!(first, of_unit(&two, 2, part), "ABBA in part {part}");
        }
        assert_eq!(two[2].unit().to_string(), "part 2 of block 1");
        assert_eq!(schedule(2, 3, 7)[2].unit().to_string(), "block 2");
    }

    /// Schedules of campaigns that are there must stay what they are.
    #[test]
    fn a_whole_block_says_nothing_of_parts() {
        let trial = &schedule(2, 1, 7)[0];
        let text = serde_json::to_string(trial).unwrap();
        assert!(!text.contains("part"), "{text}");
        assert_eq!(
            &serde_json::from_str::<ScheduledTrial>(&text).unwrap(),
            trial
        );
    }
}
