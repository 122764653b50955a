//! Questions to a connection that nobody measures.

use super::library::{Connection, Failure, Row, Value};

const NONE: &[i64] = &[];

/// What the first row of an answer holds; `None` if there is no row.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    read: impl FnOnce(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.rows(NONE)?;
    rows.step()?.map(|row| read(&row)).transpose()
}

/// The number that a question has for an answer; `None` for null, or if there is no row.
pub(super) fn integer(connection: &Connection, sql: &str) -> Result<Option<i64>, Failure> {
    let read = |row: &Row<'_>| match row.value(0) {
        Value::Null => Ok(None),
        value => number_of(value).map(Some),
    };
    Ok(first(connection, sql, read)?.flatten())
}

/// [`integer`] for a question that always has an answer.
pub(super) fn number(connection: &Connection, sql: &str) -> Result<i64, Failure> {
    integer(connection, sql)?.ok_or_else(|| Failure::misuse("the answer has no number"))
}

/// A column that holds a number.
pub(super) fn number_of(value: Value<'_>) -> Result<i64, Failure> {
    let kind = match value {
        Value::Integer(number) => return Ok(number),
        Value::Null => "Null",
        Value::Real(_) => "Real",
        Value::Text(_) => "Text",
        Value::Blob(_) => "Blob",
    };
    Err(Failure::misuse(format!(
        "Invalid column type {kind} where an integer is asked for"
    )))
}

/// The first column of all rows, as text; empty where it is none.
pub(super) fn texts(connection: &Connection, sql: &str) -> Result<Vec<String>, Failure> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.rows(NONE)?;
    let mut texts = Vec::new();
    while let Some(row) = rows.step()? {
        texts.push(match row.value(0) {
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        });
    }
    Ok(texts)
}

/// Runs a statement to its end, whatever rows it returns.
pub(super) fn run(connection: &Connection, sql: &str) -> Result<(), Failure> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.rows(NONE)?;
    while rows.step()?.is_some() {}
    Ok(())
}
