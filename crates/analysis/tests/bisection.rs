//! A search weighs what verdicts weigh.

mod common;

use common::confirm::{BASE, CONTROL, SAME, SLOW, blocks, slices};
use plimsoll_analysis::bisection::{Probe, read_probe, weigh};
use plimsoll_analysis::{Options, View, analyse};
use plimsoll_store::{BisectionProbe, CampaignRecord, Turn};

/// The sample's cells in their order are the good build, the bad one, the probed one and the
/// control.
fn read(campaign: &CampaignRecord) -> Probe {
    let probe = BisectionProbe {
        search: String::new(),
        candidates: [BASE, SAME, SLOW].map(str::to_owned).to_vec(),
        probe: Some(1),
    };
    read_probe(campaign, campaign.header.confirm.as_ref().unwrap(), &probe)
}

fn view(campaign: &CampaignRecord) -> View {
    analyse(std::slice::from_ref(campaign), &Options::default()).unwrap()
}

/// What the verdict on the throughput of `qr100` weighs: by start its number, ratio and error.
fn judged(view: &View, label: &str) -> Vec<(u32, f64, f64)> {
    let is_it = |finding: &&plimsoll_analysis::Finding| {
        view.cells[finding.cell].label == label
            && finding.step == "qr100"
            && finding.metric.name == "qps"
    };
    let finding = view.findings.all.iter().find(is_it).unwrap();
    let starts = finding.by_start.iter();
    starts
        .map(|start| {
            (
                start.start,
                start.ratio.ln(),
                start.within.unwrap().variance.sqrt(),
            )
        })
        .collect()
}

fn assert_alike(read: &[plimsoll_analysis::bisection::StartRatio], judged: &[(u32, f64, f64)]) {
    assert_eq!(read.len(), judged.len());
    for (start, (_, ratio, error)) in read.iter().zip(judged) {
        assert!((start.ratio - ratio).abs() < 1e-12);
        assert!((start.within.unwrap().variance.sqrt() - error).abs() < 1e-12);
    }
}

#[test]
fn starts_are_those_of_verdicts() {
    // In start 2 the bad build leaves work to others, in start 3 the machine is disturbed in some
    // rounds, and in start 4 the probed build stalls.
    let campaign = slices(5, 40, &|start, label, turns: &mut Vec<Turn>| {
        for turn in turns.iter_mut() {
            if start == 2 && label == SLOW {
                turn.left_cpu_ns = Some(9_000_000);
            }
            if start == 3 && turn.round < 9 {
                turn.stolen_ns = Some(15_000_000);
                turn.operations /= 2;
            }
            if start == 4 && label == SAME && turn.round % 8 == 0 {
                turn.active_ns += 60_000_000;
            }
        }
    });
    let record = campaign.load();
    let (read, view) = (read(&record), view(&record));
    let slow = judged(&view, SLOW);
    let numbers: Vec<u32> = slow.iter().map(|(start, ..)| *start).collect();
    assert_eq!(numbers, [1, 3, 4, 5], "start 2 is left out");
    assert_alike(&read.bad, &slow);
    assert_alike(&read.probed, &judged(&view, SAME));
    assert_eq!((read.whole(), read.control.len()), (4, 5));
    let (count, why) = read.left_out.clone().unwrap();
    assert!(count == 1 && why.contains("cores"), "{why}");
    // Stalls count with the time they take.
    assert!(read.probed[3].ratio < read.probed[0].ratio - 0.2);
    // The whole is weighed: the step is at the bad build, and the probed one is known less well.
    let weight = weigh(2, &[read]).unwrap();
    assert!(weight.is_distinct() && (weight.bad.log_ratio.exp() - 0.66).abs() < 0.02);
}

#[test]
fn a_probe_without_a_start_that_counts_says_why() {
    let campaign = slices(3, 40, &|_, label, turns| {
        if label == CONTROL {
            turns.truncate(0);
        }
        if label == SLOW {
            turns
                .iter_mut()
                .for_each(|turn| turn.left_cpu_ns = Some(9_000_000));
        }
    });
    let of = read(&campaign.load());
    assert_eq!((of.whole(), of.bad.len(), of.control.len()), (0, 0, 0));
    let (count, why) = of.left_out.unwrap();
    assert!(count == 3 && why.starts_with(SLOW), "{why}");
    // A start counts in which one side did nothing in a round.
    let stalled = slices(3, 5, &|_, label, turns| {
        if label == SLOW {
            turns[2].operations = 0;
        }
    });
    let of = read(&stalled.load());
    assert_eq!((of.whole(), of.bad.len()), (3, 3));
    let short = slices(3, 3, &|_, _, _| {});
    let of = read(&short.load());
    assert_eq!(
        (of.whole(), of.left_out.unwrap().0),
        (0, 3),
        "three rounds are too few"
    );
}

#[test]
fn blocks_are_set_against_both_instances_of_the_good_build() {
    let record = blocks(6, true, &|_, _, _| {});
    let of = read(&record);
    assert_eq!((of.bad.len(), of.probed.len(), of.control.len()), (6, 6, 6));
    assert!(of.bad.iter().all(|block| block.within.is_none()));
    let mean = of.bad.iter().map(|block| block.ratio).sum::<f64>() / 6.0;
    assert!((mean.exp() - 0.66).abs() < 0.02, "{mean}");
}
