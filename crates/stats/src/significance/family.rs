//! Many questions at once.

/// The p-values adjusted by Benjamini & Hochberg (1995), in the order given: an adjusted p of at
/// most `q` keeps the expected share of false alarms among all alarms at `q`. `p_(i) m / i`, made
/// monotone from the largest down, at most 1.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let m = p.len() as f64;
    let mut least = 1.0f64;
    adjust(p, true, |rank, p| {
        least = least.min(p * m / rank as f64);
        least
    })
}

/// The p-values adjusted by Holm (1979), in the order given: an adjusted p of at most `alpha` keeps
/// the chance of any false alarm at `alpha`. `p_(i) (m - i + 1)`, made monotone from the smallest
/// up, at most 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    let mut most = 0.0f64;
    adjust(p, false, |rank, p| {
        most = most.max(p * (m - rank + 1) as f64).min(1.0);
        most
    })
}

/// Walks through the p-values by size with their rank from 1, and puts each answer where its
/// p-value was.
fn adjust(p: &[f64], is_falling: bool, mut step: impl FnMut(usize, f64) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut ranked: Vec<(usize, usize)> = (1..).zip(order).collect();
    if is_falling {
        ranked.reverse();
    }
    let mut adjusted = vec![1.0; p.len()];
    for (rank, i) in ranked {
        adjusted[i] = step(rank, p[i]);
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert!(
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(a, b)| (a - b).abs() < 1e-12),
            "{found:?} {expected:?}"
        );
    }

    #[test]
    fn adjusted_by_both_rules() {
        let p = [0.01, 0.04, 0.03, 0.005, 0.5];
        // scipy 1.17: false_discovery_control(p); Holm by hand: 5, 4, 3, 2, 1 times the sorted
        // ones.
        assert_close(&benjamini_hochberg(&p), &[0.025, 0.05, 0.05, 0.025, 0.5]);
        assert_close(&holm(&p), &[0.04, 0.09, 0.09, 0.025, 0.5]);
        assert_close(&holm(&[0.9, 0.8]), &[1.0, 1.0]);
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
