//! Which load of its data a trial begins with, and how many loads there is time for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_stats::LOADS_AS_UNITS;

/// Up to this number loads may take [`SHARE_OF_FEW`] of a budget, and more of them
/// [`SHARE_OF_MANY`]. With half as many an interval has what loads differ by in it, but if there is
/// one test it is 3.2 errors wide to either side, and with so many 2.4 (`t` for 3 and 7 degrees of
/// freedom).
pub(super) const FEW: usize = 2 * LOADS_AS_UNITS;
const SHARE_OF_FEW: u32 = 3;
const SHARE_OF_MANY: u32 = 6;

/// What a load took of all cells.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Took {
    /// To load it.
    pub loading: Duration,
    /// To make the first copies, which the next load does not need.
    pub copying: Duration,
}

/// With so many loads that could not be made, the next would not be, either: it is not tried.
const MOST_FAILED: usize = 2;

/// What there is of loads, for all cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    /// Those that are there, with the time that each took.
    pub made: BTreeMap<u32, Took>,
    /// Those that could not be made for some cell.
    pub failed: BTreeSet<u32>,
}

/// The load, from 1, of a block or start, from 1. They take one load after the other, and each
/// meets all of the `placements` if there are starts enough. One that is not there is made if that
/// fits into its share of the budget; one that failed is left out.
pub(super) fn load_of(
    block: u32,
    asked: u32,
    placements: u32,
    loads: &Loads,
    budget: Option<Duration>,
) -> u32 {
    let Loads { made, failed } = loads;
    let turn = block.saturating_sub(1);
    let in_turn = |among: &[u32]| {
        let place = in_turn(turn, among.len().max(1) as u32, placements);
        among.get(place as usize).copied()
    };
    let has_time = || {
        let (Some(budget), Some(last)) = (budget, made.values().last()) else {
            return true;
        };
        let share = match made.len() < FEW {
            true => SHARE_OF_FEW,
            false => SHARE_OF_MANY,
        };
        let all: Duration = made.values().map(|took| took.loading + took.copying).sum();
        all + last.loading <= budget / share
    };
    let wanted: Vec<u32> = (1..=asked).filter(|load| !failed.contains(load)).collect();
    let are_all_made = made.len() >= wanted.len();
    let may_be_made = failed.len() < MOST_FAILED && has_time();
    let next = in_turn(&wanted).filter(|_| are_all_made || may_be_made);
    let there: Vec<u32> = made.keys().copied().collect();
    next.or_else(|| in_turn(&there))
        .or(failed.first().copied())
        .unwrap_or(1)
}

/// The load, from 0, of a turn, from 0. A placement stays for two turns. When both are where they
/// began, loads move on by two: if a load met one placement alone, what placements differ by would
/// be taken for what loads differ by.
fn in_turn(turn: u32, loads: u32, placements: u32) -> u32 {
    let moved = match placements {
        0 | 1 => 0,
        _ => 2 * (turn / both_begin_again(loads, placements)),
    };
    (turn + moved) % loads
}

/// After so many turns, at most twice as many as there are pairs.
fn both_begin_again(loads: u32, placements: u32) -> u32 {
    let again = (1..=2 * placements).find(|times| (times * loads).is_multiple_of(2 * placements));
    again.unwrap_or(1) * loads
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loads of the first starts; copies of the first load take as long as a load.
    fn loads(asked: u32, load_s: u64, budget_s: Option<u64>) -> Vec<u32> {
        let mut there = Loads::default();
        let start = |block| {
            let load = load_of(block, asked, 1, &there, budget_s.map(Duration::from_secs));
            let loading = Duration::from_secs(load_s);
            let copying = if there.made.is_empty() {
                loading
            } else {
                Duration::ZERO
            };
            let took = Took { loading, copying };
            there.made.entry(load).or_insert(took);
            load
        };
        (1..=9).map(start).collect()
    }

    #[test]
    fn there_are_as_many_loads_as_there_is_time_for() {
        for (asked, load_s, budget_s, expected) in [
            (6, 10, None, [1, 2, 3, 4, 5, 6, 1, 2, 3]),
            (6, 10, Some(2700), [1, 2, 3, 4, 5, 6, 1, 2, 3]),
            // A third of the budget for eight loads, and a sixth for more.
            (16, 3, Some(120), [1, 2, 3, 4, 5, 6, 7, 8, 1]),
            (16, 5, Some(120), [1, 2, 3, 4, 5, 6, 7, 1, 2]),
            (6, 20, Some(300), [1, 2, 3, 4, 1, 2, 3, 4, 1]),
            (6, 25, Some(300), [1, 2, 3, 1, 2, 3, 1, 2, 3]),
            (6, 60, Some(300), [1; 9]),
            (2, 10, None, [1, 2, 1, 2, 1, 2, 1, 2, 1]),
        ] {
            let found = loads(asked, load_s, budget_s);
            assert_eq!(found, expected, "{asked} of {load_s} s in {budget_s:?}");
        }
    }

    #[test]
    fn a_campaign_that_goes_on_makes_the_load_of_its_start() {
        let none = Loads::default();
        assert_eq!(load_of(9, 6, 1, &none, Some(Duration::from_secs(10))), 3);
    }

    /// What each start behind such loads begins with, when those in `cannot` are never made.
    fn loads_without(cannot: &[u32], starts: u32, asked: u32) -> Vec<u32> {
        let mut there = Loads::default();
        let start = |block| {
            let load = load_of(block, asked, 1, &there, None);
            match cannot.contains(&load) {
                true => _ = there.failed.insert(load),
                false => _ = there.made.insert(load, Took::default()),
            }
            load
        };
        (1..=starts).map(start).collect()
    }

    /// One load that failed by chance, and no other was made: what loads differ by was in no
    /// interval any more.
    #[test]
    fn a_load_that_failed_is_left_out_and_the_others_are_made() {
        assert_eq!(loads_without(&[2], 7, 4), [1, 2, 4, 1, 3, 4, 1]);
        assert_eq!(loads_without(&[1], 5, 3), [1, 3, 2, 3, 2]);
    }

    /// Each start behind it tried again, and took the time of a load.
    #[test]
    fn after_two_loads_that_failed_none_is_tried() {
        assert_eq!(
            loads_without(&[3, 5, 6, 7, 8], 8, 16),
            [1, 2, 3, 5, 1, 2, 1, 2]
        );
        let all: Vec<u32> = (1..=16).collect();
        assert_eq!(loads_without(&all, 5, 16), [1, 3, 1, 1, 1]);
    }

    #[test]
    fn each_load_meets_each_placement_equally_often() {
        for (loads, placements) in (1..=9).flat_map(|loads| [1, 2, 3].map(|of| (loads, of))) {
            // As `Confirm::placement_number` has it.
            let placement = |turn: u32| turn / loads.min(2) % placements;
            let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            let turns = loads * both_begin_again(loads, placements);
            for turn in 0..turns {
                let met = (in_turn(turn, loads, placements), placement(turn));
                *counts.entry(met).or_default() += 1;
            }
            assert_eq!(counts.len() as u32, loads * placements, "{counts:?}");
            let each = turns / (loads * placements);
            assert!(
                counts.values().all(|count| *count == each),
                "{loads} {placements}: {counts:?}"
            );
        }
    }
}
