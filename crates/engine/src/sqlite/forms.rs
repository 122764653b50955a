//! SQLite's SQL.

use plimsoll_core::engines::EngineName;

use super::pragma;
use crate::{AutoKey, KeyPlace, Settings, SqlError, SqlForms, SqlSession};

#[derive(Clone, Copy, Debug)]
pub struct SqliteForms;

impl SqlForms for SqliteForms {
    fn engine(&self) -> EngineName {
        EngineName::Sqlite
    }

    /// No other type has it choose values, and this one makes the column the key.
    fn auto_key(&self, _sql_type: &str) -> AutoKey {
        AutoKey {
            column: "INTEGER PRIMARY KEY".to_owned(),
            key: KeyPlace::Included,
        }
    }

    fn timestamp_type(&self) -> &'static str {
        "datetime"
    }

    fn index_hint(&self, index: &str) -> String {
        format!(" INDEXED BY {index}")
    }

    fn session_facts(&self, session: &mut dyn SqlSession) -> Result<Settings, SqlError> {
        pragma::session_facts(session)
    }

    /// Takes the write lock at once: a transaction that reads first could never get it after
    /// another has written.
    fn begin(&self, is_writing: bool) -> &'static str {
        if is_writing {
            "BEGIN IMMEDIATE"
        } else {
            "BEGIN"
        }
    }
}
