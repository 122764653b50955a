//! What counts of a turn, and the time it took.
//!
//! ```text
//! turn begins        mark due                                  turn ends
//!  |--op--|--op--|--op--:--op--|--op--|-- ... --|--op--|--op----:--|
//!                       :      ^ counting begins                   ^ and ends
//! ```
//!
//! A window that began with an operation in flight would begin in a long one more often than not,
//! and a build whose operations vary more would look slower. So counting begins behind the first
//! operation that ends after the discarded part, or at the turn's beginning where nothing is
//! discarded, and ends with the one that is in flight when the turn's time is over: between the two
//! the operations are a sample like any other.

use plimsoll_load::WorkerProgress;

/// The bounds of a turn on the step's clock, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub begin_ns: u64,
    /// The end of the discarded part; `begin_ns` where nothing is discarded.
    pub mark_ns: u64,
    /// All workers are parked.
    pub end_ns: u64,
}

impl Bounds {
    fn is_whole(&self) -> bool {
        self.mark_ns == self.begin_ns
    }
}

/// What one worker did in a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub client: u32,
    pub operations: u64,
    /// The time they took.
    pub active_ns: u64,
    /// When they ended: the worker's last operation, or the turn's end where it has a schedule to
    /// wait for.
    pub end_ns: u64,
}

/// What each worker did between two looks, at which all were parked.
pub(super) fn parts(bounds: &Bounds, from: &[WorkerProgress], to: &[WorkerProgress]) -> Vec<Part> {
    from.iter()
        .zip(to)
        .map(|(from, to)| part(bounds, from, to))
        .collect()
}

fn part(bounds: &Bounds, from: &WorkerProgress, to: &WorkerProgress) -> Part {
    let is_marked = !bounds.is_whole() && to.turn_start.done_ns >= bounds.mark_ns;
    let (operations, begin_ns, end_ns) = if to.is_open {
        // What is due comes by the clock, whatever is in flight: so it is counted by the clock.
        let before = match (bounds.is_whole(), is_marked) {
            (true, _) => from.ok,
            (false, true) => to.turn_start.ok - 1,
            (false, false) => to.ok,
        };
        (to.ok - before, bounds.mark_ns, bounds.end_ns)
    } else if bounds.is_whole() {
        (to.ok - from.ok, bounds.begin_ns, to.last_done_ns)
    } else if is_marked {
        (
            to.ok - to.turn_start.ok,
            to.turn_start.done_ns,
            to.last_done_ns,
        )
    } else {
        (0, to.last_done_ns, to.last_done_ns)
    };
    Part {
        client: to.client,
        operations,
        active_ns: end_ns.saturating_sub(begin_ns),
        end_ns: end_ns.max(begin_ns),
    }
}

/// The share of the time since `look_ns` that counts, over all workers: of what was used meanwhile,
/// so much belongs to the operations that count.
pub(super) fn counted_share(parts: &[Part], look_ns: u64) -> f64 {
    let looked_ns: u64 = parts
        .iter()
        .map(|part| part.end_ns.saturating_sub(look_ns))
        .sum();
    let counted_ns: u64 = parts.iter().map(|part| part.active_ns).sum();
    if looked_ns == 0 {
        0.0
    } else {
        (counted_ns as f64 / looked_ns as f64).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_core::seed::Draw;
    use plimsoll_load::TurnStart;

    use super::*;

    fn progress(ok: u64, last_done_ns: u64, mark: (u64, u64)) -> WorkerProgress {
        WorkerProgress {
            client: 1,
            is_open: false,
            ok,
            last_done_ns,
            turn_start: TurnStart {
                ok: mark.0,
                done_ns: mark.1,
            },
        }
    }

    #[test]
    fn operations_count_from_the_end_of_one_to_the_end_of_another() {
        let bounds = Bounds {
            begin_ns: 1_000,
            mark_ns: 1_200,
            end_ns: 3_100,
        };
        let whole = Bounds {
            mark_ns: 1_000,
            ..bounds
        };
        let of = |bounds: &Bounds, from: WorkerProgress, to: WorkerProgress| {
            let part = part(bounds, &from, &to);
            (part.operations, part.active_ns)
        };
        let before = progress(3, 900, (1, 300));
        assert_eq!(
            of(&bounds, before, progress(13, 3_050, (5, 1_250))),
            (8, 1_800),
            "from the mark"
        );
        assert_eq!(
            of(&bounds, before, progress(4, 3_090, (4, 3_090))),
            (0, 0),
            "one long operation says nothing about its own length"
        );
        assert_eq!(
            of(&bounds, before, progress(4, 1_100, (1, 300))),
            (0, 0),
            "a mark of an earlier turn is none"
        );
        assert_eq!(
            of(&whole, before, progress(4, 3_090, (4, 3_090))),
            (1, 2_090),
            "unless the whole turn counts"
        );
        let open = |ok: u64, mark: (u64, u64)| WorkerProgress {
            is_open: true,
            ..progress(ok, 2_000, mark)
        };
        assert_eq!(
            of(&bounds, open(3, (1, 300)), open(7, (5, 1_250))),
            (3, 1_900),
            "a schedule's are counted by the clock"
        );
        assert_eq!(
            of(&bounds, open(3, (1, 300)), open(3, (1, 300))),
            (0, 1_900)
        );
        assert_eq!(
            of(&whole, open(3, (1, 300)), open(7, (4, 1_250))),
            (4, 2_100)
        );
    }

    #[test]
    fn what_was_used_belongs_to_what_counts_in_proportion() {
        let part = |active_ns: u64, end_ns: u64| Part {
            client: 1,
            operations: 1,
            active_ns,
            end_ns,
        };
        assert_eq!(counted_share(&[part(1_800, 3_000)], 1_200), 1.0);
        assert_eq!(
            counted_share(&[part(1_800, 3_000), part(0, 3_000)], 1_200),
            0.5
        );
        assert_eq!(counted_share(&[], 1_200), 0.0);
    }

    /// The rate of workers whose operations are `length_ns` long, over many turns as a director
    /// takes them.
    fn rate_of_turns(
        turn_ns: u64,
        discarded_ns: u64,
        workers: usize,
        mut length_ns: impl FnMut() -> u64,
    ) -> f64 {
        let mut clocks = vec![progress(0, 0, (0, 0)); workers];
        let (mut now_ns, mut sums) = (0, vec![(0u64, 0u64); workers]);
        for _ in 0..20_000 {
            let (begin_ns, mark_ns) = (now_ns, now_ns + discarded_ns);
            let before = clocks.clone();
            for progress in &mut clocks {
                let mut at_ns = begin_ns;
                let mut is_marked = false;
                while at_ns < begin_ns + turn_ns {
                    at_ns += length_ns();
                    (progress.ok, progress.last_done_ns) = (progress.ok + 1, at_ns);
                    if !is_marked && at_ns >= mark_ns {
                        is_marked = true;
                        progress.turn_start = TurnStart {
                            ok: progress.ok,
                            done_ns: at_ns,
                        };
                    }
                }
                now_ns = now_ns.max(at_ns);
            }
            for (sum, part) in sums.iter_mut().zip(parts(
                &Bounds {
                    begin_ns,
                    mark_ns,
                    end_ns: now_ns,
                },
                &before,
                &clocks,
            )) {
                *sum = (sum.0 + part.operations, sum.1 + part.active_ns);
            }
        }
        sums.iter()
            .map(|&(operations, active_ns)| operations as f64 / active_ns as f64)
            .sum()
    }

    /// Two builds of the same mean rate. The one with operations of many lengths read as 2 to 8 %
    /// slower, because turns were cut inside long operations.
    #[test]
    fn how_much_operations_vary_does_not_move_a_rate() {
        const US: u64 = 1_000;
        for (turn_ns, discarded_ns) in [
            (20_000 * US, 2_000 * US),
            (50_000 * US, 5_000 * US),
            (20_000 * US, 0),
        ] {
            for workers in [1, 3] {
                let mut draw = Draw::new(7, &["lengths"]);
                // 96 of 100 take 200 us, the others 5 ms: 392 us in the mean.
                let mixed = rate_of_turns(turn_ns, discarded_ns, workers, || {
                    if draw.below(100) < 4 {
                        5_000 * US
                    } else {
                        200 * US
                    }
                });
                let even = rate_of_turns(turn_ns, discarded_ns, workers, || 392 * US);
                let ratio = mixed / even;
                assert!(
                    (ratio - 1.0).abs() < 0.005,
                    "turns of {turn_ns} ns, {discarded_ns} discarded, {workers} workers: {ratio}"
                );
            }
        }
    }
}
