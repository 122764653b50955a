//! The rows of a table: the same ones however they are loaded.

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

/// The rows of a table, in their order.
pub(super) struct Rows {
    table: TableFill,
    seed: u64,
    draw: Draw,
    /// From 0.
    next: u64,
    has_groups: bool,
    longest_row: usize,
    number: itoa::Buffer,
}

impl Rows {
    pub fn new(table: TableFill, seed: u64) -> Self {
        let has_groups = !table.has_equal_draws();
        let longest_row = table.longest_row();
        let mut rows = Self {
            draw: Draw::new(seed, &[]),
            seed,
            next: 0,
            has_groups,
            longest_row,
            number: itoa::Buffer::new(),
            table,
        };
        rows.draw = rows.stream(None);
        rows
    }

    pub fn table(&self) -> &TableFill {
        &self.table
    }

    pub fn into_table(self) -> TableFill {
        self.table
    }

    fn stream(&self, group: Option<u64>) -> Draw {
        let mut labels: Vec<&str> = self.table.stream.iter().map(String::as_str).collect();
        let group = group.map(|group| group.to_string());
        labels.extend(group.as_deref());
        Draw::new(self.seed, &labels)
    }

    /// Whether there is none left.
    pub fn is_empty(&self) -> bool {
        self.next == self.table.rows
    }

    /// Appends as many rows as fit, until `text` would be longer than `limit`. Returns their
    /// number.
    pub fn push(&mut self, text: &mut String, form: RowForm, limit: usize) -> u64 {
        let first = self.next;
        while !self.is_empty() && (self.next == first || text.len() + self.longest_row <= limit) {
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
        if self.has_groups && self.next.is_multiple_of(GROUP_ROWS) {
            self.draw = self.stream(Some(self.next / GROUP_ROWS));
        }
        for (at, (_, column)) in self.table.columns.iter().enumerate() {
            if at > 0 {
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

    fn all(table: TableFill, form: RowForm, limit: usize) -> Vec<String> {
        let mut found = Vec::new();
        let longest = limit.max(table.longest_row());
        let mut rows = Rows::new(table, 42);
        while !rows.is_empty() {
            let mut text = String::new();
            let pushed = rows.push(&mut text, form, limit);
            assert!(text.len() <= longest, "{}", text.len());
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
        found
    }

    #[test]
    fn rows_are_the_same_in_every_form_and_size() {
        let rows = all(table_fill(3, ROWS), RowForm::Lines, 4 << 20);
        assert_eq!(rows.len(), 5000);
        assert_eq!(all(table_fill(3, ROWS), RowForm::Tuples, 512 << 10), rows);
        assert_eq!(all(table_fill(3, ROWS), RowForm::Tuples, 1), rows);
        assert_ne!(
            all(table_fill(4, ROWS), RowForm::Lines, 1 << 20)[0],
            rows[0]
        );
        // What other programs would find: a change here makes old and new data differ.
        assert_eq!(rows[0], format!("1\t{FIRST}"));
        let ks: Vec<f64> = rows
            .iter()
            .map(|row| row.split('\t').nth(1).unwrap().parse().unwrap())
            .collect();
        assert!(ks.iter().all(|k| (1.0..=5000.0).contains(k)));
        let mean = ks.iter().sum::<f64>() / 5000.0;
        // One standard deviation is 20.4.
        assert!((mean - 2500.5).abs() < 80.0, "{mean}");
    }

    const FIRST: &str = "4788\t16565149172-26529494976-23035738812-48191119225-06439294714-74520444554-27937768713-49967596671-05921292771-45924302442\t59213020717-36770314775-52950866510-52537647932-34793567676";

    #[test]
    fn values_of_unequal_length_are_the_same_in_every_size() {
        let table = || TableFill {
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
            finish: vec![],
        };
        let rows = all(table(), RowForm::Lines, 4 << 20);
        assert_eq!(all(table(), RowForm::Lines, 1 << 10), rows);
        assert_eq!(all(table(), RowForm::Tuples, 1 << 20), rows);
        assert!(rows[8].starts_with("9\t5\t2\t"), "{}", rows[8]);
    }
}
