//! Pairs that come in clusters: rounds of turns within starts of the servers.

use crate::estimates::effective_sample::of_batches;
use crate::estimates::estimate::{Interval, hodges_lehmann};
use crate::estimates::moderated::KnownVariance;
use crate::numbers::distribution::{student_quantile, student_two_sided};
use crate::numbers::order::{mean, variance};

/// An estimate over starts and rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clustered {
    /// The log ratio.
    pub estimate: f64,
    pub interval: Interval,
    /// The two-sided p of "the log ratio is 0".
    pub p: f64,
    /// Starts with pairs. With one start the interval says nothing about what another start would
    /// give.
    pub starts: usize,
    /// Pairs over all starts.
    pub pairs: usize,
    /// The standard deviation between starts of a start's own estimate; `None` with one start.
    pub between_starts: Option<f64>,
}

/// The estimate over `starts`, each with the log ratios of its rounds in the order of time.
///
/// With `S >= 2` starts a start counts once, by the Hodges-Lehmann estimate `m_s` of its rounds:
///
/// `estimate = mean(m_s)`, `interval = estimate ± t(S-1) sqrt(sum (m_s - estimate)^2 / (S (S-1)))`,
/// `p` from the same `t`.
///
/// The spread of the `m_s` holds both variances, between starts and of the rounds within
/// (`s_b^2 + s_w^2 / R`), so neither has to be known, and more rounds never hide that starts differ
/// (Kalibera & Jones 2013; a cluster's summary as the unit is Cornfield's 1978 rule). With one
/// start `estimate = m_1` and the interval is that over batches of consecutive rounds, which allows
/// for rounds that resemble their neighbours (Law & Kelton 2000, 9.5.3):
/// `m_1 ± t(B-1) s_batches / sqrt(B)`, in [`of_batches`]. A batch counts by its
/// own Hodges-Lehmann estimate, as a start does: a turn in which the host took the CPU away would
/// make any mean as wide as itself.
///
/// `None` without enough: two starts, or one start with 4 rounds.
pub fn clustered(starts: &[Vec<f64>], level: f64) -> Option<Clustered> {
    let starts: Vec<&[f64]> = starts
        .iter()
        .map(Vec::as_slice)
        .filter(|rounds| !rounds.is_empty())
        .collect();
    let pairs = starts.iter().map(|rounds| rounds.len()).sum();
    let of_starts: Vec<f64> = starts
        .iter()
        .filter_map(|rounds| hodges_lehmann(rounds))
        .collect();
    let (estimate, units, between_starts) = match of_starts.as_slice() {
        [] => return None,
        [one] => (*one, of_batches(starts[0], hodges_lehmann)?, None),
        several => (
            mean(several),
            several.to_vec(),
            Some(variance(several).sqrt()),
        ),
    };
    let known = KnownVariance::of_mean(&units);
    let (error, degrees) = (known.variance.sqrt(), known.degrees);
    let reach = student_quantile(0.5 + level / 2.0, degrees) * error;
    let p = match (error > 0.0, estimate == 0.0) {
        (true, _) => student_two_sided(estimate / error, degrees),
        (false, is_zero) => f64::from(u8::from(is_zero)),
    };
    let interval = Interval {
        low: estimate - reach,
        high: estimate + reach,
        level,
    };
    Some(Clustered {
        estimate,
        interval,
        p,
        starts: starts.len(),
        pairs,
        between_starts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    #[test]
    fn a_start_counts_once() {
        // Starts at -0.1, 0, 0.1 with tight rounds: t(2) = 4.303, sd 0.1.
        let starts: Vec<Vec<f64>> = [-0.1, 0.0, 0.1]
            .map(|level| {
                (0..40)
                    .map(|i| level + f64::from(i % 3 - 1) * 1e-6)
                    .collect()
            })
            .to_vec();
        let found = clustered(&starts, 0.95).unwrap();
        assert!(found.estimate.abs() < 1e-6);
        assert!(
            (found.interval.high - 4.302_65 * 0.1 / 3f64.sqrt()).abs() < 1e-4,
            "{found:?}"
        );
        assert!((found.between_starts.unwrap() - 0.1).abs() < 1e-6);
        assert_eq!((found.starts, found.pairs), (3, 120));
        assert!(found.p > 0.99);
    }

    /// t(2) = 2 sqrt(3), two-sided p = 1 - t / sqrt(2 + t^2).
    #[test]
    fn the_interval_and_the_p_are_those_of_students_t() {
        let starts = [0.1, 0.2, 0.3].map(|level| vec![level; 3]);
        let found = clustered(&starts, 0.95).unwrap();
        let (t, error) = (12f64.sqrt(), 0.1 / 3f64.sqrt());
        assert!((found.p - (1.0 - t / (2.0 + t * t).sqrt())).abs() < 1e-9);
        assert!((found.interval.low - (0.2 - 4.302_65 * error)).abs() < 1e-6);
        assert!((found.interval.high - (0.2 + 4.302_65 * error)).abs() < 1e-6);
    }

    #[test]
    fn too_little_gives_nothing() {
        assert_eq!(clustered(&[], 0.95), None);
        assert_eq!(clustered(&[vec![0.1; 3]], 0.95), None);
        assert_eq!(clustered(&[vec![0.1], vec![]], 0.95), None);
        let equal = clustered(&[vec![0.1], vec![0.1]], 0.95).unwrap();
        assert_eq!((equal.p, equal.interval.half_width()), (0.0, 0.0));
        assert_eq!(clustered(&[vec![0.0], vec![0.0]], 0.95).unwrap().p, 1.0);
    }

    /// Of every ten rounds one is hit by something that has nothing to do with either side.
    #[test]
    fn rounds_that_were_hit_leave_the_interval_of_a_start_narrow_and_honest() {
        let mut stream = Stream::new(12);
        let (mut held, mut widths) = (0, Vec::new());
        for _ in 0..2000 {
            let rounds: Vec<f64> = (0..100)
                .map(|_| {
                    let hit = if stream.unit() < 0.1 {
                        2.0 * stream.normal()
                    } else {
                        0.0
                    };
                    0.02 * stream.normal() + hit
                })
                .collect();
            let interval = clustered(&[rounds], 0.95).unwrap().interval;
            held += usize::from(interval.holds(0.0));
            widths.push(interval.half_width());
        }
        let share = held as f64 / 2000.0;
        assert!((0.93..=0.97).contains(&share), "{share}");
        widths.sort_by(f64::total_cmp);
        // Without hits it is 0.0047; a mean over hit rounds would have 0.14.
        assert!((0.004..0.012).contains(&widths[1000]), "{}", widths[1000]);
    }

    /// Null campaigns with a between-start spread as large as the rounds' own: the interval holds 0
    /// as often as it says.
    #[test]
    fn it_covers_what_it_says() {
        let mut stream = Stream::new(11);
        for (starts, between) in [(1, 0.0), (3, 0.02), (5, 0.02), (5, 0.0)] {
            let campaigns = 2000;
            let held = (0..campaigns)
                .filter(|_| {
                    let drawn: Vec<Vec<f64>> = (0..starts)
                        .map(|_| {
                            let level = between * stream.normal();
                            (0..50).map(|_| level + 0.02 * stream.normal()).collect()
                        })
                        .collect();
                    clustered(&drawn, 0.95).unwrap().interval.holds(0.0)
                })
                .count();
            let share = held as f64 / f64::from(campaigns);
            assert!(
                (0.93..=0.97).contains(&share),
                "{starts} starts, {between}: {share}"
            );
        }
    }
}
