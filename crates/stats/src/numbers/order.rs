//! What follows from putting numbers in order.

/// The median; the mean of the two middle ones of an even count. `None` without numbers.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_of_mut(&mut sorted)
}

/// The same, on numbers that may be put into another order. Linear time.
pub(crate) fn median_of_mut(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, middle, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let middle = *middle;
    if n % 2 == 1 {
        return Some(middle);
    }
    below
        .iter()
        .copied()
        .max_by(f64::total_cmp)
        .map(|lower| (lower + middle) / 2.0)
}

/// The quantile `share` in [0, 1] of sorted numbers, linear between them (Hyndman & Fan 1996, type
/// 7). `None` without numbers.
pub fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = share.clamp(0.0, 1.0) * last as f64;
    let low = place.floor() as usize;
    let high = (low + 1).min(last);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64))
}

/// Twice the mid-rank of each number: whole even with ties. The smallest number has 2.
pub(crate) fn doubled_mid_ranks(values: &[f64]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let tied = order[from..]
            .iter()
            .take_while(|i| values[**i] == values[order[from]])
            .count();
        // Ranks from+1 ..= from+tied have the mean from + (tied + 1) / 2.
        for i in &order[from..from + tied] {
            ranks[*i] = (2 * from + tied + 1) as u32;
        }
        from += tied;
    }
    ranks
}

/// The arithmetic mean; not a number of none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The variance with `n - 1` below; 0 for fewer than two numbers.
pub fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_quantiles_and_ranks() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
        assert_eq!(doubled_mid_ranks(&[5.0, 1.0, 5.0, 9.0]), [5, 2, 5, 8]);
        assert_eq!(doubled_mid_ranks(&[7.0, 7.0, 7.0]), [4, 4, 4]);
        assert!((variance(&[1.0, 2.0, 3.0, 4.0]) - 5.0 / 3.0).abs() < 1e-12);
    }
}
