//! What a step's turns say while they go on: ratios to the base, for those who watch.

use plimsoll_core::witness::Leakage;
use plimsoll_stats::{KnownVariance, mean, of_batches, student_quantile};

use crate::message::TurnDone;
use crate::observer::TurnsRatio;

/// Between two looks at the intervals there are at least this many rounds, and a tenth more.
const LOOK_ROUNDS: usize = 10;
/// The level of the intervals.
const LEVEL: f64 = 0.95;

/// Operations and time of one turn.
type Turn = (f64, f64);

/// The rounds of one step in one start.
pub(super) struct Rounds {
    base: usize,
    /// By candidate, one per round; none where there was none.
    turns: Vec<Vec<Option<Turn>>>,
    /// By candidate.
    leaks: Vec<Leakage>,
    half_width: Option<f64>,
    /// Rounds of the next look.
    next_look: usize,
}

impl Rounds {
    pub fn new(candidates: usize, base: usize) -> Self {
        Self {
            base,
            turns: vec![Vec::new(); candidates],
            leaks: vec![Leakage::default(); candidates],
            half_width: None,
            next_look: LOOK_ROUNDS,
        }
    }

    /// Books a turn that was planned so many times as long as a plain one, by which its sums are
    /// divided: about what a verdict weighs it by. None for a candidate that is out.
    pub fn book(&mut self, candidate: usize, turn: Option<TurnDone>, times: u64) {
        let part = |sum: u64| sum as f64 / times as f64;
        let sums = turn
            .as_ref()
            .filter(|turn| turn.active_ns > 0)
            .map(|turn| (part(turn.operations), part(turn.active_ns)));
        self.turns[candidate].push(sums);
        if let Some(turn) = turn {
            self.leaks[candidate].add(
                turn.round,
                turn.active_ns,
                turn.other_servers_cpu_ns,
                turn.left_cpu_ns,
            );
        }
    }

    /// A candidate's throughput relative to the base's over all rounds that both have, with the
    /// half-width of its interval over batches of rounds.
    pub fn ratio(&self, candidate: usize) -> Option<TurnsRatio> {
        let both = self.turns[self.base].iter().zip(&self.turns[candidate]);
        let pairs: Vec<(Turn, Turn)> = both
            .filter_map(|(base, other)| Some(((*base)?, (*other)?)))
            .collect();
        let batches = of_batches(&pairs, log_ratio)?;
        let known = KnownVariance::of_mean(&batches);
        let reach = student_quantile(0.5 + LEVEL / 2.0, known.degrees);
        Some(TurnsRatio {
            ratio: log_ratio(&pairs).unwrap_or_else(|| mean(&batches)).exp(),
            half_width: reach * known.variance.sqrt(),
        })
    }

    /// Looks at how wide the intervals are, where it is time for it: every look takes longer than
    /// the one before.
    pub fn look(&mut self) {
        let rounds = self.turns[self.base].len();
        if rounds < self.next_look {
            return;
        }
        self.next_look = rounds + (rounds / 10).max(LOOK_ROUNDS);
        let present =
            (0..self.turns.len()).filter(|&at| at != self.base && self.turns[at].len() == rounds);
        let widths = present
            .filter(|&at| self.turns[at].last().is_some_and(Option::is_some))
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

    /// The candidates whose leakage is above a limit, in cores, by position.
    pub fn leaks(&self, limit: f64) -> impl Iterator<Item = (usize, String)> {
        let all = self.leaks.iter().enumerate();
        all.filter_map(move |(at, leakage)| Some((at, leakage.above(limit)?)))
    }
}

/// The log ratio of sums: operations / time of the other over those of the base. `None` if a sum is
/// 0.
fn log_ratio(pairs: &[(Turn, Turn)]) -> Option<f64> {
    let mut sums = [(0.0, 0.0); 2];
    for (base, other) in pairs {
        for (sum, turn) in sums.iter_mut().zip([base, other]) {
            *sum = (sum.0 + turn.0, sum.1 + turn.1);
        }
    }
    let [base, other] = sums.map(|(operations, ns)| operations / ns);
    Some((other / base).ln()).filter(|ratio| ratio.is_finite())
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
    fn rounds(count: u64, scatter: u64, leak_ns: u64) -> Rounds {
        let mut rounds = Rounds::new(3, 0);
        let mut draw = Draw::new(1, &["rounds"]);
        for _ in 0..count {
            let mut noise = || draw.below(10 * scatter + 1);
            rounds.book(0, turn(10_000 + noise(), leak_ns), 1);
            rounds.book(1, turn(10_000 + noise(), 0), 1);
            rounds.book(2, turn(9_000 + noise(), 0), 1);
            rounds.look();
        }
        rounds
    }

    #[test]
    fn ratios_and_widths_are_those_of_sums() {
        let tight = rounds(40, 1, 0);
        let ratio = tight.ratio(2).unwrap();
        assert!((ratio.ratio - 0.9).abs() < 0.001, "{ratio:?}");
        assert!(tight.half_width().unwrap() < 0.001);
        assert!(rounds(40, 300, 0).half_width().unwrap() > 0.01);
        assert!(rounds(4, 1, 0).ratio(2).is_some());
        assert_eq!(rounds(3, 1, 0).ratio(2).map(|ratio| ratio.ratio), None);
    }

    #[test]
    fn leakage_is_seen() {
        let leaks = |leak_ns: u64| {
            let rounds = rounds(40, 1, leak_ns);
            let found: Vec<usize> = rounds.leaks(0.05).map(|(at, _)| at).collect();
            found
        };
        assert!(leaks(100_000).is_empty());
        assert_eq!(leaks(1_800_000), [0]);
    }

    #[test]
    fn who_is_out_does_not_hold_up_the_others() {
        let mut rounds = rounds(40, 1, 0);
        for _ in 0..12 {
            rounds.book(0, turn(10_000, 0), 1);
            rounds.book(1, turn(10_000, 0), 1);
            rounds.book(2, None, 1);
            rounds.look();
        }
        assert!(rounds.half_width().is_some());
        let ratio = rounds.ratio(2).unwrap().ratio;
        assert!(
            (ratio - 0.9).abs() < 0.001,
            "rounds without one of the two do not count"
        );
    }
}
