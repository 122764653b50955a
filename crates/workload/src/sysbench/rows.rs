//! The rows that the tables are loaded with: the same for a seed and a table, whoever loads them, and however.

use plimsoll_core::seed::Draw;

use super::text::{C_LENGTH, PAD_LENGTH, push_c, push_pad};

/// Characters of a tuple at the most: two texts, a `k` of ten digits, and what is around them.
const LONGEST: usize = C_LENGTH + PAD_LENGTH + 10 + 12;

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `(k, 'c', 'pad')`, with commas between them.
    Tuples,
    /// Lines of columns with tabs between them.
    Lines,
}

/// The rows of one table, in the order of their ids.
pub(super) struct Rows {
    draw: Draw,
    rows: u64,
    left: u64,
    number: itoa::Buffer,
}

impl Rows {
    pub fn new(seed: u64, table: u32, rows: u64) -> Self {
        Self { draw: Draw::new(seed, &["sysbench rows", &table.to_string()]), rows, left: rows, number: itoa::Buffer::new() }
    }

    /// Whether there is none left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Appends as many rows as fit, until `text` would be longer than `limit`. Returns their number.
    pub fn push(&mut self, text: &mut String, form: Form, limit: usize) -> u64 {
        let mut pushed = 0;
        while self.left > 0 && (pushed == 0 || text.len() + LONGEST <= limit) {
            let k = 1 + self.draw.below(self.rows);
            match form {
                Form::Tuples => {
                    text.push_str(if pushed == 0 { "(" } else { ",(" });
                    text.push_str(self.number.format(k));
                    text.push_str(", '");
                    push_c(text, &mut self.draw);
                    text.push_str("', '");
                    push_pad(text, &mut self.draw);
                    text.push_str("')");
                }
                Form::Lines => {
                    text.push_str(self.number.format(k));
                    text.push('\t');
                    push_c(text, &mut self.draw);
                    text.push('\t');
                    push_pad(text, &mut self.draw);
                    text.push('\n');
                }
            }
            self.left -= 1;
            pushed += 1;
        }
        pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(form: Form, limit: usize) -> Vec<String> {
        let mut rows = Rows::new(42, 3, 5000);
        let mut found = Vec::new();
        while !rows.is_empty() {
            let mut text = String::new();
            let pushed = rows.push(&mut text, form, limit);
            assert!(text.len() <= limit.max(LONGEST), "{}", text.len());
            let lines: Vec<String> = match form {
                Form::Tuples => text.trim_matches(['(', ')']).split("),(").map(|row| row.replace(", ", "\t").replace('\'', "")).collect(),
                Form::Lines => text.lines().map(str::to_owned).collect(),
            };
            assert_eq!(lines.len() as u64, pushed);
            found.extend(lines);
        }
        found
    }

    #[test]
    fn rows_are_the_same_in_every_form_and_size() {
        let rows = all(Form::Lines, 4 << 20);
        assert_eq!(rows.len(), 5000);
        assert_eq!(all(Form::Tuples, 512 << 10), rows);
        assert_eq!(all(Form::Tuples, 1), rows);
        assert_ne!(Rows::new(42, 4, 1).draw.below(1 << 40), Rows::new(42, 3, 1).draw.below(1 << 40));
        // What other programs would find: a change here makes old and new data differ.
        assert_eq!(rows[0], FIRST);
        let ks: Vec<f64> = rows.iter().map(|row| row.split('\t').next().unwrap().parse().unwrap()).collect();
        assert!(ks.iter().all(|k| (1.0..=5000.0).contains(k)));
        let mean = ks.iter().sum::<f64>() / 5000.0;
        // One standard deviation is 20.4.
        assert!((mean - 2500.5).abs() < 80.0, "{mean}");
    }

    const FIRST: &str = "4788\t16565149172-26529494976-23035738812-48191119225-06439294714-74520444554-27937768713-49967596671-05921292771-\
        45924302442\t59213020717-36770314775-52950866510-52537647932-34793567676";
}
