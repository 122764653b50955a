//! What the workers on a client host report: all that the watcher of a step at home reads from
//! memory, so that a step in parts is counted by the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use hdrhistogram::Histogram;
use plimsoll_core::histogram::{self, EncodedHistogram, HistogramError};
use plimsoll_core::units::SECOND_NS;
use serde::{Deserialize, Serialize};

use super::outcome::{TaskEnd, TaskInfo};
use crate::intervals::{PartTimes, ServiceAndResponse, WorkerSecond};
use crate::recorder::{KindRecord, Second};
use crate::worker::Failure;

/// No program has more classes of errors than this.
const MOST_CLASSES: usize = 64;
/// The class of an error beyond them.
const OTHER: &str = "other";

/// What happened on a client host since its report before. Workers are numbered from 0 in the order
/// of the part's tasks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PartReport {
    /// Per worker: operations done, their rows, tries that were retried or failed.
    pub(super) live: Vec<(u64, u64, u64)>,
    /// No later report has intervals before this one.
    pub(super) next_interval: u64,
    pub(super) intervals: Vec<PartInterval>,
    pub(super) seconds: Vec<PartSecond>,
    pub(super) ends: Vec<PartEnd>,
}

/// Times of a kind of operation in an interval, all workers of the host together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PartInterval {
    interval: u64,
    kind: usize,
    service: EncodedHistogram,
    response: Option<EncodedHistogram>,
}

/// A second of one kind of one worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PartSecond {
    worker: usize,
    kind: usize,
    second: u64,
    counts: Second,
}

/// What a worker leaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct PartEnd {
    pub worker: usize,
    failure: Option<PartFailure>,
    is_interrupted: bool,
    /// Instants of its schedule that it has taken.
    scheduled: u64,
    ended_ns: u64,
    kinds: Vec<PartKind>,
    first_failure: Option<PartFailure>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PartFailure {
    class: String,
    message: String,
}

/// What a worker leaves of a kind of operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct PartKind {
    kind: usize,
    ok: u64,
    retried: u64,
    failed: u64,
    rows: u64,
    errors: BTreeMap<String, u64>,
    wait_ns: u64,
    lag: Option<EncodedHistogram>,
    unsuccessful: Option<EncodedHistogram>,
    first_sent_ns: u64,
    last_tried_ns: u64,
    first_second: u64,
    seconds: Vec<Second>,
}

impl PartReport {
    /// The latest instant that it speaks of, from the step's start, with histogram intervals of
    /// `interval_s` seconds.
    pub(super) fn latest_ns(&self, interval_s: u64) -> u64 {
        let seconds = self.seconds.iter().map(|second| second.second);
        let intervals = self.intervals.iter().map(|interval| interval.interval);
        let intervals = intervals.map(|interval| interval.saturating_mul(interval_s));
        let last = |end: &PartEnd| {
            let seconds =
                |kind: &PartKind| kind.first_second.saturating_add(kind.seconds.len() as u64);
            end.kinds.iter().map(seconds).max().unwrap_or(0)
        };
        let seconds = seconds.chain(intervals).chain(self.ends.iter().map(last));
        let latest_ns = seconds.max().unwrap_or(0).saturating_mul(SECOND_NS);
        let ends = self.ends.iter().map(|end| end.ended_ns);
        ends.fold(latest_ns, u64::max)
    }
}

impl PartInterval {
    pub fn new(interval: u64, kind: usize, times: &ServiceAndResponse) -> Self {
        Self {
            interval,
            kind,
            service: EncodedHistogram::of(&times.service),
            response: times.response.as_ref().map(EncodedHistogram::of),
        }
    }

    pub fn times(&self) -> Result<PartTimes, HistogramError> {
        let times = ServiceAndResponse {
            service: narrow(&self.service)?,
            response: self.response.as_ref().map(narrow).transpose()?,
        };
        Ok(PartTimes {
            interval: self.interval,
            kind: self.kind,
            times,
        })
    }
}

impl PartSecond {
    pub fn new(of: &WorkerSecond) -> Self {
        Self {
            worker: of.worker,
            kind: of.kind,
            second: of.second,
            counts: of.counts,
        }
    }

    /// The same of the step's worker; `None` for a worker or a kind that the part does not have.
    pub fn of_step(&self, workers: &[usize], infos: &[TaskInfo]) -> Option<WorkerSecond> {
        let worker = *workers.get(self.worker)?;
        let has_kind = infos[worker].kinds.contains(&self.kind);
        has_kind.then_some(WorkerSecond {
            worker,
            kind: self.kind,
            second: self.second,
            counts: self.counts,
        })
    }
}

impl PartEnd {
    pub fn new(worker: usize, end: &TaskEnd) -> Self {
        Self {
            worker,
            failure: end.result.as_ref().err().map(PartFailure::of),
            is_interrupted: end.is_interrupted,
            scheduled: end.schedule.count(),
            ended_ns: end.ended_ns,
            kinds: end.kinds.iter().map(PartKind::new).collect(),
            first_failure: end.first_failure.as_ref().map(PartFailure::of),
        }
    }

    /// What the worker leaves, as if it had been at home.
    pub fn task_end(self, info: &TaskInfo) -> Result<TaskEnd, HistogramError> {
        let mut schedule = info.arrival.due();
        if info.arrival.is_open() {
            // A worker takes what was due by its end and, waiting, one more.
            let most = info.arrival.count_before(self.ended_ns) + 1;
            for _ in 0..self.scheduled.min(most) {
                schedule.next_ns();
            }
        }
        let kinds = self.kinds.into_iter();
        let kinds = kinds.filter(|record| info.kinds.contains(&record.kind));
        Ok(TaskEnd {
            result: match self.failure {
                Some(failure) => Err(failure.into()),
                None => Ok(()),
            },
            is_interrupted: self.is_interrupted,
            schedule,
            ended_ns: self.ended_ns,
            kinds: kinds.map(PartKind::record).collect::<Result<_, _>>()?,
            first_failure: self.first_failure.map(Failure::from),
        })
    }
}

impl PartKind {
    fn new(record: &KindRecord) -> Self {
        let errors = record.errors.iter();
        Self {
            kind: record.kind,
            ok: record.ok,
            retried: record.retried,
            failed: record.failed,
            rows: record.rows,
            errors: errors.map(|(class, n)| ((*class).to_owned(), *n)).collect(),
            wait_ns: record.wait_ns,
            lag: record.lag.as_ref().map(EncodedHistogram::of),
            unsuccessful: record.unsuccessful.as_ref().map(EncodedHistogram::of),
            first_sent_ns: record.first_sent_ns,
            last_tried_ns: record.last_tried_ns,
            first_second: record.first_second,
            seconds: record.seconds.clone(),
        }
    }

    fn record(self) -> Result<KindRecord, HistogramError> {
        let mut record = KindRecord::new(self.kind, self.lag.is_some());
        for (class, count) in self.errors {
            *record.errors.entry(class_of(&class)).or_default() += count;
        }
        record.ok = self.ok;
        record.retried = self.retried;
        record.failed = self.failed;
        record.rows = self.rows;
        record.wait_ns = self.wait_ns;
        record.lag = self.lag.as_ref().map(narrow).transpose()?;
        record.unsuccessful = self.unsuccessful.as_ref().map(narrow).transpose()?;
        record.first_sent_ns = self.first_sent_ns;
        record.last_tried_ns = self.last_tried_ns;
        record.first_second = self.first_second;
        record.seconds = self.seconds;
        Ok(record)
    }
}

impl PartFailure {
    fn of(failure: &Failure) -> Self {
        Self {
            class: failure.class.to_owned(),
            message: failure.message.clone(),
        }
    }
}

impl From<PartFailure> for Failure {
    fn from(failure: PartFailure) -> Self {
        Self {
            class: class_of(&failure.class),
            message: failure.message,
        }
    }
}

/// The counts of one host fit where they came from.
fn narrow(encoded: &EncodedHistogram) -> Result<Histogram<u32>, HistogramError> {
    let wide = encoded.decode()?;
    let mut narrow = histogram::empty();
    for value in wide.iter_recorded() {
        let count = u32::try_from(value.count_at_value()).unwrap_or(u32::MAX);
        narrow.saturating_record_n(value.value_iterated_to(), count);
    }
    Ok(narrow)
}

/// A class of errors lives as long as the program: there are few, and a host that names many gets
/// one name for the rest.
fn class_of(text: &str) -> &'static str {
    static CLASSES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(class) = classes.get(text) {
        return class;
    }
    if classes.len() >= MOST_CLASSES {
        return OTHER;
    }
    let class: &'static str = Box::leak(text.to_owned().into_boxed_str());
    classes.insert(class);
    class
}
