//! One finished step, as formulas see it: what was recorded, and the rates that others build on.

use plimsoll_core::plan::{Family, Operation, STATEMENT_NOTES};
use plimsoll_core::readings::HostReading;
use plimsoll_core::record::{ClientRecord, OperationRecord, TurnSums};
use plimsoll_core::rocksdb_report;
use plimsoll_core::units::{BYTES_PER_KIB, NS_PER_S};
use plimsoll_store::event::StepDone;
use plimsoll_store::{OperationSecond, Turn};

use super::MetricSet;
use super::value::{Answer, Value};
use crate::latencies::{Clock, Latencies};

/// No step is longer: 46 days. Each of its seconds has a place in memory.
pub(crate) const LONGEST_STEP_S: u64 = 4_000_000;

/// One finished step of one trial.
pub(crate) struct Facts<'a> {
    pub done: &'a StepDone,
    /// The metrics it has, and so what one of its operations is.
    pub set: MetricSet,
    /// The operations per second, client and kind, or why they cannot be read.
    pub series: Result<&'a [OperationSecond], &'a str>,
    /// The turns of a step by slices, those for warming up left out; empty for every other step.
    pub turns: &'a [Turn],
    /// Those of the step's own operation.
    pub(super) latencies: Latencies,
}

pub(super) fn ratio(value: f64, by: f64, nothing: &str) -> Answer {
    if by > 0.0 {
        Ok(value / by)
    } else {
        Err(nothing.to_owned())
    }
}

/// Whether one operation of this kind counts as the rows it touched, and not as one.
pub(crate) fn counts_rows(kind: &str) -> bool {
    [Operation::Insert, Operation::Delete, Operation::Index]
        .iter()
        .any(|operation| *operation == *kind)
}

impl<'a> Facts<'a> {
    /// Without histograms and series: what is read from every campaign of a store must be cheap.
    pub(super) fn of_events(family: Family, done: &'a StepDone) -> Self {
        const UNREAD: &str = "it was not read";
        Self {
            done,
            set: MetricSet::of(family, done.primary),
            series: Err(UNREAD),
            turns: &[],
            latencies: Latencies::missing(UNREAD),
        }
    }

    pub(super) fn note(&self, name: &str, nothing: &str) -> Answer {
        let note = self.done.notes.get(name).copied();
        note.ok_or_else(|| nothing.to_owned())
    }

    pub(super) fn operation(&self, kind: Operation) -> Option<&OperationRecord> {
        self.done
            .operations
            .iter()
            .find(|operation| operation.kind == kind)
    }

    pub(super) fn primary(&self) -> Result<&OperationRecord, String> {
        self.operation(self.done.primary)
            .ok_or_else(|| format!("the step recorded no {}", self.done.primary))
    }

    pub(super) fn reading(&self, name: HostReading) -> Answer {
        self.done.host.answer(name)
    }

    /// KiB per second of a reading that counts bytes.
    pub(super) fn kib_per_s(&self, bytes: HostReading) -> Answer {
        Ok(self.per_second(bytes)? / BYTES_PER_KIB)
    }

    pub(super) fn per_second(&self, name: HostReading) -> Answer {
        ratio(
            self.reading(name)?,
            self.reading(HostReading::Seconds)?,
            "the step took no time",
        )
    }

    pub(super) fn clients(&self, kind: Operation) -> impl Iterator<Item = &ClientRecord> {
        self.done
            .clients
            .iter()
            .filter(move |client| client.kind == kind)
    }

    /// The sum over clients of what each did by its own active time. Zero where the step has no
    /// such operation. By slices the step's own operation has the rate of the turns: the clients'
    /// time has turns for warming up in it. Verdicts weigh turns of different lengths, which this does
    /// not.
    pub(super) fn rate(&self, kind: Operation, done: fn(&ClientRecord) -> u64) -> Answer {
        let whole = self.rate_of_clients(kind, done)?;
        if kind != self.done.primary || self.turns.is_empty() {
            return Ok(whole);
        }
        let of_turns = self.rate_of_turns(kind)?;
        Ok(whole
            * ratio(
                of_turns,
                self.rate_of_clients(kind, |client| client.ok)?,
                "no operation was done",
            )?)
    }

    /// Operations per second over all turns: of each worker the ratio of its sums, and the sum of
    /// these.
    pub(super) fn rate_of_turns(&self, kind: Operation) -> Answer {
        let by_worker: Vec<TurnSums> = self
            .clients(kind)
            .filter_map(|client| client.turns)
            .collect();
        if by_worker.is_empty() {
            // A campaign before methodology version 8.
            let active_s = self.sum_of_turns(|turn| turn.active_ns) / NS_PER_S;
            return ratio(
                self.sum_of_turns(|turn| turn.operations),
                active_s,
                "no turn took any time",
            );
        }
        let rate = |sums: &TurnSums| sums.operations as f64 * NS_PER_S / sums.active_ns as f64;
        let total: f64 = by_worker
            .iter()
            .filter(|sums| sums.active_ns > 0)
            .map(rate)
            .sum();
        if total > 0.0 {
            Ok(total)
        } else {
            Err("no turn took any time".to_owned())
        }
    }

    /// Whether the step was run by slices, be its turns read or not.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
            || self
                .done
                .clients
                .iter()
                .any(|client| client.turns.is_some())
    }

    /// None without turns, and where one of them does not know it.
    pub(super) fn known_sum_of_turns(&self, of: fn(&Turn) -> Option<u64>) -> Option<f64> {
        let sum = self.turns.iter().map(of).sum::<Option<u64>>();
        sum.filter(|_| !self.turns.is_empty()).map(|sum| sum as f64)
    }

    pub(super) fn sum_of_turns(&self, of: fn(&Turn) -> u64) -> f64 {
        self.turns.iter().map(of).sum::<u64>() as f64
    }

    pub(super) fn rate_of_clients(
        &self,
        kind: Operation,
        done: fn(&ClientRecord) -> u64,
    ) -> Answer {
        if self.clients(kind).next().is_none()
            && self
                .operation(kind)
                .is_some_and(|operation| operation.ok > 0)
        {
            return Err(format!("no client's active time was recorded for {kind}"));
        }
        self.clients(kind)
            .filter(|client| done(client) > 0)
            .try_fold(0.0, |sum, client| {
                let active_s = client.to_ns.saturating_sub(client.from_ns) as f64 / NS_PER_S;
                let rate = ratio(
                    done(client) as f64,
                    active_s,
                    "a client was active for no measurable time",
                )?;
                Ok(sum + rate)
            })
    }

    pub(super) fn is_of_db_bench(&self) -> bool {
        self.done
            .notes
            .contains_key(rocksdb_report::DRIVEN_BY_DB_BENCH)
    }

    /// Statements of a sysbench test, as sysbench counts them.
    pub(super) fn statements(&self) -> Option<f64> {
        STATEMENT_NOTES
            .iter()
            .map(|name| self.done.notes.get(*name).copied())
            .sum()
    }

    pub(super) fn counted_statements(&self) -> Answer {
        self.statements()
            .ok_or_else(|| "the step counted no statements".to_owned())
    }

    /// Rows that one scan looks at.
    pub(super) fn scan_rows(&self) -> Answer {
        self.note("rows_per_scan", "the step scans no table")
    }

    /// Operations of the step, as metrics per operation count them.
    pub(super) fn operations(&self) -> Answer {
        let primary = self.primary()?;
        let done = primary.ok as f64;
        match self.set {
            MetricSet::Statements => match self.scan_rows() {
                // A scan is one statement: its costs are per thousand rows.
                Ok(rows) => Ok(done * rows / 1e3),
                Err(_) => self.counted_statements(),
            },
            MetricSet::Keys => Ok(done * self.keys_per_operation()),
            MetricSet::Classic if counts_rows(&primary.kind) => Ok(primary.rows as f64),
            MetricSet::Classic => Ok(done),
        }
    }

    /// The rate of the step's operation.
    pub(super) fn operation_rate(&self) -> Answer {
        let primary = self.done.primary;
        match (self.set, primary) {
            (MetricSet::Statements, _) => {
                let done = self.primary()?.ok as f64;
                Ok(self.operations_per_s()?
                    * ratio(self.operations()?, done, "no operation was done")?)
            }
            (MetricSet::Keys, _) => Ok(self.operations_per_s()? * self.keys_per_operation()),
            (MetricSet::Classic, Operation::Insert | Operation::Index) => {
                self.inserted_or_indexed_per_s()
            }
            (MetricSet::Classic, Operation::Query | Operation::Scan) => self.operations_per_s(),
            (MetricSet::Classic, other) => Err(format!("the rate of {other} is not defined")),
        }
    }

    /// Microseconds at a quantile of the step's operation, 1 is the longest. Where operations were
    /// never sent, that may be a lower bound.
    pub(super) fn quantile_us(&self, clock: Clock, quantile: f64) -> Value {
        let at = self.latencies.at_ns(clock, quantile);
        Value {
            is_lower_bound: at.as_ref().is_ok_and(|(_, is_lower_bound)| *is_lower_bound),
            ..Value::from(at.map(|(ns, _)| ns as f64 / 1e3))
        }
    }

    pub(super) fn per_operation(&self, per_s: f64) -> Answer {
        ratio(per_s, self.operation_rate()?, "no operation was done")
    }

    pub(super) fn per_insert(&self, per_s: f64) -> Answer {
        ratio(
            per_s,
            self.inserted_or_indexed_per_s()?,
            "the step inserts nothing",
        )
    }

    /// Keys that an operation asks for or writes; of a range only the one that it begins at.
    pub(super) fn keys_per_operation(&self) -> f64 {
        f64::from(self.done.primary.keys())
    }

    pub(super) fn printed(&self, name: &str) -> Option<f64> {
        if !self.is_of_db_bench() {
            return None;
        }
        self.done
            .notes
            .get(&format!("{}{name}", rocksdb_report::PRINTED))
            .copied()
    }
}
