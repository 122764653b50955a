//! HDR histograms of nanoseconds, three significant digits from 1 ns to one hour, and the one form
//! in which they are stored.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use hdrhistogram::{Counter, Histogram};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longer values are recorded as this: one hour.
pub const HIGHEST_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;
/// A histogram that would take more memory than this is refused: five digits up to an hour take 27
/// MB.
const MOST_BYTES: u64 = 32 << 20;
/// What comes before the counts once they are inflated: cookie, length of the counts, offset,
/// digits, lowest, highest, ratio.
const HEADER_BYTES: usize = 40;
/// Of what is compressed: the cookie and the length of the rest.
const COMPRESSED_HEADER_BYTES: usize = 8;
const COMPRESSED_COOKIE: u32 = 0x1c84_9314;

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
        let bytes = inflated(bytes).map_err(HistogramError::Bytes)?;
        Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| HistogramError::Bytes(error.to_string()))
    }
}

/// The histogram without compression, if it is as long as its header says and of a size that a
/// histogram has: the library that reads it believes both.
fn inflated(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let is_compressed = be32(&bytes, 0) == Some(COMPRESSED_COOKIE);
    let bytes = if is_compressed {
        let mut inflated = Vec::new();
        ZlibDecoder::new(&bytes[COMPRESSED_HEADER_BYTES.min(bytes.len())..])
            .take(MOST_BYTES)
            .read_to_end(&mut inflated)
            .map_err(|error| error.to_string())?;
        inflated
    } else {
        bytes
    };
    let (Some(length), Some(digits), Some(highest)) =
        (be32(&bytes, 4), be32(&bytes, 12), be64(&bytes, 24))
    else {
        return Err("it is cut".to_owned());
    };
    if bytes.len() - HEADER_BYTES.min(bytes.len()) != length as usize {
        return Err(format!(
            "its header says {length} bytes, and it has another number of them"
        ));
    }
    match counts_bytes(digits, highest) {
        Some(counts) if counts <= MOST_BYTES => Ok(bytes),
        _ => Err(format!(
            "{digits} digits up to {highest} take more than {} MiB",
            MOST_BYTES >> 20
        )),
    }
}

/// What the counts of a histogram take: each power of two has half as many places as tell twice
/// `10^digits` values apart, and the first has all.
fn counts_bytes(digits: u32, highest: u64) -> Option<u64> {
    let places = 10_u64.checked_pow(digits)?.checked_mul(2)?;
    let places = places.checked_next_power_of_two()?;
    let powers = u64::from(highest.max(1).ilog2().saturating_sub(places.ilog2())) + 3;
    (places / 2 * powers).checked_mul(size_of::<u64>() as u64)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    let eight = bytes.get(at..at + 8)?;
    Some(u64::from_be_bytes(eight.try_into().ok()?))
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

    /// Compressed as a `.hlog` line has it, from a header that says what it likes.
    fn forged(length: u32, digits: u32, highest: u64, payload: &[u8]) -> EncodedHistogram {
        use std::io::Write;

        let mut plain = Vec::new();
        plain.extend(0x1c84_9313_u32.to_be_bytes());
        plain.extend(length.to_be_bytes());
        plain.extend(0_u32.to_be_bytes());
        plain.extend(digits.to_be_bytes());
        plain.extend(1_u64.to_be_bytes());
        plain.extend(highest.to_be_bytes());
        plain.extend(1.0_f64.to_be_bytes());
        plain.extend(payload);
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&plain).unwrap();
        let packed = packed.finish().unwrap();
        let mut bytes = COMPRESSED_COOKIE.to_be_bytes().to_vec();
        bytes.extend((packed.len() as u32).to_be_bytes());
        bytes.extend(packed);
        EncodedHistogram(STANDARD.encode(bytes))
    }

    #[test]
    fn what_a_header_claims_takes_no_memory() {
        let fine = forged(1, 3, HIGHEST_NS, &[2]).decode().unwrap();
        assert_eq!(fine.len(), 1);
        for (length, digits, highest, wanted) in [
            (u32::MAX, 3, HIGHEST_NS, "its header says 4294967295 bytes"),
            (0, 3, HIGHEST_NS, "its header says 0 bytes"),
            (1, 5, u64::MAX / 4, "take more than 32 MiB"),
            (1, 9, HIGHEST_NS, "take more than 32 MiB"),
            (1, u32::MAX, HIGHEST_NS, "take more than 32 MiB"),
        ] {
            let refused = forged(length, digits, highest, &[2]).decode().unwrap_err();
            assert!(refused.to_string().contains(wanted), "{refused}");
        }
        // A gigabyte of zeros, compressed a million bytes.
        let bomb = forged(1 << 30, 3, HIGHEST_NS, &vec![0; 64 << 20]);
        assert!(bomb.decode().is_err());
    }

    #[test]
    fn five_digits_up_to_an_hour_are_read() {
        let mut histogram: Histogram<u64> = Histogram::new_with_bounds(1, HIGHEST_NS, 5).unwrap();
        histogram.record(1_234_567).unwrap();
        let bytes = (histogram.distinct_values() * size_of::<u64>()) as u64;
        let said = counts_bytes(5, HIGHEST_NS).unwrap();
        assert!(bytes <= said && said <= bytes * 11 / 10, "{bytes} {said}");
        let back = EncodedHistogram::of(&histogram).decode().unwrap();
        assert_eq!(
            back.value_at_quantile(0.5),
            histogram.value_at_quantile(0.5)
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
