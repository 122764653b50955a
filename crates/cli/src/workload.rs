//! `workload list` and `workload show`.

use plimsoll_core::plan::{InsertBenchmark, Plan, PresetInfo, StepKind, Sysbench, Workload, presets};
use plimsoll_core::suggest;
use plimsoll_core::units::{format_count, format_duration_ns};

use crate::Outcome;
use crate::arguments::WorkloadVerb;
use crate::failure::Failure;

pub fn workload(verb: &WorkloadVerb) -> Outcome {
    match verb {
        WorkloadVerb::List => {
            let width = presets().iter().map(|preset| preset.name.len()).max().unwrap_or(0);
            for preset in presets() {
                anstream::println!("{:width$}  {}", preset.name, preset.description);
            }
        }
        WorkloadVerb::Show { name } => {
            let names = || presets().iter().map(|preset| preset.name);
            let preset = presets().iter().find(|preset| preset.name == name.as_str()).ok_or_else(|| {
                let hint = suggest::hint(name, names());
                Failure::usage(format!("there is no workload \"{name}\"{hint}; there are: {}", names().collect::<Vec<_>>().join(", ")))
            })?;
            show(preset)?;
        }
    }
    Ok(0)
}

fn show(preset: &PresetInfo) -> Result<(), Failure> {
    let text = format!("name = \"show\"\nworkload = \"{}\"\nbuilds = [\"sqlite\"]\nconfigs = [\"wal_full\"]\n", preset.name);
    let plan = Plan::parse(preset.name, &text).map_err(|error| Failure::bug(error.to_string()))?;
    anstream::println!("{}: {}", preset.name, preset.description);
    match &plan.cells[0].workload {
        Workload::InsertBenchmark(workload) => show_insert_benchmark(workload),
        Workload::Sysbench(workload) => show_sysbench(workload),
    }
    Ok(())
}

/// The tests in their order: the published section, statements of a transaction (those that read, write, and begin or end it), the time.
fn show_sysbench(workload: &Sysbench) {
    anstream::println!("full size, {} rows per table:\n", format_count(workload.rows));
    anstream::println!("{:<26} {:>8} {:>8}  what", "step", "time", "r/w/o");
    for step in &workload.steps {
        let (time, mix, what) = match step.kind {
            StepKind::Test(test) => {
                let mix = test.kind.statements();
                let what = if test.is_reported { test.kind.group().title() } else { "not reported" };
                (format_duration_ns(test.duration_ns), format!("{}/{}/{}", mix.reads, mix.writes, mix.others), what)
            }
            _ => (String::new(), String::new(), "create, load and index the tables"),
        };
        let drain = if step.drain_after { ", then the engine works off its debt" } else { "" };
        anstream::println!("{:<26} {time:>8} {mix:>8}  {what}{drain}", step.name);
    }
}

fn show_insert_benchmark(workload: &InsertBenchmark) {
    anstream::println!("full size, per client:\n");
    anstream::println!("{:<8} {:>10} {:>6} {:>8}  what", "step", "rows", "batch", "rate");
    for step in &workload.steps {
        let what = match step.kind {
            StepKind::Load { indexes_first: false, .. } => "create tables, insert in primary key order".to_owned(),
            StepKind::Load { indexes_first: true, .. } => "create tables and indexes, insert".to_owned(),
            StepKind::CreateIndexes { .. } => "insert one batch, create three secondary indexes".to_owned(),
            StepKind::Write { deletes: true, .. } => "insert, delete as many, as fast as possible".to_owned(),
            StepKind::Write { deletes: false, .. } => "insert as fast as possible".to_owned(),
            StepKind::ReadWrite { query, duration_ns, deletes, .. } => {
                let background = if deletes { "inserts and deletes" } else { "inserts" };
                format!("{query:?} queries flat out beside {background} at the rate, {}", format_duration_ns(duration_ns)).to_lowercase()
            }
            StepKind::Scan => "five scans that match no row".to_owned(),
            StepKind::Prepare { .. } | StepKind::Test(_) => unreachable!("these are steps of sysbench"),
        };
        let rate = step.background_rate().map_or(String::new(), |rate| format!("{rate}/s"));
        anstream::println!("{:<8} {:>10} {:>6} {rate:>8}  {what}", step.name, format_count(step.inserted_rows()), step.batch);
    }
}
