//! HdrHistogram interval logs, whose values are taken for nanoseconds.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use plimsoll_core::histogram::{EncodedHistogram, HistogramError};

use crate::text::{Read, ReadError, end, lines, number, text};

/// Latencies by tag; without tags there is one, empty tag.
#[derive(Clone, Debug, PartialEq)]
pub struct HdrLog {
    /// By tag.
    pub tags: BTreeMap<String, Latencies>,
    /// The end of the last interval minus the start of the first.
    pub seconds: f64,
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latencies {
    /// Operations.
    pub count: u64,
    pub mean_ms: f64,
    /// 50th percentile.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Greatest.
    pub max_ms: f64,
}

/// Whether this is such a log.
pub fn is_hdr_log(head: &str) -> bool {
    head.lines()
        .any(|line| line.starts_with("#[Histogram log format version"))
}

/// Reads a log and adds its intervals up.
pub fn read(bytes: &[u8]) -> Read<HdrLog> {
    let all = text(bytes);
    let mut sums: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    let (mut from, mut until) = (f64::INFINITY, f64::NEG_INFINITY);
    for (n, line) in lines(&all) {
        if line.starts_with('#') || line.starts_with("\"StartTimestamp\"") || line.trim().is_empty()
        {
            continue;
        }
        let (tag, rest) = match line.strip_prefix("Tag=") {
            Some(rest) => rest
                .split_once(',')
                .ok_or_else(|| ReadError::new(n, "nothing is behind its tag"))?,
            None => ("", line),
        };
        let cells: Vec<&str> = rest.splitn(4, ',').collect();
        let [start, length, _, payload] = cells[..] else {
            return Err(ReadError::new(
                n,
                "it has no start, length, maximum and histogram",
            ));
        };
        let (start, length) = (number(start, n)?, number(length, n)?);
        (from, until) = (from.min(start), until.max(start + length));
        let histogram = EncodedHistogram(payload.trim().to_owned())
            .decode()
            .map_err(|error| ReadError::new(n, problem(error)))?;
        let sum = sums.entry(tag.to_owned()).or_insert_with(|| {
            let mut sum = Histogram::new(3).expect("3 digits are allowed");
            sum.auto(true);
            sum
        });
        sum.add(&histogram)
            .map_err(|_| ReadError::new(n, "its histogram does not fit the others"))?;
    }
    if sums.is_empty() {
        return Err(ReadError::new(end(&all), "it has no intervals"));
    }
    let latencies = |histogram: &Histogram<u64>| {
        let ms = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1e6;
        Latencies {
            count: histogram.len(),
            mean_ms: histogram.mean() / 1e6,
            p50_ms: ms(0.5),
            p95_ms: ms(0.95),
            p99_ms: ms(0.99),
            p999_ms: ms(0.999),
            max_ms: histogram.max() as f64 / 1e6,
        }
    };
    Ok(HdrLog {
        tags: sums
            .iter()
            .map(|(tag, histogram)| (tag.clone(), latencies(histogram)))
            .collect(),
        seconds: until - from,
    })
}

fn problem(error: HistogramError) -> String {
    match error {
        HistogramError::Text(_) => "its histogram is not base64".to_owned(),
        HistogramError::Bytes(why) => format!("its histogram cannot be read: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(values_ns: impl Iterator<Item = u64>) -> String {
        let mut histogram: Histogram<u64> = Histogram::new(3).unwrap();
        values_ns.for_each(|value| histogram.record(value).unwrap());
        EncodedHistogram::of(&histogram).0
    }

    #[test]
    fn intervals_add_up_by_tag() {
        let (a, b) = (
            encoded((1..=50).map(|ms| ms * 1_000_000)),
            encoded((51..=100).map(|ms| ms * 1_000_000)),
        );
        let log = format!(
            "#[Histogram log format version \
            1.3]\n\"StartTimestamp\",\"x\"\nTag=read,0.0,1.0,50.0,{a}\nTag=read,1.0,1.0,100.0,{b}\nTag=write,1.0,1.5,50.0,{a}\n"
        );
        assert!(is_hdr_log(&log));
        let found = read(log.as_bytes()).unwrap();
        let read_ms = found.tags["read"];
        assert_eq!(
            (read_ms.count, found.tags["write"].count, found.seconds),
            (100, 50, 2.5)
        );
        assert!(
            (read_ms.p50_ms - 50.0).abs() < 0.1
                && (read_ms.p99_ms - 99.0).abs() < 0.1
                && (read_ms.mean_ms - 50.5).abs() < 0.1,
            "{read_ms:?}"
        );
        for (from, to, error) in [
            (a.as_str(), "!!!", "line 3: its histogram is not base64"),
            (
                "Tag=read,0.0",
                "Tag=read,x",
                "line 3: \"x\" is not a number",
            ),
        ] {
            assert_eq!(
                read(log.replacen(from, to, 1).as_bytes())
                    .unwrap_err()
                    .to_string(),
                error
            );
        }
        assert!(
            read(log.replacen(&a, "AAAA", 1).as_bytes())
                .unwrap_err()
                .reason
                .starts_with("its histogram cannot be read")
        );
    }
}
