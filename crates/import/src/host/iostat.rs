//! `iostat -kx N` as text, in the column layouts of four generations.
//!
//! Columns are found by the names in the header, so that every layout of sysstat with `r/s`, `w/s`
//! and kilobytes is read.

use std::collections::BTreeMap;

use crate::text::{Read, ReadError, end, lines, text};

/// The layout by the names and places of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `rrqm/s wrqm/s r/s w/s rkB/s wkB/s`: Ubuntu 16.04.
    Ubuntu16,
    /// `r/s w/s rkB/s wkB/s`: Ubuntu 18.04.
    Ubuntu18,
    /// `r/s rkB/s ... w/s wkB/s` and `aqu-sz` in field 20: Ubuntu 20.04.
    Ubuntu20,
    /// The same with `f_await` in field 21: Ubuntu 22.04 and 24.04.
    Ubuntu22,
    /// Another order of the same columns.
    Other,
}

impl Dialect {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ubuntu16 => "iostat of Ubuntu 16.04",
            Self::Ubuntu18 => "iostat of Ubuntu 18.04",
            Self::Ubuntu20 => "iostat of Ubuntu 20.04",
            Self::Ubuntu22 => "iostat of Ubuntu 22.04",
            Self::Other => "iostat",
        }
    }

    /// `header` without its first word.
    fn of(header: &[&str]) -> Self {
        let at = |name: &str| header.iter().position(|word| *word == name).map(|i| i + 2);
        match (at("r/s"), at("w/s"), at("rkB/s"), at("wkB/s")) {
            (Some(4), Some(5), Some(6), Some(7)) => Self::Ubuntu16,
            (Some(2), Some(3), Some(4), Some(5)) => Self::Ubuntu18,
            (Some(2), Some(8), Some(3), Some(9)) => match (at("aqu-sz"), at("f_await")) {
                (Some(20), _) => Self::Ubuntu20,
                (_, Some(21)) => Self::Ubuntu22,
                _ => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

/// Rates of a device in one sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// Reads per second.
    pub reads: f64,
    /// KiB read per second.
    pub read_kib: f64,
    /// Writes per second.
    pub writes: f64,
    /// KiB written per second.
    pub written_kib: f64,
}

/// The samples of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Iostat {
    /// The layout.
    pub dialect: Dialect,
    /// CPUs of the machine, where the first line tells.
    pub cpus: Option<u32>,
    /// Samples by device, in order.
    pub devices: BTreeMap<String, Vec<Rates>>,
    /// The devices' lines in the order of the file: sums round as the scripts' do.
    lines: Vec<(String, Rates)>,
}

/// Means over samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Averages {
    /// Lines they are over.
    pub samples: usize,
    /// The means.
    pub rates: Rates,
}

impl Iostat {
    /// Means over all lines that contain this text, as the scripts match devices: `md2` matches
    /// `md20`, too.
    pub fn matching(&self, device: &str) -> Option<Averages> {
        average(
            self.lines
                .iter()
                .filter(|(name, _)| name.contains(device))
                .map(|(_, rates)| rates),
        )
    }

    /// Means of exactly this device.
    pub fn of(&self, device: &str) -> Option<Averages> {
        average(self.devices.get(device)?.iter())
    }
}

fn average<'a>(rates: impl Iterator<Item = &'a Rates>) -> Option<Averages> {
    let (mut sum, mut samples) = (Rates::default(), 0usize);
    for rate in rates {
        samples += 1;
        sum.reads += rate.reads;
        sum.read_kib += rate.read_kib;
        sum.writes += rate.writes;
        sum.written_kib += rate.written_kib;
    }
    let n = samples as f64;
    (samples > 0).then(|| Averages {
        samples,
        rates: Rates {
            reads: sum.reads / n,
            read_kib: sum.read_kib / n,
            writes: sum.writes / n,
            written_kib: sum.written_kib / n,
        },
    })
}

/// Whether this is iostat's output.
pub fn is_iostat(head: &str) -> bool {
    head.lines().take(12).any(is_header)
        || (head.starts_with("Linux ")
            && head
                .lines()
                .take(6)
                .any(|line| line.starts_with("avg-cpu:")))
}

fn is_header(line: &str) -> bool {
    line.starts_with("Device") && line.contains(" r/s") && line.contains(" w/s")
}

/// Reads the devices' samples.
pub fn read(bytes: &[u8]) -> Read<Iostat> {
    let all = text(bytes);
    let cpus = all
        .lines()
        .next()
        .and_then(|line| line.rsplit_once('(')?.1.strip_suffix(" CPU)")?.parse().ok());
    let mut iostat = Iostat {
        dialect: Dialect::Other,
        cpus,
        devices: BTreeMap::new(),
        lines: Vec::new(),
    };
    let mut columns: Option<[usize; 4]> = None;
    let mut is_in_table = false;
    for (n, line) in lines(&all) {
        if is_header(line) {
            let header: Vec<&str> = line.split_whitespace().skip(1).collect();
            let at = |name: &str| {
                let place = header.iter().position(|word| *word == name);
                place.map(|i| i + 1).ok_or_else(|| {
                    ReadError::new(n, format!("its header lacks {name}: it needs `iostat -kx`"))
                })
            };
            iostat.dialect = Dialect::of(&header);
            columns = Some([at("r/s")?, at("rkB/s")?, at("w/s")?, at("wkB/s")?]);
            is_in_table = true;
            continue;
        }
        if line.trim().is_empty() || line.starts_with("avg-cpu:") {
            is_in_table = false;
            continue;
        }
        let (true, Some(columns)) = (is_in_table, columns) else {
            continue;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        // A decimal comma is that of some locales.
        let parse = |i: &usize| {
            words
                .get(*i)?
                .replace(',', ".")
                .parse::<f64>()
                .ok()
                .filter(|n| n.is_finite())
        };
        let parsed: Option<Vec<f64>> = columns.iter().map(parse).collect();
        match parsed.as_deref() {
            Some([reads, read_kib, writes, written_kib]) => {
                let rates = Rates {
                    reads: *reads,
                    read_kib: *read_kib,
                    writes: *writes,
                    written_kib: *written_kib,
                };
                iostat
                    .devices
                    .entry(words[0].to_owned())
                    .or_default()
                    .push(rates);
                iostat.lines.push((words[0].to_owned(), rates));
            }
            _ if n == end(&all) => {}
            _ => return Err(ReadError::new(n, "a device lacks numbers")),
        }
    }
    if iostat.lines.is_empty() {
        return Err(ReadError::new(end(&all), "it has no samples of devices"));
    }
    Ok(iostat)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The layouts as the specification of the formats tells them; real files at hand are of Ubuntu
    /// 22.04 only.
    #[test]
    fn the_four_layouts() {
        let expected = Rates {
            reads: 1.0,
            read_kib: 2.0,
            writes: 3.0,
            written_kib: 4.0,
        };
        for (header, row, dialect) in [
            (
                "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz \
                avgqu-sz   await r_await w_await  svctm  %util",
                "sda 9 9 1.00 3.00 2.00 4.00 9 9 9 9 9 9 9",
                Dialect::Ubuntu16,
            ),
            (
                "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s   wrqm/s  %rrqm  %wrqm \
                r_await w_await aqu-sz rareq-sz wareq-sz  svctm  %util",
                "sda 1.00 3.00 2.00 4.00 9 9 9 9 9 9 9 9 9 9 9",
                Dialect::Ubuntu18,
            ),
            (
                "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     \
                wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await \
                dareq-sz  aqu-sz  %util",
                "sda 1.00 2.00 9 9 9 9 3.00 4.00 9 9 9 9 9 9 9 9 9 9 9 9",
                Dialect::Ubuntu20,
            ),
            (
                "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     \
                wkB/s   wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await \
                dareq-sz     f/s f_await  aqu-sz  %util",
                "sda 1,00 2,00 9 9 9 9 3,00 4,00 9 9 9 9 9 9 9 9 9 9 9 9 9 9",
                Dialect::Ubuntu22,
            ),
        ] {
            let text = format!(
                "Linux 6.1 (host) \t01/01/26 \t_x86_64_\t(8 CPU)\n\n\navg-cpu:  %user\n           \
                1.0\n\n{header}\n{row}\n"
            );
            assert!(is_iostat(&text));
            let iostat = read(text.as_bytes()).unwrap();
            assert_eq!((iostat.dialect, iostat.cpus), (dialect, Some(8)));
            assert_eq!(
                iostat.of("sda").unwrap(),
                Averages {
                    samples: 1,
                    rates: expected
                },
                "{dialect:?}"
            );
        }
    }

    #[test]
    fn devices_match_by_a_part_of_their_name() {
        let text = "Device r/s rkB/s w/s wkB/s\nmd2 1 0 0 0\nmd20 3 0 0 0\n\nDevice r/s rkB/s w/s \
                   wkB/s\nmd2 3 0 0 0\nmd20 5 0 0";
        let iostat = read(text.as_bytes()).unwrap();
        assert_eq!(
            iostat
                .matching("md2")
                .map(|means| (means.samples, means.rates.reads)),
            Some((3, 7.0 / 3.0))
        );
        assert_eq!(
            iostat
                .of("md2")
                .map(|means| (means.samples, means.rates.reads)),
            Some((2, 2.0))
        );
        assert_eq!(iostat.of("sda"), None);
        let text = text.replace("md20 3 0 0 0", "md20 x 0 0 0");
        assert_eq!(
            read(text.as_bytes()).unwrap_err().to_string(),
            "line 3: a device lacks numbers"
        );
    }
}
