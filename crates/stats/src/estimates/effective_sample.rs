//! How many independent values a series of dependent ones is worth.

use crate::numbers::order::{mean, variance};

/// The values in `count` batches of consecutive ones, all of the same length; values that do not
/// fill the last batch are left out.
fn consecutive<T>(values: &[T], count: usize) -> impl Iterator<Item = &[T]> {
    let length = (values.len() / count).max(1);
    values.chunks_exact(length).take(count)
}

/// Fewer batches than this have no spread to speak of.
const FEWEST_BATCHES: usize = 4;

/// What batches of consecutive rounds say, whose spread is how well the whole is known:
/// `floor(sqrt(n))` of them, at least 4; below 8 rounds each is one. If one of so many says nothing
/// there are fewer, down to two. `None` below 4 rounds, and if both halves do not say something.
pub fn of_batches<T>(rounds: &[T], says: impl Fn(&[T]) -> Option<f64>) -> Option<Vec<f64>> {
    let most = match rounds.len() {
        none if none < FEWEST_BATCHES => return None,
        few if few < 2 * FEWEST_BATCHES => few,
        many => ((many as f64).sqrt() as usize).max(FEWEST_BATCHES),
    };
    let mut counts = (2..=most).rev();
    counts.find_map(|count| consecutive(rounds, count).map(&says).collect())
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
    fn few_rounds_are_batches_of_their_own() {
        let lengths = |rounds: usize| of_batches(&vec![0.0; rounds], |of| Some(of.len() as f64));
        let expected = [
            (0, None),
            (3, None),
            (4, Some(vec![1.0; 4])),
            (7, Some(vec![1.0; 7])),
            (8, Some(vec![2.0; 4])),
            (11, Some(vec![2.0; 4])),
            (40, Some(vec![6.0; 6])),
        ];
        for (rounds, batches) in expected {
            assert_eq!(lengths(rounds), batches, "{rounds}");
        }
    }

    /// A start in which one turn stalled had no error, and was left out of a search.
    #[test]
    fn a_round_without_an_operation_joins_its_neighbour() {
        let rounds = [3.0, 0.0, 2.0, 1.0, 4.0];
        let sum = |of: &[f64]| Some(of.iter().sum()).filter(|sum| *sum > 0.0);
        assert_eq!(of_batches(&rounds, sum), Some(vec![3.0, 3.0]));
        assert_eq!(of_batches(&[0.0; 8], sum), None);
    }

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
        assert!(effective_sample_size(&white[..16]).is_some());
    }
}
