//! Simulated campaigns whose truth is known: how often is a difference called that is not there,
//! and how often is one found that is?
//!
//! A campaign is two cells over blocks of two trials in ABBA order, each trial one slot of time;
//! the machine drifts beneath them. Seeds are fixed, so that these tests never fail by chance.

use plimsoll_stats::{
    Interval, LOOKS, Looks, Policy, SignedRank, Stream, Verdict, attainable_size, bca,
    hodges_lehmann, minimum_detectable_effect, signed_rank_interval,
};

const CAMPAIGNS: usize = 2000;
const ALPHA: f64 = 0.05;
/// The standard deviation of ln(value) between trials.
const TRIAL_SD: f64 = 0.01;

#[derive(Clone, Copy, Debug)]
enum Drift {
    None,
    /// ln(value) falls by so much over the campaign.
    Linear(f64),
    /// AR(1) with this lag-1 correlation and standard deviation.
    Wandering(f64, f64),
}

/// ln(new / base) per block, in the order of time.
fn campaign(blocks: usize, effect: f64, drift: Drift, stream: &mut Stream) -> Vec<f64> {
    let mut level = match drift {
        Drift::Wandering(_, sd) => sd * stream.normal(),
        _ => 0.0,
    };
    let slots = 2 * blocks;
    let values: Vec<f64> = (0..slots)
        .map(|slot| {
            match drift {
                Drift::None => {}
                Drift::Linear(fall) => level = -fall * slot as f64 / slots as f64,
                Drift::Wandering(lag, sd) => {
                    level = lag * level + sd * (1.0 - lag * lag).sqrt() * stream.normal()
                }
            }
            level + TRIAL_SD * stream.normal()
        })
        .collect();
    values
        .chunks_exact(2)
        .enumerate()
        .map(|(block, slots)| {
            effect
                + if block % 2 == 0 {
                    slots[1] - slots[0]
                } else {
                    slots[0] - slots[1]
                }
        })
        .collect()
}

const DRIFTS: [Drift; 3] = [
    Drift::None,
    Drift::Linear(0.02),
    Drift::Wandering(0.9, 0.01),
];

#[test]
fn null_campaigns_are_called_as_rarely_as_said_at_every_look() {
    let looks = Looks::new(24, ALPHA);
    for (seed, drift) in (1..).zip(DRIFTS) {
        let mut stream = Stream::new(seed);
        let campaigns: Vec<Vec<f64>> = (0..CAMPAIGNS)
            .map(|_| campaign(24, 0.0, drift, &mut stream))
            .collect();
        for blocks in LOOKS {
            let rejected = campaigns
                .iter()
                .filter(|campaign| SignedRank::of(&campaign[..blocks]).p_two_sided() <= ALPHA)
                .count();
            let (share, size) = (
                rejected as f64 / CAMPAIGNS as f64,
                attainable_size(blocks, ALPHA),
            );
            assert!(
                (0.5 * size..=1.5 * size).contains(&share),
                "{drift:?}, {blocks} blocks: {share} of {size}"
            );
        }
        // Looked at again and again, until a look decides.
        let called = campaigns.iter().filter(|campaign| {
            let verdicts = looks
                .all()
                .iter()
                .map(|look| verdict(&campaign[..look.blocks], look.level));
            let decided = verdicts
                .into_iter()
                .find(|verdict| *verdict != Verdict::Inconclusive);
            matches!(decided, Some(Verdict::Regression | Verdict::Improvement))
        });
        let called = called.count() as f64 / CAMPAIGNS as f64;
        assert!(called <= 1.5 * ALPHA, "{drift:?}: {called}");
    }
}

fn verdict(differences: &[f64], level: f64) -> Verdict {
    let interval = signed_rank_interval(differences, 0.95).unwrap();
    let p = SignedRank::of(differences).p_two_sided();
    // No margin and no least difference: every p at the level is a call.
    Verdict::of(
        hodges_lehmann(differences).unwrap(),
        interval,
        p,
        Policy {
            margin: 0.0,
            least: 0.0,
            level,
        },
    )
}

#[test]
fn peeking_without_levels_would_call_far_more() {
    let mut stream = Stream::new(4);
    let called = (0..CAMPAIGNS).filter(|_| {
        let campaign = campaign(24, 0.0, Drift::None, &mut stream);
        (6..=24).any(|blocks| verdict(&campaign[..blocks], ALPHA) != Verdict::Inconclusive)
    });
    assert!(called.count() as f64 / CAMPAIGNS as f64 > 0.12);
}

#[test]
fn an_effect_of_the_stated_size_is_found_in_four_of_five_campaigns() {
    for blocks in [6, 8, 10, 12, 20] {
        let detectable = minimum_detectable_effect(blocks, ALPHA, 0.8, 99).unwrap();
        let mut stream = Stream::new(blocks as u64);
        let effect = detectable * TRIAL_SD * std::f64::consts::SQRT_2;
        let found = (0..CAMPAIGNS)
            .filter(|_| {
                SignedRank::of(&campaign(blocks, effect, Drift::None, &mut stream)).p_two_sided()
                    <= ALPHA
            })
            .count();
        let power = found as f64 / CAMPAIGNS as f64;
        assert!(
            (0.75..=0.85).contains(&power),
            "{blocks} blocks, {detectable} sd: {power}"
        );
    }
}

#[test]
fn drift_ruins_one_cell_after_the_other_and_not_blocks() {
    // Ten trials of A and then ten of B, under a drift of 2 %: Mann-Whitney at 5 %.
    let mut stream = Stream::new(8);
    let alarms = (0..CAMPAIGNS).filter(|_| {
        let trials: Vec<f64> = (0..20)
            .map(|slot| -0.02 * f64::from(slot) / 20.0 + TRIAL_SD * stream.normal())
            .collect();
        plimsoll_stats::mann_whitney(&trials[..10], &trials[10..])
            .unwrap()
            .p_two_sided
            <= ALPHA
    });
    let share = alarms.count() as f64 / CAMPAIGNS as f64;
    assert!((0.40..=0.54).contains(&share), "{share}");
}

/// Why the exact interval is used up to 25 blocks, and not the bootstrap: this is how often each
/// holds the truth at 12.
#[test]
fn coverage_of_intervals_at_twelve_blocks() {
    let mut stream = Stream::new(12);
    let (mut exact, mut of_bca) = (0, 0);
    let campaigns = 1000;
    for seed in 0..campaigns {
        let sample = campaign(12, 0.0, Drift::None, &mut stream);
        let holds = |interval: Option<Interval>| usize::from(interval.unwrap().holds(0.0));
        exact += holds(signed_rank_interval(&sample, 0.95));
        of_bca += holds(bca(
            &sample,
            |sample| hodges_lehmann(sample).unwrap(),
            0.95,
            500,
            seed,
        ));
    }
    let share = |count: usize| count as f64 / campaigns as f64;
    println!("exact {} bca {}", share(exact), share(of_bca));
    assert!((0.94..=0.97).contains(&share(exact)), "{}", share(exact));
    assert!((0.88..=0.94).contains(&share(of_bca)), "{}", share(of_bca));
}
