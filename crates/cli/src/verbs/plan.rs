//! `plan check` and `plan explain`.

use plimsoll_analysis::{Power, Stored, power_of_blocks};
use plimsoll_core::plan::Plan;
use plimsoll_core::units::{format_bytes, format_count, format_duration_ns};
use plimsoll_host::{Proc, capture_environment};
use plimsoll_lab::{ConfirmForecast, Forecast, forecast, load_plan};
use serde::Serialize;

use crate::Outcome;
use crate::arguments::{Places, PlanVerb};
use crate::failure::Failure;
use crate::output::count;

pub fn plan(places: &Places, verb: &PlanVerb) -> Outcome {
    let (PlanVerb::Check { plan, json } | PlanVerb::Explain { plan, json }) = verb;
    let loaded = load_plan(Some(plan))?;
    let forecast = forecast(
        &loaded,
        &places.store(),
        &places.builds()?,
        &places.data_dir()?,
    )?;
    match verb {
        PlanVerb::Check { .. } if *json => print_json(&loaded.plan)?,
        PlanVerb::Check { .. } => {
            let cells: Vec<&str> = loaded
                .plan
                .cells
                .iter()
                .map(|cell| cell.label.as_str())
                .collect();
            anstream::println!("{plan}: ok");
            let trials = cells.len() * loaded.plan.blocks as usize;
            anstream::println!(
                "{}, {}: {}",
                count(cells.len(), "cell"),
                count(trials, "trial"),
                cells.join(", ")
            );
            anstream::println!("base: {}", cells[loaded.plan.base]);
        }
        PlanVerb::Explain { .. } => {
            let power = forecast
                .confirm
                .as_ref()
                .map(|confirm| power(places, &loaded.plan, confirm))
                .transpose()?;
            if *json {
                print_json(&WithPower {
                    forecast: &forecast,
                    power: &power,
                })?;
            } else {
                explain(&loaded.plan.description, &forecast, power.as_ref());
            }
        }
    }
    Ok(0)
}

/// A forecast, and what blocks can show.
#[derive(Serialize)]
struct WithPower<'a> {
    #[serde(flatten)]
    forecast: &'a Forecast,
    power: &'a Option<Power>,
}

/// What the fewest blocks that can decide will show on this machine.
fn power(places: &Places, plan: &Plan, confirm: &ConfirmForecast) -> Result<Power, Failure> {
    let environment = serde_json::to_value(capture_environment(Proc::new(), &places.data_dir()?));
    let environment = environment.map_err(|error| Failure::bug(error.to_string()))?;
    Ok(power_of_blocks(
        plan,
        confirm.blocks_needed as usize,
        &environment,
        &Stored::newest(&places.store()),
    ))
}

fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let text =
        serde_json::to_string_pretty(value).map_err(|error| Failure::bug(error.to_string()))?;
    anstream::println!("{text}");
    Ok(())
}

fn seconds(seconds: f64) -> String {
    format_duration_ns((seconds * 1e9) as u64)
}

/// Three digits of an estimate.
fn about(count: u64) -> String {
    let step = 10u64.pow(count.max(1).ilog10().saturating_sub(2));
    format_count(count / step * step)
}

fn explain(description: &str, forecast: &Forecast, power: Option<&Power>) {
    anstream::println!(
        "{}",
        if description.is_empty() {
            forecast.plan.clone()
        } else {
            format!("{}: {description}", forecast.plan)
        }
    );
    anstream::println!(
        "{} {}, about {}; {} of disk needed with a fifth to spare, {}",
        forecast.trials,
        if forecast.trials == 1 {
            "trial"
        } else {
            "trials"
        },
        seconds(forecast.seconds),
        format_bytes(forecast.disk_bytes),
        forecast
            .free_bytes
            .map_or("free space unknown".to_owned(), |free| format!(
                "{} free",
                format_bytes(free)
            ))
    );
    for (index, cell) in forecast.cells.iter().enumerate() {
        let shape = |i: usize| (&forecast.cells[i].steps, forecast.cells[i].peak_rows);
        let step_text = |i: usize| format!("{:?}", shape(i));
        anstream::println!(
            "\n{} ({}): {}, at most {} rows and {} of disk, about {}",
            cell.cell,
            cell.version,
            count(cell.connections as usize, "connection"),
            about(cell.peak_rows),
            format_bytes(cell.disk_bytes),
            seconds(cell.seconds)
        );
        if cell.disk_bytes_at_start > 0 {
            let bytes = format_bytes(cell.disk_bytes_at_start);
            anstream::println!(
                "  {bytes} of that before the first row: the server's own tables, and logs that \
                are made in advance"
            );
        }
        if let Some(same) = (0..index).find(|&earlier| step_text(earlier) == step_text(index)) {
            anstream::println!("  steps as in {}", forecast.cells[same].cell);
            continue;
        }
        let width = cell
            .steps
            .iter()
            .map(|step| step.step.len())
            .max()
            .unwrap_or(0)
            .max(8);
        let has_batches = cell.steps.iter().any(|step| step.batch > 1);
        let batch = |text: String| {
            if has_batches {
                format!(" {text:>6}")
            } else {
                String::new()
            }
        };
        anstream::println!(
            "  {:<width$} {:>12}{} {:>6} {:>9} {:>9} {:>7}  basis",
            "step",
            "rows",
            batch("batch".to_owned()),
            "conns",
            "rate/s",
            "time",
            "wait"
        );
        for step in &cell.steps {
            anstream::println!(
                "  {:<width$} {:>12}{} {:>6} {:>9} {:>9} {:>7}  {}",
                step.step,
                if step.inserted_rows > 0 {
                    format_count(step.inserted_rows)
                } else {
                    "-".to_owned()
                },
                batch(step.batch.to_string()),
                step.connections,
                step.rate_per_s
                    .map_or("-".to_owned(), |rate| rate.to_string()),
                seconds(step.seconds),
                if step.wait_seconds > 0.0 {
                    seconds(step.wait_seconds)
                } else {
                    "-".to_owned()
                },
                step.basis
            );
        }
    }
    if let Some(confirm) = &forecast.confirm {
        let by_slices = match (&confirm.slices, &confirm.no_slices) {
            (Some(slices), _) => {
                let without = if slices.left_out.is_empty() {
                    String::new()
                } else {
                    format!(", without {}", slices.left_out.join(", "))
                };
                format!(
                    "by slices at most {} and {} of disk{without}",
                    seconds(slices.seconds.round()),
                    format_bytes(slices.disk_bytes)
                )
            }
            (None, reason) => format!("not by slices: {}", reason.as_deref().unwrap_or_default()),
        };
        anstream::println!(
            "\nconfirm --all: {by_slices};\n  by {} blocks, the fewest that can decide {}, about \
            {} and {} of disk",
            confirm.blocks_needed,
            count(confirm.questions, "question"),
            seconds(confirm.blocks_seconds.round()),
            format_bytes(confirm.blocks_disk_bytes)
        );
    }
    if let Some(text) = power.map(Power::to_text).filter(|text| !text.is_empty()) {
        anstream::println!("{text}");
    }
    anstream::println!(
        "\nbasis: plan = fixed by the plan; measured = the newest campaign in this store; assumed \
        = an order of magnitude"
    );
}
