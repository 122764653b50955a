//! What one worker did: counters, seconds and a pair of histograms per kind of operation.
//!
//! Only the worker's own thread writes here. With each interval it hands its histograms and seconds
//! over under a lock, so that what it keeps does not grow with time; the live counters are plain
//! stores that the progress line reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_core::units::SECOND_NS;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::intervals::{HandOver, Intervals, ServiceAndResponse};
use crate::sync::AtomicU64;
use crate::worker::Failure;
use plimsoll_core::buggify::{self, Point};
use plimsoll_core::histogram;
use plimsoll_core::planted::{self, Bug};

/// One second of one kind of operation of one worker, by the instant the operations were done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Second {
    /// Operations done.
    pub ok: u64,
    /// Tries that were retried or failed.
    pub unsuccessful: u64,
    /// Rows of the operations done.
    pub rows: u64,
    /// Sum of service times.
    pub service_sum_ns: u64,
    /// Longest service time.
    pub service_max_ns: u64,
    /// Longest response time; 0 in a closed loop.
    pub response_max_ns: u64,
}

/// What the progress line reads while the worker runs. Padded so that no two workers share a cache
/// line.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct LiveCounts {
    pub ok: AtomicU64,
    pub last_done_ns: AtomicU64,
    pub rows: AtomicU64,
    pub unsuccessful: AtomicU64,
    pub has_ended: AtomicU64,
    /// Read by the worker when a turn begins: the turn counts from the first operation that is done
    /// at this instant or later.
    pub turn_from_ns: AtomicU64,
    pub turn_start_ok: AtomicU64,
    pub turn_start_done_ns: AtomicU64,
    /// Read by the worker when a turn begins: whether times are left out from here on.
    pub is_discarded: AtomicU64,
    /// Read by the worker when a turn begins: how often the times so far were to be left out.
    pub times_left_out: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct KindRecord {
    pub kind: usize,
    pub ok: u64,
    pub retried: u64,
    pub failed: u64,
    pub rows: u64,
    pub errors: BTreeMap<&'static str, u64>,
    pub wait_ns: u64,
    pub lag: Option<Histogram<u32>>,
    pub unsuccessful: Option<Histogram<u32>>,
    /// When the first try was sent, 0 before it; from the start of the step once the recorder is
    /// finished.
    pub first_sent_ns: u64,
    /// The end of the last try, whatever came of it; from the start of the step once the recorder
    /// is finished.
    pub last_tried_ns: u64,
    /// Those that were not handed over yet.
    pub seconds: Vec<Second>,
    /// The second that the first of them is, once the recorder is finished.
    pub first_second: u64,
    second: Second,
    interval: ServiceAndResponse,
}

impl KindRecord {
    /// Nothing yet.
    pub fn new(kind: usize, is_open: bool) -> Self {
        Self {
            kind,
            ok: 0,
            retried: 0,
            failed: 0,
            rows: 0,
            errors: BTreeMap::new(),
            wait_ns: 0,
            lag: is_open.then(histogram::empty),
            unsuccessful: None,
            first_sent_ns: 0,
            last_tried_ns: 0,
            second: Second::default(),
            seconds: Vec::new(),
            first_second: 0,
            interval: ServiceAndResponse::new(is_open),
        }
    }

    #[cold]
    fn begin(&mut self, sent_ns: u64) {
        if self.first_sent_ns == 0 {
            self.first_sent_ns = sent_ns;
        }
    }
}

/// One worker's recorder.
#[derive(Debug)]
pub(crate) struct Recorder {
    worker: usize,
    is_open: bool,
    /// Nothing is recorded: the worker warms up.
    is_paused: bool,
    start_ns: u64,
    /// The first instant that needs more than counting: the second's end, or where counting
    /// begins in the turn.
    next_ns: u64,
    /// The first instant that no longer belongs to the current second.
    second_end_ns: u64,
    /// The turn counts from the first operation that ends here or later; `u64::MAX` once it has.
    turn_from_ns: u64,
    /// Times are left out: the worker is in the discarded part of a turn.
    is_discarded: bool,
    second_index: u64,
    /// So many seconds were handed over.
    handed_over: u64,
    kinds: Vec<KindRecord>,
    /// Position in `kinds` by the step's kind index.
    by_kind: Vec<usize>,
    intervals: Arc<Intervals>,
    live: Arc<[LiveCounts]>,
    ok: u64,
    rows: u64,
    unsuccessful: u64,
    first_failure: Option<Failure>,
    /// How often the times so far were left out.
    times_left_out: u64,
}

impl Recorder {
    pub fn new(
        worker: usize,
        kinds: &[usize],
        is_open: bool,
        intervals: Arc<Intervals>,
        live: Arc<[LiveCounts]>,
    ) -> Self {
        let mut by_kind = vec![usize::MAX; kinds.iter().max().map_or(0, |most| most + 1)];
        let kinds = kinds
            .iter()
            .enumerate()
            .map(|(position, &kind)| {
                by_kind[kind] = position;
                KindRecord::new(kind, is_open)
            })
            .collect();
        Self {
            worker,
            is_open,
            is_paused: false,
            start_ns: 0,
            next_ns: SECOND_NS,
            second_end_ns: SECOND_NS,
            turn_from_ns: u64::MAX,
            is_discarded: false,
            second_index: 0,
            handed_over: 0,
            kinds,
            by_kind,
            intervals,
            live,
            ok: 0,
            rows: 0,
            unsuccessful: 0,
            first_failure: None,
            times_left_out: 0,
        }
    }

    /// Sets the instant from which seconds are counted. Until [`resume`](Self::resume) nothing is
    /// recorded when it `is_paused`.
    pub fn start(&mut self, start_ns: u64, is_paused: bool) {
        self.is_paused = is_paused;
        self.start_ns = start_ns;
        self.second_end_ns = start_ns + SECOND_NS;
        self.next_ns = self.second_end_ns;
    }

    /// The worker goes on after it was parked: a turn may have begun.
    #[cold]
    pub fn begin_turn(&mut self) {
        let turn_from_ns = self.live[self.worker].turn_from_ns.load(Ordering::Acquire);
        if turn_from_ns > 0 {
            self.turn_from_ns = turn_from_ns;
            self.next_ns = self.second_end_ns.min(self.turn_from_ns);
        }
        self.is_discarded = self.live[self.worker].is_discarded.load(Ordering::Acquire) > 0;
        let times_left_out = self.live[self.worker]
            .times_left_out
            .load(Ordering::Acquire);
        if times_left_out > self.times_left_out {
            self.times_left_out = times_left_out;
            self.leave_out_times();
        }
    }

    fn leave_out_times(&mut self) {
        for record in &mut self.kinds {
            record.interval.reset();
            if let Some(lag) = &mut record.lag {
                lag.reset();
            }
        }
    }

    /// The warm-up is over.
    pub fn resume(&mut self) {
        self.is_paused = false;
    }

    #[inline]
    fn kind(&mut self, kind: usize, at_ns: u64, ended_ok: Option<u64>) -> &mut KindRecord {
        if at_ns >= self.next_ns {
            self.pass(at_ns, ended_ok);
        }
        &mut self.kinds[self.by_kind[kind]]
    }

    /// An operation is done. `sent_ns` is its last try's.
    #[inline]
    pub fn done(&mut self, kind: usize, due_ns: u64, sent_ns: u64, done_ns: u64, rows: u64) {
        if self.is_paused {
            return;
        }
        let is_discarded = self.is_discarded;
        let record = self.kind(kind, done_ns, Some(self.ok + 1));
        let service_ns = done_ns - sent_ns;
        if record.ok == 0 {
            record.begin(sent_ns);
        }
        record.ok += 1;
        if planted::is(Bug::OperationCountedTwice) && record.ok.is_multiple_of(100) {
            record.ok += 1;
        }
        record.rows += rows;
        record.last_tried_ns = done_ns;
        if !is_discarded {
            record.interval.service.saturating_record(service_ns);
        }
        let second = &mut record.second;
        second.ok += 1;
        second.rows += rows;
        second.service_sum_ns += service_ns;
        second.service_max_ns = second.service_max_ns.max(service_ns);
        if let Some(response) = &mut record.interval.response {
            let response_ns = done_ns.saturating_sub(due_ns);
            if !is_discarded {
                response.saturating_record(response_ns);
            }
            second.response_max_ns = second.response_max_ns.max(response_ns);
        }
        self.ok += 1;
        self.rows += rows;
        let live = &self.live[self.worker];
        // Before the count: whoever sees the operation counted sees when it was done.
        live.last_done_ns.store(done_ns, Ordering::Relaxed);
        live.ok.store(self.ok, Ordering::Release);
        live.rows.store(self.rows, Ordering::Relaxed);
    }

    /// How late the first try of an operation of an open loop was sent.
    #[inline]
    pub fn lag(&mut self, kind: usize, due_ns: u64, sent_ns: u64) {
        if self.is_paused || self.is_discarded {
            return;
        }
        if let Some(lag) = &mut self.kinds[self.by_kind[kind]].lag {
            lag.saturating_record(sent_ns.saturating_sub(due_ns));
        }
    }

    /// A try did not succeed. `is_final` when there will be no other.
    pub fn unsuccessful(
        &mut self,
        kind: usize,
        sent_ns: u64,
        ended_ns: u64,
        class: &'static str,
        is_final: bool,
    ) {
        if self.is_paused {
            return;
        }
        // An operation that failed for good has ended, and took its time. What a schedule brings is
        // counted by the clock.
        let has_ended = is_final && !self.is_open;
        let record = self.kind(kind, ended_ns, has_ended.then_some(self.ok));
        record.begin(sent_ns);
        record.last_tried_ns = ended_ns;
        if is_final && planted::is(Bug::FailureCountedAsDone) {
            record.ok += 1;
        } else if is_final {
            record.failed += 1;
        } else {
            record.retried += 1;
            record.wait_ns += ended_ns - sent_ns;
        }
        *record.errors.entry(class).or_default() += 1;
        record.second.unsuccessful += 1;
        record
            .unsuccessful
            .get_or_insert_with(histogram::empty)
            .saturating_record(ended_ns - sent_ns);
        self.unsuccessful += 1;
        if has_ended {
            self.live[self.worker]
                .last_done_ns
                .store(ended_ns, Ordering::Relaxed);
        }
        self.live[self.worker]
            .unsuccessful
            .store(self.unsuccessful, Ordering::Relaxed);
    }

    /// An operation failed that may.
    pub fn note_failure(&mut self, failure: Failure) {
        if !self.is_paused {
            self.first_failure.get_or_insert(failure);
        }
    }

    /// The first failure that was noted.
    pub fn take_first_failure(&mut self) -> Option<Failure> {
        self.first_failure.take()
    }

    /// A pause between two tries.
    pub fn paused(&mut self, kind: usize, pause_ns: u64) {
        if !self.is_paused {
            self.kinds[self.by_kind[kind]].wait_ns += pause_ns;
        }
    }

    /// Does what is due at `at_ns`, the end of a try: a new second, the beginning of a
    /// turn's count if the operation has ended, with `ended_ok` operations done.
    #[cold]
    fn pass(&mut self, at_ns: u64, ended_ok: Option<u64>) {
        if at_ns >= self.second_end_ns {
            self.roll(at_ns);
        }
        if let Some(ended_ok) = ended_ok.filter(|_| at_ns >= self.turn_from_ns) {
            let live = &self.live[self.worker];
            live.turn_start_done_ns.store(at_ns, Ordering::Relaxed);
            live.turn_start_ok.store(ended_ok, Ordering::Release);
            self.turn_from_ns = u64::MAX;
        }
        self.next_ns = self.second_end_ns.min(self.turn_from_ns);
    }

    /// Closes the seconds before `at_ns`.
    fn roll(&mut self, at_ns: u64) {
        let index = (at_ns - self.start_ns) / SECOND_NS;
        let closed = (index - self.handed_over) as usize;
        for record in &mut self.kinds {
            record.seconds.push(std::mem::take(&mut record.second));
            record.seconds.resize(closed, Second::default());
        }
        let interval_s = self.intervals.interval_s();
        if index / interval_s != self.second_index / interval_s {
            self.hand_over(self.second_index / interval_s, index / interval_s);
            self.handed_over = index;
        }
        self.second_index = index;
        self.second_end_ns = self.start_ns + (index + 1) * SECOND_NS;
    }

    /// The worker goes on in interval `next`. The seconds of its last one stay with it.
    fn hand_over(&mut self, interval: u64, next: u64) {
        buggify::pause(Point::LateHandOver, Duration::from_micros(200));
        let first_second = self.handed_over;
        let kinds = self.kinds.iter_mut().map(|record| HandOver {
            kind: record.kind,
            times: &mut record.interval,
            first_second,
            seconds: match next {
                u64::MAX => record.seconds.drain(..0),
                _ => record.seconds.drain(..),
            },
        });
        self.intervals.add(self.worker, interval, next, kinds);
    }

    /// Closes the last second and gives up what was recorded, by kind.
    pub fn finish(mut self) -> Vec<KindRecord> {
        for record in &mut self.kinds {
            record.seconds.push(std::mem::take(&mut record.second));
            record.first_second = self.handed_over;
            record.first_sent_ns = record.first_sent_ns.saturating_sub(self.start_ns);
            record.last_tried_ns = record.last_tried_ns.saturating_sub(self.start_ns);
        }
        self.hand_over(self.second_index / self.intervals.interval_s(), u64::MAX);
        self.kinds
    }
}
