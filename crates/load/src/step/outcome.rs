//! From what the workers recorded to what a step leaves: totals, windows, and what an open loop
//! still owed at its end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_core::record::{ClientRecord, EncodedHistogram, OperationRecord};

use super::pacing::{Paced, account};
use super::{Ended, StepOutcome};
use crate::arrival::{Arrival, Due};
use crate::recorder::KindRecord;
use crate::worker::{Failure, Stop, Task};
use plimsoll_core::histogram;
use plimsoll_core::planted::{self, Bug};

/// What must be known about a task after the task itself has moved to its thread.
pub(crate) struct TaskInfo {
    pub client: u32,
    pub arrival: Arrival,
    pub stop: Stop,
    pub kinds: Vec<usize>,
}

/// What is known about tasks, in their order.
pub(crate) fn infos(tasks: &[Task]) -> Vec<TaskInfo> {
    let info = |task: &Task| TaskInfo {
        client: task.client,
        arrival: task.arrival.clone(),
        stop: task.stop,
        kinds: task.kinds.clone(),
    };
    tasks.iter().map(info).collect()
}

/// What a worker leaves. Instants count from the start of the step.
pub(crate) struct TaskEnd {
    pub result: Result<(), Failure>,
    /// It was stopped, or failed, before its rule ended it: what was still due is not owed.
    pub is_interrupted: bool,
    /// Where its schedule stands.
    pub schedule: Due,
    pub ended_ns: u64,
    pub kinds: Vec<KindRecord>,
    /// Of those that may be.
    pub first_failure: Option<Failure>,
}

/// Service and response times of one kind over the whole step.
pub(crate) struct Totals {
    pub service: Histogram<u64>,
    pub response: Option<Histogram<u64>>,
}

impl Totals {
    pub fn new() -> Self {
        Self {
            service: histogram::empty(),
            response: None,
        }
    }
}

impl TaskInfo {
    /// The kind whose schedule is that of another kind of the worker: a worker of several kinds that
    /// ends by time has one for all of them, which is accounted for with the first.
    pub fn paced_kind(&self, kind: usize) -> usize {
        let is_mixed = self.kinds.len() > 1 && matches!(self.stop, Stop::Time(_));
        if is_mixed { self.kinds[0] } else { kind }
    }

    /// Operations of the schedule and its length in nanoseconds; nothing in a closed loop. A finish
    /// at `finished_ns` cuts off the schedules of those that end by time or follow them.
    fn schedule(&self, end: &TaskEnd, finished_ns: Option<u64>) -> (u64, u64) {
        if !self.arrival.is_open() {
            return (0, 0);
        }
        let (planned, length_ns) = match self.stop {
            Stop::Operations(count) => (Some(count), self.arrival.length_ns(count)),
            Stop::Worker { planned, length_ns } => (Some(planned), length_ns),
            Stop::Time(length_ns) => (None, length_ns.min(end.ended_ns)),
            Stop::WithClient => (None, end.ended_ns),
        };
        let finished_ns =
            finished_ns.filter(|_| matches!(self.stop, Stop::Time(_) | Stop::Worker { .. }));
        let cut_ns = finished_ns
            .into_iter()
            .chain(end.is_interrupted.then_some(end.ended_ns))
            .min();
        match cut_ns.filter(|&cut_ns| cut_ns < length_ns) {
            Some(cut_ns) => (self.arrival.count_before(cut_ns), cut_ns),
            None => (
                planned.unwrap_or_else(|| self.arrival.count_before(length_ns)),
                length_ns,
            ),
        }
    }

    /// The time in which the worker performed this kind. It ends with its last try: one that was
    /// refused took time, too. Of a worker that ends by time it lasts to that time.
    fn window(
        &self,
        end: &TaskEnd,
        record: &KindRecord,
        length_ns: u64,
        finished_ns: Option<u64>,
    ) -> (u64, u64) {
        // A worker that ends by time performs its kinds in turn all the while. A kind that another
        // comes to after others, such as index creation after the inserts, starts then.
        let Stop::Time(whole_ns) = self.stop else {
            let from_ns = if self.kinds.len() > 1 {
                record.first_sent_ns
            } else {
                0
            };
            return (from_ns, record.last_tried_ns.max(length_ns).max(from_ns));
        };
        let last_tried_ns = end
            .kinds
            .iter()
            .map(|record| record.last_tried_ns)
            .max()
            .unwrap_or(0);
        (
            0,
            last_tried_ns.max(
                whole_ns
                    .min(finished_ns.unwrap_or(u64::MAX))
                    .min(end.ended_ns),
            ),
        )
    }
}

/// Response times that operations of open loops have at least, by kind: they were due before the
/// end of their schedule and never sent, so they had waited until their worker's end. Of a worker
/// of several kinds the schedule is one for all, and nobody knows which kind was next: they are
/// shared out as what it did was.
pub(crate) fn unsent(
    infos: &[TaskInfo],
    ends: &[TaskEnd],
    finished_ns: Option<u64>,
) -> BTreeMap<usize, Histogram<u64>> {
    let mut unsent: BTreeMap<usize, Histogram<u64>> = BTreeMap::new();
    for (info, end) in infos
        .iter()
        .zip(ends)
        .filter(|(_, end)| !end.is_interrupted && !planted::is(Bug::OwedForgotten))
    {
        let (planned, _) = info.schedule(end, finished_ns);
        let mut schedule = end.schedule.clone();
        let owed = planned.saturating_sub(schedule.count());
        let mut shares = KindShares::new(&end.kinds);
        for due_ns in (0..owed).filter_map(|_| schedule.next_ns()) {
            let kind = shares.next();
            unsent
                .entry(kind)
                .or_insert_with(histogram::empty)
                .saturating_record(end.ended_ns.saturating_sub(due_ns));
        }
    }
    unsent
}

/// Hands out kinds in the shares that a worker's operations had.
struct KindShares<'a> {
    kinds: &'a [KindRecord],
    handed_out: Vec<u64>,
}

impl<'a> KindShares<'a> {
    fn new(kinds: &'a [KindRecord]) -> Self {
        Self {
            kinds,
            handed_out: vec![0; kinds.len()],
        }
    }

    fn next(&mut self) -> usize {
        let weight = |record: &KindRecord| record.ok + record.failed;
        let has_any = self.kinds.iter().any(|record| weight(record) > 0);
        // The kind that would be the least ahead of its share with one more.
        let ahead = |&at: &usize| {
            let weight = if has_any { weight(&self.kinds[at]) } else { 1 };
            if weight == 0 {
                f64::INFINITY
            } else {
                (self.handed_out[at] + 1) as f64 / weight as f64
            }
        };
        let at = (0..self.kinds.len())
            .min_by(|a, b| ahead(a).total_cmp(&ahead(b)))
            .expect("a task has a kind");
        self.handed_out[at] += 1;
        self.kinds[at].kind
    }
}

/// What a step's outcome is made from.
pub(crate) struct OutcomeBuilder<'a> {
    pub kinds: &'a [&'a str],
    pub infos: &'a [TaskInfo],
    pub ends: &'a [TaskEnd],
    /// Those of the unsent are in the response times.
    pub totals: &'a BTreeMap<usize, Totals>,
    pub unsent: &'a BTreeMap<usize, Histogram<u64>>,
    pub finished_ns: Option<u64>,
    /// Operations done in each second, by the kind that paces them.
    pub done: &'a BTreeMap<usize, Vec<u64>>,
}

impl OutcomeBuilder<'_> {
    pub fn outcome(&self, ended: Ended) -> StepOutcome {
        let elapsed_ns = self.ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
        let mut outcome = StepOutcome {
            ended,
            elapsed_ns,
            operations: Vec::new(),
            clients: Vec::new(),
        };
        for kind in 0..self.kinds.len() {
            self.add_kind(kind, &mut outcome);
        }
        outcome
    }

    fn add_kind(&self, kind: usize, outcome: &mut StepOutcome) {
        let workers: Vec<KindOfWorker<'_>> = self
            .infos
            .iter()
            .zip(self.ends)
            .flat_map(|(info, end)| {
                end.kinds
                    .iter()
                    .filter(|record| record.kind == kind)
                    .map(|record| self.kind_of_worker(info, end, record))
            })
            .collect();
        if workers.is_empty() {
            return;
        }
        let mut operation = OperationRecord {
            kind: self.kinds[kind].to_owned(),
            ..OperationRecord::default()
        };
        for worker in &workers {
            add_record(&mut operation, worker.record);
            operation.worker_ns += worker.end.ended_ns;
            outcome.clients.push(worker.client_record(&operation.kind));
        }
        operation.attempts = operation.ok + operation.retried + operation.failed;
        let paced: Vec<Paced<'_>> = workers.iter().filter_map(KindOfWorker::paced).collect();
        let done = self.done.get(&kind).map_or(&[][..], Vec::as_slice);
        operation.pacing = account(&paced, done);
        self.add_histograms(kind, &workers, &mut operation);
        outcome.operations.push(operation);
    }

    fn kind_of_worker<'b>(
        &self,
        info: &'b TaskInfo,
        end: &'b TaskEnd,
        record: &'b KindRecord,
    ) -> KindOfWorker<'b> {
        let (planned, length_ns) = info.schedule(end, self.finished_ns);
        KindOfWorker {
            info,
            end,
            record,
            planned,
            length_ns,
            window: info.window(end, record, length_ns, self.finished_ns),
        }
    }

    fn add_histograms(
        &self,
        kind: usize,
        workers: &[KindOfWorker<'_>],
        operation: &mut OperationRecord,
    ) {
        let mut lag = sum(workers.iter().map(|worker| &worker.record.lag));
        let unsuccessful = sum(workers.iter().map(|worker| &worker.record.unsuccessful));
        if let Some(unsent) = self.unsent.get(&kind) {
            operation.unsent = unsent.len();
            operation.unsent_response = Some(EncodedHistogram::of(unsent));
            // They are as late as they have waited.
            lag.get_or_insert_with(histogram::empty)
                .add(unsent)
                .expect("all histograms have the same bounds");
        }
        operation.lag = lag.as_ref().map(EncodedHistogram::of);
        operation.unsuccessful = unsuccessful.as_ref().map(EncodedHistogram::of);
        let none = histogram::empty();
        let totals = self.totals.get(&kind);
        operation.service = EncodedHistogram::of(totals.map_or(&none, |total| &total.service));
        operation.response = totals
            .and_then(|total| total.response.as_ref())
            .map(EncodedHistogram::of);
    }
}

/// What one worker did of one kind.
struct KindOfWorker<'a> {
    info: &'a TaskInfo,
    end: &'a TaskEnd,
    record: &'a KindRecord,
    /// Operations of its schedule.
    planned: u64,
    /// The length of its schedule.
    length_ns: u64,
    /// From and to, from the start of the step.
    window: (u64, u64),
}

impl KindOfWorker<'_> {
    fn client_record(&self, kind: &str) -> ClientRecord {
        ClientRecord {
            client: self.info.client,
            kind: kind.to_owned(),
            ok: self.record.ok,
            rows: self.record.rows,
            from_ns: self.window.0,
            to_ns: self.window.1,
            turns: None,
        }
    }

    /// Its schedule and what came of it. The schedule of a worker of several kinds is one for all
    /// of them: it is accounted for with the first.
    fn paced(&self) -> Option<Paced<'_>> {
        if self.info.paced_kind(self.record.kind) != self.record.kind {
            return None;
        }
        let of_schedule =
            |record: &&KindRecord| self.info.paced_kind(record.kind) == self.record.kind;
        let ok = self.end.kinds.iter().filter(of_schedule);
        let ok = ok.map(|record| record.ok).sum();
        Some(Paced {
            arrival: &self.info.arrival,
            planned: self.planned,
            length_ns: self.length_ns,
            ok,
            active_ns: self.window.1 - self.window.0,
        })
    }
}

/// The sum of those histograms that are there.
fn sum<'a>(histograms: impl Iterator<Item = &'a Option<Histogram<u32>>>) -> Option<Histogram<u64>> {
    let mut total: Option<Histogram<u64>> = None;
    for histogram in histograms.flatten() {
        add(total.get_or_insert_with(histogram::empty), histogram);
    }
    total
}

fn add_record(operation: &mut OperationRecord, record: &KindRecord) {
    operation.ok += record.ok;
    operation.retried += record.retried;
    operation.failed += record.failed;
    operation.rows += record.rows;
    operation.wait_ns += record.wait_ns;
    for (class, count) in &record.errors {
        *operation.errors.entry((*class).to_owned()).or_default() += count;
    }
}

/// Adds the values of an interval to a total.
pub(super) fn add(total: &mut Histogram<u64>, interval: &Histogram<u32>) {
    for value in interval.iter_recorded() {
        total.saturating_record_n(value.value_iterated_to(), value.count_at_value().into());
    }
}
