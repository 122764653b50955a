//! `plan check` and `plan explain`.

use plimsoll_analysis::{Power, Stored, power_of_blocks};
use plimsoll_core::plan::{Plan, Verdicts};
use plimsoll_core::units::{count, format_bytes, format_count, format_duration_ns};
use plimsoll_host::{Proc, capture_environment};
use plimsoll_lab::{
    CellForecast, ConfirmForecast, Forecast, LoadedPlan, StepForecast, forecast, load_plan,
};
use serde::Serialize;

use crate::arguments::{Places, PlanVerb};
use crate::failure::{Failure, VerbResult};

pub fn plan(places: &Places, verb: &PlanVerb) -> VerbResult {
    let (PlanVerb::Check { plan, json } | PlanVerb::Explain { plan, json, .. }) = verb;
    let loaded = load_plan(Some(plan))?;
    let forecast = forecast_of(places, &loaded)?;
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
            anstream::println!(
                "{}, {}: {}",
                count(cells.len(), "cell"),
                how_often(&forecast),
                cells.join(", ")
            );
            anstream::println!("base: {}", cells[loaded.plan.base]);
        }
        PlanVerb::Explain { hosts, .. } => {
            let hosts = hosts.map(|hosts| over_hosts(&loaded.plan, &forecast, hosts));
            let power = forecast
                .confirm
                .as_ref()
                .map(|confirm| power(places, &loaded.plan, confirm))
                .transpose()?;
            if *json {
                let explanation = Explanation::of(forecast, power);
                print_json(&Explanation {
                    hosts: hosts.flatten(),
                    ..explanation
                })?;
            } else {
                explain(&loaded.plan.description, &forecast, power.as_ref());
                if let Some(hosts) = hosts {
                    anstream::println!("{}", hosts_line(hosts));
                }
            }
        }
    }
    Ok(0)
}

fn forecast_of(places: &Places, plan: &LoadedPlan) -> Result<Forecast, Failure> {
    let (store, builds) = (places.store(), places.builds()?);
    Ok(forecast(plan, &store, &builds, &places.data_dir()?)?)
}

/// What a plan is, takes and can decide, in two or three lines.
pub fn summary(places: &Places, plan: &LoadedPlan) -> Result<Vec<String>, Failure> {
    let forecast = forecast_of(places, plan)?;
    let mut lines = heading(&plan.plan.description, &forecast);
    if let (Some(Verdicts::Blocks(_)), Some(confirm)) = (plan.plan.verdicts, &forecast.confirm) {
        let power = power(places, &plan.plan, confirm)?.to_text();
        lines.extend(Some(power).filter(|power| !power.is_empty()));
    }
    Ok(lines)
}

/// The document of `plan explain --json`: a forecast, and what blocks can show.
#[derive(Serialize)]
struct Explanation {
    plan: String,
    verdicts: Option<Verdicts>,
    trials: Option<usize>,
    seconds: f64,
    disk_bytes: u64,
    free_bytes: Option<u64>,
    cells: Vec<CellForecast>,
    confirm: Option<ConfirmForecast>,
    power: Option<Power>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<HostsForecast>,
}

/// What a plan takes over several hosts.
#[derive(Clone, Copy, Serialize)]
struct HostsForecast {
    /// How many have something to do.
    hosts: u32,
    /// Blocks of the host that has most.
    most_blocks: u32,
    /// Until the last host is done.
    seconds: f64,
}

/// Each host has a block at a time; none if the plan has no blocks.
fn over_hosts(plan: &Plan, forecast: &Forecast, hosts: u32) -> Option<HostsForecast> {
    let blocks = match plan.verdicts {
        Some(Verdicts::Budget(_)) => return None,
        Some(Verdicts::Blocks(blocks)) => blocks,
        None => plan.blocks,
    };
    let most_blocks = blocks.div_ceil(hosts);
    Some(HostsForecast {
        hosts: hosts.min(blocks),
        most_blocks,
        seconds: forecast.seconds * f64::from(most_blocks) / f64::from(blocks.max(1)),
    })
}

fn hosts_line(hosts: Option<HostsForecast>) -> String {
    match hosts {
        None => "over hosts: not at all, because by slices all servers are on one machine; \
                 `run --screen` or `[verdicts] blocks = 12` does"
            .to_owned(),
        Some(of) => format!(
            "over {}: at most {} on each, about {}; the disk is needed on each",
            count(of.hosts as usize, "host"),
            count(of.most_blocks as usize, "block"),
            seconds(of.seconds)
        ),
    }
}

impl Explanation {
    fn of(forecast: Forecast, power: Option<Power>) -> Self {
        let Forecast {
            plan,
            verdicts,
            trials,
            seconds,
            disk_bytes,
            free_bytes,
            cells,
            confirm,
        } = forecast;
        Self {
            plan,
            verdicts,
            trials,
            seconds,
            disk_bytes,
            free_bytes,
            cells,
            confirm,
            power,
            hosts: None,
        }
    }
}

/// What the plan's blocks, or the fewest that can decide, will show on this machine.
fn power(places: &Places, plan: &Plan, confirm: &ConfirmForecast) -> Result<Power, Failure> {
    let blocks = match plan.verdicts {
        Some(Verdicts::Blocks(blocks)) => blocks,
        _ => confirm.blocks_needed,
    };
    let environment = serde_json::to_value(capture_environment(Proc::new(), &places.data_dir()?));
    let environment = environment.map_err(|error| Failure::bug(error.to_string()))?;
    Ok(power_of_blocks(
        plan,
        blocks as usize,
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

/// How often cells run.
fn how_often(forecast: &Forecast) -> String {
    let trials = count(forecast.trials.unwrap_or(0), "trial");
    match forecast.verdicts {
        None => trials,
        Some(Verdicts::Blocks(blocks)) => format!(
            "verdicts from {blocks} blocks of {}, the base twice in each ({trials})",
            count(forecast.cells.len() + 1, "trial")
        ),
        Some(Verdicts::Budget(budget)) => format!(
            "verdicts by slices within {}: a step that reads is left at +-{:.1} %, one that \
            writes at +-{:.1} %",
            format_duration_ns(budget.time_ns),
            100.0 * budget.reads,
            100.0 * budget.writes
        ),
    }
}

/// Three digits of an estimate.
fn about(count: u64) -> String {
    let step = 10u64.pow(count.max(1).ilog10().saturating_sub(2));
    format_count(count / step * step)
}

/// Name, time and disk.
fn heading(description: &str, forecast: &Forecast) -> Vec<String> {
    let name = &forecast.plan;
    let title = match description {
        "" => name.clone(),
        _ => format!("{name}: {description}"),
    };
    let free = match forecast.free_bytes {
        Some(free) => format!("{} free", format_bytes(free)),
        None => "free space unknown".to_owned(),
    };
    let about = match forecast.trials {
        Some(_) => format!(", about {}", seconds(forecast.seconds)),
        None => String::new(),
    };
    let takes = format!(
        "{}{about}; {} of disk needed with a fifth to spare, {free}",
        how_often(forecast),
        format_bytes(forecast.disk_bytes),
    );
    vec![title, takes]
}

fn explain(description: &str, forecast: &Forecast, power: Option<&Power>) {
    for line in heading(description, forecast) {
        anstream::println!("{line}");
    }
    // Cells that differ in their build alone have the same steps: the table is shown once.
    let shape = |cell: &CellForecast| format!("{:?}", (&cell.steps, cell.peak_rows));
    for (index, cell) in forecast.cells.iter().enumerate() {
        explain_cell(cell);
        let mut earlier = forecast.cells[..index].iter();
        match earlier.find(|earlier| shape(earlier) == shape(cell)) {
            Some(same) => anstream::println!("  steps as in {}", same.cell),
            None => explain_steps(&cell.steps),
        }
    }
    if let Some(confirm) = &forecast.confirm {
        explain_confirm(confirm);
    }
    if let Some(text) = power.map(Power::to_text).filter(|text| !text.is_empty()) {
        anstream::println!("{text}");
    }
    anstream::println!(
        "\nbasis: plan = fixed by the plan; measured = the newest campaign in this store; assumed \
        = an order of magnitude"
    );
}

fn explain_cell(cell: &CellForecast) {
    anstream::println!(
        "\n{} ({}): {}, at most {} rows and {} of disk, about {}",
        cell.cell,
        cell.version,
        count(cell.connections, "connection"),
        about(cell.peak_rows),
        format_bytes(cell.disk_bytes),
        seconds(cell.seconds)
    );
    if cell.disk_bytes_at_start > 0 {
        let bytes = format_bytes(cell.disk_bytes_at_start);
        anstream::println!(
            "  {bytes} of that before the first row: the server's own tables, and logs that are \
            made in advance"
        );
    }
}

fn explain_steps(steps: &[StepForecast]) {
    let width = steps.iter().map(|step| step.step.len()).max();
    let width = width.unwrap_or(0).max(8);
    let has_batches = steps.iter().any(|step| step.batch > 1);
    let batch = |text: &str| match has_batches {
        true => format!(" {text:>6}"),
        false => String::new(),
    };
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    anstream::println!(
        "  {:<width$} {:>12}{} {:>6} {:>9} {:>9} {:>7}  basis",
        "step",
        "rows",
        batch("batch"),
        "conns",
        "rate/s",
        "time",
        "wait"
    );
    for step in steps {
        let rows = (step.inserted_rows > 0).then(|| format_count(step.inserted_rows));
        let wait = (step.wait_seconds > 0.0).then(|| seconds(step.wait_seconds));
        anstream::println!(
            "  {:<width$} {:>12}{} {:>6} {:>9} {:>9} {:>7}  {}",
            step.step,
            or_dash(rows),
            batch(&step.batch.to_string()),
            step.connections,
            or_dash(step.rate_per_s.map(|rate| rate.to_string())),
            seconds(step.seconds),
            or_dash(wait),
            step.basis
        );
    }
}

fn explain_confirm(confirm: &ConfirmForecast) {
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
        "\nconfirm --all: {by_slices};\n  by {} blocks, the fewest that can decide {}, about {} \
        and {} of disk",
        confirm.blocks_needed,
        count(confirm.questions, "question"),
        seconds(confirm.blocks_seconds.round()),
        format_bytes(confirm.blocks_disk_bytes)
    );
}
