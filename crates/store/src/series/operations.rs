//! What was done in each second.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::path::Path;

use super::table::{TableWriter, read_lines};
use crate::StoreError;

const COLUMNS: [&str; 9] = [
    "second",
    "client",
    "kind",
    "ok",
    "unsuccessful",
    "rows",
    "service_sum_ns",
    "service_max_ns",
    "response_max_ns",
];

/// The operations of one kind that one client finished in one second of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationSecond {
    /// The second of the step, from 0.
    pub second: u32,
    /// The client, from 1.
    pub client: u32,
    /// `insert`, `delete`, `query`, ...
    pub kind: String,
    /// Operations done.
    pub ok: u64,
    /// Tries that were retried or given up.
    pub unsuccessful: u64,
    /// Rows of the operations done.
    pub rows: u64,
    /// Sum of `done - sent` of the operations done.
    pub service_sum_ns: u64,
    /// The longest `done - sent`.
    pub service_max_ns: u64,
    /// The longest `done - due`; 0 for a closed loop.
    pub response_max_ns: u64,
}

/// Writes the seconds of a step one by one, see [`super::operations_path`]. The file is there once it
/// is finished.
#[derive(Debug)]
pub struct OperationsWriter(TableWriter);

impl OperationsWriter {
    /// Begins the file.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Ok(Self(TableWriter::create(path.as_ref(), &COLUMNS)?))
    }

    /// Adds a row.
    pub fn append(&mut self, row: &OperationSecond) -> Result<(), StoreError> {
        let OperationSecond {
            second,
            client,
            kind,
            ok,
            unsuccessful,
            rows,
            service_sum_ns,
            service_max_ns,
            response_max_ns,
        } = row;
        let numbers = [
            ok,
            unsuccessful,
            rows,
            service_sum_ns,
            service_max_ns,
            response_max_ns,
        ];
        self.0.append(
            [second.to_string(), client.to_string(), kind.clone()]
                .into_iter()
                .chain(numbers.map(u64::to_string)),
        )
    }

    /// Gives the file its name.
    pub fn finish(self) -> Result<(), StoreError> {
        self.0.finish()
    }
}

/// Writes all seconds of a step.
pub fn write_operations(
    path: impl AsRef<Path>,
    rows: impl IntoIterator<Item = impl Borrow<OperationSecond>>,
) -> Result<(), StoreError> {
    let mut writer = OperationsWriter::create(path)?;
    rows.into_iter()
        .try_for_each(|row| writer.append(row.borrow()))?;
    writer.finish()
}

/// Reads what [`write_operations`] wrote.
pub fn read_operations(path: impl AsRef<Path>) -> Result<Vec<OperationSecond>, StoreError> {
    let mut rows = Vec::new();
    for_each_row(path.as_ref(), |row| rows.push(row))?;
    Ok(rows)
}

/// The same, the clients of a second taken together: their client is 0. What it takes does not grow
/// with their number.
pub fn read_operations_together(
    path: impl AsRef<Path>,
) -> Result<Vec<OperationSecond>, StoreError> {
    let mut together: BTreeMap<(String, u32), OperationSecond> = BTreeMap::new();
    for_each_row(path.as_ref(), |row| {
        let key = (row.kind.clone(), row.second);
        let sum = together.entry(key).or_insert_with(|| OperationSecond {
            second: row.second,
            kind: row.kind.clone(),
            ..OperationSecond::default()
        });
        sum.ok = sum.ok.saturating_add(row.ok);
        sum.unsuccessful = sum.unsuccessful.saturating_add(row.unsuccessful);
        sum.rows = sum.rows.saturating_add(row.rows);
        sum.service_sum_ns = sum.service_sum_ns.saturating_add(row.service_sum_ns);
        sum.service_max_ns = sum.service_max_ns.max(row.service_max_ns);
        sum.response_max_ns = sum.response_max_ns.max(row.response_max_ns);
    })?;
    Ok(together.into_values().collect())
}

fn for_each_row(path: &Path, mut take: impl FnMut(OperationSecond)) -> Result<(), StoreError> {
    read_lines(path, &COLUMNS, |place, line, cells| {
        let number = |column| place.whole::<u64>(line, cells, &COLUMNS, column);
        let small = |column| place.whole::<u32>(line, cells, &COLUMNS, column);
        take(OperationSecond {
            second: small(0)?,
            client: small(1)?,
            kind: cells[2].to_owned(),
            ok: number(3)?,
            unsuccessful: number(4)?,
            rows: number(5)?,
            service_sum_ns: number(6)?,
            service_max_ns: number(7)?,
            response_max_ns: number(8)?,
        });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<OperationSecond>> {
        let row = (any::<[u32; 2]>(), "[a-z_ -]{0,12}", any::<[u64; 6]>()).prop_map(
            |([second, client], kind, numbers)| {
                let [
                    ok,
                    unsuccessful,
                    rows,
                    service_sum_ns,
                    service_max_ns,
                    response_max_ns,
                ] = numbers;
                OperationSecond {
                    second,
                    client,
                    kind,
                    ok,
                    unsuccessful,
                    rows,
                    service_sum_ns,
                    service_max_ns,
                    response_max_ns,
                }
            },
        );
        proptest::collection::vec(row, 0..20)
    }

    proptest! {
        #[test]
        fn round_trip(rows in rows()) {
            let dir = tempfile::tempdir().unwrap();
            let path = super::super::operations_path(dir.path(), "qr100");
            write_operations(&path, &rows).unwrap();
            prop_assert_eq!(read_operations(&path).unwrap(), &rows[..]);
            let together = read_operations_together(&path).unwrap();
            let sum = |rows: &[OperationSecond]| {
                let ok = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.ok));
                (ok, rows.iter().map(|row| row.service_max_ns).max())
            };
            prop_assert_eq!(sum(&together), sum(&rows));
            let keys = together.iter().map(|row| (&row.kind, row.second));
            let is_sorted = keys.is_sorted();
            prop_assert!(is_sorted);
        }
    }

    #[test]
    fn the_text_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let row = OperationSecond {
            second: 3,
            client: 1,
            kind: "insert".into(),
            ok: 2,
            rows: 200,
            service_sum_ns: 7,
            ..Default::default()
        };
        write_operations(&path, [row]).unwrap();
        let expected = "second\tclient\tkind\tok\tunsuccessful\trows\tservice_sum_ns\tservice_max_ns\tresponse_max_ns\n3\t1\tinsert\t2\t0\t200\t7\t0\t0\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        for (bad, reason) in [
            (
                expected.replace("\t200\t", "\t2x0\t"),
                "line 2: the rows \"2x0\" is not a whole number",
            ),
            (
                expected.replace("\t200\t", "\t0200\t"),
                "is not a whole number",
            ),
            (
                expected.replace("\t200\t", "\t-1\t"),
                "is not a whole number",
            ),
            (
                expected.replace("3\t1\tins", "4294967296\t1\tins"),
                "the second 4294967296 is too large",
            ),
            (expected.replace("\t200\t", "\t"), "it has 8 cells"),
            (
                expected.replace("\trows\t", "\tlines\t"),
                "line 1: the columns are not",
            ),
            (
                expected.trim_end().to_owned(),
                "line 2: the last line has no end",
            ),
            (
                expected.replace("\t0\t0\n", "\t0\t0\r\n"),
                "is not a whole number",
            ),
            (String::new(), "line 1: the last line has no end"),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read_operations(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("x.tsv"), "{error}");
        }
    }

    #[test]
    fn a_kind_that_would_break_the_table_is_refused_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let row = OperationSecond {
            kind: "a\tb".into(),
            ..Default::default()
        };
        assert!(matches!(
            write_operations(&path, [row]),
            Err(StoreError::Unwritable { .. })
        ));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
