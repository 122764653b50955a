//! Looking into encoded histograms.

use plimsoll_core::record::EncodedHistogram;

/// Values in a base64 V2-deflate histogram, as events hold it.
pub fn histogram_count(encoded: &str) -> u64 {
    EncodedHistogram(encoded.to_owned())
        .decode()
        .expect("the histogram is whole")
        .len()
}
