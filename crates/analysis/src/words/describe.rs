//! Workloads and steps in words.

use plimsoll_core::plan::{
    Distribution, FileWorkload, InsertBenchmark, LoadMode, MixStep, QueryKind, Step, StepEnd,
    StepKind, Sysbench, TablePlacement, Test, TestKind, TestRate, Workload, WriteArrival,
};
use plimsoll_core::units::{format_count, format_duration_ns};
use plimsoll_store::{CampaignRecord, Confirm, Design};

use crate::words::describe_rocksdb::{describe_kv, describe_rocksdb};

pub(crate) fn describe_workload(workload: &Workload) -> String {
    match workload {
        Workload::InsertBenchmark(workload) => describe_insert_benchmark(workload),
        Workload::Sysbench(workload) => describe_sysbench(workload),
        Workload::File(workload) => describe_file(workload),
        Workload::Rocksdb(workload) => describe_rocksdb(workload),
    }
}

pub(crate) fn describe_sysbench(workload: &Sysbench) -> String {
    let load = workload.steps.iter().find_map(|step| match step.kind {
        StepKind::Prepare {
            load: LoadMode::Classic,
            ..
        } => Some("loaded as sysbench does"),
        StepKind::Prepare {
            load: LoadMode::Fast,
            ..
        } => Some("loaded fast"),
        _ => None,
    });
    let levels: Vec<u32> = workload
        .steps
        .iter()
        .filter_map(|step| level(&step.name))
        .collect();
    let clients = match (levels.iter().min(), levels.iter().max()) {
        (Some(least), Some(most)) => format!("{least} to {most} clients"),
        _ => count(workload.clients, "client"),
    };
    format!(
        "{clients}, {} of {} rows, {}, {}",
        count(workload.tables, "table"),
        format_count(workload.rows),
        load.unwrap_or("not loaded"),
        if workload.prepared {
            "prepared statements"
        } else {
            "statements in text"
        }
    )
}

pub(crate) fn describe_file(workload: &FileWorkload) -> String {
    format!(
        "{}, {} with {} rows in all, {}",
        count(workload.clients, "client"),
        count(workload.tables, "table"),
        format_count(workload.rows),
        if workload.prepared {
            "prepared statements"
        } else {
            "statements in text"
        }
    )
}

pub(crate) fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The clients of a step that is a level of a ramp, as its name says.
pub(crate) fn level(step: &str) -> Option<u32> {
    step.split_once('@')?.1.parse().ok()
}

/// What comes behind the kind of a timed step: clients, pace, time.
pub(crate) fn describe_timing(
    step: &Step,
    rate: Option<TestRate>,
    what: &str,
    duration_ns: u64,
    warm_up_ns: u64,
) -> String {
    let duration = |ns: u64| {
        format_duration_ns(ns)
            .replace(".0s", "s")
            .replace("m00s", "m")
    };
    let pace = match rate {
        None => "flat out (closed loop)".to_owned(),
        Some(rate) => {
            let gaps = if rate.is_poisson {
                "with exponential gaps"
            } else {
                "evenly spaced"
            };
            format!("{} {what}/s {gaps} (open loop)", rate.per_s)
        }
    };
    let warm_up = if warm_up_ns > 0 {
        format!(" after {} of warm-up", duration(warm_up_ns))
    } else {
        String::new()
    };
    let failures = match step.max_failed {
        Some(share) => format!("; up to {} % of them may fail", share * 100.0),
        None => String::new(),
    };
    format!(
        "{}, {pace} for {}{warm_up}{failures}",
        count(step.clients, "client"),
        duration(duration_ns)
    )
}

pub(crate) fn describe_mix(step: &Step, mix: &MixStep) -> String {
    let sum: f64 = mix
        .events
        .iter()
        .map(|(_, weight)| f64::from(*weight))
        .sum();
    let parts: Vec<String> = match mix.events.as_slice() {
        [(only, _)] => vec![only.clone()],
        events => events
            .iter()
            .map(|(name, weight)| {
                format!("{name} {:.3} %", 100.0 * f64::from(*weight) / sum).replace(".000", "")
            })
            .collect(),
    };
    format!(
        "events: {}; {}",
        parts.join(", "),
        describe_timing(step, mix.rate, "events", mix.duration_ns, mix.warm_up_ns)
    )
}

pub(crate) fn describe_test(step: &Step, test: &Test) -> String {
    let mix = test.kind.statements();
    let event = match test.kind {
        TestKind::Scan => "scans of a table that match no row, in text".to_owned(),
        kind if kind.is_transaction() => {
            format!(
                "transactions of {} statements ({} read, {} write)",
                mix.all(),
                mix.reads,
                mix.writes
            )
        }
        _ => "single statements, each committed by itself".to_owned(),
    };
    let range = if test.kind.has_range() {
        format!(" with a range of {}", test.range)
    } else {
        String::new()
    };
    let distribution = match test.distribution {
        Distribution::Uniform => "uniform ids".to_owned(),
        Distribution::Zipfian { exponent } => format!("zipfian ids (exponent {exponent})"),
        Distribution::Pareto { h } => format!("pareto ids (h {h})"),
        Distribution::Gaussian => "gaussian ids".to_owned(),
        Distribution::Special => "ids of sysbench's special distribution".to_owned(),
    };
    let timing = describe_timing(
        step,
        test.rate,
        "transactions",
        test.duration_ns,
        test.warm_up_ns,
    );
    format!("{event}{range}, {distribution}, {timing}")
}

pub(crate) fn describe_insert_benchmark(workload: &InsertBenchmark) -> String {
    let clients = match workload.clients {
        1 => "1 client".to_owned(),
        clients => format!("{clients} clients"),
    };
    let tables = match (workload.tables, workload.clients) {
        (_, 1) => "1 table",
        (TablePlacement::PerClient, _) => "a table each",
        (TablePlacement::Shared, _) => "1 table for all",
    };
    let arrival = match workload.arrival {
        WriteArrival::Even => "evenly spaced",
        WriteArrival::ClassicBurst => "in one burst a second",
        WriteArrival::Poisson => "with exponential gaps",
    };
    format!(
        "{clients}, {tables}, {} rows loaded per client, background writes {arrival}",
        format_count(workload.rows)
    )
}

pub(crate) fn describe_step(step: &Step) -> String {
    let deletes = |deletes: bool| if deletes { " and as many deleted" } else { "" };
    let batch = step.batch;
    match &step.kind {
        StepKind::Load {
            rows,
            indexes_first,
        } => {
            let first = if *indexes_first {
                "secondary indexes in place, then "
            } else {
                ""
            };
            format!(
                "{first}{} rows per client inserted in primary key order, {batch} per transaction",
                format_count(*rows)
            )
        }
        StepKind::CreateIndexes { rows } => {
            format!(
                "the secondary indexes created, after {} rows per client inserted",
                format_count(*rows)
            )
        }
        StepKind::Write {
            rows,
            deletes: with,
        } => {
            format!(
                "{} rows per client inserted{} flat out, {batch} per transaction",
                format_count(*rows),
                deletes(*with)
            )
        }
        StepKind::ReadWrite {
            query,
            rate,
            duration_ns,
            end,
            deletes: with,
        } => {
            let query = match query {
                QueryKind::Range => "range queries",
                QueryKind::Point => "queries of ten primary keys",
            };
            let duration = format_duration_ns(*duration_ns)
                .replace(".0s", "s")
                .replace("m00s", "m")
                .replace("h00m", "h");
            let end = match end {
                StepEnd::Rows => format!("until the rows of {duration} are inserted"),
                StepEnd::Time => format!("for {duration}"),
            };
            let writes = format!(
                "{rate} rows/s per client inserted{}, {batch} per transaction",
                deletes(*with)
            );
            format!(
                "{query} flat out (closed loop) with {writes}, in the background (open loop), {end}"
            )
        }
        StepKind::Scan => "five scans of every table".to_owned(),
        StepKind::Prepare { tables, rows, load } => {
            let how = match load {
                LoadMode::Fast => "in the engine's fastest way",
                LoadMode::Classic => "as sysbench does",
            };
            format!(
                "{} of {} rows created, loaded {how}, and indexed",
                count(*tables, "table"),
                format_count(*rows)
            )
        }
        StepKind::Fill { tables, rows, load } => {
            let how = match load {
                LoadMode::Fast => "in the engine's fastest way",
                LoadMode::Classic => "by one connection",
            };
            format!(
                "{} with {} rows in all created, loaded {how}, and indexed",
                count(*tables, "table"),
                format_count(*rows)
            )
        }
        StepKind::Mix(mix) => describe_mix(step, mix),
        StepKind::Test(test) => describe_test(step, test),
        StepKind::Kv(kv) => describe_kv(step, kv),
    }
}

/// By slices a step has another length than the plan gives it.
pub(crate) fn in_turns(campaign: &CampaignRecord, step: &Step) -> String {
    let of_step =
        |confirm: &&Confirm| confirm.design == Design::Slices && confirm.steps.contains(&step.name);
    campaign
        .header
        .confirm
        .as_ref()
        .filter(of_step)
        .map_or_else(String::new, |confirm| {
            let turn_ns = if step.is_writing() {
                confirm.turn_ns_write
            } else {
                confirm.turn_ns_read
            };
            format!(
                "; here in turns of {}, {} at most over {}, whatever the plan's length",
                format_duration_ns(turn_ns),
                format_duration_ns(confirm.time_ns),
                count(confirm.starts.unwrap_or(1), "start")
            )
        })
}
