//! `o.res.dop<N>`: a step's results as the scripts put them together. Written from what the scripts
//! print; no published file of it is known.

use std::collections::BTreeMap;

use crate::text::{Read, ReadError, count, end, lines, number, text};

/// What such a file tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResult {
    pub clients: u64,
    pub rows_per_client: u64,
    /// Whole seconds from before the first client to after the last.
    pub seconds: u64,
    /// Rows per second, as printed.
    pub ips: String,
    pub queries: u64,
    /// Queries per second, as printed.
    pub qps: String,
    /// Averages by column name, of the tables that divide by inserts: `r/s`, `cs/s`, ...
    pub by_insert: BTreeMap<String, String>,
    /// The same of the tables that divide by queries.
    pub by_query: BTreeMap<String, String>,
    /// Size of the database and of the data directory in GiB.
    pub db_gib: [Option<String>; 2],
    /// The longest insert, delete and query, in seconds.
    pub max_s: [Option<String>; 3],
    /// Rates of the first client that 50 and 99 percent of its lines reached: insert, delete,
    /// query.
    pub nth: BTreeMap<u32, [String; 3]>,
}

/// Whether this is such a file.
pub fn is_step_result(head: &str) -> bool {
    let first = head.lines().next().unwrap_or_default();
    first.contains(" processes, ")
        && first.contains(" rows-per-process, ")
        && first.contains(" rows-per-second, ")
}

/// Reads a file.
pub fn read(bytes: &[u8]) -> Read<StepResult> {
    let all = text(bytes);
    let first = all.lines().next().unwrap_or_default();
    let before = |unit: &str| -> Read<&str> {
        let part = first
            .split(", ")
            .find_map(|part| part.strip_suffix(unit)?.strip_suffix(' '));
        part.ok_or_else(|| ReadError::new(1, format!("there is no number of {unit}")))
    };
    let mut result = StepResult {
        clients: count(before("processes")?, 1)?,
        rows_per_client: count(before("rows-per-process")?, 1)?,
        seconds: count(before("seconds")?, 1)?,
        ips: before("rows-per-second")?.to_owned(),
        queries: count(before("queries")?, 1)?,
        qps: before("queries-per-second")?.to_owned(),
        ..StepResult::default()
    };
    number(&result.ips, 1)?;
    number(&result.qps, 1)?;
    let mut rows = lines(&all);
    let mut tables = 0;
    while let Some((_, line)) = rows.next() {
        let header: Vec<&str> = line.split_whitespace().collect();
        if header.first() == Some(&"nsamp") {
            let Some((n, row)) = rows.next() else { break };
            // iostat and vmstat by inserts, then both by queries; the tables of vmstat name their
            // columns alike.
            let target = if tables < 2 {
                &mut result.by_insert
            } else {
                &mut result.by_query
            };
            tables += 1;
            let words: Vec<&str> = row.split_whitespace().collect();
            for (name, word) in header.iter().zip(&words) {
                number(word, n)?;
                target.insert((*name).to_owned(), (*word).to_owned());
            }
        } else if let Some(rest) = line.strip_prefix("dbGB") {
            result.db_gib[0] = first_number(rest);
        } else if let Some(rest) = line.strip_prefix("dbdirGB") {
            result.db_gib[1] = first_number(rest);
        } else if let Some((kind, rest)) = line
            .strip_prefix("Max ")
            .and_then(|rest| rest.split_once([' ', '\t', ':']))
        {
            if let Some(place) = ["insert", "delete", "query"]
                .iter()
                .position(|known| *known == kind)
            {
                result.max_s[place] = first_number(rest);
            }
        } else if let Some((percent, rates)) = nth_line(line) {
            result.nth.entry(percent).or_insert(rates);
        }
    }
    if result.by_insert.is_empty() {
        return Err(ReadError::new(
            end(&all),
            "it has no averages of iostat: the file is truncated",
        ));
    }
    Ok(result)
}

fn first_number(rest: &str) -> Option<String> {
    rest.split([' ', '\t', ':', '=', ','])
        .find(|word| word.parse::<f64>().is_ok_and(f64::is_finite))
        .map(str::to_owned)
}

/// `50th, 39 / 78 = 26973 insert, 0 delete, 0 query`; without deletes in older files.
fn nth_line(line: &str) -> Option<(u32, [String; 3])> {
    let (percent, rest) = line.split_once("th, ")?;
    let (_, rates) = rest.split_once(" = ")?;
    let of = |kind: &str| -> Option<String> {
        rates
            .split(", ")
            .find_map(|part| Some(part.trim().strip_suffix(kind)?.trim_end().to_owned()))
    };
    Some((
        percent.trim().parse().ok()?,
        [
            of("insert")?,
            of("delete").unwrap_or_else(|| "NA".to_owned()),
            of("query")?,
        ],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_as_the_format_is_described() {
        let text = include_str!("../../tests/samples/o.res.txt");
        assert!(is_step_result(text));
        let result = read(text.as_bytes()).unwrap();
        assert_eq!(
            (result.clients, result.rows_per_client, result.seconds),
            (2, 6000, 60)
        );
        assert_eq!(
            (result.ips.as_str(), result.qps.as_str()),
            ("200.0", "9000.5")
        );
        assert_eq!(
            (
                result.by_insert["w/s"].as_str(),
                result.by_insert["cpu/s"].as_str()
            ),
            ("20.0", "40.5")
        );
        assert_eq!(
            (
                result.by_query["r/q"].as_str(),
                result.by_query["cpu/q"].as_str()
            ),
            ("0.001", "0.004500")
        );
        assert_eq!(
            result.db_gib,
            [Some("1.5".to_owned()), Some("2.5".to_owned())]
        );
        assert_eq!(result.max_s[2].as_deref(), Some("0.027"));
        assert_eq!(result.nth[&99], ["100", "100", "4400"].map(str::to_owned));
        let cut = &text[..text.find("iostat").unwrap()];
        assert!(
            read(cut.as_bytes())
                .unwrap_err()
                .reason
                .contains("truncated")
        );
    }
}
