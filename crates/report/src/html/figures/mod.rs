//! Figures as inline SVG: they need no script and print well.

pub(crate) mod axis;
pub(crate) mod bars;
pub(crate) mod curves;
pub(crate) mod flames;
pub(crate) mod ramp;
pub(crate) mod ratio_plot;
pub(crate) mod section;
pub(crate) mod shapes;
pub(crate) mod step_ratios;
pub(crate) mod versions;
pub(crate) mod waits;

use maud::{Markup, html};
use plimsoll_analysis::view::Status;

const WIDTH: f64 = 620.0;

/// The pattern that marks what missed its SLA, for every figure of the page.
pub(crate) fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            defs {
                pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse"
                    patternTransform="rotate(45)" {
                    rect width="3" height="7" class="hatch" {}
                }
            }
        }
    }
}

/// A length or place in a figure: a tenth of a pixel is enough.
pub(crate) fn px(value: f64) -> String {
    format!("{value:.1}")
}

/// Points as an SVG line or polygon has them.
pub(crate) fn corners(points: impl Iterator<Item = (f64, f64)>) -> String {
    let points = points.map(|(x, y)| format!("{x:.1},{y:.1}"));
    points.collect::<Vec<_>>().join(" ")
}

/// A label that fits its column; the whole of it on hover.
pub(crate) fn short(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        label.to_owned()
    } else {
        format!("{}…", label.chars().take(most - 1).collect::<String>())
    }
}

/// The corners of a mark around its middle; a circle has none.
pub(crate) fn outline(cell: usize) -> &'static [(f64, f64)] {
    match cell % 4 {
        1 => &[],
        2 => &[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)],
        3 => &[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)],
        _ => &[(0.0, -6.0), (5.5, 4.5), (-5.5, 4.5)],
    }
}

/// Circle, square, diamond, triangle: cells differ by shape as well as by colour.
pub(crate) fn dot(cell: usize, x: f64, y: f64, status: Status, about: &str) -> Markup {
    let class = format!(
        "dot k{}{}",
        cell % 8,
        if status == Status::Ok { "" } else { " hollow" }
    );
    let outline = outline(cell);
    let points = corners(outline.iter().map(|(dx, dy)| (x + dx, y + dy)));
    html! {
        @if outline.is_empty() {
            circle class=(class) cx=(px(x)) cy=(y) r="5" { title { (about) } }
        } @else {
            polygon class=(class) points=(points) { title { (about) } }
        }
    }
}

pub(crate) fn dot_key(cell: usize) -> Markup {
    html! {
        svg.dotkey viewBox="0 0 14 14" aria-hidden="true" { (dot(cell, 7.0, 7.0, Status::Ok, "")) }
    }
}
