//! Ratios as dots with their intervals, tests as rows, on a logarithmic axis with 1.0 in its middle.

use maud::{Markup, html};

use super::bars::cross;
use super::keys::{BAND, GRID, INK, Key, colour, mark};
use super::rows::{Rows, TICKS};
use super::sheet::{Anchor, EDGE, Label, Sheet, TEXT, WIDTH, base_line, line};
use super::text::width;
use super::{GroupChart, ratio};
use crate::html::figures::axis::ratio_ticks;
use crate::html::figures::px;
use crate::html::numbers::compact;

/// From dot to dot of a test.
const LANE: f64 = 11.0;
/// The axis reaches at least so far to both sides.
const LEAST: f64 = 1.06;

/// A dot per test and series with its interval; hollow where there is none, because that is a single
/// run. `twins_p95` is by which share of it the throughput of twins differs, 95 times of 100, such as
/// 0.025: what lies in the grey band of that width may be noise.
pub fn dots(chart: &GroupChart, twins_p95: Option<f64>) -> String {
    let band = twins_p95.filter(|share| share.is_finite() && *share > 0.0);
    let rows = Rows::new(&chart.tests, chart.series.len(), LANE, WIDTH);
    let plot = Plot::new(chart, &rows, band);
    let mut sheet = Sheet::new(&chart.title, WIDTH);
    sheet.meaning(&chart.meaning());
    sheet.keys(&keys(chart, band));
    if chart.tests.is_empty() {
        sheet.meaning("There is no test to show.");
    } else {
        sheet.place(rows.height() + 2.0 * TICKS, |top| plot.draw(top + TICKS));
    }
    sheet.caption(&[chart.caption.clone(), notes(chart)]);
    sheet.finish(&chart.alt, 0)
}

/// A mark in the keys is hollow if all of its series are.
fn keys(chart: &GroupChart, band: Option<f64>) -> Vec<(Key, String)> {
    let tests = chart.tests.len();
    let series = chart.series.iter().enumerate().map(|(at, series)| {
        let is_hollow = (0..tests).all(|test| series.interval(test).is_none());
        (Key::Dot(at, is_hollow), series.name.clone())
    });
    let band = band.map(|share| {
        let text = format!("95 % of twins differ by up to {:.1} %", share * 100.0);
        (Key::Band, text)
    });
    series.chain(band).collect()
}

fn notes(chart: &GroupChart) -> String {
    let tests = || 0..chart.tests.len();
    let of = |is_wanted: &dyn Fn(usize, &super::Series) -> bool| {
        tests().any(|at| chart.series.iter().any(|series| is_wanted(at, series)))
    };
    let mut notes = vec!["The axis is logarithmic."];
    if of(&|at, series| series.value(at).is_some() && series.interval(at).is_none()) {
        notes.push("Hollow marks have no interval.");
    }
    if of(&|at, series| series.value(at).is_none()) {
        notes.push("A cross is where there is no value.");
    }
    notes.join(" ")
}

struct Plot<'a> {
    chart: &'a GroupChart,
    rows: &'a Rows,
    band: Option<f64>,
    right: f64,
    /// How many doublings the axis reaches to both sides.
    reach: f64,
}

impl<'a> Plot<'a> {
    fn new(chart: &'a GroupChart, rows: &'a Rows, band: Option<f64>) -> Self {
        let values = chart.values().filter(|value| *value > 0.0);
        let values = values.chain([LEAST, 1.0 + band.unwrap_or(0.0)]);
        let far = values.fold(0.0, |far: f64, value| far.max(value.log2().abs()));
        // One wild interval does not make the others points: those are cut at the edges.
        let tests = 0..chart.tests.len();
        let all = tests.flat_map(|at| chart.series.iter().filter_map(move |of| of.interval(at)));
        let ends = all.flat_map(|(low, high)| [low, high]);
        let ends = ends.filter(|end| *end > 0.0).map(|end| end.log2().abs());
        let wide = ends.fold(far, f64::max).min(far * 1.5);
        Self {
            chart,
            rows,
            band,
            right: WIDTH - EDGE - 10.0,
            reach: wide * 1.08,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let share = (value.log2() / self.reach).clamp(-1.0, 1.0);
        let (left, right) = (self.rows.left + 10.0, self.right);
        (left + right) / 2.0 + share * (right - left) / 2.0
    }

    /// Those whose texts do not meet.
    fn ticks(&self) -> Vec<(f64, String)> {
        let mut shown: Vec<(f64, f64, String)> = Vec::new();
        for tick in ratio_ticks(self.reach) {
            let text = compact(tick);
            let (at, half) = (self.x(tick), width(&text, TEXT) / 2.0 + 3.0);
            if shown
                .iter()
                .all(|(x, other, _)| (at - x).abs() >= half + other)
            {
                shown.push((at, half, text));
            }
        }
        shown.into_iter().map(|(at, _, text)| (at, text)).collect()
    }

    fn draw(&self, top: f64) -> Markup {
        let bottom = top + self.rows.height();
        let one = self.x(1.0);
        html! {
            @if let Some(share) = self.band {
                @let (from, to) = (self.x(1.0 / (1.0 + share)), self.x(1.0 + share));
                rect data-kind="band" x=(px(from)) y=(px(top)) width=(px(to - from))
                    height=(px(bottom - top)) fill=(BAND) {}
            }
            @for (at, text) in self.ticks() {
                (line((at, top), (at, bottom), GRID))
                @for y in [top - 5.0, bottom + TICKS - 5.0] {
                    (Label::at(&text, at, y).anchored(Anchor::Middle).draw())
                }
            }
            (self.rows.draw(top, self.right + 10.0))
            (base_line((one, top), (one, bottom)))
            @for test in 0..self.chart.tests.len() {
                @for series in 0..self.chart.series.len() {
                    (self.dot(series, test, top + self.rows.middle(test, series)))
                }
            }
            (line((self.rows.left, bottom), (self.right + 10.0, bottom), INK))
        }
    }

    fn dot(&self, series: usize, test: usize, y: f64) -> Markup {
        let of = &self.chart.series[series];
        let Some(value) = of.value(test) else {
            return cross(self.rows.left + 5.0, y);
        };
        let interval = of.interval(test);
        html! {
            @if let Some((low, high)) = interval {
                g data-kind="interval" stroke-width="2" {
                    (line((self.x(low), y), (self.x(high), y), colour(series)))
                }
                @for (end, outwards) in [(low, -1.0), (high, 1.0)] {
                    @if end.log2().abs() > self.reach {
                        (self.beyond(end, outwards, y, colour(series)))
                    }
                }
            }
            (mark(series, (self.x(value), y), interval.is_none(), &self.about(series, test)))
        }
    }

    /// An arrow where an interval goes on beyond the axis.
    fn beyond(&self, end: f64, outwards: f64, y: f64, ink: &str) -> Markup {
        let at = self.x(end);
        html! {
            g data-kind="beyond" stroke-width="2" {
                (line((at, y), (at - outwards * 4.0, y - 3.0), ink))
                (line((at, y), (at - outwards * 4.0, y + 3.0), ink))
            }
        }
    }

    fn about(&self, series: usize, test: usize) -> String {
        let about = self.chart.about(series, test);
        match self.chart.series[series].value(test) {
            Some(value) if value.log2().abs() > self.reach => {
                format!("{about}, beyond the axis at {}", ratio(self.reach.exp2()))
            }
            _ => about,
        }
    }
}
