//! What a table is filled with.

use plimsoll_core::plan::Distribution;
use plimsoll_core::workload_file::{ColumnValues, Value};

use crate::values::{Ids, Text};

/// A table that is loaded.
pub(crate) struct TableFill {
    pub name: String,
    pub rows: u64,
    /// What its random stream is called by.
    pub stream: Vec<String>,
    pub columns: Vec<(String, ColumnFill)>,
    /// What follows when the table is full.
    pub finish: Vec<Finish>,
}

/// A statement behind the last row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    /// It defines something, such as an index over all rows.
    Define(String),
    /// It is asked.
    Query(String),
}

/// Where the values of a column come from.
pub(crate) enum ColumnFill {
    /// The row's number, from 1.
    Row,
    /// Each number so many times.
    Repeat(u64),
    /// The numbers up to this again and again.
    Cycle(u64),
    /// Drawn integers, and how much is added to them.
    Integer(Ids, i64),
    /// Drawn texts.
    Text(Text),
}

impl ColumnFill {
    /// Of a workload file.
    pub fn of(values: &ColumnValues) -> Self {
        match values {
            ColumnValues::Row => Self::Row,
            ColumnValues::Repeat(times) => Self::Repeat(*times),
            ColumnValues::Cycle(numbers) => Self::Cycle(*numbers),
            ColumnValues::Drawn(Value::Integer {
                first,
                count,
                distribution,
            }) => Self::Integer(Ids::new(*distribution, *count), first - 1),
            ColumnValues::Drawn(value) => {
                Self::Text(Text::of(value).expect("what is not an integer is a text"))
            }
        }
    }

    /// Integers from 1 on, each as likely as the others.
    pub fn uniform(count: u64) -> Self {
        Self::Integer(Ids::new(Distribution::Uniform, count), 0)
    }

    /// Draws that a value takes, where each takes as many.
    fn draws(&self) -> Option<u64> {
        match self {
            Self::Row | Self::Repeat(_) | Self::Cycle(_) => Some(0),
            Self::Integer(ids, _) => ids.draws(),
            Self::Text(text) => text.draws(),
        }
    }

    /// Maximum number of characters, including what surrounds it.
    fn longest(&self) -> usize {
        4 + match self {
            Self::Text(text) => text.longest(),
            _ => 20,
        }
    }
}

impl TableFill {
    /// Whether each row takes as many draws.
    pub fn has_equal_draws(&self) -> bool {
        self.columns
            .iter()
            .all(|(_, column)| column.draws().is_some())
    }

    /// Maximum number of characters of a row.
    pub fn longest_row(&self) -> usize {
        4 + self
            .columns
            .iter()
            .map(|(_, column)| column.longest())
            .sum::<usize>()
    }
}
