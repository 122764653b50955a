//! What db_bench prints of one benchmark, in both generations of its result line.

use crate::rocksdb_stats::{self, RocksdbStats};

/// So begins what db_bench warns of, among the options of a build.
pub const WARNING: &str = "db_bench warns: ";

/// Which result line it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// Through RocksDB 7.2: rate and latency.
    V1,
    /// From 7.3: with seconds and operations.
    V2,
}

impl Line {
    /// The name in eras.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "db_bench through 7.2",
            Self::V2 => "db_bench since 7.3",
        }
    }
}

/// One benchmark. What the output does not say is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The result line's generation.
    pub line: Line,
    /// The benchmark that the result is of: `readrandom`.
    pub benchmark: String,
    /// Operations per second, as printed.
    pub ops_sec: String,
    /// Thread time per operation in microseconds, as printed.
    pub usec_op: String,
    /// MiB per second, as printed.
    pub mb_sec: Option<String>,
    /// Seconds and operations, since 7.3.
    pub operations: Option<(f64, u64)>,
    /// Keys that one thread found, and keys that it looked for.
    pub found: Option<(u64, u64)>,
    /// Latencies that were counted, and their mean in microseconds.
    pub latencies: Option<(u64, f64)>,
    /// Percentiles 50, 99, 99.9 and 99.99 in microseconds.
    pub percentiles: [Option<f64>; 4],
    /// The longest operation in microseconds.
    pub max_us: Option<f64>,
    /// Counts by latency: above the first and up to the second number of microseconds.
    pub buckets: Vec<(u64, u64, u64)>,
    /// Statistics of RocksDB.
    pub stats: RocksdbStats,
    /// The version of RocksDB.
    pub version: Option<String>,
    /// Why the numbers should not be believed: assertions, no optimisation.
    pub warnings: Vec<String>,
}

impl Output {
    /// Operations per second: by seconds and operations where they are printed.
    pub fn rate(&self) -> Option<f64> {
        let exact = self
            .operations
            .filter(|(seconds, _)| *seconds > 0.0)
            .map(|(seconds, count)| count as f64 / seconds);
        exact.or_else(|| self.ops_sec.parse().ok())
    }
}

/// `readrandom : 10.5 micros/op 95000 ops/sec ...`: name and words.
pub fn result_words(line: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = line.split_once(" : ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_result = words.get(1) == Some(&"micros/op")
        && words
            .get(3)
            .is_some_and(|word| word.trim_end_matches(';') == "ops/sec");
    (is_result && !name.trim().contains(' ')).then_some((name.trim(), words))
}

/// Reads what db_bench printed; of several benchmarks the last. `None` without a result line: it
/// failed, or the text is cut.
pub fn parse(text: &str) -> Option<Output> {
    let (at, (benchmark, words)) = text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at, result_words(line)?)))
        .last()?;
    let before = |unit: &str| {
        words
            .iter()
            .position(|word| word.trim_end_matches(';') == unit)
            .and_then(|i| Some(words[i.checked_sub(1)?]))
    };
    let operations = before("seconds").zip(before("operations"));
    let mut output = Output {
        line: if operations.is_some() {
            Line::V2
        } else {
            Line::V1
        },
        benchmark: benchmark.to_owned(),
        ops_sec: words[2].to_owned(),
        usec_op: words[0].to_owned(),
        mb_sec: before("MB/s").map(str::to_owned),
        operations: operations
            .and_then(|(seconds, count)| Some((seconds.parse().ok()?, count.parse().ok()?))),
        found: found(&words),
        latencies: None,
        percentiles: [None; 4],
        max_us: None,
        buckets: Vec::new(),
        stats: rocksdb_stats::parse(text),
        version: None,
        warnings: Vec::new(),
    };
    for line in text.lines() {
        match line.split_whitespace().next() {
            Some("RocksDB:") if line.contains("version") => {
                output.version = line.split_whitespace().nth(2).map(str::to_owned)
            }
            Some("WARNING:") => output.warnings.push(line.trim().to_owned()),
            _ => {}
        }
    }
    // What follows statistics are latencies of reads from files.
    text.lines()
        .skip(at)
        .take_while(|line| !line.starts_with("** "))
        .for_each(|line| output.take_latency(line));
    Some(output)
}

/// `(8000 of 7999 found)`.
fn found(words: &[&str]) -> Option<(u64, u64)> {
    let at = words.iter().position(|word| *word == "found)")?;
    let of = |back: usize| {
        words
            .get(at.checked_sub(back)?)?
            .trim_start_matches('(')
            .parse()
            .ok()
    };
    Some((of(3)?, of(1)?))
}

impl Output {
    fn take_latency(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| -> Option<f64> {
            words
                .get(words.iter().position(|word| *word == name)? + 1)?
                .parse()
                .ok()
        };
        match words.first().copied() {
            Some("Count:") => {
                let count = words.get(1).and_then(|count| count.parse().ok());
                self.latencies = count.zip(after("Average:"));
            }
            Some("Percentiles:") => {
                self.percentiles = ["P50:", "P99:", "P99.9:", "P99.99:"].map(after)
            }
            Some("Min:") if words.contains(&"Max:") => self.max_us = after("Max:"),
            // `(      76,     110 ]        5   0.003%  99.975%`
            Some("(" | "[") => {
                let number = |at: usize| words.get(at)?.trim_end_matches(',').parse::<u64>().ok();
                self.buckets.extend(
                    number(1)
                        .zip(number(2))
                        .zip(number(4))
                        .map(|((above, up_to), count)| (above, up_to, count)),
                );
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: &str = include_str!("../../tests/samples/db_bench.7.8.3.readwhilewriting.txt");

    #[test]
    fn an_output_since_7_3() {
        let output = parse(READ).unwrap();
        assert_eq!(
            (
                output.line,
                output.benchmark.as_str(),
                output.ops_sec.as_str()
            ),
            (Line::V2, "readwhilewriting", "5244")
        );
        assert_eq!(
            (
                output.usec_op.as_str(),
                output.mb_sec.as_deref(),
                output.operations
            ),
            ("378.806", Some("2.1"), Some((3.051, 15998)))
        );
        assert_eq!(
            (output.found, output.latencies),
            (Some((7999, 7999)), Some((15998, 378.816)))
        );
        assert_eq!(
            (output.percentiles, output.max_us),
            (
                [Some(148.09), Some(2267.94), Some(37639.45), Some(186_008.0)],
                Some(201_607.0)
            )
        );
        assert_eq!(
            output
                .buckets
                .iter()
                .map(|(_, _, count)| count)
                .sum::<u64>(),
            15998
        );
        assert!(
            output.buckets.windows(2).all(|pair| pair[0].1 <= pair[1].0),
            "{:?}",
            output.buckets
        );
        assert_eq!(
            (output.version.as_deref(), output.warnings.len()),
            (Some("7.8.3"), 1)
        );
        assert!((output.rate().unwrap() - 15998.0 / 3.051).abs() < 1e-9);
        assert!(output.stats.ingest.is_some() && output.stats.of_sum("Comp(sec)").is_some());
    }

    #[test]
    fn an_output_through_7_2() {
        for (line, mb_sec, found) in [
            (
                "readrandom   :       2.527 micros/op 395656 ops/sec;   38.1 MB/s (1000 of 1000 \
                found)",
                Some("38.1"),
                Some((1000, 1000)),
            ),
            (
                "multireadrandom : 6.1 micros/op 395656 ops/sec; (90 of 100 found)",
                None,
                Some((90, 100)),
            ),
            (
                "fillseq : 6.1 micros/op 395656 ops/sec;   67.2 MB/s",
                Some("67.2"),
                None,
            ),
        ] {
            let output = parse(line).unwrap();
            assert_eq!(
                (output.line, output.ops_sec.as_str(), output.operations),
                (Line::V1, "395656", None)
            );
            assert_eq!(
                (output.mb_sec.as_deref(), output.found, output.rate()),
                (mb_sec, found, Some(395_656.0))
            );
        }
        assert_eq!(parse("RocksDB: version 6.17\n"), None);
    }

    #[test]
    fn latencies_of_reads_from_files_are_not_those_of_operations() {
        let with = READ.replace(
            "** File Read Latency Histogram By Level [default] **\n",
            "** File Read Latency Histogram By Level [default] **\n** Level 0 read latency \
            histogram (micros):\nCount: 9 Average: 1.0  StdDev: 0\nMin: 0  Median: 0.5  Max: \
            3\nPercentiles: P50: 1.50 P75: 2.00 P99: 3.00 P99.9: 3.00 P99.99: 3.00\n",
        );
        assert_ne!(with, READ);
        assert_eq!(parse(&with), parse(READ));
    }
}
