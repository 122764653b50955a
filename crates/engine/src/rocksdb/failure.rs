//! What RocksDB's texts of failure mean for a worker.

use super::library::Status;
use crate::{EngineError, ErrorClass, SqlError};

/// Beginnings and parts of the texts, by meaning; the first that fits counts.
const CLASSES: &[(&str, ErrorClass)] = &[
    ("No space left on device", ErrorClass::Full),
    ("Disk quota exceeded", ErrorClass::Full),
    ("Space limit reached", ErrorClass::Full),
    ("Resource busy", ErrorClass::Busy),
    ("Operation failed. Try again.", ErrorClass::Busy),
    ("IO error", ErrorClass::Io),
    ("Corruption", ErrorClass::Io),
];

impl Status {
    /// The error of an operation.
    pub(super) fn of_operation(self, operation: &str) -> SqlError {
        let class = CLASSES
            .iter()
            .find(|(text, _)| self.0.contains(text))
            .map_or(ErrorClass::Statement, |(_, class)| *class);
        SqlError {
            class,
            code: 0,
            message: self.0,
            statement: operation.to_owned(),
        }
    }

    /// The error of something done with the database as a whole.
    pub(super) fn of_store(self, doing: &str) -> EngineError {
        EngineError::new(format!("{doing}: {}; the database's LOG says more", self.0))
    }

    /// Whether a wait ended because its time was over.
    pub(super) fn is_timeout(&self) -> bool {
        self.0.contains("timed out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_classes() {
        for (text, class) in [
            (
                "IO error: No space left on device: While appending to file: /x/000012.log: No \
                space left on device",
                ErrorClass::Full,
            ),
            (
                "IO error: No such file or directory: While open a file",
                ErrorClass::Io,
            ),
            ("Corruption: block checksum mismatch", ErrorClass::Io),
            ("Resource busy: ", ErrorClass::Busy),
            ("Invalid argument: whatever", ErrorClass::Statement),
        ] {
            assert_eq!(
                Status(text.to_owned()).of_operation("put").class,
                class,
                "{text}"
            );
        }
    }
}
