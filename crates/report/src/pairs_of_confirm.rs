//! What a confirm campaign says: each contestant against the base, step by step, in pairs.

use std::collections::BTreeMap;
use std::fmt::Write;

use plimsoll_core::ratio::{Ratio, Z_95, Z_99, paired_ratio};
use plimsoll_core::record::Reading;
use plimsoll_store::event::StepDone;
use plimsoll_store::{CampaignRecord, Confirm, Design, Turn};
use serde_json::{Value, json};

use crate::attempts::{Run, runs_of_cell};
use crate::view::Status;

/// One contestant against the base in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedStep {
    /// The step.
    pub step: String,
    /// The contestant's label.
    pub cell: String,
    /// Whether it is the A/A control.
    pub is_control: bool,
    /// Its throughput, relative to the base's, with an interval of 95 %.
    pub throughput: Option<Ratio>,
    /// Its server CPU per operation, relative to the base's.
    pub server_cpu: Option<Ratio>,
    /// Whether the control's 99 % interval holds 1. Where it does not, the step says nothing.
    pub is_valid: bool,
    /// Starts or blocks with pairs.
    pub repeats: usize,
    /// Seconds that the step took, over all starts or blocks.
    pub seconds: f64,
    /// Why there is no ratio.
    pub reason: Option<String>,
}

/// Throughput and server CPU per operation of one slot: a round of a start, or a block.
#[derive(Clone, Copy, Default)]
struct Slot {
    rate: Option<f64>,
    cpu: Option<f64>,
}

/// By start or block, then by round.
type Slots = BTreeMap<u32, BTreeMap<u32, Slot>>;

/// What of a cell's runs of a step can be paired, how long they took, and why there is nothing.
struct Paired {
    slots: Slots,
    seconds: f64,
    reason: Option<String>,
}

/// All contestants and steps of a confirm campaign; nothing of another.
pub fn paired_steps(campaign: &CampaignRecord) -> Vec<PairedStep> {
    let Some(confirm) = &campaign.header.confirm else { return Vec::new() };
    let cells = &campaign.header.plan.cells;
    let runs: Vec<Vec<Run<'_>>> = (0..cells.len()).map(|cell| runs_of_cell(campaign, cell)).collect();
    let position = |label: &str| cells.iter().position(|cell| cell.label == label);
    let (Some(base), Some(control)) = (position(&confirm.base), position(&confirm.control)) else { return Vec::new() };
    let mut all = Vec::new();
    for step in &confirm.steps {
        let paired: Vec<Paired> = runs.iter().map(|runs| paired(runs, step, confirm)).collect();
        let ratio = |cell: usize, value: fn(&Slot) -> Option<f64>, z: f64| {
            paired_ratio(&log_ratios(&paired[cell].slots, &paired[base].slots, value), z)
        };
        let is_valid = ratio(control, |slot| slot.rate, Z_99).is_some_and(|ratio| ratio.holds_one());
        for cell in (0..cells.len()).filter(|&cell| cell != base) {
            let throughput = ratio(cell, |slot| slot.rate, Z_95);
            let own = paired[cell].reason.clone();
            let of_base = || paired[base].reason.as_ref().map(|reason| format!("the base: {reason}"));
            let reason = own.or_else(of_base).unwrap_or_else(|| "too few pairs".to_owned());
            all.push(PairedStep {
                step: step.clone(),
                cell: cells[cell].label.clone(),
                is_control: cell == control,
                server_cpu: ratio(cell, |slot| slot.cpu, Z_95),
                is_valid,
                repeats: paired[cell].slots.keys().filter(|repeat| paired[base].slots.contains_key(repeat)).count(),
                seconds: if confirm.design == Design::Slices { paired[base].seconds } else { paired.iter().map(|p| p.seconds).sum() },
                reason: throughput.is_none().then_some(reason),
                throughput,
            });
        }
    }
    all
}

fn paired(runs: &[Run<'_>], step: &str, confirm: &Confirm) -> Paired {
    let mut paired = Paired { slots: Slots::new(), seconds: 0.0, reason: None };
    for run in runs.iter().filter(|run| run.is_used && run.step.name == step) {
        if !run.status.is_finished() || run.status == Status::Suspect {
            paired.reason = paired.reason.or(run.reason.clone());
            continue;
        }
        let (Some(done), Some(record)) = (run.done, run.record) else { continue };
        match confirm.design {
            Design::Blocks => {
                paired.slots.insert(run.block, BTreeMap::from([(1, of_step(done))]));
                paired.seconds += done.elapsed_ns as f64 / 1e9;
            }
            Design::Slices => match record.turns(step) {
                Ok(turns) => {
                    let length = |turns: &[Turn]| Some(turns.last()?.begin_ns.saturating_sub(turns.first()?.begin_ns) as f64 / 1e9);
                    paired.seconds += length(&turns).unwrap_or(0.0);
                    paired.slots.insert(run.block, turns.iter().map(|turn| (turn.round, of_turn(turn))).collect());
                }
                Err(_) => paired.reason = Some("its turns cannot be read".to_owned()),
            },
        }
    }
    paired
}

fn of_turn(turn: &Turn) -> Slot {
    if turn.operations == 0 || turn.active_ns == 0 {
        return Slot::default();
    }
    let operations = turn.operations as f64;
    Slot { rate: Some(operations / turn.active_ns as f64), cpu: turn.server_cpu_ns.map(|ns| ns as f64 / operations) }
}

fn of_step(done: &StepDone) -> Slot {
    let operations = done.operations.iter().find(|operation| operation.kind == done.primary).map_or(0, |operation| operation.ok) as f64;
    if operations == 0.0 {
        return Slot::default();
    }
    let cpu_s = match done.host.get("server_cpu_s") {
        Some(Reading::Ok(cpu_s)) => Some(*cpu_s),
        _ => None,
    };
    Slot { rate: Some(operations / done.elapsed_ns.max(1) as f64), cpu: cpu_s.map(|cpu_s| cpu_s / operations) }
}

/// By start. Blocks are one group: each has one pair.
fn log_ratios(cell: &Slots, base: &Slots, value: fn(&Slot) -> Option<f64>) -> Vec<Vec<f64>> {
    let pair = |slot: &Slot, of_base: &Slot| Some(value(slot).filter(|v| *v > 0.0)?.ln() - value(of_base).filter(|v| *v > 0.0)?.ln());
    let repeats = cell.iter().filter_map(|(repeat, rounds)| Some((rounds, base.get(repeat)?)));
    let groups: Vec<Vec<f64>> =
        repeats.map(|(rounds, of_base)| rounds.iter().filter_map(|(round, slot)| pair(slot, of_base.get(round)?)).collect()).collect();
    if groups.iter().all(|group| group.len() <= 1) { vec![groups.concat()] } else { groups }
}

/// A line per step and contestant.
pub fn confirm_to_text(steps: &[PairedStep]) -> String {
    let mut text = String::new();
    let width = |of: fn(&PairedStep) -> usize| steps.iter().map(of).max().unwrap_or(0);
    let (step_width, cell_width) = (width(|step| step.step.len()), width(|step| step.cell.len()));
    for step in steps {
        let ratio = match (&step.throughput, &step.reason) {
            (Some(ratio), _) => format!("{:.3} [{:.3}, {:.3}]", ratio.ratio, ratio.low, ratio.high),
            (None, reason) => format!("none: {}", reason.as_deref().unwrap_or("unknown")),
        };
        let cpu =
            step.server_cpu.map_or_else(String::new, |cpu| format!("  server CPU/op {:.3} [{:.3}, {:.3}]", cpu.ratio, cpu.low, cpu.high));
        let pairs = step.throughput.map_or(0, |ratio| ratio.pairs);
        let mark = match (step.is_control, step.is_valid) {
            (true, true) => "  A/A",
            (true, false) => "  A/A does not hold 1",
            (false, false) => "  no verdict: the A/A control does not hold",
            (false, true) => "",
        };
        let _ = writeln!(
            text,
            "{:<step_width$}  {:<cell_width$}  {ratio}  {pairs} pairs in {}, {:.0} s{cpu}{mark}",
            step.step, step.cell, step.repeats, step.seconds
        );
    }
    text
}

/// The same as JSON: `comparisons`.
pub fn confirm_to_json(steps: &[PairedStep]) -> Value {
    let ratio = |ratio: &Option<Ratio>| ratio.map(|r| json!({"ratio": r.ratio, "low": r.low, "high": r.high, "pairs": r.pairs}));
    steps
        .iter()
        .map(|step| {
            json!({
                "step": step.step,
                "cell": step.cell,
                "is_control": step.is_control,
                "throughput": ratio(&step.throughput),
                "server_cpu_us_per_op": ratio(&step.server_cpu),
                "is_valid": step.is_valid,
                "repeats": step.repeats,
                "seconds": step.seconds,
                "reason": step.reason,
            })
        })
        .collect()
}
