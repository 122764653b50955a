//! How well an open loop kept its schedule.

use plimsoll_core::record::{Pacing, SLA_SHARE};
use plimsoll_core::units::SECOND_NS;

use crate::arrival::Arrival;

/// One worker's schedule and what came of it.
pub(crate) struct Paced<'a> {
    pub arrival: &'a Arrival,
    /// Operations of the schedule.
    pub planned: u64,
    /// Length of the schedule.
    pub length_ns: u64,
    /// Operations done.
    pub ok: u64,
    /// From the start to the end of the last operation or of the schedule, whichever is later.
    pub active_ns: u64,
}

/// Adds up the workers of one kind of operation, who together have `done` so many in each second.
/// `None` when none of them is paced.
pub(crate) fn account(workers: &[Paced<'_>], done: &[u64]) -> Option<Pacing> {
    let length_ns = workers
        .iter()
        .map(|worker| worker.length_ns)
        .max()
        .filter(|&length| length > 0)?;
    let whole_seconds = (length_ns / SECOND_NS) as usize;
    // Up to a second of grace after the end of the schedule: the last operations need some time,
    // too.
    let counted_seconds = length_ns.div_ceil(SECOND_NS) as usize + 1;
    let mut due = vec![0u64; counted_seconds];
    let done = |second: usize| done.get(second).copied().unwrap_or(0);
    let mut pacing = Pacing {
        seconds: whole_seconds as u64,
        ..Pacing::default()
    };
    for worker in workers {
        let mut schedule = worker.arrival.due();
        for _ in 0..worker.planned {
            let due_ns = schedule.next_ns().unwrap_or(0);
            due[((due_ns / SECOND_NS) as usize).min(counted_seconds - 1)] += 1;
        }
        // What was due, not the mean of the process: a Poisson schedule of a few operations may
        // well be a tenth off its mean.
        pacing.target_per_s += worker.planned as f64 * 1e9 / worker.length_ns.max(1) as f64;
        pacing.achieved_per_s += worker.ok as f64 * 1e9 / worker.active_ns.max(1) as f64;
    }
    pacing.seconds_under = (0..whole_seconds)
        .filter(|&s| (done(s) as f64) < SLA_SHARE * due[s] as f64)
        .count() as u64;
    let all_done = (0..counted_seconds).map(done).sum();
    pacing.backlog = due.iter().sum::<u64>().saturating_sub(all_done);
    Some(pacing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortfall_shows_in_all_three_measures() {
        let arrival = Arrival::Even {
            operations: 20,
            period_ns: SECOND_NS,
            phase_ns: 0,
        };
        let cases: [(&[u64], u64, u64, u64); 4] = [
            (&[20, 20, 20, 20, 20], 5, 0, 0),
            (&[20, 5, 35, 20, 20], 5, 1, 0), // a stall that is made up
            (&[20, 20, 20, 20, 10, 4, 6], 7, 1, 6), // behind at the end: six are later than a second after it
            (&[10, 10, 10, 10, 10, 10, 10, 10, 10, 10], 10, 5, 40),
        ];
        for (ok, active_s, under, backlog) in cases {
            let paced = Paced {
                arrival: &arrival,
                planned: 100,
                length_ns: 5 * SECOND_NS,
                ok: 100,
                active_ns: active_s * SECOND_NS,
            };
            let pacing = account(&[paced], ok).unwrap();
            assert_eq!(
                (pacing.seconds, pacing.seconds_under, pacing.backlog),
                (5, under, backlog),
                "{ok:?}"
            );
            assert!((pacing.achieved_per_s - 100.0 / active_s as f64).abs() < 1e-9);
        }
        // A Poisson schedule is held against what was due, however far its draw is from the mean.
        let poisson = Arrival::Poisson {
            operations: 2,
            period_ns: SECOND_NS,
            seed: 3,
        };
        let length_ns = 4 * SECOND_NS;
        let planned = poisson.count_before(length_ns);
        let paced = Paced {
            arrival: &poisson,
            planned,
            length_ns,
            ok: planned,
            active_ns: length_ns,
        };
        let pacing = account(&[paced], &[planned]).unwrap();
        assert!(
            (pacing.achieved_per_s / pacing.target_per_s - 1.0).abs() < 1e-9,
            "{pacing:?}"
        );
        let closed = Paced {
            arrival: &Arrival::Closed,
            planned: 5,
            length_ns: 0,
            ok: 5,
            active_ns: 1,
        };
        assert_eq!(account(&[closed], &[]), None);
    }
}
