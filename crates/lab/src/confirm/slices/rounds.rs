//! What a step's turns say while they go on: ratios to the base, and whether there are enough of
//! them.

use plimsoll_analysis::{CONTROL_LEVEL, round_ratios};
use plimsoll_core::witness::Leakage;
use plimsoll_stats::{Clustered, clustered};

use crate::message::TurnDone;
use crate::observer::TurnsRatio;

/// A step that reads is precise enough when every interval is within this share to either side.
const READ_HALF_WIDTH: f64 = 0.01;
/// A step that writes.
const WRITE_HALF_WIDTH: f64 = 0.04;
/// No step ends with fewer rounds, however narrow its intervals are; its time is over in any case
/// when it is over.
const FEWEST_ROUNDS: u32 = 30;
/// Between two looks at the intervals there are at least this many rounds, and a tenth more.
const LOOK_ROUNDS: usize = 10;
/// The level of the intervals that say whether there are enough rounds.
const LEVEL: f64 = 0.95;

/// The rounds of one step in one start.
pub(super) struct Rounds {
    base: usize,
    control: usize,
    is_writing: bool,
    starts: u32,
    /// By candidate: each turn's throughput, one per round; none where there was none.
    rates: Vec<Vec<Option<f64>>>,
    /// By candidate.
    leaks: Vec<Leakage>,
    half_width: Option<f64>,
    /// Rounds of the next look.
    next_look: usize,
}

impl Rounds {
    pub fn new(
        candidates: usize,
        base: usize,
        control: usize,
        is_writing: bool,
        starts: u32,
    ) -> Self {
        let (rates, leaks) = (
            vec![Vec::new(); candidates],
            vec![Leakage::default(); candidates],
        );
        Self {
            base,
            control,
            is_writing,
            starts,
            rates,
            leaks,
            half_width: None,
            next_look: LOOK_ROUNDS,
        }
    }

    /// Books a turn; none for a candidate that is out.
    pub fn book(&mut self, candidate: usize, turn: Option<TurnDone>) {
        let rate = turn
            .as_ref()
            .filter(|turn| turn.operations > 0 && turn.active_ns > 0)
            .map(|turn| turn.operations as f64 / turn.active_ns as f64);
        self.rates[candidate].push(rate);
        if let Some(turn) = turn {
            self.leaks[candidate].add(turn.active_ns, turn.other_servers_cpu_ns, turn.left_cpu_ns);
        }
    }

    /// A candidate's throughput relative to the base's.
    pub fn ratio(&self, candidate: usize) -> Option<TurnsRatio> {
        let found = self.estimate(candidate, LEVEL)?;
        Some(TurnsRatio {
            ratio: found.estimate.exp(),
            half_width: found.interval.half_width(),
        })
    }

    fn estimate(&self, candidate: usize, level: f64) -> Option<Clustered> {
        let by_round = |candidate: usize| {
            let rates = (0..).zip(&self.rates[candidate]);
            rates.filter_map(|(round, rate)| Some((round, (*rate)?)))
        };
        let ratios = round_ratios(by_round(self.base), by_round(candidate));
        clustered(&[ratios], level)
    }

    /// Looks at how wide the intervals are, where it is time for it: every look takes longer than
    /// the one before.
    pub fn look(&mut self) {
        let rounds = self.rates[self.base].len();
        if rounds < self.next_look {
            return;
        }
        self.next_look = rounds + (rounds / 10).max(LOOK_ROUNDS);
        let present =
            (0..self.rates.len()).filter(|&at| at != self.base && self.rates[at].len() == rounds);
        let widths = present
            .filter(|&at| self.rates[at].last().is_some_and(Option::is_some))
            .map(|at| self.ratio(at));
        self.half_width = widths
            .map(|ratio| ratio.map(|ratio| ratio.half_width))
            .reduce(|a, b| Some(a?.max(b?)))
            .flatten();
    }

    /// At the last look: half of the widest interval of those that were still there, as a share;
    /// none while one of them had no interval.
    pub fn half_width(&self) -> Option<f64> {
        self.half_width
    }

    /// Whether intervals over all starts will be narrow enough when the other starts are as this
    /// one.
    pub fn are_enough(&self) -> bool {
        let needed = if self.is_writing {
            WRITE_HALF_WIDTH
        } else {
            READ_HALF_WIDTH
        };
        let rounds = self.rates[self.base].len() as u32;
        rounds >= FEWEST_ROUNDS
            && self
                .half_width
                .is_some_and(|width| width <= needed * f64::from(self.starts).sqrt())
    }

    /// Whether the control's 99 % interval holds 1; none where there is no interval.
    pub fn control_holds(&self) -> Option<bool> {
        self.estimate(self.control, CONTROL_LEVEL)
            .map(|found| found.interval.holds(0.0))
    }

    /// The candidates whose leakage is too much, by position.
    pub fn leaks(&self) -> impl Iterator<Item = (usize, &Leakage)> {
        self.leaks
            .iter()
            .enumerate()
            .filter(|(_, leakage)| leakage.is_high())
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::seed::Draw;

    use super::*;

    fn turn(operations: u64, leak_ns: u64) -> Option<TurnDone> {
        Some(TurnDone {
            round: 1,
            operations,
            active_ns: 18_000_000,
            operation_ns: Some(1_800),
            server_cpu_ns: None,
            other_servers_cpu_ns: Some(leak_ns),
            left_cpu_ns: Some(0),
            new_servers: None,
        })
    }

    /// Base, control, and one with nine tenths of their throughput.
    fn rounds(count: u64, scatter: u64, control: u64, leak_ns: u64, starts: u32) -> Rounds {
        let mut rounds = Rounds::new(3, 0, 1, false, starts);
        let mut draw = Draw::new(1, &["rounds"]);
        for _ in 0..count {
            let mut noise = || draw.below(10 * scatter + 1);
            rounds.book(0, turn(10_000 + noise(), leak_ns));
            rounds.book(1, turn(control + noise(), 0));
            rounds.book(2, turn(9_000 + noise(), 0));
            rounds.look();
        }
        rounds
    }

    #[test]
    fn a_step_ends_when_all_intervals_are_narrow_and_not_before() {
        assert!(rounds(40, 1, 10_000, 0, 1).are_enough());
        assert!(!rounds(29, 1, 10_000, 0, 1).are_enough(), "too few rounds");
        assert!(!rounds(40, 300, 10_000, 0, 1).are_enough(), "too wide");
        assert!(
            !rounds(400, 300, 10_000, 0, 1).are_enough()
                && rounds(400, 300, 10_000, 0, 9).are_enough(),
            "nine starts may be three times as wide each"
        );
        let ratio = rounds(40, 1, 10_000, 0, 1).ratio(2).unwrap();
        assert!((ratio.ratio - 0.9).abs() < 0.001, "{ratio:?}");
    }

    #[test]
    fn a_control_that_differs_and_leakage_are_seen() {
        assert_eq!(rounds(40, 1, 10_000, 0, 1).control_holds(), Some(true));
        assert_eq!(rounds(40, 1, 10_500, 0, 1).control_holds(), Some(false));
        assert_eq!(rounds(3, 1, 10_500, 0, 1).control_holds(), None);
        let leaks = |leak_ns: u64| {
            rounds(40, 1, 10_000, leak_ns, 1)
                .leaks()
                .map(|(at, leakage)| (at, leakage.net_cores()))
                .collect::<Vec<_>>()
        };
        assert_eq!(leaks(100_000), []);
        assert_eq!(leaks(1_800_000), [(0, Some(-0.1))]);
    }

    #[test]
    fn who_is_out_does_not_hold_up_the_others() {
        let mut rounds = rounds(40, 1, 10_000, 0, 1);
        for _ in 0..12 {
            rounds.book(0, turn(10_000, 0));
            rounds.book(1, turn(10_000, 0));
            rounds.book(2, None);
            rounds.look();
        }
        assert!(rounds.are_enough());
        assert_eq!(
            rounds.estimate(2, LEVEL).unwrap().pairs,
            40,
            "pairs without one of the two do not count"
        );
    }
}
