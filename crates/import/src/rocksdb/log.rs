//! `benchmark_<step>.log`: what db_bench prints, in both generations of its result line.

pub use plimsoll_core::db_bench::{Line, Output as Log};
use plimsoll_core::db_bench::{parse, result_words};

use crate::text::{Read, ReadError, end, lines, number, shown, text};

/// Whether this is a log of db_bench.
pub fn is_log(all: &str) -> bool {
    all.lines().any(|line| result_words(line).is_some())
        || all
            .lines()
            .take(60)
            .any(|line| line.starts_with("RocksDB:") && line.contains("version"))
}

pub fn read(bytes: &[u8]) -> Read<Log> {
    let all = text(bytes);
    let failed = || {
        ReadError::new(
            end(&all),
            "it has no line with micros/op: the step failed or the file is truncated",
        )
    };
    let (n, words) = lines(&all)
        .filter_map(|(n, line)| Some((n, result_words(line)?.1)))
        .last()
        .ok_or_else(failed)?;
    number(words[0], n)?;
    number(words[2], n)?;
    let mut log = parse(&all).ok_or_else(failed)?;
    log.warnings
        .iter_mut()
        .for_each(|warning| *warning = shown(warning));
    Ok(log)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = include_str!("../../tests/samples/db_bench.log");

    #[test]
    fn a_log_since_7_3() {
        let log = read(V2.as_bytes()).unwrap();
        assert_eq!(
            (log.line, log.benchmark.as_str(), log.ops_sec.as_str()),
            (Line::V2, "overwrite", "95000")
        );
        assert_eq!(
            (log.usec_op.as_str(), log.mb_sec.as_deref(), log.operations),
            ("21.050", Some("38.1"), Some((60.001, 5_700_095)))
        );
        assert_eq!(
            (log.percentiles, log.max_us),
            (
                [Some(15.5), Some(80.25), Some(300.0), Some(900.0)],
                Some(12345.0)
            )
        );
        assert_eq!(
            (log.stats.lsm_gib, log.stats.blob_gib),
            (Some(15.5), Some(0.0))
        );
        assert_eq!(
            (
                log.stats.of_sum("Comp(sec)"),
                log.stats.of_sum("CompMergeCPU(sec)"),
                log.stats.of_sum("Wblob(GB)")
            ),
            (Some(122.4), Some(121.3), Some(0.2))
        );
        let stats = &log.stats;
        assert_eq!(
            (
                stats.uptime_s,
                stats.stall_pct(),
                stats.stalls.map(|stalls| stalls.total)
            ),
            (Some(98.0), Some(1.5), Some(7))
        );
        let (classic, clean) = (
            stats.classic_write_amplification().unwrap(),
            stats.write_amplification().unwrap(),
        );
        assert_eq!(
            (format!("{classic:.1}"), format!("{clean:.1}")),
            ("3.5".to_owned(), "2.5".to_owned())
        );
        assert_eq!(
            (log.version.as_deref(), log.warnings.len()),
            (Some("8.9"), 1)
        );
    }

    #[test]
    fn columns_are_found_by_name_in_the_layout_since_10_3() {
        // One more column after Write(GB), and another way to tell stalls.
        let shifted = V2
            .replace("Write(GB) Wnew", "Write(GB) WPreComp(GB) Wnew")
            .replace(" 39.9 36.0 ", " 39.9 39.9 36.0 ");
        assert_ne!(shifted, V2);
        assert_eq!(
            read(shifted.as_bytes()).unwrap().stats.of_sum("Comp(sec)"),
            Some(122.4)
        );
        let stalls = V2.lines().map(|line| {
            if line.starts_with("Stalls(") {
                "Write Stall (count): cf-l0: 1, total-delays: 4, total-stops: 2"
            } else {
                line
            }
        });
        assert_eq!(
            read(stalls.collect::<Vec<_>>().join("\n").as_bytes())
                .unwrap()
                .stats
                .stalls
                .map(|stalls| stalls.total),
            Some(6)
        );
    }

    #[test]
    fn a_line_through_7_2() {
        let log = read(
            b"readrandom   :       2.527 micros/op 395656 ops/sec;   38.1 MB/s (1000 of 1000 \
             found)\n",
        )
        .unwrap();
        assert_eq!(
            (
                log.line,
                log.ops_sec.as_str(),
                log.mb_sec.as_deref(),
                log.operations
            ),
            (Line::V1, "395656", Some("38.1"), None)
        );
        let log =
            read(b"multireadrandom : 6.1 micros/op 163934 ops/sec; (100 of 100 found)\n").unwrap();
        assert_eq!(
            (log.line, log.ops_sec.as_str(), log.mb_sec),
            (Line::V1, "163934", None)
        );
        assert!(
            read(b"RocksDB: version 6.17\n")
                .unwrap_err()
                .reason
                .contains("the step failed")
        );
    }
}
