//! The tables of response time: ten buckets and the maximum.

use super::Class;

/// Upper bounds of the first nine buckets in nanoseconds, inclusive; the tenth has none.
pub const BOUNDS_NS: [u64; 9] = [
    256_000,
    1_000_000,
    4_000_000,
    16_000_000,
    64_000_000,
    256_000_000,
    1_000_000_000,
    4_000_000_000,
    16_000_000_000,
];

/// Names of the ten buckets.
pub const BUCKETS: [&str; 10] = [
    "256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt",
];

/// A bucket's share of all operations in percent with three decimals; empty for none, `nonzero`
/// where three decimals show none.
pub fn format_share(count: u64, total: u64) -> String {
    if count == 0 || total == 0 {
        return String::new();
    }
    let text = format!("{:.3}", 100.0 * count as f64 / total as f64);
    if text == "0.000" {
        "nonzero".to_owned()
    } else {
        text
    }
}

/// The shade of a share in percent: 0 (lightest) to 20.
pub fn shade(percent: f64) -> u8 {
    (percent / 5.0).round().clamp(0.0, 20.0) as u8
}

/// Classes of the column of maxima, in seconds: the slowest quarter of the span is red, the fastest
/// green. A column whose smallest value reaches 80 % of the largest has no green.
pub fn classify_max(maxima_s: &[Option<f64>]) -> Vec<Class> {
    // Whole microseconds keep the sums below exact; the quarter is rounded to a millisecond, as the
    // original does.
    let maxima_us: Vec<Option<i64>> = maxima_s
        .iter()
        .map(|max| max.map(|seconds| (seconds * 1e6).round() as i64))
        .collect();
    let (Some(min), Some(max)) = (
        maxima_us.iter().flatten().min(),
        maxima_us.iter().flatten().max(),
    ) else {
        return vec![Class::Plain; maxima_s.len()];
    };
    let quarter = ((max - min) as f64 / 4.0 / 1000.0).round() as i64 * 1000;
    let is_narrow = min * 10 >= max * 8;
    let class = |value: i64| {
        if value >= max - quarter {
            Class::Worst
        } else if value <= min + quarter && !is_narrow {
            Class::Best
        } else {
            Class::Plain
        }
    };
    maxima_us
        .iter()
        .map(|value| value.map_or(Class::Plain, class))
        .collect()
}
