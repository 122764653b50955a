//! The rows: uniform draws, and nothing that depends on the time of day.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::DateTime;
use jiff::{SignedDuration, civil};
use plimsoll_core::plan::Era;
use plimsoll_core::seed::Draw;

/// `cashregisterid` is uniform in `[0, CASHREGISTERS)`, and so on: the defaults of the original.
pub(super) const CASHREGISTERS: u64 = 1_000;
pub(super) const PRODUCTS: u64 = 10_000;
pub(super) const CUSTOMERS: u64 = 100_000;
pub(super) const MAX_PRICE: u64 = 500;
const DATA_LENGTH: std::ops::RangeInclusive<u64> = 10..=20;

/// The longest tuple of an insert, with what is between it and the one before, in bytes. Before
/// 2023-12 a price had up to four digits.
pub(super) const LONGEST_TUPLE: usize =
    ",\n('2026-01-01 00:00:00',999,99999,9999,1004.99,'')".len() + *DATA_LENGTH.end() as usize;

/// Rows per second of the data's own clock while a step runs as fast as it can.
pub(super) const NOMINAL_ROWS_PER_S: u64 = 10_000;
const EPOCH: DateTime = civil::datetime(2026, 1, 1, 0, 0, 0, 0);

/// The incompressible third of every `data` value is cut from this text: base64 of 4 MiB of seeded
/// bytes.
#[derive(Debug)]
pub struct RandomText(Vec<u8>);

impl RandomText {
    /// The text that follows from a campaign's seed.
    pub fn new(seed: u64) -> Arc<Self> {
        let mut bytes = vec![0; 4 << 20];
        Draw::new(seed, &["random text"]).fill(&mut bytes);
        Arc::new(Self(STANDARD.encode(bytes).into_bytes()))
    }
}

/// Characters of a `data` value of this length that are random: floor(length x 0.75 x 50 %).
fn random_length(length: u64) -> u64 {
    length * 3 / 8
}

/// The stream of rows of one client in one step.
pub(super) struct Rows {
    draw: Draw,
    text: Arc<RandomText>,
    era: Era,
    /// Seconds since [`EPOCH`] at the first row.
    clock_s: u64,
    rows_per_s: u64,
    produced: u64,
    timestamp: String,
    timestamp_s: Option<u64>,
    number: itoa::Buffer,
}

impl Rows {
    pub fn new(draw: Draw, text: Arc<RandomText>, era: Era, clock_s: u64, rows_per_s: u64) -> Self {
        Self {
            draw,
            text,
            era,
            clock_s,
            rows_per_s,
            produced: 0,
            timestamp: String::new(),
            timestamp_s: None,
            number: itoa::Buffer::new(),
        }
    }

    /// Appends the tuples of one statement,
    /// `('2026-01-01 00:00:00',812,40211,77,499.00,'aaaaaaaaXy3'),...`. All rows of a statement
    /// have the same time, in whole seconds, as the original's have.
    pub fn push_tuples(&mut self, sql: &mut String, rows: u32) {
        let now_s = self.clock_s + self.produced / self.rows_per_s;
        if self.timestamp_s != Some(now_s) {
            self.timestamp_s = Some(now_s);
            let now = EPOCH.saturating_add(SignedDuration::from_secs(now_s as i64));
            self.timestamp = now.strftime("%Y-%m-%d %H:%M:%S").to_string();
        }
        for row in 0..rows {
            sql.push_str(if row == 0 { "\n('" } else { ",\n('" });
            sql.push_str(&self.timestamp);
            sql.push_str("',");
            let cashregister = self.draw.below(CASHREGISTERS);
            let product = self.draw.below(PRODUCTS);
            let customer = self.draw.below(CUSTOMERS);
            let price_cents = self.price_cents(customer);
            for value in [cashregister, customer, product] {
                sql.push_str(self.number.format(value));
                sql.push(',');
            }
            push_price(sql, price_cents, &mut self.number);
            sql.push_str(",'");
            self.push_data(sql);
            sql.push_str("')");
        }
        self.produced += u64::from(rows);
    }

    fn price_cents(&mut self, customer: u64) -> u64 {
        match self.era {
            Era::Current => self.draw.below(MAX_PRICE) * 100,
            Era::May2023 | Era::Year2017 => float_price_cents(&mut self.draw, customer),
        }
    }

    fn push_data(&mut self, sql: &mut String) {
        let length =
            DATA_LENGTH.start() + self.draw.below(DATA_LENGTH.end() - DATA_LENGTH.start() + 1);
        let random = random_length(length);
        for _ in 0..length - random {
            sql.push('a');
        }
        let offset = self.draw.below(self.text.0.len() as u64 - random) as usize;
        sql.extend(
            self.text.0[offset..offset + random as usize]
                .iter()
                .map(|&byte| char::from(byte)),
        );
    }
}

/// Before 2023-12-08 the price was (u x 500 + customer) / 100 with u uniform in [0, 1).
pub(super) fn float_price_cents(draw: &mut Draw, customer: u64) -> u64 {
    (draw.unit() * MAX_PRICE as f64 + customer as f64).round() as u64
}

/// Prices have two decimals in the text even where the column is an integer: the server does the
/// cast, as in the original.
pub(super) fn push_price(sql: &mut String, cents: u64, number: &mut itoa::Buffer) {
    sql.push_str(number.format(cents / 100));
    sql.push('.');
    sql.push(char::from(b'0' + (cents / 10 % 10) as u8));
    sql.push(char::from(b'0' + (cents % 10) as u8));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(era: Era) -> Rows {
        Rows::new(
            Draw::new(7, &["test"]),
            RandomText::new(7),
            era,
            86_399,
            100,
        )
    }

    #[test]
    fn no_tuple_is_longer_than_the_longest() {
        for era in [Era::Current, Era::May2023, Era::Year2017] {
            let mut rows = rows(era);
            let longest = (0..20_000).map(|_| {
                let mut sql = String::new();
                rows.push_tuples(&mut sql, 1);
                sql.len() + ",".len()
            });
            let (longest, shorter) = (
                longest.max().unwrap(),
                if era == Era::Current { "1".len() } else { 0 },
            );
            assert_eq!(longest, LONGEST_TUPLE - shorter, "{era:?}");
        }
    }

    fn tuples(era: Era, count: u32) -> Vec<Vec<String>> {
        let mut sql = String::new();
        let mut rows = rows(era);
        rows.push_tuples(&mut sql, count);
        let lines = sql
            .trim()
            .split(",\n")
            .map(|line| line.trim_matches(['(', ')']));
        lines
            .map(|line| {
                line.split(',')
                    .map(|field| field.trim_matches('\'').to_owned())
                    .collect()
            })
            .collect()
    }

    #[test]
    fn rows_have_the_published_distributions() {
        let tuples = tuples(Era::Current, 50_000);
        assert_eq!(tuples.len(), 50_000);
        let numbers = |column: usize| {
            tuples
                .iter()
                .map(move |row| row[column].parse::<f64>().unwrap())
        };
        for (column, bound) in [
            (1, CASHREGISTERS),
            (2, CUSTOMERS),
            (3, PRODUCTS),
            (4, MAX_PRICE),
        ] {
            let mean = numbers(column).sum::<f64>() / 50_000.0;
            assert!(
                (mean / ((bound - 1) as f64 / 2.0) - 1.0).abs() < 0.01,
                "column {column} has mean {mean}"
            );
            assert!(numbers(column).all(|value| value >= 0.0 && value < bound as f64));
        }
        assert!(tuples.iter().all(|row| row[4].ends_with(".00")));
        let mean_length = tuples.iter().map(|row| row[5].len()).sum::<usize>() as f64 / 50_000.0;
        assert!((mean_length - 15.0).abs() < 0.05, "{mean_length}");
        for row in &tuples {
            let length = row[5].len() as u64;
            assert!(DATA_LENGTH.contains(&length));
            assert!(
                row[5][..(length - random_length(length)) as usize]
                    .bytes()
                    .all(|byte| byte == b'a')
            );
        }
    }

    #[test]
    fn the_random_part_has_the_published_lengths() {
        let lengths: Vec<u64> = DATA_LENGTH.map(random_length).collect();
        assert_eq!(lengths, [3, 4, 4, 4, 5, 5, 6, 6, 6, 7, 7]);
    }

    #[test]
    fn old_prices_are_floats_around_the_customer() {
        for row in tuples(Era::May2023, 1000) {
            let (customer, price): (f64, f64) = (row[2].parse().unwrap(), row[4].parse().unwrap());
            assert!(
                (customer / 100.0..=(customer + 500.0) / 100.0).contains(&price),
                "{row:?}"
            );
        }
    }

    #[test]
    fn the_data_has_its_own_clock() {
        let mut rows = rows(Era::Current);
        let mut sql = String::new();
        rows.push_tuples(&mut sql, 100);
        rows.push_tuples(&mut sql, 100);
        assert_eq!(sql.matches("2026-01-01 23:59:59").count(), 100);
        assert_eq!(sql.matches("2026-01-02 00:00:00").count(), 100);
    }
}
