//! Interval histograms and seconds on their way from the workers to the `.hlog` and the series.
//!
//! A worker hands over an interval when its first operation of a later one is done. A worker that
//! is stuck in a long operation keeps its interval back; so that memory stays bounded, at most
//! [`MOST_PENDING`] intervals wait for such workers. What comes later still is added to the oldest
//! interval not yet written: totals are always exact.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::vec::Drain;

use hdrhistogram::Histogram;

use crate::recorder::Second;
use crate::sync::Mutex;
use plimsoll_core::histogram;
use plimsoll_core::planted::{self, Bug};

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
        let is_merged_twice = planted::is(Bug::HistogramMergedTwice) && !self.service.is_empty();
        for _ in 0..=u8::from(is_merged_twice) {
            self.service
                .add(&other.service)
                .expect("all histograms have the same bounds");
        }
        other.service.reset();
        if let Some(from) = &mut other.response {
            let to = self.response.get_or_insert_with(histogram::empty);
            to.add(&*from).expect("all histograms have the same bounds");
            from.reset();
        }
    }
}

/// What a worker hands over of one kind of operation.
pub(crate) struct HandOver<'a> {
    pub kind: usize,
    pub times: &'a mut ServiceAndResponse,
    /// The second that the first of `seconds` is.
    pub first_second: u64,
    pub seconds: Drain<'a, Second>,
}

/// Times of a kind of operation in an interval, from the workers of a client host.
pub(crate) struct PartTimes {
    pub interval: u64,
    pub kind: usize,
    pub times: ServiceAndResponse,
}

/// A second of one kind of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WorkerSecond {
    pub worker: usize,
    pub kind: usize,
    pub second: u64,
    pub counts: Second,
}

/// By kind.
type Pairs = BTreeMap<usize, ServiceAndResponse>;

#[derive(Debug)]
struct State {
    pending: BTreeMap<u64, Pairs>,
    /// Those that were not taken yet.
    seconds: Vec<WorkerSecond>,
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
            seconds: Vec::new(),
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

    /// Takes over a worker's interval and its seconds; the worker goes on in interval `next`.
    pub fn add<'a>(
        &self,
        worker: usize,
        interval: u64,
        next: u64,
        kinds: impl Iterator<Item = HandOver<'a>>,
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let interval = interval.max(state.oldest_open);
        for of_kind in kinds {
            let HandOver {
                kind,
                times,
                first_second,
                seconds,
            } = of_kind;
            if !times.service.is_empty() {
                let is_open = times.response.is_some();
                state
                    .pending
                    .entry(interval)
                    .or_default()
                    .entry(kind)
                    .or_insert_with(|| ServiceAndResponse::new(is_open))
                    .take(times);
            }
            let seconds = (first_second..).zip(seconds);
            state
                .seconds
                .extend(seconds.map(|(second, counts)| WorkerSecond {
                    worker,
                    kind,
                    second,
                    counts,
                }));
        }
        state.positions[worker] = next;
    }

    /// No interval before this one is taken from here any more.
    pub fn position(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let slowest = state.positions.iter().copied().min().unwrap_or(u64::MAX);
        slowest.max(state.oldest_open)
    }

    /// Takes over what the workers of a client host have handed over there: `part` is one worker
    /// here, which goes on in interval `next`. The seconds are those of the step's workers.
    pub fn add_part(&self, part: usize, next: u64, times: Vec<PartTimes>, of: Vec<WorkerSecond>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for PartTimes {
            interval,
            kind,
            mut times,
        } in times
        {
            let interval = interval.max(state.oldest_open);
            let is_open = times.response.is_some();
            let kinds = state.pending.entry(interval).or_default();
            let sum = kinds.entry(kind);
            sum.or_insert_with(|| ServiceAndResponse::new(is_open))
                .take(&mut times);
        }
        state.seconds.extend(of);
        state.positions[part] = next;
    }

    /// Leaves out all that was handed over: sums begin again. For while no worker works.
    pub fn restart(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pending.clear();
        state.restarts += 1;
    }

    /// The seconds that were handed over since the last call.
    pub fn take_seconds(&self) -> Vec<WorkerSecond> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut state.seconds)
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

    /// Hands over an interval of a worker without seconds.
    fn add(
        intervals: &Intervals,
        worker: usize,
        interval: u64,
        next: u64,
        times: &mut ServiceAndResponse,
    ) {
        let mut none = Vec::new();
        let of_kind = HandOver {
            kind: 0,
            times,
            first_second: 0,
            seconds: none.drain(..),
        };
        intervals.add(worker, interval, next, [of_kind].into_iter());
    }

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
            add(&intervals, 0, second, second + 1, &mut one);
            assert!(one.service.is_empty(), "handed over");
            while let Some((interval, pairs)) = intervals.next_complete().interval {
                written.push((interval, pairs[&0].service.len()));
            }
        }
        assert_eq!(written.len(), 20 - MOST_PENDING, "bounded");
        intervals.add(0, 20, u64::MAX, std::iter::empty());
        let mut late = pair(&[1, 2, 3]);
        add(&intervals, 1, 0, u64::MAX, &mut late);
        while let Some((interval, pairs)) = intervals.next_complete().interval {
            written.push((interval, pairs[&0].service.len()));
        }
        assert_eq!(written.iter().map(|(_, count)| count).sum::<u64>(), 23);
        assert!(written.is_sorted(), "in the order of time");
    }

    #[test]
    fn what_came_before_a_restart_is_left_out() {
        let intervals = Intervals::new(1, 1);
        add(&intervals, 0, 0, 1, &mut pair(&[5]));
        add(&intervals, 0, 1, 2, &mut pair(&[5]));
        let first = intervals.next_complete();
        assert_eq!(
            (first.restarts, first.interval.map(|(at, _)| at)),
            (0, Some(0))
        );
        intervals.restart();
        let none = intervals.next_complete();
        assert!(none.restarts == 1 && none.interval.is_none());
        add(&intervals, 0, 2, 3, &mut pair(&[7, 8]));
        let (at, pairs) = intervals.next_complete().interval.unwrap();
        assert_eq!((at, pairs[&0].service.len()), (2, 2));
    }

    #[test]
    fn seconds_are_handed_out_once_and_none_is_lost() {
        let intervals = Intervals::new(1, 1);
        let second = |ok| Second {
            ok,
            ..Second::default()
        };
        let mut closed = vec![second(3), second(0)];
        let of_kind = HandOver {
            kind: 2,
            times: &mut pair(&[]),
            first_second: 5,
            seconds: closed.drain(..),
        };
        intervals.add(0, 6, 7, [of_kind].into_iter());
        intervals.restart();
        let taken = intervals.take_seconds();
        let taken: Vec<_> = taken
            .iter()
            .map(|of| (of.worker, of.kind, of.second, of.counts.ok))
            .collect();
        assert_eq!(taken, [(0, 2, 5, 3), (0, 2, 6, 0)]);
        assert!(intervals.take_seconds().is_empty());
    }
}
