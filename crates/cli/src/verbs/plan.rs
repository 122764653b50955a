//! `plan list`, `plan show`, `plan check` and `plan explain`.

use plimsoll_analysis::{Power, Stored, power_of_blocks};
use plimsoll_core::plan::{Plan, Verdicts};
use plimsoll_core::units::{count, format_bytes, format_count, format_duration_ns};
use plimsoll_host::{Proc, capture_environment};
use plimsoll_lab::builds::BuildToMake;
use plimsoll_lab::{
    CellForecast, ConfirmForecast, Forecast, LoadedPlan, PartForecast, StepForecast, forecast,
    load_plan, shipped_plans,
};
use serde::Serialize;

use crate::arguments::{Places, PlanVerb};
use crate::failure::{Failure, VerbResult};

pub fn plan(places: &Places, verb: &PlanVerb) -> VerbResult {
    match verb {
        PlanVerb::List => list()?,
        PlanVerb::Show { plan } => anstream::print!("{}", load_plan(Some(plan))?.text),
        PlanVerb::Check { plan, json } => {
            let loaded = load_plan(Some(plan))?;
            let forecast = forecast_of(places, &loaded)?;
            if *json {
                print_json(&loaded.plan)?;
                return Ok(0);
            }
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
            for line in parts_lines(&forecast) {
                anstream::println!("{line}");
            }
        }
        PlanVerb::Explain { plan, json, hosts } => {
            let loaded = load_plan(Some(plan))?;
            let forecast = forecast_of(places, &loaded)?;
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
                    let noun = match divided(&forecast.parts) {
                        [] => "block",
                        _ => "part",
                    };
                    anstream::println!("{}", hosts_line(hosts, noun));
                }
            }
        }
    }
    Ok(0)
}

fn list() -> Result<(), Failure> {
    let names: Vec<&str> = shipped_plans().map(|(name, _)| name).collect();
    let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
    for name in names {
        let plan = load_plan(Some(name))?.plan;
        anstream::println!("{name:<width$}  {}", plan.description);
    }
    Ok(())
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
    /// Empty if blocks are whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartForecast>,
    disk_bytes: u64,
    free_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    to_make: Vec<BuildToMake>,
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
    /// Blocks, or parts of blocks, of the host that has most.
    most_blocks: u32,
    /// Until the last host is done.
    seconds: f64,
}

/// Each host has a block, or a part of one, at a time, and takes the next when it is free; none if
/// the plan has no blocks.
fn over_hosts(plan: &Plan, forecast: &Forecast, hosts: u32) -> Option<HostsForecast> {
    let blocks = match plan.verdicts {
        Some(Verdicts::Budget(_)) => return None,
        Some(Verdicts::Blocks(blocks)) => blocks,
        None => plan.blocks,
    };
    // By host: until when it is busy, and how much it has had.
    let units = blocks as usize * forecast.parts.len();
    // Each host makes the data that trials begin with a copy of.
    let mut all = vec![(forecast.making_seconds, 0_u32); units.min(hosts as usize)];
    for part in (0..blocks).flat_map(|_| &forecast.parts) {
        let free = all.iter_mut().min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((busy, count)) = free {
            *busy += part.seconds;
            *count += 1;
        }
    }
    Some(HostsForecast {
        hosts: all.len() as u32,
        most_blocks: all.iter().map(|(_, count)| *count).max().unwrap_or(0),
        seconds: all.iter().map(|(busy, _)| *busy).fold(0.0, f64::max),
    })
}

/// What each part of a block has, a line each; nothing if blocks are whole.
fn parts_lines(forecast: &Forecast) -> Vec<String> {
    let loads = match forecast.making_seconds > 0.0 {
        true => "",
        false => " with its loads",
    };
    let parts = (1..).zip(divided(&forecast.parts));
    parts
        .map(|(number, part): (u32, _)| {
            let ends = part.tests.first().zip(part.tests.last());
            let (first, last) = ends.map_or(("", ""), |(first, last)| (first, last));
            format!(
                "part {number} of each block: {}, {first} to {last}; about {}{loads}",
                count(part.tests.len(), "test"),
                seconds(part.seconds)
            )
        })
        .collect()
}

/// The parts of blocks that are not whole.
fn divided(parts: &[PartForecast]) -> &[PartForecast] {
    match parts {
        [_] => &[],
        parts => parts,
    }
}

fn hosts_line(hosts: Option<HostsForecast>, noun: &str) -> String {
    match hosts {
        None => "over hosts: not at all, because by slices all servers are on one machine; \
                 `run --screen` or `[verdicts] blocks = 12` does"
            .to_owned(),
        Some(of) => format!(
            "over {}: at most {} on each, about {}; the disk is needed on each",
            count(of.hosts as usize, "host"),
            count(of.most_blocks as usize, noun),
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
            making_seconds: _,
            parts,
            disk_bytes,
            free_bytes,
            to_make,
            cells,
            confirm,
        } = forecast;
        Self {
            parts: divided(&parts).to_vec(),
            plan,
            verdicts,
            trials,
            seconds,
            disk_bytes,
            free_bytes,
            to_make,
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
            count((forecast.cells.len() + 1) * forecast.parts.len(), "trial")
        ),
        Some(Verdicts::Budget(budget)) => format!(
            "verdicts by slices within {}{}; a step that reads ends early if it is known within \
            +-{:.1} %, one that writes within +-{:.1} %{}",
            format_duration_ns(budget.time_ns),
            share_of_a_step(forecast, budget.time_ns),
            100.0 * budget.reads,
            100.0 * budget.writes,
            waits_of_a_load(&forecast.cells, budget.time_ns)
        ),
    }
}

/// How long the cells and the control wait behind each load of their data, if that is more than a
/// tenth of the budget.
fn waits_of_a_load(cells: &[CellForecast], budget_ns: u64) -> String {
    let steps = cells.iter().flat_map(|cell| &cell.steps);
    let makes_data = steps.filter(|step| step.inserted_rows > 0);
    let of_cells: f64 = makes_data.map(|step| step.wait_seconds).sum();
    let waits = of_cells * (cells.len() + 1) as f64 / cells.len().max(1) as f64;
    match waits * 1e9 > 0.1 * budget_ns as f64 {
        true => format!(
            "; behind each load of the data {} of it pass with waiting: write wait = \"1s\" if \
            the data needs no rest",
            seconds(waits)
        ),
        false => String::new(),
    }
}

/// What a budget leaves for each step that is a result; nothing if one has it
/// all, or their number is not known.
fn share_of_a_step(forecast: &Forecast, budget_ns: u64) -> String {
    let candidates = forecast.cells.len().saturating_sub(1).max(1);
    let questions = forecast.confirm.as_ref().map_or(0, |of| of.questions);
    match questions / candidates {
        0 | 1 => String::new(),
        steps => format!(
            ", {} for each of {} with its share of loads and restarts",
            format_duration_ns(budget_ns / steps as u64),
            count(steps, "step")
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
    let mut lines = vec![title, takes];
    let slices = forecast.confirm.as_ref().and_then(|of| of.slices.as_ref());
    if let (Some(Verdicts::Budget(_)), Some(slices)) = (forecast.verdicts, slices) {
        lines.push(format!(
            "its data is loaded up to {} times, while there is time and room: each load beyond two \
            takes {} more",
            slices.most_loads,
            format_bytes(slices.load_bytes)
        ));
        if let Some(links) = slices.links {
            lines.push(format!(
                "{links} links of each build that has several take turns, each with a load of its own"
            ));
        }
    }
    lines
}

fn explain(description: &str, forecast: &Forecast, power: Option<&Power>) {
    for line in heading(description, forecast) {
        anstream::println!("{line}");
    }
    for line in parts_lines(forecast) {
        anstream::println!("{line}");
    }
    if !forecast.to_make.is_empty() {
        anstream::println!("{}", to_make_text(&forecast.to_make));
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
        explain_confirm(confirm, forecast.verdicts);
    }
    if let Some(text) = power.map(Power::to_text).filter(|text| !text.is_empty()) {
        anstream::println!("{text}");
    }
    anstream::println!(
        "\nbasis: plan = fixed by the plan; measured = the newest campaign in this store; assumed \
        = an order of magnitude"
    );
}

/// What has to be compiled before the first trial: `run` does it, or these commands.
fn to_make_text(builds: &[BuildToMake]) -> String {
    let mut lines = vec![format!(
        "{} compiled first, once, about {}:",
        match builds.len() {
            1 => "1 build is".to_owned(),
            many => format!("{many} builds are"),
        },
        seconds(builds.iter().map(|build| build.seconds).sum())
    )];
    let width = builds.iter().map(|build| build.command.len()).max();
    let width = width.unwrap_or(0);
    lines.extend(builds.iter().map(|build| {
        let time = seconds(build.seconds);
        format!("  {:<width$}  {time}, {}", build.command, build.basis)
    }));
    // What is missing for one is mostly missing for all.
    let mut lacks: Vec<&str> = builds.iter().filter_map(|b| b.lacks.as_deref()).collect();
    lacks.dedup();
    lines.extend(lacks.iter().map(|lacks| format!("  {lacks}")));
    lines.join("\n")
}

fn explain_cell(cell: &CellForecast) {
    let of_program = match cell.is_built_in {
        true => ", part of this program",
        false => "",
    };
    anstream::println!(
        "\n{} ({}{of_program}): {}, at most {} rows and {} of disk, about {}",
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

fn explain_confirm(confirm: &ConfirmForecast, verdicts: Option<Verdicts>) {
    let is_the_plans = matches!(verdicts, Some(Verdicts::Budget(_)));
    let by_slices = match (&confirm.slices, &confirm.no_slices) {
        (Some(slices), _) => {
            let without = match slices.left_out.as_slice() {
                [] => String::new(),
                steps => format!(", without {}, which cannot take turns", steps.join(", ")),
            };
            match is_the_plans {
                // It stands at the top.
                true => format!("by slices as the plan has it{without}"),
                false => format!(
                    "by slices at most {} and {} of disk{without}",
                    seconds(slices.seconds.round()),
                    format_bytes(slices.disk_bytes)
                ),
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A budget of three minutes, and a minute of waiting behind each load of three cells.
    #[test]
    fn waits_that_take_much_of_a_budget_are_known_before() {
        let step = |name: &str, inserted_rows, wait_seconds| StepForecast {
            step: name.to_owned(),
            inserted_rows,
            batch: 1,
            connections: 1,
            rate_per_s: None,
            seconds: 1.0,
            wait_seconds,
            basis: "assumed",
        };
        let cell = |wait| CellForecast {
            cell: "a".to_owned(),
            version: "1".to_owned(),
            is_built_in: false,
            connections: 1,
            peak_rows: 1,
            disk_bytes: 1,
            disk_bytes_at_start: 0,
            seconds: 1.0,
            steps: vec![step("prepare", 100_000, wait), step("point-query", 0, 60.0)],
        };
        let minutes = |minutes: u64| minutes * 60_000_000_000;
        let cells = [cell(60.0), cell(60.0)];
        let line = waits_of_a_load(&cells, minutes(3));
        assert!(line.contains("3m00s of it pass with waiting"), "{line}");
        assert_eq!(waits_of_a_load(&cells, minutes(45)), "");
        assert_eq!(waits_of_a_load(&[cell(1.0), cell(1.0)], minutes(3)), "");
        assert_eq!(waits_of_a_load(&[], minutes(3)), "");
    }
}
