//! What counts of a turn, and the time it took.
//!
//! ```text
//! turn begins          all parked                            turn ends: all parked
//!  |--op--|--op--|--op--|  |--op--|--op--|--op--|-- ... --|--op--|--op--|
//!  | discarded          |  | counts                                     |
//! ```
//!
//! Whoever counts from an instant on begins in a long operation more often than in a short one, and
//! a build whose operations vary more looks slower. Between two moments at which all workers are
//! parked the operations of one worker are a sample like any other, and so is the CPU of all.
//!
//! Several workers that go on at once meet a server without a queue, and their first operations are
//! faster than others. Behind its first operation each of them counts as it would without the rest.

use plimsoll_load::WorkerProgress;

/// What one worker did in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub client: u32,
    pub operations: u64,
    /// The time they took.
    pub active_ns: u64,
}

/// What each worker did between two looks at which all were parked, at these instants of the step's
/// clock. `has_rest`: they had worked in the turn before, and mark their first operation since.
pub(super) fn parts(
    bounds: (u64, u64),
    has_rest: bool,
    from: &[WorkerProgress],
    to: &[WorkerProgress],
) -> Vec<Part> {
    let is_behind_first = has_rest && to.len() > 1;
    from.iter()
        .zip(to)
        .map(|(from, to)| part(bounds, is_behind_first, from, to))
        .collect()
}

fn part(
    (begin_ns, parked_ns): (u64, u64),
    is_behind_first: bool,
    from: &WorkerProgress,
    to: &WorkerProgress,
) -> Part {
    let first = to.turn_start;
    let (operations, begin_ns, end_ns) = if to.is_open {
        // What is due by a schedule comes by the clock, whatever is in flight.
        (to.ok - from.ok, begin_ns, parked_ns)
    } else if !is_behind_first {
        (to.ok - from.ok, begin_ns, to.last_done_ns)
    } else if first.done_ns >= begin_ns {
        (to.ok - first.ok, first.done_ns, to.last_done_ns)
    } else {
        (0, begin_ns, begin_ns)
    };
    Part {
        client: to.client,
        operations,
        active_ns: end_ns.saturating_sub(begin_ns),
    }
}

/// Of the operations of all workers between two looks, the share that counts: of their CPU so much
/// counts, too.
pub(super) fn counted_share(parts: &[Part], all: u64) -> f64 {
    let counted: u64 = parts.iter().map(|part| part.operations).sum();
    counted as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use plimsoll_core::seed::Draw;
    use plimsoll_load::TurnStart;

    use super::*;

    fn progress(ok: u64, last_done_ns: u64) -> WorkerProgress {
        WorkerProgress {
            client: 1,
            is_open: false,
            ok,
            last_done_ns,
            turn_start: TurnStart::default(),
        }
    }

    #[test]
    fn operations_count_from_one_rest_to_the_next() {
        let of = |from: WorkerProgress, to: WorkerProgress| {
            let part = part((1_000, 3_100), false, &from, &to);
            (part.operations, part.active_ns)
        };
        assert_eq!(of(progress(3, 900), progress(13, 3_050)), (10, 2_050));
        assert_eq!(
            of(progress(3, 900), progress(4, 3_090)),
            (1, 2_090),
            "a long operation counts with its length"
        );
        assert_eq!(
            of(progress(3, 900), progress(3, 900)),
            (0, 0),
            "a worker that has ended"
        );
        let open = |ok: u64| WorkerProgress {
            is_open: true,
            ..progress(ok, 2_000)
        };
        assert_eq!(
            of(open(3), open(7)),
            (4, 2_100),
            "a schedule's are counted by the clock"
        );
        assert_eq!(of(open(3), open(3)), (0, 2_100));
    }

    #[test]
    fn several_workers_count_behind_their_first_operation() {
        let bounds = (1_000, 3_100);
        let marked = |ok: u64, last_done_ns: u64, first: (u64, u64)| WorkerProgress {
            turn_start: TurnStart {
                ok: first.0,
                done_ns: first.1,
            },
            ..progress(ok, last_done_ns)
        };
        let from = [progress(3, 900), progress(3, 950)];
        let to = [marked(13, 3_050, (4, 1_250)), marked(3, 950, (2, 600))];
        let of = |has_rest: bool, workers: usize| -> Vec<(u64, u64)> {
            let parts = parts(bounds, has_rest, &from[..workers], &to[..workers]);
            parts
                .iter()
                .map(|part| (part.operations, part.active_ns))
                .collect()
        };
        assert_eq!(of(true, 2), [(9, 1_800), (0, 0)]);
        assert_eq!(of(false, 2)[0], (10, 2_050), "the whole turn counts");
        assert_eq!(of(true, 1), [(10, 2_050)], "one worker has no queue");
        let parts = parts(bounds, true, &from, &to);
        assert_eq!(counted_share(&parts, 10), 0.9);
        assert_eq!(counted_share(&[], 0), 0.0);
    }

    /// Four workers queue for a server with one CPU. When they had parked and gone on, its rate was
    /// 5 % too high.
    #[test]
    fn a_queue_that_forms_again_moves_no_rate() {
        const EACH: u64 = 100 * US;
        let mut clocks = vec![progress(0, 0); 4];
        let (mut now_ns, mut sums) = (0, (0, 0));
        let work_for = |ns: u64, now_ns: &mut u64, clocks: &mut Vec<WorkerProgress>| {
            let (begin_ns, until_ns) = (*now_ns, *now_ns + ns);
            let mut queue: std::collections::VecDeque<usize> = (0..4).collect();
            while let Some(worker) = queue.pop_front() {
                *now_ns += EACH;
                let of = &mut clocks[worker];
                (of.ok, of.last_done_ns) = (of.ok + 1, *now_ns);
                if of.turn_start.done_ns < begin_ns {
                    (of.turn_start.ok, of.turn_start.done_ns) = (of.ok, *now_ns);
                }
                if *now_ns < until_ns {
                    queue.push_back(worker);
                }
            }
        };
        for _ in 0..100 {
            work_for(2_000 * US, &mut now_ns, &mut clocks);
            let (begin_ns, before) = (now_ns + 1, clocks.clone());
            now_ns += 1;
            work_for(3_000 * US, &mut now_ns, &mut clocks);
            for part in parts((begin_ns, now_ns), true, &before, &clocks) {
                sums = (sums.0 + part.operations, sums.1 + part.active_ns);
            }
        }
        let rate = 4.0 * sums.0 as f64 / sums.1 as f64;
        assert!((rate * EACH as f64 - 1.0).abs() < 0.01, "{rate}");
    }

    const US: u64 = 1_000;

    /// What workers do over many turns as a director takes them.
    struct OfTurns {
        /// Operations per nanosecond, of all workers.
        rate: f64,
        /// Of one operation, in nanoseconds.
        cpu_ns: f64,
        /// Turns without one that counts.
        empty: u32,
    }

    /// An operation has a length and uses CPU, in nanoseconds.
    fn of_turns(
        (turn_ns, discarded_ns): (u64, u64),
        workers: usize,
        mut operation: impl FnMut() -> (u64, u64),
    ) -> OfTurns {
        let mut clocks = vec![progress(0, 0); workers];
        let mut sums = vec![(0u64, 0u64); workers];
        let (mut now_ns, mut cpu_ns, mut empty) = (0, 0.0, 0);
        let mut work_for = |ns: u64, now_ns: &mut u64, clocks: &mut Vec<WorkerProgress>| {
            let (begin_ns, mut used_ns) = (*now_ns, 0);
            for progress in clocks {
                let mut at_ns = begin_ns;
                while at_ns < begin_ns + ns {
                    let (length_ns, of_operation_ns) = operation();
                    at_ns += length_ns;
                    used_ns += of_operation_ns;
                    (progress.ok, progress.last_done_ns) = (progress.ok + 1, at_ns);
                    if progress.turn_start.done_ns <= begin_ns {
                        (progress.turn_start.ok, progress.turn_start.done_ns) =
                            (progress.ok, at_ns);
                    }
                }
                *now_ns = at_ns.max(*now_ns);
            }
            used_ns
        };
        for _ in 0..20_000 {
            work_for(discarded_ns, &mut now_ns, &mut clocks);
            let (begin_ns, before) = (now_ns, clocks.clone());
            let used_ns = work_for(turn_ns - discarded_ns, &mut now_ns, &mut clocks);
            let parts = parts((begin_ns, now_ns), discarded_ns > 0, &before, &clocks);
            let all = clocks
                .iter()
                .zip(&before)
                .map(|(to, from)| to.ok - from.ok)
                .sum();
            cpu_ns += used_ns as f64 * counted_share(&parts, all);
            empty += u32::from(parts.iter().all(|part| part.operations == 0));
            for (sum, part) in sums.iter_mut().zip(parts) {
                *sum = (sum.0 + part.operations, sum.1 + part.active_ns);
            }
        }
        let operations: u64 = sums.iter().map(|sum| sum.0).sum();
        OfTurns {
            rate: sums.iter().map(|sum| sum.0 as f64 / sum.1 as f64).sum(),
            cpu_ns: cpu_ns / operations as f64,
            empty,
        }
    }

    /// Two builds of the same mean rate. The one with operations of many lengths read as 2 to 8 %
    /// slower, because turns were cut inside long operations.
    #[test]
    fn how_much_operations_vary_does_not_move_a_rate() {
        for (turn_us, discarded_us) in [
            (5_000, 2_000),
            (20_000, 2_000),
            (50_000, 5_000),
            (20_000, 0),
        ] {
            let turn = (turn_us * US, discarded_us * US);
            for workers in [1, 3] {
                let mut draw = Draw::new(7, &["lengths"]);
                // 96 of 100 take 200 us, the others 5 ms: 392 us in the mean.
                let mixed = of_turns(turn, workers, || match draw.below(100) < 4 {
                    true => (5_000 * US, 0),
                    false => (200 * US, 0),
                });
                let even = of_turns(turn, workers, || (392 * US, 0));
                let ratio = mixed.rate / even.rate;
                assert!(
                    (ratio - 1.0).abs() < 0.005,
                    "turns of {turn:?} ns, {workers} workers: {ratio}"
                );
            }
        }
    }

    /// CPU was read when the discarded part was over, inside an operation, and divided by its time:
    /// that of two builds which use as much, and wait differently, was 2 % apart in turns of 5 ms.
    #[test]
    fn how_long_operations_wait_does_not_move_their_cpu() {
        for wait_us in [60, 192, 700] {
            let of = of_turns((5_000 * US, 2_000 * US), 2, || {
                ((200 + wait_us) * US, 200 * US)
            });
            assert!((of.cpu_ns / 200_000.0 - 1.0).abs() < 1e-9, "{wait_us}");
        }
    }

    /// An operation that was still in flight when a turn ended, and was when its count began, left
    /// it empty: with 3 % of them of 10 ms one turn of seven was, and no throughput was judged.
    #[test]
    fn no_turn_is_empty_because_an_operation_is_long() {
        let mut draw = Draw::new(7, &["lengths"]);
        let of = of_turns((5_000 * US, 2_000 * US), 1, || match draw.below(100) < 3 {
            true => (10_000 * US, 0),
            false => (100 * US, 0),
        });
        assert_eq!(of.empty, 0);
    }
}
