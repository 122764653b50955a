//! `host.tsv`: one line a second.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::readings::Difference;
use crate::Answer;

/// Percentages are of all CPUs, counts and KiB are per second. An empty cell is unavailable.
const HEADER: &str = "second\tcpu_busy_pct\tcpu_user_pct\tcpu_system_pct\tsteal_pct\t\
    context_switches\tread_kib\twrite_kib\treads\twrites\tpsi_io_pct\trss_mib";

/// Writes the file until the first error, which it keeps.
#[derive(Debug)]
pub(crate) struct SeriesWriter {
    file: Answer<BufWriter<File>>,
    rows: u64,
}

impl SeriesWriter {
    /// Replaces the file at `path`.
    pub(crate) fn create(path: &Path) -> Self {
        let file = File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            writeln!(file, "{HEADER}")?;
            Ok(file)
        });
        Self {
            file: file.map_err(|error| unwritable(&error)),
            rows: 0,
        }
    }

    /// Adds a line.
    pub(crate) fn add(&mut self, second: u64, interval: &Difference, rss_bytes: &Answer<u64>) {
        let Ok(file) = &mut self.file else { return };
        match writeln!(file, "{}", row(second, interval, rss_bytes)) {
            Ok(()) => self.rows += 1,
            Err(error) => self.file = Err(unwritable(&error)),
        }
    }

    /// Flushes; the number of lines written, or why the file is not complete.
    pub(crate) fn finish(self) -> Answer<f64> {
        self.file?.flush().map_err(|error| unwritable(&error))?;
        Ok(self.rows as f64)
    }
}

fn unwritable(error: &std::io::Error) -> String {
    format!("cannot write the series: {error}")
}

fn row(second: u64, interval: &Difference, rss_bytes: &Answer<u64>) -> String {
    let share_pct =
        |ticks: u64, total: u64| (total > 0).then(|| 100.0 * ticks as f64 / total as f64);
    let cpu_pct = |ticks: fn(&crate::parse::HostCpu) -> u64| {
        let host = interval.host.as_ref().ok()?;
        share_pct(ticks(host), host.total())
    };
    let per_s = |count: Option<u64>| count.map(|count| count as f64 / interval.seconds);
    let disk = interval.disk.as_ref().ok();
    let cells = [
        (cpu_pct(|host| host.busy()), 1),
        (cpu_pct(|host| host.user + host.nice), 1),
        (cpu_pct(|host| host.system + host.irq + host.softirq), 1),
        (cpu_pct(|host| host.steal), 1),
        (
            per_s(
                interval
                    .host
                    .as_ref()
                    .ok()
                    .map(|host| host.context_switches),
            ),
            0,
        ),
        (per_s(disk.map(|disk| disk.read_bytes / 1024)), 0),
        (per_s(disk.map(|disk| disk.write_bytes / 1024)), 0),
        (per_s(disk.map(|disk| disk.reads)), 0),
        (per_s(disk.map(|disk| disk.writes)), 0),
        (
            interval
                .psi_io_s
                .as_ref()
                .ok()
                .map(|stalled_s| 100.0 * stalled_s / interval.seconds),
            1,
        ),
        (
            rss_bytes
                .as_ref()
                .ok()
                .map(|bytes| *bytes as f64 / f64::from(1 << 20)),
            1,
        ),
    ];
    let mut line = second.to_string();
    for (cell, decimals) in cells {
        line.push('\t');
        if let Some(value) = cell.filter(|value| value.is_finite()) {
            write!(line, "{value:.decimals$}").expect("writing to a string cannot fail");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{DiskCounters, HostCpu};

    fn interval() -> Difference {
        let no = || Err(String::from("not here"));
        let host = HostCpu {
            user: 10,
            nice: 2,
            system: 20,
            idle: 50,
            iowait: 8,
            irq: 1,
            softirq: 3,
            steal: 6,
            cpus: 2,
            context_switches: 600,
        };
        Difference {
            seconds: 2.0,
            host: Ok(host),
            disk: Ok(DiskCounters {
                reads: 10,
                read_bytes: 40 * 1024,
                writes: 3,
                write_bytes: 12 * 1024,
            }),
            psi_cpu_s: no(),
            psi_io_s: Ok(0.5),
            psi_memory_s: no(),
            own_cpu_s: no(),
            own_usage: Err(String::from("not here")),
            server_cpu_s: None,
        }
    }

    #[test]
    fn a_line_has_shares_and_rates_and_empty_cells() {
        assert_eq!(
            row(7, &interval(), &Ok(3 << 19)),
            "7\t36.0\t12.0\t24.0\t6.0\t300\t20\t6\t5\t2\t25.0\t1.5"
        );
        let no = || Err(String::from("not here"));
        let nothing = Difference {
            host: Err(String::new()),
            disk: Err(String::new()),
            psi_io_s: no(),
            ..interval()
        };
        assert_eq!(
            row(1, &nothing, &Err(String::new())),
            format!("1{}", "\t".repeat(11))
        );
        assert_eq!(HEADER.split('\t').count(), 12);
        // Nothing was counted in no time: no share of it.
        let instant = Difference {
            seconds: 0.0,
            host: Ok(HostCpu::default()),
            disk: Ok(DiskCounters::default()),
            psi_io_s: Ok(0.0),
            ..interval()
        };
        assert_eq!(
            row(1, &instant, &Err(String::new())),
            format!("1{}", "\t".repeat(11))
        );
    }

    #[test]
    fn an_error_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut series = SeriesWriter::create(&dir.path().join("no folder/host.tsv"));
        series.add(1, &interval(), &Ok(0));
        let reason = series.finish().unwrap_err();
        assert!(
            reason.starts_with("cannot write the series: ") && !reason.contains("folder/"),
            "{reason}"
        );
        // A full disk shows when the buffer is written.
        if Path::new("/dev/full").exists() {
            assert!(
                SeriesWriter::create(Path::new("/dev/full"))
                    .finish()
                    .unwrap_err()
                    .contains("cannot write the series")
            );
        }
    }
}
