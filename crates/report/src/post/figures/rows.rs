//! Tests as rows: names at the left or, if they are long, above their row; and bars that lie.

use maud::{Markup, html};

use super::bars::{Scale, cross, cut, whisker};
use super::keys::{GRID, INK, fill, hover};
use super::sheet::{Anchor, EDGE, Label, SMALL, Sheet, TEXT, base_line, line};
use super::text::{LINE, clean, widest, wrap};
use super::{GroupChart, ratio};
use crate::html::figures::px;
use crate::html::numbers::compact;

/// Longer names are above their rows.
const LONGEST: f64 = 190.0;
/// For the ticks above and below the plot.
pub(super) const TICKS: f64 = 18.0;
/// From bar to bar, so that a value fits beside each.
const PITCH: f64 = 11.0;
const GAP: f64 = 8.0;

/// Where rows and their names are, from the top of the first.
pub(super) struct Rows {
    names: Vec<Vec<String>>,
    is_above: bool,
    lane: f64,
    lanes: usize,
    /// Where the plot begins.
    pub(super) left: f64,
}

impl Rows {
    /// A row per name with so many lanes in it, on a sheet of that width.
    pub(super) fn new(names: &[String], lanes: usize, lane: f64, wide: f64) -> Self {
        let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
        let longest = widest(names.iter().map(String::as_str), TEXT);
        let is_above = longest > LONGEST;
        let most = if is_above { wide - 2.0 * EDGE } else { LONGEST };
        let names = names.iter().map(|name| wrap(name, TEXT, most));
        let left = EDGE + if is_above { 6.0 } else { longest + 8.0 };
        Self {
            names: names.collect(),
            is_above,
            lane,
            lanes: lanes.max(1),
            left,
        }
    }

    /// The height of a row's own lanes.
    fn lanes_height(&self) -> f64 {
        (self.lane * self.lanes as f64).max(TEXT * LINE)
    }

    fn name_height(&self, row: usize) -> f64 {
        if self.is_above {
            TEXT * LINE * self.names[row].len() as f64
        } else {
            0.0
        }
    }

    fn row_height(&self, row: usize) -> f64 {
        GAP + self.name_height(row) + self.lanes_height()
    }

    pub(super) fn height(&self) -> f64 {
        (0..self.names.len()).map(|row| self.row_height(row)).sum()
    }

    fn top(&self, row: usize) -> f64 {
        (0..row).map(|before| self.row_height(before)).sum()
    }

    /// The middle of a lane.
    pub(super) fn middle(&self, row: usize, lane: usize) -> f64 {
        let free = self.lanes_height() - self.lane * self.lanes as f64;
        let begin = self.top(row) + GAP / 2.0 + self.name_height(row) + free / 2.0;
        begin + self.lane * (lane as f64 + 0.5)
    }

    /// The names, with lines between the rows up to `right`.
    pub(super) fn draw(&self, top: f64, right: f64) -> Markup {
        html! {
            @for (row, lines) in self.names.iter().enumerate() {
                @let y = top + self.top(row);
                @if row > 0 { (line((EDGE, y), (right, y), GRID)) }
                @for (at, text) in lines.iter().enumerate() { (self.name(row, at, text, y)) }
            }
        }
    }

    fn name(&self, row: usize, at: usize, text: &str, y: f64) -> Markup {
        if self.is_above {
            let y = y + GAP / 2.0 + TEXT * (LINE * at as f64 + 1.0);
            return Label::at(text, EDGE, y).draw();
        }
        let middle = y + self.row_height(row) / 2.0;
        Label::at(text, self.left - 8.0, middle + TEXT * 0.37)
            .anchored(Anchor::End)
            .draw()
    }
}

/// The bars of a chart, lying, with the value beside each.
pub(super) fn place(sheet: &mut Sheet, chart: &GroupChart, scale: &Scale) {
    let rows = Rows::new(&chart.tests, chart.series.len(), PITCH, sheet.wide());
    let values = chart.values().map(ratio).collect::<Vec<_>>();
    let beside = widest(values.iter().map(String::as_str), SMALL) + 6.0;
    let right = sheet.wide() - EDGE - beside;
    let lying = Lying {
        chart,
        scale,
        rows: &rows,
        right,
    };
    sheet.place(rows.height() + 2.0 * TICKS, |top| lying.draw(top + TICKS));
}

struct Lying<'a> {
    chart: &'a GroupChart,
    scale: &'a Scale,
    rows: &'a Rows,
    right: f64,
}

impl Lying<'_> {
    fn x(&self, value: f64) -> f64 {
        self.rows.left + self.scale.share(value) * (self.right - self.rows.left)
    }

    fn draw(&self, top: f64) -> Markup {
        let bottom = top + self.rows.height();
        let one = self.x(1.0);
        html! {
            @for tick in &self.scale.ticks {
                @let (at, text) = (self.x(*tick), compact(*tick));
                (line((at, top), (at, bottom), GRID))
                @for y in [top - 5.0, bottom + TICKS - 5.0] {
                    (Label::at(&text, at, y).anchored(Anchor::Middle).draw())
                }
            }
            (self.rows.draw(top, self.right))
            @for test in 0..self.chart.tests.len() {
                @for series in 0..self.chart.series.len() {
                    (self.bar(series, test, top + self.rows.middle(test, series)))
                }
            }
            (base_line((one, top), (one, bottom)))
            @for test in 0..self.chart.tests.len() {
                @for series in 0..self.chart.series.len() {
                    (self.beside(series, test, top + self.rows.middle(test, series)))
                }
            }
            (line((self.rows.left, top), (self.rows.left, bottom), INK))
        }
    }

    fn bar(&self, series: usize, test: usize, middle: f64) -> Markup {
        const HIGH: f64 = PITCH * 0.86;
        let Some(value) = self.chart.series[series].value(test) else {
            return cross(self.rows.left + 6.0, middle);
        };
        let long = (self.x(value) - self.rows.left).max(0.5);
        let is_cut = self.scale.cuts(value);
        let top = middle - HIGH / 2.0;
        html! {
            rect data-kind=(if is_cut { "cut bar" } else { "bar" }) x=(px(self.rows.left))
                y=(px(top)) width=(px(long)) height=(px(HIGH)) fill=(fill(series)) {
                (hover(&self.chart.about(series, test)))
            }
            @if is_cut { (cut((self.right - 8.0, top), (4.0, HIGH))) }
        }
    }

    /// The interval of a bar and its value.
    fn beside(&self, series: usize, test: usize, middle: f64) -> Markup {
        let Some(value) = self.chart.series[series].value(test) else {
            return html! {};
        };
        let interval = self.chart.series[series].interval(test);
        let interval = interval.filter(|_| !self.scale.cuts(value));
        let end = interval.map_or(value, |(_, high)| high.max(value));
        let text = ratio(value);
        html! {
            @if let Some((low, high)) = interval {
                (whisker((self.x(low), middle), (self.x(high), middle)))
            }
            (Label::at(&text, self.x(end) + 4.0, middle + SMALL * 0.37).sized(SMALL).draw())
        }
    }
}
