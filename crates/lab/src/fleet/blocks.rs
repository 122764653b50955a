//! Which trials of a unit are left, and whose the unit is: told by the trials that are there. A unit
//! is a block, or a part of one where the plan splits its tests.

use std::collections::BTreeMap;

use plimsoll_core::schedule::{ScheduledTrial, Unit};
use plimsoll_store::TrialRecord;

/// The units of a schedule, each once, in order.
pub(super) fn units(schedule: &[ScheduledTrial]) -> Vec<Unit> {
    let mut units: Vec<Unit> = schedule.iter().map(ScheduledTrial::unit).collect();
    units.sort_unstable();
    units.dedup();
    units
}

fn numbers(schedule: &[ScheduledTrial], unit: Unit) -> Vec<u32> {
    let of_unit = schedule.iter().filter(|trial| trial.unit() == unit);
    of_unit.map(|trial| trial.number).collect()
}

/// The host of a unit: that of its latest complete trial. None has one before that.
pub(super) fn owner<'t>(
    schedule: &[ScheduledTrial],
    unit: Unit,
    done: &'t [TrialRecord],
) -> Option<&'t str> {
    let numbers = numbers(schedule, unit);
    done.iter()
        .filter(|trial| numbers.contains(&trial.number) && trial.is_complete())
        .max_by_key(|trial| trial.attempt)
        .and_then(|trial| trial.place().host)
}

/// Trials of a unit whose latest complete attempt was not made on this host, in the order of the
/// schedule. On another host than its owner all of a unit is left: it never changes its host.
pub(super) fn left(
    schedule: &[ScheduledTrial],
    unit: Unit,
    host: &str,
    done: &[TrialRecord],
) -> Vec<u32> {
    let is_here = |number: &u32| {
        let of_number = done.iter().filter(|trial| trial.number == *number);
        let latest = of_number
            .filter(|trial| trial.is_complete())
            .max_by_key(|trial| trial.attempt);
        latest.is_some_and(|trial| trial.place().host == Some(host))
    };
    let mut numbers = numbers(schedule, unit);
    numbers.retain(|number| !is_here(number));
    numbers
}

/// The highest attempt at each trial.
pub(super) fn last_attempts(done: &[TrialRecord]) -> BTreeMap<u32, u32> {
    let mut attempts = BTreeMap::new();
    for trial in done {
        let last: &mut u32 = attempts.entry(trial.number).or_default();
        *last = trial.attempt.max(*last);
    }
    attempts
}

#[cfg(test)]
mod tests {
    use plimsoll_core::schedule::{Blocks, schedule};
    use plimsoll_store::event::Event;

    use super::*;
    use crate::sample_trials::{DONE, started};

    fn trial(number: u32, attempt: u32, host: &str, is_complete: bool) -> TrialRecord {
        let then = if is_complete { &[DONE][..] } else { &[] };
        let mut record = started(number, attempt, None, then);
        if let Event::TrialStart(start) = &mut record.events[0].event {
            start.host = Some(host.to_owned());
        }
        record
    }

    #[test]
    fn a_block_is_its_hosts_until_another_has_begun_it_anew() {
        let schedule = schedule(3, 2, 7);
        let of = |block| Unit { block, part: None };
        assert_eq!(units(&schedule), [of(1), of(2)]);
        let mut done = vec![trial(1, 1, "a", true), trial(2, 1, "a", false)];
        assert_eq!(owner(&schedule, of(1), &done), Some("a"));
        assert_eq!(left(&schedule, of(1), "a", &done), [2, 3]);
        assert_eq!(left(&schedule, of(1), "b", &done), [1, 2, 3]);
        assert_eq!(owner(&schedule, of(2), &done), None);
        // a is lost, and b has begun it again.
        done.push(trial(1, 2, "b", true));
        assert_eq!(owner(&schedule, of(1), &done), Some("b"));
        assert_eq!(left(&schedule, of(1), "b", &done), [2, 3]);
        assert_eq!(left(&schedule, of(1), "a", &done), [1, 2, 3]);
        assert_eq!(last_attempts(&done), BTreeMap::from([(1, 2), (2, 1)]));
    }

    #[test]
    fn parts_of_a_block_may_be_of_different_hosts() {
        let blocks = Blocks {
            count: 1,
            parts: Some(2),
        };
        let schedule = schedule(2, blocks, 7);
        let part = |part| Unit {
            block: 1,
            part: Some(part),
        };
        assert_eq!(units(&schedule), [part(1), part(2)]);
        let done = vec![trial(1, 1, "a", true), trial(3, 1, "b", true)];
        assert_eq!(owner(&schedule, part(1), &done), Some("a"));
        assert_eq!(owner(&schedule, part(2), &done), Some("b"));
        assert_eq!(left(&schedule, part(1), "a", &done), [2]);
        assert_eq!(left(&schedule, part(1), "b", &done), [1, 2]);
        assert_eq!(left(&schedule, part(2), "b", &done), [4]);
    }
}
