//! `join<sample>.abs.<tag>.sb.perf.hw.<test>.<sample>.sorted`: hardware counters of one sample of
//! several builds, a column each. The columns have no names.

use std::collections::BTreeMap;

use super::perf::name_of;
use crate::names::test_file::TestFile;
use crate::text::{Read, ReadError, end, lines, number, text};

/// The counters of a test.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// Which builds these are: `pgcmp`. Tables of rates of the same builds have it in their name.
    pub tag: String,
    /// The test.
    pub test: TestFile,
    /// Counts by name in the order of the builds. What a machine cannot count (-1) is left out.
    pub columns: Vec<BTreeMap<String, f64>>,
}

/// What the name of such a file tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinName {
    /// Ratios to the first build, which follow from the table of counts.
    pub is_relative: bool,
    tag: String,
    test: TestFile,
}

impl JoinName {
    /// Reads a name. `None` if it is another file's.
    pub fn of(name: &str) -> Option<Self> {
        let (sample, rest) = name.strip_prefix("join")?.split_once('.')?;
        sample.parse::<u32>().ok()?;
        let (kind, rest) = rest.split_once('.')?;
        let at = rest.find(".sb.perf.hw.")?;
        let is_relative = match kind {
            "abs" => false,
            "rel" => true,
            _ => return None,
        };
        Some(Self {
            is_relative,
            tag: rest[..at].to_owned(),
            test: TestFile::of(&rest[at + 1..])?,
        })
    }
}

/// Reads a table of counts: a name and a number per build, separated by spaces.
pub fn read(name: JoinName, bytes: &[u8]) -> Read<Join> {
    let all = text(bytes);
    let mut columns: Vec<BTreeMap<String, f64>> = Vec::new();
    for (n, line) in lines(&all).filter(|(_, line)| !line.trim().is_empty()) {
        let mut words = line.split_whitespace();
        let counter = words.next().unwrap_or_default();
        let values: Vec<&str> = words.collect();
        if columns.is_empty() {
            columns.resize(values.len(), BTreeMap::new());
        }
        if values.is_empty() || values.len() != columns.len() {
            let reason = format!("\"{counter}\" has {} numbers", values.len());
            return Err(ReadError::new(n, reason));
        }
        for (column, value) in columns.iter_mut().zip(values) {
            let value = number(value, n)?;
            if value >= 0.0 {
                column.insert(name_of(counter).to_owned(), value);
            }
        }
    }
    if columns.iter().all(BTreeMap::is_empty) {
        return Err(ReadError::new(end(&all), "no counter of it was supported"));
    }
    Ok(Join {
        tag: name.tag,
        test: name.test,
        columns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "join1.abs.pgcmp.sb.perf.hw.update-index.range100.pk1.1.sorted";

    #[test]
    fn a_column_per_build() {
        let name = JoinName::of(NAME).unwrap();
        let bytes = b"cycles 1200 1300\nbus-cycles -1 -1\nmigratons 3 -1\nipc 0.68 0.73\n";
        let join = read(name.clone(), bytes).unwrap();
        assert_eq!(
            (join.tag.as_str(), join.test.test.as_str()),
            ("pgcmp", "update-index")
        );
        let counters = |of: &[(&str, f64)]| -> BTreeMap<String, f64> {
            of.iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect()
        };
        assert_eq!(
            join.columns,
            [
                counters(&[("cycles", 1200.0), ("migrations", 3.0), ("ipc", 0.68)]),
                counters(&[("cycles", 1300.0), ("ipc", 0.73)])
            ]
        );
        for (text, error) in [
            ("cycles 1 2\nipc 1\n", "line 2: \"ipc\" has 1 numbers"),
            ("cycles 1 x\n", "line 1: \"x\" is not a number"),
            ("cycles -1 -1\n", "line 1: no counter of it was supported"),
        ] {
            let found = read(name.clone(), text.as_bytes()).unwrap_err().to_string();
            assert_eq!(found, error);
        }
    }

    #[test]
    fn names_of_joins() {
        assert!(!JoinName::of(NAME).unwrap().is_relative);
        assert!(
            JoinName::of(&NAME.replace(".abs.", ".rel."))
                .unwrap()
                .is_relative
        );
        for name in [
            "join.abs.x.sb.perf.hw.scan.range1.pk1.1.sorted",
            "join1.sum.x.sb.perf.hw.scan.range1.pk1.1.sorted",
            "join1.abs.x",
            "joined.txt",
        ] {
            assert_eq!(JoinName::of(name), None, "{name}");
        }
    }
}
