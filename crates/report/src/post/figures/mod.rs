//! The figures of a post: each is an SVG that needs nothing beside it, and [`png`] makes the picture
//! of it that blogs want.
//!
//! All figures are 600 px wide, or wider if what they show does not fit. Their texts are measured in
//! DejaVu Sans before anything is placed, so that none lies on another and every name is whole. No
//! browser has a common font that is wider, so this holds where DejaVu Sans is absent, too. Series
//! differ by order and by pattern or mark as well as by colour. The same input gives the same bytes.

mod bars;
mod dots;
mod flames;
mod keys;
mod lines;
mod names;
mod panels;
mod png;
mod releases;
mod rows;
mod seconds;
mod sheet;
mod text;

pub use bars::{Axis, bars, twin};
pub use dots::dots;
pub use flames::{FlameChart, flames};
pub use lines::{LineChart, lines};
pub use panels::{PerOperation, panels};
pub use png::{FigureError, png};
pub use releases::{OverReleases, releases};
pub use seconds::{PerSecond, Seconds, seconds};

/// A group of tests, each with a ratio per series.
#[derive(Clone, Debug, Default)]
pub struct GroupChart {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure: what, base, unit, runs.
    pub caption: String,
    /// What the figure says, for those who cannot see it: its `<desc>`.
    pub alt: String,
    /// What 1.0 stands for.
    pub base: String,
    /// What the ratios are ratios of, such as `throughput`.
    pub unit: String,
    /// In the order in which they are shown.
    pub tests: Vec<String>,
    /// From the oldest to the newest, without the base.
    pub series: Vec<Series>,
}

/// What one release has in each test of a chart, or at each point of an axis.
#[derive(Clone, Debug, Default)]
pub struct Series {
    /// For the keys above the figure.
    pub name: String,
    /// One per test or point: a ratio to the base, or a value in the chart's unit. What is absent,
    /// negative, not finite or beyond 10^12 is marked as missing.
    pub values: Vec<Option<f64>>,
    /// Lowest and highest likely value, one per test or point. It may be empty.
    pub intervals: Vec<Option<(f64, f64)>>,
}

impl Series {
    /// The value there, if it can be drawn.
    fn value(&self, at: usize) -> Option<f64> {
        let value = self.values.get(at).copied().flatten()?;
        (0.0..=LARGEST).contains(&value).then_some(value)
    }

    /// The interval there, if both of its ends can be drawn.
    fn interval(&self, at: usize) -> Option<(f64, f64)> {
        let (low, high) = self.intervals.get(at).copied().flatten()?;
        let is_drawable = 0.0 <= low && low <= high && high <= LARGEST;
        is_drawable.then_some((low, high))
    }
}

impl GroupChart {
    /// `tests` times `series`.
    fn bar_count(&self) -> usize {
        self.tests.len() * self.series.len()
    }

    /// Every value that can be drawn.
    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let tests = 0..self.tests.len();
        tests.flat_map(move |at| self.series.iter().filter_map(move |of| of.value(at)))
    }

    /// What a mark says when the pointer is on it.
    fn about(&self, series: usize, test: usize) -> String {
        let of = &self.series[series];
        let value = of.value(test).map_or("no value".to_owned(), ratio);
        let interval = of.interval(test).map_or(String::new(), |(low, high)| {
            format!(" ({} to {})", ratio(low), ratio(high))
        });
        format!("{}, {}: {value}{interval}", self.tests[test], of.name)
    }

    /// What 1.0 means, in a line above the plot.
    fn meaning(&self) -> String {
        match (self.unit.as_str(), self.base.as_str()) {
            ("", "") => String::new(),
            (unit, "") => format!("Relative {unit}"),
            ("", base) => format!("Relative to {base}, which is 1.0"),
            (unit, base) => format!("Relative {unit}: 1.0 is {base}"),
        }
    }
}

/// A ratio as tables have it: two decimals, more where it would show as zero.
fn ratio(value: f64) -> String {
    crate::html::numbers::decimal(value, 2)
}

/// Nothing that is measured is larger, and texts of larger numbers have no end.
const LARGEST: f64 = 1e12;

/// The highest finite one, at least `least`.
fn highest(values: impl Iterator<Item = f64>, least: f64) -> f64 {
    values
        .filter(|value| value.is_finite())
        .fold(least, f64::max)
}
