//! Where a run has warmed up.

/// Values per batch.
const BATCH: usize = 5;

/// How many values to drop from the front, by MSER-5 (White, Cobb & Spratt 2000): of the means of
/// batches of five, the truncation point `d` that minimises
/// `sum_{i > d} (x_i - mean)^2 / (n - d)^2`. Only the first half is looked at: a minimum at its end
/// means that the run never settled, and then there is no answer. `None` also below 10 batches.
pub fn warm_up(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = values
        .chunks_exact(BATCH)
        .map(|batch| batch.iter().sum::<f64>() / BATCH as f64)
        .collect();
    let n = batches.len();
    if n < 10 {
        return None;
    }
    // Squares about a centre that is near all of them, so that nothing cancels.
    let centre = batches[n - 1];
    let (mut sum, mut squares, mut scores) = (0.0, 0.0, vec![0.0; n]);
    for i in (0..n).rev() {
        let value = batches[i] - centre;
        sum += value;
        squares += value * value;
        let left = (n - i) as f64;
        scores[i] = (squares - sum * sum / left).max(0.0) / (left * left);
    }
    let best = (0..=n / 2).min_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
    (best < n / 2).then_some(best * BATCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    #[test]
    fn a_slow_start_is_cut() {
        let mut stream = Stream::new(9);
        let mut series = |slow: usize, n: usize| -> Vec<f64> {
            (0..n)
                .map(|i| if i < slow { 50.0 } else { 100.0 } + stream.normal())
                .collect()
        };
        assert_eq!(warm_up(&series(30, 300)), Some(30));
        assert!(warm_up(&series(0, 300)).unwrap() <= 25);
        assert_eq!(warm_up(&series(0, 49)), None);
        let climbing: Vec<f64> = (0..300).map(f64::from).collect();
        assert_eq!(warm_up(&climbing), None);
    }
}
