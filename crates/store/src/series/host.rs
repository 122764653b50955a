//! What the host did in each second.

use std::path::Path;

use super::table::{Table, TableWriter};
use crate::StoreError;

const FIRST_COLUMN: &str = "second";

/// The host's readings of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostSeries {
    /// The names of the columns, units included; the first is `second`.
    pub columns: Vec<String>,
    /// A row a second, as wide as `columns`. `None` where a reading was unavailable.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl HostSeries {
    /// The values of one column by name.
    pub fn column(&self, name: &str) -> Option<impl Iterator<Item = Option<f64>>> {
        let index = self.columns.iter().position(|column| column == name)?;
        Some(
            self.rows
                .iter()
                .map(move |row| row.get(index).copied().flatten()),
        )
    }
}

/// Writes the readings of a step, see [`super::host_path`]. What is not a finite number is no
/// reading and becomes unavailable.
pub fn write_host(path: impl AsRef<Path>, series: &HostSeries) -> Result<(), StoreError> {
    let path = path.as_ref();
    if series
        .columns
        .first()
        .is_none_or(|column| column != FIRST_COLUMN)
    {
        let reason = format!("the first column is not \"{FIRST_COLUMN}\"");
        return Err(StoreError::Unwritable {
            path: path.to_owned(),
            reason,
        });
    }
    let mut table = TableWriter::create(path, &series.columns)?;
    for row in &series.rows {
        table.append(row.iter().map(|cell| {
            cell.filter(|value| value.is_finite())
                .map_or_else(String::new, |value| value.to_string())
        }))?;
    }
    table.finish()
}

/// Reads a file of [`write_host`]'s form.
pub fn read_host(path: impl AsRef<Path>) -> Result<HostSeries, StoreError> {
    let table = Table::read(path.as_ref())?;
    let columns: Vec<String> = table.columns().into_iter().map(str::to_owned).collect();
    if columns.first().is_none_or(|column| column != FIRST_COLUMN) {
        return Err(table.corrupt(1, "the first column is not \"second\""));
    }
    let rows = table
        .rows()
        .map(|row| {
            let (line, cells) = row?;
            cells
                .into_iter()
                .map(|cell| {
                    read_cell(cell)
                        .ok_or_else(|| table.corrupt(line, &format!("{cell:?} is not a number")))
                })
                .collect()
        })
        .collect::<Result<_, _>>()?;
    Ok(HostSeries { columns, rows })
}

fn read_cell(cell: &str) -> Option<Option<f64>> {
    if cell.is_empty() {
        return Some(None);
    }
    cell.parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(Some)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn series() -> impl Strategy<Value = HostSeries> {
        proptest::collection::vec("[a-z_]{1,9}", 0..5).prop_flat_map(|names| {
            let columns: Vec<String> = std::iter::once(FIRST_COLUMN.to_owned())
                .chain(names)
                .collect();
            let finite = {
                use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
                NORMAL | SUBNORMAL | ZERO | POSITIVE | NEGATIVE
            };
            let row = proptest::collection::vec(proptest::option::of(finite), columns.len());
            proptest::collection::vec(row, 0..10).prop_map(move |rows| HostSeries {
                columns: columns.clone(),
                rows,
            })
        })
    }

    proptest! {
        #[test]
        fn round_trip(series in series()) {
            let dir = tempfile::tempdir().unwrap();
            let path = super::super::host_path(dir.path(), "qr100");
            write_host(&path, &series).unwrap();
            prop_assert_eq!(read_host(&path).unwrap(), series);
        }
    }

    fn some_series() -> HostSeries {
        HostSeries {
            columns: ["second", "cpu_user_s", "disk_reads"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![
                vec![Some(0.0), Some(0.25), None],
                vec![Some(1.0), Some(f64::NAN), Some(12.0)],
            ],
        }
    }

    #[test]
    fn the_text_is_as_documented() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        write_host(&path, &some_series()).unwrap();
        let expected = "second\tcpu_user_s\tdisk_reads\n0\t0.25\t\n1\t\t12\n";
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
        let read = read_host(&path).unwrap();
        assert_eq!(
            read.column("disk_reads").unwrap().collect::<Vec<_>>(),
            [None, Some(12.0)]
        );
        assert!(read.column("other").is_none());
        for (bad, reason) in [
            (
                expected.replace("0.25", "0,25"),
                "line 2: \"0,25\" is not a number",
            ),
            (expected.replace("0.25", "inf"), "is not a number"),
            (expected.replace("0.25", "NaN"), "is not a number"),
            (
                expected.replace("second", "seconds"),
                "line 1: the first column",
            ),
            (expected.replace("\t12\n", "\n"), "line 3: it has 2 cells"),
        ] {
            fs::write(&path, bad).unwrap();
            let error = read_host(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("x.tsv"), "{error}");
        }
    }

    #[test]
    fn a_row_or_header_that_does_not_fit_is_refused_and_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tsv");
        let (mut narrow, mut headless) = (some_series(), some_series());
        narrow.rows[1].pop();
        headless.columns[0] = "time".into();
        for series in [narrow, headless] {
            assert!(matches!(
                write_host(&path, &series),
                Err(StoreError::Unwritable { .. })
            ));
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
