//! The sign-flip permutation test, for more pairs than the exact test takes.

use crate::numbers::order::mean;
use crate::numbers::random::Stream;

/// The two-sided p of "the differences are symmetric around 0", from `resamples` random sign
/// patterns: the share of patterns, the observed one counted among them, whose mean is at least as
/// far from 0 (Phipson & Smyth 2010). Never 0. 1 without differences.
pub fn sign_flip(differences: &[f64], resamples: usize, seed: u64) -> f64 {
    if differences.is_empty() {
        return 1.0;
    }
    let observed = mean(differences).abs() * (1.0 - 1e-12);
    let mut stream = Stream::new(seed);
    let mut signs = vec![0u64; differences.len().div_ceil(64)];
    let mut as_far = 1;
    for _ in 0..resamples {
        signs.iter_mut().for_each(|word| *word = stream.bits());
        let sum: f64 = differences
            .iter()
            .enumerate()
            .map(|(i, d)| {
                if signs[i / 64] >> (i % 64) & 1 == 1 {
                    *d
                } else {
                    -d
                }
            })
            .sum();
        as_far += usize::from((sum / differences.len() as f64).abs() >= observed);
    }
    as_far as f64 / (resamples + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_agrees_with_all_sign_patterns() {
        let sample = [0.8, -0.3, 0.5, 0.9, -0.1, 0.4, 0.7, 0.2, -0.6, 0.35];
        let observed: f64 = sample.iter().sum();
        let all = 0u32..1 << sample.len();
        let as_far = all.clone().filter(|signs| {
            let sum: f64 = sample
                .iter()
                .enumerate()
                .map(|(i, d)| if signs >> i & 1 == 1 { *d } else { -d })
                .sum();
            sum.abs() >= observed.abs() - 1e-9
        });
        let exact = as_far.count() as f64 / all.len() as f64;
        assert!(
            (sign_flip(&sample, 20_000, 7) - exact).abs() < 0.01,
            "{exact}"
        );
        assert_eq!(sign_flip(&sample, 1000, 7), sign_flip(&sample, 1000, 7));
        assert_eq!(sign_flip(&[0.0; 30], 100, 1), 1.0);
        assert!((sign_flip(&[0.1; 30], 999, 1) - 0.001).abs() < 1e-12);
    }
}
