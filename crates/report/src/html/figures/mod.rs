//! Figures as inline SVG: they need no script and print well.

pub(crate) mod flames;
pub(crate) mod ratio_plot;
pub(crate) mod shapes;
pub(crate) mod versions;

use maud::{Markup, html};
use plimsoll_analysis::metrics::rocksdb::WRITES_PER_S;
use plimsoll_analysis::metrics::{Direction, INDEX_S, IPS, Metric, MetricSet, QPS};

use crate::html::numbers::{compact, decimal, time_ns};
use crate::html::tables::dagger;
use plimsoll_analysis::view::{
    ClassicCell, Clock, LatencyTable, Ramp, Status, StepView, TestSection, View,
};

const WIDTH: f64 = 620.0;

/// The pattern that marks what missed its SLA, for every figure of the page.
pub(crate) fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" {
            defs {
                pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                    rect width="3" height="7" class="hatch" {}
                }
            }
        }
    }
}

/// A label that fits its column; the whole of it on hover.
pub(crate) fn short(label: &str, most: usize) -> String {
    if label.chars().count() <= most {
        label.to_owned()
    } else {
        format!("{}…", label.chars().take(most - 1).collect::<String>())
    }
}

/// Throughput bars of a step; in read-write steps also the background rate with its target.
pub(crate) fn bars(view: &View, step: &StepView) -> Markup {
    html! {
        @if step.makes_indexes() { (bar_panel(view, step, INDEX_S, "seconds of index creation")) }
        (bar_panel(view, step, step.rate, step.rate.unit))
        @if step.rate.name == QPS.name && step.outcomes.iter().any(|outcome| outcome.target_per_s.is_some()) {
            @if step.set == MetricSet::Keys { (bar_panel(view, step, WRITES_PER_S, "writes/s in the background")) }
            @else { (bar_panel(view, step, IPS, "rows/s inserted in the background")) }
        }
    }
}

fn bar_panel(view: &View, step: &StepView, metric: &Metric, unit: &str) -> Markup {
    const ROW: f64 = 24.0;
    const LABEL: f64 = 168.0;
    const VALUE: f64 = 128.0;
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
    let length = |value: f64| (value / most * (WIDTH - LABEL - VALUE)).max(1.0);
    let height = ROW * view.cells.len() as f64 + 4.0;
    let (decimals, better) = match metric.direction {
        Direction::Lower => (metric.decimals, "shorter is better"),
        Direction::Higher | Direction::Neutral => (0, "longer is better"),
    };
    html! {
        figure {
            figcaption { (unit) @if is_background { " (the line is the target)" } @else { " – " strong { (better) } } }
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label={ (step.name) " " (unit) } {
                @for (i, (cell, outcome)) in view.cells.iter().zip(&step.outcomes).enumerate() {
                    @let y = ROW * i as f64 + 4.0;
                    text x=(LABEL - 8.0) y=(y + 13.0) text-anchor="end" { title { (cell.label) } (short(&cell.label, 24)) }
                    @match outcome.number(metric) {
                        Some(value) => {
                            @let is_missed = outcome.status == Status::SlaMissed;
                            rect x=(LABEL) y=(y) width=(format!("{:.1}", length(value))) height=(ROW - 7.0) class={ "fill k" (i % 8) } {
                                title { (cell.label) ": " (decimal(value, 1)) " " (unit) }
                            }
                            @if is_missed {
                                rect x=(LABEL) y=(y) width=(format!("{:.1}", length(value))) height=(ROW - 7.0) fill="url(#hatch)" {}
                            }
                            @let end = outcome.target_per_s.filter(|_| is_background).map_or(0.0, length).max(length(value));
                            text x=(format!("{:.1}", LABEL + end + 6.0)) y=(y + 13.0) {
                                (decimal(value, decimals)) @if is_missed { " SLA missed" } @if outcome.status == Status::Suspect { " suspect" }
                            }
                        }
                        None => { text.quiet x=(LABEL) y=(y + 13.0) { (outcome.status.name().replace('_', " ")) } }
                    }
                    @if let Some(target) = outcome.target_per_s.filter(|_| is_background) {
                        @let x = format!("{:.1}", LABEL + length(target));
                        line.mark x1=(x) x2=(x) y1=(y - 2.0) y2=(y + ROW - 5.0) {}
                    }
                }
            }
        }
    }
}

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
    let path = |row: &plimsoll_analysis::view::LatencyRow| {
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
                    @let at = format!("{:.1}", y(ns));
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(format!("{:.1}", y(ns) + 4.0)) text-anchor="end" { (time_tick(ns)) }
                }
                // With many nines the median comes too near to the 90th percentile.
                @for (at, name) in percents.iter().filter(|(at, _)| *at <= nines && (*at >= 1.0 || nines < 5.5)) {
                    @let at = format!("{:.1}", x(*at));
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

/// Every step's throughput against the base, a mark per cell, on a logarithmic axis. The band is
/// within 5 % of the base.
pub(crate) fn ratios(view: &View) -> Markup {
    const ROW: f64 = 22.0;
    const LABEL: f64 = 70.0;
    const RIGHT: f64 = 24.0;
    const AXIS: f64 = 22.0;
    let ratio = |step: &StepView, cell: usize| {
        let base = step.outcomes[0].number(step.rate)?;
        let value = step.outcomes[cell].number(step.rate)?;
        (base > 0.0 && value > 0.0).then(|| (value / base).log2())
    };
    let all = view
        .steps
        .iter()
        .flat_map(|step| (1..view.cells.len()).filter_map(move |cell| ratio(step, cell)));
    let reach = all.fold(0.25, |most: f64, log| most.max(log.abs())) * 1.1;
    let wide = WIDTH * 1.6;
    let x = |log: f64| LABEL + (log + reach) / (2.0 * reach) * (wide - LABEL - RIGHT);
    let height = ROW * view.steps.len() as f64 + AXIS + 6.0;
    let bottom = height - AXIS;
    let ticks = [
        0.1, 0.2, 0.25, 0.5, 0.67, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 4.0, 5.0, 10.0, 100.0, 0.01,
    ];
    let least = reach / 7.0;
    let mut shown: Vec<f64> = Vec::new();
    for tick in [1.0].into_iter().chain(ticks) {
        let log = f64::log2(tick);
        if log.abs() < reach
            && shown
                .iter()
                .all(|other| (f64::log2(*other) - log).abs() >= least)
        {
            shown.push(tick);
        }
    }
    html! {
        figure.wide {
            figcaption { "Relative to the base, per step (logarithmic; the band is within 5 %; \
                         hollow: SLA missed or suspect)" }
            svg viewBox={ "0 0 " (wide) " " (height) } role="img" aria-label="throughput relative \
                to the base" {
                @let (from, to) = (x(f64::log2(0.95)), x(f64::log2(1.05)));
                rect.band x=(format!("{from:.1}")) y="2" width=(format!("{:.1}", to - from)) height=(bottom - 2.0) {}
                @for tick in shown {
                    @let at = format!("{:.1}", x(f64::log2(tick)));
                    line.grid x1=(at) x2=(at) y1="2" y2=(bottom) {}
                    text x=(at) y=(height - 6.0) text-anchor="middle" { (compact(tick)) }
                }
                @let one = format!("{:.1}", x(0.0));
                line.mark x1=(one) x2=(one) y1="2" y2=(bottom) {}
                @for (i, step) in view.steps.iter().enumerate() {
                    @let y = ROW * i as f64 + ROW / 2.0 + 3.0;
                    line.grid x1=(LABEL) x2=(wide - RIGHT) y1=(y) y2=(y) {}
                    text x=(LABEL - 10.0) y=(y + 4.0) text-anchor="end" { (step.name) }
                    @for cell in 1..view.cells.len() {
                        @if let Some(log) = ratio(step, cell) {
                            @let status = if step.outcomes[0].status == Status::SlaMissed { Status::SlaMissed } else { step.outcomes[cell].status };
                            (dot(cell, x(log), y, status, &format!("{} {}: {:.2}", view.cells[cell].label, step.name, log.exp2())))
                        }
                    }
                }
            }
        }
        p.keys { @for (i, cell) in view.cells.iter().enumerate().skip(1) { span { (dot_key(i)) " " (cell.label) (dagger(cell)) } } }
    }
}

/// A section's relative throughput: a bar per test and cell, from the base's line.
pub(crate) fn section_figure(view: &View, section: &TestSection) -> Markup {
    const BAR: f64 = 9.0;
    const LABEL: f64 = 190.0;
    const RIGHT: f64 = 60.0;
    const AXIS: f64 = 20.0;
    let value = |cell: &ClassicCell| {
        cell.number
            .as_ref()
            .and_then(|number| number.parse::<f64>().ok())
    };
    let cells = view.cells.len() - 1;
    let wide = WIDTH * 1.4;
    let most = section
        .rows
        .iter()
        .flat_map(|row| &row.cells)
        .filter_map(value)
        .fold(1.2, f64::max);
    let x = |ratio: f64| LABEL + ratio / most * (wide - LABEL - RIGHT);
    let row_height = BAR * cells as f64 + 8.0;
    let height = row_height * section.rows.len() as f64 + AXIS;
    let one = format!("{:.1}", x(1.0));
    html! {
        figure.wide {
            figcaption { (section.title) ": throughput relative to the base (the line)" }
            svg viewBox={ "0 0 " (wide) " " (format!("{height:.0}")) } role="img" aria-label={ (section.title) " relative to the base" } {
                @for (r, row) in section.rows.iter().enumerate() {
                    @let top = row_height * r as f64 + 4.0;
                    text x=(LABEL - 8.0) y=(format!("{:.1}", top + row_height / 2.0)) text-anchor="end" { (row.step) }
                    @for (i, cell) in row.cells.iter().enumerate().skip(1) {
                        @if let Some(ratio) = value(cell) {
                            @let y = top + BAR * (i - 1) as f64;
                            rect x=(LABEL) y=(format!("{y:.1}")) width=(format!("{:.1}", (x(ratio) - LABEL).max(1.0))) height=(BAR - 1.5) class={ "fill k" (i % 8) } {
                                title { (view.cells[i].label) " " (row.step) ": " (format!("{ratio:.2}")) }
                            }
                            @if cells <= 6 { text.quiet x=(format!("{:.1}", x(ratio) + 4.0)) y=(format!("{:.1}", y + BAR - 2.0)) font-size="8" { (format!("{ratio:.2}")) } }
                        }
                    }
                }
                line.mark x1=(one) x2=(one) y1="0" y2=(format!("{:.1}", height - AXIS)) {}
                text x=(one) y=(format!("{:.1}", height - 6.0)) text-anchor="middle" { "1.00" }
            }
        }
        p.keys { @for (i, cell) in view.cells.iter().enumerate().skip(1) { span { span class={ "key k" (i % 8) } {} " " (cell.label) (dagger(cell)) } } }
    }
}

/// Rate over the number of clients, whose axis is logarithmic: a line per cell.
pub(crate) fn ramp_figure(view: &View, ramp: &Ramp) -> Markup {
    const HEIGHT: f64 = 260.0;
    const LEFT: f64 = 84.0;
    // Room for a mark beside the highest and the last point.
    const RIGHT: f64 = 26.0;
    const TOP: f64 = 22.0;
    const BOTTOM: f64 = 40.0;
    let wide = WIDTH * 1.2;
    let most = ramp
        .cells
        .iter()
        .flat_map(|cell| &cell.levels)
        .filter_map(|level| level.rate)
        .fold(0.0, f64::max);
    let ticks = round_ticks(most);
    let top = ticks.last().copied().unwrap_or(1.0);
    let log = |users: u32| f64::from(users).log2();
    let (low, high) = (
        ramp.users.first().map_or(0.0, |users| log(*users)),
        ramp.users.last().map_or(1.0, |users| log(*users)),
    );
    let x = |users: u32| LEFT + (log(users) - low) / (high - low).max(1.0) * (wide - LEFT - RIGHT);
    let y = |rate: f64| TOP + (1.0 - rate / top) * (HEIGHT - TOP - BOTTOM);
    html! {
        figure.wide {
            figcaption { (ramp.test) ": " (ramp.rate.unit) " over clients" }
            svg viewBox={ "0 0 " (wide) " " (HEIGHT) } role="img" aria-label={ (ramp.test) " over \
                clients" } {
                @for rate in ticks {
                    @let at = format!("{:.1}", y(rate));
                    line.grid x1=(LEFT) x2=(wide - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(format!("{:.1}", y(rate) + 4.0)) text-anchor="end" { (compact(rate)) }
                }
                text.quiet transform=(format!("translate(12 {:.0}) rotate(-90)", (HEIGHT - BOTTOM + TOP) / 2.0)) text-anchor="middle" { (ramp.rate.unit) }
                text.quiet x=(format!("{:.0}", (LEFT + wide - RIGHT) / 2.0)) y=(HEIGHT - 4.0) text-anchor="middle" { "clients, on a logarithmic axis" }
                @for users in &ramp.users {
                    @let at = format!("{:.1}", x(*users));
                    line.grid x1=(at) x2=(at) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
                    text x=(at) y=(HEIGHT - BOTTOM + 14.0) text-anchor="middle" { (users) }
                }
                @for (i, cell) in ramp.cells.iter().enumerate() {
                    @let points: Vec<(u32, f64, Status)> = ramp.users.iter().zip(&cell.levels).filter_map(|(users, level)| Some((*users, level.rate?, level.status))).collect();
                    polyline class={ "curve k" (i % 8) } points=(points.iter().map(|(users, rate, _)| format!("{:.1},{:.1}", x(*users), y(*rate))).collect::<Vec<_>>().join(" ")) {
                        title { (view.cells[i].label) }
                    }
                    @for (users, rate, status) in points {
                        (dot(i, x(users), y(rate), status, &format!("{}: {} at {users} clients{}", view.cells[i].label, decimal(rate, 0), if status == Status::Ok { String::new() } else { format!(", {}", status.meaning()) })))
                        @if status != Status::Ok { text.quiet x=(format!("{:.1}", x(users) + 7.0)) y=(format!("{:.1}", y(rate) - 5.0)) { (status.mark()) } }
                    }
                }
            }
        }
        p.keys { @for (i, cell) in view.cells.iter().enumerate() { span { (dot_key(i)) " " (cell.label) (dagger(cell)) } } }
    }
}

/// Zero and four to ten multiples of a step of 1, 2 or 5 times a power of ten, the last of them not
/// below `most`.
fn round_ticks(most: f64) -> Vec<f64> {
    let most = if most > 0.0 { most } else { 1.0 };
    let power = 10f64.powf((most / 4.0).log10().floor());
    let step = [5.0, 2.0, 1.0]
        .into_iter()
        .map(|of| of * power)
        .find(|step| step * 4.0 <= most * 1.000_001)
        .unwrap_or(power);
    let count = (most / step - 1e-6).ceil() as u32;
    (0..=count).map(|i| f64::from(i) * step).collect()
}

/// Circle, square, diamond, triangle: cells differ by shape as well as by colour.
pub(crate) fn dot(cell: usize, x: f64, y: f64, status: Status, about: &str) -> Markup {
    let class = format!(
        "dot k{}{}",
        cell % 8,
        if status == Status::Ok { "" } else { " hollow" }
    );
    let points = |corners: &[(f64, f64)]| {
        corners
            .iter()
            .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy))
            .collect::<Vec<_>>()
            .join(" ")
    };
    html! {
        @match cell % 4 {
            1 => { circle class=(class) cx=(format!("{x:.1}")) cy=(y) r="5" { title { (about) } } }
            2 => { polygon class=(class) points=(points(&[(-4.5, -4.5), (4.5, -4.5), (4.5, 4.5), (-4.5, 4.5)])) { title { (about) } } }
            3 => { polygon class=(class) points=(points(&[(0.0, -6.0), (6.0, 0.0), (0.0, 6.0), (-6.0, 0.0)])) { title { (about) } } }
            _ => { polygon class=(class) points=(points(&[(0.0, -6.0), (5.5, 4.5), (-5.5, 4.5)])) { title { (about) } } }
        }
    }
}

pub(crate) fn dot_key(cell: usize) -> Markup {
    html! { svg.dotkey viewBox="0 0 14 14" aria-hidden="true" { (dot(cell, 7.0, 7.0, Status::Ok, "")) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_highest() {
        for (most, wanted) in [
            (
                97_000.0,
                &[0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0][..],
            ),
            (40.0, &[0.0, 10.0, 20.0, 30.0, 40.0]),
            (0.0, &[0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        ] {
            let ticks = round_ticks(most);
            assert!(
                ticks.len() == wanted.len()
                    && ticks.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9),
                "{most}: {ticks:?}"
            );
        }
        for most in (1..2000).map(|i| f64::from(i) * 0.37) {
            let ticks = round_ticks(most);
            assert!(
                (5..=11).contains(&ticks.len()) && *ticks.last().unwrap() >= most * 0.999_99,
                "{most}: {ticks:?}"
            );
        }
    }
}
