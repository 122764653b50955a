//! Interval histograms on their way from the workers to the `.hlog`.
//!
//! A worker hands over an interval when its first operation of a later one is done. A worker that
//! is stuck in a long operation keeps its interval back; so that memory stays bounded, at most
//! [`MOST_PENDING`] intervals wait for such workers. What comes later still is added to the oldest
//! interval not yet written: totals are always exact.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;

use plimsoll_core::histogram;

const MOST_PENDING: usize = 8;

/// Service and, in an open loop, response times of one kind of operation.
#[derive(Debug)]
pub(crate) struct ServiceAndResponse {
    pub service: Histogram<u32>,
    pub response: Option<Histogram<u32>>,
}

impl ServiceAndResponse {
    pub fn new(is_open: bool) -> Self {
        Self {
            service: histogram::empty(),
            response: is_open.then(histogram::empty),
        }
    }

    pub fn reset(&mut self) {
        self.service.reset();
        if let Some(response) = &mut self.response {
            response.reset();
        }
    }

    /// Moves all values of `other` here.
    fn take(&mut self, other: &mut Self) {
        self.service
            .add(&other.service)
            .expect("all histograms have the same bounds");
        other.service.reset();
        if let Some(from) = &mut other.response {
            let to = self.response.get_or_insert_with(histogram::empty);
            to.add(&*from).expect("all histograms have the same bounds");
            from.reset();
        }
    }
}

/// By kind.
type Pairs = BTreeMap<usize, ServiceAndResponse>;

#[derive(Debug)]
struct State {
    pending: BTreeMap<u64, Pairs>,
    /// The interval each worker is in.
    positions: Vec<u64>,
    /// Intervals below this are written.
    oldest_open: u64,
    /// How often what came before was left out.
    restarts: u64,
}

/// The meeting place of workers and writer.
#[derive(Debug)]
pub(crate) struct Intervals {
    interval_s: u64,
    state: Mutex<State>,
}

impl Intervals {
    pub fn new(interval_s: u64, workers: usize) -> Self {
        let state = State {
            pending: BTreeMap::new(),
            positions: vec![0; workers],
            oldest_open: 0,
            restarts: 0,
        };
        Self {
            interval_s,
            state: Mutex::new(state),
        }
    }

    /// Seconds per interval.
    pub fn interval_s(&self) -> u64 {
        self.interval_s
    }

    /// Takes over a worker's interval; the worker goes on in interval `next`.
    pub fn add<'a>(
        &self,
        worker: usize,
        interval: u64,
        next: u64,
        pairs: impl Iterator<Item = (usize, &'a mut ServiceAndResponse)>,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let interval = interval.max(state.oldest_open);
        for (kind, pair) in pairs {
            if !pair.service.is_empty() {
                let is_open = pair.response.is_some();
                state
                    .pending
                    .entry(interval)
                    .or_default()
                    .entry(kind)
                    .or_insert_with(|| ServiceAndResponse::new(is_open))
                    .take(pair);
            }
        }
        state.positions[worker] = next;
    }

    /// Leaves out all that was handed over: sums begin again. For while no worker works.
    pub fn restart(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pending.clear();
        state.restarts += 1;
    }

    /// The oldest interval that no worker will add to, or that has waited long enough.
    pub fn next_complete(&self) -> Complete {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Complete {
            restarts: state.restarts,
            interval: state.pop_complete(),
        }
    }
}

/// What is to be written next.
pub(crate) struct Complete {
    /// How often sums have begun again by now: those of fewer are left out.
    pub restarts: u64,
    pub interval: Option<(u64, Pairs)>,
}

impl State {
    fn pop_complete(&mut self) -> Option<(u64, Pairs)> {
        let (&interval, _) = self.pending.first_key_value()?;
        let slowest = self.positions.iter().copied().min().unwrap_or(u64::MAX);
        if interval >= slowest && self.pending.len() <= MOST_PENDING {
            return None;
        }
        self.oldest_open = interval + 1;
        self.pending.pop_first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(values: &[u64]) -> ServiceAndResponse {
        let mut pair = ServiceAndResponse::new(false);
        for &value in values {
            pair.service.saturating_record(value);
        }
        pair
    }

    #[test]
    fn a_stuck_worker_holds_back_a_bounded_number_of_intervals_and_loses_nothing() {
        let intervals = Intervals::new(1, 2);
        let mut written = Vec::new();
        for second in 0..20 {
            let mut one = pair(&[second + 1]);
            intervals.add(0, second, second + 1, [(0, &mut one)].into_iter());
            assert!(one.service.is_empty(), "handed over");
            while let Some((interval, pairs)) = intervals.next_complete().interval {
                written.push((interval, pairs[&0].service.len()));
            }
        }
        assert_eq!(written.len(), 20 - MOST_PENDING, "bounded");
        intervals.add(0, 20, u64::MAX, std::iter::empty());
        let mut late = pair(&[1, 2, 3]);
        intervals.add(1, 0, u64::MAX, [(0, &mut late)].into_iter());
        while let Some((interval, pairs)) = intervals.next_complete().interval {
            written.push((interval, pairs[&0].service.len()));
        }
        assert_eq!(written.iter().map(|(_, count)| count).sum::<u64>(), 23);
        assert!(written.is_sorted(), "in the order of time");
    }

    #[test]
    fn what_came_before_a_restart_is_left_out() {
        let intervals = Intervals::new(1, 1);
        intervals.add(0, 0, 1, [(0, &mut pair(&[5]))].into_iter());
        intervals.add(0, 1, 2, [(0, &mut pair(&[5]))].into_iter());
        let first = intervals.next_complete();
        assert_eq!(
            (first.restarts, first.interval.map(|(at, _)| at)),
            (0, Some(0))
        );
        intervals.restart();
        let none = intervals.next_complete();
        assert!(none.restarts == 1 && none.interval.is_none());
        intervals.add(0, 2, 3, [(0, &mut pair(&[7, 8]))].into_iter());
        let (at, pairs) = intervals.next_complete().interval.unwrap();
        assert_eq!((at, pairs[&0].service.len()), (2, 2));
    }
}
