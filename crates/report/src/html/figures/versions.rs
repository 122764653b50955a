//! Relative throughput over versions: a figure per config, a line per test.

use maud::{Markup, html};

use super::{corners, dot, dot_key, px, short};
use crate::html::numbers::compact;
use plimsoll_analysis::view::{Status, VersionGroup, View};

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 58.0;

/// A figure for each group that has more than one version.
pub(crate) fn figures(view: &View) -> Markup {
    html! {
        @for group in view.version_groups.iter().filter(|group| group.cells.len() > 1) {
            (figure(view, group))
        }
    }
}

fn figure(view: &View, group: &VersionGroup) -> Markup {
    let ratios = || {
        group
            .tests
            .iter()
            .flat_map(|test| &test.ratios)
            .flatten()
            .copied()
    };
    let (low, high) = (
        ratios().fold(0.9, f64::min) - 0.05,
        ratios().fold(1.1, f64::max) + 0.05,
    );
    let last = (group.cells.len() - 1) as f64;
    let x = |at: usize| LEFT + 30.0 + at as f64 / last * (WIDTH - LEFT - RIGHT - 60.0);
    let y = |ratio: f64| TOP + (high - ratio) / (high - low) * (HEIGHT - TOP - BOTTOM);
    let base = &view.cells[group.cells[0]].label;
    // Names lie aslant where they would meet.
    let is_crowded = group.cells.len() > 6;
    html! {
        figure.wide {
            figcaption { (group.title) ": throughput relative to " (base) ", a line per test (the \
                band is within 5 %; hollow: SLA missed or suspect)" }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (group.title) ": \
                throughput over versions" } {
                rect.band x=(LEFT) width=(WIDTH - LEFT - RIGHT) y=(px(y(1.05)))
                    height=(px(y(0.95) - y(1.05))) {}
                @for tick in ticks(low, high) {
                    @let at = px(y(tick));
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(at) y2=(at) {}
                    text x=(LEFT - 6.0) y=(px(y(tick) + 4.0)) text-anchor="end" { (compact(tick)) }
                }
                @let one = px(y(1.0));
                line.mark x1=(LEFT) x2=(WIDTH - RIGHT) y1=(one) y2=(one) {}
                @for (at, cell) in group.cells.iter().enumerate() {
                    @let (at, below) = (px(x(at)), HEIGHT - BOTTOM + 18.0);
                    @let label = &view.cells[*cell].build;
                    @if is_crowded {
                        text x=(at) y=(below) text-anchor="end"
                            transform={ "rotate(-30 " (at) " " (below) ")" } {
                            title { (label) } (short(label, 16))
                        }
                    } @else {
                        text x=(at) y=(below) text-anchor="middle" {
                            title { (label) } (short(label, 20))
                        }
                    }
                }
                @for (i, test) in group.tests.iter().enumerate() {
                    @for run in runs(&test.ratios) {
                        @let points = corners(run.iter().map(|(at, ratio)| (x(*at), y(*ratio))));
                        polyline class={ "curve k" (i % 8) @if i >= 8 { " dashed" } }
                            points=(points) {}
                    }
                    @for (at, ratio) in test.ratios.iter().enumerate() {
                        @if let Some(ratio) = ratio {
                            @let label = &view.cells[group.cells[at]].label;
                            @let about = format!("{}, {label}: {ratio:.2}", test.step);
                            (dot(i, x(at), y(*ratio), status(view, &test.step, group, at), &about))
                        }
                    }
                }
            }
        }
        p.keys {
            @for (i, test) in group.tests.iter().enumerate() {
                span { (dot_key(i)) " " (test.step) }
            }
        }
    }
}

/// That of the cell, or of the base where only that one is not ok.
fn status(view: &View, step: &str, group: &VersionGroup, at: usize) -> Status {
    let of = |cell: usize| {
        view.steps
            .iter()
            .find(|known| known.name == step)
            .map_or(Status::Ok, |step| step.outcomes[cell].status)
    };
    match of(group.cells[at]) {
        Status::Ok => of(group.cells[0]),
        status => status,
    }
}

/// Neighbours that both have a ratio: a version without one parts the line.
pub(crate) fn runs(ratios: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut runs: Vec<Vec<(usize, f64)>> = vec![Vec::new()];
    for (at, ratio) in ratios.iter().enumerate() {
        match (ratio, runs.last_mut()) {
            (Some(ratio), Some(run)) => run.push((at, *ratio)),
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

/// Round ratios between the two, 1 among them.
pub(crate) fn ticks(low: f64, high: f64) -> Vec<f64> {
    let step = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0]
        .into_iter()
        .find(|step| (high - low) / step <= 8.0)
        .unwrap_or(1000.0);
    let (from, to) = (
        ((low - 1.0) / step).ceil() as i64,
        ((high - 1.0) / step).floor() as i64,
    );
    (from..=to)
        .map(|i| 1.0 + i as f64 * step)
        .filter(|tick| *tick > -1e-9)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_without_a_ratio_parts_the_line() {
        let ratios = [
            Some(1.0),
            Some(0.9),
            None,
            Some(0.8),
            None,
            Some(0.7),
            Some(0.6),
        ];
        assert_eq!(
            runs(&ratios),
            [vec![(0, 1.0), (1, 0.9)], vec![(5, 0.7), (6, 0.6)]]
        );
        assert!(runs(&[None, Some(1.0)]).is_empty());
    }

    #[test]
    fn ticks_are_round_and_hold_the_base() {
        for (low, high) in [(0.85, 1.15), (0.4, 3.2), (0.01, 40.0)] {
            let ticks = ticks(low, high);
            assert!(
                ticks.iter().any(|tick| (tick - 1.0).abs() < 1e-9) && ticks.len() <= 9,
                "{ticks:?}"
            );
        }
    }
}
