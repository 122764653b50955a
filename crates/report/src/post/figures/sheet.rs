//! The paper that a figure is drawn on, from top to bottom: title, lines of text, keys, plots,
//! caption.

use maud::{Markup, html};

use super::keys::{INK, Key, PAPER, QUIET, patterns};
use super::text::{FAMILIES, LINE, clean, widest, width, wrap};
use crate::html::figures::px;

/// The width of a figure in pixels.
pub(super) const WIDTH: f64 = 600.0;
/// What stays free at the edges.
pub(super) const EDGE: f64 = 8.0;
/// The sizes of letters: of titles, of names and ticks, of values beside bars.
const TITLE: f64 = 14.0;
pub(super) const TEXT: f64 = 10.5;
pub(super) const SMALL: f64 = 9.0;

/// Where a text stands against its point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A text at a point on its baseline.
#[derive(Clone, Debug)]
pub(super) struct Label<'a> {
    pub(super) text: &'a str,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Clockwise, in degrees.
    pub(super) turn: f64,
    pub(super) ink: &'static str,
}

impl<'a> Label<'a> {
    pub(super) fn at(text: &'a str, x: f64, y: f64) -> Self {
        Self {
            text,
            x,
            y,
            size: TEXT,
            anchor: Anchor::Start,
            turn: 0.0,
            ink: INK,
        }
    }

    pub(super) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    pub(super) fn sized(self, size: f64) -> Self {
        Self { size, ..self }
    }

    pub(super) fn turned(self, turn: f64) -> Self {
        Self { turn, ..self }
    }

    pub(super) fn quiet(self) -> Self {
        Self { ink: QUIET, ..self }
    }

    /// Level texts have a white edge, so that they can be read upon lines.
    pub(super) fn draw(&self) -> Markup {
        let anchor = match self.anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        let (x, y) = (px(self.x), px(self.y));
        let turn = (self.turn != 0.0).then(|| format!("rotate({} {x} {y})", self.turn));
        let edge = self.turn == 0.0;
        html! {
            text x=(x) y=(y) font-size=(self.size) fill=(self.ink) text-anchor=[anchor]
                transform=[turn] stroke=[edge.then_some(PAPER)] stroke-width=[edge.then_some("2")]
                stroke-linejoin=[edge.then_some("round")] paint-order=[edge.then_some("stroke")] {
                (clean(self.text))
            }
        }
    }
}

/// A figure on its way; `y` is where the next part begins.
pub(super) struct Sheet {
    title: String,
    wide: f64,
    y: f64,
    parts: Vec<Markup>,
}

impl Sheet {
    /// With the title at its top. `wide` is at least [`WIDTH`].
    pub(super) fn new(title: &str, wide: f64) -> Self {
        let mut sheet = Self {
            title: clean(title),
            wide: wide.max(WIDTH).ceil(),
            y: EDGE,
            parts: Vec::new(),
        };
        sheet.lines(title, TITLE, INK);
        sheet
    }

    pub(super) fn wide(&self) -> f64 {
        self.wide
    }

    /// A text across the sheet, in as many lines as it needs.
    fn lines(&mut self, text: &str, size: f64, ink: &'static str) {
        let cleaned = clean(text);
        for line in wrap(&cleaned, size, self.wide - 2.0 * EDGE) {
            self.y += size * LINE;
            let label = Label::at(&line, EDGE, self.y - size * (LINE - 1.0));
            let label = Label { ink, ..label };
            self.parts.push(label.sized(size).draw());
        }
    }

    /// What the plot below it means.
    pub(super) fn meaning(&mut self, text: &str) {
        self.lines(text, TEXT, QUIET);
    }

    /// The keys of the series, in their order, in as many rows as they need.
    pub(super) fn keys(&mut self, keys: &[(Key, String)]) {
        const SAMPLE: f64 = 28.0;
        const GAP: f64 = 16.0;
        const ROW: f64 = 16.0;
        let right = self.wide - EDGE;
        let mut x = EDGE;
        let mut y = self.y + 4.0;
        for (key, name) in keys {
            let cleaned = clean(name);
            let lines = wrap(&cleaned, TEXT, right - EDGE - SAMPLE);
            let needed = SAMPLE + widest(lines.iter().map(String::as_str), TEXT);
            if x > EDGE && x + needed > right {
                x = EDGE;
                y += ROW;
            }
            self.parts.push(key.draw(x, y + ROW / 2.0));
            for (at, line) in lines.iter().enumerate() {
                y += if at > 0 { ROW } else { 0.0 };
                let label = Label::at(line, x + SAMPLE, y + ROW / 2.0 + 4.0);
                self.parts.push(label.draw());
            }
            x += needed + GAP;
        }
        self.y = y + if keys.is_empty() { 0.0 } else { ROW };
    }

    /// A part of that height, drawn from the top that it is given.
    pub(super) fn place(&mut self, height: f64, draw: impl FnOnce(f64) -> Markup) {
        let top = self.y + 4.0;
        self.parts.push(draw(top));
        self.y = top + height;
    }

    /// Below the plot: sentences of the chart and of the figure itself.
    pub(super) fn caption(&mut self, sentences: &[String]) {
        self.y += 2.0;
        let sentences = sentences.iter().filter(|sentence| !sentence.is_empty());
        let text: Vec<&str> = sentences.map(String::as_str).collect();
        self.lines(&text.join(" "), TEXT, QUIET);
    }

    /// The SVG. `alt` is what it says to those who cannot see it, `series` how many patterns it has.
    pub(super) fn finish(self, alt: &str, series: usize) -> String {
        let height = (self.y + EDGE).ceil();
        let markup = html! {
            svg xmlns="http://www.w3.org/2000/svg" width=(self.wide) height=(height)
                viewBox={ "0 0 " (self.wide) " " (height) } role="img" font-family=(FAMILIES) {
                title { (self.title) }
                desc { (clean(alt)) }
                (patterns(series))
                rect width=(self.wide) height=(height) fill=(PAPER) {}
                @for part in self.parts { (part) }
            }
        };
        markup.into_string()
    }
}

/// A straight line of a plot.
pub(super) fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64), ink: &str) -> Markup {
    html! {
        line x1=(px(x1)) y1=(px(y1)) x2=(px(x2)) y2=(px(y2)) stroke=(ink) {}
    }
}

/// The line at 1.0, the base.
pub(super) fn base_line(from: (f64, f64), to: (f64, f64)) -> Markup {
    html! { g data-kind="one" stroke-width="1.3" { (line(from, to, INK)) } }
}

/// How wide the texts beside a vertical axis are, with a gap.
pub(super) fn beside(texts: &[String]) -> f64 {
    widest(texts.iter().map(String::as_str), TEXT) + EDGE + 6.0
}

/// Whether a text of that size fits in so many pixels.
pub(super) fn fits(text: &str, size: f64, most: f64) -> bool {
    width(text, size) <= most
}
