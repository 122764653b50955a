//! Percentiles of a kind of operation as curves.

use maud::{Markup, html};
use plimsoll_analysis::view::{Clock, LatencyRow, LatencyTable, View};

use super::{WIDTH, px};
use crate::html::numbers::time_ns;

/// Percentile curves of one kind of operation: service drawn through, response dashed.
pub(crate) fn curves(view: &View, table: &LatencyTable) -> Markup {
    const HEIGHT: f64 = 250.0;
    const LEFT: f64 = 58.0;
    const RIGHT: f64 = 14.0;
    const TOP: f64 = 8.0;
    const BOTTOM: f64 = 26.0;
    let points = || table.rows.iter().flat_map(|row| &row.curve);
    let nines = points().map(|point| point.nines).fold(1.0, f64::max);
    let low = (points().map(|point| point.value_ns).min().unwrap_or(1) as f64 * 0.8).log10();
    let high = (points().map(|point| point.value_ns).max().unwrap_or(10) as f64 * 1.25).log10();
    let x = |at: f64| LEFT + at / nines * (WIDTH - LEFT - RIGHT);
    let y = |ns: f64| TOP + (high - ns.log10()) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let path = |row: &LatencyRow| {
        let points = row
            .curve
            .iter()
            .map(|point| format!("{:.1},{:.1}", x(point.nines), y(point.value_ns as f64)));
        points.collect::<Vec<_>>().join(" ")
    };
    let percents = [
        (0.301, "50 %"),
        (1.0, "90 %"),
        (2.0, "99 %"),
        (3.0, "99.9 %"),
        (4.0, "99.99 %"),
        (5.0, "99.999 %"),
        (6.0, "99.9999 %"),
    ];
    // With many nines the median comes too near to the 90th percentile.
    let is_apart = |at: f64| at <= nines && (at >= 1.0 || nines < 5.5);
    let percents = percents.into_iter().filter(|(at, _)| is_apart(*at));
    html! {
        figure {
            figcaption {
                (table.kind) " percentiles: "
                span.line {} " service time"
                @if table.is_open_loop {
                    ", " span.line.dashed {} " response time from the planned instant"
                    @if table.rows.iter().any(|row| !row.quantiles.lower_bounds().is_empty()) {
                        "; operations that were never sent end a curve where it would be a lower \
                        bound only"
                    }
                } @else { " (closed loop: no response time)" }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (table.kind) " \
                percentiles" } {
                @for ns in time_ticks(low, high) {
                    @let at = px(y(ns));
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(px(y(ns) + 4.0)) text-anchor="end" { (time_tick(ns)) }
                }
                @for (at, name) in percents {
                    @let at = px(x(at));
                    line.grid x1=(at) x2=(at) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
                    text x=(at) y=(HEIGHT - 8.0) text-anchor="middle" { (name) }
                }
                @for row in table.rows.iter().filter(|row| !row.curve.is_empty()) {
                    polyline class={ "curve k" (row.cell % 8) @if row.clock == Clock::Response { " \
                        dashed" } } points=(path(row)) {
                        title { (view.cells[row.cell].label) " " (row.clock.name()) }
                    }
                }
            }
        }
    }
}

/// Powers of ten between the two logarithms; where there are few, also their doubles and fives.
fn time_ticks(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = if high - low > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let decades = (low.floor() as i32)..=(high.ceil() as i32);
    let ticks = decades.flat_map(|decade| steps.iter().map(move |step| step * 10f64.powi(decade)));
    ticks
        .filter(|ns| (low..=high).contains(&ns.log10()))
        .collect()
}

/// `200 us` without needless decimals.
fn time_tick(ns: f64) -> String {
    let text = time_ns(ns * 1.000_001);
    let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
    let number = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    };
    format!("{number} {unit}")
}
