//! `/proc/pressure/*`: how long tasks waited for a resource.

use crate::Answer;

/// The `some` line: at least one task waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SomePressure {
    /// Share of the last ten seconds, in percent.
    pub avg10_pct: f64,
    /// Since boot.
    pub total_us: u64,
}

/// Reads the `some` line.
pub fn parse_pressure(text: &str) -> Answer<SomePressure> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("some "))
        .ok_or("the pressure file has no `some` line")?;
    let field = |name: &str| {
        line.split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    };
    let avg10_pct = field("avg10")
        .and_then(|text| text.parse().ok())
        .ok_or("the pressure file has no avg10")?;
    let total_us = field("total")
        .and_then(|text| text.parse().ok())
        .ok_or("the pressure file has no total")?;
    Ok(SomePressure {
        avg10_pct,
        total_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_some_line() {
        let text = "some avg10=1.06 avg60=0.40 avg300=0.20 total=7038216\nfull avg10=0.00 \
                   avg60=0.00 avg300=0.00 total=6633600\n";
        assert_eq!(
            parse_pressure(text).unwrap(),
            SomePressure {
                avg10_pct: 1.06,
                total_us: 7_038_216
            }
        );
    }

    #[test]
    fn says_what_is_missing() {
        for (text, reason) in [
            ("", "no `some` line"),
            ("full avg10=0.00 total=1\n", "no `some` line"),
            ("some avg10=0.00\n", "no total"),
            ("some avg10=0.00 total=-1\n", "no total"),
            ("some total=1\n", "no avg10"),
        ] {
            assert!(
                parse_pressure(text).unwrap_err().contains(reason),
                "{text:?}"
            );
        }
    }
}
