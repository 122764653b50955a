//! Turns in which operations took far longer than in a typical one.

use plimsoll_stats::{median, quantile};
use plimsoll_store::Turn;

/// A turn holds a stall if its operations took longer than typical ones by at least this share of a
/// typical turn,
const LEAST_SHARE: f64 = 0.25;
/// and by at least this long.
const LEAST_NS: f64 = 5e6;

/// The stalls of one candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stalls {
    turns: usize,
    /// What each turn with a stall took beyond what as many typical operations take, ns.
    excess_ns: Vec<f64>,
}

impl Stalls {
    /// Adds the turns of one start, which have a typical operation of their own.
    pub fn add(&mut self, turns: &[Turn]) {
        let active: Vec<f64> = turns.iter().map(|turn| turn.active_ns as f64).collect();
        let per_operation: Vec<f64> = turns
            .iter()
            .filter(|turn| turn.operations > 0)
            .map(|turn| turn.active_ns as f64 / turn.operations as f64)
            .collect();
        let (Some(length), Some(operation)) = (median(&active), median(&per_operation)) else {
            return;
        };
        self.turns += turns.len();
        let least = LEAST_NS.max(LEAST_SHARE * length);
        let excess = turns
            .iter()
            .map(|turn| turn.active_ns as f64 - turn.operations as f64 * operation);
        self.excess_ns.extend(excess.filter(|ns| *ns >= least));
    }

    /// The share of turns that hold a stall.
    pub fn share(&self) -> f64 {
        match self.turns {
            0 => 0.0,
            turns => self.excess_ns.len() as f64 / turns as f64,
        }
    }

    /// `4 % of its turns hold stalls of 60 to 140 ms`: the range is that of the middle 80 %. `None`
    /// without a stall.
    pub fn words(&self, whose: &str) -> Option<String> {
        let mut sorted = self.excess_ns.clone();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (quantile(&sorted, 0.1)?, quantile(&sorted, 0.9)?);
        let ms = |ns: f64| format!("{:.0}", ns / 1e6);
        let (low, high) = (ms(low), ms(high));
        let range = if low == high {
            low
        } else {
            format!("{low} to {high}")
        };
        let percent = 100.0 * self.share();
        let decimals = usize::from(percent < 2.0);
        Some(format!(
            "{percent:.decimals$} % of {whose} turns hold stalls of {range} ms"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(active_ms: u64, operations: u64) -> Turn {
        Turn {
            active_ns: active_ms * 1_000_000,
            operations,
            ..Turn::default()
        }
    }

    #[test]
    fn turns_that_wait_are_told_from_turns_that_are_slow() {
        let mut stalls = Stalls::default();
        // 96 usual turns, a little slow or fast, and 4 that wait for 60 to 140 ms.
        let mut turns: Vec<Turn> = (0..96).map(|i| turn(20, 200 + i % 9)).collect();
        turns.extend([
            turn(80, 200),
            turn(100, 202),
            turn(140, 204),
            turn(160, 204),
        ]);
        stalls.add(&turns);
        assert!((stalls.share() - 0.04).abs() < 1e-9);
        assert_eq!(
            stalls.words("its").unwrap(),
            "4 % of its turns hold stalls of 66 to 134 ms"
        );
        let mut none = Stalls::default();
        none.add(&turns[..96]);
        assert_eq!((none.share(), none.words("its")), (0.0, None));
        none.add(&[]);
        assert_eq!(none.share(), 0.0);
        // A turn without an operation is a stall as long as itself.
        let mut empty = Stalls::default();
        empty.add(&[turn(20, 10), turn(20, 10), turn(20, 0)]);
        assert_eq!(
            empty.words("the base's").unwrap(),
            "33 % of the base's turns hold stalls of 20 ms"
        );
    }
}
