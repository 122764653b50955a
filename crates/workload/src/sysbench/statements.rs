//! The text of the statements, in the forms of an engine. Values are `?`.

use std::sync::LazyLock;

use plimsoll_engine::{Parameter, SqlForms};

use crate::filling::{ColumnFill, Finish, TableFill};
use crate::values::Text;

/// Ten groups of eleven digits: 119 characters.
pub(super) static C_PATTERN: LazyLock<String> = LazyLock::new(|| ["###########"; 10].join("-"));
/// Five groups of eleven digits: 59 characters.
pub(super) static PAD_PATTERN: LazyLock<String> = LazyLock::new(|| ["###########"; 5].join("-"));

/// `k` of a row, as an index and in lists: which column a test looks rows up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Id,
    K,
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::K => "k",
        }
    }
}

/// A statement of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    /// `c` of one row.
    Point,
    /// `c` of the rows of a range of ids.
    SimpleRange,
    /// The sum of `k` over a range of ids.
    SumRange,
    /// `c` of a range of ids, sorted.
    OrderRange,
    /// `c` of a range of ids, each value once, sorted.
    DistinctRange,
    /// The number of rows in a range of ids.
    CountRange,
    /// Rows by a list. Covered: the column itself and no other.
    List {
        column: Column,
        columns: Columns,
        values: u32,
    },
    /// Rows by a range of a column.
    Range { column: Column, columns: Columns },
    /// The indexed column of one row.
    UpdateIndex,
    /// Another column of one row.
    UpdateNonindex,
    /// Another column of the rows of a list.
    UpdateList { values: u32 },
    /// One row.
    Delete,
    /// A row with an id that the client chose.
    InsertWithId,
    /// A row whose id the engine chooses.
    Insert,
    /// All rows, none of which matches.
    Scan,
}

/// What a look-up fetches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Columns {
    /// The column that it looks up by.
    Covered,
    /// That and `c`.
    Notcovered,
    /// `c`.
    C,
}

impl Statement {
    /// The statement on a table.
    pub fn sql(self, table: &str, forms: &dyn SqlForms) -> String {
        let list = |values: u32| vec!["?"; values as usize].join(", ");
        let columns = |column: Column, columns: Columns| match columns {
            Columns::Covered => column.name().to_owned(),
            Columns::Notcovered => format!("{}, c", column.name()),
            Columns::C => "c".to_owned(),
        };
        match self {
            Self::Point => format!("SELECT c FROM {table} WHERE id=?"),
            Self::SimpleRange => format!("SELECT c FROM {table} WHERE id BETWEEN ? AND ?"),
            Self::SumRange => format!("SELECT SUM(k) FROM {table} WHERE id BETWEEN ? AND ?"),
            Self::OrderRange => {
                format!("SELECT c FROM {table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Self::DistinctRange => {
                format!("SELECT DISTINCT c FROM {table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Self::CountRange => format!("SELECT count(c) FROM {table} WHERE id BETWEEN ? AND ?"),
            Self::List {
                column,
                columns: wanted,
                values,
            } => {
                format!(
                    "SELECT {} FROM {table} WHERE {} IN ({})",
                    columns(column, wanted),
                    column.name(),
                    list(values)
                )
            }
            Self::Range {
                column,
                columns: wanted,
            } => {
                format!(
                    "SELECT {} FROM {table} WHERE {} BETWEEN ? AND ?",
                    columns(column, wanted),
                    column.name()
                )
            }
            Self::UpdateIndex => format!("UPDATE {table} SET k=k+1 WHERE id=?"),
            Self::UpdateNonindex => format!("UPDATE {table} SET c=? WHERE id=?"),
            Self::UpdateList { values } => {
                format!("UPDATE {table} SET c=? WHERE id IN ({})", list(values))
            }
            Self::Delete => format!("DELETE FROM {table} WHERE id=?"),
            Self::InsertWithId => {
                format!("INSERT INTO {table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
            }
            Self::Insert => match forms.auto_value() {
                Some(value) => {
                    format!("INSERT INTO {table} (id, k, c, pad) VALUES ({value}, ?, ?, ?)")
                }
                None => format!("INSERT INTO {table} (k, c, pad) VALUES (?, ?, ?)"),
            },
            Self::Scan => format!("SELECT * from {table} WHERE LENGTH(c) < 0"),
        }
    }

    /// The types of its placeholders.
    pub fn parameters(self) -> Vec<Parameter> {
        use Parameter::{Integer, Text};
        match self {
            Self::Scan => vec![],
            Self::Point | Self::UpdateIndex | Self::Delete => vec![Integer],
            Self::SimpleRange
            | Self::SumRange
            | Self::OrderRange
            | Self::DistinctRange
            | Self::CountRange
            | Self::Range { .. } => {
                vec![Integer, Integer]
            }
            Self::List { values, .. } => vec![Integer; values as usize],
            Self::UpdateNonindex => vec![Text, Integer],
            Self::UpdateList { values } => std::iter::once(Text)
                .chain(vec![Integer; values as usize])
                .collect(),
            Self::InsertWithId => vec![Integer, Integer, Text, Text],
            Self::Insert => vec![Integer, Text, Text],
        }
    }

    /// Whether it answers with rows.
    pub fn is_read(self) -> bool {
        !matches!(
            self,
            Self::UpdateIndex
                | Self::UpdateNonindex
                | Self::UpdateList { .. }
                | Self::Delete
                | Self::InsertWithId
                | Self::Insert
        )
    }

    /// Whether sysbench sends it as text even where it prepares the others.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Insert | Self::Scan)
    }

    /// How many rows of its table there are more for each that it affects.
    pub fn growth(self) -> i64 {
        match self {
            Self::Delete => -1,
            Self::InsertWithId | Self::Insert => 1,
            _ => 0,
        }
    }
}

pub(super) fn table_name(number: u32) -> String {
    format!("sbtest{number}")
}

pub(super) fn create_table(table: &str, forms: &dyn SqlForms, suffix: &str) -> String {
    let (id, key) = forms.auto_key("INTEGER").as_primary_key("id");
    format!(
        "CREATE TABLE {table}(id {id}, k INTEGER DEFAULT '0' NOT NULL, c CHAR(120) DEFAULT '' NOT \
        NULL, pad CHAR(60) DEFAULT '' NOT NULL{key}){suffix}"
    )
}

pub(super) fn create_index(number: u32) -> String {
    format!(
        "CREATE INDEX {} ON {}(k)",
        index_name(number),
        table_name(number)
    )
}

/// The secondary index of a table, on `k`.
pub(super) fn index_name(number: u32) -> String {
    format!("k_{number}")
}

/// What a table is loaded with. The ids are sent: an engine may number in steps of two, and goes on
/// behind a statement that it has refused, so that tests would ask for rows that are not there.
pub(crate) fn table_fill(number: u32, rows: u64) -> TableFill {
    let name = table_name(number);
    let text = |pattern: &str| ColumnFill::Text(Text::pattern(pattern));
    let columns = [
        ("id", ColumnFill::Row),
        ("k", ColumnFill::uniform(rows)),
        ("c", text(&C_PATTERN)),
        ("pad", text(&PAD_PATTERN)),
    ];
    TableFill {
        rows,
        stream: vec!["sysbench rows".to_owned(), number.to_string()],
        columns: columns
            .into_iter()
            .map(|(name, values)| (name.to_owned(), values))
            .collect(),
        finish: vec![Finish::Define(create_index(number))],
        name,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::mysql::MysqlForms;
    use plimsoll_engine::postgres::PostgresForms;

    use super::*;

    const MYSQL: &dyn SqlForms = &MysqlForms::INNODB;

    #[test]
    fn statements_are_those_of_the_definition() {
        let list = |column, columns| Statement::List {
            column,
            columns,
            values: 3,
        };
        let range = |column, columns| Statement::Range { column, columns };
        for (statement, sql) in [
            (Statement::Point, "SELECT c FROM sbtest7 WHERE id=?"),
            (
                Statement::SimpleRange,
                "SELECT c FROM sbtest7 WHERE id BETWEEN ? AND ?",
            ),
            (
                Statement::SumRange,
                "SELECT SUM(k) FROM sbtest7 WHERE id BETWEEN ? AND ?",
            ),
            (
                Statement::OrderRange,
                "SELECT c FROM sbtest7 WHERE id BETWEEN ? AND ? ORDER BY c",
            ),
            (
                Statement::DistinctRange,
                "SELECT DISTINCT c FROM sbtest7 WHERE id BETWEEN ? AND ? ORDER BY c",
            ),
            (
                Statement::CountRange,
                "SELECT count(c) FROM sbtest7 WHERE id BETWEEN ? AND ?",
            ),
            (
                list(Column::Id, Columns::C),
                "SELECT c FROM sbtest7 WHERE id IN (?, ?, ?)",
            ),
            (
                list(Column::Id, Columns::Covered),
                "SELECT id FROM sbtest7 WHERE id IN (?, ?, ?)",
            ),
            (
                list(Column::K, Columns::Covered),
                "SELECT k FROM sbtest7 WHERE k IN (?, ?, ?)",
            ),
            (
                list(Column::Id, Columns::Notcovered),
                "SELECT id, c FROM sbtest7 WHERE id IN (?, ?, ?)",
            ),
            (
                list(Column::K, Columns::Notcovered),
                "SELECT k, c FROM sbtest7 WHERE k IN (?, ?, ?)",
            ),
            (
                range(Column::Id, Columns::Covered),
                "SELECT id FROM sbtest7 WHERE id BETWEEN ? AND ?",
            ),
            (
                range(Column::K, Columns::Notcovered),
                "SELECT k, c FROM sbtest7 WHERE k BETWEEN ? AND ?",
            ),
            (
                Statement::UpdateIndex,
                "UPDATE sbtest7 SET k=k+1 WHERE id=?",
            ),
            (
                Statement::UpdateNonindex,
                "UPDATE sbtest7 SET c=? WHERE id=?",
            ),
            (
                Statement::UpdateList { values: 2 },
                "UPDATE sbtest7 SET c=? WHERE id IN (?, ?)",
            ),
            (Statement::Delete, "DELETE FROM sbtest7 WHERE id=?"),
            (
                Statement::InsertWithId,
                "INSERT INTO sbtest7 (id, k, c, pad) VALUES (?, ?, ?, ?)",
            ),
            (
                Statement::Insert,
                "INSERT INTO sbtest7 (id, k, c, pad) VALUES (0, ?, ?, ?)",
            ),
            (Statement::Scan, "SELECT * from sbtest7 WHERE LENGTH(c) < 0"),
        ] {
            assert_eq!(statement.sql("sbtest7", MYSQL), sql);
            assert_eq!(
                statement.parameters().len(),
                sql.matches('?').count(),
                "{sql}"
            );
            assert_eq!(statement.is_read(), sql.starts_with("SELECT"), "{sql}");
        }
        let postgres = &PostgresForms;
        assert_eq!(
            Statement::Insert.sql("sbtest1", postgres),
            "INSERT INTO sbtest1 (k, c, pad) VALUES (?, ?, ?)"
        );
    }

    #[test]
    fn tables_are_those_of_the_definition() {
        assert_eq!(
            create_table("sbtest1", MYSQL, " engine=innodb"),
            "CREATE TABLE sbtest1(id INTEGER NOT NULL AUTO_INCREMENT, k INTEGER DEFAULT '0' NOT \
            NULL, c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY \
            (id)) engine=innodb"
        );
        let postgres = create_table("sbtest1", &PostgresForms, "");
        assert!(
            postgres.starts_with(
                "CREATE TABLE sbtest1(id SERIAL PRIMARY KEY, k INTEGER DEFAULT '0' NOT NULL, "
            ),
            "{postgres}"
        );
        assert_eq!(create_index(12), "CREATE INDEX k_12 ON sbtest12(k)");
        assert_eq!(
            [&*C_PATTERN, &*PAD_PATTERN].map(|pattern| Text::pattern(pattern).longest()),
            [119, 59]
        );
        // Digits of a group are one draw.
        assert_eq!(
            [&*C_PATTERN, &*PAD_PATTERN].map(|pattern| Text::pattern(pattern).draws()),
            [Some(10), Some(5)]
        );
    }
}
