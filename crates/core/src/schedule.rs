//! Which trial runs when: a pure function of the plan and the seed.

use serde::{Deserialize, Serialize};

use crate::seed::Draw;

/// One server start on one data state: a cell in a block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledTrial {
    /// Position in the schedule, from 1. Part of the trial's folder name.
    pub number: u32,
    /// The block, from 1.
    pub block: u32,
    /// Index of the cell in the plan.
    pub cell: usize,
}

/// Every cell once per block; the order inside each block is shuffled by the seed.
///
/// Two cells have balanced order: every second block has the order of the one before it reversed
/// (ABBA), so that what changes evenly over time does as much to the one as to the other.
pub fn schedule(cells: usize, blocks: u32, seed: u64) -> Vec<ScheduledTrial> {
    arrange(cells, cells == 2, blocks, seed)
}

/// The same where one of the cells is the A/A control of another, and two candidates are balanced.
pub fn schedule_with_control(cells: usize, blocks: u32, seed: u64) -> Vec<ScheduledTrial> {
    arrange(cells, cells == 3, blocks, seed)
}

fn arrange(cells: usize, is_balanced: bool, blocks: u32, seed: u64) -> Vec<ScheduledTrial> {
    let mut trials = Vec::new();
    let mut order: Vec<usize> = (0..cells).collect();
    for block in 1..=blocks {
        if is_balanced && block % 2 == 0 {
            order.reverse();
        } else {
            order.sort_unstable();
            Draw::new(seed, &["schedule", &block.to_string()]).shuffle(&mut order);
        }
        for &cell in &order {
            trials.push(ScheduledTrial {
                number: trials.len() as u32 + 1,
                block,
                cell,
            });
        }
    }
    trials
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
}
