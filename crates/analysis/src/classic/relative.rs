//! The table of throughput relative to the base.

use super::Class;

/// `value / base` with two decimals; `1` for 0/0 and `inf` for x/0, as the original prints them.
pub fn format(value: f64, base: f64) -> String {
    match (value == 0.0, base == 0.0) {
        (true, true) => "1".to_owned(),
        (false, true) => "inf".to_owned(),
        _ => format!("{:.2}", value / base),
    }
}

/// Above or below the base by more than 5 %, judged on the whole percentage: the limits act at 94.5
/// and 105.5.
pub fn classify(value: f64, base: f64) -> Class {
    let percent = (100.0 * value / base).round();
    if percent > 105.0 {
        Class::AboveBase
    } else if percent < 95.0 {
        Class::BelowBase
    } else {
        Class::Plain
    }
}
