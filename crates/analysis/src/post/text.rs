//! Numbers and lists as sentences have them.

/// `5 tests`, `1 test`.
pub(crate) fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

/// `a`, `a and b`, `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A change with its sign and one decimal: `-20.4%`.
pub(crate) fn change(ratio: f64) -> String {
    let percent = 100.0 * (ratio - 1.0);
    match format!("{percent:+.1}%") {
        text if text == "-0.0%" => "+0.0%".to_owned(),
        text => text,
    }
}

/// A change with its sign in whole percent: `+3%`.
pub(crate) fn whole_change(ratio: f64) -> String {
    match whole_percent(ratio) {
        0 => "+0%".to_owned(),
        percent => format!("{percent:+}%"),
    }
}

/// A change in whole percent.
pub(crate) fn whole_percent(ratio: f64) -> i64 {
    (100.0 * (ratio - 1.0)).round() as i64
}

/// A gain: percent below 1.3, then as a factor with one decimal.
pub(crate) fn gain(ratio: f64) -> String {
    match ratio {
        _ if ratio < 1.3 => format!("{}%", whole_percent(ratio)),
        _ => format!("{ratio:.1}X"),
    }
}

/// A ratio as tables print it.
pub(crate) fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// The first letter large.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_numbers() {
        assert_eq!(count(1, "test"), "1 test");
        assert_eq!(count(0, "test"), "0 tests");
        let names: Vec<String> = ["a", "b", "c"].map(str::to_owned).into();
        assert_eq!(list(&names), "a, b and c");
        assert_eq!(list(&names[..2]), "a and b");
        assert_eq!(change(0.9999), "+0.0%");
        assert_eq!(whole_change(0.996), "+0%");
        assert_eq!(gain(1.299), "30%");
        assert_eq!(gain(1.84), "1.8X");
        assert_eq!(capital("point queries"), "Point queries");
    }
}
