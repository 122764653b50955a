//! A differential flame graph of 600 pixels.

use maud::{Markup, html};
use plimsoll_analysis::FlameNode;

use super::keys::INK;
use super::sheet::{EDGE, SMALL, Sheet, WIDTH, fits};
use crate::html::figures::flames::{Frame, colour, lay_out};
use crate::html::figures::px;

/// Two profiles as one tree.
#[derive(Clone, Debug, Default)]
pub struct FlameChart {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure.
    pub caption: String,
    /// Its `<desc>`.
    pub alt: String,
    /// What the changes are against.
    pub base: String,
    /// Has the time that the widths are.
    pub cell: String,
    /// All stacks; times in microseconds per operation.
    pub tree: FlameNode,
}

const ROW: f64 = 15.0;
/// Boxes of less than this share of the time have no name, and columns of them make a figure tall.
const LEAST_SHARE: f64 = 0.01;
/// A change by this share or more follows the name: it does not depend on colour alone.
const TOLD: f64 = 0.05;

/// Callers above what they call; a box is as wide as the cell's time in it. Its colour and a number
/// in it say how its time changed.
pub fn flames(chart: &FlameChart) -> String {
    let mut sheet = Sheet::new(&chart.title, WIDTH);
    let (base, cell) = (&chart.base, &chart.cell);
    sheet.meaning(&format!(
        "Callers above, the width is the time in {cell}: {:.2} us/op in all, {:.2} in {base}.",
        chart.tree.cell_us, chart.tree.base_us
    ));
    let wide = WIDTH - 2.0 * EDGE;
    let mut frames = Vec::new();
    if chart.tree.cell_us > 0.0 {
        let scale = wide / chart.tree.cell_us;
        lay_out(&chart.tree, EDGE, 0, scale, &mut frames);
        // A caller is as wide as what it calls, or wider: no box loses the one above it.
        frames.retain(|frame| frame.width >= LEAST_SHARE * wide);
    }
    if frames.is_empty() {
        sheet.meaning("There is no function to show.");
    }
    let rows = frames.iter().map(|frame| frame.depth + 1).max();
    sheet.place(ROW * rows.unwrap_or(0) as f64, |top| {
        html! { @for frame in &frames { (draw(frame, top)) } }
    });
    sheet.caption(&[
        chart.caption.clone(),
        format!(
            "Red with a plus uses more than in {base}, blue with a minus less; what is only in \
             {base} has no width, and less than 1% is left out."
        ),
    ]);
    sheet.finish(&chart.alt, 0)
}

fn draw(frame: &Frame, top: f64) -> Markup {
    let y = top + ROW * frame.depth as f64;
    let text = label(frame);
    html! {
        rect x=(px(frame.x)) y=(px(y)) width=(px((frame.width - 0.5).max(0.5))) height=(ROW - 1.0)
            fill=(colour(frame.change)) {
            title { (frame.name) ": " (frame.numbers()) }
        }
        @if let Some(text) = text {
            text x=(px(frame.x + 2.0)) y=(px(y + ROW - 4.5)) font-size=(SMALL) fill=(INK) {
                (text)
            }
        }
    }
}

/// The name with its change, as much of it as fits; `None` where nothing of it does.
fn label(frame: &Frame) -> Option<String> {
    let room = frame.width - 4.0;
    let change = match frame.change {
        change if change.abs() < TOLD => String::new(),
        change if change >= 1.0 => " new".to_owned(),
        _ => format!(" {:+.2}", frame.difference_us),
    };
    let name: Vec<char> = super::text::clean(&frame.name).chars().collect();
    let cut = |length: usize| -> String {
        let head: String = name.iter().take(length).collect();
        match length == name.len() {
            true => format!("{head}{change}"),
            false => format!("{head}\u{2026}{change}"),
        }
    };
    (3.min(name.len())..=name.len())
        .rev()
        .map(cut)
        .find(|text| fits(text, SMALL, room))
        .or_else(|| Some(change.trim().to_owned()).filter(|of| !of.is_empty()))
        .filter(|text| fits(text, SMALL, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(base_us: f64, cell_us: f64, calls: Vec<(&str, FlameNode)>) -> FlameNode {
        let calls = calls.into_iter().map(|(name, of)| (name.to_owned(), of));
        FlameNode {
            base_us,
            cell_us,
            calls: calls.collect(),
        }
    }

    /// Profiles of real servers have columns of fifty calls that took next to nothing.
    #[test]
    fn a_column_of_little_does_not_make_it_tall() {
        let mut deep = node(0.1, 0.1, Vec::new());
        for _ in 0..50 {
            deep = node(0.1, 0.1, vec![("call", deep)]);
        }
        let tree = node(
            20.0,
            20.0,
            vec![("main", node(19.9, 19.9, Vec::new())), ("thin", deep)],
        );
        let chart = FlameChart {
            tree,
            ..FlameChart::default()
        };
        let svg = flames(&chart);
        assert!(svg.contains(">main<") && !svg.contains("thin"), "{svg}");
        let height = svg
            .split("height=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next());
        assert!(height.unwrap().parse::<f64>().unwrap() < 200.0, "{svg}");
    }

    #[test]
    fn a_box_says_by_number_what_its_colour_says() {
        let tree = node(
            10.0,
            20.0,
            vec![
                ("handle_statement", node(9.0, 9.0, Vec::new())),
                ("row_search_mvcc", node(1.0, 11.0, Vec::new())),
            ],
        );
        let chart = FlameChart {
            title: "scan".to_owned(),
            base: "5.6".to_owned(),
            cell: "5.7".to_owned(),
            tree,
            ..FlameChart::default()
        };
        let svg = flames(&chart);
        assert!(svg.contains(">row_search_mvcc +10.00<"), "{svg}");
        assert!(svg.contains(">handle_statement<"), "{svg}");
        assert!(svg.contains("width=\"600\""), "{svg}");
        let none = flames(&FlameChart::default());
        assert!(none.contains("There is no function to show."), "{none}");
    }

    #[test]
    fn a_name_without_room_is_cut_and_its_change_stays() {
        let frame = |width: f64| Frame {
            name: "a_function_with_a_long_name".to_owned(),
            x: 0.0,
            width,
            depth: 0,
            base_us: 1.0,
            cell_us: 3.0,
            difference_us: 2.0,
            change: 2.0 / 3.0,
        };
        let cut = label(&frame(80.0)).unwrap();
        assert!(cut.ends_with("\u{2026} +2.00"), "{cut}");
        assert!(fits(&cut, SMALL, 76.0));
        assert_eq!(label(&frame(36.0)).as_deref(), Some("+2.00"));
        assert_eq!(label(&frame(6.0)), None);
    }
}
