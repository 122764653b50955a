//! Which trials of a block are left, and whose the block is: told by the trials that are there.

use std::collections::BTreeMap;

use plimsoll_core::schedule::ScheduledTrial;
use plimsoll_store::TrialRecord;

/// The blocks of a schedule, each once, in order.
pub(super) fn blocks(schedule: &[ScheduledTrial]) -> Vec<u32> {
    let mut blocks: Vec<u32> = schedule.iter().map(|trial| trial.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    blocks
}

fn numbers(schedule: &[ScheduledTrial], block: u32) -> Vec<u32> {
    let of_block = schedule.iter().filter(|trial| trial.block == block);
    of_block.map(|trial| trial.number).collect()
}

/// The host of a block: that of its latest complete trial. None has one before that.
pub(super) fn owner<'t>(
    schedule: &[ScheduledTrial],
    block: u32,
    done: &'t [TrialRecord],
) -> Option<&'t str> {
    let numbers = numbers(schedule, block);
    done.iter()
        .filter(|trial| numbers.contains(&trial.number) && trial.is_complete())
        .max_by_key(|trial| trial.attempt)
        .and_then(|trial| trial.place().host)
}

/// Trials of a block whose latest complete attempt was not made on this host, in the order of the
/// schedule. On another host than its owner all of a block is left: it never changes its host.
pub(super) fn left(
    schedule: &[ScheduledTrial],
    block: u32,
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
    let mut numbers = numbers(schedule, block);
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
    use plimsoll_core::schedule::schedule;
    use plimsoll_store::Stamped;
    use plimsoll_store::event::{Event, TrialDone, TrialStart};

    use super::*;

    fn trial(number: u32, attempt: u32, host: &str, is_complete: bool) -> TrialRecord {
        let start = Event::TrialStart(TrialStart {
            trial: number,
            attempt,
            cell: "a".into(),
            block: 1,
            seed: 1,
            methodology_version: 1,
            pid: 1,
            pid_start_ticks: 1,
            boot_id: "b".into(),
            load: None,
            host: Some(host.into()),
            machine_id: None,
        });
        let done = Event::TrialDone(TrialDone {
            seconds: 1.0,
            stop_problem: None,
        });
        let events = [Some(start), is_complete.then_some(done)];
        TrialRecord {
            number,
            attempt,
            dir: "d".into(),
            events: events
                .into_iter()
                .flatten()
                .map(|event| Stamped {
                    seq: 1,
                    t_ns: 0,
                    event,
                })
                .collect(),
            is_torn: false,
            environment: None,
            damage: None,
        }
    }

    #[test]
    fn a_block_is_its_hosts_until_another_has_begun_it_anew() {
        let schedule = schedule(3, 2, 7);
        assert_eq!(blocks(&schedule), [1, 2]);
        let mut done = vec![trial(1, 1, "a", true), trial(2, 1, "a", false)];
        assert_eq!(owner(&schedule, 1, &done), Some("a"));
        assert_eq!(left(&schedule, 1, "a", &done), [2, 3]);
        assert_eq!(left(&schedule, 1, "b", &done), [1, 2, 3]);
        assert_eq!(owner(&schedule, 2, &done), None);
        // a is lost, and b has begun it again.
        done.push(trial(1, 2, "b", true));
        assert_eq!(owner(&schedule, 1, &done), Some("b"));
        assert_eq!(left(&schedule, 1, "b", &done), [2, 3]);
        assert_eq!(left(&schedule, 1, "a", &done), [1, 2, 3]);
        assert_eq!(last_attempts(&done), BTreeMap::from([(1, 2), (2, 1)]));
    }
}
