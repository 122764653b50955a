//! `o.ib.dop<N>.<n>`: what a client prints, in the layouts of four eras.

use crate::sysbench::output::strip_passwords;
use crate::text::{Read, ReadError, count, end, lines, number, text};

/// The layout of the per-second lines, told by their header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    /// 17 fields with deletes, since 2023-05-18.
    Fields17,
    /// 12 fields, 2020-09-10 to 2023-05-17.
    Fields12,
    /// 10 fields, 2020-06 to 2020-09-09.
    Fields10,
    /// 9 fields between blanks, 2017.
    Fields9,
}

impl Era {
    /// The name in eras.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fields17 => "17 fields (since 2023-05-18)",
            Self::Fields12 => "12 fields (2020-09-10 to 2023-05-17)",
            Self::Fields10 => "10 fields (2020-06 to 2020-09-09)",
            Self::Fields9 => "9 fields (2017)",
        }
    }
}

/// One line of progress. What an era does not print is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Second {
    /// Seconds since the start.
    pub t_sec: f64,
    /// Rows inserted per second in the interval.
    pub i_ips: f64,
    /// Rows deleted per second in the interval.
    pub i_dps: f64,
    /// Queries per second in the interval.
    pub i_qps: f64,
    /// Longest insert, delete and query of the interval, in microseconds.
    pub max_us: [f64; 3],
    /// Rows inserted, rows deleted, queries until now.
    pub totals: [u64; 3],
    /// Inserts, deletes and queries tried again until now.
    pub retries: [u64; 3],
}

/// Response times of one kind of operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// `insert`, `delete` or `query`.
    pub kind: &'static str,
    /// Operations by bucket: up to 256 us, 1 ms, 4 ms, ... 16 s, above.
    pub counts: [u64; 10],
    /// The longest, in seconds, as printed.
    pub max: String,
}

/// What one client printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Client {
    /// The layout.
    pub era: Era,
    /// The command line without passwords.
    pub command: Option<String>,
    /// Passwords that were removed from it.
    pub passwords: u64,
    /// Lines of progress.
    pub seconds: Vec<Second>,
    /// Response times.
    pub histograms: Vec<Histogram>,
    /// Rows per query, on average.
    pub fetched_per_query: Option<f64>,
    /// Seconds of index creation.
    pub index_s: Option<f64>,
    /// Seconds, rows per second, rows.
    pub totals: Option<(f64, f64, u64)>,
}

impl Client {
    /// An option of the command line.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.command
            .as_deref()?
            .split_whitespace()
            .rev()
            .find_map(|word| {
                word.strip_prefix("--")?
                    .strip_prefix(name)?
                    .strip_prefix('=')
            })
    }

    /// Seconds from its start to its last row. The printed seconds have one decimal, rate and rows
    /// tell them more exactly.
    pub fn seconds_exact(&self) -> Option<f64> {
        let (seconds, rate, rows) = self.totals?;
        let exact = if rate > 0.0 && rows > 0 {
            rows as f64 / rate
        } else {
            seconds
        };
        Some(exact).filter(|seconds| *seconds > 0.0)
    }

    /// Queries in all.
    pub fn queries(&self) -> u64 {
        self.seconds.last().map_or(0, |second| second.totals[2])
    }

    /// Rows inserted.
    pub fn rows(&self) -> u64 {
        self.totals
            .map(|(.., rows)| rows)
            .or_else(|| Some(self.seconds.last()?.totals[0]))
            .unwrap_or(0)
    }

    /// The rate that `percent` of the lines reached, as the originals choose it: rates sorted
    /// downwards, the element at round(percent / 100 x lines). `None` with fewer than ten lines.
    pub fn nth_rate(&self, percent: f64, pick: fn(&Second) -> f64) -> Option<f64> {
        let mut rates: Vec<f64> = self.seconds.iter().map(pick).collect();
        if rates.len() < 10 {
            return None;
        }
        rates.sort_by(|a, b| b.total_cmp(a));
        let place = (percent / 100.0 * rates.len() as f64).round() as usize;
        rates.get(place.max(1) - 1).copied()
    }
}

const KINDS: [(&str, &str); 3] = [
    ("Insert rt:", "insert"),
    ("Delete rt:", "delete"),
    ("Query rt:", "query"),
];

/// The columns of progress lines by their header.
struct Columns {
    era: Era,
    names: Vec<String>,
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        if line.trim_start().starts_with("#rows #seconds") {
            // Two of the names follow from their places: rows so far and seconds of the interval
            // come first.
            let names = [
                "t_ins", "i_sec", "t_sec", "t_ips", "size", "i_ips", "t_query", "t_qps", "i_qps",
            ]
            .map(str::to_owned);
            return Some(Self {
                era: Era::Fields9,
                names: names.into(),
            });
        }
        let names: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let era = match names.len() {
            17 => Era::Fields17,
            12 => Era::Fields12,
            10 => Era::Fields10,
            _ => return None,
        };
        (names[0] == "i_sec" && names[1] == "t_sec").then_some(Self { era, names })
    }

    fn read(&self, line: &str, n: usize) -> Read<Second> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != self.names.len() {
            return Err(ReadError::new(
                n,
                format!("{} fields where {} belong", words.len(), self.names.len()),
            ));
        }
        let of = |name: &str| -> Read<f64> {
            self.names
                .iter()
                .position(|known| known == name)
                .map_or(Ok(0.0), |i| number(words[i], n))
        };
        let whole = |name: &str| -> Read<u64> { Ok(of(name)?.max(0.0) as u64) };
        Ok(Second {
            t_sec: of("t_sec")?,
            i_ips: of("i_ips")?,
            i_dps: of("i_dps")?,
            i_qps: of("i_qps")?,
            max_us: [of("max_i")?, of("max_d")?, of("max_q")?],
            totals: [whole("t_ins")?, whole("t_del")?, whole("t_query")?],
            retries: [whole("retry_i")?, whole("retry_d")?, whole("retry_q")?],
        })
    }
}

/// Whether this is a client's output.
pub fn is_client(head: &str) -> bool {
    head.lines().take(4).any(|line| Columns::of(line).is_some())
}

/// Reads a client's output.
pub fn read(bytes: &[u8]) -> Read<Client> {
    let all = text(bytes);
    let mut columns: Option<Columns> = None;
    let mut client = Client {
        era: Era::Fields17,
        command: None,
        passwords: 0,
        seconds: Vec::new(),
        histograms: Vec::new(),
        fetched_per_query: None,
        index_s: None,
        totals: None,
    };
    let mut is_done = false;
    for (n, line) in lines(&all) {
        let trimmed = line.trim_start();
        if n == 1 && line.contains("--") {
            let (command, passwords) = strip_passwords(line);
            (client.command, client.passwords) = (Some(command), passwords);
        } else if let Some(found) = Columns::of(line) {
            client.era = found.era;
            columns = Some(found);
        } else if let Some((prefix, kind)) = KINDS
            .into_iter()
            .find(|(prefix, _)| trimmed.starts_with(prefix))
        {
            client
                .histograms
                .extend(histogram(&trimmed[prefix.len()..], kind, n)?);
        } else if let Some(rest) = line.strip_prefix("Totals: ") {
            client.totals = Some(totals(rest, n)?);
        } else if let Some(rest) = line.strip_prefix("Created secondary indexes in ") {
            client.index_s = Some(number(rest.split(' ').next().unwrap_or_default(), n)?);
        } else if line.starts_with("Query thread: ") {
            let average = line
                .rsplit(',')
                .next()
                .unwrap_or_default()
                .trim_matches([' ', ')']);
            client.fetched_per_query = average.parse().ok();
        } else if line == "Done" {
            is_done = true;
        } else if let Some(columns) = &columns
            && client.totals.is_none()
            && trimmed.starts_with(|c: char| c.is_ascii_digit())
        {
            client.seconds.push(columns.read(line, n)?);
        }
    }
    if columns.is_none() {
        return Err(ReadError::new(
            end(&all),
            "it has no header of progress lines",
        ));
    }
    if client.totals.is_none() && !is_done {
        return Err(ReadError::new(
            end(&all),
            "it has no \"Totals:\": the client did not finish or the file is truncated",
        ));
    }
    Ok(client)
}

/// The first of two lines is a heading.
fn histogram(rest: &str, kind: &'static str, n: usize) -> Read<Option<Histogram>> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    if words.first() == Some(&"256us") {
        return Ok(None);
    }
    let [counts @ .., max] = &words[..] else {
        return Err(ReadError::new(n, "a histogram has no numbers"));
    };
    let counts = counts
        .iter()
        .map(|word| count(word, n))
        .collect::<Read<Vec<u64>>>()?;
    number(max, n)?;
    let found = counts.len();
    let counts = counts.try_into().map_err(|_| {
        ReadError::new(
            n,
            format!("a histogram has {found} buckets where 10 belong"),
        )
    })?;
    Ok(Some(Histogram {
        kind,
        counts,
        max: (*max).to_owned(),
    }))
}

/// `7.0 secs, 57100.3 rows/sec, 400000 rows, ...`.
fn totals(rest: &str, n: usize) -> Read<(f64, f64, u64)> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| {
        words
            .iter()
            .position(|word| word.trim_end_matches(',') == unit)
            .and_then(|i| Some(words[i.checked_sub(1)?]))
    };
    let need = |unit: &str| {
        before(unit).ok_or_else(|| ReadError::new(n, format!("there is no number of {unit}")))
    };
    Ok((
        number(need("secs")?, n)?,
        number(need("rows/sec")?, n)?,
        count(need("rows")?, n)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = "Insert rt:     256us       1ms       4ms      16ms      64ms     \
                       256ms        1s        4s       16s        gt         max\n\
        Insert rt:         0         4         1         0         0         0         0         \
                       0         0         0    0.002365\n\
        Totals: 2.0 secs, 150.0 rows/sec, 300 rows, 0 insert retry, 0 query retry\nDone\n";

    #[test]
    fn the_eras_by_their_headers() {
        for (header, row, era, expected) in [
            (
                "i_sec\tt_sec\ti_ips\tt_ips\ti_dps\tt_dps\ti_qps\tt_qps\tmax_i\tmax_d\tmax_q\tt_ins\tt_del\tt_query\tretry_i\tretry_d\tretry_q",
                "1.0\t2.0\t100\t150\t50\t75\t9\t8\t11\t12\t13\t300\t150\t16\t1\t2\t3",
                Era::Fields17,
                Second {
                    t_sec: 2.0,
                    i_ips: 100.0,
                    i_dps: 50.0,
                    i_qps: 9.0,
                    max_us: [11.0, 12.0, 13.0],
                    totals: [300, 150, 16],
                    retries: [1, 2, 3],
                },
            ),
            (
                "i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\tretry_i\tretry_q",
                "1.0\t2.0\t100\t150\t9\t8\t11\t13\t300\t16\t1\t3",
                Era::Fields12,
                Second {
                    t_sec: 2.0,
                    i_ips: 100.0,
                    i_qps: 9.0,
                    max_us: [11.0, 0.0, 13.0],
                    totals: [300, 0, 16],
                    retries: [1, 0, 3],
                    ..Second::default()
                },
            ),
            (
                "i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query",
                "1.0\t2.0\t100\t150\t9\t8\t11\t13\t300\t16",
                Era::Fields10,
                Second {
                    t_sec: 2.0,
                    i_ips: 100.0,
                    i_qps: 9.0,
                    max_us: [11.0, 0.0, 13.0],
                    totals: [300, 0, 16],
                    ..Second::default()
                },
            ),
            (
                "#rows #seconds #total_seconds cum_ips table_size last_ips #queries cum_qps \
                last_qps",
                "300 1.0 2.0 150.0 300 100.0 16 8.0 9.0",
                Era::Fields9,
                Second {
                    t_sec: 2.0,
                    i_ips: 100.0,
                    i_qps: 9.0,
                    totals: [300, 0, 16],
                    ..Second::default()
                },
            ),
        ] {
            let text = format!(
                "iibench --db_password=pw --max_rows=300\n{header}\nget_min_trxid = 1 in 0.1 \
                seconds\n\n{row}\n{TAIL}"
            );
            assert!(is_client(&text));
            let client = read(text.as_bytes()).unwrap();
            assert_eq!((client.era, &client.seconds[..]), (era, &[expected][..]));
            assert_eq!(
                (client.totals, client.passwords),
                (Some((2.0, 150.0, 300)), 1)
            );
            assert_eq!(
                (
                    client.histograms[0].counts[1],
                    client.histograms[0].max.as_str()
                ),
                (4, "0.002365")
            );
            assert_eq!(
                (client.option("max_rows"), client.option("db_password")),
                (Some("300"), Some("***"))
            );
            let cut = &text[..text.find("Totals").unwrap()];
            assert!(
                read(cut.as_bytes())
                    .unwrap_err()
                    .reason
                    .contains("did not finish"),
                "{era:?}"
            );
            let strange = text.replace(row, "1.0 2.0 3");
            assert!(
                read(strange.as_bytes())
                    .unwrap_err()
                    .to_string()
                    .starts_with("line 5: 3 fields where"),
                "{era:?}"
            );
        }
    }

    #[test]
    fn rates_are_chosen_as_the_originals_do() {
        let of = |rates: &[f64]| {
            let seconds = rates
                .iter()
                .map(|rate| Second {
                    i_ips: *rate,
                    ..Second::default()
                })
                .collect();
            let empty = format!(
                "i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\n{TAIL}"
            );
            Client {
                seconds,
                ..read(empty.as_bytes()).unwrap()
            }
        };
        let client = of(&[5.0, 1.0, 9.0, 3.0, 7.0, 2.0, 8.0, 4.0, 6.0, 10.0]);
        assert_eq!(client.nth_rate(50.0, |second| second.i_ips), Some(6.0));
        assert_eq!(client.nth_rate(99.0, |second| second.i_ips), Some(1.0));
        assert_eq!(of(&[1.0; 9]).nth_rate(50.0, |second| second.i_ips), None);
    }
}
