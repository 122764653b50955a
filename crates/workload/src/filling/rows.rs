//! The rows of a part of a table: the same ones whoever loads them, and however.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_core::seed::Draw;

use super::table::{ColumnFill, TableFill};

/// Rows whose values take unequal numbers of draws have a stream for so many of them.
const GROUP_ROWS: u64 = 1000;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowForm {
    /// `(k, 'c', 'pad')`, with commas between them.
    Tuples,
    /// Lines of columns with tabs between them.
    Lines,
}

/// The rows of one part of a table, in their order.
pub(super) struct Rows {
    table: Arc<TableFill>,
    seed: u64,
    draw: Draw,
    /// From 0.
    next: u64,
    end: u64,
    /// The first column that is written.
    first_column: usize,
    draws_per_row: Option<u64>,
    longest_row: usize,
    number: itoa::Buffer,
}

impl Rows {
    /// Rows from 0. Without their numbers the engine must give them.
    pub fn new(table: Arc<TableFill>, seed: u64, part: Range<u64>, with_numbers: bool) -> Self {
        let draws_per_row = table.draws_per_row();
        let longest_row = table.longest_row();
        let mut rows = Self {
            draw: Draw::new(seed, &[]),
            seed,
            next: part.start / GROUP_ROWS * GROUP_ROWS,
            end: part.end,
            first_column: usize::from(table.is_numbered && !with_numbers),
            draws_per_row,
            longest_row,
            number: itoa::Buffer::new(),
            table,
        };
        match draws_per_row {
            Some(draws) => {
                rows.draw = rows.stream(None);
                rows.draw.skip(part.start * draws);
                rows.next = part.start;
            }
            None => {
                let mut skipped = String::new();
                while rows.next < part.start {
                    skipped.clear();
                    rows.push_row(&mut skipped, RowForm::Lines);
                }
            }
        }
        rows
    }

    fn stream(&self, group: Option<u64>) -> Draw {
        let mut labels: Vec<&str> = self.table.stream.iter().map(String::as_str).collect();
        let group = group.map(|group| group.to_string());
        labels.extend(group.as_deref());
        Draw::new(self.seed, &labels)
    }

    /// Whether there is none left.
    pub fn is_empty(&self) -> bool {
        self.next == self.end
    }

    /// Appends as many rows as fit, until `text` would be longer than `limit`. Returns their
    /// number.
    pub fn push(&mut self, text: &mut String, form: RowForm, limit: usize) -> u64 {
        let first = self.next;
        while self.next < self.end && (self.next == first || text.len() + self.longest_row <= limit)
        {
            match form {
                RowForm::Tuples => {
                    text.push_str(if self.next == first { "(" } else { ",(" });
                    self.push_row(text, form);
                    text.push(')');
                }
                RowForm::Lines => {
                    self.push_row(text, form);
                    text.push('\n');
                }
            }
        }
        self.next - first
    }

    fn push_row(&mut self, text: &mut String, form: RowForm) {
        if self.draws_per_row.is_none() && self.next.is_multiple_of(GROUP_ROWS) {
            self.draw = self.stream(Some(self.next / GROUP_ROWS));
        }
        for (at, (_, column)) in self
            .table
            .columns
            .iter()
            .enumerate()
            .skip(self.first_column)
        {
            if at > self.first_column {
                text.push_str(if form == RowForm::Tuples { ", " } else { "\t" });
            }
            match column {
                ColumnFill::Row => text.push_str(self.number.format(self.next + 1)),
                ColumnFill::Repeat(times) => {
                    text.push_str(self.number.format(self.next / times + 1))
                }
                ColumnFill::Cycle(numbers) => {
                    text.push_str(self.number.format(self.next % numbers + 1))
                }
                ColumnFill::Integer(ids, add) => {
                    text.push_str(self.number.format(ids.draw(&mut self.draw) + add))
                }
                ColumnFill::Text(rule) if form == RowForm::Lines => rule.push(text, &mut self.draw),
                ColumnFill::Text(rule) => {
                    text.push('\'');
                    rule.push(text, &mut self.draw);
                    text.push('\'');
                }
            }
        }
        self.next += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysbench::table_fill;
    use crate::values::Text;

    const ROWS: u64 = 5000;
    #[expect(clippy::single_range_in_vec_init, reason = "one part")]
    const WHOLE: [Range<u64>; 1] = [0..ROWS];
    #[expect(clippy::single_range_in_vec_init, reason = "one part")]
    const LAST: [Range<u64>; 1] = [2001..ROWS];

    fn all(
        table: &Arc<TableFill>,
        form: RowForm,
        limit: usize,
        parts: &[Range<u64>],
    ) -> Vec<String> {
        let mut found = Vec::new();
        for part in parts {
            let mut rows = Rows::new(table.clone(), 42, part.clone(), false);
            while !rows.is_empty() {
                let mut text = String::new();
                let pushed = rows.push(&mut text, form, limit);
                assert!(
                    text.len() <= limit.max(table.longest_row()),
                    "{}",
                    text.len()
                );
                let lines: Vec<String> = match form {
                    RowForm::Tuples => text
                        .trim_matches(['(', ')'])
                        .split("),(")
                        .map(|row| row.replace(", ", "\t").replace('\'', ""))
                        .collect(),
                    RowForm::Lines => text.lines().map(str::to_owned).collect(),
                };
                assert_eq!(lines.len() as u64, pushed);
                found.extend(lines);
            }
        }
        found
    }

    #[test]
    fn rows_are_the_same_in_every_form_size_and_part() {
        let table = Arc::new(table_fill(3, ROWS));
        let rows = all(&table, RowForm::Lines, 4 << 20, &WHOLE);
        assert_eq!(rows.len(), 5000);
        assert_eq!(all(&table, RowForm::Tuples, 512 << 10, &WHOLE), rows);
        assert_eq!(all(&table, RowForm::Tuples, 1, &WHOLE), rows);
        assert_eq!(
            all(
                &table,
                RowForm::Lines,
                1 << 20,
                &[0..1, 1..2499, 2499..ROWS]
            ),
            rows
        );
        assert_ne!(
            all(
                &Arc::new(table_fill(4, ROWS)),
                RowForm::Lines,
                1 << 20,
                &WHOLE
            )[0],
            rows[0]
        );
        // What other programs would find: a change here makes old and new data differ.
        assert_eq!(rows[0], FIRST);
        let ks: Vec<f64> = rows
            .iter()
            .map(|row| row.split('\t').next().unwrap().parse().unwrap())
            .collect();
        assert!(ks.iter().all(|k| (1.0..=5000.0).contains(k)));
        let mean = ks.iter().sum::<f64>() / 5000.0;
        // One standard deviation is 20.4.
        assert!((mean - 2500.5).abs() < 80.0, "{mean}");
        let mut numbered = String::new();
        Rows::new(table, 42, 2499..ROWS, true).push(&mut numbered, RowForm::Lines, 1);
        assert_eq!(numbered.trim_end(), format!("2500\t{}", rows[2499]));
    }

    const FIRST: &str = "4788\t16565149172-26529494976-23035738812-48191119225-06439294714-74520444554-27937768713-49967596671-05921292771-45924302442\t59213020717-36770314775-52950866510-52537647932-34793567676";

    #[test]
    fn values_of_unequal_length_are_the_same_in_every_part() {
        let table = Arc::new(TableFill {
            name: "t".into(),
            rows: ROWS,
            stream: vec!["t".into()],
            columns: vec![
                ("id".into(), ColumnFill::Row),
                ("half".into(), ColumnFill::Repeat(2)),
                ("seven".into(), ColumnFill::Cycle(7)),
                (
                    "text".into(),
                    ColumnFill::Text(Text::Letters { least: 0, most: 30 }),
                ),
            ],
            is_numbered: false,
            finish: vec![],
            finish_of_parts: vec![],
        });
        let rows = all(&table, RowForm::Lines, 4 << 20, &WHOLE);
        assert_eq!(
            all(
                &table,
                RowForm::Lines,
                1 << 10,
                &[0..999, 999..2001, 2001..ROWS]
            ),
            rows
        );
        assert!(rows[8].starts_with("9\t5\t2\t"), "{}", rows[8]);
        assert_eq!(all(&table, RowForm::Tuples, 1 << 20, &LAST), rows[2001..]);
    }
}
