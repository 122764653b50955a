//! From what the workers recorded to what a step leaves: totals, windows, and what an open loop
//! still owed at its end.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_core::record::{ClientRecord, OperationRecord};

use super::pacing::{Paced, account};
use super::{Ended, SecondRow, StepOutcome};
use crate::arrival::{Arrival, Due};
use crate::histogram;
use crate::recorder::{KindRecord, Second};
use crate::worker::{Failure, Stop};

/// What must be known about a task after the task itself has moved to its thread.
pub(crate) struct TaskInfo {
    pub client: u32,
    pub arrival: Arrival,
    pub stop: Stop,
    pub kinds: Vec<usize>,
}

/// What a worker leaves. Instants count from the start of the step.
pub(crate) struct TaskEnd {
    pub result: Result<(), Failure>,
    /// It was stopped, or failed, before its rule ended it: what was still due is no debt.
    pub is_cut: bool,
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
            .chain(end.is_cut.then_some(end.ended_ns))
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
    for (info, end) in infos.iter().zip(ends).filter(|(_, end)| !end.is_cut) {
        let (planned, _) = info.schedule(end, finished_ns);
        let mut schedule = end.schedule.clone();
        let owed = planned.saturating_sub(schedule.count());
        let mut shares = Shares::new(&end.kinds);
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
struct Shares<'a> {
    kinds: &'a [KindRecord],
    handed_out: Vec<u64>,
}

impl<'a> Shares<'a> {
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

/// What a worker did in each second, over its kinds.
fn merge_seconds(kinds: &[KindRecord]) -> Vec<Second> {
    let mut merged: Vec<Second> = Vec::new();
    for record in kinds {
        merged.resize(merged.len().max(record.seconds.len()), Second::default());
        for (sum, second) in merged.iter_mut().zip(&record.seconds) {
            sum.ok += second.ok;
            sum.rows += second.rows;
            sum.unsuccessful += second.unsuccessful;
        }
    }
    merged
}

/// Everything that a step's outcome is made from.
pub(crate) struct Ledger<'a> {
    pub kinds: &'a [&'a str],
    pub infos: &'a [TaskInfo],
    pub ends: &'a [TaskEnd],
    /// Those of the unsent are in the response times.
    pub totals: &'a BTreeMap<usize, Totals>,
    pub unsent: &'a BTreeMap<usize, Histogram<u64>>,
    pub finished_ns: Option<u64>,
}

impl Ledger<'_> {
    pub fn outcome(&self, ended: Ended) -> StepOutcome {
        let elapsed_ns = self.ends.iter().map(|end| end.ended_ns).max().unwrap_or(0);
        let mut outcome = StepOutcome {
            ended,
            elapsed_ns,
            operations: Vec::new(),
            clients: Vec::new(),
            seconds: Vec::new(),
        };
        for kind in 0..self.kinds.len() {
            self.add_kind(kind, &mut outcome);
        }
        outcome
    }

    fn add_kind(&self, kind: usize, outcome: &mut StepOutcome) {
        let tasks = || self.infos.iter().zip(self.ends);
        let workers: Vec<(&TaskInfo, &TaskEnd, &KindRecord)> = tasks()
            .flat_map(|(info, end)| {
                end.kinds
                    .iter()
                    .filter(|record| record.kind == kind)
                    .map(move |record| (info, end, record))
            })
            .collect();
        if workers.is_empty() {
            return;
        }
        let mut operation = OperationRecord {
            kind: self.kinds[kind].to_owned(),
            ..OperationRecord::default()
        };
        let mut lag: Option<Histogram<u64>> = None;
        let mut unsuccessful: Option<Histogram<u64>> = None;
        let mut paced = Vec::new();
        // The schedule of a worker of several kinds is one for all of them: it is accounted for
        // with the first.
        let merged: Vec<Vec<Second>> = workers
            .iter()
            .map(|(_, end, _)| merge_seconds(&end.kinds))
            .collect();
        for ((info, end, record), all_seconds) in workers.iter().zip(&merged) {
            add_record(&mut operation, record);
            operation.worker_ns += end.ended_ns;
            for (from, to) in [
                (&record.lag, &mut lag),
                (&record.unsuccessful, &mut unsuccessful),
            ] {
                if let Some(from) = from {
                    histogram::add(to.get_or_insert_with(histogram::empty), from);
                }
            }
            let (planned, length_ns) = info.schedule(end, self.finished_ns);
            let (from_ns, to_ns) = info.window(end, record, length_ns, self.finished_ns);
            let is_mixed = info.kinds.len() > 1 && matches!(info.stop, Stop::Time(_));
            let (seconds, ok) = if is_mixed {
                (all_seconds, end.kinds.iter().map(|record| record.ok).sum())
            } else {
                (&record.seconds, record.ok)
            };
            if !is_mixed || kind == info.kinds[0] {
                paced.push(Paced {
                    arrival: &info.arrival,
                    planned,
                    length_ns,
                    seconds,
                    ok,
                    active_ns: to_ns - from_ns,
                });
            }
            outcome.clients.push(ClientRecord {
                client: info.client,
                kind: operation.kind.clone(),
                ok: record.ok,
                rows: record.rows,
                from_ns,
                to_ns,
                turns: None,
            });
            outcome
                .seconds
                .extend(
                    record
                        .seconds
                        .iter()
                        .enumerate()
                        .map(|(second, counts)| SecondRow {
                            second: second as u64,
                            client: info.client,
                            kind,
                            counts: *counts,
                        }),
                );
        }
        operation.attempts = operation.ok + operation.retried + operation.failed;
        operation.pacing = account(&paced);
        if let Some(unsent) = self.unsent.get(&kind) {
            operation.unsent = unsent.len();
            operation.unsent_response = Some(histogram::encode(unsent));
            // They are as late as they have waited.
            lag.get_or_insert_with(histogram::empty)
                .add(unsent)
                .expect("all histograms have the same bounds");
        }
        operation.lag = lag.as_ref().map(histogram::encode);
        operation.unsuccessful = unsuccessful.as_ref().map(histogram::encode);
        let none = histogram::empty();
        operation.service =
            histogram::encode(self.totals.get(&kind).map_or(&none, |total| &total.service));
        operation.response = self
            .totals
            .get(&kind)
            .and_then(|total| total.response.as_ref())
            .map(histogram::encode);
        outcome.operations.push(operation);
    }
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
