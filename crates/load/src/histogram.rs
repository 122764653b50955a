//! HDR histograms of nanoseconds: three significant digits from 1 ns to one hour.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use plimsoll_core::record::EncodedHistogram;
use thiserror::Error;

/// Longer values are recorded as this: one hour.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram that could not be decoded.
#[derive(Debug, Error)]
#[error("the histogram is damaged: {0}")]
pub struct HistogramError(String);

pub(crate) fn empty<T: hdrhistogram::Counter>() -> Histogram<T> {
    Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS).expect("the bounds are valid")
}

/// Adds the values of an interval to a total.
pub(crate) fn add(total: &mut Histogram<u64>, interval: &Histogram<u32>) {
    for value in interval.iter_recorded() {
        total.saturating_record_n(value.value_iterated_to(), value.count_at_value().into());
    }
}

pub(crate) fn encode<T: hdrhistogram::Counter>(histogram: &Histogram<T>) -> EncodedHistogram {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .expect("writing to memory succeeds");
    EncodedHistogram(STANDARD.encode(bytes))
}

/// A histogram of counts that are known by range only: above the first and up to the second number
/// of nanoseconds. They are spread evenly over their range, and none is longer than `longest_ns`,
/// which one of them is.
pub fn histogram_of_ranges(ranges: &[(u64, u64, u64)], longest_ns: u64) -> EncodedHistogram {
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
            histogram.saturating_record_n((above + (up_to - above) * place / places).max(1), share);
        }
    }
    encode(&histogram)
}

/// Decodes a histogram of nanoseconds from its V2-deflate base64 form.
pub fn decode(encoded: &EncodedHistogram) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD
        .decode(&encoded.0)
        .map_err(|error| HistogramError(error.to_string()))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| HistogramError(error.to_string()))
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
        let histogram = decode(&histogram_of_ranges(&ranges, 10_000)).unwrap();
        assert_eq!((histogram.len(), histogram.max() / 10), (1101, 1000));
        let p50 = histogram.value_at_quantile(0.5);
        assert!(
            (2430..2480).contains(&p50),
            "{p50}: linear within its range"
        );
        assert_eq!(decode(&histogram_of_ranges(&[], 0)).unwrap().len(), 0);
    }

    #[test]
    fn round_trip() {
        let mut histogram = empty::<u32>();
        for value in [0, 1, 999, 1_000_000, 3_000_000_000, HIGHEST_NS] {
            histogram.saturating_record(value);
        }
        let back = decode(&encode(&histogram)).unwrap();
        assert_eq!(back.len(), 6);
        assert_eq!(
            back.value_at_quantile(0.5),
            histogram.value_at_quantile(0.5)
        );
        assert_eq!(back.max(), histogram.max());
        assert!(decode(&EncodedHistogram("AAAA".into())).is_err());
        assert!(decode(&EncodedHistogram("not base64!".into())).is_err());
    }
}
