//! Numbers as people write them in plans: rows, durations, bytes.

use thiserror::Error;

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;
/// Nanoseconds in a second, to divide by.
pub const NS_PER_S: f64 = 1e9;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;
/// Bytes in a kibibyte, to divide by.
pub const BYTES_PER_KIB: f64 = 1024.0;
/// Bytes in a mebibyte, to divide by.
pub const BYTES_PER_MIB: f64 = MIB as f64;
/// Bytes in a gibibyte, to divide by.
pub const BYTES_PER_GIB: f64 = GIB as f64;

/// A number that could not be read.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("\"{text}\" is not {what}")]
pub struct UnitError {
    text: String,
    what: &'static str,
}

fn split(text: &str) -> Option<(u64, u64, &str)> {
    // Mantissa as digits and thousandths, so that "1.5M" is exact.
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.len() > 3 || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let thousandths = format!("{fraction:0<3}").parse().ok()?;
    Some((whole.parse().ok()?, thousandths, unit.trim()))
}

fn scaled(
    text: &str,
    what: &'static str,
    factor: impl Fn(&str) -> Option<u64>,
) -> Result<u64, UnitError> {
    let error = || UnitError {
        text: text.to_owned(),
        what,
    };
    let (whole, thousandths, unit) = split(text.trim()).ok_or_else(error)?;
    let factor = factor(unit).ok_or_else(error)?;
    let part = thousandths.checked_mul(factor).ok_or_else(error)?;
    if part % 1000 != 0 {
        return Err(error());
    }
    whole
        .checked_mul(factor)
        .and_then(|n| n.checked_add(part / 1000))
        .ok_or_else(error)
}

/// Rows or operations: `20M` = 20,000,000, `1.5K` = 1,500, `800` = 800. Decimal, as the field
/// writes them.
pub fn parse_count(text: &str) -> Result<u64, UnitError> {
    scaled(
        text,
        "a number of rows such as 800, 50K, 20M or 1G",
        |unit| match unit {
            "" => Some(1),
            "K" | "k" => Some(1_000),
            "M" | "m" => Some(1_000_000),
            "G" | "B" => Some(1_000_000_000),
            _ => None,
        },
    )
}

/// A duration in nanoseconds: `250ms`, `30s`, `5m`, `2h`.
pub fn parse_duration_ns(text: &str) -> Result<u64, UnitError> {
    scaled(
        text,
        "a duration such as 250ms, 30s, 5m or 2h",
        |unit| match unit {
            "us" => Some(1_000),
            "ms" => Some(1_000_000),
            "s" => Some(1_000_000_000),
            "m" | "min" => Some(60_000_000_000),
            "h" => Some(3_600_000_000_000),
            _ => None,
        },
    )
}

/// A frequency in whole hertz: `10Hz`, from 1 to 50. Looking more often costs more than it shows.
pub fn parse_frequency_hz(text: &str) -> Result<u32, String> {
    let number = text.trim().strip_suffix("Hz").map(str::trim_end);
    number
        .and_then(|number| number.parse().ok())
        .filter(|hz| (1..=50).contains(hz))
        .ok_or_else(|| format!("\"{text}\" is not a frequency from 1Hz to 50Hz, such as 10Hz"))
}

/// How a size is written: a number and a unit, which is 1,024 times the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeSyntax {
    /// The letters of the units, the smallest first.
    letters: &'static str,
    /// What follows the letter.
    ending: &'static str,
    /// Whether the letter may be small.
    has_any_case: bool,
    /// Whether it is digits and a letter, without a point or a space.
    is_strict: bool,
    /// Bytes of what has no letter, if that is a size.
    without_letter: Option<u64>,
}

impl SizeSyntax {
    /// `512MiB`, `1.5 GiB`: plans, which leave no doubt.
    pub const PLAN: Self = Self {
        letters: "KMGT",
        ending: "iB",
        has_any_case: false,
        is_strict: false,
        without_letter: None,
    };
    /// `134217728`, `128M`, `128m`: options of MySQL and MariaDB.
    pub const MYSQL: Self = Self {
        letters: "KMGTPE",
        ending: "",
        has_any_case: true,
        is_strict: true,
        without_letter: Some(1),
    };
    /// `16777216`, `16m`: options of RocksDB.
    pub const ROCKSDB: Self = Self {
        letters: "KMGT",
        ..Self::MYSQL
    };
    /// `512B`, `64kB`, `39.9 GB`: parameters of PostgreSQL, statistics of RocksDB. A bare number is
    /// not one: what it means is the parameter's own.
    pub const WITH_B: Self = Self {
        letters: "KMGT",
        ending: "B",
        has_any_case: true,
        is_strict: false,
        without_letter: Some(1),
    };

    /// Bytes of one such unit.
    pub fn unit_bytes(self, unit: &str) -> Option<u64> {
        let mut letters = unit.strip_suffix(self.ending)?.chars();
        let Some(letter) = letters.next() else {
            return self.without_letter;
        };
        let letter = if self.has_any_case {
            letter.to_ascii_uppercase()
        } else {
            letter
        };
        let power = self.letters.find(letter)? + 1;
        letters.next().is_none().then_some(1 << (10 * power))
    }

    /// The bytes that a text stands for; `None` if it is not such a size, or more than 2^64.
    pub fn parse(self, text: &str) -> Option<u64> {
        let is_digit_or_letter = |c: char| c.is_ascii_alphanumeric();
        if self.is_strict && !text.chars().all(is_digit_or_letter) {
            return None;
        }
        scaled(text, "a size", |unit| self.unit_bytes(unit)).ok()
    }
}

/// `20M`, `1.5K`, `1234567`: the shortest exact form of a count.
pub fn format_count(count: u64) -> String {
    for (factor, unit) in [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "K")] {
        if count >= factor && count.is_multiple_of(factor / 100) {
            let (whole, hundredths) = (count / factor, count % factor / (factor / 100));
            return match hundredths {
                0 => format!("{whole}{unit}"),
                _ => format!(
                    "{whole}.{}{unit}",
                    format!("{hundredths:02}").trim_end_matches('0')
                ),
            };
        }
    }
    count.to_string()
}

/// `1 table`, `3 tables`: a number with its noun, whose plural ends in s.
pub fn count(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `1,234,567`: a count with thousands separated, for people.
pub fn format_grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A duration for people: `850us`, `12.3ms`, `4.2s`, `3m20s`, `2h05m`.
pub fn format_duration_ns(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match ns {
        0..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{:.0}us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1}ms", ns as f64 / 1e6),
        1_000_000_000..120_000_000_000 => format!("{seconds:.1}s"),
        _ if seconds < 7200.0 => format!("{}m{:02}s", seconds as u64 / 60, seconds as u64 % 60),
        _ if seconds < 48.0 * 3600.0 => format!(
            "{}h{:02}m",
            seconds as u64 / 3600,
            seconds as u64 % 3600 / 60
        ),
        _ => format!(
            "{} days",
            format_grouped((seconds / 86_400.0).round() as u64)
        ),
    }
}

/// Bytes for people, in binary units: `312 KiB`, `1.4 GiB`.
pub fn format_bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || value >= 100.0 {
        format!("{value:.0} {}", units[unit])
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, rows) in [
            ("20M", 20_000_000),
            ("1.5K", 1500),
            ("800", 800),
            ("1_000", 1000),
            ("0.25M", 250_000),
        ] {
            assert_eq!(parse_count(text), Ok(rows), "{text}");
        }
        for (text, ns) in [
            ("250ms", 250_000_000),
            ("30s", 30_000_000_000),
            ("2h", 7_200_000_000_000),
            ("1.5s", 1_500_000_000),
        ] {
            assert_eq!(parse_duration_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "M", "20 X", "1.2345M", "-3", "1.", "20MB"] {
            assert!(parse_count(text).is_err(), "{text}");
        }
        for text in ["30", "5GB", "1 week"] {
            assert!(parse_duration_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_read_as_their_readers_write_them() {
        const ALL: [SizeSyntax; 4] = [
            SizeSyntax::PLAN,
            SizeSyntax::MYSQL,
            SizeSyntax::ROCKSDB,
            SizeSyntax::WITH_B,
        ];
        let m = Some(MIB);
        for (text, expected) in [
            ("1MiB", [m, None, None, None]),
            ("0.5 MiB", [Some(MIB / 2), None, None, None]),
            ("1mib", [None; 4]),
            ("iB", [None; 4]),
            ("1048576", [None, m, m, None]),
            ("1m", [None, m, m, None]),
            ("1M", [None, m, m, None]),
            ("1P", [None, Some(1 << 50), None, None]),
            ("16E", [None; 4]),
            ("0", [None, Some(0), Some(0), None]),
            ("1.5g", [None; 4]),
            ("1 m", [None; 4]),
            ("1_0", [None; 4]),
            ("+1", [None; 4]),
            ("m", [None; 4]),
            ("", [None; 4]),
            ("1mm", [None; 4]),
            ("\u{e4}", [None; 4]),
            ("1MB", [None, None, None, m]),
            ("1024kB", [None, None, None, m]),
            ("0.5 MB", [None, None, None, Some(MIB / 2)]),
            ("1048576B", [None, None, None, m]),
        ] {
            assert_eq!(ALL.map(|syntax| syntax.parse(text)), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn counts_round_trip(count in 0u64..u64::MAX / 1000) {
            prop_assert_eq!(parse_count(&format_count(count)), Ok(count));
        }
    }
}
