//! A step's rates as bars, a row per cell.

use maud::{Markup, html};
use plimsoll_analysis::metrics::rocksdb::WRITES_PER_S;
use plimsoll_analysis::metrics::{Direction, INDEX_S, IPS, Metric, MetricSet, QPS};
use plimsoll_analysis::view::{Status, StepView, View};

use super::{WIDTH, px};
use crate::html::numbers::decimal;

/// Throughput bars of a step; in read-write steps also the background rate with its target.
pub(crate) fn bars(view: &View, step: &StepView) -> Markup {
    let mut outcomes = step.outcomes.iter();
    let has_target = outcomes.any(|outcome| outcome.target_per_s.is_some());
    html! {
        @if step.makes_indexes() { (bar_panel(view, step, INDEX_S, "seconds of index creation")) }
        (bar_panel(view, step, step.rate, step.rate.unit))
        @if step.rate.name == QPS.name && has_target {
            @if step.set == MetricSet::Keys {
                (bar_panel(view, step, WRITES_PER_S, "writes/s in the background"))
            }
            @else { (bar_panel(view, step, IPS, "rows/s inserted in the background")) }
        }
    }
}

fn bar_panel(view: &View, step: &StepView, metric: &Metric, unit: &str) -> Markup {
    const ROW: f64 = 24.0;
    const VALUE: f64 = 128.0;
    /// The mean width of a letter.
    const LETTER: f64 = 6.3;
    let longest = view.cells.iter().map(|cell| cell.label.chars().count());
    let label_width = 16.0 + LETTER * longest.max().unwrap_or(0) as f64;
    let width = WIDTH.max(label_width + VALUE + 200.0);
    let is_background = [IPS, WRITES_PER_S].contains(&metric) && step.rate.name == QPS.name;
    let targets = step
        .outcomes
        .iter()
        .filter_map(|outcome| outcome.target_per_s.filter(|_| is_background));
    let values = step
        .outcomes
        .iter()
        .filter_map(|outcome| outcome.number(metric));
    let most = values
        .chain(targets)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let length = |value: f64| (value / most * (width - label_width - VALUE)).max(1.0);
    let height = ROW * view.cells.len() as f64 + 4.0;
    let (decimals, better) = match metric.direction {
        Direction::Lower => (metric.decimals, "shorter is better"),
        Direction::Higher | Direction::Neutral => (0, "longer is better"),
    };
    html! {
        figure {
            figcaption {
                (unit)
                @if is_background {
                    " (the line is the target)"
                } @else {
                    " – " strong { (better) }
                }
            }
            svg viewBox={ "0 0 " (px(width)) " " (height) } role="img"
                aria-label={ (step.name) " " (unit) } {
                @for (i, (cell, outcome)) in view.cells.iter().zip(&step.outcomes).enumerate() {
                    @let y = ROW * i as f64 + 4.0;
                    text x=(px(label_width - 8.0)) y=(y + 13.0) text-anchor="end" { (cell.label) }
                    @match outcome.number(metric) {
                        Some(value) => {
                            @let is_missed = outcome.status == Status::SlaMissed;
                            rect x=(px(label_width)) y=(y) width=(px(length(value))) height=(ROW - 7.0)
                                class={ "fill k" (i % 8) } {
                                title { (cell.label) ": " (decimal(value, 1)) " " (unit) }
                            }
                            @if is_missed {
                                rect x=(px(label_width)) y=(y) width=(px(length(value))) height=(ROW - 7.0)
                                    fill="url(#hatch)" {}
                            }
                            @let target = outcome.target_per_s.filter(|_| is_background);
                            @let end = target.map_or(0.0, length).max(length(value));
                            text x=(px(label_width + end + 6.0)) y=(y + 13.0) {
                                (decimal(value, decimals))
                                @if is_missed { " SLA missed" }
                                @if outcome.status == Status::Suspect { " suspect" }
                            }
                        }
                        None => {
                            @let status = outcome.status.name().replace('_', " ");
                            text.quiet x=(px(label_width)) y=(y + 13.0) { (status) }
                        }
                    }
                    @if let Some(target) = outcome.target_per_s.filter(|_| is_background) {
                        @let x = px(label_width + length(target));
                        line.mark x1=(x) x2=(x) y1=(y - 2.0) y2=(y + ROW - 5.0) {}
                    }
                }
            }
        }
    }
}
