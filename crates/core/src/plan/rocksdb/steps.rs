//! The steps of RocksDB's benchmark with their facts, and their sequence.

use std::num::NonZeroU64;

use super::{KEY_BYTES, KvStep, KvWork, VALUE_BYTES};
use crate::plan::{Background, Effect, Ends, Operation, Rows, Step, Work, Writers};
use crate::units::SECOND_NS;

pub(in crate::plan) fn step(name: &str, work: KvStep, ends: Ends) -> Step {
    let effect = match (work.work, ends) {
        (KvWork::Fill, Ends::Operations { per_client }) => Effect::MakesData {
            rows: Rows::PerClient(per_client),
            is_indexed: true,
        },
        // It adds no key, and later steps count on what it leaves.
        (KvWork::Overwrite, Ends::Operations { .. }) => Effect::MakesData {
            rows: Rows::PerClient(0),
            is_indexed: true,
        },
        (work, _) if work.is_write() => Effect::Writes,
        _ => Effect::Reads,
    };
    Step {
        ends,
        effect,
        background: work.background_bytes_per_s.map(|bytes| Background {
            operation: Operation::Put,
            writers: Writers::One,
            amount: bytes,
            per_ns: NS_PER_BYTE_PER_S,
        }),
        ..Step::new(name, work.work.operation(), Work::Rocksdb(work))
    }
}

/// A writer of one byte per second writes a key with its value once in this time.
const NS_PER_BYTE_PER_S: NonZeroU64 =
    NonZeroU64::new((KEY_BYTES + VALUE_BYTES) as u64 * SECOND_NS).unwrap();

/// The sizes from which the sequence follows.
pub(super) struct Sequence {
    pub keys: u64,
    pub clients: u32,
    /// How the steps that do not write a number of keys end.
    pub timed: Ends,
    pub background_bytes_per_s: u64,
}

impl Sequence {
    /// The steps, without what the plan says about single ones.
    pub fn steps(&self) -> Vec<Step> {
        let t = self.clients;
        // To the nearest, as the original rounds.
        let some = ((self.keys as f64 / f64::from(t) / 10.0).round() as u64).max(1);
        let forward = KvWork::Range { is_backward: false };
        let backward = KvWork::Range { is_backward: true };
        let fill = format!("fillseq.wal_disabled.v{VALUE_BYTES}");
        let mut steps = vec![
            self.counted(&fill, KvWork::Fill, self.keys),
            self.timed(&format!("readrandom.t{t}"), KvWork::Get),
            self.timed(&format!("fwdrange.t{t}"), forward),
            self.timed(&format!("multireadrandom.t{t}"), KvWork::MultiGet),
            self.counted(&format!("overwritesome.t{t}.s0"), KvWork::Overwrite, some),
            self.beside_writes(&format!("revrangewhilewriting.t{t}"), backward),
            self.beside_writes(&format!("fwdrangewhilewriting.t{t}"), forward),
            self.beside_writes(&format!("readwhilewriting.t{t}"), KvWork::Get),
            self.waiting(&format!("overwriteandwait.t{t}.s0"), KvWork::Overwrite),
        ];
        steps[0].clients = 1;
        steps
    }

    fn counted(&self, name: &str, work: KvWork, operations: u64) -> Step {
        let per_client = operations;
        Step {
            drain_after: true,
            ..self.step(name, quiet(work), Ends::Operations { per_client })
        }
    }

    fn timed(&self, name: &str, work: KvWork) -> Step {
        self.step(name, quiet(work), self.timed)
    }

    fn beside_writes(&self, name: &str, work: KvWork) -> Step {
        let work = KvStep {
            background_bytes_per_s: Some(self.background_bytes_per_s),
            ..quiet(work)
        };
        self.step(name, work, self.timed)
    }

    fn waiting(&self, name: &str, work: KvWork) -> Step {
        let work = KvStep {
            waits: true,
            ..quiet(work)
        };
        self.step(name, work, self.timed)
    }

    fn step(&self, name: &str, work: KvStep, ends: Ends) -> Step {
        Step {
            clients: self.clients,
            ..step(name, work, ends)
        }
    }
}

fn quiet(work: KvWork) -> KvStep {
    KvStep {
        work,
        background_bytes_per_s: None,
        waits: false,
    }
}
