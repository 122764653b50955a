//! Values over a number such as clients: a line per series.

use maud::{Markup, html};

use super::keys::{GRID, INK, Key, colour, dash, mark};
use super::sheet::{Anchor, EDGE, Label, Sheet, TEXT, WIDTH, beside, line};
use super::text::width;
use super::{Series, highest};
use crate::html::figures::axis::round_ticks;
use crate::html::figures::versions::runs;
use crate::html::figures::{corners, px};
use crate::html::numbers::{compact, decimal};

/// Values over a number.
#[derive(Clone, Debug, Default)]
pub struct LineChart {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure.
    pub caption: String,
    /// Its `<desc>`.
    pub alt: String,
    /// What `x` is, such as `clients`.
    pub x_label: String,
    /// What the values are, with their unit.
    pub y_label: String,
    /// Whether equal factors of `x` are equally far apart. What is not above 0 is left out then.
    pub log2_x: bool,
    /// Rising; one per value of a series.
    pub x: Vec<f64>,
    /// Their intervals are drawn as bands.
    pub series: Vec<Series>,
}

const HEIGHT: f64 = 250.0;
/// More points than these have no marks.
const MOST_MARKS: usize = 48;

/// A line per series, from 0, with a ring around its highest value; the keys say how high and
/// where.
pub fn lines(chart: &LineChart) -> String {
    let plot = Plot::new(chart);
    let mut sheet = Sheet::new(&chart.title, WIDTH);
    sheet.keys(&plot.keys());
    sheet.meaning(&chart.y_label);
    if plot.places.iter().all(Option::is_none) {
        sheet.meaning("There is no point to show.");
    } else {
        sheet.place(HEIGHT + 42.0, |top| plot.draw(top + 8.0));
    }
    let notes = [
        chart.caption.clone(),
        "A ring is around the highest value of each line.".to_owned(),
    ];
    sheet.caption(&notes);
    sheet.finish(&chart.alt, 0)
}

struct Plot<'a> {
    chart: &'a LineChart,
    ticks: Vec<f64>,
    left: f64,
    right: f64,
    /// Where each point is across the plot.
    places: Vec<Option<f64>>,
}

impl<'a> Plot<'a> {
    fn new(chart: &'a LineChart) -> Self {
        let of = |at: usize| {
            chart
                .series
                .iter()
                .filter_map(move |series| series.value(at))
        };
        let values = || (0..chart.x.len()).flat_map(of);
        let most = highest(values(), 0.0);
        let ends = |at: usize| {
            let all = chart.series.iter().filter_map(move |of| of.interval(at));
            all.map(|(_, high)| high)
        };
        // A wild interval does not press the lines down.
        let most = highest((0..chart.x.len()).flat_map(ends), most).min(most * 1.25);
        let ticks = round_ticks(most);
        let left = beside(&ticks.iter().map(|tick| compact(*tick)).collect::<Vec<_>>());
        let right = WIDTH - EDGE - 14.0;
        let scaled = |x: f64| if chart.log2_x { x.log2() } else { x };
        let scaled: Vec<f64> = chart.x.iter().map(|x| scaled(*x)).collect();
        let known = || scaled.iter().copied().filter(|x| x.is_finite());
        let low = known().fold(f64::INFINITY, f64::min);
        let span = known().fold(f64::NEG_INFINITY, f64::max) - low;
        let place = |x: f64| match span > 0.0 {
            true => left + 8.0 + (x - low) / span * (right - left - 8.0),
            false => (left + right) / 2.0,
        };
        let places = scaled.iter().map(|x| x.is_finite().then(|| place(*x)));
        Self {
            chart,
            left,
            right,
            places: places.collect(),
            ticks,
        }
    }

    /// The points of a series that can be drawn: which one, and its value.
    fn values(&self, series: usize) -> Vec<Option<f64>> {
        let places = self.places.iter().enumerate();
        places
            .map(|(at, place)| {
                self.chart.series[series]
                    .value(at)
                    .filter(|_| place.is_some())
            })
            .collect()
    }

    /// The first of a series' highest points.
    fn peak(&self, series: usize) -> Option<(usize, f64)> {
        let values = self.values(series).into_iter().enumerate();
        let values = values.filter_map(|(at, value)| Some((at, value?)));
        values.fold(None, |best: Option<(usize, f64)>, (at, value)| match best {
            Some((_, highest)) if highest >= value => best,
            _ => Some((at, value)),
        })
    }

    fn keys(&self) -> Vec<(Key, String)> {
        let key = |at: usize, name: &str| {
            let about = self.peak(at).map_or("no value".to_owned(), |(x, value)| {
                let decimals = if value < 100.0 { 2 } else { 0 };
                let value = decimal(value, decimals);
                format!("highest {value} at {}", compact(self.chart.x[x]))
            });
            (Key::Line(at), format!("{name}: {about}"))
        };
        let series = self.chart.series.iter().enumerate();
        series.map(|(at, series)| key(at, &series.name)).collect()
    }

    fn draw(&self, top: f64) -> Markup {
        let bottom = top + HEIGHT;
        let end = self.ticks.last().copied().unwrap_or(1.0);
        let y = move |value: f64| bottom - (value / end).min(1.0) * HEIGHT;
        let middle = (self.left + self.right) / 2.0;
        let scale = if self.chart.log2_x {
            " (logarithmic)"
        } else {
            ""
        };
        let x_label = format!("{}{scale}", self.chart.x_label);
        html! {
            @for tick in &self.ticks {
                (line((self.left, y(*tick)), (self.right + 8.0, y(*tick)), GRID))
                (Label::at(&compact(*tick), self.left - 5.0, y(*tick) + 4.0)
                    .anchored(Anchor::End).draw())
            }
            @for (at, text) in self.x_ticks() {
                (line((at, bottom), (at, bottom + 4.0), INK))
                (Label::at(&text, at, bottom + 15.0).anchored(Anchor::Middle).draw())
            }
            (Label::at(&x_label, middle, bottom + 30.0).anchored(Anchor::Middle).quiet().draw())
            @for series in 0..self.chart.series.len() { (self.band(series, &y)) }
            @for series in 0..self.chart.series.len() { (self.series(series, &y)) }
            (line((self.left, bottom), (self.right + 8.0, bottom), INK))
        }
    }

    /// Those of the points whose texts do not meet.
    fn x_ticks(&self) -> Vec<(f64, String)> {
        let mut shown: Vec<(f64, f64, String)> = Vec::new();
        for (place, x) in self.places.iter().zip(&self.chart.x) {
            let Some(place) = place else { continue };
            let text = compact(*x);
            let half = width(&text, TEXT) / 2.0 + 3.0;
            let is_apart = |(at, other, _): &(f64, f64, String)| (place - at).abs() >= half + other;
            if shown.iter().all(is_apart) {
                shown.push((*place, half, text));
            }
        }
        shown.into_iter().map(|(at, _, text)| (at, text)).collect()
    }

    /// The intervals of neighbouring points as one surface.
    fn band(&self, series: usize, y: &impl Fn(f64) -> f64) -> Markup {
        let of = &self.chart.series[series];
        let intervals: Vec<Option<(f64, f64)>> =
            (0..self.places.len()).map(|at| of.interval(at)).collect();
        let lows: Vec<Option<f64>> = intervals.iter().map(|of| Some(of.as_ref()?.0)).collect();
        let place = |at: usize| self.places[at].unwrap_or(self.left);
        let outline = |run: &[(usize, f64)]| {
            let there = run.iter().map(|(at, low)| (place(*at), y(*low)));
            let back = run.iter().rev().filter_map(|(at, _)| {
                let (_, high) = intervals[*at]?;
                Some((place(*at), y(high)))
            });
            corners(there.chain(back))
        };
        html! {
            @for run in runs(&lows) {
                polygon data-kind="band" points=(outline(&run)) fill=(colour(series))
                    opacity="0.18" {}
            }
        }
    }

    fn series(&self, series: usize, y: &impl Fn(f64) -> f64) -> Markup {
        let values = self.values(series);
        let name = &self.chart.series[series].name;
        let place = |at: usize| self.places[at].unwrap_or(self.left);
        let has_marks = self.places.len() <= MOST_MARKS;
        let dashes = Some(dash(series)).filter(|dash| !dash.is_empty());
        html! {
            @for run in runs(&values) {
                @let points = run.iter().map(|(at, value)| (place(*at), y(*value)));
                polyline data-kind="line" points=(corners(points)) fill="none"
                    stroke=(colour(series)) stroke-width="2" stroke-dasharray=[dashes] {}
            }
            @for (at, value) in values.iter().enumerate().filter(|_| has_marks) {
                @if let Some(value) = value {
                    @let about = format!("{name}, {}: {}", compact(self.chart.x[at]), compact(*value));
                    (mark(series, (place(at), y(*value)), false, &about))
                }
            }
            @if let Some((at, value)) = self.peak(series) {
                circle data-kind="peak" cx=(px(place(at))) cy=(px(y(value))) r="8" fill="none"
                    stroke=(INK) stroke-width="1.3" {}
            }
        }
    }
}
