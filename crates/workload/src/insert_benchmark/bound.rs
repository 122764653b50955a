//! Statements with integers in them: prepared where the dialect's original prepares, plain text
//! where it sends text.

use plimsoll_engine::{Prepared, SqlError, SqlSession};

/// A statement on one session, and the values of its next execution.
#[derive(Default)]
pub(super) struct BoundStatement {
    /// The text between the placeholders.
    parts: Vec<String>,
    prepared: Option<Prepared>,
    arguments: Vec<i64>,
    text: String,
    number: itoa::Buffer,
}

impl BoundStatement {
    /// `sql` has a `?` for each of the `values` that an execution binds, and no other.
    pub fn open(
        session: &mut dyn SqlSession,
        sql: &str,
        values: usize,
        is_text: bool,
    ) -> Result<Self, String> {
        let parts: Vec<String> = sql.split('?').map(str::to_owned).collect();
        if parts.len() != values + 1 {
            return Err(format!(
                "the statement has {} placeholders and is given {values} values: {sql}",
                parts.len() - 1
            ));
        }
        let prepared = if is_text {
            None
        } else {
            Some(session.prepare(sql).map_err(|error| error.to_string())?)
        };
        let (arguments, text) = (
            Vec::with_capacity(parts.len()),
            String::with_capacity(sql.len() + parts.len() * 20),
        );
        Ok(Self {
            parts,
            prepared,
            arguments,
            text,
            number: itoa::Buffer::new(),
        })
    }

    /// Sets the values of the next execution. Off the clock.
    pub fn bind(&mut self, values: &[i64]) {
        debug_assert_eq!(values.len() + 1, self.parts.len());
        if self.prepared.is_some() {
            self.arguments.clear();
            self.arguments.extend_from_slice(values);
            return;
        }
        self.text.clear();
        for (part, value) in self.parts.iter().zip(values) {
            self.text.push_str(part);
            self.text.push_str(self.number.format(*value));
        }
        self.text
            .push_str(self.parts.last().map_or("", String::as_str));
    }

    /// Sets the whole text of the next execution, for values that are not integers. Off the clock.
    pub fn bind_text(&mut self, sql: String) {
        self.prepared = None;
        self.text = sql;
    }

    /// Queries and returns the number of rows.
    #[inline]
    pub fn query(&self, session: &mut dyn SqlSession) -> Result<u64, SqlError> {
        match self.prepared {
            Some(prepared) => session.query_prepared(prepared, &self.arguments),
            None => session.query(&self.text),
        }
    }

    /// Writes and returns the affected rows.
    #[inline]
    pub fn write(&self, session: &mut dyn SqlSession, expected_rows: u64) -> Result<u64, SqlError> {
        match self.prepared {
            Some(prepared) => session.write_prepared(prepared, &self.arguments, expected_rows),
            None => session.write(&self.text, expected_rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::{StartOptions, engine};

    use super::*;

    #[test]
    fn a_statement_with_another_number_of_values_is_refused_before_it_runs() {
        let null = engine(&"null".parse().unwrap(), None).unwrap();
        let server = null
            .start(&StartOptions::new(std::env::temp_dir(), [].into()))
            .unwrap();
        let mut session = server.connect().unwrap();
        for is_text in [true, false] {
            for (values, is_right) in [(0, false), (1, false), (2, true), (3, false)] {
                let opened = BoundStatement::open(
                    &mut *session,
                    "select a from t where b = ? and c = ?",
                    values,
                    is_text,
                );
                assert_eq!(opened.is_ok(), is_right, "{values}");
                if let Err(error) = opened {
                    let words = format!(
                        "the statement has 2 placeholders and is given {values} values: select a"
                    );
                    assert!(error.starts_with(&words), "{error}");
                }
            }
        }
        let mut bound = BoundStatement::open(&mut *session, "select ? - ?", 2, true).unwrap();
        bound.bind(&[7, -1]);
        assert_eq!(bound.text, "select 7 - -1");
    }
}
