//! Whether two ways to write a setting's value mean the same.

use std::collections::BTreeSet;

use plimsoll_core::units::SizeSyntax;

/// A number with the unit it is written with.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Quantity {
    /// In bytes, microseconds, or as it is.
    number: f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// None is written: MySQL means bytes, PostgreSQL the parameter's own unit.
    Unwritten,
    Bytes,
    Time,
}

/// Times as engines read and write them.
const TIMES: [(&str, f64); 6] = [
    ("us", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("min", 6e7),
    ("h", 3.6e9),
    ("d", 8.64e10),
];

fn quantity(text: &str) -> Option<Quantity> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+'))
        .unwrap_or(text.len());
    let (number, unit) = (text[..digits].parse::<f64>().ok()?, text[digits..].trim());
    let time = || TIMES.iter().find(|(name, _)| *name == unit);
    let (unit, factor) = if unit.is_empty() {
        (Unit::Unwritten, 1.0)
    } else if let Some((_, factor)) = time() {
        (Unit::Time, *factor)
    } else {
        let bytes = [SizeSyntax::MYSQL, SizeSyntax::WITH_B]
            .iter()
            .find_map(|syntax| syntax.unit_bytes(unit))?;
        (Unit::Bytes, bytes as f64)
    };
    Some(Quantity {
        number: number * factor,
        unit,
    })
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Some(true),
        "off" | "false" | "no" | "0" => Some(false),
        _ => None,
    }
}

/// Without quotes, a leading `./` and a trailing `/`.
fn plain(text: &str) -> &str {
    let text = text.trim();
    let text = text
        .strip_prefix('\'')
        .and_then(|text| text.strip_suffix('\''))
        .unwrap_or(text);
    let text = text.strip_prefix("./").unwrap_or(text);
    text.strip_suffix('/').unwrap_or(text)
}

fn items(list: &str) -> BTreeSet<String> {
    list.split(',')
        .map(|item| item.trim().to_ascii_lowercase())
        .filter(|item| !item.is_empty())
        .collect()
}

/// Whether two engines run with the same.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (plain(a), plain(b));
    if a.eq_ignore_ascii_case(b) || items(a) == items(b) {
        return true;
    }
    if let (Some(a), Some(b)) = (switch(a), switch(b)) {
        return a == b;
    }
    match (quantity(a), quantity(b)) {
        // A time is not a size; a bare number may be either.
        (Some(a), Some(b)) => {
            a.number == b.number
                && (a.unit == b.unit || a.unit == Unit::Unwritten || b.unit == Unit::Unwritten)
        }
        _ => false,
    }
}

/// Whether an engine runs with what its config asks for. `is_negated` is true of an option that
/// switches off what `found` tells.
pub(crate) fn is_taken(name: &str, asked: &str, found: &str, is_negated: bool) -> bool {
    if is_negated {
        return switch(plain(asked)).unwrap_or(true) != switch(plain(found)).unwrap_or(true);
    }
    if is_same(asked, found) {
        return true;
    }
    let (asked, found) = (plain(asked), plain(found));
    // A name for the logs switches them on.
    if name == "log_bin" {
        return switch(found) == Some(true) && switch(asked) != Some(false);
    }
    // The number of a word: only the engine knows the list.
    if asked.bytes().all(|byte| byte.is_ascii_digit())
        && quantity(found).is_none()
        && switch(found).is_none()
        && !found.is_empty()
    {
        return true;
    }
    // A bare number is in the parameter's own unit, which is not known here; the engine itself has
    // compared the two.
    if let (
        Some(Quantity {
            unit: Unit::Unwritten,
            ..
        }),
        Some(Quantity {
            unit: Unit::Bytes | Unit::Time,
            ..
        }),
    ) = (quantity(asked), quantity(found))
    {
        return true;
    }
    // Of a list of switches a config names some.
    let (asked, found) = (items(asked), items(found));
    !asked.is_empty() && asked.iter().all(|item| item.contains('=')) && asked.is_subset(&found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_mean_the_same() {
        for (a, b, expected) in [
            ("1G", "1073741824", true),
            ("1G", "1024M", true),
            ("1GB", "1048576kB", true),
            ("5min", "300s", true),
            ("5min", "5MB", false),
            ("1G", "536870912", false),
            ("ON", "1", true),
            ("on", "OFF", false),
            ("10", "10.000000", true),
            ("O_DIRECT", "o_direct", true),
            ("b,A", "a,b", true),
            ("a,b", "a", false),
            ("./tmp/", "tmp", true),
            ("crc32", "full_crc32", false),
            ("", "0", false),
            ("1e", "1", false),
        ] {
            assert_eq!(is_same(a, b), expected, "{a} and {b}");
            assert_eq!(is_same(b, a), expected, "{b} and {a}");
        }
    }

    #[test]
    fn asked_and_found() {
        for (name, asked, found, is_negated, expected) in [
            ("x", "1G", "512M", false, false),
            ("shared_buffers", "131072", "1GB", false, true),
            ("wal_buffers", "-1", "16MB", false, true),
            ("x", "'a b'", "a b", false, true),
            ("log_bin", "binlog", "ON", false, true),
            ("log_bin", "1", "OFF", false, false),
            ("synchronous", "2", "full", false, true),
            ("performance_schema", "1", "OFF", false, false),
            ("innodb_file_format", "1", "", false, false),
            ("skip_innodb_doublewrite", "1", "OFF", true, true),
            ("skip_innodb_doublewrite", "1", "ON", true, false),
            (
                "optimizer_switch",
                "mrr=off",
                "index_merge=on,mrr=off",
                false,
                true,
            ),
            (
                "optimizer_switch",
                "mrr=on",
                "index_merge=on,mrr=off",
                false,
                false,
            ),
        ] {
            assert_eq!(
                is_taken(name, asked, found, is_negated),
                expected,
                "{name}: {asked} and {found}"
            );
        }
    }
}
