//! Where an axis has its ticks, for all figures.

/// Zero and four to ten multiples of a step of 1, 2 or 5 times a power of ten, the last of them not
/// below `most`.
pub(crate) fn round_ticks(most: f64) -> Vec<f64> {
    let most = if most > 0.0 { most } else { 1.0 };
    let power = 10f64.powf((most / 4.0).log10().floor());
    let step = [5.0, 2.0, 1.0]
        .into_iter()
        .map(|of| of * power)
        .find(|step| step * 4.0 <= most * 1.000_001)
        .unwrap_or(power);
    let count = (most / step - 1e-6).ceil() as u32;
    (0..=count).map(|i| f64::from(i) * step).collect()
}

/// At most eight round ratios from `low` to `high`, the step between them alike.
pub(crate) fn between(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [f64; 12] = [
        0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 20.0,
    ];
    let fits = |step: &f64| (high - low) / step <= 7.0;
    let step = STEPS.into_iter().find(fits).unwrap_or(high);
    let first = (low / step).ceil() as i64;
    let all = (first..).map(|i| i as f64 * step);
    all.take_while(|tick| *tick <= high).collect()
}

/// Ratios on a logarithmic axis with 1.0 in its middle that reaches `reach` doublings to both
/// sides: 1.0 first, then those that keep their distance from all before them.
pub(crate) fn ratio_ticks(reach: f64) -> Vec<f64> {
    const WIDE: [f64; 16] = [
        0.1, 0.2, 0.25, 0.5, 0.67, 0.8, 0.9, 1.1, 1.25, 1.5, 2.0, 4.0, 5.0, 10.0, 100.0, 0.01,
    ];
    const NARROW: [f64; 8] = [0.9, 1.1, 0.95, 1.05, 0.98, 1.02, 0.99, 1.01];
    let ticks = if reach < f64::log2(1.2) {
        &NARROW[..]
    } else {
        &WIDE
    };
    let least = reach / 7.0;
    let mut shown: Vec<f64> = vec![1.0];
    for tick in ticks {
        let log = f64::log2(*tick);
        let is_apart = |other: &f64| (f64::log2(*other) - log).abs() >= least;
        if log.abs() < reach && shown.iter().all(is_apart) {
            shown.push(*tick);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_highest() {
        for (most, wanted) in [
            (
                97_000.0,
                &[0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0][..],
            ),
            (40.0, &[0.0, 10.0, 20.0, 30.0, 40.0]),
            (0.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ] {
            let ticks = round_ticks(most);
            assert!(
                ticks.len() == wanted.len()
                    && ticks.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9),
                "{most}: {ticks:?}"
            );
        }
        for most in (1..2000).map(|i| f64::from(i) * 0.37) {
            let ticks = round_ticks(most);
            assert!(
                (5..=11).contains(&ticks.len()) && *ticks.last().unwrap() >= most * 0.999_99,
                "{most}: {ticks:?}"
            );
        }
    }

    #[test]
    fn ticks_between_two_ratios_are_few_and_on_the_axis() {
        for (low, high) in [(0.0, 1.22), (0.93, 1.04), (0.1, 10.4), (0.994, 1.006)] {
            let ticks = between(low, high);
            assert!((2..=8).contains(&ticks.len()), "{ticks:?}");
            assert!(ticks.iter().all(|tick| (low..=high).contains(tick)));
        }
    }

    #[test]
    fn ratios_have_ticks_on_both_sides_of_one() {
        for reach in [0.03, 0.09, 0.25, 0.5, 1.0, 2.6, 4.0] {
            let ticks = ratio_ticks(reach);
            assert!(ticks.contains(&1.0) && ticks.len() <= 15, "{ticks:?}");
            let below = ticks.iter().filter(|tick| **tick < 1.0).count();
            let above = ticks.iter().filter(|tick| **tick > 1.0).count();
            assert!(below > 0 && above > 0, "{reach}: {ticks:?}");
            assert!(ticks.iter().all(|tick| tick.log2().abs() < reach));
        }
    }
}
