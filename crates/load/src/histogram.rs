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
    V2DeflateSerializer::new().serialize(histogram, &mut bytes).expect("writing to memory succeeds");
    EncodedHistogram(STANDARD.encode(bytes))
}

/// Decodes a histogram of nanoseconds from its V2-deflate base64 form.
pub fn decode(encoded: &EncodedHistogram) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD.decode(&encoded.0).map_err(|error| HistogramError(error.to_string()))?;
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| HistogramError(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip() {
        let mut histogram = empty::<u32>();
        for value in [0, 1, 999, 1_000_000, 3_000_000_000, HIGHEST_NS] {
            histogram.saturating_record(value);
        }
        let back = decode(&encode(&histogram)).unwrap();
        assert_eq!(back.len(), 6);
        assert_eq!(back.value_at_quantile(0.5), histogram.value_at_quantile(0.5));
        assert_eq!(back.max(), histogram.max());
        assert!(decode(&EncodedHistogram("AAAA".into())).is_err());
        assert!(decode(&EncodedHistogram("not base64!".into())).is_err());
    }
}
