//! A straight line through points, by weighted least squares.

/// What the value of each point adds to a line: its value at 0 and its slope are sums of these
/// parts times the values. So a line through differences is the difference of two lines, and its
/// errors follow from those of the points.
#[derive(Clone, Debug, PartialEq)]
pub struct LineParts {
    /// Of the value at 0, a part per point.
    pub at_zero: Vec<f64>,
    /// Of the slope, a part per point.
    pub slope: Vec<f64>,
}

impl LineParts {
    /// For points at `x` with weights, which are proportional to one over the variance of a point.
    /// `None` with fewer than two different `x`, or a weight that is not positive.
    pub fn new(x: &[f64], weights: &[f64]) -> Option<Self> {
        let points = || x.iter().zip(weights);
        let is_weight = |weight: &f64| weight.is_finite() && *weight > 0.0;
        if x.len() != weights.len() || !weights.iter().all(is_weight) {
            return None;
        }
        let sum: f64 = weights.iter().sum();
        let centre = points().map(|(x, weight)| weight * x).sum::<f64>() / sum;
        let spread: f64 = points()
            .map(|(x, weight)| weight * (x - centre).powi(2))
            .sum();
        if !spread.is_finite() || spread <= 0.0 {
            return None;
        }
        let slope: Vec<f64> = points()
            .map(|(x, weight)| weight * (x - centre) / spread)
            .collect();
        let at_zero = points()
            .zip(&slope)
            .map(|((_, weight), slope)| weight / sum - centre * slope)
            .collect();
        Some(Self { at_zero, slope })
    }

    /// The line through these values: its value at 0 and its slope.
    pub fn line(&self, values: &[f64]) -> (f64, f64) {
        (
            weighted_sum(&self.at_zero, values),
            weighted_sum(&self.slope, values),
        )
    }

    /// The errors of both, of points whose values have these standard errors, each its own.
    pub fn errors(&self, errors: &[f64]) -> (f64, f64) {
        let of = |parts: &[f64]| {
            let squares = parts
                .iter()
                .zip(errors)
                .map(|(part, error)| (part * error).powi(2));
            squares.sum::<f64>().sqrt()
        };
        (of(&self.at_zero), of(&self.slope))
    }
}

fn weighted_sum(parts: &[f64], values: &[f64]) -> f64 {
    parts
        .iter()
        .zip(values)
        .map(|(part, value)| part * value)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;
    use crate::{mean, variance};

    #[test]
    fn points_on_a_line_give_it_back() {
        let x = [10.0, 100.0, 10_000.0];
        let parts = LineParts::new(&x, &[1.0, 0.1, 0.001]).unwrap();
        let (at_zero, slope) = parts.line(&x.map(|x| 7.1 + 0.021 * x));
        assert!((at_zero - 7.1).abs() < 1e-9 && (slope - 0.021).abs() < 1e-12);
    }

    /// Four points with equal weights: x 1 to 4, y 6, 5, 7, 10 is 3.5 + 1.4 x.
    #[test]
    fn equal_weights_are_least_squares() {
        let parts = LineParts::new(&[1.0, 2.0, 3.0, 4.0], &[2.0; 4]).unwrap();
        let (at_zero, slope) = parts.line(&[6.0, 5.0, 7.0, 10.0]);
        assert!((at_zero - 3.5).abs() < 1e-12 && (slope - 1.4).abs() < 1e-12);
    }

    #[test]
    fn a_point_with_a_small_weight_hardly_counts() {
        let parts = LineParts::new(&[0.0, 1.0, 2.0], &[1.0, 1.0, 1e-9]).unwrap();
        let (at_zero, slope) = parts.line(&[1.0, 2.0, 100.0]);
        assert!((at_zero - 1.0).abs() < 1e-6 && (slope - 1.0).abs() < 1e-6);
    }

    #[test]
    fn errors_are_those_of_repeated_lines() {
        let (x, sd) = ([10.0, 100.0, 1000.0], [0.1, 0.3, 2.0]);
        let parts = LineParts::new(&x, &sd.map(|sd| 1.0 / (sd * sd))).unwrap();
        let mut stream = Stream::new(3);
        let lines: Vec<(f64, f64)> = (0..4000)
            .map(|_| parts.line(&[0, 1, 2].map(|i| 5.0 + 0.2 * x[i] + sd[i] * stream.normal())))
            .collect();
        let (at_zero, slope): (Vec<f64>, Vec<f64>) = lines.into_iter().unzip();
        assert!((mean(&at_zero) - 5.0).abs() < 0.01 && (mean(&slope) - 0.2).abs() < 1e-3);
        let (of_zero, of_slope) = parts.errors(&sd);
        assert!((variance(&at_zero).sqrt() / of_zero - 1.0).abs() < 0.05);
        assert!((variance(&slope).sqrt() / of_slope - 1.0).abs() < 0.05);
    }

    #[test]
    fn one_place_has_no_line() {
        assert_eq!(LineParts::new(&[5.0, 5.0], &[1.0, 1.0]), None);
        assert_eq!(LineParts::new(&[5.0, 6.0], &[1.0, 0.0]), None);
        assert_eq!(LineParts::new(&[5.0, 6.0], &[1.0]), None);
        assert_eq!(LineParts::new(&[], &[]), None);
    }
}
