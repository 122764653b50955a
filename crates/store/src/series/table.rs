//! Tab separated tables with a header line.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::files::durable::{AtomicFile, open_file, read_file};

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

/// A table that is read, for errors about its cells.
pub(super) struct Place(PathBuf);

impl Place {
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
        StoreError::corrupt(&self.0, line, reason)
    }

    /// The cells of a line, as many as there are columns.
    fn cells<'a>(
        &self,
        line: usize,
        text: &'a str,
        columns: usize,
    ) -> Result<Vec<&'a str>, StoreError> {
        let cells: Vec<&str> = text.split('\t').collect();
        match cells.len() == columns {
            true => Ok(cells),
            false => Err(self.corrupt(
                line,
                &format!("it has {} cells, the header has {columns}", cells.len()),
            )),
        }
    }
}

/// Reads a table with these columns line by line: it may be larger than memory. `take` gets the
/// place, the line's number and its cells.
pub(super) fn read_lines(
    path: &Path,
    columns: &[&str],
    mut take: impl FnMut(&Place, usize, &[&str]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let file = open_file(path).map_err(StoreError::io("read", path))?;
    let (mut file, place) = (BufReader::new(file), Place(path.to_owned()));
    let (mut bytes, mut number) = (Vec::new(), 0);
    loop {
        bytes.clear();
        let read = file.read_until(b'\n', &mut bytes);
        if read.map_err(StoreError::io("read", path))? == 0 && number > 0 {
            return Ok(());
        }
        number += 1;
        let line = bytes.strip_suffix(b"\n");
        let line = line.ok_or_else(|| place.corrupt(number, "the last line has no end"))?;
        let text = std::str::from_utf8(line)
            .map_err(|error| place.corrupt(number, &format!("it is not text: {error}")))?;
        if number > 1 {
            take(&place, number, &place.cells(number, text, columns.len())?)?;
        } else if text.split('\t').ne(columns.iter().copied()) {
            let names = columns.join(", ");
            return Err(place.corrupt(1, &format!("the columns are not {names}")));
        }
    }
}

/// A table's text, read whole.
pub(super) struct Table {
    place: Place,
    text: String,
}

impl Table {
    pub(super) fn read(path: &Path) -> Result<Self, StoreError> {
        let bytes = read_file(path).map_err(StoreError::io("read", path))?;
        let text = String::from_utf8(bytes)
            .map_err(|error| StoreError::corrupt(path, 1, format!("it is not text: {error}")))?;
        let table = Self {
            place: Place(path.to_owned()),
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
        let header = self.lines().next().unwrap_or_default();
        header.split('\t').collect()
    }

    /// The rows after the header with their line numbers; a row as wide as the header.
    pub(super) fn rows(&self) -> impl Iterator<Item = Result<(usize, Vec<&str>), StoreError>> {
        let columns = self.columns().len();
        self.lines().enumerate().skip(1).map(move |(index, text)| {
            let line = index + 1;
            Ok((line, self.place.cells(line, text, columns)?))
        })
    }

    pub(super) fn corrupt(&self, line: usize, reason: &str) -> StoreError {
        self.place.corrupt(line, reason)
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        // Not `lines()`: it would hide a carriage return.
        self.text.split_terminator('\n')
    }
}
