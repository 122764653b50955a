//! `sb.perf.hw.*.sorted`: hardware counters of one sample of 10 seconds.

use std::collections::BTreeMap;

use crate::text::{Read, ReadError, lines, number, text};

/// Counts by name, as they were read in the window. What the machine cannot count (-1) is left out.
pub fn read(bytes: &[u8]) -> Read<BTreeMap<String, f64>> {
    let all = text(bytes);
    let mut counters = BTreeMap::new();
    for (n, line) in lines(&all).filter(|(_, line)| !line.trim().is_empty()) {
        let (name, value) = line
            .split_once('\t')
            .ok_or_else(|| ReadError::new(n, "a line is a name, a tab and a number"))?;
        let value = number(value.trim(), n)?;
        if value >= 0.0 {
            counters.insert(name_of(name).to_owned(), value);
        }
    }
    if counters.is_empty() {
        return Err(ReadError::new(1, "no counter of it was supported"));
    }
    Ok(counters)
}

/// The scripts misspell one name.
pub(super) fn name_of(counter: &str) -> &str {
    match counter {
        "migratons" => "migrations",
        counter => counter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_counters_are_no_numbers() {
        let counters = read(b"cycles\t1200000\nLLC-loads\t-1\nmigratons\t3\nipc\t1.52\n").unwrap();
        let expected = [("cycles", 1_200_000.0), ("ipc", 1.52), ("migrations", 3.0)];
        assert_eq!(
            counters,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        assert_eq!(
            read(b"a\t-1\n").unwrap_err().reason,
            "no counter of it was supported"
        );
        assert_eq!(
            read(b"a\t1\nb 2\n").unwrap_err().to_string(),
            "line 2: a line is a name, a tab and a number"
        );
    }
}
