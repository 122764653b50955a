//! Campaigns with pairs: blocks one after the other, or slices by turns, with differences that are
//! known.

use std::collections::BTreeMap;

use plimsoll_core::plan::Plan;
use plimsoll_core::readings::{HostReading, Reading};
use plimsoll_core::record::EncodedHistogram;
use plimsoll_store::event::Event;
use plimsoll_store::series::{turns_path, write_turns};
use plimsoll_store::{CampaignRecord, Confirm, Design, Turn};

use super::{Campaign, Made, SECOND_NS, Speed, Trial, plan_text, step};

pub const STEPS: [&str; 2] = ["qr100", "qp100"];
pub const BASE: &str = "sqlite.wal_full";
pub const SLOW: &str = "sqlite.wal_off";
pub const SAME: &str = "sqlite.wal_normal";
pub const CONTROL: &str = "sqlite.wal_full#2";

/// Small numbers that look like noise, the same in every run.
pub fn noise(seed: u32, sd: f64) -> f64 {
    let mut x = u64::from(seed)
        .wrapping_add(1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) | 1;
    // The sum of twelve uniform numbers has a standard deviation of 1.
    let sum: f64 = (0..12)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 11) as f64 / (1u64 << 53) as f64
        })
        .sum();
    1.0 + sd * (sum - 6.0)
}

/// A confirm campaign's design over [`STEPS`].
pub fn design(design: Design, times: u32) -> Confirm {
    Confirm {
        of: Some("20261121T070000Z-sample".to_owned()),
        design,
        steps: STEPS.map(str::to_owned).to_vec(),
        base: BASE.to_owned(),
        control: CONTROL.to_owned(),
        starts: (design == Design::Slices).then_some(times),
        blocks: (design == Design::Blocks).then_some(times),
        turn_ns_read: 20_000_000,
        turn_ns_write: 50_000_000,
        time_ns: 30 * SECOND_NS,
        loads: None,
        before: Vec::new(),
        placement: None,
        more_placements: Vec::new(),
        age_ns: None,
        delta: 0.03,
        alpha: 0.05,
        profile_ns: None,
        budget: None,
        bisection: None,
    }
}

fn text(times: u32) -> String {
    let steps = "steps = [\"l.i0\", \"l.x\", \"l.i1\", \"l.i2\", \"qr100\", \"qp100\"]\n";
    plan_text(
        &["wal_full", "wal_off", "wal_normal"],
        12,
        &format!("{steps}blocks = {times}"),
    )
}

/// The plan's cells and the base's second instance.
fn with_control(plan: &mut Plan) {
    let mut again = plan.cells[0].clone();
    again.label = CONTROL.to_owned();
    plan.cells.push(again);
}

/// How many times as fast queries of a cell are: one is a third slower, one is the same.
fn speed(label: &str) -> f64 {
    if label == SLOW { 0.66 } else { 1.0 }
}

/// Trials that a test makes different: block, cell's label, and what is done to its steps.
pub type Edit<'a> = &'a dyn Fn(u32, &str, &mut Made);

/// A campaign of blocks. With `is_confirm` it has the control.
pub fn blocks(times: u32, is_confirm: bool, edit: Edit<'_>) -> CampaignRecord {
    blocks_campaign(times, is_confirm, edit).load()
}

/// The same with its folder.
pub fn blocks_campaign(times: u32, is_confirm: bool, edit: Edit<'_>) -> Campaign {
    let confirm = is_confirm.then(|| design(Design::Blocks, times));
    let id = if is_confirm {
        "20261121T080000Z-sample-confirm"
    } else {
        "20261121T080000Z-sample"
    };
    let campaign = Campaign::with_plan(id, &text(times), confirm, |plan| {
        if is_confirm {
            with_control(plan)
        }
    });
    run(&campaign, |_, _, _| {}, edit);
    campaign
}

/// A campaign of slices: `rounds` turns per start and candidate.
pub fn slices(
    starts: u32,
    rounds: u32,
    edit_turns: &dyn Fn(u32, &str, &mut Vec<Turn>),
) -> Campaign {
    let campaign = Campaign::with_plan(
        "20261121T090000Z-sample-confirm",
        &text(starts),
        Some(design(Design::Slices, starts)),
        with_control,
    );
    let write = |trial: &Trial, block: u32, label: &str| {
        for (i, name) in (0..).zip(STEPS) {
            let of_start = noise(block * 97 + i * 13 + label.len() as u32, 0.004);
            let mut turns: Vec<Turn> = (1..=rounds)
                .map(|round| {
                    let operations = 400.0
                        * speed(label)
                        * of_start
                        * noise(round * 31 + block * 7 + i + label.len() as u32 * 1009, 0.03);
                    Turn {
                        round,
                        position: 1 + round % 4,
                        begin_ns: u64::from(round) * 80_000_000,
                        active_ns: 18_000_000,
                        operations: operations.round() as u64,
                        server_cpu_ns: Some(12_000_000),
                        client_cpu_ns: Some(5_000_000),
                        speed: Some(500.0),
                        foreign_cpu_ns: Some(100_000),
                        other_servers_cpu_ns: Some(50_000),
                        ..Turn::default()
                    }
                })
                .collect();
            edit_turns(block, label, &mut turns);
            write_turns(turns_path(&trial.dir, name), &turns).unwrap();
        }
    };
    run(&campaign, write, &|_, _, _| {});
    campaign
}

fn run(campaign: &Campaign, after: impl Fn(&Trial, u32, &str), edit: Edit<'_>) {
    let steps = campaign.steps();
    let templates: BTreeMap<String, Made> = steps
        .iter()
        .map(|plan| (plan.name.clone(), step(plan, Speed::default())))
        .collect();
    for scheduled in &campaign.folder.header.schedule {
        let label = campaign.folder.header.plan.cells[scheduled.cell]
            .label
            .clone();
        let synchronous = label
            .trim_end_matches("#2")
            .trim_start_matches("sqlite.wal_");
        let mut trial = campaign.attempt(
            scheduled.number,
            1,
            &[("journal_mode", "wal"), ("synchronous", synchronous)],
        );
        for plan in steps {
            let jitter = noise(scheduled.number * 17 + plan.name.len() as u32, 0.006);
            let mut made = template(&templates[&plan.name], speed(&label) * jitter);
            // The slow cell needs more CPU for a query, and no more switches.
            let ratio = speed(&label) * jitter;
            let seconds = made.done.elapsed_ns as f64 / 1e9;
            let share = if label == SLOW { 1.0 } else { jitter };
            made.done
                .host
                .put(HostReading::ProcessCpu, Reading::Ok(seconds * 1.8 * share));
            made.done.host.put(
                HostReading::ContextSwitches,
                Reading::Ok(seconds * 5_000.0 * ratio),
            );
            edit(scheduled.block, &label, &mut made);
            trial.step(made);
        }
        after(&trial, scheduled.block, &label);
        trial.complete();
    }
}

/// The step at another speed. Histograms are left out: they take long to read, and no verdict looks
/// at them.
pub fn template(of: &Made, queries: f64) -> Made {
    let mut made = of.clone();
    if made.done.step.starts_with('q') {
        for client in made
            .done
            .clients
            .iter_mut()
            .filter(|client| client.kind == "query")
        {
            client.ok = (client.ok as f64 * queries).round() as u64;
        }
    }
    for operation in &mut made.done.operations {
        if operation.kind == "query" {
            operation.ok = (operation.ok as f64 * queries).round() as u64;
            operation.attempts = operation.ok;
        }
        operation.service = EncodedHistogram::default();
        (operation.response, operation.lag, operation.unsuccessful) = (None, None, None);
    }
    made
}

/// Turns the trial of a cell in these blocks into one that crashed in `qr100`.
pub fn crash_in(record: &mut CampaignRecord, label: &str, blocks: std::ops::RangeInclusive<u32>) {
    let header = record.header.clone();
    for trial in &mut record.trials {
        let scheduled = header
            .schedule
            .iter()
            .find(|scheduled| scheduled.number == trial.number)
            .unwrap();
        if header.plan.cells[scheduled.cell].label == label && blocks.contains(&scheduled.block) {
            let at = trial
                .events
                .iter()
                .position(
                    |event| matches!(&event.event, Event::StepDone(done) if done.step == "qr100"),
                )
                .unwrap();
            trial.events.truncate(at);
            let crash = plimsoll_store::event::ServerCrashed {
                step: Some("qr100".to_owned()),
                status: "signal 11".to_owned(),
                log_tail: String::new(),
            };
            let mut last = trial.events.last().unwrap().clone();
            last.event = Event::ServerCrashed(crash);
            trial.events.push(last);
        }
    }
}
