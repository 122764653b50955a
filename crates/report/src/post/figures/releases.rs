//! Tests of a group over many releases: a thin line each, their median bold.

use maud::{Markup, html};

use super::keys::{GRID, INK, Key, QUIET, colour, dash, mark};
use super::names::Columns;
use super::sheet::{Anchor, EDGE, Label, Sheet, WIDTH, base_line, beside, line};
use super::{LARGEST, Series};
use crate::html::figures::axis::ratio_ticks;
use crate::html::figures::corners;
use crate::html::figures::versions::{runs, ticks};
use crate::html::numbers::compact;

/// Ratios to the base over releases.
#[derive(Clone, Debug, Default)]
pub struct OverReleases {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure.
    pub caption: String,
    /// Its `<desc>`.
    pub alt: String,
    /// From the oldest to the newest.
    pub releases: Vec<String>,
    /// A series per test, with one ratio per release.
    pub tests: Vec<Series>,
    /// The median of the tests in each release; it may be empty.
    pub median: Vec<Option<f64>>,
    /// The release in which a change arrived and remained: marked between it and the one before.
    pub arrived_in: Option<usize>,
}

const HEIGHT: f64 = 260.0;
/// Ratios that are so far apart, largest / smallest, have a logarithmic axis: one test does not make
/// all others a line.
const WIDE: f64 = 4.0;
/// Above and below the lines of a logarithmic axis.
const MARGIN: f64 = 1.05;
const LOGARITHMIC: &str = "The axis is logarithmic.";
/// Between the labels of an axis.
const LEAST_PITCH: f64 = 15.0;

/// How far below the top of the plot a value is, of its height.
fn share(low: f64, high: f64, is_log: bool, value: f64) -> f64 {
    match is_log {
        true if value <= low => 1.0,
        true => (high / value).ln() / (high / low).ln(),
        false => (high - value) / (high - low),
    }
}

/// Ticks of a logarithmic axis whose labels do not meet.
fn apart(low: f64, high: f64) -> Vec<f64> {
    let reach = low.log2().abs().max(high.log2().abs());
    let mut shown: Vec<f64> = Vec::new();
    let inside = ratio_ticks(reach)
        .into_iter()
        .filter(|tick| (low..=high).contains(tick));
    for tick in inside {
        let y = |value: f64| share(low, high, true, value) * HEIGHT;
        let is_free = |of: &f64| (y(*of) - y(tick)).abs() >= LEAST_PITCH;
        if shown.iter().all(is_free) {
            shown.push(tick);
        }
    }
    shown
}

/// A thin line per test, a bold one for the median, and an upright one where a change arrived. The
/// axis begins anywhere, because there are no bars.
pub fn releases(chart: &OverReleases) -> String {
    let plot = Plot::new(chart);
    let mut sheet = Sheet::new(&chart.title, plot.right + EDGE);
    sheet.keys(&keys(chart));
    if chart.releases.is_empty() {
        sheet.meaning("There is no release to show.");
    } else {
        sheet.place(HEIGHT + plot.columns.height + 20.0, |top| {
            plot.draw(top + 18.0)
        });
    }
    let axis = if plot.is_log { LOGARITHMIC } else { "" };
    sheet.caption(&[chart.caption.clone(), axis.to_owned(), plot.numbers.clone()]);
    sheet.finish(&chart.alt, 0)
}

fn keys(chart: &OverReleases) -> Vec<(Key, String)> {
    let tests = chart.tests.iter().enumerate();
    let tests = tests.map(|(at, test)| (Key::Line(at), test.name.clone()));
    let median = (!chart.median.is_empty()).then(|| (Key::Median, "median".to_owned()));
    median.into_iter().chain(tests).collect()
}

struct Plot<'a> {
    chart: &'a OverReleases,
    columns: Columns,
    numbers: String,
    right: f64,
    ticks: Vec<f64>,
    low: f64,
    high: f64,
    is_log: bool,
}

impl<'a> Plot<'a> {
    fn new(chart: &'a OverReleases) -> Self {
        let count = chart.releases.len();
        let tests = (0..count)
            .flat_map(|at| chart.tests.iter().filter_map(move |of| of.value(at)))
            .chain(chart.median.iter().flatten().copied())
            .filter(|value| (0.0..=LARGEST).contains(value));
        let (low, high) = tests.fold((0.97, 1.03), |(low, high): (f64, f64), value| {
            (low.min(value), high.max(value))
        });
        let is_log = low > 0.0 && high / low >= WIDE;
        let (low, high) = match is_log {
            true => (low / MARGIN, high * MARGIN),
            false => {
                let margin = (high - low) * 0.05;
                ((low - margin).max(0.0), high + margin)
            }
        };
        let ticks = match is_log {
            true => apart(low, high),
            false => ticks(low, high),
        };
        let left = beside(&ticks.iter().map(|tick| compact(*tick)).collect::<Vec<_>>());
        let right = Columns::right_for(count, left, WIDTH - EDGE);
        let (columns, numbers) = Columns::or_numbers(&chart.releases, left, right);
        Self {
            chart,
            columns,
            numbers,
            right,
            ticks,
            low,
            high,
            is_log,
        }
    }

    fn draw(&self, top: f64) -> Markup {
        let bottom = top + HEIGHT;
        let y = |value: f64| top + share(self.low, self.high, self.is_log, value) * HEIGHT;
        let left = self.columns.left();
        html! {
            @for tick in &self.ticks {
                (line((left, y(*tick)), (self.right, y(*tick)), GRID))
                (Label::at(&compact(*tick), left - 5.0, y(*tick) + 4.0).anchored(Anchor::End).draw())
            }
            (base_line((left, y(1.0)), (self.right, y(1.0))))
            @for test in 0..self.chart.tests.len() { (self.test(test, &y)) }
            @for run in runs(&self.chart.median) {
                polyline data-kind="median" points=(self.points(&run, &y)) fill="none" stroke=(INK)
                    stroke-width="3.5" {}
            }
            @if let Some(at) = self.chart.arrived_in.filter(|at| *at < self.chart.releases.len()) {
                (self.arrival(at, top, bottom))
            }
            (line((left, bottom), (self.right, bottom), INK))
            (self.columns.draw(bottom))
        }
    }

    fn points(&self, run: &[(usize, f64)], y: &impl Fn(f64) -> f64) -> String {
        let points = run
            .iter()
            .map(|(at, value)| (self.columns.middle(*at), y(*value)));
        corners(points)
    }

    fn test(&self, test: usize, y: &impl Fn(f64) -> f64) -> Markup {
        let of = &self.chart.tests[test];
        let releases = &self.chart.releases;
        let values: Vec<Option<f64>> = (0..releases.len()).map(|at| of.value(at)).collect();
        let dashes = Some(dash(test)).filter(|dash| !dash.is_empty());
        html! {
            @for run in runs(&values) {
                polyline data-kind="line" points=(self.points(&run, y)) fill="none"
                    stroke=(colour(test)) stroke-width="1.2" stroke-dasharray=[dashes] {}
            }
            @for (at, value) in values.iter().enumerate() {
                @if let Some(value) = value {
                    @let about = format!("{}, {}: {}", of.name, releases[at], super::ratio(*value));
                    (mark(test, (self.columns.middle(at), y(*value)), false, &about))
                }
            }
        }
    }

    /// The mark between two releases, named above the plot.
    fn arrival(&self, at: usize, top: f64, bottom: f64) -> Markup {
        let x = self.columns.middle(at) - self.columns.pitch / 2.0;
        let anchor = match x > self.right / 2.0 {
            true => Anchor::End,
            false => Anchor::Start,
        };
        html! {
            g data-kind="arrived" stroke-width="1.5" stroke-dasharray="3 3" {
                (line((x, top), (x, bottom), QUIET))
            }
            (Label::at("a change arrives here", x, top - 5.0).anchored(anchor).quiet().draw())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// update-index of MySQL 5.7 is at 5.9, all others at 0.8 to 1.7.
    #[test]
    fn one_test_far_from_the_others_does_not_hide_them() {
        let (low, high) = (0.8, 6.0);
        let ticks = apart(low, high);
        assert!(ticks.contains(&1.0) && ticks.len() >= 4, "{ticks:?}");
        let between = share(low, high, true, 0.9) - share(low, high, true, 1.2);
        assert!(between * HEIGHT > 30.0, "{between}");
        assert_eq!(share(low, high, true, 0.0), 1.0);
        let chart = |most: f64| OverReleases {
            releases: vec!["1".to_owned(), "2".to_owned()],
            tests: vec![Series {
                name: "a".to_owned(),
                values: vec![Some(1.0), Some(most)],
                ..Series::default()
            }],
            ..OverReleases::default()
        };
        assert!(releases(&chart(5.9)).contains(LOGARITHMIC));
        assert!(!releases(&chart(1.5)).contains(LOGARITHMIC));
    }
}
