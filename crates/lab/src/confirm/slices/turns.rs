//! The turns of one step in one start: rounds, until they are enough.

use std::time::{Duration, Instant};

use plimsoll_core::plan::Step;

use super::order::order_of_round;
use super::rounds::Rounds;
use super::start::Start;
use crate::message::{TurnDone, TurnOrder};
use crate::observer::{Notice, StepTurns, TurnsProgress};

/// Each candidate's first turn of a step, which is not recorded.
const WARM_UP_NS: u64 = 500_000_000;
/// What counts of a turn begins behind its first tenth, unless operations are longer than that.
const DISCARDED: u64 = 10;
/// A turn's report may be this late, on top of what the trial itself waits for a worker in an
/// operation.
const REPORT_PATIENCE: Duration = Duration::from_secs(30);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// How long turns are, and how much of their beginning does not count.
#[derive(Clone, Copy)]
struct TurnLength {
    length_ns: u64,
    discarded_ns: u64,
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
    /// The rounds are repeated, because the control did not hold.
    is_repeated: bool,
}

impl Start<'_, '_> {
    pub(super) fn run_step(&mut self, index: usize, step: &Step) {
        let limit = Duration::from_nanos(self.confirm.time_ns / u64::from(self.starts));
        let length = self.warm_up(step);
        let mut of_step = StepRounds {
            step,
            index,
            length,
            rounds: Rounds::new(
                self.candidates.len(),
                self.base,
                self.control,
                step.is_writing(),
                self.starts,
            ),
            round: 0,
            begin: Instant::now(),
            until: limit,
            is_repeated: false,
        };
        loop {
            while self.can_go_on() && of_step.begin.elapsed() < of_step.until {
                self.run_round(&mut of_step);
                of_step.rounds.look();
                self.show(&of_step);
                if !of_step.is_repeated && of_step.rounds.are_enough() {
                    break;
                }
            }
            // One repetition of what there was: the pairs of both count.
            if of_step.is_repeated
                || !self.can_go_on()
                || of_step.rounds.control_holds() != Some(false)
            {
                break;
            }
            of_step.is_repeated = true;
            of_step.until = of_step.begin.elapsed() * 2;
        }
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
        let warm_up = TurnOrder {
            round: 0,
            position: 0,
            length_ns: WARM_UP_NS,
            discarded_ns: 0,
        };
        let mut longest_operation_ns = 0;
        for candidate in self.order_of_round(step, 1) {
            let warmed = self.take_turn(candidate, warm_up);
            let operation_ns = warmed.map_or(0, |turn| turn.operation_ns.unwrap_or(WARM_UP_NS));
            longest_operation_ns = longest_operation_ns.max(operation_ns);
        }
        // The same for all of them, and not by what a turn brings: otherwise turns with long
        // operations would be counted in another way than those without.
        let tenth_ns = length_ns / DISCARDED;
        let discarded_ns = if longest_operation_ns <= tenth_ns {
            tenth_ns
        } else {
            0
        };
        TurnLength {
            length_ns,
            discarded_ns,
        }
    }

    fn order_of_round(&self, step: &Step, round: u32) -> Vec<usize> {
        order_of_round(
            self.candidates.len(),
            self.seed,
            &step.name,
            self.number,
            round,
        )
    }

    fn run_round(&mut self, of_step: &mut StepRounds<'_>) {
        of_step.round += 1;
        let order = self.order_of_round(of_step.step, of_step.round);
        let TurnLength {
            length_ns,
            discarded_ns,
        } = of_step.length;
        for (position, candidate) in (1..).zip(order) {
            let turn = self.take_turn(
                candidate,
                TurnOrder {
                    round: of_step.round,
                    position,
                    length_ns,
                    discarded_ns,
                },
            );
            of_step.rounds.book(candidate, turn);
        }
    }

    fn take_turn(&mut self, candidate: usize, order: TurnOrder) -> Option<TurnDone> {
        let patience = Duration::from_nanos(order.length_ns) + self.watchdog + REPORT_PATIENCE;
        self.candidates.take_turn(candidate, order, patience)
    }

    fn show(&mut self, of_step: &StepRounds<'_>) {
        if self.last_progress.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        self.last_progress = Instant::now();
        let elapsed_s = of_step.begin.elapsed().as_secs_f64();
        let limit_s = of_step.until.as_secs_f64();
        let per_step_s = self.confirm.time_ns as f64 / 1e9 / f64::from(self.starts);
        let starts_left = self.starts - self.number;
        let steps = self.steps.len();
        let steps_left = steps - of_step.index - 1 + steps * starts_left as usize;
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
            eta_s: (limit_s - elapsed_s).max(0.0)
                + per_step_s * steps_left as f64
                + self.setup.as_secs_f64() * f64::from(starts_left),
        };
        self.candidates.observer.notice(Notice::Turns(&progress));
    }

    fn sum_up(&self, of_step: &StepRounds<'_>) -> StepTurns {
        let rounds = &of_step.rounds;
        let others = (0..self.candidates.len()).filter(|&index| index != self.base);
        let mut warnings = Vec::new();
        if of_step.is_repeated {
            let now = if rounds.control_holds() == Some(false) {
                "and it still does not"
            } else {
                "and now it does"
            };
            warnings.push(format!(
                "the A/A control's 99 % interval did not hold 1; the rounds were repeated, {now}"
            ));
        }
        warnings.extend(rounds.leaks().map(|(candidate, leakage)| {
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
