//! How many independent values a series of dependent ones is worth.

use crate::numbers::order::{mean, variance};

/// The values in `count` batches of consecutive ones, all of the same length; values that do not
/// fill the last batch are left out.
pub fn consecutive<T>(values: &[T], count: usize) -> impl Iterator<Item = &[T]> {
    let length = (values.len() / count).max(1);
    values.chunks_exact(length).take(count)
}

/// The effective sample size by batch means (Law & Kelton 2000, 9.5.3): `n s^2 / (b s_batch^2)`,
/// with `sqrt(n)` batches of length `b`; between 1 and `n`. Neighbouring seconds of a run resemble
/// each other, so that 600 of them may be worth 20. `None` below 16 values or when all are equal.
pub fn effective_sample_size(values: &[f64]) -> Option<f64> {
    let n = values.len();
    let all = variance(values);
    if n < 16 || all == 0.0 {
        return None;
    }
    let batches: Vec<f64> = consecutive(values, (n as f64).sqrt() as usize)
        .map(mean)
        .collect();
    let length = n / (n as f64).sqrt() as usize;
    let of_batches = length as f64 * variance(&batches);
    Some(if of_batches == 0.0 {
        n as f64
    } else {
        (n as f64 * all / of_batches).clamp(1.0, n as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::random::Stream;

    #[test]
    fn neighbours_that_resemble_each_other_count_less() {
        let mut stream = Stream::new(3);
        let white: Vec<f64> = (0..3600).map(|_| stream.normal()).collect();
        // AR(1) with 0.9: n (1 - 0.9) / (1 + 0.9) = 189 of 3600.
        let mut last = 0.0;
        let red: Vec<f64> = (0..3600)
            .map(|_| {
                last = 0.9 * last + stream.normal();
                last
            })
            .collect();
        let (of_white, of_red) = (
            effective_sample_size(&white).unwrap(),
            effective_sample_size(&red).unwrap(),
        );
        assert!(of_white > 2000.0, "{of_white}");
        assert!((120.0..400.0).contains(&of_red), "{of_red}");
        assert_eq!(effective_sample_size(&[1.0; 100]), None);
        assert_eq!(effective_sample_size(&white[..15]), None);
    }
}
