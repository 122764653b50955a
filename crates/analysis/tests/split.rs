//! A plan whose tests are divided: parts of a block on hosts that are not alike.

mod common;

use common::{Campaign, Speed, plan_text, step};
use plimsoll_analysis::view::Outcome;
use plimsoll_analysis::{Options, View, analyse};
use plimsoll_core::plan::Split;
use plimsoll_store::event::Event;
use plimsoll_store::{CampaignRecord, Fleet};

/// Two cells, whose block has three parts with a step of queries each. The steps before them run in
/// all parts.
fn in_three_parts(blocks: u32) -> Campaign {
    let text = plan_text(
        &["wal_full", "wal_off"],
        12,
        &format!("blocks = {blocks}\nbase = \"sqlite.wal_full\""),
    );
    Campaign::with_plan("20261121T080000Z-sample", &text, None, |plan| {
        let tests = ["qr100", "qp100", "qr500"];
        for cell in &mut plan.cells {
            let steps = cell.workload.steps().iter();
            let is_kept = |name: &str| name.starts_with('l') || tests.contains(&name);
            let kept = steps.filter(|step| is_kept(&step.name)).cloned().collect();
            cell.workload = cell.workload.with_steps(kept);
        }
        plan.report = Vec::new();
        let parts = tests.iter().map(|test| vec![(*test).to_owned()]).collect();
        plan.split = Some(Split { parts });
    })
}

/// Runs trials, by number: each on a host that is so many times as fast as another.
fn run(campaign: &Campaign, trials: &[(u32, &str, f64)]) -> CampaignRecord {
    let plan = &campaign.folder.header.plan;
    for &(number, _, factor) in trials {
        let scheduled = &campaign.folder.header.schedule[number as usize - 1];
        let mut trial = campaign.attempt(number, 1, &[("journal_mode", "wal")]);
        let own = if scheduled.cell == 1 { 1.2 } else { 1.0 };
        let speed = Speed {
            writes: factor * own,
            queries: factor * own,
            ..Speed::default()
        };
        for of in plan.steps_of(scheduled.cell, scheduled.part) {
            trial.step(step(of, speed));
        }
        trial.complete();
    }
    let mut record = common::in_default_store(campaign.load());
    record.header.fleet = Some(Fleet::Hosts {
        names: vec!["slow".into(), "fast".into()],
        class: None,
    });
    for trial in &mut record.trials {
        let (_, name, _) = trials.iter().find(|of| of.0 == trial.number).unwrap();
        for stamped in &mut trial.events {
            if let Event::TrialStart(start) = &mut stamped.event {
                start.host = Some((*name).to_owned());
                start.machine_id = Some(format!("id of {name}"));
            }
        }
    }
    record
}

fn view(record: CampaignRecord) -> View {
    analyse(&[record], &Options::default()).unwrap()
}

fn load(view: &View) -> &[Outcome] {
    &view
        .steps
        .iter()
        .find(|of| of.name == "l.i0")
        .unwrap()
        .outcomes
}

fn relative_load(view: &View) -> (String, String) {
    let cell = &view.summary.relative.rows[1].cells[0];
    let reason = cell.reason.clone().unwrap_or_default();
    (cell.text().to_string(), reason)
}

/// The load runs in every part. With a part of one cell missing the medians were of other hosts: a
/// cell that is 1.2 times as fast on each of them was said to be 4.8 times as fast.
#[test]
fn the_load_of_a_screen_is_compared_part_by_part_and_not_across_hosts() {
    let campaign = in_three_parts(1);
    // Trials 1, 3, 5 are the base's; the second part's other trial is lost.
    let trials = [
        (1, "slow", 1.0),
        (2, "slow", 1.0),
        (3, "slow", 1.0),
        (5, "fast", 4.0),
        (6, "fast", 4.0),
    ];
    let whole = view(run(&campaign, &trials));
    assert_eq!(load(&whole)[0].rate_of_blocks.len(), 3);
    assert_eq!(load(&whole)[1].rate_of_blocks.len(), 2);
    assert_eq!(relative_load(&whole).0, "1.20");
}

/// Without one pair on one machine there is no ratio at all.
#[test]
fn what_ran_on_other_machines_alone_has_no_ratio() {
    let campaign = in_three_parts(1);
    let trials = [(1, "slow", 1.0), (6, "fast", 4.0)];
    let apart = view(run(&campaign, &trials));
    let (text, reason) = relative_load(&apart);
    assert!(!text.contains('.'), "{text}");
    assert!(reason.contains("on one machine"), "{reason}");
}

/// What runs in every part of a block was counted as so many blocks.
#[test]
fn a_host_has_no_more_blocks_of_the_load_than_there_are() {
    let campaign = in_three_parts(6);
    let of_unit = |number: u32| match (number - 1) / 2 % 3 {
        0 | 1 => (number, "slow", 1.0),
        _ => (number, "fast", 4.0),
    };
    let trials: Vec<_> = (1..=36).map(of_unit).collect();
    let view = view(run(&campaign, &trials));
    let mut of_load = view.findings.all.iter().filter(|of| of.step == "l.i0");
    let finding = of_load.next().unwrap();
    let counts: Vec<usize> = finding.by_host.iter().map(|of| of.blocks).collect();
    assert_eq!(counts, [6, 6], "{:?}", finding.by_host);
    assert_eq!(finding.estimate.unwrap().pairs, 6);
}
