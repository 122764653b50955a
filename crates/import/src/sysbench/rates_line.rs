//! `sb.r.{qps,trx,rtavg,rtmax,rt95}.*`: one number per thread count and the test's name.

use crate::text::{Read, ReadError, number, text};

/// One file: `<v1>\t<v2>...\t<engine> <test> range=<R>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatesLine {
    /// A number per thread count, as printed.
    pub values: Vec<String>,
    /// `innodb`.
    pub engine: String,
    /// `hot-points`.
    pub test: String,
    pub range: u32,
}

/// Reads a file; what follows its first line is ignored.
pub fn read(bytes: &[u8]) -> Read<RatesLine> {
    let all = text(bytes);
    let row = all.lines().next().unwrap_or_default();
    let mut values: Vec<String> = row
        .split('\t')
        .map(|cell| cell.trim().to_owned())
        .filter(|cell| !cell.is_empty())
        .collect();
    let label = values.pop().unwrap_or_default();
    let words: Vec<&str> = label.split_whitespace().collect();
    let strange = || ReadError::new(1, "it does not end with engine, test and range");
    let [engine, test, range] = words[..] else {
        return Err(strange());
    };
    let range = range
        .strip_prefix("range=")
        .and_then(|range| range.parse().ok())
        .ok_or_else(strange)?;
    for value in &values {
        number(value, 1)?;
    }
    if values.is_empty() {
        return Err(ReadError::new(1, "it has no numbers"));
    }
    Ok(RatesLine {
        values,
        engine: engine.to_owned(),
        test: test.to_owned(),
        range,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_the_name() {
        let read_line = |line: &str| read(line.as_bytes());
        let rates_line = read_line("109\t200.5\tinnodb hot-points range=100\n").unwrap();
        assert_eq!(
            (
                rates_line.values.len(),
                rates_line.test.as_str(),
                rates_line.range
            ),
            (2, "hot-points", 100)
        );
        for (line, error) in [
            ("", "line 1: it does not end with engine, test and range"),
            (
                "1\tinnodb hot-points",
                "line 1: it does not end with engine, test and range",
            ),
            ("innodb hot-points range=1", "line 1: it has no numbers"),
            (
                "x\tinnodb hot-points range=1",
                "line 1: \"x\" is not a number",
            ),
        ] {
            assert_eq!(read_line(line).unwrap_err().to_string(), error);
        }
    }
}
