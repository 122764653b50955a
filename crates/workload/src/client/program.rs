//! What events are: statements, and where each of their values comes from.

use std::sync::Arc;

use plimsoll_core::seed::Draw;
use plimsoll_core::workload_file;
use plimsoll_engine::{Parameter, SqlForms};

use crate::values::{Ids, Text};

/// A statement that has texts among its values has no more of them.
pub(crate) const MOST_MIXED: usize = workload_file::MOST_MIXED as usize;

/// The events of a step. Clients share it.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub forms: &'static dyn SqlForms,
    /// Variants of each statement: tables that are drawn, or one.
    pub variants: usize,
    pub statements: Vec<Statement>,
    /// Rules that integers are drawn by.
    pub ids: Vec<Ids>,
    /// Rules that texts are made by.
    pub texts: Vec<Text>,
    pub sequences: Vec<Sequence>,
    pub events: Vec<Event>,
    /// Events up to each, by weight.
    pub weights: Vec<u64>,
}

impl Program {
    #[inline]
    pub fn draw_event(&self, draw: &mut Draw) -> usize {
        match self.weights.as_slice() {
            [] | [_] => 0,
            weights => {
                let drawn = draw.below(weights[weights.len() - 1]);
                weights.iter().position(|up_to| drawn < *up_to).unwrap_or(0)
            }
        }
    }
}

/// Numbers that no client has twice, and no two clients have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// The first one.
    pub start: i64,
}

/// A statement with its text by variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Statement {
    /// By variant: the text between the placeholders.
    pub pieces: Vec<Vec<String>>,
    /// The types of its placeholders.
    pub parameters: Vec<Parameter>,
    /// Prepared, or sent as text.
    pub is_prepared: bool,
    /// Whether it reads.
    pub is_read: bool,
    /// Whether it answers with rows.
    pub returns_rows: bool,
    /// What it does to the rows of a table.
    pub growth: Option<Growth>,
}

impl Statement {
    /// The text of a variant, with its placeholders.
    pub fn sql(&self, variant: usize) -> String {
        self.pieces[variant].join("?")
    }
}

/// The table has so many more rows for each affected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Growth {
    /// 1 or -1.
    pub sign: i64,
    /// The table; that of the variant where there is none.
    pub table: Option<usize>,
}

/// What a client does as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Whether it is between `BEGIN` and `COMMIT`.
    pub is_transaction: bool,
    /// Whether it writes.
    pub is_writing: bool,
    /// Two clients may meet in it at the same new row.
    pub retries_duplicates: bool,
    pub parts: Vec<EventStatement>,
}

/// A statement of an event, and where its values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventStatement {
    pub statement: usize,
    /// In the order of the placeholders.
    pub sources: Arc<[Source]>,
    /// How often in a row, each time with new values.
    pub times: u32,
    /// Whether the variant is drawn again before it.
    pub draws_variant: bool,
}

/// Where values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Drawn integers: so many, by a rule of the program, and so much more than it says.
    Integers { ids: usize, count: u32, add: i64 },
    /// Always this.
    Constant(i64),
    /// A text, by a rule of the program.
    Text(usize),
    /// An earlier integer of the event and so much more.
    Integer(Place, i64),
    /// An earlier text of the event.
    SameText(Place),
    /// The next number of a sequence.
    Sequence(usize),
}

/// Which of the event's earlier integers, or texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The one at this place of the event, from 0. Integers: among all values; texts: among the
    /// texts.
    At(usize),
    /// The one so many before this one.
    Back(usize),
}

impl Place {
    #[inline]
    pub fn of(self, length: usize) -> usize {
        match self {
            Self::At(place) => place,
            Self::Back(places) => length - places,
        }
    }
}
