//! `benchmark_<step>.log`: what db_bench prints, in both generations of its result line.
//!
//! Complete logs of the older generation are not at hand: its line is read as its format is described.

use crate::text::{Read, ReadError, end, lines, number, text};

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

/// One step. What the log does not print is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct Log {
    /// The result line's generation.
    pub line: Line,
    /// The benchmark that the result is of: `readrandom`.
    pub benchmark: String,
    /// Operations per second, as printed.
    pub ops_sec: String,
    /// Thread time per operation in microseconds, as printed.
    pub usec_op: String,
    /// MiB per second.
    pub mb_sec: Option<String>,
    /// Operations and seconds, since 7.3.
    pub operations: Option<(f64, u64)>,
    /// Percentiles 50, 99, 99.9 and 99.99 in microseconds.
    pub percentiles: [Option<f64>; 4],
    /// The longest operation in microseconds.
    pub max_us: Option<f64>,
    /// Statistics of compaction, by the names of columns, of the last Sum line: `Comp(sec)`, `W-Amp`, ...
    pub sum: Vec<(String, f64)>,
    /// Size of the tree in GiB.
    pub lsm_gib: Option<f64>,
    /// Size of blob files in GiB.
    pub blob_gib: Option<f64>,
    /// Written by flushes and compactions, in GiB, and MiB per second of it.
    pub compaction: Option<(f64, f64)>,
    /// Written by flushes in GiB.
    pub flush_gib: Option<f64>,
    /// Ingested by writes in GiB.
    pub ingest_gib: Option<f64>,
    /// Seconds the database was open.
    pub uptime_s: Option<f64>,
    /// Percent of the time that writes were stalled.
    pub stall_pct: Option<f64>,
    /// Write stalls.
    pub stalls: Option<u64>,
    /// The version.
    pub version: Option<String>,
    /// Why the numbers should not be believed: assertions, no optimisation.
    pub warnings: Vec<String>,
}

impl Log {
    /// A column of the Sum line.
    pub fn of_sum(&self, name: &str) -> Option<f64> {
        self.sum.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Write amplification as the scripts compute it, with flushes counted twice, and without that.
    pub fn write_amplification(&self) -> Option<(f64, f64)> {
        let ingest = self.ingest_gib.filter(|ingest| *ingest > 0.0)?;
        let (written, _) = self.compaction?;
        Some(((written + self.flush_gib.unwrap_or(0.0)) / ingest, written / ingest))
    }
}

/// Whether this is a log of db_bench.
pub fn is_log(all: &str) -> bool {
    all.lines().any(|line| result_words(line).is_some())
        || all.lines().take(60).any(|line| line.starts_with("RocksDB:") && line.contains("version"))
}

/// `readrandom : 10.5 micros/op 95000 ops/sec ...`.
fn result_words(line: &str) -> Option<(&str, Vec<&str>)> {
    let (name, rest) = line.split_once(" : ")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let is_result = words.get(1) == Some(&"micros/op") && words.get(3).is_some_and(|word| word.trim_end_matches(';') == "ops/sec");
    (is_result && !name.trim().contains(' ')).then_some((name.trim(), words))
}

/// Reads a log.
pub fn read(bytes: &[u8]) -> Read<Log> {
    let all = text(bytes);
    let result = lines(&all).filter_map(|(n, line)| Some((n, result_words(line)?))).last();
    let (n, (benchmark, words)) =
        result.ok_or_else(|| ReadError::new(end(&all), "it has no line with micros/op: the step failed or the file is truncated"))?;
    number(words[0], n)?;
    number(words[2], n)?;
    let before = |unit: &str| words.iter().position(|word| word.trim_end_matches(';') == unit).and_then(|i| Some(words[i.checked_sub(1)?]));
    let operations = before("seconds").zip(before("operations"));
    let mut log = Log {
        line: if operations.is_some() { Line::V2 } else { Line::V1 },
        benchmark: benchmark.to_owned(),
        ops_sec: words[2].to_owned(),
        usec_op: words[0].to_owned(),
        mb_sec: before("MB/s").map(str::to_owned),
        operations: operations.and_then(|(seconds, count)| Some((seconds.parse().ok()?, count.parse().ok()?))),
        percentiles: [None; 4],
        max_us: None,
        sum: Vec::new(),
        lsm_gib: None,
        blob_gib: None,
        compaction: None,
        flush_gib: None,
        ingest_gib: None,
        uptime_s: None,
        stall_pct: None,
        stalls: None,
        version: None,
        warnings: Vec::new(),
    };
    let mut header: Vec<&str> = Vec::new();
    for line in all.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| -> Option<f64> { words.get(words.iter().position(|word| *word == name)? + 1)?.parse().ok() };
        match words.first().copied() {
            Some("Percentiles:") => log.percentiles = ["P50:", "P99:", "P99.9:", "P99.99:"].map(after),
            Some("Min:") if words.contains(&"Max:") => log.max_us = after("Max:"),
            Some("Level") if words.contains(&"Comp(sec)") => header.clone_from(&words),
            Some("Sum") if !header.is_empty() => (log.sum, log.lsm_gib) = sum_line(&header, &words),
            Some("Flush(GB):") => log.flush_gib = words.get(2).and_then(|word| word.trim_end_matches(',').parse().ok()),
            Some("Uptime(secs):") => log.uptime_s = words.get(1).and_then(|word| word.parse().ok()),
            Some("RocksDB:") if words.get(1) == Some(&"version") => log.version = words.get(2).map(|word| (*word).to_owned()),
            Some("WARNING:") => log.warnings.push(crate::text::shown(line)),
            _ => {}
        }
        if let Some(rest) = line.strip_prefix("Cumulative compaction: ") {
            let parts: Vec<&str> = rest.split_whitespace().collect();
            let rate = parts.get(3).and_then(|word| word.parse().ok());
            log.compaction = size(&parts).zip(rate);
        } else if line.starts_with("Cumulative writes: ") {
            let rest = line.split_once("ingest: ").map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
            log.ingest_gib = size(&rest);
        } else if line.starts_with("Cumulative stall: ") {
            let percent = words.iter().position(|word| *word == "percent").and_then(|i| words[i.checked_sub(1)?].parse().ok());
            log.stall_pct = percent;
        } else if line.starts_with("Blob file count: ") {
            let rest = line.split_once("total size: ").map(|(_, rest)| rest.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
            log.blob_gib = size(&rest);
        } else if line.starts_with("Stalls(count): ") {
            log.stalls = stalls(line);
        } else if line.starts_with("Write Stall (count): ") && line.contains("total-delays:") {
            let of = |name: &str| -> Option<u64> { line.split_once(name)?.1.split([',', ' ']).find(|word| !word.is_empty())?.parse().ok() };
            log.stalls = of("total-delays:").zip(of("total-stops:")).and_then(|(delays, stops)| delays.checked_add(stops));
        }
    }
    Ok(log)
}

/// The sum of the counts by cause; what is `with_compaction` is a part of the count before it.
fn stalls(line: &str) -> Option<u64> {
    let causes = line.split_once(": ")?.1.split(", ").filter(|cause| !cause.contains("with_compaction") && !cause.starts_with("interval"));
    let counts: Option<Vec<u64>> = causes.map(|cause| cause.split(' ').next()?.parse().ok()).collect();
    counts?.into_iter().try_fold(0u64, u64::checked_add)
}

/// `39.9 GB`: words of number and unit.
fn size(words: &[&str]) -> Option<f64> {
    let (number, unit) = (words.first()?, words.get(1)?.trim_end_matches(','));
    super::rows::gib(&format!("{number}{unit}"))
}

/// Columns by name: the size has two words, everything else one.
fn sum_line(header: &[&str], words: &[&str]) -> (Vec<(String, f64)>, Option<f64>) {
    let mut columns = Vec::new();
    let mut lsm = None;
    let mut place = 0;
    for name in header {
        if *name == "Size" && words.get(place + 1).is_some_and(|word| word.ends_with('B')) {
            lsm = size(&words[place..]);
            place += 1;
        } else if let Some(value) = words.get(place).and_then(|word| word.parse::<f64>().ok()) {
            columns.push(((*name).to_owned(), value));
        }
        place += 1;
    }
    (columns, lsm)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = include_str!("../../tests/samples/db_bench.log");

    #[test]
    fn a_log_since_7_3() {
        let log = read(V2.as_bytes()).unwrap();
        assert_eq!((log.line, log.benchmark.as_str(), log.ops_sec.as_str()), (Line::V2, "overwrite", "95000"));
        assert_eq!((log.usec_op.as_str(), log.mb_sec.as_deref(), log.operations), ("21.050", Some("38.1"), Some((60.001, 5_700_095))));
        assert_eq!((log.percentiles, log.max_us), ([Some(15.5), Some(80.25), Some(300.0), Some(900.0)], Some(12345.0)));
        assert_eq!((log.lsm_gib, log.blob_gib, log.compaction), (Some(15.5), Some(0.0), Some((39.9, 417.8))));
        assert_eq!(
            (log.of_sum("Comp(sec)"), log.of_sum("CompMergeCPU(sec)"), log.of_sum("Wblob(GB)")),
            (Some(122.4), Some(121.3), Some(0.2))
        );
        assert_eq!((log.uptime_s, log.stall_pct, log.stalls), (Some(98.0), Some(1.5), Some(7)));
        let (classic, clean) = log.write_amplification().unwrap();
        assert_eq!((format!("{classic:.1}"), format!("{clean:.1}")), ("3.5".to_owned(), "2.5".to_owned()));
        assert_eq!((log.version.as_deref(), log.warnings.len()), (Some("8.9"), 1));
    }

    #[test]
    fn columns_are_found_by_name_in_the_layout_since_10_3() {
        // One more column after Write(GB), and another way to tell stalls.
        let shifted = V2.replace("Write(GB) Wnew", "Write(GB) WPreComp(GB) Wnew").replace(" 39.9 36.0 ", " 39.9 39.9 36.0 ");
        assert_ne!(shifted, V2);
        assert_eq!(read(shifted.as_bytes()).unwrap().of_sum("Comp(sec)"), Some(122.4));
        let stalls = V2
            .lines()
            .map(|line| if line.starts_with("Stalls(") { "Write Stall (count): cf-l0: 1, total-delays: 4, total-stops: 2" } else { line });
        assert_eq!(read(stalls.collect::<Vec<_>>().join("\n").as_bytes()).unwrap().stalls, Some(6));
    }

    #[test]
    fn a_line_through_7_2() {
        let log = read(b"readrandom   :       2.527 micros/op 395656 ops/sec;   38.1 MB/s (1000 of 1000 found)\n").unwrap();
        assert_eq!((log.line, log.ops_sec.as_str(), log.mb_sec.as_deref(), log.operations), (Line::V1, "395656", Some("38.1"), None));
        let log = read(b"multireadrandom : 6.1 micros/op 163934 ops/sec; (100 of 100 found)\n").unwrap();
        assert_eq!((log.line, log.ops_sec.as_str(), log.mb_sec), (Line::V1, "163934", None));
        assert!(read(b"RocksDB: version 6.17\n").unwrap_err().reason.contains("the step failed"));
    }
}
