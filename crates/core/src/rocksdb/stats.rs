//! What RocksDB says of itself: the text of its property `rocksdb.stats`, which db_bench prints
//! too.
//!
//! Layouts of RocksDB 6 to 11. Columns are found by the names in the header, because one was put
//! between the others in 10.3. A unit such as `GB` is there a power of 1024.

use std::collections::BTreeMap;

use crate::units::{GIB, SizeSyntax};

/// Under this many GiB the two decimals of the totals are too coarse for a ratio, and rates over
/// the same time are used instead.
const COARSE_GIB: f64 = 10.0;

/// A share of the time above this cannot be: some versions start to count stalls at an arbitrary
/// number.
const MOST_PERCENT: f64 = 101.0;

/// What the last statistics of a text say. What they do not say is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RocksdbStats {
    /// The Sum line of compactions by the names of columns: `Comp(sec)`, `W-Amp`, ... Sizes and
    /// columns with a suffix (`70M`) are left out.
    pub sum: Vec<(String, f64)>,
    /// Table files.
    pub files: Option<u64>,
    /// Size of the tree in GiB.
    pub lsm_gib: Option<f64>,
    /// Size of blob files in GiB.
    pub blob_gib: Option<f64>,
    /// Written by flushes and compactions.
    pub compaction: Option<Written>,
    /// Written by flushes, in GiB.
    pub flush_gib: Option<f64>,
    /// Ingested by writes.
    pub ingest: Option<Written>,
    /// Seconds the database was open.
    pub uptime_s: Option<f64>,
    /// Percent of that time in which writes were stalled, as printed: see
    /// [`RocksdbStats::stall_pct`].
    pub printed_stall_pct: Option<f64>,
    /// How often writes were slowed or stopped.
    pub stalls: Option<Stalls>,
}

/// Bytes since the database was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Written {
    /// GiB, of which two decimals are printed.
    pub gib: f64,
    /// MiB per second of the uptime.
    pub mib_per_s: Option<f64>,
}

/// Counts of write stalls since the database was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// Writes slowed and writes stopped, for whichever reason.
    pub total: u64,
    /// Whether they stand in the line `Stalls(count)`, as through 8.0: the only one that the
    /// scripts around db_bench read.
    pub is_classic: bool,
}

impl RocksdbStats {
    /// A column of the Sum line.
    pub fn of_sum(&self, name: &str) -> Option<f64> {
        self.sum
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| *value)
    }

    /// Bytes written by flushes and compactions per byte ingested.
    pub fn write_amplification(&self) -> Option<f64> {
        let (written, ingest) = (self.compaction?, self.ingest?);
        let of_rates = || Some(written.mib_per_s? / ingest.mib_per_s.filter(|rate| *rate > 0.0)?);
        let of_totals = || (ingest.gib > 0.0).then(|| written.gib / ingest.gib);
        if ingest.gib < COARSE_GIB {
            of_rates().or_else(of_totals)
        } else {
            of_totals()
        }
    }

    /// The same as the scripts around db_bench compute it, with flushes counted twice. None where
    /// the ingest is printed as zero.
    pub fn classic_write_amplification(&self) -> Option<f64> {
        let ingest = self.ingest.filter(|ingest| ingest.gib > 0.0)?;
        Some((self.compaction?.gib + self.flush_gib.unwrap_or(0.0)) / ingest.gib)
    }

    /// Percent of the uptime in which writes were stalled. None where what is printed is more than
    /// all of it.
    pub fn stall_pct(&self) -> Option<f64> {
        self.printed_stall_pct
            .filter(|percent| (0.0..=MOST_PERCENT).contains(percent))
    }

    /// The numbers under the names of metrics, for a step's notes.
    pub fn notes(&self) -> BTreeMap<String, f64> {
        let stalls = self.stalls.map(|stalls| stalls.total as f64);
        [
            ("lsm_gb", self.lsm_gib),
            ("lsm_files", self.files.map(|files| files as f64)),
            ("blob_gb", self.blob_gib),
            ("c_wgb", self.compaction.map(|written| written.gib)),
            (
                "c_mbps",
                self.compaction.and_then(|written| written.mib_per_s),
            ),
            ("flush_gb", self.flush_gib),
            ("ingest_gb", self.ingest.map(|ingest| ingest.gib)),
            ("w_amp", self.write_amplification()),
            (W_AMP_CLASSIC, self.classic_write_amplification()),
            ("w_amp_sum", self.of_sum("W-Amp")),
            ("c_wsecs", self.of_sum("Comp(sec)")),
            ("c_csecs", self.of_sum("CompMergeCPU(sec)")),
            ("b_rgb", self.of_sum("Rblob(GB)")),
            ("b_wgb", self.of_sum("Wblob(GB)")),
            ("uptime_s", self.uptime_s),
            ("stall_pct", self.stall_pct()),
            (PRINTED_STALL_PCT, self.printed_stall_pct),
            ("n_stall", stalls),
            (
                N_STALL_CLASSIC,
                stalls.filter(|_| self.stalls.is_some_and(|stalls| stalls.is_classic)),
            ),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
    }
}

/// The note of [`RocksdbStats::classic_write_amplification`].
pub const W_AMP_CLASSIC: &str = "w_amp_classic";
/// The note of the stall share as printed.
pub const PRINTED_STALL_PCT: &str = "stall_pct_printed";
/// The note of the stall count that the scripts around db_bench would print.
pub const N_STALL_CLASSIC: &str = "n_stall_classic";

/// Reads the statistics of a text; of several the last.
pub fn parse(text: &str) -> RocksdbStats {
    let mut stats = RocksdbStats::default();
    let mut header: Vec<&str> = Vec::new();
    for line in text.lines() {
        stats.take(line.trim_end(), &mut header);
    }
    stats
}

impl RocksdbStats {
    fn take<'a>(&mut self, line: &'a str, header: &mut Vec<&'a str>) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| {
            words
                .get(at)?
                .trim_end_matches(',')
                .parse::<f64>()
                .ok()
                .filter(|number| number.is_finite())
        };
        match words.first().copied() {
            Some("Level") if words.contains(&"Comp(sec)") => *header = words,
            Some("Sum") if !header.is_empty() => self.take_sum(header, &words),
            Some("Flush(GB):") => self.flush_gib = number(2),
            Some("Uptime(secs):") => self.uptime_s = number(1),
            Some("Stalls(count):") => {
                self.stalls = sum_of_causes(line)
                    .map(|total| Stalls {
                        total,
                        is_classic: true,
                    })
                    .or(self.stalls);
            }
            // Another line of this name counts the stops by memory of memtables, without totals.
            Some("Write")
                if line.starts_with("Write Stall (count): ") && line.contains("total-delays:") =>
            {
                let of = |name: &str| {
                    line.split_once(name)?
                        .1
                        .split([',', ' '])
                        .find(|word| !word.is_empty())?
                        .parse::<u64>()
                        .ok()
                };
                let total = of("total-delays:")
                    .zip(of("total-stops:"))
                    .and_then(|(delays, stops)| delays.checked_add(stops));
                self.stalls = total
                    .map(|total| Stalls {
                        total,
                        is_classic: false,
                    })
                    .or(self.stalls);
            }
            Some("Blob") => {
                self.blob_gib = after(line, "total size: ").and_then(size).or(self.blob_gib)
            }
            Some("Cumulative") => match words.get(1).copied() {
                Some("compaction:") => {
                    self.compaction = after(line, "compaction: ").and_then(written)
                }
                Some("writes:") => self.ingest = after(line, "ingest: ").and_then(written),
                Some("stall:") => {
                    let at = words.iter().position(|word| *word == "percent");
                    self.printed_stall_pct = at.and_then(|at| number(at.checked_sub(1)?));
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// The size has two words, every other column one.
    fn take_sum(&mut self, header: &[&str], words: &[&str]) {
        self.sum.clear();
        (self.files, self.lsm_gib) = (None, None);
        let mut place = 0;
        for name in header {
            let Some(word) = words.get(place) else { break };
            if *name == "Size" && words.get(place + 1).is_some_and(|unit| unit.ends_with('B')) {
                self.lsm_gib = size(&words[place..=place + 1].join(" "));
                place += 1;
            } else if *name == "Files" {
                self.files = word.split('/').next().and_then(|files| files.parse().ok());
            } else if let Some(value) = word.parse::<f64>().ok().filter(|value| value.is_finite()) {
                self.sum.push(((*name).to_owned(), value));
            }
            place += 1;
        }
    }
}

fn after<'a>(line: &'a str, what: &str) -> Option<&'a str> {
    line.split_once(what).map(|(_, rest)| rest)
}

/// `0.18 GB write, 39.78 MB/s write, ...` or `0.05 GB, 10.60 MB/s`.
fn written(text: &str) -> Option<Written> {
    let rate = text
        .split(',')
        .nth(1)
        .map(|part| part.split_whitespace().collect::<Vec<_>>());
    let mib_per_s =
        rate.and_then(|words| (words.get(1) == Some(&"MB/s")).then(|| words[0].parse().ok())?);
    Some(Written {
        gib: size(text)?,
        mib_per_s,
    })
}

/// `39.9 GB` and what is behind it: GiB.
fn size(text: &str) -> Option<f64> {
    let mut words = text
        .split_whitespace()
        .map(|word| word.trim_end_matches(','));
    let (number, unit) = (words.next()?, words.next()?);
    gib(number, unit)
}

/// A number with its unit in GiB.
pub fn gib(number: &str, unit: &str) -> Option<f64> {
    let factor = SizeSyntax::WITH_B.unit_bytes(unit)? as f64 / GIB as f64;
    Some(
        number
            .trim()
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())?
            * factor,
    )
}

/// The sum of the counts by cause; what is `with_compaction` is a part of the count before it.
fn sum_of_causes(line: &str) -> Option<u64> {
    let causes = after(line, ": ")?
        .split(", ")
        .filter(|cause| !cause.contains("with_compaction") && !cause.starts_with("interval"));
    let counts: Option<Vec<u64>> = causes
        .map(|cause| cause.split(' ').next()?.parse().ok())
        .collect();
    counts?.into_iter().try_fold(0u64, u64::checked_add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXTS: [(&str, &str); 5] = [
        (
            "6.29.5",
            include_str!("../../tests/samples/rocksdb.stats.6.29.5.txt"),
        ),
        (
            "8.0.0",
            include_str!("../../tests/samples/rocksdb.stats.8.0.0.txt"),
        ),
        (
            "8.9.1",
            include_str!("../../tests/samples/rocksdb.stats.8.9.1.txt"),
        ),
        (
            "10.10.1",
            include_str!("../../tests/samples/rocksdb.stats.10.10.1.txt"),
        ),
        (
            "11.8.1",
            include_str!("../../tests/samples/rocksdb.stats.11.8.1.txt"),
        ),
    ];

    fn of(version: &str) -> RocksdbStats {
        parse(TEXTS.iter().find(|(known, _)| *known == version).unwrap().1)
    }

    #[test]
    fn every_layout() {
        for (version, files, lsm_mib, written, ingest_rate, w_amp_sum, wall_s, cpu_s, uptime_s) in [
            (
                "6.29.5",
                20,
                32.32,
                (0.19, 25.14),
                6.40,
                4.1,
                9.21,
                1.09,
                7.8,
            ),
            (
                "8.0.0",
                21,
                33.80,
                (0.19, 47.37),
                12.06,
                4.1,
                2.10,
                0.61,
                4.1,
            ),
            (
                "8.9.1",
                23,
                33.86,
                (0.18, 37.91),
                10.11,
                3.9,
                3.20,
                0.56,
                4.9,
            ),
            (
                "10.10.1",
                22,
                33.68,
                (0.18, 39.78),
                10.60,
                3.9,
                2.66,
                0.53,
                4.7,
            ),
            (
                "11.8.1",
                21,
                32.01,
                (0.20, 55.04),
                13.65,
                4.2,
                1.74,
                0.41,
                3.7,
            ),
        ] {
            let stats = of(version);
            assert_eq!(
                (stats.files, stats.lsm_gib, stats.blob_gib),
                (Some(files), Some(lsm_mib / 1024.0), Some(0.0)),
                "{version}"
            );
            assert_eq!(
                stats.compaction,
                Some(Written {
                    gib: written.0,
                    mib_per_s: Some(written.1)
                }),
                "{version}"
            );
            assert_eq!(
                stats.ingest,
                Some(Written {
                    gib: 0.05,
                    mib_per_s: Some(ingest_rate)
                }),
                "{version}"
            );
            assert_eq!(
                (stats.flush_gib, stats.uptime_s),
                (Some(0.047), Some(uptime_s)),
                "{version}"
            );
            // By name: since 10.3 they stand one word further on.
            assert_eq!(
                ["W-Amp", "Comp(sec)", "CompMergeCPU(sec)"].map(|name| stats.of_sum(name)),
                [w_amp_sum, wall_s, cpu_s].map(Some)
            );
            assert_eq!(
                [
                    stats.of_sum("Rblob(GB)"),
                    stats.of_sum("Wblob(GB)"),
                    stats.of_sum("KeyIn")
                ],
                [Some(0.0), Some(0.0), None]
            );
            assert_eq!(
                stats.of_sum("WPreComp(GB)").is_some(),
                version.starts_with('1'),
                "{version}"
            );
        }
    }

    #[test]
    fn amplification_of_writes_with_flushes_once_and_twice() {
        // So little is ingested that its gigabytes have one digit: the rates know more.
        let small = of("8.9.1");
        assert_eq!(small.write_amplification(), Some(37.91 / 10.11));
        assert_eq!(
            small.classic_write_amplification(),
            Some((0.18 + 0.047) / 0.05)
        );
        let large = |ingest: &str| {
            let text = "Flush(GB): cumulative 15.900, x\nCumulative compaction: 0.04 TB write, \
                       400.00 MB/s write, x\n";
            parse(&format!(
                "{text}Cumulative writes: 5M writes, ingest: {ingest}\n"
            ))
        };
        assert_eq!(
            large("15.90 GB, 38.10 MB/s").write_amplification(),
            Some(40.96 / 15.9)
        );
        assert_eq!(
            large("15.90 GB, 38.10 MB/s").classic_write_amplification(),
            Some((40.96 + 15.9) / 15.9)
        );
        for nothing in ["0.00 GB, 0.00 MB/s", "-"] {
            assert_eq!(large(nothing).write_amplification(), None);
            assert_eq!(large(nothing).classic_write_amplification(), None);
        }
    }

    #[test]
    fn stalls_in_both_forms() {
        for (version, total, is_classic, percent) in [
            ("6.29.5", 14 + 5 + 5, true, Some(51.1)),
            ("8.0.0", 13 + 1 + 2, true, Some(10.2)),
            // The share was counted from an arbitrary number.
            ("8.9.1", 11 + 6, false, None),
            ("10.10.1", 12 + 2, false, Some(6.7)),
            ("11.8.1", 12 + 2, false, Some(4.7)),
        ] {
            let stats = of(version);
            assert_eq!(
                (stats.stalls, stats.stall_pct()),
                (Some(Stalls { total, is_classic }), percent),
                "{version}"
            );
            let notes = stats.notes();
            assert_eq!(
                (notes["n_stall"], notes.contains_key(N_STALL_CLASSIC)),
                (total as f64, is_classic),
                "{version}"
            );
            assert!(
                notes[PRINTED_STALL_PCT] > 4.0
                    && notes.contains_key("stall_pct") == percent.is_some(),
                "{version}"
            );
        }
        assert_eq!(of("8.9.1").printed_stall_pct, Some(145_502_290_115.2));
    }

    #[test]
    fn of_several_statistics_the_last_stand() {
        let both = format!("{}{}", TEXTS[0].1, TEXTS[4].1);
        assert_eq!(parse(&both), of("11.8.1"));
        assert_eq!(parse(""), RocksdbStats::default());
        assert!(parse("").notes().is_empty());
    }

    #[test]
    fn units_of_sizes() {
        for (number, unit, gib_of) in [
            ("40", "GB", Some(40.0)),
            ("512", "MB", Some(0.5)),
            ("2", "TB", Some(2048.0)),
            ("1", "PB", None),
            ("x", "GB", None),
        ] {
            assert_eq!(gib(number, unit), gib_of, "{number} {unit}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[ -~\n]{0,200}") {
            parse(&text).notes();
        }

        #[test]
        fn cut_and_torn_texts_do_not_panic(which in 0usize..5, from in 0usize..4000, to in 0usize..4000) {
            let text = TEXTS[which].1;
            let (from, to) = (from.min(text.len()), to.min(text.len()));
            if from < to {
                parse(&text[from..to]).notes();
            }
        }
    }
}
