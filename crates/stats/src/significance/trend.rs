//! Does a series of releases go one way?

use std::collections::BTreeMap;

use crate::numbers::distribution::normal_cdf;
use crate::numbers::order::doubled_mid_ranks;

/// Page's test of an ordered trend.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// `L`: the sum over releases of their place times the sum of their ranks within blocks.
    pub l: f64,
    /// The one-sided p of a rise from the first release to the last.
    pub p_rising: f64,
    /// The one-sided p of a fall.
    pub p_falling: f64,
}

/// Up to so many releases the distribution is exact.
const EXACT_RELEASES: usize = 8;

/// Page's L (Page 1963): `blocks` hold one value per release each, in the order of the releases. Up
/// to eight releases without ties the distribution is that of all orders within blocks; beyond, or
/// with ties, normal with mean `m k (k+1)^2 / 4` and variance `m k^2 (k+1) (k^2-1) / 144`, for `m`
/// blocks of `k`. `None` with fewer than 2 blocks or 3 releases, or when blocks differ in length.
pub fn page_trend(blocks: &[Vec<f64>]) -> Option<Trend> {
    let (m, k) = (blocks.len(), blocks.first()?.len());
    if m < 2 || k < 3 || blocks.iter().any(|block| block.len() != k) {
        return None;
    }
    let ranks: Vec<Vec<u32>> = blocks
        .iter()
        .map(|block| doubled_mid_ranks(block))
        .collect();
    let doubled: u64 = ranks
        .iter()
        .flat_map(|ranks| {
            (1u64..)
                .zip(ranks)
                .map(|(place, rank)| place * u64::from(*rank))
        })
        .sum();
    let has_ties = ranks.iter().any(|ranks| {
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| pair[0] == pair[1])
    });
    let l = doubled as f64 / 2.0;
    let (p_rising, p_falling) = if k <= EXACT_RELEASES && !has_ties {
        let shares = shares_of_sums(m, k);
        let share = |pick: &dyn Fn(u64) -> bool| {
            shares
                .iter()
                .filter(|(sum, _)| pick(**sum))
                .map(|(_, share)| share)
                .sum::<f64>()
                .min(1.0)
        };
        (
            share(&|sum| sum >= doubled / 2),
            share(&|sum| sum <= doubled / 2),
        )
    } else {
        let (m, k) = (m as f64, k as f64);
        let z = (l - m * k * (k + 1.0).powi(2) / 4.0)
            / (m * k * k * (k + 1.0) * (k * k - 1.0) / 144.0).sqrt();
        (normal_cdf(-z), normal_cdf(z))
    };
    Some(Trend {
        l,
        p_rising,
        p_falling,
    })
}

/// The probability of each L of `m` blocks: that of one block over all its orders, convolved.
fn shares_of_sums(m: usize, k: usize) -> BTreeMap<u64, f64> {
    let mut one: BTreeMap<u64, f64> = BTreeMap::new();
    let mut order: Vec<u64> = (1..=k as u64).collect();
    each_order(&mut order, 0, &mut |order| {
        let sum = (1..)
            .zip(order)
            .map(|(place, rank): (u64, &u64)| place * rank)
            .sum();
        *one.entry(sum).or_default() += 1.0;
    });
    let orders: f64 = one.values().sum();
    one.values_mut().for_each(|ways| *ways /= orders);
    let mut all = BTreeMap::from([(0, 1.0)]);
    for _ in 0..m {
        let mut next: BTreeMap<u64, f64> = BTreeMap::new();
        for (sum, share) in &all {
            for (more, with) in &one {
                *next.entry(sum + more).or_default() += share * with;
            }
        }
        all = next;
    }
    all
}

fn each_order(order: &mut Vec<u64>, from: usize, visit: &mut impl FnMut(&[u64])) {
    if from == order.len() {
        return visit(order);
    }
    for i in from..order.len() {
        order.swap(from, i);
        each_order(order, from + 1, visit);
        order.swap(from, i);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_as_scipy_has_it() {
        // scipy 1.17: page_trend_test([[3,4,3.5],[2,5,6],[1,2,2.5],[4,4.5,5]], method='exact')
        let blocks = [
            vec![3.0, 4.0, 3.5],
            vec![2.0, 5.0, 6.0],
            vec![1.0, 2.0, 2.5],
            vec![4.0, 4.5, 5.0],
        ];
        let trend = page_trend(&blocks).unwrap();
        assert_eq!(trend.l, 55.0);
        assert!(
            (trend.p_rising - 0.006_944_444_444).abs() < 1e-9,
            "{trend:?}"
        );
        let falling: Vec<Vec<f64>> = blocks
            .iter()
            .map(|block| block.iter().map(|value| -value).collect())
            .collect();
        assert!((page_trend(&falling).unwrap().p_falling - trend.p_rising).abs() < 1e-12);
    }

    #[test]
    fn long_series_and_bad_ones() {
        let blocks: Vec<Vec<f64>> = (0..6)
            .map(|b| {
                (0..12)
                    .map(|i| f64::from(i) + f64::from((i * 7 + b) % 5))
                    .collect()
            })
            .collect();
        assert!(page_trend(&blocks).unwrap().p_rising < 1e-6);
        assert_eq!(page_trend(&blocks[..1]), None);
        assert_eq!(page_trend(&[vec![1.0, 2.0, 3.0], vec![1.0, 2.0]]), None);
        assert_eq!(page_trend(&[]), None);
    }

    /// By hand: two blocks of nine releases have the mean 2 x 9 x 100 / 4 = 450 and the variance
    /// 2 x 81 x 10 x 80 / 144 = 900.
    #[test]
    fn beyond_eight_releases_and_with_ties_it_is_normal() {
        let rising: Vec<f64> = (1..=9).map(f64::from).collect();
        let falling: Vec<f64> = rising.iter().rev().copied().collect();
        let neither = page_trend(&[rising.clone(), falling]).unwrap();
        assert_eq!(neither.l, 450.0);
        assert!(
            (neither.p_rising - 0.5).abs() < 1e-9 && (neither.p_falling - 0.5).abs() < 1e-9,
            "{neither:?}"
        );
        // z = (570 - 450) / 30 = 4: scipy norm.sf(4)
        let both = page_trend(&[rising.clone(), rising]).unwrap();
        assert_eq!(both.l, 570.0);
        assert!((both.p_rising - 3.167_124_183e-5).abs() < 1e-10, "{both:?}");
        assert!((both.p_falling + both.p_rising - 1.0).abs() < 1e-9);
        // Few releases, and ties: the exact distribution would say 23 / 36 to either side.
        let tied = page_trend(&[vec![1.0; 3], vec![1.0; 3]]).unwrap();
        assert!(
            (tied.p_rising - 0.5).abs() < 1e-9 && (tied.p_falling - 0.5).abs() < 1e-9,
            "{tied:?}"
        );
    }
}
