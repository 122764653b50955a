//! Tab separated tables with a header line.

use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::files::durable::{AtomicFile, read_file};

/// An unfinished table; it appears under its name when it is finished.
#[derive(Debug)]
pub(super) struct TableWriter {
    path: PathBuf,
    file: AtomicFile,
    columns: usize,
}

impl TableWriter {
    pub(super) fn create<T: Display>(path: &Path, columns: &[T]) -> Result<Self, StoreError> {
        let mut table = Self {
            path: path.to_owned(),
            file: AtomicFile::create(path)?,
            columns: columns.len(),
        };
        table.append(columns.iter().map(ToString::to_string))?;
        Ok(table)
    }

    pub(super) fn append(
        &mut self,
        cells: impl IntoIterator<Item = String>,
    ) -> Result<(), StoreError> {
        let cells: Vec<String> = cells.into_iter().collect();
        let unwritable = |reason| {
            Err(StoreError::Unwritable {
                path: self.path.clone(),
                reason,
            })
        };
        if cells.len() != self.columns {
            return unwritable(format!(
                "a row of {} cells does not fit {} columns",
                cells.len(),
                self.columns
            ));
        }
        if let Some(cell) = cells.iter().find(|cell| cell.contains(['\t', '\n', '\r'])) {
            return unwritable(format!("a cell holds a tab or a line break: {cell:?}"));
        }
        let line = cells.join("\t") + "\n";
        self.file
            .write_all(line.as_bytes())
            .map_err(StoreError::io("write", &self.path))
    }

    pub(super) fn finish(self) -> Result<(), StoreError> {
        self.file.commit()
    }
}

/// A table's text, read whole.
pub(super) struct Table {
    path: PathBuf,
    text: String,
}

impl Table {
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = read_file(path).map_err(StoreError::io("read", path))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| StoreError::corrupt(path, 1, format!("it is not text: {error}")))?;
        let table = Self {
            path: path.to_owned(),
            text,
        };
        if !table.text.ends_with('\n') {
            return Err(table.corrupt(
                table.text.lines().count().max(1),
                "the last line has no end",
            ));
        }
        Ok(table)
    }

    /// The column names.
    pub(super) fn columns(&self) -> Vec<&str> {
        self.lines().next().unwrap_or_default()
    }

    /// The rows after the header with their line numbers; a row as wide as the header.
    pub(super) fn rows(&self) -> impl Iterator<Item = Result<(usize, Vec<&str>), StoreError>> {
        let columns = self.columns().len();
        self.lines().enumerate().skip(1).map(move |(index, cells)| {
            let line = index + 1;
            if cells.len() == columns {
                Ok((line, cells))
            } else {
                Err(self.corrupt(
                    line,
                    &format!("it has {} cells, the header has {columns}", cells.len()),
                ))
            }
        })
    }

    /// A cell that holds a whole number which fits.
    pub(super) fn whole<T: TryFrom<u64>>(
        &self,
        line: usize,
        cells: &[&str],
        columns: &[&str],
        column: usize,
    ) -> Result<T, StoreError> {
        let (name, cell) = (columns[column], cells[column]);
        let number = cell
            .parse::<u64>()
            .ok()
            .filter(|number| number.to_string() == cell);
        let number = number.ok_or_else(|| {
            self.corrupt(line, &format!("the {name} {cell:?} is not a whole number"))
        })?;
        T::try_from(number)
            .map_err(|_| self.corrupt(line, &format!("the {name} {cell} is too large")))
    }

    pub(super) fn corrupt(&self, line: usize, reason: &str) -> StoreError {
        StoreError::corrupt(&self.path, line, reason)
    }

    fn lines(&self) -> impl Iterator<Item = Vec<&str>> {
        // Not `lines()`: it would hide a carriage return.
        self.text
            .split_terminator('\n')
            .map(|line| line.split('\t').collect())
    }
}
