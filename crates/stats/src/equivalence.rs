//! "No change" as a statement.

use crate::signed_rank::SignedRank;

/// The p of two one-sided tests (Schuirmann 1987), each the exact signed-rank test, against
/// `±margin`: small when the log ratio is shown to be above `-margin` and below `margin`. The
/// larger of the two counts, so nothing is to be corrected.
pub fn tost(differences: &[f64], margin: f64) -> f64 {
    let shifted = |by: f64| {
        SignedRank::of(
            &differences
                .iter()
                .map(|difference| difference + by)
                .collect::<Vec<_>>(),
        )
    };
    shifted(margin).p_greater.max(shifted(-margin).p_less)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::signed_rank::signed_rank_interval;

    /// What a verdict of "equivalent" rests on: an interval of 95 % within the margin is two
    /// one-sided tests at 2.5 % each.
    #[test]
    fn an_interval_within_the_margin_is_two_one_sided_tests() {
        let mut stream = Stream::new(11);
        let mut seen = [0, 0];
        for i in 0..400 {
            let shift = f64::from(i) * 1e-4;
            let sample: Vec<f64> = (0..12).map(|_| shift + 0.01 * stream.normal()).collect();
            let is_within = signed_rank_interval(&sample, 0.95).unwrap().is_within(0.03);
            assert_eq!(is_within, tost(&sample, 0.03) <= 0.025, "{sample:?}");
            seen[usize::from(is_within)] += 1;
        }
        assert!(seen[0] > 50 && seen[1] > 50, "{seen:?}");
    }

    #[test]
    fn only_what_is_near_zero_is_equivalent() {
        let near = [0.004, -0.002, 0.001, -0.005, 0.003, -0.001, 0.002, 0.0005];
        assert_eq!(tost(&near, 0.03), 1.0 / 256.0);
        let shifted: Vec<f64> = near.iter().map(|difference| difference + 0.04).collect();
        assert!(tost(&shifted, 0.03) > 0.9);
        assert!(tost(&near[..3], 0.03) > 0.1, "three pairs prove nothing");
    }
}
