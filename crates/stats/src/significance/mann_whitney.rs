//! The Mann-Whitney test, exact.

use crate::numbers::order::doubled_mid_ranks;

/// The exact test of "both samples come from one distribution" (Mann & Whitney 1947), for results
/// that are not paired.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MannWhitney {
    /// `U` of the first sample: pairs in which it is the larger one, ties half.
    pub u: f64,
    /// Twice the smaller side, at most 1.
    pub p_two_sided: f64,
}

/// Tests two samples. Ties share mid-ranks and the distribution is that of the ranks there are,
/// over all ways to divide them. `None` when a sample is empty. Time and memory grow with the
/// square of the numbers: meant for at most a few hundred.
pub fn mann_whitney(first: &[f64], second: &[f64]) -> Option<MannWhitney> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let all: Vec<f64> = first.iter().chain(second).copied().collect();
    let ranks = doubled_mid_ranks(&all);
    let observed = ranks[..first.len()].iter().sum::<u32>() as usize;
    let shares = shares_of_sums(&ranks, first.len());
    let (at_most, at_least): (f64, f64) = (
        shares[..=observed].iter().sum(),
        shares[observed..].iter().sum(),
    );
    let least = first.len() * (first.len() + 1) / 2;
    Some(MannWhitney {
        u: observed as f64 / 2.0 - least as f64,
        p_two_sided: (2.0 * at_most.min(at_least)).min(1.0),
    })
}

/// The probability of each sum of `size` ranks drawn without replacement, by adding one rank after
/// the other to the draws of every size.
fn shares_of_sums(ranks: &[u32], size: usize) -> Vec<f64> {
    let total = ranks.iter().sum::<u32>() as usize;
    let mut ways = vec![vec![0.0; total + 1]; size + 1];
    ways[0][0] = 1.0;
    for rank in ranks {
        let rank = *rank as usize;
        for taken in (1..=size).rev() {
            let (fewer, same) = ways.split_at_mut(taken);
            let fewer = &fewer[taken - 1];
            for sum in rank..=total {
                same[0][sum] += fewer[sum - rank];
            }
        }
    }
    let draws: f64 = ways[size].iter().sum();
    ways[size].iter().map(|ways| ways / draws).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_p_of_n_per_side() {
        for (n, expected) in [
            (3, 0.10),
            (4, 0.0286),
            (5, 0.0079),
            (6, 0.0022),
            (8, 0.00016),
        ] {
            let low: Vec<f64> = (0..n).map(f64::from).collect();
            let high: Vec<f64> = (100..100 + n).map(f64::from).collect();
            let test = mann_whitney(&low, &high).unwrap();
            assert!(
                (test.p_two_sided - expected).abs() < 0.00005,
                "{n}: {test:?}"
            );
            assert_eq!(test.u, 0.0);
        }
        assert_eq!(mann_whitney(&[], &[1.0]), None);
    }

    #[test]
    fn p_with_and_without_ties() {
        // scipy 1.17: mannwhitneyu(a, b, method='exact'), and with ties
        // method=PermutationMethod(n_resamples=100000)
        let a = [19., 22., 16., 29., 24.];
        let b = [20., 11., 17., 12.];
        let test = mann_whitney(&a, &b).unwrap();
        assert_eq!(test.u, 17.0);
        assert!(
            (test.p_two_sided - 0.111_111_111_111).abs() < 1e-9,
            "{test:?}"
        );
        let tied = mann_whitney(&[1., 2., 2., 3.], &[2., 3., 4.]).unwrap();
        assert_eq!(tied.u, 2.5);
        assert!((tied.p_two_sided - 0.4).abs() < 1e-9, "{tied:?}");
    }
}
