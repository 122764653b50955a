//! Words and their thresholds, in whole hundredths of new / old: integers have no 0.959999.

use plimsoll_stats::median;

/// From here down a loss is big.
const BIG_LOSS: i64 = 88;
/// From here up a gain is big.
const BIG_GAIN: i64 = 112;
/// A loss counts from here down.
const LOSS: i64 = 96;
/// A gain counts from here up: authors look for regressions, so a loss counts earlier.
const GAIN: i64 = 106;
/// Where each test of a stable group is.
const STABLE_TEST: std::ops::RangeInclusive<i64> = 95..=105;
/// Where the median of a stable group is.
const STABLE_MEDIAN: std::ops::RangeInclusive<i64> = 96..=104;
/// Costs per operation are stable within this many whole percent.
const STABLE_COST_PERCENT: i64 = 3;

/// A ratio in whole hundredths.
pub(crate) fn hundredths(ratio: f64) -> i64 {
    (100.0 * ratio).round() as i64
}

/// What a ratio of throughput is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    BigLoss,
    SmallLoss,
    NoChange,
    SmallGain,
    BigGain,
}

impl Class {
    pub fn is_loss(self) -> bool {
        self < Self::NoChange
    }

    pub fn is_gain(self) -> bool {
        self > Self::NoChange
    }

    /// Of one test.
    pub fn words(self) -> &'static str {
        match self {
            Self::BigLoss => "big regression",
            Self::SmallLoss => "small regression",
            Self::NoChange => "no change",
            Self::SmallGain => "small improvement",
            Self::BigGain => "big improvement",
        }
    }
}

/// The ratios that count as no change: as authors use the words, wider where twins differ by more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    loss: i64,
    gain: i64,
}

impl Band {
    /// `noise` is the share that 95 of 100 tests of twins differ by less than.
    pub fn new(noise: Option<f64>) -> Self {
        let noise = noise.map_or(0, |share| (100.0 * share).ceil() as i64);
        Self {
            loss: LOSS.min(100 - noise),
            gain: GAIN.max(100 + noise),
        }
    }

    /// What the words mean, for readers.
    pub fn words(self) -> String {
        let (loss, gain) = (100 - self.loss, self.gain - 100);
        let (big_loss, big_gain) = (loss.max(100 - BIG_LOSS), gain.max(BIG_GAIN - 100));
        let big = match big_loss == big_gain {
            true => format!("both are big from {big_loss}% on"),
            false => format!("they are big from {big_loss}% and {big_gain}% on"),
        };
        format!(
            "a regression loses {loss}% or more, an improvement gains {gain}% or more, {big}, \
             anything in between counts as no change"
        )
    }

    pub fn class(self, ratio: f64) -> Class {
        match hundredths(ratio) {
            at if at <= self.loss && at <= BIG_LOSS => Class::BigLoss,
            at if at <= self.loss => Class::SmallLoss,
            at if at < self.gain => Class::NoChange,
            at if at < BIG_GAIN => Class::SmallGain,
            _ => Class::BigGain,
        }
    }
}

/// Whether a test is inside the limits of a stable group.
pub(crate) fn is_stable_test(ratio: f64) -> bool {
    STABLE_TEST.contains(&hundredths(ratio))
}

/// At least three quarters of the tests, and the median.
pub(crate) fn is_stable(ratios: &[f64]) -> bool {
    let inside = ratios.iter().filter(|ratio| is_stable_test(**ratio));
    let has_median = median(ratios).is_some_and(|of| STABLE_MEDIAN.contains(&hundredths(of)));
    has_median && 4 * inside.count() >= 3 * ratios.len()
}

/// Whether a cost per operation is stable, by whole percent. `noise` is the share that twins differ
/// by: what is less does not count, as with throughput.
pub(crate) fn is_stable_cost(ratio: f64, noise: f64) -> bool {
    let change = (hundredths(ratio) - 100).abs();
    change <= STABLE_COST_PERCENT || change < (100.0 * noise).ceil() as i64
}

/// As posts round a common loss: to the nearest 5 up to 25 %, to the nearest 10 above.
pub(crate) fn rounded_percent(percent: f64) -> i64 {
    let step = if percent <= 25.0 { 5.0 } else { 10.0 };
    ((percent / step).round() * step) as i64
}

/// To the nearest 5.
pub(crate) fn to_five(percent: f64) -> i64 {
    ((percent / 5.0).round() * 5.0) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_at_its_edge() {
        let band = Band::new(None);
        for (ratio, class) in [
            (0.88, Class::BigLoss),
            (0.8849, Class::BigLoss),
            (0.89, Class::SmallLoss),
            (0.96, Class::SmallLoss),
            (0.9649, Class::SmallLoss),
            (0.97, Class::NoChange),
            (1.05, Class::NoChange),
            (1.06, Class::SmallGain),
            (1.11, Class::SmallGain),
            (1.12, Class::BigGain),
        ] {
            assert_eq!(band.class(ratio), class, "{ratio}");
        }
    }

    #[test]
    fn the_noise_of_twins_wins_over_the_band() {
        // 3.9 % is inside the band's 4 %; 6.2 % is not.
        assert_eq!(Band::new(Some(0.039)), Band::new(None));
        // 4.1 % of noise: a loss of 4 % in whole percent is less, one of 5 % is not.
        assert_eq!(Band::new(Some(0.041)).class(0.96), Class::NoChange);
        assert_eq!(Band::new(Some(0.041)).class(0.95), Class::SmallLoss);
        let noisy = Band::new(Some(0.062));
        assert_eq!(noisy.class(0.94), Class::NoChange);
        assert_eq!(noisy.class(0.93), Class::SmallLoss);
        assert_eq!(noisy.class(1.06), Class::NoChange);
        assert_eq!(noisy.class(1.07), Class::SmallGain);
        assert!(
            noisy.words().starts_with(
                "a regression loses 7% or more, an improvement gains 7% or more, both"
            ),
            "{}",
            noisy.words()
        );
        // What counts as no change is never big.
        assert_eq!(Band::new(Some(0.2)).class(0.85), Class::NoChange);
    }

    #[test]
    fn a_group_is_stable_from_three_quarters_on() {
        let group = |inside: usize, outside: usize| {
            let mut ratios = vec![0.95, 1.05];
            ratios.resize(inside, 1.0);
            ratios.resize(inside + outside, 0.94);
            ratios
        };
        assert!(is_stable(&group(6, 2)));
        // 74 of 100, the median inside.
        assert!(is_stable(&group(75, 25)));
        assert!(!is_stable(&group(74, 26)));
        // All inside, the median not.
        assert!(!is_stable(&[0.95, 0.95, 0.95]));
        assert!(is_stable(&[0.96, 0.96, 0.96]));
        assert!(!is_stable(&[1.05, 1.05, 1.04, 1.05]));
        assert!(!is_stable(&[]));
    }

    #[test]
    fn common_losses_are_rounded_as_posts_do() {
        for (percent, rounded) in [
            (20.4, 20),
            (26.7, 30),
            (22.9, 25),
            (11.4, 10),
            (25.7, 30),
            (27.0, 30),
            (15.7, 15),
            (30.5, 30),
            (32.8, 30),
            (13.6, 15),
            (30.1, 30),
            (31.5, 30),
        ] {
            assert_eq!(rounded_percent(percent), rounded, "{percent}");
        }
    }

    #[test]
    fn costs_are_stable_within_three_whole_percent() {
        assert!(is_stable_cost(0.9651, 0.0) && is_stable_cost(1.0349, 0.0));
        assert!(!is_stable_cost(0.9649, 0.0) && !is_stable_cost(1.0351, 0.0));
    }

    #[test]
    fn a_cost_that_twins_differ_by_more_in_is_stable() {
        // 7.4 % of noise: a change of 7 % is less, one of 8 % is not.
        assert!(is_stable_cost(1.07, 0.074) && is_stable_cost(0.93, 0.074));
        assert!(!is_stable_cost(1.08, 0.074) && !is_stable_cost(0.92, 0.074));
    }
}
