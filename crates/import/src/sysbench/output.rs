//! Standard output of sysbench 1.0 and 1.1.

use crate::text::{Read, ReadError, count, end, lines, number, text};

/// Which layout the report has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `General statistics:` with `total time:`.
    V1_0,
    /// `Throughput:` with `time elapsed:`.
    V1_1,
}

impl Layout {
    /// The name in eras.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "sysbench 1.0",
            Self::V1_1 => "sysbench 1.1",
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// The layout of the closing report.
    pub layout: Layout,
    /// `1.1.0-9072687`, where the banner is there.
    pub version: Option<String>,
    /// The recorded command line, with passwords removed.
    pub command: Option<String>,
    /// Passwords that were removed from it.
    pub passwords: u64,
    /// CPUs of the machine, as the scripts note them.
    pub cpus: Option<u32>,
    /// Worker threads.
    pub threads: Option<u32>,
    /// Statements that returned rows, statements that changed rows, all others.
    pub statements: [u64; 3],
    /// Events, and their rate as printed.
    pub transactions: (u64, String),
    /// Statements, and their rate as printed: what the field calls QPS.
    pub queries: (u64, String),
    /// Statements given up and tried again.
    pub ignored_errors: u64,
    /// Connections made again.
    pub reconnects: u64,
    /// Seconds that the counts are of.
    pub elapsed_s: f64,
    /// Latency of events.
    pub latency: Latency,
    /// Interval lines, where `--report-interval` was on.
    pub intervals: Vec<Interval>,
    /// `--histogram`: upper value in milliseconds and count, non-empty buckets only.
    pub histogram: Vec<(f64, u64)>,
}

/// Latency of events in milliseconds, as printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// Least.
    pub min: String,
    /// Mean.
    pub avg: String,
    /// Greatest.
    pub max: String,
    /// The percentile's number and its value.
    pub percentile: Option<(u32, String)>,
}

/// One interval line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Seconds since the start.
    pub at_s: u32,
    /// Transactions per second.
    pub tps: f64,
    /// Statements per second.
    pub qps: f64,
    /// The percentile's latency in milliseconds.
    pub latency_ms: f64,
    /// Errors per second.
    pub errors: f64,
}

impl Output {
    /// An option of the recorded command line: `option("table-size")`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let command = self.command.as_deref()?;
        command.split_whitespace().rev().find_map(|word| {
            word.strip_prefix("--")?
                .strip_prefix(name)?
                .strip_prefix('=')
        })
    }

    /// The name of the script that ran: `oltp_read_only`.
    pub fn script(&self) -> Option<&str> {
        let command = self.command.as_deref()?;
        let path = command
            .split_whitespace()
            .find(|word| word.ends_with(".lua") && !word.contains('='))?;
        path.rsplit('/').next()?.strip_suffix(".lua")
    }

    /// Rows of a table.
    pub fn table_size(&self) -> Option<u64> {
        self.option("table-size")?.parse().ok()
    }

    /// Whether it is a full scan, of which the scripts report rows.
    pub fn is_scan(&self) -> bool {
        self.script() == Some("oltp_scan")
    }

    /// Scans since 2025-04-19: thousands of rows per second of one thread,
    /// `table size / mean latency in ms`.
    pub fn scan_krows_per_thread(&self) -> Option<f64> {
        let avg_ms: f64 = self.latency.avg.parse().ok().filter(|ms| *ms > 0.0)?;
        Some(self.table_size()? as f64 / avg_ms)
    }

    /// Scans before 2025-04-19: thousands of rows per second of all threads, from the printed rate.
    pub fn scan_krows_of_all_threads(&self) -> Option<f64> {
        let scans_per_s: f64 = self.queries.1.parse().ok()?;
        Some(self.table_size()? as f64 * scans_per_s / 1000.0)
    }

    /// Statements per second in full precision.
    pub fn queries_per_s(&self) -> Option<f64> {
        (self.elapsed_s > 0.0).then(|| self.queries.0 as f64 / self.elapsed_s)
    }
}

/// Whether this is sysbench's output, complete or not.
pub fn is_output(head: &str, all: &str) -> bool {
    all.contains("SQL statistics:")
        || head
            .lines()
            .take(4)
            .any(|line| line.starts_with("sysbench 1.") || line.starts_with("sysbench 0."))
}

/// Reads a run. What precedes the closing report may be anything: plans of statements, interleaved
/// by threads.
pub fn read(bytes: &[u8]) -> Read<Output> {
    let all = text(bytes);
    let Some(start) = lines(&all)
        .filter(|(_, line)| line.trim_end() == "SQL statistics:")
        .map(|(n, _)| n)
        .last()
    else {
        return Err(ReadError::new(end(&all), unfinished(&all)));
    };
    let head: Vec<&str> = all.lines().take(start - 1).collect();
    let (command, passwords) = head
        .first()
        .filter(|line| line.contains(" --db-driver=") || line.contains("sysbench --"))
        .map_or((None, 0), |line| {
            let (line, passwords) = strip_passwords(line);
            (Some(line), passwords)
        });
    let report = Report {
        first: start,
        lines: all.lines().skip(start - 1).collect(),
    };
    let (elapsed, layout) = match report.find("time elapsed:") {
        Some((line, value)) => ((line, value), Layout::V1_1),
        None => (report.need("total time:")?, Layout::V1_0),
    };
    let output = Output {
        layout,
        version: head.iter().find_map(|line| {
            Some(
                line.strip_prefix("sysbench ")?
                    .split_whitespace()
                    .next()?
                    .to_owned(),
            )
        }),
        command,
        passwords,
        cpus: head
            .iter()
            .take(3)
            .find_map(|line| line.strip_suffix(" CPUs")?.parse().ok()),
        threads: head.iter().find_map(|line| {
            line.strip_prefix("Number of threads: ")?
                .trim()
                .parse()
                .ok()
        }),
        statements: [
            report.counted("read:")?,
            report.counted("write:")?,
            report.counted("other:")?,
        ],
        transactions: report.rated("transactions:")?,
        queries: report.rated("queries:")?,
        ignored_errors: report.counted("ignored errors:")?,
        reconnects: report.counted("reconnects:")?,
        elapsed_s: number(elapsed.1.trim_end_matches('s'), elapsed.0)?,
        latency: Latency {
            min: report.milliseconds("min:")?,
            avg: report.milliseconds("avg:")?,
            max: report.milliseconds("max:")?,
            percentile: report.percentile()?,
        },
        intervals: head.iter().filter_map(|line| interval(line)).collect(),
        histogram: histogram(&head),
    };
    if report.find("execution time (avg/stddev):").is_none() {
        return Err(ReadError::new(
            end(&all),
            "it ends inside its closing report: the file is truncated",
        ));
    }
    Ok(output)
}

/// Why there is no closing report: the last error, where there is one.
fn unfinished(all: &str) -> String {
    let fatal = all
        .lines()
        .rev()
        .find(|line| line.starts_with("FATAL:") || line.contains("ERROR"));
    match fatal {
        Some(line) => format!("the test failed: {}", crate::text::shown(line.trim())),
        None => "it has no \"SQL statistics:\": the run did not finish or the file is truncated"
            .to_owned(),
    }
}

/// The closing report.
struct Report<'a> {
    first: usize,
    lines: Vec<&'a str>,
}

impl<'a> Report<'a> {
    fn find(&self, label: &str) -> Option<(usize, &'a str)> {
        self.lines.iter().enumerate().find_map(|(i, line)| {
            Some((
                self.first + i,
                line.trim_start().strip_prefix(label)?.trim(),
            ))
        })
    }

    fn need(&self, label: &str) -> Read<(usize, &'a str)> {
        let last = self.first + self.lines.len().saturating_sub(1);
        self.find(label).ok_or_else(|| {
            ReadError::new(
                last,
                format!("its closing report has no \"{label}\": the file is truncated"),
            )
        })
    }

    /// `transactions: 1234 (100.20 per sec.)`: the count, and the rate as printed.
    fn rated(&self, label: &str) -> Read<(u64, String)> {
        let (line, value) = self.need(label)?;
        let mut words = value.split_whitespace();
        let total = count(words.next().unwrap_or_default(), line)?;
        let rate = words
            .next()
            .and_then(|word| word.strip_prefix('('))
            .unwrap_or_default();
        number(rate, line)?;
        Ok((total, rate.to_owned()))
    }

    fn counted(&self, label: &str) -> Read<u64> {
        let (line, value) = self.need(label)?;
        count(value.split_whitespace().next().unwrap_or_default(), line)
    }

    fn milliseconds(&self, label: &str) -> Read<String> {
        let (line, value) = self.need(label)?;
        number(value, line)?;
        Ok(value.to_owned())
    }

    /// `95th percentile:`; older layouts write `95 percentile:`. Absent with `--percentile=0`.
    fn percentile(&self) -> Read<Option<(u32, String)>> {
        for (i, line) in self.lines.iter().enumerate() {
            let Some((of, value)) = line.split_once("percentile:") else {
                continue;
            };
            let digits: String = of.trim().chars().take_while(char::is_ascii_digit).collect();
            number(value.trim(), self.first + i)?;
            return Ok(digits.parse().ok().map(|of| (of, value.trim().to_owned())));
        }
        Ok(None)
    }
}

/// `[ 10s ] thds: 4 tps: 100.20 qps: 2004.00 (r/w/o: 1402.80/400.80/200.40) lat (ms,95%): 50.11 err/s: 0.00 reconn/s: 0.00`.
fn interval(line: &str) -> Option<Interval> {
    let (at, rest) = line.strip_prefix('[')?.split_once(']')?;
    let after = |label: &str| -> Option<f64> {
        let from = rest.find(label)? + label.len();
        rest[from..].split_whitespace().next()?.parse().ok()
    };
    let latency = rest
        .find("lat (ms,")
        .and_then(|from| rest[from..].split_once("): "))?
        .1
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(Interval {
        at_s: at.trim().strip_suffix('s')?.parse().ok()?,
        tps: after("tps: ")?,
        qps: after("qps: ")?,
        latency_ms: latency,
        errors: after("err/s: ").unwrap_or(0.0),
    })
}

/// Lines `       0.335 |*****        1234` under `Latency histogram`.
fn histogram(head: &[&str]) -> Vec<(f64, u64)> {
    let Some(start) = head
        .iter()
        .position(|line| line.starts_with("Latency histogram"))
    else {
        return Vec::new();
    };
    let bucket = |line: &&str| -> Option<(f64, u64)> {
        let (value, rest) = line.split_once('|')?;
        Some((
            value.trim().parse().ok()?,
            rest.split_whitespace().last()?.parse().ok()?,
        ))
    };
    head[start + 1..].iter().filter_map(bucket).collect()
}

/// A command line without the values of options that hold passwords, and how many were taken out.
pub fn strip_passwords(line: &str) -> (String, u64) {
    let mut stripped = 0;
    let mut words: Vec<String> = Vec::new();
    let mut is_value = false;
    for word in line.split(' ') {
        let lower = word.to_ascii_lowercase();
        let is_option =
            word.starts_with("--") && (lower.contains("password") || lower.contains("passwd"));
        let is_variable = ["PGPASSWORD=", "MYSQL_PWD="]
            .iter()
            .any(|name| word.starts_with(name));
        words.push(match word.split_once('=') {
            Some((name, value)) if (is_option || is_variable) && !value.is_empty() => {
                stripped += 1;
                format!("{name}=***")
            }
            None if is_value && !word.is_empty() && !word.starts_with('-') => {
                stripped += 1;
                "***".to_owned()
            }
            None if word.len() > 2
                && word.starts_with("-p")
                && !word.starts_with("--")
                && line.contains("mysql") =>
            {
                stripped += 1;
                "-p***".to_owned()
            }
            _ => word.to_owned(),
        });
        is_value = is_option && !word.contains('=');
    }
    (words.join(" "), stripped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1_0: &str = include_str!("../../tests/samples/sysbench-1.0.txt");

    #[test]
    fn a_run_of_1_0_with_intervals_and_histogram() {
        let output = read(V1_0.as_bytes()).unwrap();
        assert_eq!(
            (output.layout, output.version.as_deref(), output.threads),
            (Layout::V1_0, Some("1.0.20"), Some(4))
        );
        assert_eq!(output.statements, [5600, 1600, 800]);
        assert_eq!(
            (output.transactions.0, output.queries.1.as_str()),
            (400, "799.42")
        );
        assert_eq!(
            (output.ignored_errors, output.reconnects, output.elapsed_s),
            (2, 1, 10.0072)
        );
        assert_eq!(output.latency.percentile, Some((99, "116.80".to_owned())));
        assert_eq!(output.intervals.len(), 2);
        assert_eq!(
            output.intervals[1],
            Interval {
                at_s: 10,
                tps: 39.0,
                qps: 781.2,
                latency_ms: 118.92,
                errors: 0.2
            }
        );
        assert_eq!(output.histogram, [(94.104, 120), (97.555, 280)]);
        assert_eq!(output.command, None);
    }

    #[test]
    fn what_is_unfinished_says_so() {
        let cut = |from: &str| {
            read(&V1_0.as_bytes()[..V1_0.find(from).unwrap()])
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            cut("SQL statistics"),
            "line 15: it has no \"SQL statistics:\": the run did not finish or the file is \
            truncated"
        );
        assert_eq!(
            cut("    reconnects"),
            "line 24: its closing report has no \"total time:\": the file is truncated"
        );
        assert_eq!(
            cut("    execution time"),
            "line 39: it ends inside its closing report: the file is truncated"
        );
        let failed =
            "sysbench 1.1.0\nFATAL: mysql_stmt_execute() returned error 1114 (The table is full)\n";
        assert!(
            read(failed.as_bytes())
                .unwrap_err()
                .reason
                .starts_with("the test failed: FATAL: mysql_stmt_execute()")
        );
    }

    #[test]
    fn passwords_are_taken_out() {
        for (line, expected, count) in [
            (
                "sysbench --mysql-password=pw --x=1",
                "sysbench --mysql-password=*** --x=1",
                1,
            ),
            (
                "sysbench --pgsql-password pw run",
                "sysbench --pgsql-password *** run",
                1,
            ),
            (
                "PGPASSWORD=pw sysbench --mysql-user=root",
                "PGPASSWORD=*** sysbench --mysql-user=root",
                1,
            ),
            ("mysql -ppw -uroot", "mysql -p*** -uroot", 1),
            (
                "sysbench --mysql-password= run",
                "sysbench --mysql-password= run",
                0,
            ),
        ] {
            assert_eq!(strip_passwords(line), (expected.to_owned(), count));
        }
    }

    #[test]
    fn options_and_scripts_of_a_command() {
        let line = "sysbench --db-driver=mysql --table-size=50 lua/oltp_scan.lua run \
                   --table-size=1 --mysql-password=pw";
        let text = format!("{line}\n8 CPUs\n{V1_0}");
        let output = read(text.as_bytes()).unwrap();
        assert_eq!(
            (
                output.table_size(),
                output.script(),
                output.cpus,
                output.passwords
            ),
            (Some(1), Some("oltp_scan"), Some(8), 1)
        );
        assert!(output.is_scan());
        assert_eq!(output.option("password"), None);
    }
}
