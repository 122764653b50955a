//! What an engine counts exactly per operation, drawn.

use std::fmt::Write as _;

use plimsoll_analysis::Companion;
use plimsoll_analysis::verdicts::percent;
use serde_json::{Value, json};

/// Rows that text shows.
const SHOWN: usize = 16;
const NAME_WIDTH: usize = 40;

/// A table; empty where nothing was counted.
pub fn companions_to_text(companions: &[Companion]) -> String {
    if companions.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<NAME_WIDTH$} {:>11} {:>11} {:>9}  95 % interval\n",
        "counted by the engine, per operation", "base", "cell", "change"
    );
    for companion in companions.iter().take(SHOWN) {
        let name = match companion.unit {
            "" => companion.name.to_owned(),
            unit => format!("{}, {unit}", companion.name),
        };
        let (base, cell) = companion.means();
        let change = companion.ratio.map_or_else(|| "-".to_owned(), percent);
        let _ = writeln!(
            text,
            "{name:<NAME_WIDTH$} {:>11} {:>11} {change:>9}  {}",
            number(base),
            number(cell),
            certainty(companion)
        );
    }
    if companions.len() > SHOWN {
        let _ = writeln!(
            text,
            "and {} more: `--json` has them",
            companions.len() - SHOWN
        );
    }
    text
}

/// How sure the change is, in words where it is exact.
fn certainty(companion: &Companion) -> String {
    match companion.interval {
        _ if companion.is_same() => "exactly the same".to_owned(),
        Some((low, high)) if (high / low).ln() < 1e-9 => "the same in every start".to_owned(),
        Some((low, high)) => format!("[{}, {}]", percent(low), percent(high)),
        None if companion.ratio.is_none() => match companion.means() {
            (base, cell) if base > 0.0 && cell > 0.0 => "none in some starts".to_owned(),
            _ => "one of them counted none".to_owned(),
        },
        None => "one start".to_owned(),
    }
}

/// Four digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.01 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// A member per count.
pub fn companions_to_json(companions: &[Companion]) -> Value {
    let companions = companions.iter().map(|companion| {
        let (base, cell) = companion.means();
        json!({
            "name": companion.name,
            "unit": companion.unit,
            "base_per_op": base,
            "cell_per_op": cell,
            "base_by_start": companion.base,
            "cell_by_start": companion.cell,
            "ratio": companion.ratio,
            "low": companion.interval.map(|(low, _)| low),
            "high": companion.interval.map(|(_, high)| high),
            "exactly_the_same": companion.is_same(),
        })
    });
    companions.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exact_is_said_in_words() {
        let companion = |cell: [f64; 2], ratio, interval| Companion {
            name: "log fsyncs",
            unit: "",
            base: vec![1.0, 2.0],
            cell: cell.to_vec(),
            ratio,
            interval,
        };
        let all = [
            companion([1.0, 2.0], Some(1.0), Some((1.0, 1.0))),
            companion([1.5, 3.0], Some(1.5), Some((1.5, 1.5))),
            companion([1.1, 1.9], Some(1.02), Some((0.9, 1.16))),
            companion([0.0, 0.0], None, None),
            companion([0.0, 3.0], None, None),
        ];
        let text = companions_to_text(&all);
        let ends: Vec<&str> = text
            .lines()
            .skip(2)
            .filter_map(|line| line.split("  ").last())
            .collect();
        assert_eq!(
            ends,
            [
                "exactly the same",
                "the same in every start",
                "[-10.0 %, +16.0 %]",
                "one of them counted none",
                "none in some starts"
            ],
            "{text}"
        );
        assert!(text.contains("1.500"), "the mean of the base: {text}");
        let value = companions_to_json(&all);
        assert_eq!(value[0]["exactly_the_same"], true);
        assert_eq!(value[2]["high"], 1.16);
        assert_eq!(companions_to_text(&[]), "");
    }
}
