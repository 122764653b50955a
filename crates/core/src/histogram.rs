//! HDR histograms of nanoseconds, three significant digits from 1 ns to one hour, and the one form
//! in which they are stored.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longer values are recorded as this: one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram in nanoseconds, V2-deflate encoded as base64: the payload of a `.hlog` line. Decoded
/// it takes some 270 KB, stored a few: keep this form, and decode what is needed when it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EncodedHistogram(pub String);

/// A histogram that could not be decoded; fits after the name of what has it.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum HistogramError {
    /// The text is cut or of another kind.
    #[error("its histogram is not base64: {0}")]
    Text(String),
    /// The bytes are not a histogram.
    #[error("its histogram cannot be decoded: {0}")]
    Bytes(String),
}

/// A histogram without values, with the bounds that all histograms here have.
pub fn empty<T: Counter>() -> Histogram<T> {
    Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS).expect("the bounds are valid")
}

impl EncodedHistogram {
    /// The stored form of a histogram.
    pub fn of<T: Counter>(histogram: &Histogram<T>) -> Self {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .expect("writing to memory succeeds");
        Self(STANDARD.encode(bytes))
    }

    /// Counts that are known by range only: above the first and up to the second number of
    /// nanoseconds. They are spread evenly over their range, and none is longer than `longest_ns`,
    /// which one of them is.
    pub fn of_ranges(ranges: &[(u64, u64, u64)], longest_ns: u64) -> Self {
        const PLACES: u64 = 64;
        let mut histogram: Histogram<u64> = empty();
        let last = ranges.iter().rposition(|(_, _, count)| *count > 0);
        for (at, (above, up_to, count)) in ranges.iter().enumerate() {
            let mut left = *count;
            if Some(at) == last && longest_ns > 0 {
                histogram.saturating_record(longest_ns);
                left -= 1;
            }
            let up_to = if longest_ns > 0 {
                (*up_to).min(longest_ns).max(*above)
            } else {
                *up_to
            };
            let places = left.clamp(1, PLACES);
            for place in 1..=places {
                // The rest of the division goes to the last places.
                let share = left * place / places - left * (place - 1) / places;
                let value_ns = (above + (up_to - above) * place / places).max(1);
                histogram.saturating_record_n(value_ns, share);
            }
        }
        Self::of(&histogram)
    }

    /// The histogram, with counts as wide as sums need.
    pub fn decode(&self) -> Result<Histogram<u64>, HistogramError> {
        let bytes = STANDARD
            .decode(&self.0)
            .map_err(|error| HistogramError::Text(error.to_string()))?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Bytes(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_spread_and_end_with_the_longest() {
        let ranges = [
            (0, 1000, 100),
            (1000, 2000, 0),
            (2000, 3000, 1000),
            (9000, 20_000, 1),
        ];
        let histogram = EncodedHistogram::of_ranges(&ranges, 10_000)
            .decode()
            .unwrap();
        assert_eq!((histogram.len(), histogram.max() / 10), (1101, 1000));
        let p50 = histogram.value_at_quantile(0.5);
        assert!(
            (2430..2480).contains(&p50),
            "{p50}: linear within its range"
        );
        assert_eq!(
            EncodedHistogram::of_ranges(&[], 0).decode().unwrap().len(),
            0
        );
    }

    #[test]
    fn round_trip() {
        let mut histogram = empty::<u32>();
        for value in [0, 1, 999, 1_000_000, 3_000_000_000, HIGHEST_NS] {
            histogram.saturating_record(value);
        }
        let back = EncodedHistogram::of(&histogram).decode().unwrap();
        assert_eq!(back.len(), 6);
        assert_eq!(
            back.value_at_quantile(0.5),
            histogram.value_at_quantile(0.5)
        );
        assert_eq!(back.max(), histogram.max());
        for broken in ["", "%%", "AAAA", "HISTFAAAAC14nJNpmSzMwMCgyAABzFCaEQBQCQ=="] {
            let encoded = EncodedHistogram(broken.to_owned());
            assert!(encoded.decode().is_err(), "{broken}");
        }
    }
}
