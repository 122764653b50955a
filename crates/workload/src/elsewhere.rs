//! A step whose workers are in other processes, on client hosts. What its step needs is made at
//! home; each host makes the workers of its clients from plan and seed, and they are those that
//! home would have made.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use plimsoll_core::plan::{FileWork, Step, SysbenchWork, Work};
use plimsoll_engine::EngineError;
use serde::{Deserialize, Serialize};

use crate::client::Statements;
use crate::run::WorkloadRun;
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};

/// What the steps so far have left that the next one's workers depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// Rows of each table; none where statements do not say.
    pub(crate) rows: Vec<Option<u64>>,
    /// Seconds of the data's own clock.
    pub(crate) clock_s: u64,
    /// Where sequences go on, by name.
    pub(crate) sequences: BTreeMap<String, i64>,
}

/// What workers on a client host counted beside their operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountsPart {
    /// Nothing.
    Nothing,
    /// Of looking up the smallest ids.
    MinId {
        /// How often.
        lookups: u64,
        /// Time of all of them.
        ns: u64,
        /// The longest.
        longest_ns: u64,
    },
    /// Of events.
    Clients {
        /// Statements of those that were done, by event.
        statements: Vec<Statements>,
        /// Of tries in vain.
        unfinished: Statements,
        /// Rows that tables, from 0, have gained or lost.
        growth: BTreeMap<usize, i64>,
        /// By sequence, a number that no client has reached.
        sequences: Vec<i64>,
    },
}

impl WorkloadRun {
    /// Whether the step's clients share nothing but the server, so that each can be anywhere. The
    /// loaders of tests and workload files hand out tables to each other, and RocksDB is in its
    /// client's process.
    pub fn is_divisible(step: &Step) -> bool {
        match &step.work {
            Work::InsertBenchmark(_) => true,
            Work::Sysbench(work) => matches!(work, SysbenchWork::Test(_)),
            Work::File(work) => matches!(work, FileWork::Mix { .. }),
            Work::Rocksdb(_) => false,
        }
    }

    /// What a client host must know of the steps before.
    pub fn state(&self) -> RunState {
        match self {
            Self::InsertBenchmark(run) => run.state(),
            Self::File(run) => run.state(),
            Self::Sysbench(_) | Self::Kv(_) => RunState::default(),
        }
    }

    /// Goes on behind steps that another process has booked.
    pub fn restore(&mut self, state: RunState) {
        match self {
            Self::InsertBenchmark(run) => run.restore(state),
            Self::File(run) => run.restore(state),
            Self::Sysbench(_) | Self::Kv(_) => {}
        }
    }

    /// The workers of these clients of a step that is prepared.
    ///
    /// # Errors
    /// When the step is not [divisible](Self::is_divisible), or of another workload.
    pub fn tasks_of(
        &self,
        step: &Step,
        clients: &RangeInclusive<u32>,
    ) -> Result<StepTasks, EngineError> {
        let mut tasks = match (self, &step.work) {
            (Self::InsertBenchmark(run), Work::InsertBenchmark(work)) => run.workers(step, *work),
            (Self::Sysbench(run), Work::Sysbench(SysbenchWork::Test(test))) => {
                run.clients(step, *test)
            }
            (Self::File(run), Work::File(FileWork::Mix { events })) => run.clients(step, events),
            _ => {
                return Err(EngineError::new(format!(
                    "{} has clients that share more than the server; run it without client hosts",
                    step.name
                )));
            }
        };
        tasks.tasks.retain(|task| clients.contains(&task.client));
        Ok(tasks)
    }
}

impl ExtraCounts {
    /// What the workers of this process counted.
    pub fn part(&self) -> CountsPart {
        match &self.0 {
            Counted::Nothing | Counted::Kv(_) => CountsPart::Nothing,
            Counted::MinId(cost) => CountsPart::MinId {
                lookups: cost.lookups.load(Ordering::Relaxed),
                ns: cost.ns.load(Ordering::Relaxed),
                longest_ns: cost.longest_ns.load(Ordering::Relaxed),
            },
            Counted::Clients(totals) => CountsPart::Clients {
                statements: totals.by_event(),
                unfinished: totals.unfinished(),
                growth: totals.growth(),
                sequences: totals.sequences(),
            },
        }
    }

    /// Adds what the workers of another process counted in the same step.
    pub fn add(&self, part: CountsPart) {
        match (&self.0, part) {
            (
                Counted::MinId(cost),
                CountsPart::MinId {
                    lookups,
                    ns,
                    longest_ns,
                },
            ) => {
                cost.lookups.fetch_add(lookups, Ordering::Relaxed);
                cost.ns.fetch_add(ns, Ordering::Relaxed);
                cost.longest_ns.fetch_max(longest_ns, Ordering::Relaxed);
            }
            (
                Counted::Clients(totals),
                CountsPart::Clients {
                    statements,
                    unfinished,
                    growth,
                    sequences,
                },
            ) if !statements.is_empty() => {
                let tables = growth.keys().next_back().map_or(0, |last| last + 1);
                let rows: Vec<i64> = (0..tables)
                    .map(|table| growth.get(&table).copied().unwrap_or(0))
                    .collect();
                totals.add(&statements, unfinished, &rows, &sequences);
            }
            _ => {}
        }
    }
}
