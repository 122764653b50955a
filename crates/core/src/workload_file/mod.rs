//! Workloads that users write: tables, statements with generators for their values, events, and
//! mixes of events, read from TOML and checked before anything is loaded.

mod check;
mod column_type;
mod document;
mod generator;
mod sql;

use std::collections::BTreeMap;

use crate::distribution::Distribution;
use crate::engines::EngineName;
use crate::source::PlanError;

pub use check::MOST_MIXED;
pub use sql::{Effect, Sql};

/// A checked workload.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    /// For titles.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// In the order of the file, which is that of the load.
    pub tables: Vec<Table>,
    /// In the order of the file.
    pub statements: Vec<Statement>,
    /// In the order of the file.
    pub events: Vec<Event>,
    /// In the order of the file.
    pub mixes: Vec<Mix>,
}

/// A table and the rows that it is loaded with.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: String,
    /// Rows that are loaded.
    pub rows: u64,
    /// In the order of the file.
    pub columns: Vec<Column>,
    /// The columns of the primary key.
    pub primary_key: Vec<String>,
    /// Made when the table is full, in this order.
    pub indexes: Vec<Index>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: String,
    /// Its type, as it is sent to the engines.
    pub sql_type: String,
    /// Whether the engine gives numbers to rows that come without one.
    pub is_auto: bool,
    /// What loaded rows have there.
    pub values: ColumnValues,
}

/// What the loaded rows of a table have in a column. Rows are numbered from 1.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValues {
    /// The row's number.
    Row,
    /// Each number so many times: 1, 1, 2, 2, ...
    Repeat(u64),
    /// The numbers up to this again and again.
    Cycle(u64),
    /// Drawn for each row.
    Drawn(Value),
}

/// A value that is drawn, or always the same.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// One of `count` integers from `first` on.
    Integer {
        /// The smallest.
        first: i64,
        /// How many there are.
        count: u64,
        /// Which of them are frequent; rank 1 is the smallest.
        distribution: Distribution,
    },
    /// A text: `#` is a digit, `@` a letter, everything else itself.
    Pattern(String),
    /// So many small letters, each length as likely as the others.
    Letters {
        /// The shortest.
        least: u32,
        /// The longest.
        most: u32,
    },
    /// One of these texts, each as likely as the others.
    OneOf(Vec<String>),
}

impl Value {
    /// Whether it is an integer; else it is a text.
    pub fn is_integer(&self) -> bool {
        matches!(self, Self::Integer { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    /// In their order.
    pub columns: Vec<String>,
    /// Whether no two rows may have the same.
    pub is_unique: bool,
}

/// A statement with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub name: String,
    /// Its text, for engines that have none of their own.
    pub sql: Sql,
    /// Its texts on engines where it differs, by their
    /// [`statement_key`](crate::engines::EngineFacts::statement_key).
    pub own: BTreeMap<&'static str, Sql>,
    /// Whether it is prepared where the plan wants that.
    pub is_prepared: bool,
    /// In the order of the file.
    pub parameters: Vec<(String, Parameter)>,
}

impl Statement {
    /// All of its texts.
    pub fn texts(&self) -> impl Iterator<Item = &Sql> {
        std::iter::once(&self.sql).chain(self.own.values())
    }

    /// Its text on an engine.
    pub fn text_on(&self, engine: EngineName) -> &Sql {
        let own = engine.facts().statement_key();
        own.and_then(|key| self.own.get(key)).unwrap_or(&self.sql)
    }

    /// The names of its parameters.
    pub(crate) fn parameter_names(&self) -> Vec<&str> {
        let names = self.parameters.iter();
        names.map(|(name, _)| name.as_str()).collect()
    }

    /// A parameter by its name.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, parameter)| parameter)
    }
}

/// Where the value of a parameter comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// Drawn for each use, so many times: lists have more than one.
    Drawn {
        /// What.
        value: Value,
        /// The table whose ids they are, if they are.
        table: Option<String>,
        /// Values of the list.
        count: u32,
    },
    /// A number that no other client and no earlier event has had.
    Sequence {
        /// Parameters with the same name of a sequence share it.
        name: String,
        /// Its first number.
        start: i64,
    },
    /// The value that an earlier parameter of the event has had.
    Same(String),
    /// An earlier integer of the statement and so much more.
    After {
        /// The earlier parameter.
        of: String,
        /// What is added.
        plus: i64,
    },
}

/// What a client does as one: its statements in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub name: String,
    /// Whether the statements are between `BEGIN` and `COMMIT`.
    pub is_transaction: bool,
    /// Places in the list of statements, and how often in a row.
    pub calls: Vec<(usize, u32)>,
}

impl Event {
    /// Statements of one event, `BEGIN` and `COMMIT` included.
    pub fn statements(&self) -> u64 {
        self.calls
            .iter()
            .map(|(_, times)| u64::from(*times))
            .sum::<u64>()
            + 2 * u64::from(self.is_transaction)
    }
}

/// Events and their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    pub name: String,
    /// Places in the list of events, and their weights.
    pub events: Vec<(usize, u32)>,
}

impl WorkloadFile {
    /// Reads and checks a workload. `file` stands for it in errors.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        check::check(file, text)
    }

    /// Whether the event with this name only reads, on all engines.
    pub(crate) fn only_reads(&self, event: &str) -> bool {
        let events = self.events.iter().filter(|known| known.name == event);
        let calls = events.flat_map(|event| &event.calls);
        let mut texts = calls.flat_map(|(statement, _)| self.statements[*statement].texts());
        texts.all(|sql| !sql.may_write)
    }

    /// A table by its name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables
            .iter()
            .map(|table| table.rows)
            .fold(0, u64::saturating_add)
    }
}
