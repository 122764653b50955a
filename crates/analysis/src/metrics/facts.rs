//! One finished step, as formulas see it: what was recorded, and the rates that others build on.

use plimsoll_core::plan::{ALL_EVENTS, MULTIGET_KEYS, STATEMENT_NOTES};
use plimsoll_core::readings::HostReading;
use plimsoll_core::record::{ClientRecord, OperationRecord, TurnSums};
use plimsoll_core::rocksdb_report;
use plimsoll_core::units::NS_PER_S;
use plimsoll_store::event::StepDone;
use plimsoll_store::{OperationSecond, Turn};

use super::latencies::Latencies;
use super::value::Answer;

pub(super) const GIB: f64 = (1u64 << 30) as f64;
pub(super) const MIB: f64 = (1u64 << 20) as f64;
pub(super) const KIB: f64 = 1024.0;

/// One finished step of one trial.
pub(crate) struct Facts<'a> {
    pub done: &'a StepDone,
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
    matches!(kind, "insert" | "delete" | "index")
}

impl<'a> Facts<'a> {
    pub fn new(
        done: &'a StepDone,
        series: Result<&'a [OperationSecond], &'a str>,
        turns: &'a [Turn],
    ) -> Self {
        let mut facts = Self {
            series,
            turns,
            ..Self::of_events(done)
        };
        facts.latencies = Latencies::decode(facts.primary());
        facts
    }

    /// Without histograms and series: what is read from every campaign of a store must be cheap.
    pub(super) fn of_events(done: &'a StepDone) -> Self {
        Self {
            done,
            series: Err("it was not read"),
            turns: &[],
            latencies: Latencies::unread(),
        }
    }

    pub(super) fn note(&self, name: &str, nothing: &str) -> Answer {
        let note = self.done.notes.get(name).copied();
        note.ok_or_else(|| nothing.to_owned())
    }

    pub(super) fn operation(&self, kind: &str) -> Option<&OperationRecord> {
        self.done
            .operations
            .iter()
            .find(|operation| operation.kind == kind)
    }

    pub(super) fn primary(&self) -> Result<&OperationRecord, String> {
        self.operation(&self.done.primary)
            .ok_or_else(|| format!("the step recorded no {}", self.done.primary))
    }

    pub(super) fn reading(&self, name: HostReading) -> Answer {
        self.done.host.answer(name)
    }

    pub(super) fn per_second(&self, name: HostReading) -> Answer {
        ratio(
            self.reading(name)?,
            self.reading(HostReading::Seconds)?,
            "the step took no time",
        )
    }

    pub(super) fn clients(&self, kind: &str) -> impl Iterator<Item = &ClientRecord> {
        self.done
            .clients
            .iter()
            .filter(move |client| client.kind == kind)
    }

    /// The sum over clients of what each did by its own active time. Zero where the step has no
    /// such operation. By slices the step's own operation has the rate of the turns, as verdicts
    /// have: the clients' time has turns for warming up in it.
    pub(super) fn rate(&self, kind: &str, done: fn(&ClientRecord) -> u64) -> Answer {
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
    pub(super) fn rate_of_turns(&self, kind: &str) -> Answer {
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

    pub(super) fn sum_of_turns(&self, of: fn(&Turn) -> u64) -> f64 {
        self.turns.iter().map(of).sum::<u64>() as f64
    }

    pub(super) fn rate_of_clients(&self, kind: &str, done: fn(&ClientRecord) -> u64) -> Answer {
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

    pub(super) fn is_of_rocksdb(&self) -> bool {
        rocksdb_report::OPERATIONS.contains(&self.done.primary.as_str())
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

    /// Rows that one scan looks at.
    pub(super) fn scan_rows(&self) -> Answer {
        self.note("rows_per_scan", "the step scans no table")
    }

    /// Operations of the step, as metrics per operation count them.
    pub(super) fn operations(&self) -> Answer {
        let primary = self.primary()?;
        Ok(match (self.statements(), self.scan_rows()) {
            (Some(_), Ok(rows)) => primary.ok as f64 * rows / 1e3,
            (Some(statements), Err(_)) => statements,
            (None, _) if self.is_of_rocksdb() => primary.ok as f64 * self.keys_per_operation(),
            (None, _) if counts_rows(&primary.kind) => primary.rows as f64,
            (None, _) => primary.ok as f64,
        })
    }

    /// The rate of the step's operation.
    pub(super) fn operation_rate(&self) -> Answer {
        match self.done.primary.as_str() {
            primary @ ("transaction" | "scan" | ALL_EVENTS) if self.statements().is_some() => {
                let done = self.primary()?.ok as f64;
                Ok(self.rate(primary, |client| client.ok)?
                    * ratio(self.operations()?, done, "no operation was done")?)
            }
            "insert" | "index" => self.inserted_or_indexed_per_s(),
            "query" | "scan" => self.rate(&self.done.primary, |client| client.ok),
            primary if self.is_of_rocksdb() => {
                Ok(self.rate(primary, |client| client.ok)? * self.keys_per_operation())
            }
            other => Err(format!("the rate of {other} is not defined")),
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
        if self.done.primary == "multiget" {
            f64::from(MULTIGET_KEYS)
        } else {
            1.0
        }
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
