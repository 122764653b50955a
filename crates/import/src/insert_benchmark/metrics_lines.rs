//! `o.sum.t.*`, `mrg.*` and `rel.*`: lines of twenty metrics and a tag.

use plimsoll_analysis::metrics::CLASSIC_COLUMNS;

use crate::text::{Read, ReadError, end, lines, number, text};

/// One line: the cells as printed, in the order of [`CLASSIC_COLUMNS`], `NA` where the file has no
/// such column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsLine {
    /// The step, in files that hold several with their names.
    pub step: Option<String>,
    /// `20m.my5649.cx6d` in summaries, `my5649.cx6d` in merged files.
    pub tag: String,
    pub cells: [String; 20],
}

/// The lines of a file; `None` stands for a separator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsLines {
    /// In order.
    pub lines: Vec<Option<MetricsLine>>,
}

impl MetricsLines {
    /// Whether the lines are ratios: rates with two decimals.
    pub fn is_relative(&self) -> bool {
        let mut rates = self
            .lines
            .iter()
            .flatten()
            .map(|line| line.cells[0].as_str())
            .peekable();
        rates.peek().is_some()
            && rates.all(|rate| {
                rate == "inf"
                    || rate == "1"
                    || rate
                        .rsplit_once('.')
                        .is_some_and(|(_, digits)| digits.len() == 2)
            })
    }
}

/// Whether a file has the header of such lines.
pub fn is_metrics_lines(head: &str) -> bool {
    let header = head
        .lines()
        .find(|line| line.contains('\t') || line.starts_with("ips"))
        .unwrap_or_default();
    header.starts_with("ips")
        && ["qps", "rps", "wkbpi", "cpupq", "tag"]
            .iter()
            .all(|name| header.split_whitespace().any(|word| word == *name))
}

/// Reads the lines; columns are found by their names.
pub fn read(bytes: &[u8]) -> Read<MetricsLines> {
    let all = text(bytes);
    let mut rows = lines(&all)
        .filter(|(_, row)| !row.trim().is_empty())
        .peekable();
    let mut step = step_line(rows.peek().map_or("", |(_, row)| row));
    if step.is_some() {
        rows.next();
    }
    let (_, header_line) = rows
        .next()
        .ok_or_else(|| ReadError::new(1, "it is empty"))?;
    let header: Vec<&str> = header_line.split_whitespace().collect();
    let place = |name: &str| header.iter().position(|column| *column == name);
    let places = CLASSIC_COLUMNS.map(|metric| place(metric.name.trim_end_matches("_rate")));
    let tag = place("tag").ok_or_else(|| ReadError::new(1, "its header has no tag"))?;
    let mut found = Vec::new();
    for (n, row) in rows {
        if row == header_line {
            continue;
        }
        if let Some(next) = step_line(row) {
            step = Some(next);
            continue;
        }
        if row.trim() == "-" {
            found.push(None);
            continue;
        }
        let words: Vec<&str> = row.split_whitespace().collect();
        if words.len() != header.len() {
            return Err(ReadError::new(
                n,
                format!("{} fields where {} belong", words.len(), header.len()),
            ));
        }
        for (i, word) in words
            .iter()
            .enumerate()
            .filter(|(i, word)| *i != tag && !matches!(**word, "NA" | "inf"))
        {
            number(word, n).map_err(|error| {
                ReadError::new(n, format!("{} of column {}", error.reason, header[i]))
            })?;
        }
        let cells = places.map(|place| place.map_or("NA", |i| words[i]).to_owned());
        found.push(Some(MetricsLine {
            step: step.clone(),
            tag: words[tag].to_owned(),
            cells,
        }));
    }
    if !found.iter().any(Option::is_some) {
        return Err(ReadError::new(
            end(&all),
            "it has no lines: the file is truncated",
        ));
    }
    Ok(MetricsLines { lines: found })
}

/// A line with the name of a step alone.
fn step_line(row: &str) -> Option<String> {
    let row = row.trim();
    let is_step = row.starts_with("l.") || row.starts_with('q') || row == "scan";
    (is_step && !row.contains(char::is_whitespace)).then(|| row.to_owned())
}

/// The steps of a summary, which has a line for each and no names: told by their number.
pub fn steps_of_summary(lines: usize) -> Option<(&'static str, Vec<String>)> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    match lines {
        15 => {
            let rates = [100, 200, 400, 600, 800, 1000]
                .into_iter()
                .flat_map(|rate| [format!("q{rate}.1"), format!("q{rate}.2")]);
            Some((
                "steps of 2020-06 to 2023-05",
                ["l.i0", "l.x", "l.i1"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain(rates)
                    .collect(),
            ))
        }
        10 => Some((
            "steps since 2023-12-14",
            names(&[
                "l.i0",
                "l.x",
                "l.i1",
                "l.i2",
                "qr100.L1",
                "qp100.L2",
                "qr500.L3",
                "qp500.L4",
                "qr1000.L5",
                "qp1000.L6",
            ]),
        )),
        6 => Some((
            "steps of 2023-05 to 2023-12",
            names(&["l.i0", "l.x", "l.i1", "q100", "q500", "q1000"]),
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "ips\tqps\trps\trmbps\twps\twmbps\trpq\trkbpq\twpi\twkbpi\tcsps\tcpups\tcspq\tcpupq\tdbgb1\tdbgb2\trss\tmaxop\tp50\tp99\ttag";
    const ROW: &str = "998\t6046\t0\t0.0\t26.5\t1.0\t0.000\t0.000\t0.027\t1.034\t23942\t28.4\t3.960\t188\t10.0\t50.6\t10.3\t0.027\t6057\t5818\tmy8022.cx6d";

    #[test]
    fn lines_with_separators() {
        let found = read(format!("{HEADER}\n{ROW}\n-\n{ROW}\n").as_bytes()).unwrap();
        assert_eq!(found.lines.len(), 3);
        let line = found.lines[0].as_ref().unwrap();
        assert_eq!(
            (
                line.tag.as_str(),
                line.cells[0].as_str(),
                line.cells[19].as_str()
            ),
            ("my8022.cx6d", "998", "5818")
        );
        assert!(!found.is_relative());
        let relative = ROW.replace("998", "1.00").replace("6057", "inf");
        assert!(
            read(format!("{HEADER}\n{relative}\n").as_bytes())
                .unwrap()
                .is_relative()
        );
        for (text, error) in [
            (
                format!("{HEADER}\n"),
                "line 1: it has no lines: the file is truncated",
            ),
            (
                format!("{HEADER}\n1\t2\n"),
                "line 2: 2 fields where 21 belong",
            ),
            (
                format!("{HEADER}\n{}\n", ROW.replace("26.5", "x")),
                "line 2: \"x\" is not a number of column wps",
            ),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn files_of_several_steps_name_them() {
        let text = format!("\nl.i0\n{HEADER}\n{ROW}\n\nq100.1\n{HEADER}\n{ROW}\n{ROW}\n");
        assert!(is_metrics_lines(&text));
        let steps: Vec<_> = read(text.as_bytes())
            .unwrap()
            .lines
            .into_iter()
            .map(|line| line.unwrap().step.unwrap())
            .collect();
        assert_eq!(steps, ["l.i0", "q100.1", "q100.1"]);
    }

    #[test]
    fn older_files_have_more_columns() {
        let header = HEADER.replace("\trss", "\tvsz\trss");
        let row = ROW.replace("\t10.3\t", "\t99.9\t10.3\t");
        assert_eq!(
            read(format!("{header}\n{row}\n").as_bytes()).unwrap().lines[0]
                .as_ref()
                .unwrap()
                .cells[16],
            "10.3"
        );
        assert_eq!(steps_of_summary(15).unwrap().1[14], "q1000.2");
        assert_eq!(steps_of_summary(14), None);
    }
}
