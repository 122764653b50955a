//! Which rounds a step has in a start: plain ones, and others that show whether a ratio depends on
//! turns.
//!
//! A server that works in turns has a clock that does not stop between them: what is due each
//! second comes up in fewer of its own seconds, the more candidates there are. And what a server
//! does when it goes on weighs more, the shorter turns are. So a quarter of each start's time has
//! rounds of another form:
//!
//! ```text
//! starts 1, 2, 3, 5, ...   longer   all candidates, turns of twice the length
//! starts 4, 8, 12, ...     alone    the base, its second instance and one other, one after another
//! ```

use std::time::Duration;

/// One of so many parts of a step's time has rounds of another form. They are fewer in the same time,
/// so a start is known less well the more of them it has.
const SPECIAL: u32 = 4;
/// Turns of a longer round are so many times as long.
const LONGER: u64 = 2;
/// In one start of so many pairs are alone, where there are more than pairs.
const ALONE_EVERY: u32 = 4;

/// Rounds of one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// How many times as long as a plain turn its turns are.
    pub times: u64,
    /// The one candidate that has turns with the base and its second instance; none for all.
    pub alone: Option<usize>,
    /// When it ends, counted from the step's beginning.
    pub until: Duration,
}

impl Stretch {
    /// Plain rounds alone.
    pub fn plain(until: Duration) -> Self {
        Self {
            times: 1,
            alone: None,
            until,
        }
    }
}

impl Stretch {
    /// Whether it has another round, at this time of the step and after so many of its own.
    /// A pair with less time than a round takes has one all the same, or nobody learns whether it is
    /// another one alone; but when the step's time is over only a plain one begins, if there was none.
    pub fn goes_on(&self, elapsed: Duration, rounds: u32, limit: Duration) -> bool {
        let is_plain = self.times == 1 && self.alone.is_none();
        elapsed < self.until || (rounds == 0 && (is_plain || elapsed < limit))
    }
}

/// The rounds of a step that has `limit` in a start, from 1. `others` are the candidates that are
/// held against the base, its second instance not among them. What comes first changes from start
/// to start, so that it is nothing but a form that differs.
pub(super) fn stretches(limit: Duration, start: u32, others: &[usize]) -> Vec<Stretch> {
    let plain = (1, None);
    let mut special: Vec<(u64, Option<usize>)> = vec![(LONGER, None)];
    if start.is_multiple_of(ALONE_EVERY) && others.len() > 1 {
        special = others.iter().map(|&other| (1, Some(other))).collect();
        special.rotate_left((start / ALONE_EVERY) as usize % others.len());
    }
    let share = limit / SPECIAL;
    let each = share / special.len() as u32;
    let mut forms = vec![(plain, limit - share)];
    let special = special.into_iter().map(|form| (form, each));
    match is_special_first(start) {
        true => drop(forms.splice(0..0, special)),
        false => forms.extend(special),
    }
    let mut until = Duration::ZERO;
    let mut stretches: Vec<Stretch> = forms
        .into_iter()
        .map(|((times, alone), length)| {
            until += length;
            Stretch {
                times,
                alone,
                until,
            }
        })
        .collect();
    if let Some(last) = stretches.last_mut() {
        last.until = limit;
    }
    stretches
}

/// In every second start, and in every second one of those in which pairs are alone.
fn is_special_first(start: u32) -> bool {
    match start.is_multiple_of(ALONE_EVERY) {
        true => (start / ALONE_EVERY).is_multiple_of(2),
        false => start.is_multiple_of(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(4);

    fn of(start: u32, others: &[usize]) -> Vec<(u64, Option<usize>, u64)> {
        let stretches = stretches(LIMIT, start, others);
        let tuple = |of: &Stretch| (of.times, of.alone, of.until.as_millis() as u64);
        stretches.iter().map(tuple).collect()
    }

    #[test]
    fn a_quarter_of_a_start_has_another_form() {
        assert_eq!(of(1, &[1, 2]), [(1, None, 3000), (2, None, 4000)]);
        assert_eq!(of(2, &[1, 2]), [(2, None, 1000), (1, None, 4000)]);
        assert_eq!(of(3, &[1, 2]), [(1, None, 3000), (2, None, 4000)]);
        assert_eq!(
            of(4, &[1, 2]),
            [(1, None, 3000), (1, Some(2), 3500), (1, Some(1), 4000)]
        );
        assert_eq!(
            of(8, &[1, 2]),
            [(1, Some(1), 500), (1, Some(2), 1000), (1, None, 4000)]
        );
    }

    /// How long the rounds of each stretch take, and what each pair has of them.
    fn rounds_alone(limit_ms: u64, others: usize, turn_ms: u64) -> (Vec<u32>, Duration) {
        let limit = Duration::from_millis(limit_ms);
        let others: Vec<usize> = (2..2 + others).collect();
        let (mut elapsed, mut of_pairs) = (Duration::ZERO, Vec::new());
        for stretch in stretches(limit, 8, &others) {
            let turns = stretch.alone.map_or(others.len() + 2, |_| 3) as u64;
            let mut rounds = 0;
            while stretch.goes_on(elapsed, rounds, limit) {
                elapsed += Duration::from_millis(turns * turn_ms);
                rounds += 1;
            }
            of_pairs.extend(stretch.alone.map(|_| rounds));
        }
        (of_pairs, elapsed)
    }

    /// Ten of them had 120 ms each, a round takes 153, and the one behind had none.
    #[test]
    fn a_pair_with_less_time_than_a_round_takes_has_one() {
        let (of_pairs, elapsed) = rounds_alone(8 * 12 * 50, 10, 51);
        assert_eq!(of_pairs, [1; 10]);
        assert!(elapsed < Duration::from_millis(8 * 12 * 50 + 12 * 51));
    }

    #[test]
    fn long_operations_do_not_give_each_pair_a_round_behind_the_time_of_the_step() {
        let (of_pairs, elapsed) = rounds_alone(3200, 6, 1000);
        assert_eq!(of_pairs, [1, 1, 0, 0, 0, 0]);
        // Two rounds of pairs, and a plain one.
        assert_eq!(elapsed, Duration::from_secs(3 + 3 + 8));
    }

    #[test]
    fn a_pair_is_alone_in_any_case() {
        assert_eq!(of(4, &[1]), [(1, None, 3000), (2, None, 4000)]);
        assert_eq!(of(4, &[]), of(1, &[]), "A/A alone");
    }
}
