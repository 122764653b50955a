//! What a tree of levels looked like in each second.

use std::path::Path;

use super::table::{TableWriter, read_lines};
use crate::StoreError;

const COLUMNS: [&str; 4] = ["second", "level", "files", "bytes"];

/// One level of a log-structured tree in one second of a step. A level without files has no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSample {
    /// The second of the step, from 0.
    pub second: u32,
    /// 0 is where memtables are flushed to.
    pub level: u32,
    /// Table files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Writes the samples of a step, see [`super::levels_path`].
pub fn write_levels(path: impl AsRef<Path>, samples: &[LevelSample]) -> Result<(), StoreError> {
    let mut table = TableWriter::create(path.as_ref(), &COLUMNS)?;
    for LevelSample {
        second,
        level,
        files,
        bytes,
    } in samples
    {
        table.append([
            second.to_string(),
            level.to_string(),
            files.to_string(),
            bytes.to_string(),
        ])?;
    }
    table.finish()
}

/// Reads what [`write_levels`] wrote.
pub fn read_levels(path: impl AsRef<Path>) -> Result<Vec<LevelSample>, StoreError> {
    let mut samples = Vec::new();
    read_lines(path.as_ref(), &COLUMNS, |place, line, cells| {
        let small = |column| place.whole::<u32>(line, cells, &COLUMNS, column);
        let large = |column| place.whole::<u64>(line, cells, &COLUMNS, column);
        samples.push(LevelSample {
            second: small(0)?,
            level: small(1)?,
            files: large(2)?,
            bytes: large(3)?,
        });
        Ok(())
    })?;
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn samples() -> impl Strategy<Value = Vec<LevelSample>> {
        let sample =
            (any::<[u32; 2]>(), any::<[u64; 2]>()).prop_map(|([second, level], [files, bytes])| {
                LevelSample {
                    second,
                    level,
                    files,
                    bytes,
                }
            });
        proptest::collection::vec(sample, 0..20)
    }

    proptest! {
        #[test]
        fn round_trip(samples in samples()) {
            let dir = tempfile::tempdir().unwrap();
            let path = super::super::levels_path(dir.path(), "fillseq");
            write_levels(&path, &samples).unwrap();
            prop_assert_eq!(read_levels(&path).unwrap(), samples);
        }
    }

    #[test]
    fn the_text_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let samples = [
            LevelSample {
                second: 0,
                level: 0,
                files: 3,
                bytes: 4_194_304,
            },
            LevelSample {
                second: 1,
                level: 6,
                files: 9,
                bytes: 0,
            },
        ];
        write_levels(&path, &samples).unwrap();
        let expected = "second\tlevel\tfiles\tbytes\n0\t0\t3\t4194304\n1\t6\t9\t0\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        for (bad, reason) in [
            (
                expected.replace("\t4194304", "\t4.2"),
                "line 2: the bytes \"4.2\" is not a whole number",
            ),
            (
                expected.replace("\t4194304", "\t-1"),
                "is not a whole number",
            ),
            (
                expected.replace("\t4194304", "\t04194304"),
                "is not a whole number",
            ),
            (
                expected.replace("1\t6", "4294967296\t6"),
                "line 3: the second 4294967296 is too large",
            ),
            (expected.replace("\t4194304", ""), "it has 3 cells"),
            (
                expected.replace("level", "depth"),
                "line 1: the columns are not",
            ),
            (
                expected.trim_end().to_owned(),
                "line 3: the last line has no end",
            ),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read_levels(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("x.tsv"), "{error}");
        }
    }
}
