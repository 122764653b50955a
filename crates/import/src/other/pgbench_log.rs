//! `pgbench_log.*`: a line per transaction, or per interval.

use crate::text::{Read, ReadError, count, lines, text};

/// What a log tells.
#[derive(Clone, Debug, PartialEq)]
pub struct PgbenchLog {
    pub transactions: u64,
    /// Seconds from the first to the last line's end; an interval's length counts.
    pub seconds: f64,
    /// Mean latency in milliseconds.
    pub mean_ms: f64,
    /// The longest, in milliseconds.
    pub max_ms: f64,
    /// 50th, 95th, 99th and 99.9th percentile in milliseconds; only of single transactions.
    pub percentiles_ms: Option<[f64; 4]>,
}

/// Seconds since 1970 that a time must reach to be one: in 2001.
const A_TIME: u64 = 1_000_000_000;

/// Whether this looks like such a log: whole numbers, a time in the first or the fifth place.
pub fn is_pgbench_log(head: &str) -> bool {
    head.lines()
        .next()
        .is_some_and(|line| layout(line).is_some())
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Transactions,
    Intervals,
}

fn layout(line: &str) -> Option<Layout> {
    let words: Vec<u64> = line
        .split(' ')
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    match words.as_slice() {
        [time, _, _, _, _, _, ..] if *time >= A_TIME => Some(Layout::Intervals),
        [_, _, _, _, time, us, ..] if *time >= A_TIME && *us < 1_000_000 => {
            Some(Layout::Transactions)
        }
        _ => None,
    }
}

pub fn read(bytes: &[u8]) -> Read<PgbenchLog> {
    let all = text(bytes);
    let first = all.lines().next().unwrap_or_default();
    let layout = layout(first)
        .ok_or_else(|| ReadError::new(1, "it is not a log of transactions or intervals"))?;
    let mut latencies_us: Vec<u64> = Vec::new();
    let (mut transactions, mut sum_us, mut max_us) = (0u64, 0f64, 0u64);
    let (mut from, mut until) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut starts: Vec<u64> = Vec::new();
    for (n, line) in lines(&all).filter(|(_, line)| !line.is_empty()) {
        let words: Vec<&str> = line.split(' ').collect();
        if words.len() < 6 {
            return Err(ReadError::new(
                n,
                format!("{} fields where at least 6 belong", words.len()),
            ));
        }
        if layout == Layout::Transactions {
            // A skipped or failed transaction has a word in place of its latency.
            let Ok(latency_us) = words[2].parse::<u64>() else {
                continue;
            };
            let end_s = count(words[4], n)? as f64 + count(words[5], n)? as f64 / 1e6;
            (from, until) = (from.min(end_s - latency_us as f64 / 1e6), until.max(end_s));
            latencies_us.push(latency_us);
            transactions += 1;
            sum_us += latency_us as f64;
            max_us = max_us.max(latency_us);
        } else {
            starts.push(count(words[0], n)?);
            transactions = transactions.saturating_add(count(words[1], n)?);
            sum_us += count(words[2], n)? as f64;
            max_us = max_us.max(count(words[5], n)?);
        }
    }
    let seconds = match (layout, &starts[..]) {
        (Layout::Intervals, [first, .., before, last]) => {
            last.saturating_sub(*first) as f64 + last.saturating_sub(*before) as f64
        }
        (Layout::Intervals, [first, last]) => 2.0 * last.saturating_sub(*first) as f64,
        (Layout::Intervals, _) => 1.0,
        _ => until - from,
    };
    if transactions == 0 {
        return Err(ReadError::new(1, "it has no transactions"));
    }
    latencies_us.sort_unstable();
    let percentile = |share: f64| {
        let place = (share * latencies_us.len() as f64).ceil() as usize;
        latencies_us
            .get(place.max(1) - 1)
            .map_or(0.0, |us| *us as f64 / 1e3)
    };
    Ok(PgbenchLog {
        transactions,
        seconds,
        mean_ms: sum_us / transactions as f64 / 1e3,
        max_ms: max_us as f64 / 1e3,
        percentiles_ms: (layout == Layout::Transactions)
            .then(|| [0.5, 0.95, 0.99, 0.999].map(percentile)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_and_intervals() {
        let lines: String = (1..=100)
            .map(|i| format!("0 {i} {} 0 1700000{:03} 0\n", i * 1000, 100 + i))
            .collect();
        assert!(is_pgbench_log(&lines));
        let log = read(format!("{lines}0 101 skipped 0 1700000300 0\n").as_bytes()).unwrap();
        assert_eq!(
            (log.transactions, log.max_ms, log.mean_ms),
            (100, 100.0, 50.5)
        );
        assert_eq!(log.percentiles_ms, Some([50.0, 95.0, 99.0, 100.0]));
        assert!((log.seconds - 99.001).abs() < 1e-3);
        let intervals = "1700000000 100 50000 1 100 900\n1700000005 300 150000 1 100 1900\n";
        let log = read(intervals.as_bytes()).unwrap();
        assert_eq!(
            (
                log.transactions,
                log.seconds,
                log.mean_ms,
                log.max_ms,
                log.percentiles_ms
            ),
            (400, 10.0, 0.5, 1.9, None)
        );
        assert!(!is_pgbench_log("1 2 3 4 5 6\n"));
        assert_eq!(
            read(b"1700000000 100 50000 1 100 900\n1 2\n")
                .unwrap_err()
                .to_string(),
            "line 2: 2 fields where at least 6 belong"
        );
    }
}
