//! What is legal and happens seldom, made to happen often while tests run: a late worker, a line
//! that is written in two parts. See `docs/reliability.md`.
//!
//! As [planted bugs](crate::planted), these points are in builds of tests alone. There nothing
//! happens until [`VARIABLE`] has a seed: every sixteenth time at each point, as the seed chooses.
//! Whatever happens, a result has to be as right as without it.

use std::time::Duration;

/// The variable that has the seed, a whole number.
pub const VARIABLE: &str = "PLIMSOLL_BUGGIFY";

/// Where something may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A worker is late with the interval that it hands over.
    LateHandOver,
    /// A worker that was parked is late for its turn.
    LateTurn,
    /// A line of events is written in two parts, with some time between them.
    WriteInParts,
    /// Events take their time to reach the disk.
    LateSync,
    /// A file has its content for a while before it has its name.
    LateName,
    /// What the orchestrator says comes in pieces of some bytes.
    InputInPieces,
    /// A trial hears late what the orchestrator has said.
    LateCommand,
}

impl Point {
    /// All there are.
    pub const ALL: &[Self] = &[
        Self::LateHandOver,
        Self::LateTurn,
        Self::WriteInParts,
        Self::LateSync,
        Self::LateName,
        Self::InputInPieces,
        Self::LateCommand,
    ];
}

/// Waits a moment, if it happens at this point.
#[inline(always)]
pub fn pause(point: Point, moment: Duration) {
    if happens(point) {
        std::thread::sleep(moment);
    }
}

#[cfg(all(feature = "planted-bugs", debug_assertions))]
mod chosen {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Point, VARIABLE};
    use crate::seed::derive;

    /// It happens one time of so many.
    const RARENESS: u64 = 16;

    /// How often each point was passed.
    static PASSED: [AtomicU64; Point::ALL.len()] = [const { AtomicU64::new(0) }; Point::ALL.len()];

    thread_local! {
        /// What a test wants of this thread.
        static WANTED: Cell<Option<bool>> = const { Cell::new(None) };
    }

    /// Whether it happens the `nth` time.
    fn is_chosen(seed: u64, point: Point, nth: u64) -> bool {
        derive(seed, &[&format!("{point:?}"), &nth.to_string()]).is_multiple_of(RARENESS)
    }

    /// Whether it happens here and now.
    ///
    /// # Panics
    /// If the variable has something else than a whole number.
    pub fn happens(point: Point) -> bool {
        static SEED: OnceLock<Option<u64>> = OnceLock::new();
        let seed = SEED.get_or_init(|| {
            let text = std::env::var(VARIABLE).ok()?;
            let number = text.parse();
            Some(number.unwrap_or_else(|_| panic!("{VARIABLE}={text}: it is not a whole number")))
        });
        WANTED.get().unwrap_or_else(|| {
            seed.is_some_and(|seed| {
                let nth = PASSED[point as usize].fetch_add(1, Ordering::Relaxed);
                is_chosen(seed, point, nth)
            })
        })
    }

    /// Runs `body` with everything happening on this thread, for tests of a point.
    pub fn always<T>(body: impl FnOnce() -> T) -> T {
        with(true, body)
    }

    /// Runs `body` with nothing happening on this thread, whatever the seed: for tests that script
    /// what happens.
    pub fn never<T>(body: impl FnOnce() -> T) -> T {
        with(false, body)
    }

    fn with<T>(wanted: bool, body: impl FnOnce() -> T) -> T {
        WANTED.set(Some(wanted));
        let result = body();
        WANTED.set(None);
        result
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_seed_chooses_the_same_times_and_few_of_them() {
            for point in Point::ALL {
                let times = |seed: u64| (0..4000).filter(move |nth| is_chosen(seed, *point, *nth));
                assert!(times(1).eq(times(1)) && !times(1).eq(times(2)), "{point:?}");
                let count = times(3).count() as u64;
                let expected = 4000 / RARENESS;
                assert!(
                    count.abs_diff(expected) < expected / 3,
                    "{point:?}: {count}"
                );
            }
        }

        #[test]
        fn nothing_happens_where_a_test_wants_nothing() {
            let all = || Point::ALL.iter().any(|point| happens(*point));
            assert!(!never(|| (0..1000).any(|_| all())));
        }

        #[test]
        fn nothing_happens_without_a_seed() {
            if std::env::var_os(VARIABLE).is_none() {
                let all = || Point::ALL.iter().any(|point| happens(*point));
                assert!(!(0..1000).any(|_| all()));
                assert!(always(|| Point::ALL.iter().all(|point| happens(*point))));
                assert!(!all());
            }
        }
    }
}

#[cfg(all(feature = "planted-bugs", debug_assertions))]
pub use chosen::{always, happens, never};

/// Whether it happens here and now: never.
#[cfg(not(all(feature = "planted-bugs", debug_assertions)))]
#[inline(always)]
pub const fn happens(_: Point) -> bool {
    false
}
