//! Ratios of pairs, while they are collected: when are there enough of them?

/// The normal quantile of a two-sided interval of 95 %.
pub const Z_95: f64 = 1.96;
/// The normal quantile of a two-sided interval of 99 %.
pub const Z_99: f64 = 2.576;

/// Fewer pairs have no interval.
const FEWEST_PAIRS: usize = 8;

/// A ratio with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The median of the pairs' ratios.
    pub ratio: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Pairs.
    pub pairs: usize,
}

impl Ratio {
    /// Half the interval's width, as a share of the ratio.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.ratio
    }

    /// Whether the interval holds 1.
    pub fn holds_one(&self) -> bool {
        self.low <= 1.0 && 1.0 <= self.high
    }
}

/// The median of paired ratios, given as logarithms by start, with an interval of the normal quantile `z`.
///
/// Within a start the interval is that of the sign test: the order statistics `n/2 -+ z sqrt(n)/2` (Conover, Practical Nonparametric
/// Statistics, 3.2). Starts vary too: from two on, the interval is at least `z sd / sqrt(S)` wide to either side, with `sd` that of
/// the starts' medians. None for too few pairs.
pub fn paired_ratio(starts: &[Vec<f64>], z: f64) -> Option<Ratio> {
    let mut all: Vec<f64> = starts.iter().flatten().copied().collect();
    if all.len() < FEWEST_PAIRS {
        return None;
    }
    let median = median_of(&mut all);
    let (half, spread) = (all.len() as f64 / 2.0, z * (all.len() as f64).sqrt() / 2.0);
    let low = (half - spread).floor().max(0.0) as usize;
    let high = ((half + spread).ceil() as usize).min(all.len() - 1);
    let medians: Vec<f64> = starts.iter().filter(|start| !start.is_empty()).map(|start| median_of(&mut start.clone())).collect();
    let between = if medians.len() < 2 { 0.0 } else { z * deviation(&medians) / (medians.len() as f64).sqrt() };
    Some(Ratio {
        ratio: median.exp(),
        low: all[low].min(median - between).exp(),
        high: all[high].max(median + between).exp(),
        pairs: all.len(),
    })
}

/// Sorts the values and gives their median.
fn median_of(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) { (values[middle - 1] + values[middle]) / 2.0 } else { values[middle] }
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Draw;

    /// Sums of twelve uniform numbers are near enough to normal.
    fn normal(draw: &mut Draw) -> f64 {
        (0..12).map(|_| draw.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut draw = Draw::new(1, &["ratio"]);
        let mut held = 0;
        for _ in 0..1000 {
            let start: Vec<f64> = (0..60).map(|_| 0.9f64.ln() + 0.05 * normal(&mut draw)).collect();
            let ratio = paired_ratio(&[start], Z_95).unwrap();
            held += u32::from(ratio.low <= 0.9 && 0.9 <= ratio.high);
        }
        // 4 standard deviations around 95 %, and a little for the rounding of ranks to the outside.
        assert!((920..=990).contains(&held), "{held}");
    }

    #[test]
    fn starts_that_differ_widen_the_interval() {
        let start = |shift: f64| -> Vec<f64> { (0..200).map(|at| shift + f64::from(at % 9 - 4) * 1e-4).collect() };
        let same = paired_ratio(&[start(0.0), start(0.0), start(0.0)], Z_95).unwrap();
        let apart = paired_ratio(&[start(-0.02), start(0.0), start(0.02)], Z_95).unwrap();
        assert!(same.half_width() < 0.001 && same.holds_one(), "{same:?}");
        assert!((0.02..0.03).contains(&apart.half_width()), "{apart:?}");
        assert!(!paired_ratio(&[start(0.05)], Z_99).unwrap().holds_one());
        assert_eq!(paired_ratio(&[vec![0.0; 7]], Z_95), None);
    }
}
