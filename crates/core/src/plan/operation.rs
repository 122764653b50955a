//! The kinds of operations that plans know, by the names that stored results have for them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MULTIGET_KEYS;

/// What workers do and results count. Events of a workload file have names of their own;
/// [`Operation::Event`] stands for all of them together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Rows inserted.
    #[default]
    Insert,
    /// Rows deleted.
    Delete,
    /// A secondary index made; its rows are those of the table.
    Index,
    /// A query of the Insert Benchmark.
    Query,
    /// A scan of a whole table.
    Scan,
    /// An event of sysbench: a transaction, or a single statement.
    Transaction,
    /// All kinds of events of a workload file.
    Event,
    /// A key written.
    Put,
    /// A key read.
    Get,
    /// Several keys read at once.
    MultiGet,
    /// Neighbouring keys read with an iterator.
    Range,
}

/// The name of all kinds of events together.
pub const ALL_EVENTS: &str = Operation::Event.as_str();

impl Operation {
    /// The name in stored results: `insert`, `multiget`, ...
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Index => "index",
            Self::Query => "query",
            Self::Scan => "scan",
            Self::Transaction => "transaction",
            Self::Event => "event",
            Self::Put => "put",
            Self::Get => "get",
            Self::MultiGet => "multiget",
            Self::Range => "range",
        }
    }

    /// Several of them: `inserts`, `queries`, ...
    pub const fn plural(self) -> &'static str {
        match self {
            Self::Insert => "inserts",
            Self::Delete => "deletes",
            Self::Index => "indexes",
            Self::Query => "queries",
            Self::Scan => "scans",
            Self::Transaction => "transactions",
            Self::Event => "events",
            Self::Put => "puts",
            Self::Get => "gets",
            Self::MultiGet => "multigets",
            Self::Range => "ranges",
        }
    }

    /// Keys that one operation asks for or writes. Of a range it is one: the key that it begins at.
    pub const fn keys(self) -> u32 {
        match self {
            Self::MultiGet => MULTIGET_KEYS,
            _ => 1,
        }
    }

    /// Whether operations of this kind count for a step whose primary operation this is: those of
    /// the same name, and all kinds of events.
    pub fn counts(self, kind: &str) -> bool {
        self == Self::Event || self == *kind
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl PartialEq<str> for Operation {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Operation {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<Operation> for str {
    fn eq(&self, other: &Operation) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Operation> for String {
    fn eq(&self, other: &Operation) -> bool {
        self == other.as_str()
    }
}

impl From<Operation> for String {
    fn from(operation: Operation) -> Self {
        operation.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_stored_results() {
        for operation in [
            Operation::Insert,
            Operation::Delete,
            Operation::Index,
            Operation::Query,
            Operation::Scan,
            Operation::Transaction,
            Operation::Event,
            Operation::Put,
            Operation::Get,
            Operation::MultiGet,
            Operation::Range,
        ] {
            let stored = toml::Value::try_from(operation).unwrap();
            assert_eq!(stored.as_str(), Some(operation.as_str()));
        }
    }
}
