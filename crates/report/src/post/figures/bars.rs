//! Relative throughput of a group as grouped bars, tests from left to right.

use maud::{Markup, html};

use super::keys::{GRID, INK, Key, PAPER, QUIET, fill, hover};
use super::names::Columns;
use super::sheet::{Anchor, EDGE, Label, SMALL, Sheet, WIDTH, base_line, beside, line};
use super::{GroupChart, highest, ratio, rows};
use crate::html::figures::axis::round_ticks;
use crate::html::figures::{corners, px};
use crate::html::numbers::compact;

/// Where the axis of the values ends. It begins at 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axis {
    /// Above the highest value.
    Full,
    /// At this value, or at 1.0 if it is lower: what is higher is drawn as cut, with its value.
    CutAt(f64),
}

/// The most bars that stand side by side; more lie below each other.
const MOST_BARS: usize = 60;
/// Bars that are closer together leave no room for the values of those that are cut.
const NARROWEST: f64 = 7.0;
const WIDEST: f64 = 40.0;
const HEIGHT: f64 = 230.0;

/// The axis for a second figure of the same chart, if one bar hides the rest: if the highest value
/// is more than twice the highest of the other tests, it is cut just above theirs.
pub fn twin(chart: &GroupChart) -> Option<Axis> {
    let highest_of = |at: usize| {
        let values = chart.series.iter().filter_map(|series| series.value(at));
        values.fold(0.0, f64::max)
    };
    let mut tests: Vec<f64> = (0..chart.tests.len()).map(highest_of).collect();
    tests.sort_by(|a, b| b.total_cmp(a));
    let (first, second) = (*tests.first()?, *tests.get(1)?);
    (second > 0.0 && first > 2.0 * second).then(|| Axis::CutAt(second.max(1.0) * 1.08))
}

/// Bars for each test, one per series, from 0, with a line at 1.0. Above 60 bars, or where names or
/// bars leave no room, tests are rows and the bars lie.
pub fn bars(chart: &GroupChart, axis: Axis) -> String {
    let scale = Scale::new(chart, axis);
    let left = beside(
        &scale
            .ticks
            .iter()
            .map(|tick| compact(*tick))
            .collect::<Vec<_>>(),
    );
    let columns = Columns::new(&chart.tests, left, WIDTH - EDGE);
    let standing = columns
        .filter(|_| chart.bar_count() <= MOST_BARS)
        .map(|columns| Standing::new(chart, &scale, columns))
        .filter(|standing| standing.pitch >= NARROWEST);
    let mut sheet = Sheet::new(&chart.title, WIDTH);
    sheet.meaning(&chart.meaning());
    sheet.keys(&keys(chart));
    if chart.tests.is_empty() {
        sheet.meaning("There is no test to show.");
    } else if let Some(standing) = standing {
        let height = standing.headroom + HEIGHT + standing.columns.height;
        sheet.place(height, |top| standing.draw(top + standing.headroom));
    } else {
        rows::place(&mut sheet, chart, &scale);
    }
    let mut notes = vec![chart.caption.clone()];
    notes.extend(scale.notes(chart));
    sheet.caption(&notes);
    sheet.finish(&chart.alt, chart.series.len())
}

fn keys(chart: &GroupChart) -> Vec<(Key, String)> {
    let series = chart.series.iter().enumerate();
    series
        .map(|(at, series)| (Key::Bar(at), series.name.clone()))
        .collect()
}

/// The axis of values.
pub(super) struct Scale {
    /// The value at its end.
    pub(super) top: f64,
    /// From 0, not beyond the end.
    pub(super) ticks: Vec<f64>,
    is_cut: bool,
}

impl Scale {
    fn new(chart: &GroupChart, axis: Axis) -> Self {
        let most = highest(chart.values(), 1.0);
        match axis {
            Axis::CutAt(at) if at.is_finite() && at < most => {
                let top = at.max(1.0);
                let ticks = round_ticks(top);
                let ticks = ticks.into_iter().filter(|tick| *tick <= top).collect();
                Self {
                    top,
                    ticks,
                    is_cut: true,
                }
            }
            _ => {
                let ticks = round_ticks(most);
                let top = ticks.last().copied().unwrap_or(most);
                Self {
                    top,
                    ticks,
                    is_cut: false,
                }
            }
        }
    }

    pub(super) fn cuts(&self, value: f64) -> bool {
        self.is_cut && value > self.top
    }

    /// The share of the axis that a value takes.
    pub(super) fn share(&self, value: f64) -> f64 {
        (value / self.top).clamp(0.0, 1.0)
    }

    /// What the caption adds about marks that this figure has.
    fn notes(&self, chart: &GroupChart) -> Vec<String> {
        let mut notes = Vec::new();
        if chart.values().any(|value| self.cuts(value)) {
            notes.push(format!(
                "The axis ends at {}; higher bars are cut and have their value beside the cut.",
                ratio(self.top)
            ));
        }
        let count = chart.values().count();
        if count < chart.bar_count() {
            notes.push("A cross is where there is no value.".to_owned());
        }
        notes
    }
}

/// A bar and where it stands.
struct Bar {
    series: usize,
    test: usize,
    x: f64,
    value: Option<f64>,
}

struct Standing<'a> {
    chart: &'a GroupChart,
    scale: &'a Scale,
    columns: Columns,
    /// From bar to bar of a test.
    pitch: f64,
    /// Above the plot, for values.
    headroom: f64,
}

impl<'a> Standing<'a> {
    fn new(chart: &'a GroupChart, scale: &'a Scale, columns: Columns) -> Self {
        let slots = chart.series.len() as f64 + 0.8;
        let pitch = (columns.pitch / slots).min(WIDEST);
        let mut standing = Self {
            chart,
            scale,
            columns,
            pitch,
            headroom: 0.0,
        };
        let is_cut = chart.values().any(|value| scale.cuts(value));
        standing.headroom = match (is_cut, standing.has_level_values()) {
            (true, false) => 40.0,
            _ => SMALL + 5.0,
        };
        standing
    }

    /// Whether values fit above their bars without turning.
    fn has_level_values(&self) -> bool {
        let values = self.chart.values().map(ratio);
        let most = self.pitch - 2.0;
        values
            .into_iter()
            .all(|text| super::sheet::fits(&text, SMALL, most))
    }

    fn bars(&self) -> Vec<Bar> {
        let count = self.chart.series.len();
        let tests = 0..self.chart.tests.len();
        let bars = tests.flat_map(|test| {
            let from = self.columns.middle(test) - self.pitch * count as f64 / 2.0;
            (0..count).map(move |series| (series, test, from + self.pitch * series as f64))
        });
        bars.map(|(series, test, x)| Bar {
            series,
            test,
            x,
            value: self.chart.series[series].value(test),
        })
        .collect()
    }

    /// With the end of the axis at `top`.
    fn draw(&self, top: f64) -> Markup {
        let bottom = top + HEIGHT;
        let (left, right) = (self.columns.left(), WIDTH - EDGE);
        let y = |value: f64| bottom - self.scale.share(value) * HEIGHT;
        html! {
            @for tick in &self.scale.ticks {
                @let at = y(*tick);
                (line((left, at), (right, at), GRID))
                (Label::at(&compact(*tick), left - 5.0, at + 4.0).anchored(Anchor::End).draw())
            }
            @for bar in self.bars() { (self.bar(&bar, bottom)) }
            (base_line((left, y(1.0)), (right, y(1.0))))
            @for bar in self.bars() { (self.beside(&bar, bottom)) }
            (line((left, bottom), (right, bottom), INK))
            (self.columns.draw(bottom))
        }
    }

    fn bar(&self, bar: &Bar, bottom: f64) -> Markup {
        let wide = self.pitch * 0.88;
        let value = bar.value.unwrap_or(0.0);
        let high = (self.scale.share(value) * HEIGHT).max(0.5);
        let is_cut = self.scale.cuts(value);
        html! {
            @if bar.value.is_some() {
                rect data-kind=(if is_cut { "cut bar" } else { "bar" }) x=(px(bar.x))
                    y=(px(bottom - high)) width=(px(wide)) height=(px(high))
                    fill=(fill(bar.series)) { (hover(&self.chart.about(bar.series, bar.test))) }
                @if is_cut { (cut((bar.x, bottom - high + 12.0), (wide, -4.0))) }
            } @else {
                (cross(bar.x + wide / 2.0, bottom - 6.0))
            }
        }
    }

    /// The interval of a bar, and its value where there is room or the bar is cut.
    fn beside(&self, bar: &Bar, bottom: f64) -> Markup {
        let Some(value) = bar.value else {
            return html! {};
        };
        let middle = bar.x + self.pitch * 0.44;
        let y = |value: f64| bottom - self.scale.share(value) * HEIGHT;
        let is_cut = self.scale.cuts(value);
        let is_level = self.has_level_values();
        let interval = self.chart.series[bar.series].interval(bar.test);
        let interval = interval.filter(|_| !is_cut);
        let end = interval.map_or(value, |(_, high)| high.max(value));
        let text = ratio(value);
        let label = if is_level {
            Label::at(&text, middle, y(end) - 3.0).anchored(Anchor::Middle)
        } else {
            Label::at(&text, middle + SMALL * 0.37, y(end) - 4.0).turned(-90.0)
        };
        html! {
            @if let Some((low, high)) = interval {
                (whisker((middle, y(low)), (middle, y(high))))
            }
            @if is_level || is_cut { (label.sized(SMALL).draw()) }
        }
    }
}

/// A line from end to end of an interval.
pub(super) fn whisker(from: (f64, f64), to: (f64, f64)) -> Markup {
    html! {
        g data-kind="interval" {
            g stroke-width="3" { (line(from, to, PAPER)) }
            g stroke-width="1.2" { (line(from, to, INK)) }
        }
    }
}

/// A white zigzag across a bar from a point on its edge: it goes on beyond the axis. `slant` is how
/// far the other edge is.
pub(super) fn cut((x, y): (f64, f64), slant: (f64, f64)) -> Markup {
    let (dx, dy) = slant;
    // Across the bar, and along it.
    let (along_x, along_y) = if dx.abs() > dy.abs() {
        (0.0, 5.0)
    } else {
        (-5.0, 0.0)
    };
    let strip = [
        (x, y),
        (x + dx, y + dy),
        (x + dx + along_x, y + dy + along_y),
        (x + along_x, y + along_y),
    ];
    html! { polygon data-kind="cut" points=(corners(strip.into_iter())) fill=(PAPER) {} }
}

/// Where a value is missing.
pub(super) fn cross(x: f64, y: f64) -> Markup {
    html! {
        g data-kind="missing" stroke-width="1.2" {
            (line((x - 2.5, y - 2.5), (x + 2.5, y + 2.5), QUIET))
            (line((x - 2.5, y + 2.5), (x + 2.5, y - 2.5), QUIET))
        }
    }
}
