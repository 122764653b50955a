//! `sb.prepare.o.*`: the load's closing line.

use crate::text::{Read, ReadError, end, lines, number, text};

/// `Load seconds is T for N tables, M Mips, R ips`.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// Seconds for all tables with their indexes.
    pub seconds: f64,
    /// Rows per second, as printed.
    pub rows_per_s: String,
}

const START: &str = "Load seconds is ";

/// Whether this is a load's output.
pub fn is_load(all: &str) -> bool {
    all.lines().any(|line| line.starts_with(START))
}

/// Reads the closing line.
pub fn read(bytes: &[u8]) -> Read<Load> {
    let all = text(bytes);
    let closing = lines(&all)
        .filter_map(|(n, line)| Some((n, line.strip_prefix(START)?)))
        .last();
    let (n, rest) = closing.ok_or_else(|| {
        ReadError::new(
            end(&all),
            "it has no \"Load seconds is\": the load did not finish",
        )
    })?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let before = |unit: &str| -> Read<&str> {
        let place = words
            .iter()
            .rposition(|word| word.trim_end_matches(',') == unit)
            .and_then(|i| i.checked_sub(1));
        place
            .map(|i| words[i])
            .ok_or_else(|| ReadError::new(n, format!("there is no number of {unit}")))
    };
    let rate = before("ips")?;
    number(rate, n)?;
    Ok(Load {
        seconds: number(words.first().copied().unwrap_or_default(), n)?,
        rows_per_s: rate.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line() {
        let load =
            read(b"Creating table\nLoad seconds is 385 for 1 tables, 0.13 Mips, 129870 ips\n")
                .unwrap();
        assert_eq!(
            load,
            Load {
                seconds: 385.0,
                rows_per_s: "129870".to_owned()
            }
        );
        for (text, error) in [
            (
                "Creating table\n",
                "line 1: it has no \"Load seconds is\": the load did not finish",
            ),
            (
                "Load seconds is x for 1 tables, 1 Mips, 2 ips",
                "line 1: \"x\" is not a number",
            ),
            (
                "Load seconds is 4 for 1 tables",
                "line 1: there is no number of ips",
            ),
        ] {
            assert_eq!(read(text.as_bytes()).unwrap_err().to_string(), error);
        }
    }
}
