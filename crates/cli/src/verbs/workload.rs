//! `workload list`, `workload show` and `workload check`.

use std::path::Path;

use plimsoll_core::plan::{
    Definition, Distribution, Ends, InsertBenchmark, KEY_BYTES, Plan, PlanError, PresetInfo,
    RocksdbBench, Sysbench, VALUE_BYTES, Workload, presets,
};
use plimsoll_core::suggest;
use plimsoll_core::units::{count, format_count, format_duration_ns};
use plimsoll_core::workload_file::{
    ColumnValues, Event, Mix, Parameter, Sql, Statement, Table, Value, WorkloadFile,
};
use plimsoll_lab::{shipped_workload, shipped_workloads};

use crate::arguments::WorkloadVerb;
use crate::failure::{Failure, VerbResult};

pub fn workload(verb: &WorkloadVerb) -> VerbResult {
    match verb {
        WorkloadVerb::List => {
            let files = shipped_workloads()
                .map(|(path, text)| Ok((path, WorkloadFile::parse(path, text)?.description)));
            let files: Vec<(&str, String)> = files
                .collect::<Result<_, PlanError>>()
                .map_err(|error| Failure::bug(error.to_string()))?;
            let presets = presets()
                .iter()
                .map(|preset| (preset.name, preset.description.to_owned()));
            let all: Vec<(&str, String)> = presets.chain(files).collect();
            let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
            for (name, description) in all {
                anstream::println!("{name:width$}  {description}");
            }
        }
        WorkloadVerb::Show { name } => {
            match presets().iter().find(|preset| preset.name == name.as_str()) {
                Some(preset) => show(preset)?,
                None => show_file(&read(name)?),
            }
        }
        WorkloadVerb::Check { file } => {
            let workload = read(file)?;
            anstream::println!("{file}: ok");
            let counts = [
                (workload.tables.len(), "table"),
                (workload.statements.len(), "statement"),
                (workload.events.len(), "event"),
            ];
            let counts: Vec<String> = counts
                .into_iter()
                .map(|(number, noun)| count(number, noun))
                .collect();
            let mixes = workload.mixes.len();
            let mixes = if mixes == 1 {
                "1 mix".to_owned()
            } else {
                format!("{mixes} mixes")
            };
            anstream::println!(
                "{}, {mixes}, {} rows in all",
                counts.join(", "),
                format_count(workload.rows())
            );
        }
    }
    Ok(0)
}

/// A workload file: one on this machine, or a shipped one, `shop` for short.
fn read(name: &str) -> Result<WorkloadFile, Failure> {
    let text = match (
        Path::new(name).is_file(),
        shipped_workload(name).or_else(|| shipped_workload(&format!("workloads/{name}.toml"))),
    ) {
        (true, _) => std::fs::read_to_string(name).map_err(|error| {
            Failure::usage(format!("the workload {name} cannot be read: {error}"))
        })?,
        (false, Some(shipped)) => shipped.to_owned(),
        (false, None) => {
            let names = || {
                presets()
                    .iter()
                    .map(|preset| preset.name)
                    .chain(shipped_workloads().map(|(path, _)| path))
            };
            let hint = suggest::hint(name, names());
            let names = names().collect::<Vec<_>>().join(", ");
            return Err(Failure::usage(format!(
                "there is no workload or file \"{name}\"{hint}; there are: {names}"
            )));
        }
    };
    WorkloadFile::parse(name, &text).map_err(|error| Failure::usage(error.to_string()))
}

/// Tables with their columns and indexes, statements with their parameters, events and mixes.
fn show_file(workload: &WorkloadFile) {
    anstream::println!("{}: {}", workload.name, workload.description);
    workload.tables.iter().for_each(show_table);
    workload.statements.iter().for_each(show_statement);
    for event in &workload.events {
        show_event(workload, event);
    }
    for mix in &workload.mixes {
        show_mix(workload, mix);
    }
}

fn show_table(table: &Table) {
    anstream::println!(
        "\ntable {}, {} rows, key {}",
        table.name,
        format_count(table.rows),
        table.primary_key.join(", ")
    );
    for column in &table.columns {
        let values = match &column.values {
            ColumnValues::Row => "the row's number".to_owned(),
            ColumnValues::Repeat(times) => format!("each number {times} times"),
            ColumnValues::Cycle(numbers) => format!("1 to {numbers} again and again"),
            ColumnValues::Drawn(value) => describe_value(value),
        };
        let auto = if column.is_auto {
            ", given by the engine where a row has none"
        } else {
            ""
        };
        anstream::println!(
            "  {:<20} {:<16} {values}{auto}",
            column.name,
            column.sql_type
        );
    }
    for index in &table.indexes {
        let unique = if index.is_unique { "unique " } else { "" };
        anstream::println!(
            "  {unique}index {} ({})",
            index.name,
            index.columns.join(", ")
        );
    }
}

fn show_statement(statement: &Statement) {
    anstream::println!(
        "\nstatement {}{}",
        statement.name,
        if statement.is_prepared {
            ""
        } else {
            ", sent as text"
        }
    );
    anstream::println!("  {}", sql_text(&statement.sql));
    for (engine, sql) in &statement.own {
        anstream::println!("  {engine}: {}", sql_text(sql));
    }
    for (name, parameter) in &statement.parameters {
        anstream::println!("  :{name:<18} {}", describe_parameter(parameter));
    }
}

/// The text as the file has it, with the parameters by their names.
fn sql_text(sql: &Sql) -> String {
    let names = sql
        .parameters
        .iter()
        .map(|name| format!(":{name}"))
        .chain([String::new()]);
    sql.pieces
        .iter()
        .zip(names)
        .map(|(piece, name)| format!("{piece}{name}"))
        .collect()
}

fn show_event(workload: &WorkloadFile, event: &Event) {
    let kind = if event.is_transaction {
        "transaction"
    } else {
        "no transaction"
    };
    let calls = event.calls.iter().map(|(statement, times)| {
        let name = &workload.statements[*statement].name;
        if *times == 1 {
            name.clone()
        } else {
            format!("{times} x {name}")
        }
    });
    let calls: Vec<String> = calls.collect();
    anstream::println!(
        "\nevent {}, {kind}, {}: {}",
        event.name,
        count(event.statements(), "statement"),
        calls.join(", ")
    );
}

fn show_mix(workload: &WorkloadFile, mix: &Mix) {
    let sum: u32 = mix.events.iter().map(|(_, weight)| weight).sum();
    anstream::println!("\nmix {}", mix.name);
    for (event, weight) in &mix.events {
        anstream::println!(
            "  {:<20} {:>6.2} %",
            workload.events[*event].name,
            100.0 * f64::from(*weight) / f64::from(sum)
        );
    }
}

fn describe_value(value: &Value) -> String {
    match value {
        Value::Integer {
            first, count: 1, ..
        } => format!("always {first}"),
        Value::Integer {
            first,
            count,
            distribution,
        } => {
            let distribution = match distribution {
                Distribution::Uniform => "uniform".to_owned(),
                Distribution::Zipfian { exponent } => format!("zipfian, exponent {exponent}"),
                Distribution::Pareto { h } => format!("pareto, h {h}"),
                Distribution::Gaussian => "gaussian".to_owned(),
                Distribution::Special => "special".to_owned(),
            };
            format!(
                "{first} to {}, {distribution}",
                i128::from(*first) + i128::from(*count) - 1
            )
        }
        Value::Pattern(pattern) => format!("a text like {pattern}"),
        Value::Letters { least, most } => format!("{least} to {most} letters"),
        Value::OneOf(texts) if texts.len() == 1 => format!("always {}", texts[0]),
        Value::OneOf(texts) => format!("one of {}", texts.join(", ")),
    }
}

fn describe_parameter(parameter: &Parameter) -> String {
    match parameter {
        Parameter::Drawn {
            value,
            table,
            count,
        } => {
            let of = table
                .as_ref()
                .map_or(String::new(), |table| format!("an id of {table}: "));
            let list = if *count > 1 {
                format!("{count} values: ")
            } else {
                String::new()
            };
            format!("{list}{of}{}", describe_value(value))
        }
        Parameter::Sequence { start, .. } => {
            format!("{start} and on, a number that no other event has")
        }
        Parameter::Same(of) => format!("the same as :{of} before it"),
        Parameter::After { of, plus } => format!(":{of} + {plus}"),
    }
}

fn show(preset: &PresetInfo) -> Result<(), Failure> {
    let build = if preset.definition == Definition::Rocksdb {
        "rocksdb"
    } else {
        "sqlite"
    };
    let text = format!(
        "name = \"show\"\nworkload = \"{}\"\nbuilds = [\"{build}\"]\nconfigs = [\"any\"]\n",
        preset.name
    );
    let plan = Plan::parse(preset.name, &text).map_err(|error| Failure::bug(error.to_string()))?;
    anstream::println!("{}: {}", preset.name, preset.description);
    match &plan.cells[0].workload {
        Workload::InsertBenchmark(workload) => show_insert_benchmark(workload),
        Workload::Sysbench(workload) => show_sysbench(workload),
        Workload::Rocksdb(workload) => show_rocksdb(workload),
        Workload::File(_) => {}
    }
    Ok(())
}

/// The tests in their order: the published section, statements of a transaction (those that read,
/// write, and begin or end it), the time.
fn show_sysbench(workload: &Sysbench) {
    anstream::println!(
        "full size, {} rows per table:\n",
        format_count(workload.rows)
    );
    anstream::println!("{:<26} {:>8} {:>8}  what", "step", "time", "r/w/o");
    for step in &workload.steps {
        let time = step.duration_ns().map_or(String::new(), format_duration_ns);
        let mix = step.statements().map_or(String::new(), |mix| {
            format!("{}/{}/{}", mix.reads, mix.writes, mix.others)
        });
        let drain = if step.drain_after {
            ", then the engine is drained"
        } else {
            ""
        };
        anstream::println!(
            "{:<26} {time:>8} {mix:>8}  {}{drain}",
            step.name,
            step.summary()
        );
    }
}

/// The steps in their order: threads, what ends them, what an operation is.
fn show_rocksdb(workload: &RocksdbBench) {
    anstream::println!(
        "full size, {} keys of {KEY_BYTES} bytes with values of {VALUE_BYTES}:\n",
        format_count(workload.keys)
    );
    anstream::println!("{:<28} {:>7} {:>12}  what", "step", "threads", "until");
    for step in &workload.steps {
        let until = match step.ends {
            Ends::Operations { per_client } => format!("{} each", format_count(per_client)),
            ends => ends.duration_ns().map_or(String::new(), format_duration_ns),
        };
        let drain = if step.drain_after {
            "; then the engine is drained"
        } else {
            ""
        };
        anstream::println!(
            "{:<28} {:>7} {until:>12}  {}{drain}",
            step.name,
            step.clients,
            step.summary()
        );
    }
}

fn show_insert_benchmark(workload: &InsertBenchmark) {
    anstream::println!("full size, per client:\n");
    anstream::println!(
        "{:<8} {:>10} {:>6} {:>8}  what",
        "step",
        "rows",
        "batch",
        "rate"
    );
    for step in &workload.steps {
        let rate = step
            .background
            .map_or(String::new(), |writers| format!("{}/s", writers.amount));
        anstream::println!(
            "{:<8} {:>10} {:>6} {rate:>8}  {}",
            step.name,
            format_count(step.inserted_rows()),
            step.batch,
            step.summary()
        );
    }
}
