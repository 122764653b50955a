//! What tells series apart: colour together with a pattern, a mark or a dash, by their order.

use maud::{Markup, html};

use crate::html::figures::{corners, outline, px};

pub(super) const INK: &str = "#1b2430";
pub(super) const QUIET: &str = "#4b5563";
pub(super) const GRID: &str = "#dfe3e9";
pub(super) const PAPER: &str = "#ffffff";
/// Behind dots that may be noise, and behind seconds in which writers were held back.
pub(super) const BAND: &str = "#d9dce1";
pub(super) const STALL: &str = "#e3d5c3";

/// Colours that the colour-blind can tell apart, as on the page.
const COLOURS: [&str; 8] = [
    "#0072b2", "#d55e00", "#009e73", "#a3379b", "#c98a00", "#2a9fd6", "#882255", "#4b5563",
];

/// Nothing common with the number of colours: 56 bars differ.
const PATTERNS: usize = 7;

/// Lengths of dashes and gaps.
const DASHES: [&str; 5] = ["", "7 3", "2 3", "9 3 2 3", "5 2"];

pub(super) fn colour(series: usize) -> &'static str {
    COLOURS[series % COLOURS.len()]
}

/// How a key shows its series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Key {
    /// A filled box.
    Bar(usize),
    /// A mark, hollow or not.
    Dot(usize, bool),
    /// A line through a mark.
    Line(usize),
    /// The bold line.
    Median,
    /// A grey box.
    Band,
    /// A brown box.
    Stall,
}

impl Key {
    /// 22 px wide, with its middle at `y`.
    pub(super) fn draw(self, x: f64, y: f64) -> Markup {
        let line = |colour: &str, wide: &str, dash: &str| {
            html! {
                line x1=(px(x)) x2=(px(x + 22.0)) y1=(px(y)) y2=(px(y)) stroke=(colour)
                    stroke-width=(wide) stroke-dasharray=[Some(dash).filter(|dash| !dash.is_empty())] {}
            }
        };
        match self {
            Key::Bar(series) => html! {
                rect x=(px(x)) y=(px(y - 5.0)) width="22" height="10" fill=(fill(series)) {}
            },
            Key::Dot(series, is_hollow) => mark(series, (x + 11.0, y), is_hollow, ""),
            Key::Line(series) => html! {
                (line(colour(series), "2", dash(series)))
                (mark(series, (x + 11.0, y), false, ""))
            },
            Key::Median => line(INK, "3.5", ""),
            Key::Band | Key::Stall => html! {
                rect x=(px(x)) y=(px(y - 5.0)) width="22" height="10"
                    fill=(if self == Key::Band { BAND } else { STALL }) {}
            },
        }
    }
}

pub(super) fn dash(series: usize) -> &'static str {
    DASHES[series % DASHES.len()]
}

/// A mark of a series around a point, and what it says.
pub(super) fn mark(series: usize, (x, y): (f64, f64), is_hollow: bool, about: &str) -> Markup {
    let points = outline(series + 1);
    let points = corners(points.iter().map(|(dx, dy)| (x + dx * 0.8, y + dy * 0.8)));
    let fill = if is_hollow { PAPER } else { colour(series) };
    let kind = (!about.is_empty()).then_some("dot");
    html! {
        @if points.is_empty() {
            circle data-kind=[kind] cx=(px(x)) cy=(px(y)) r="4" fill=(fill)
                stroke=(colour(series)) stroke-width="1.5" { (hover(about)) }
        } @else {
            polygon data-kind=[kind] points=(points) fill=(fill) stroke=(colour(series))
                stroke-width="1.5" { (hover(about)) }
        }
    }
}

/// What a shape says when the pointer is on it.
pub(super) fn hover(about: &str) -> Markup {
    html! { @if !about.is_empty() { title { (super::text::clean(about)) } } }
}

/// How a bar of this series is filled.
pub(super) fn fill(series: usize) -> String {
    match series % PATTERNS {
        0 => colour(series).to_owned(),
        _ => format!("url(#plimsoll-fill-{series})"),
    }
}

/// The patterns of that many series. The name of one says what it looks like, so that figures of one
/// page may share them.
pub(super) fn patterns(series: usize) -> Markup {
    html! {
        defs {
            @for series in (0..series).filter(|series| series % PATTERNS != 0) {
                pattern id={ "plimsoll-fill-" (series) } width="6" height="6"
                    patternUnits="userSpaceOnUse" {
                    rect width="6" height="6" fill=(colour(series)) {}
                    path d=(strokes(series)) stroke=(PAPER) stroke-width="1.4" fill="none" {}
                }
            }
        }
    }
}

/// White lines on a square of 6 px.
fn strokes(series: usize) -> &'static str {
    match series % PATTERNS {
        1 => "M-1 7L7 -1M-1 1L1 -1M5 7L7 5",
        2 => "M0 3H6",
        3 => "M2 3H4M5 0H6M0 0H1M5 6H6M0 6H1",
        4 => "M-1 -1L7 7M5 -1L7 1M-1 5L1 7",
        5 => "M3 0V6",
        _ => "M0 3H6M3 0V6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_differ_in_more_than_their_colour() {
        let looks = |series: usize| (colour(series), series % PATTERNS);
        for one in 0..56 {
            for other in one + 1..56 {
                assert_ne!(looks(one), looks(other));
            }
            assert_ne!(outline(one), outline(one + 1));
            assert_ne!(dash(one), dash(one + 1));
        }
    }
}
