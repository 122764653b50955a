//! What an operation costs over releases: a small panel per cost.

use maud::{Markup, html};

use super::bars::cross;
use super::keys::{GRID, INK, mark};
use super::names::Columns;
use super::sheet::{Anchor, EDGE, Label, SMALL, Sheet, TEXT, WIDTH, base_line, beside, fits, line};
use super::text::wrap;
use super::{Series, highest, ratio};
use crate::html::figures::axis::round_ticks;
use crate::html::figures::versions::runs;
use crate::html::figures::{corners, px};
use crate::html::numbers::compact;

/// Costs per operation of one test over releases, relative to the base.
#[derive(Clone, Debug, Default)]
pub struct PerOperation {
    /// Above the figure, and its `<title>`.
    pub title: String,
    /// Below the figure.
    pub caption: String,
    /// Its `<desc>`.
    pub alt: String,
    /// From the oldest to the newest.
    pub releases: Vec<String>,
    /// A cost such as `cpu/o`, and its ratio to the base in each release.
    pub panels: Vec<(String, Vec<Option<f64>>)>,
}

const HEIGHT: f64 = 110.0;
/// Above a plot, for its name and the highest value.
const HEAD: f64 = 30.0;
const GAP: f64 = 14.0;

/// Small multiples, each from 0 with a line at 1.0. A cost that is zero in all releases has no
/// panel; the caption names it.
pub fn panels(chart: &PerOperation) -> String {
    let (shown, absent) = shown(chart);
    let layout = Layout::new(chart, &shown);
    let mut sheet = Sheet::new(&chart.title, layout.wide);
    for row in shown.chunks(layout.across) {
        let names = row.iter().map(|panel| layout.name_height(panel));
        let names = names.fold(0.0, f64::max);
        sheet.place(layout.height() + names, |top| {
            html! {
                @for (at, panel) in row.iter().enumerate() {
                    g transform={ "translate(" (px(layout.panel_wide * at as f64)) " 0)" } {
                        (layout.draw(panel, top, top + names + HEAD))
                    }
                }
            }
        });
    }
    if shown.is_empty() {
        sheet.meaning("There is no cost to show.");
    }
    let mut notes = vec![chart.caption.clone()];
    notes.extend(absent);
    notes.push(layout.numbers.clone());
    sheet.caption(&notes);
    sheet.finish(&chart.alt, 0)
}

/// A panel's name and its values.
struct Panel<'a> {
    name: &'a str,
    values: Vec<Option<f64>>,
}

/// The panels that have something to show, and sentences about the others.
fn shown(chart: &PerOperation) -> (Vec<Panel<'_>>, Vec<String>) {
    let mut shown = Vec::new();
    let (mut zero, mut unknown) = (Vec::new(), Vec::new());
    for (name, values) in &chart.panels {
        let series = Series {
            values: values.clone(),
            ..Series::default()
        };
        let values: Vec<Option<f64>> = (0..chart.releases.len())
            .map(|at| series.value(at))
            .collect();
        if values.iter().flatten().any(|value| *value > 0.0) {
            shown.push(Panel { name, values });
        } else if values.iter().any(Option::is_some) {
            zero.push(name.as_str());
        } else {
            unknown.push(name.as_str());
        }
    }
    let sentence = |names: &[&str], what: &str| {
        (!names.is_empty()).then(|| format!("Not shown, because {what}: {}.", names.join(", ")))
    };
    let sentences = [
        sentence(&zero, "zero in all releases"),
        sentence(&unknown, "not known"),
    ];
    (shown, sentences.into_iter().flatten().collect())
}

/// How panels are arranged; all are alike.
struct Layout {
    wide: f64,
    /// How many are in a row.
    across: usize,
    panel_wide: f64,
    columns: Columns,
    numbers: String,
}

impl Layout {
    fn new(chart: &PerOperation, shown: &[Panel<'_>]) -> Self {
        let ticks = shown.iter().flat_map(|panel| ticks(panel));
        let left = beside(&ticks.map(compact).collect::<Vec<_>>());
        let half = WIDTH / 2.0;
        let fit = Columns::new(&chart.releases, left, half - EDGE);
        if let Some(columns) = fit.filter(|columns| shown.len() > 1 && columns.is_airy()) {
            return Self {
                wide: WIDTH,
                across: 2,
                panel_wide: half,
                columns,
                numbers: String::new(),
            };
        }
        let right = Columns::right_for(chart.releases.len(), left, WIDTH - EDGE);
        let (columns, numbers) = Columns::or_numbers(&chart.releases, left, right);
        Self {
            wide: right + EDGE,
            across: 1,
            panel_wide: right + EDGE,
            columns,
            numbers,
        }
    }

    fn height(&self) -> f64 {
        HEAD + HEIGHT + self.columns.height + GAP
    }

    fn name_lines(&self, panel: &Panel<'_>) -> Vec<String> {
        let cleaned = super::text::clean(panel.name);
        wrap(&cleaned, TEXT, self.panel_wide - 2.0 * EDGE)
    }

    /// What a name needs beyond its first line.
    fn name_height(&self, panel: &Panel<'_>) -> f64 {
        TEXT * 1.3 * self.name_lines(panel).len().saturating_sub(1) as f64
    }

    /// A panel with its name from `top` and its axis ending at `plot`.
    fn draw(&self, panel: &Panel<'_>, top: f64, plot: f64) -> Markup {
        let ticks = ticks(panel);
        let end = ticks.last().copied().unwrap_or(1.0);
        let bottom = plot + HEIGHT;
        let (left, right) = (self.columns.left(), self.panel_wide - EDGE);
        let y = |value: f64| bottom - value / end * HEIGHT;
        let point = |at: usize, value: f64| (self.columns.middle(at), y(value));
        html! {
            @for (at, text) in self.name_lines(panel).iter().enumerate() {
                (Label::at(text, EDGE, top + TEXT * (1.0 + 1.3 * at as f64)).draw())
            }
            @for tick in &ticks {
                (line((left, y(*tick)), (right, y(*tick)), GRID))
                (Label::at(&compact(*tick), left - 5.0, y(*tick) + 4.0).anchored(Anchor::End).draw())
            }
            (base_line((left, y(1.0)), (right, y(1.0))))
            @for run in runs(&panel.values) {
                @let points = run.iter().map(|(at, value)| point(*at, *value));
                polyline points=(corners(points)) fill="none" stroke=(super::keys::colour(0))
                    stroke-width="2" {}
            }
            @for (at, value) in panel.values.iter().enumerate() {
                (self.value(panel, at, value.map(|value| point(at, value)), bottom))
            }
            (line((left, bottom), (right, bottom), INK))
            (self.columns.draw(bottom))
        }
    }

    /// The mark of a release, and its value where there is room.
    fn value(
        &self,
        panel: &Panel<'_>,
        at: usize,
        point: Option<(f64, f64)>,
        bottom: f64,
    ) -> Markup {
        let (Some(point), Some(value)) = (point, panel.values[at]) else {
            return cross(self.columns.middle(at), bottom - 6.0);
        };
        let text = ratio(value);
        let about = format!("{}, release {}: {text}", panel.name, at + 1);
        html! {
            (mark(0, point, false, &about))
            @if fits(&text, SMALL, self.columns.pitch - 2.0) {
                (Label::at(&text, point.0, point.1 - 8.0).anchored(Anchor::Middle).sized(SMALL).draw())
            }
        }
    }
}

fn ticks(panel: &Panel<'_>) -> Vec<f64> {
    round_ticks(highest(panel.values.iter().flatten().copied(), 1.0))
}
