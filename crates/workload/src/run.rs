//! What every workload is to whoever runs it: a step's workers before it, and what follows from
//! what they did after it.

use std::collections::BTreeMap;

use plimsoll_core::plan::{Step, Work, Workload};
use plimsoll_core::record::TableCheck;
use plimsoll_engine::{DrainAction, DrainLimits, EngineError, Settings};
use plimsoll_load::StepOutcome;

use crate::client::Statements;
use crate::file::FileRun;
use crate::insert_benchmark::InsertBenchmarkRun;
use crate::kv::KvRun;
use crate::session::SharedServer;
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};
use crate::sysbench::SysbenchRun;

/// A workload on one data state.
pub enum WorkloadRun {
    InsertBenchmark(Box<InsertBenchmarkRun>),
    /// The sysbench microbenchmarks.
    Sysbench(SysbenchRun),
    /// A workload that the user wrote.
    File(Box<FileRun>),
    /// RocksDB's benchmark.
    Kv(KvRun),
}

impl WorkloadRun {
    /// Nothing is created yet: the first step does that.
    pub fn new(workload: &Workload, server: SharedServer, seed: u64) -> Result<Self, EngineError> {
        Ok(match workload {
            Workload::InsertBenchmark(settings) => Self::InsertBenchmark(Box::new(
                InsertBenchmarkRun::new(settings.clone(), server, seed)?,
            )),
            Workload::Sysbench(settings) => {
                Self::Sysbench(SysbenchRun::new(settings.clone(), server, seed)?)
            }
            Workload::File(settings) => {
                Self::File(Box::new(FileRun::new(settings.clone(), server, seed)?))
            }
            Workload::Rocksdb(settings) => Self::Kv(KvRun::new(settings.clone(), server, seed)?),
        })
    }

    /// The names of the tables that hold rows.
    pub fn table_names(&self) -> Vec<String> {
        match self {
            Self::InsertBenchmark(run) => run.table_names(),
            Self::Sysbench(run) => run.table_names(),
            Self::File(run) => run.table_names(),
            Self::Kv(run) => run.table_names(),
        }
    }

    /// Checks that a server with these effective settings takes the longest statements. It would
    /// refuse them hours later.
    pub fn check_statements(&self, settings: &Settings) -> Result<(), EngineError> {
        match self {
            Self::InsertBenchmark(run) => run.check_statements(settings),
            // Short statements, and a load in pieces below every default: what a server does not
            // take ends the first step.
            Self::Sysbench(_) | Self::File(_) => Ok(()),
            // There are none.
            Self::Kv(_) => Ok(()),
        }
    }

    /// Creates what the step needs and makes its workers.
    pub fn tasks(&self, step: &Step) -> Result<StepTasks, EngineError> {
        match (self, &step.work) {
            (Self::InsertBenchmark(run), Work::InsertBenchmark(work)) => run.tasks(step, *work),
            (Self::Sysbench(run), Work::Sysbench(work)) => run.tasks(step, work),
            (Self::File(run), Work::File(work)) => run.tasks(step, work),
            (Self::Kv(run), Work::Rocksdb(work)) => run.tasks(step, *work),
            _ => Err(EngineError::new(format!(
                "{} is a step of another workload than its cell runs",
                step.name
            ))),
        }
    }

    /// Books a finished step: what the tables must hold now.
    pub fn book(&mut self, step: &Step, counts: &ExtraCounts, outcome: &StepOutcome) {
        match self {
            Self::InsertBenchmark(run) => run.book(step, outcome),
            Self::Sysbench(run) => run.book(step, counts),
            Self::File(run) => run.book(step, counts),
            Self::Kv(run) => run.assume(step),
        }
    }

    /// Statements of the operations of each kind, in the order of the kinds; nothing where the
    /// workload does not count them by kind.
    pub fn statements(&self, counts: &ExtraCounts) -> Vec<u64> {
        match &counts.0 {
            Counted::Clients(totals) => {
                totals.by_event().into_iter().map(Statements::all).collect()
            }
            Counted::Nothing | Counted::MinId(_) | Counted::Kv(_) => Vec::new(),
        }
    }

    /// Books a step that another trial has done on the data that this one begins with.
    pub fn assume(&mut self, step: &Step) {
        match self {
            Self::InsertBenchmark(run) => run.assume(step),
            Self::Sysbench(run) => run.assume(step),
            Self::File(run) => run.assume(step),
            Self::Kv(run) => run.assume(step),
        }
    }

    /// Reads every table once: what a trial on copied data warms up with.
    pub fn read_all(&self, server: &SharedServer) -> Result<(), EngineError> {
        let scans = match self {
            Self::InsertBenchmark(run) => run.whole_scans(),
            Self::Sysbench(run) => run.whole_scans(),
            Self::File(run) => run.whole_scans(),
            Self::Kv(run) => return run.read_all(),
        };
        let mut session = server.connect()?;
        for scan in scans {
            // It fetches one row at most.
            session.query(&scan)?;
        }
        Ok(())
    }

    /// What belongs to a step after its operations: the wait of one that waits. Facts of it.
    pub fn finish(
        &self,
        step: &Step,
        limits: &DrainLimits<'_>,
    ) -> Result<BTreeMap<String, f64>, EngineError> {
        match self {
            Self::Kv(run) => run.finish(step, limits),
            Self::InsertBenchmark(_) | Self::Sysbench(_) | Self::File(_) => Ok(BTreeMap::new()),
        }
    }

    /// Works off the engine's debt after a step. `is_copied` when the data is what other trials
    /// begin with.
    pub fn drain(
        &self,
        step: &Step,
        server: &SharedServer,
        is_copied: bool,
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        match self {
            Self::Kv(run) => run.drain(step, is_copied, limits),
            Self::InsertBenchmark(_) | Self::Sysbench(_) | Self::File(_) => {
                server.drain(&self.table_names(), limits)
            }
        }
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(
        &self,
        step: &Step,
        counts: &ExtraCounts,
        outcome: &StepOutcome,
    ) -> BTreeMap<String, f64> {
        match self {
            Self::InsertBenchmark(run) => run.notes(counts, outcome),
            Self::Sysbench(run) => run.notes(step, counts, outcome),
            Self::File(run) => run.notes(counts, outcome),
            Self::Kv(run) => run.notes(step, counts),
        }
    }

    /// Counts the rows of all tables. An error or a difference is for the caller to judge.
    pub fn verify(&self, with_checksum: bool) -> Result<Vec<TableCheck>, EngineError> {
        match self {
            Self::InsertBenchmark(run) => run.verify(with_checksum),
            Self::Sysbench(run) => run.verify(with_checksum),
            Self::File(run) => run.verify(with_checksum),
            Self::Kv(run) => run.verify(with_checksum),
        }
    }
}
