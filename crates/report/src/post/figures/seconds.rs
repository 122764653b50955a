//! Throughput and longest response over the seconds of a step, a row per build, stalls shaded.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::highest;
use super::keys::{GRID, INK, Key, STALL, colour};
use super::sheet::{Anchor, EDGE, Label, Sheet, TEXT, WIDTH, beside, line};
use super::text::{clean, wrap};
use crate::html::figures::axis::round_ticks;
use crate::html::figures::px;
use crate::html::numbers::compact;

/// A step over time.
#[derive(Clone, Debug, Default)]
pub struct PerSecond {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure.
    pub caption: String,
    /// Its `<desc>`.
    pub alt: String,
    /// What the rates are, such as `inserts/s`.
    pub rate_unit: String,
    /// What the responses are, such as `longest insert, ms`.
    pub response_unit: String,
    /// How long each point lasts.
    pub seconds_per_point: f64,
    /// A row each, all on the same scales.
    pub builds: Vec<Seconds>,
}

/// A build's seconds.
#[derive(Clone, Debug, Default)]
pub struct Seconds {
    /// Above its row.
    pub name: String,
    /// A rate per point.
    pub rates: Vec<Option<f64>>,
    /// The longest response per point; empty if it is not known.
    pub responses: Vec<Option<f64>>,
    /// From which second to which writers were held back.
    pub stalls: Vec<(f64, f64)>,
}

const RATES: f64 = 76.0;
const RESPONSES: f64 = 46.0;
const GAP: f64 = 12.0;

/// A row per build: its rates, and below them its longest responses, over the same seconds. From
/// lowest to highest of the points that share a pixel there is a line, so that no dip is lost.
pub fn seconds(chart: &PerSecond) -> String {
    let plot = Plot::new(chart);
    let mut sheet = Sheet::new(&chart.title, WIDTH);
    if chart.builds.iter().any(|build| !build.stalls.is_empty()) {
        sheet.keys(&[(Key::Stall, "stalled".to_owned())]);
    }
    if plot.end <= 0.0 {
        sheet.meaning("There is no second to show.");
    }
    for at in (0..chart.builds.len()).filter(|_| plot.end > 0.0) {
        sheet.place(plot.height(at), |top| plot.draw(at, top));
    }
    sheet.caption(std::slice::from_ref(&chart.caption));
    sheet.finish(&chart.alt, 0)
}

struct Plot<'a> {
    chart: &'a PerSecond,
    rates: Vec<f64>,
    responses: Vec<f64>,
    left: f64,
    right: f64,
    /// The last second.
    end: f64,
}

impl<'a> Plot<'a> {
    fn new(chart: &'a PerSecond) -> Self {
        let rates = chart.builds.iter().flat_map(|build| &build.rates).flatten();
        let rates = few(highest(rates.copied(), 0.0));
        let responses = chart.builds.iter().flat_map(|build| &build.responses);
        let responses = few(highest(responses.flatten().copied(), 0.0));
        let texts = rates.iter().chain(&responses).map(|tick| compact(*tick));
        let points = chart.builds.iter().map(|build| build.rates.len());
        let step = Some(chart.seconds_per_point).filter(|step| step.is_finite() && *step > 0.0);
        Self {
            left: beside(&texts.collect::<Vec<_>>()),
            right: WIDTH - EDGE - 14.0,
            end: points.max().unwrap_or(0) as f64 * step.unwrap_or(1.0),
            chart,
            rates,
            responses,
        }
    }

    fn x(&self, second: f64) -> f64 {
        self.left + (second / self.end).clamp(0.0, 1.0) * (self.right - self.left)
    }

    /// The lines above a build's row: its name, and what the rates are.
    fn names(&self, build: usize) -> Vec<String> {
        let of = &self.chart.builds[build];
        let text = clean(&format!("{}: {}", of.name, self.chart.rate_unit));
        wrap(&text, TEXT, WIDTH - 2.0 * EDGE)
    }

    fn has_responses(&self, build: usize) -> bool {
        !self.chart.builds[build].responses.is_empty()
    }

    fn response_names(&self) -> Vec<String> {
        wrap(&clean(&self.chart.response_unit), TEXT, WIDTH - 2.0 * EDGE)
    }

    fn height(&self, build: usize) -> f64 {
        let head = TEXT * 1.3 * self.names(build).len() as f64 + 8.0;
        let below = TEXT * 1.3 * self.response_names().len() as f64 + 14.0 + RESPONSES;
        let below = if self.has_responses(build) {
            below
        } else {
            0.0
        };
        head + RATES + below + TEXT + 6.0 + GAP
    }

    fn draw(&self, build: usize, top: f64) -> Markup {
        let of = &self.chart.builds[build];
        let names = self.names(build);
        let rates = top + TEXT * 1.3 * names.len() as f64 + 8.0;
        let units = self.response_names();
        let below = rates + RATES;
        let responses = below + TEXT * 1.3 * units.len() as f64 + 14.0;
        let has_responses = self.has_responses(build);
        let bottom = if has_responses {
            responses + RESPONSES
        } else {
            below
        };
        html! {
            (self.texts(&names, top))
            (self.panel(&of.rates, &self.rates, (rates, RATES), &of.stalls))
            @if has_responses {
                (self.texts(&units, below + 7.0))
                (self.panel(&of.responses, &self.responses, (responses, RESPONSES), &of.stalls))
            }
            @for (second, anchor) in [(0.0, Anchor::Start), (self.end, Anchor::End)] {
                @let text = format!("{} s", compact(second));
                (Label::at(&text, self.x(second), bottom + TEXT + 3.0).anchored(anchor).draw())
            }
        }
    }

    fn texts(&self, lines: &[String], top: f64) -> Markup {
        html! {
            @for (at, text) in lines.iter().enumerate() {
                (Label::at(text, EDGE, top + TEXT * (1.0 + 1.3 * at as f64)).draw())
            }
        }
    }

    /// Values over seconds between `top` and so many pixels below it.
    fn panel(
        &self,
        values: &[Option<f64>],
        ticks: &[f64],
        (top, high): (f64, f64),
        stalls: &[(f64, f64)],
    ) -> Markup {
        let most = ticks.last().copied().unwrap_or(1.0);
        let y = |value: f64| top + (1.0 - (value / most).clamp(0.0, 1.0)) * high;
        let stalls = stalls
            .iter()
            .filter(|(from, to)| from < to && to.is_finite());
        html! {
            @for (from, to) in stalls {
                rect data-kind="stall" x=(px(self.x(*from))) y=(px(top))
                    width=(px((self.x(*to) - self.x(*from)).max(0.6))) height=(px(high))
                    fill=(STALL) {}
            }
            @for tick in ticks {
                (line((self.left, y(*tick)), (self.right, y(*tick)), GRID))
                (Label::at(&compact(*tick), self.left - 5.0, y(*tick) + 4.0)
                    .anchored(Anchor::End).draw())
            }
            path data-kind="seconds" d=(self.path(values, y)) stroke=(colour(0))
                stroke-width="1" fill="none" {}
            (line((self.left, top + high), (self.right, top + high), INK))
        }
    }

    /// A line in each pixel from the lowest to the highest of its points and the one before.
    fn path(&self, values: &[Option<f64>], y: impl Fn(f64) -> f64) -> String {
        let mut path = String::new();
        let mut pixel: Option<(i64, f64, f64)> = None;
        let mut last: Option<f64> = None;
        let mut draw = |pixel: Option<(i64, f64, f64)>| {
            if let Some((x, low, high)) = pixel {
                let (from, to) = (px(y(high)), px(y(low) + 0.6));
                write!(path, "M{x} {from}V{to}").expect("writing to a string cannot fail");
            }
        };
        let step = self.end / values.len().max(1) as f64;
        for (at, value) in values.iter().enumerate() {
            let value = value.filter(|value| value.is_finite() && *value >= 0.0);
            let Some(value) = value else {
                last = None;
                continue;
            };
            // From the last point on, so that the line has no gaps.
            let (low, high) = (
                last.unwrap_or(value).min(value),
                last.unwrap_or(value).max(value),
            );
            let from = self.x(at as f64 * step).round() as i64;
            let to = self.x((at + 1) as f64 * step).round() as i64;
            for x in from..to.max(from + 1) {
                let (low, high) = if x == from {
                    (low, high)
                } else {
                    (value, value)
                };
                pixel = match pixel {
                    Some((known, l, h)) if known == x => Some((x, l.min(low), h.max(high))),
                    other => {
                        draw(other);
                        Some((x, low, high))
                    }
                };
            }
            last = Some(value);
        }
        draw(pixel);
        path
    }
}

/// 0, the middle and the end of a round axis.
fn few(most: f64) -> Vec<f64> {
    let end = round_ticks(most).last().copied().unwrap_or(1.0);
    vec![0.0, end / 2.0, end]
}
