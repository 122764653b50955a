//! Starts of one load that lie further apart than the means of loads.

use plimsoll_stats::{KnownVariance, StartRatio, StartsPrior, StartsVariance, Stream, over_starts};

/// Of 1,000 campaigns of eight comparisons over four loads: how often the interval holds the truth,
/// and its mean half-width. `change` is by how much the second half of the starts is lower.
fn holds(starts_per_load: u32, has_prior: bool, of_loads: f64, change: f64) -> (f64, f64) {
    let mut stream = Stream::new(7);
    let (mut held, mut all, mut width) = (0, 0, 0.0);
    for _ in 0..1000 {
        let mut drawn = || -> Vec<StartRatio> {
            let loads: Vec<f64> = (0..4).map(|_| of_loads * stream.normal()).collect();
            let half = 2 * starts_per_load;
            let start = |number: u32| StartRatio {
                ratio: 0.01 * stream.normal() + loads[number as usize % 4]
                    - if number < half { 0.0 } else { change },
                within: Some(KnownVariance::of_error(0.003, 5.0)),
                load: number % 4,
            };
            (0..4 * starts_per_load).map(start).collect()
        };
        let class: Vec<Vec<StartRatio>> = (0..8).map(|_| drawn()).collect();
        let variances: Vec<StartsVariance> = class
            .iter()
            .filter_map(|starts| StartsVariance::of(starts))
            .collect();
        let prior = StartsPrior::of_class(&variances).filter(|_| has_prior);
        for starts in &class {
            let interval = over_starts(starts, prior).unwrap().interval(0.95);
            held += usize::from(interval.holds(-change / 2.0));
            width += interval.half_width();
            all += 1;
        }
    }
    (held as f64 / all as f64, width / all as f64)
}

/// The starts' own spread was the least of every interval at first: where loads differ by nothing,
/// intervals were a fifth wider than they had to be, and held the truth in 99.5 %.
#[test]
fn starts_that_vary_by_chance_widen_nothing() {
    for starts_per_load in [2, 3, 8] {
        for has_prior in [false, true] {
            for of_loads in [0.0, 0.01] {
                let (holds, width) = holds(starts_per_load, has_prior, of_loads, 0.0);
                println!(
                    "{starts_per_load} starts, {has_prior}, loads {of_loads}: {holds:.3}, +-{width:.4}"
                );
                assert!((0.93..0.97).contains(&holds), "{starts_per_load}: {holds}");
            }
        }
    }
}

#[test]
fn a_change_from_some_start_on_is_in_the_interval() {
    for starts_per_load in [2, 4, 8] {
        for has_prior in [false, true] {
            let (_, width) = holds(starts_per_load, has_prior, 0.0, 0.2);
            let (_, steady) = holds(starts_per_load, has_prior, 0.0, 0.0);
            println!("{starts_per_load} starts, {has_prior}: +-{width:.4}, steady {steady:.4}");
            assert!(width > 4.0 * steady, "{width} {steady}");
        }
    }
}
