//! When operations are due.

use plimsoll_core::seed::Draw;
use plimsoll_core::units::SECOND_NS;

/// The arrival process of one worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// The next operation is due when the last one is done.
    Closed,
    /// Operation `i` is due at `phase + i x interval`.
    Even {
        /// Operations per `period_ns`.
        operations: u64,
        /// The period in nanoseconds.
        period_ns: u64,
        /// When the first is due, from the start of the step.
        phase_ns: u64,
    },
    /// Operation `i` is due at `floor(i / burst)` seconds: the limiter of the original Insert
    /// Benchmark, without its drift.
    ClassicBurst {
        /// Operations at the start of each second.
        burst: u64,
    },
    /// Exponential gaps.
    Poisson {
        /// Mean operations per `period_ns`.
        operations: u64,
        /// The period in nanoseconds.
        period_ns: u64,
        /// Seed of the gaps.
        seed: u64,
    },
}

impl Arrival {
    /// Whether operations have a planned instant.
    pub fn is_open(&self) -> bool {
        !matches!(self, Self::Closed)
    }

    /// Length in nanoseconds of the schedule of `count` operations: to the instant at which one
    /// more would be due, clients in phase.
    pub fn length_ns(&self, count: u64) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Even {
                operations,
                period_ns,
                ..
            } => (u128::from(count) * u128::from(*period_ns)).div_ceil(u128::from(*operations))
                as u64,
            Self::Poisson { .. } => {
                let mut due = self.due();
                (0..=count).fold(0, |_, _| due.next_ns().unwrap_or(0))
            }
            Self::ClassicBurst { burst } => count.div_ceil(*burst) * SECOND_NS,
        }
    }

    /// Operations due before `length_ns`.
    pub fn count_before(&self, length_ns: u64) -> u64 {
        match self {
            Self::Closed => 0,
            Self::Even {
                operations,
                period_ns,
                phase_ns,
            } => {
                let length_ns = length_ns.saturating_sub(*phase_ns);
                (u128::from(length_ns) * u128::from(*operations)).div_ceil(u128::from(*period_ns))
                    as u64
            }
            Self::ClassicBurst { burst } => length_ns.div_ceil(SECOND_NS) * burst,
            Self::Poisson { .. } => {
                let mut due = self.due();
                std::iter::from_fn(|| due.next_ns())
                    .take_while(|&due_ns| due_ns < length_ns)
                    .count() as u64
            }
        }
    }

    /// The due instants, from the start of the step.
    pub fn due(&self) -> Due {
        let draw = match self {
            Self::Poisson { seed, .. } => Some(Draw::new(*seed, &["arrival"])),
            _ => None,
        };
        Due {
            arrival: self.clone(),
            index: 0,
            at_ns: 0.0,
            draw,
        }
    }
}

/// An endless sequence of due instants in nanoseconds from the start of the step.
#[derive(Clone, Debug)]
pub struct Due {
    arrival: Arrival,
    index: u64,
    at_ns: f64,
    draw: Option<Draw>,
}

impl Due {
    /// Instants that were taken.
    pub fn count(&self) -> u64 {
        self.index
    }

    /// The next due instant; `None` in a closed loop, where it is whenever the worker is ready.
    #[inline]
    pub fn next_ns(&mut self) -> Option<u64> {
        let index = self.index;
        self.index += 1;
        match &self.arrival {
            Arrival::Closed => None,
            Arrival::Even {
                operations,
                period_ns,
                phase_ns,
            } => {
                // From the index, not from the last instant: rounding never adds up.
                Some(
                    phase_ns
                        + (u128::from(index) * u128::from(*period_ns) / u128::from(*operations))
                            as u64,
                )
            }
            Arrival::ClassicBurst { burst } => Some(index / burst * SECOND_NS),
            Arrival::Poisson {
                operations,
                period_ns,
                ..
            } => {
                let mean_ns = *period_ns as f64 / *operations as f64;
                let draw = self.draw.as_mut()?;
                self.at_ns -= mean_ns * (1.0 - draw.unit()).ln();
                Some(self.at_ns as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(arrival: &Arrival, count: usize) -> Vec<u64> {
        let mut due = arrival.due();
        std::iter::from_fn(|| due.next_ns()).take(count).collect()
    }

    #[test]
    fn even_never_drifts() {
        let arrival = Arrival::Even {
            operations: 3,
            period_ns: SECOND_NS,
            phase_ns: 5,
        };
        let due = first(&arrival, 3_000_001);
        assert_eq!(due[..4], [5, 333_333_338, 666_666_671, 1_000_000_005]);
        assert_eq!(due[3_000_000], 1_000_000 * SECOND_NS + 5);
        assert_eq!(arrival.length_ns(6), 2 * SECOND_NS);
    }

    #[test]
    fn classic_burst_is_due_at_whole_seconds() {
        let arrival = Arrival::ClassicBurst { burst: 2 };
        assert_eq!(
            first(&arrival, 5),
            [0, 0, SECOND_NS, SECOND_NS, 2 * SECOND_NS]
        );
        assert_eq!(arrival.length_ns(5), 3 * SECOND_NS);
    }

    #[test]
    fn what_is_due_before_an_instant_is_counted_without_a_walk() {
        for arrival in [
            Arrival::Even {
                operations: 3,
                period_ns: SECOND_NS,
                phase_ns: 5,
            },
            Arrival::Even {
                operations: 1000,
                period_ns: SECOND_NS,
                phase_ns: 0,
            },
            Arrival::Even {
                operations: 7,
                period_ns: 50 * SECOND_NS,
                phase_ns: SECOND_NS,
            },
            Arrival::ClassicBurst { burst: 4 },
        ] {
            for length_ns in [
                0,
                1,
                4,
                5,
                6,
                333_333_338,
                333_333_339,
                SECOND_NS,
                SECOND_NS + 1,
                7 * SECOND_NS,
                50 * SECOND_NS + 17,
            ] {
                let mut due = arrival.due();
                let walked = std::iter::from_fn(|| due.next_ns())
                    .take_while(|&due_ns| due_ns < length_ns)
                    .count() as u64;
                assert_eq!(
                    arrival.count_before(length_ns),
                    walked,
                    "{arrival:?} {length_ns}"
                );
            }
        }
    }

    #[test]
    fn poisson_has_the_mean_and_the_spread_of_an_exponential() {
        let arrival = Arrival::Poisson {
            operations: 1000,
            period_ns: SECOND_NS,
            seed: 1,
        };
        let due = first(&arrival, 200_000);
        assert_eq!(due, first(&arrival, 200_000), "same seed, same schedule");
        let gaps: Vec<f64> = due.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "mean gap {mean} ns");
        assert!(
            (variance.sqrt() / mean - 1.0).abs() < 0.02,
            "coefficient of variation {}",
            variance.sqrt() / mean
        );
    }
}
