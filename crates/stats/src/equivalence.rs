//! "No change" as a statement.

use crate::signed_rank::SignedRank;

/// The p of two one-sided tests (Schuirmann 1987), each the exact signed-rank test, against `±margin`: small when the log ratio is shown to
/// be above `-margin` and below `margin`. The larger of the two counts, so nothing is to be corrected.
pub fn tost(differences: &[f64], margin: f64) -> f64 {
    let shifted = |by: f64| SignedRank::of(&differences.iter().map(|difference| difference + by).collect::<Vec<_>>());
    shifted(margin).p_greater.max(shifted(-margin).p_less)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_near_zero_is_equivalent() {
        let near = [0.004, -0.002, 0.001, -0.005, 0.003, -0.001, 0.002, 0.0005];
        assert_eq!(tost(&near, 0.03), 1.0 / 256.0);
        let shifted: Vec<f64> = near.iter().map(|difference| difference + 0.04).collect();
        assert!(tost(&shifted, 0.03) > 0.9);
        assert!(tost(&near[..3], 0.03) > 0.1, "three pairs prove nothing");
    }
}
