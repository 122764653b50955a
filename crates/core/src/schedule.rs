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
pub fn schedule(cells: usize, blocks: u32, seed: u64) -> Vec<ScheduledTrial> {
    let mut trials = Vec::new();
    for block in 1..=blocks {
        let mut order: Vec<usize> = (0..cells).collect();
        Draw::new(seed, &["schedule", &block.to_string()]).shuffle(&mut order);
        for cell in order {
            trials.push(ScheduledTrial { number: trials.len() as u32 + 1, block, cell });
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
            let mut cells: Vec<_> = trials.iter().filter(|t| t.block == block).map(|t| t.cell).collect();
            cells.sort_unstable();
            assert_eq!(cells, [0, 1, 2, 3, 4]);
        }
    }
}
