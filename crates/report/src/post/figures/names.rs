//! Names below a plot: level if they fit, aslant or upright where they are many or long.

use maud::{Markup, html};

use super::sheet::{Anchor, EDGE, Label, TEXT};
use super::text::{clean, width};

/// How names are turned, below their columns.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stand {
    Level,
    Aslant,
    Upright,
}

/// The columns of a plot between two edges, each with its name below.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    names: Vec<String>,
    stand: Stand,
    left: f64,
    /// From column to column.
    pub(super) pitch: f64,
    /// What the names need below the plot.
    pub(super) height: f64,
}

/// Longer names make a plot too low for its texts.
const LONGEST: f64 = 240.0;
/// The narrowest columns whose names can be aslant, and upright.
const ASLANT: f64 = 18.0;
const UPRIGHT: f64 = 12.5;

impl Columns {
    /// Between `left` and `right`, further right if slanted names need room there; nothing if the
    /// names do not fit below their columns.
    pub(super) fn new(names: &[String], left: f64, right: f64) -> Option<Self> {
        let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
        let widths: Vec<f64> = names.iter().map(|name| width(name, TEXT)).collect();
        let longest = widths.iter().copied().fold(0.0, f64::max);
        let count = names.len().max(1) as f64;
        let columns = |stand, left: f64, height| Self {
            names: names.clone(),
            stand,
            left,
            pitch: (right - left) / count,
            height,
        };
        let level = columns(Stand::Level, left, TEXT + 8.0);
        if longest + 6.0 <= level.pitch {
            return Some(level);
        }
        if longest > LONGEST {
            return None;
        }
        let aslant = columns(Stand::Aslant, aslant_left(&widths, left, right), 0.0);
        if aslant.pitch >= ASLANT && aslant.left <= 0.25 * right {
            let height = (longest + TEXT) * 0.5f64.sqrt() + 8.0;
            return Some(Self { height, ..aslant });
        }
        let upright = columns(Stand::Upright, left, longest + 12.0);
        (upright.pitch >= UPRIGHT).then_some(upright)
    }

    /// As [`Columns::new`]; names that do not fit become numbers, with a sentence that explains them.
    pub(super) fn or_numbers(names: &[String], left: f64, right: f64) -> (Self, String) {
        if let Some(columns) = Self::new(names, left, right) {
            return (columns, String::new());
        }
        let numbers: Vec<String> = (1..=names.len()).map(|at| at.to_string()).collect();
        let pairs = numbers.iter().zip(names);
        let meanings: Vec<String> = pairs.map(|(at, name)| format!("{at}: {name}")).collect();
        let columns = Self::new(&numbers, left, right).unwrap_or_else(|| Self {
            stand: Stand::Upright,
            left,
            pitch: (right - left) / numbers.len().max(1) as f64,
            height: width(&names.len().to_string(), TEXT) + 12.0,
            names: numbers,
        });
        (columns, format!("{}.", meanings.join("; ")))
    }

    /// The right edge, at least `right`, of so many columns that their names do not meet.
    pub(super) fn right_for(count: usize, left: f64, right: f64) -> f64 {
        right.max(left + UPRIGHT * count as f64)
    }

    /// Whether the names can be read without turning the head.
    pub(super) fn is_airy(&self) -> bool {
        self.stand != Stand::Upright
    }

    /// Where the plot begins.
    pub(super) fn left(&self) -> f64 {
        self.left
    }

    /// The middle of a column.
    pub(super) fn middle(&self, at: usize) -> f64 {
        self.left + (at as f64 + 0.5) * self.pitch
    }

    /// The names below a plot that ends at `bottom`.
    pub(super) fn draw(&self, bottom: f64) -> Markup {
        html! {
            @for (at, name) in self.names.iter().enumerate() {
                (self.label(name, self.middle(at), bottom).draw())
            }
        }
    }

    fn label<'a>(&self, name: &'a str, x: f64, bottom: f64) -> Label<'a> {
        match self.stand {
            Stand::Level => Label::at(name, x, bottom + TEXT + 4.0).anchored(Anchor::Middle),
            Stand::Aslant => Label::at(name, x + TEXT * 0.4, bottom + TEXT)
                .anchored(Anchor::End)
                .turned(-45.0),
            Stand::Upright => Label::at(name, x + TEXT * 0.35, bottom + 6.0)
                .anchored(Anchor::End)
                .turned(-90.0),
        }
    }
}

/// Where a plot begins whose slanted names do not leave the sheet. They reach to the left of their
/// columns, which move as the plot gets narrower.
fn aslant_left(widths: &[f64], left: f64, right: f64) -> f64 {
    let count = widths.len().max(1) as f64;
    let mut begin = left;
    for _ in 0..20 {
        let pitch = (right - begin) / count;
        let needed = widths.iter().enumerate().map(|(at, wide)| {
            let reach = (wide + TEXT) * 0.5f64.sqrt();
            EDGE + reach - (at as f64 + 0.5) * pitch
        });
        begin = needed.fold(left, f64::max);
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(name: &str, count: usize) -> Option<Columns> {
        Columns::new(&vec![name.to_owned(); count], 40.0, 592.0)
    }

    #[test]
    fn names_turn_as_they_get_longer_and_more() {
        let stand = |name: &str, count| columns(name, count).map(|columns| columns.stand);
        assert_eq!(stand("insert", 5), Some(Stand::Level));
        assert_eq!(stand("update-nonindex_range=100", 10), Some(Stand::Aslant));
        assert_eq!(stand("update-nonindex_range=100", 40), Some(Stand::Upright));
        assert_eq!(stand("update-nonindex_range=100", 60), None);
        let long = "long".repeat(20);
        assert_eq!(stand(&long, 4), None);
        assert_eq!(stand("", 0), Some(Stand::Level));
    }

    #[test]
    fn slanted_names_begin_on_the_sheet() {
        for count in [3, 10, 20] {
            let name = "update-nonindex_range=10000";
            let Some(columns) = columns(name, count) else {
                continue;
            };
            let reach = (width(name, TEXT) + TEXT) * 0.5f64.sqrt();
            let first = columns.middle(0)
                - if columns.stand == Stand::Aslant {
                    reach
                } else {
                    0.0
                };
            assert!(first >= EDGE - 0.1, "{count}: {first}");
        }
    }
}
