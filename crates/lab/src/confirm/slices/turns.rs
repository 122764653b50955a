//! The turns of one step in one start: rounds, until they are enough.

use std::time::{Duration, Instant};

use plimsoll_core::plan::Step;

use super::forms::{Stretch, stretches};
use super::order::order_of_round;
use super::rounds::Rounds;
use super::start::Start;
use crate::message::{TurnDone, TurnOrder};
use crate::observer::{Notice, StepTurns, TurnsProgress};

/// Each candidate's first turns of a step, which are not recorded: one after the other until they
/// get no faster, at most so many.
const WARM_UP_NS: u64 = 50_000_000;
const MOST_WARM_UPS: u32 = 10;
/// The turns in which a server is written to before anything counts.
const AGING_NS: u64 = 500_000_000;
/// A turn is doubled until it has room for so many operations of each client, as long as it is shorter
/// than this. That of one client begins and ends with its operations, so few are counted as well as
/// many, and more turns say more. Of several each counts behind its first, and what is due at a rate
/// counts by the clock.
const OPERATIONS: u64 = 10;
const OPERATIONS_OF_ONE: u64 = 4;
const LONG_NS: u64 = 20_000_000;
/// What counts of a turn begins behind its first tenth, and behind its first two milliseconds: a
/// server whose caches hold what others left in them is slow for as long, a newer one more so.
const DISCARDED: u64 = 10;
const COLD_NS: u64 = 2_000_000;
/// But never behind more than two fifths of a turn.
const MOST_DISCARDED: f64 = 0.4;
/// A step whose operations are longer than its turns has at most so many times as long for its rounds.
const MOST_FOR_LONG: f64 = 4.0;
/// A turn's report may be this late, on top of what the trial itself waits for a worker in an
/// operation.
const REPORT_PATIENCE: Duration = Duration::from_secs(30);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// How long turns are, and how much of their beginning does not count.
#[derive(Clone, Copy)]
struct TurnLength {
    length_ns: u64,
    discarded_ns: u64,
    /// The mean length of an operation, of the candidate whose are longest.
    operation_ns: u64,
}

impl TurnLength {
    /// By how long turns are at least, and the mean lengths of the candidates' operations, in
    /// nanoseconds. One that is out has none, and no say in how long the others' turns are.
    fn new(least_ns: u64, operations: Vec<Option<u64>>, is_one_closed_loop: bool) -> Self {
        let operation_ns = operations.into_iter().flatten().max().unwrap_or(0);
        let room = match is_one_closed_loop {
            true => OPERATIONS_OF_ONE,
            false => OPERATIONS,
        };
        let cold_ns = |length_ns: u64| {
            let most_ns = (MOST_DISCARDED * length_ns as f64) as u64;
            (length_ns / DISCARDED).max(COLD_NS).min(most_ns)
        };
        // If nothing is discarded, what is cold is a smaller part of a longer turn.
        let must_double =
            |length_ns: u64| length_ns < room * operation_ns || operation_ns > cold_ns(length_ns);
        let mut length_ns = least_ns;
        while length_ns < LONG_NS && must_double(length_ns) {
            length_ns *= 2;
        }
        let cold_ns = cold_ns(length_ns);
        // The same for all of them, and not by what a turn brings: otherwise turns with long
        // operations would be counted in another way than those without.
        let is_short = operation_ns <= cold_ns;
        Self {
            length_ns,
            discarded_ns: if is_short { cold_ns } else { 0 },
            operation_ns,
        }
    }

    /// How many times as long as others a step asks for. A turn ends with its operation: with as
    /// much time as others a step of long operations has few rounds, and others meet more of them.
    fn times_as_long(&self) -> f64 {
        (self.operation_ns as f64 / self.length_ns as f64).clamp(1.0, MOST_FOR_LONG)
    }

    /// How long a step has turns that would usually have them for `usual`, if there are `spare`
    /// seconds for more.
    fn time(&self, usual: Duration, spare: Duration) -> Duration {
        usual + usual.mul_f64(self.times_as_long() - 1.0).min(spare)
    }
}

/// A step whose turns go on.
struct StepRounds<'s> {
    step: &'s Step,
    /// From 0.
    index: usize,
    length: TurnLength,
    rounds: Rounds,
    /// Rounds so far.
    round: u32,
    begin: Instant,
    /// Turns end after this long.
    until: Duration,
}

impl Start<'_, '_> {
    pub(super) fn run_step(&mut self, index: usize, step: &Step) {
        let length = self.warm_up(step);
        let usual = self.times.of(step);
        let limit = length.time(usual, self.spare);
        self.spare -= limit - usual;
        self.longer
            .insert(step.name.clone(), length.times_as_long());
        let mut of_step = StepRounds {
            step,
            index,
            length,
            rounds: Rounds::new(self.candidates.len(), self.base),
            round: 0,
            begin: Instant::now(),
            until: limit,
        };
        let stretches = match self.confirm.bisection {
            // A probe is short, and has a pair or two.
            Some(_) => vec![Stretch::plain(limit)],
            None => stretches(limit, self.number, &self.others()),
        };
        for stretch in stretches {
            let first = of_step.round;
            while self.can_go_on()
                && stretch.goes_on(of_step.begin.elapsed(), of_step.round - first, limit)
            {
                self.run_round(&mut of_step, &stretch);
                self.show(&of_step);
            }
        }
        self.in_turns.0 += 1;
        self.in_turns.1 += of_step.begin.elapsed();
        let turns = self.sum_up(&of_step);
        self.candidates.observer.notice(Notice::StepTurns(&turns));
    }

    /// Gives each candidate a turn that is not recorded, and chooses the length of those that are.
    fn warm_up(&mut self, step: &Step) -> TurnLength {
        let length_ns = if step.is_writing() {
            self.confirm.turn_ns_write
        } else {
            self.confirm.turn_ns_read
        };
        self.age(step);
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        let order = self.order_of_round(step, 1, &all);
        let operations = order.into_iter().map(|of| self.warm_up_one(of)).collect();
        let is_one_closed_loop = step.clients == 1 && step.arrival.is_none();
        TurnLength::new(length_ns, operations, is_one_closed_loop)
    }

    /// Has each server written to for as long as was asked for, in turns that are not recorded.
    fn age(&mut self, step: &Step) {
        let age_ns = self.confirm.age_ns.filter(|_| step.is_writing());
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        for round in 1..=age_ns.unwrap_or(0).div_ceil(AGING_NS) {
            for candidate in self.order_of_round(step, round as u32, &all) {
                let order = TurnOrder {
                    round: 0,
                    position: 0,
                    length_ns: AGING_NS,
                    discarded_ns: 0,
                    candidates: all.len() as u32,
                };
                self.take_turn(candidate, order);
            }
        }
    }

    /// Turns that are not recorded, until one is no faster than the one before. The mean length of
    /// an operation in the fastest, in nanoseconds: a stall in another makes no turn longer. At least
    /// a whole turn's if none came to its end; `None` if the candidate is out.
    fn warm_up_one(&mut self, candidate: usize) -> Option<u64> {
        let order = TurnOrder {
            round: 0,
            position: 0,
            length_ns: WARM_UP_NS,
            discarded_ns: 0,
            candidates: self.candidates.len() as u32,
        };
        let mut fastest_ns: Option<u64> = None;
        for _ in 0..MOST_WARM_UPS {
            let Some(operation_ns) = self.take_turn(candidate, order)?.operation_ns else {
                break;
            };
            let before = fastest_ns.replace(fastest_ns.unwrap_or(u64::MAX).min(operation_ns));
            if before.is_some_and(|before| operation_ns >= before - before / 20) {
                break;
            }
        }
        Some(fastest_ns.unwrap_or(WARM_UP_NS))
    }

    /// The candidates that are held against the base and not out, but for its second instance.
    fn others(&self) -> Vec<usize> {
        let is_other = |&index: &usize| {
            let candidate = &self.candidates[index];
            index != self.base && candidate.cell.label != self.confirm.control && !candidate.is_out
        };
        (0..self.candidates.len()).filter(is_other).collect()
    }

    /// Who has turns in a stretch of rounds.
    fn taking_part(&self, stretch: &Stretch) -> Vec<usize> {
        let takes_part = |&index: &usize| {
            let is_control = self.candidates[index].cell.label == self.confirm.control;
            let is_in_pair = |alone| index == alone || index == self.base || is_control;
            stretch.alone.is_none_or(is_in_pair)
        };
        (0..self.candidates.len()).filter(takes_part).collect()
    }

    fn order_of_round(&self, step: &Step, round: u32, among: &[usize]) -> Vec<usize> {
        let order = order_of_round(among.len(), self.seed, &step.name, self.number, round);
        order.into_iter().map(|position| among[position]).collect()
    }

    fn run_round(&mut self, of_step: &mut StepRounds<'_>, stretch: &Stretch) {
        of_step.round += 1;
        let among = self.taking_part(stretch);
        let order = self.order_of_round(of_step.step, of_step.round, &among);
        let mut turns: Vec<Option<TurnDone>> = vec![None; self.candidates.len()];
        for (position, candidate) in (1..).zip(order) {
            let order = TurnOrder {
                round: of_step.round,
                position,
                length_ns: stretch.times * of_step.length.length_ns,
                discarded_ns: of_step.length.discarded_ns,
                candidates: among.len() as u32,
            };
            turns[candidate] = self.take_turn(candidate, order);
        }
        for (candidate, turn) in turns.into_iter().enumerate() {
            of_step.rounds.book(candidate, turn, stretch.times);
        }
        if stretch.alone.is_none() {
            of_step.rounds.look();
        }
    }

    fn take_turn(&mut self, candidate: usize, order: TurnOrder) -> Option<TurnDone> {
        // All workers park twice in a turn.
        let patience = Duration::from_nanos(order.length_ns) + 2 * self.watchdog + REPORT_PATIENCE;
        self.candidates.take_turn(candidate, order, patience)
    }

    fn show(&mut self, of_step: &StepRounds<'_>) {
        if self.last_progress.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.last_progress = Instant::now();
        let elapsed_s = of_step.begin.elapsed().as_secs_f64();
        let limit_s = of_step.until.as_secs_f64();
        let in_turns_s = |steps: &[Step]| -> f64 {
            let seconds = |step| self.times.of(step).as_secs_f64();
            steps.iter().map(seconds).sum()
        };
        let starts_left = f64::from(self.starts - self.number);
        let steps = self.steps.len();
        let left_s = (limit_s - elapsed_s).max(0.0)
            + in_turns_s(&self.steps[of_step.index + 1..])
            + (in_turns_s(&self.steps) + self.setup.as_secs_f64()) * starts_left;
        let until = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        let until_s = until.map_or(f64::INFINITY, |until| until.as_secs_f64());
        let progress = TurnsProgress {
            step: of_step.step.name.clone(),
            index: of_step.index + 1,
            steps,
            start: self.number,
            starts: self.starts,
            rounds: of_step.round,
            elapsed_s,
            limit_s,
            half_width: of_step.rounds.half_width(),
            eta_s: left_s.min(until_s),
        };
        self.candidates.observer.notice(Notice::Turns(&progress));
    }

    fn sum_up(&self, of_step: &StepRounds<'_>) -> StepTurns {
        let rounds = &of_step.rounds;
        let others = (0..self.candidates.len()).filter(|&index| index != self.base);
        let mut warnings = Vec::new();
        warnings.extend(rounds.leaks(self.leak_limit).map(|(candidate, leakage)| {
            let label = &self.candidates[candidate].cell.label;
            let of_base = if candidate == self.base {
                "all ratios of this start"
            } else {
                "its ratio in this start"
            };
            format!(
                "{label}: {leakage}; {of_base} will be left out; `plimsoll confirm --blocks 12` \
                has one server up at a time"
            )
        }));
        StepTurns {
            step: of_step.step.name.clone(),
            start: self.number,
            starts: self.starts,
            rounds: of_step.round,
            seconds: of_step.begin.elapsed().as_secs_f64(),
            ratios: others
                .map(|index| {
                    let label = self.candidates[index].cell.label.clone();
                    (label, rounds.ratio(index))
                })
                .collect(),
            warnings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It counted as one whose operations take all of a turn that warms up: all steps of a start had
    /// up to four times as long without it.
    #[test]
    fn a_candidate_that_is_out_makes_no_step_longer() {
        let of = |operations: &[Option<u64>]| {
            let length = TurnLength::new(5_000_000, operations.to_vec(), true);
            (length.length_ns, length.discarded_ns, length.operation_ns)
        };
        let out = None;
        assert_eq!(
            of(&[Some(50_000), out, Some(80_000)]),
            (5_000_000, 2_000_000, 80_000)
        );
        assert_eq!(
            of(&[Some(50_000), Some(WARM_UP_NS)]),
            (20_000_000, 0, WARM_UP_NS)
        );
        assert_eq!(of(&[out, out]), (5_000_000, 2_000_000, 0));
    }

    #[test]
    fn a_turn_has_room_for_a_few_operations_behind_cold_caches() {
        // The least length in ms, an operation in us; the length in ms, what is discarded in us.
        let of_several = [
            (5, 500, (5, 2_000)),
            (5, 501, (10, 2_000)),
            (5, 1_001, (20, 2_000)),
            (5, 2_001, (20, 0)),
            (50, 10_000, (50, 0)),
        ];
        let of_one = [
            (5, 0, (5, 2_000)),
            (5, 1_250, (5, 2_000)),
            (5, 1_251, (10, 2_000)),
            (5, 2_000, (10, 2_000)),
            (5, 2_001, (20, 0)),
            (5, 40_000, (20, 0)),
            (1, 10, (1, 400)),
            (1, 251, (2, 800)),
            (50, 100, (50, 5_000)),
            (50, 10_000, (50, 0)),
            (10_000, 10_000, (10_000, 1_000_000)),
        ];
        let all = of_one.map(|case| (true, case)).into_iter();
        for (is_one_closed_loop, case) in all.chain(of_several.map(|case| (false, case))) {
            let (least_ms, operation_us, expected) = case;
            let operations = vec![Some(1_000 * operation_us)];
            let of = TurnLength::new(1_000_000 * least_ms, operations, is_one_closed_loop);
            let found = (of.length_ns / 1_000_000, of.discarded_ns / 1_000);
            assert_eq!(found, expected, "{is_one_closed_loop} {case:?}");
        }
    }

    /// `scan` had 9 rounds of turns in a start in which others had 16.
    #[test]
    fn a_step_of_long_operations_has_as_many_rounds_as_others() {
        let time = |operation_ms: u64, spare_ms: u64| {
            let length = TurnLength {
                length_ns: 20_000_000,
                discarded_ns: 0,
                operation_ns: operation_ms * 1_000_000,
            };
            length.time(Duration::from_millis(800), Duration::from_millis(spare_ms))
        };
        let cases = [
            (0, 60_000, 800),
            (20, 60_000, 800),
            (30, 60_000, 1200),
            (40, 60_000, 1600),
            (500, 60_000, 3200),
            (40, 500, 1300),
            (40, 0, 800),
        ];
        for (operation_ms, spare_ms, expected_ms) in cases {
            let expected = Duration::from_millis(expected_ms);
            assert_eq!(
                time(operation_ms, spare_ms),
                expected,
                "{operation_ms} {spare_ms}"
            );
        }
    }
}
