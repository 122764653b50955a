//! From the plan's steps to workers, and from what they moved to what the results say.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_core::plan::{
    Background, Ends, KEY_BYTES, KvStep, KvWork, RocksdbBench, Step, VALUE_BYTES, Work,
};
use plimsoll_core::record::TableCheck;
use plimsoll_core::rocksdb_report::LOGICAL_BYTES;
use plimsoll_core::seed::Draw;
use plimsoll_engine::{Direction, DrainAction, DrainLimits, EngineError, KvStore, WriteMode};
use plimsoll_load::{Arrival, StepOptions, Stop, Task};
use sha2::{Digest, Sha256};

use super::keys::{KEY_LENGTH, Numbers, write_key};
use super::maintenance::{Maintenance, wait};
use super::settings::is_universal;
use super::values::Values;
use super::worker::{KvWorker, SharedKvTotals};
use crate::check::short_hash;
use crate::session::SharedServer;
use crate::step_tasks::{Counted, ExtraCounts, StepTasks};
use crate::timing::arrival;

/// The one column family.
const COLUMN_FAMILY: &str = "default";
/// Keys of one iterator when all are read.
const READ_AT_ONCE: u32 = 10_000;

/// The benchmark on one data state.
pub struct KvRun {
    settings: RocksdbBench,
    server: SharedServer,
    seed: u64,
    is_universal: bool,
    /// Keys that must be there.
    expected_keys: u64,
}

impl KvRun {
    /// Nothing is loaded yet: the first step does that.
    pub fn new(
        settings: RocksdbBench,
        server: SharedServer,
        seed: u64,
    ) -> Result<Self, EngineError> {
        let is_universal = is_universal(&server.effective_settings()?);
        Ok(Self {
            settings,
            server,
            seed,
            is_universal,
            expected_keys: 0,
        })
    }

    fn store(&self) -> Result<&dyn KvStore, EngineError> {
        self.server.kv()
    }

    /// The column family.
    pub fn table_names(&self) -> Vec<String> {
        vec![COLUMN_FAMILY.to_owned()]
    }

    /// Makes the step's workers.
    pub fn tasks(&self, step: &Step, kv: KvStep) -> Result<StepTasks, EngineError> {
        self.store()?;
        let sum = Arc::new(SharedKvTotals::default());
        let mut kinds = vec![step.operation.into()];
        let mut tasks: Vec<Task> = (1..=step.clients)
            .map(|client| self.client(step, kv, client, &sum))
            .collect();
        if let Some(background) = step.background {
            kinds.push(background.operation.into());
            tasks.push(self.background(step, background));
        }
        let options = StepOptions {
            warm_up_ns: step.ends.warm_up_ns(),
            max_failed: step.max_failed,
            ..StepOptions::default()
        };
        Ok(StepTasks {
            kinds,
            tasks,
            options,
            counts: ExtraCounts(Counted::Kv(sum)),
        })
    }

    fn client(&self, step: &Step, kv: KvStep, client: u32, sum: &Arc<SharedKvTotals>) -> Task {
        let numbers = match kv.work {
            KvWork::Fill => Numbers::InOrder { next: 0 },
            _ => Numbers::Random {
                draw: self.draw("keys", step, client),
                count: self.settings.keys,
            },
        };
        let values = kv
            .work
            .is_write()
            .then(|| Values::new(self.draw("values", step, client)));
        let worker = KvWorker::new(
            self.server.clone(),
            kv.work,
            0,
            (numbers, self.settings.keys),
            values,
            Some(sum.clone()),
        );
        let stop = match step.ends {
            Ends::Operations { per_client } => Stop::Operations(per_client),
            _ => Stop::Time(step.duration_ns().unwrap_or(0)),
        };
        Task {
            client,
            kinds: vec![0],
            arrival: arrival(self.seed, "kv arrival", step, client),
            stop,
            worker: Box::new(worker),
        }
    }

    /// The thread that writes beside the readers, for as long as they read.
    fn background(&self, step: &Step, background: Background) -> Task {
        let writer = step.clients + 1;
        let numbers = Numbers::Random {
            draw: self.draw("keys", step, writer),
            count: self.settings.keys,
        };
        let values = Some(Values::new(self.draw("values", step, writer)));
        let worker = KvWorker::new(
            self.server.clone(),
            KvWork::Overwrite,
            1,
            (numbers, self.settings.keys),
            values,
            None,
        );
        let stop = step.duration_ns().map_or(Stop::WithClient, Stop::Time);
        Task {
            client: 1,
            kinds: vec![1],
            arrival: Arrival::Even {
                operations: background.amount,
                period_ns: background.per_ns.get(),
                phase_ns: 0,
            },
            stop,
            worker: Box::new(worker),
        }
    }

    fn draw(&self, what: &str, step: &Step, client: u32) -> Draw {
        Draw::new(self.seed, &["kv", what, &step.name, &client.to_string()])
    }

    /// Books a step that is done: all keys are there once they were loaded, and stay.
    pub fn assume(&mut self, step: &Step) {
        if let Work::Rocksdb(KvStep {
            work: KvWork::Fill, ..
        }) = step.work
        {
            self.expected_keys = self.settings.keys;
        }
    }

    /// What belongs to a step after its operations: the wait of one that waits. Facts of it.
    pub(crate) fn finish(
        &self,
        step: &Step,
        limits: &DrainLimits<'_>,
    ) -> Result<BTreeMap<String, f64>, EngineError> {
        let mut notes = BTreeMap::new();
        if step.waits() {
            let waited = wait(self.store()?, limits)?;
            notes.insert("wait_seconds".to_owned(), waited.seconds);
            notes.insert(
                "wait_is_complete".to_owned(),
                f64::from(u8::from(waited.result.is_empty())),
            );
        }
        Ok(notes)
    }

    /// What comes between a step and the next.
    pub(crate) fn drain(
        &self,
        step: &Step,
        is_copied: bool,
        limits: &DrainLimits<'_>,
    ) -> Result<Vec<DrainAction>, EngineError> {
        Maintenance::after(step, self.is_universal, is_copied).map_or_else(
            || Ok(Vec::new()),
            |what| what.perform(self.store()?, limits),
        )
    }

    /// Reads all keys and values once, through the block cache as the workers do.
    pub fn read_all(&self) -> Result<(), EngineError> {
        let mut session = self.store()?.session(WriteMode {
            has_wal: true,
            syncs: false,
        })?;
        let mut key = [0; KEY_LENGTH];
        for first in (0..self.expected_keys).step_by(READ_AT_ONCE as usize) {
            write_key(first, &mut key);
            session.range(&key, READ_AT_ONCE, Direction::Forward)?;
        }
        Ok(())
    }

    /// Facts of a step that no histogram holds.
    pub fn notes(&self, step: &Step, counts: &ExtraCounts) -> BTreeMap<String, f64> {
        let mut notes = BTreeMap::new();
        let Counted::Kv(sum) = &counts.0 else {
            return notes;
        };
        let moved = sum.get();
        notes.insert(
            LOGICAL_BYTES.to_owned(),
            (self.settings.keys * u64::from(KEY_BYTES + VALUE_BYTES)) as f64,
        );
        notes.insert("operation_bytes".to_owned(), moved.bytes as f64);
        notes.insert(
            "keys_per_operation".to_owned(),
            f64::from(step.operation.keys()),
        );
        if !step.is_writing() && moved.expected_keys > 0 {
            notes.insert(
                "found_ratio".to_owned(),
                moved.found_keys as f64 / moved.expected_keys as f64,
            );
        }
        notes
    }

    /// Counts all keys by reading them. A difference is for the caller to judge.
    pub fn verify(&self, with_checksum: bool) -> Result<Vec<TableCheck>, EngineError> {
        let mut hash = Sha256::new();
        let mut row = |key: &[u8], value: &[u8]| {
            if with_checksum {
                hash.update(key);
                hash.update(value);
            }
        };
        let found_rows = self.store()?.for_each(&mut row)?;
        let checksum = with_checksum.then(|| short_hash(hash));
        Ok(vec![TableCheck {
            table: COLUMN_FAMILY.to_owned(),
            expected_rows: self.expected_keys,
            found_rows,
            checksum,
        }])
    }
}
