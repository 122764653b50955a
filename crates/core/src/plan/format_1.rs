//! Steps as campaigns of format 1 hold them: what a step does, from which its facts follow.

use serde::Deserialize;

use super::insert_benchmark::steps as insert_benchmark;
use super::sysbench::steps as sysbench;
use super::{
    Distribution, Effect, Ends, KvStep, KvWork, LoadMode, QueryKind, Rate, Step, StepEnd, Test,
    TestKind, file, rocksdb,
};

/// A step of format 1.
#[derive(Debug, Deserialize)]
pub struct OldStep {
    name: String,
    kind: OldKind,
    clients: u32,
    batch: u32,
    drain_after: bool,
    wait_ns: Option<u64>,
    #[serde(default)]
    max_failed: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OldKind {
    Load {
        rows: u64,
        indexes_first: bool,
    },
    CreateIndexes {
        rows: u64,
    },
    Write {
        rows: u64,
        deletes: bool,
    },
    ReadWrite {
        query: QueryKind,
        rate: u64,
        duration_ns: u64,
        end: StepEnd,
        deletes: bool,
    },
    Scan,
    Prepare {
        tables: u32,
        rows: u64,
        load: LoadMode,
    },
    Test(OldTest),
    Fill {
        tables: u32,
        rows: u64,
        load: LoadMode,
    },
    Mix(OldMix),
    Kv(OldKvStep),
}

#[derive(Debug, Deserialize)]
struct OldTest {
    kind: TestKind,
    range: u32,
    distribution: Distribution,
    duration_ns: u64,
    warm_up_ns: u64,
    #[serde(default)]
    rate: Option<Rate>,
    is_reported: bool,
}

#[derive(Debug, Deserialize)]
struct OldMix {
    events: Vec<(String, u32)>,
    duration_ns: u64,
    warm_up_ns: u64,
    rate: Option<Rate>,
}

#[derive(Debug, Deserialize)]
struct OldKvStep {
    work: KvWork,
    end: OldEnd,
    warm_up_ns: u64,
    background_bytes_per_s: Option<u64>,
    rate: Option<Rate>,
    waits: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OldEnd {
    Operations(u64),
    Time(u64),
}

impl From<OldStep> for Step {
    fn from(old: OldStep) -> Self {
        Self {
            clients: old.clients,
            batch: old.batch,
            drain_after: old.drain_after,
            wait_ns: old.wait_ns,
            max_failed: old.max_failed,
            ..step(&old.name, old.kind)
        }
    }
}

fn step(name: &str, kind: OldKind) -> Step {
    match kind {
        OldKind::Load {
            rows,
            indexes_first,
        } => insert_benchmark::load(name, rows, indexes_first),
        OldKind::CreateIndexes { rows } => insert_benchmark::create_indexes(name, rows),
        OldKind::Write { rows, deletes } => insert_benchmark::write(name, rows, deletes),
        OldKind::ReadWrite {
            query,
            rate,
            duration_ns,
            end,
            deletes,
        } => insert_benchmark::read_write(name, query, rate, duration_ns, end, deletes),
        OldKind::Scan => insert_benchmark::scan(name),
        OldKind::Prepare { tables, rows, load } => sysbench::prepare(name, tables, rows, load),
        OldKind::Test(test) => Step {
            arrival: test.rate,
            is_reported: test.is_reported,
            ..sysbench::test(
                name,
                Test::from(&test),
                time(test.duration_ns, test.warm_up_ns),
            )
        },
        OldKind::Fill { tables, rows, load } => file::steps::fill(name, tables, rows, load),
        OldKind::Mix(mix) => Step {
            arrival: mix.rate,
            // Their statements were not looked at.
            ..file::steps::mix(
                name,
                mix.events,
                Effect::Writes,
                time(mix.duration_ns, mix.warm_up_ns),
            )
        },
        OldKind::Kv(kv) => {
            let ends = match kv.end {
                OldEnd::Operations(per_client) => Ends::Operations { per_client },
                OldEnd::Time(ns) => time(ns, kv.warm_up_ns),
            };
            Step {
                arrival: kv.rate,
                ..rocksdb::steps::step(name, KvStep::from(&kv), ends)
            }
        }
    }
}

fn time(ns: u64, warm_up_ns: u64) -> Ends {
    Ends::Time { ns, warm_up_ns }
}

impl From<&OldTest> for Test {
    fn from(old: &OldTest) -> Self {
        Self {
            kind: old.kind,
            range: old.range,
            distribution: old.distribution,
        }
    }
}

impl From<&OldKvStep> for KvStep {
    fn from(old: &OldKvStep) -> Self {
        Self {
            work: old.work,
            background_bytes_per_s: old.background_bytes_per_s,
            waits: old.waits,
        }
    }
}
