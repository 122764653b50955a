//! The tests of a section against the base.

use maud::{Markup, html};
use plimsoll_analysis::view::{ClassicCell, TestSection, View};

use super::axis::between;
use super::{dot, dot_key, px};
use crate::html::numbers::compact;
use crate::html::tables::dagger;

const WIDTH: f64 = 760.0;
const ROW: f64 = 10.0;
const LABEL: f64 = 190.0;
const RIGHT: f64 = 44.0;
const AXIS: f64 = 20.0;

/// Where an axis of ratios begins and ends.
#[derive(Clone, Copy)]
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    fn x(self, ratio: f64) -> f64 {
        let share = (ratio - self.low) / (self.high - self.low);
        LABEL + share.clamp(0.0, 1.0) * (WIDTH - LABEL - RIGHT)
    }
}

/// A section's relative throughput twice: from 0, and closer, with intervals if there are any.
pub(crate) fn section_figure(view: &View, section: &TestSection) -> Markup {
    let ratios = || {
        let cells = section.rows.iter().flat_map(|row| row.cells.iter().skip(1));
        cells.filter_map(value)
    };
    let reach = section.rows.iter().flat_map(|row| {
        let cells = 1..view.cells.len();
        cells.filter_map(move |cell| interval(view, cell, &row.step))
    });
    let (low, high) = reach
        .flat_map(|(low, high)| [low, high])
        .chain(ratios())
        .chain([0.98, 1.02])
        // One wild interval does not make the others points.
        .map(|ratio| ratio.clamp(0.1, 10.0))
        .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), ratio| {
            (low.min(ratio), high.max(ratio))
        });
    let margin = 0.04 * (high - low);
    let from_zero = Axis {
        low: 0.0,
        high: ratios().fold(1.2, f64::max) * 1.02,
    };
    let close = Axis {
        low: low - margin,
        high: high + margin,
    };
    html! {
        div.figures.twins {
            (figure(view, section, from_zero, "from 0"))
            (figure(view, section, close, "closer; lines are 95 % intervals"))
        }
        p.keys {
            @for (i, cell) in view.cells.iter().enumerate().skip(1) {
                span { (dot_key(i)) " " (cell.label) (dagger(cell)) }
            }
        }
    }
}

fn value(cell: &ClassicCell) -> Option<f64> {
    cell.number
        .as_ref()
        .and_then(|number| number.parse::<f64>().ok())
}

fn interval(view: &View, cell: usize, step: &str) -> Option<(f64, f64)> {
    view.findings.of_throughput(cell, step)?.estimate?.interval
}

/// A row per test, a mark per cell.
fn figure(view: &View, section: &TestSection, axis: Axis, what: &str) -> Markup {
    let cells = view.cells.len() - 1;
    let row_height = ROW * cells as f64 + 8.0;
    let height = row_height * section.rows.len() as f64 + AXIS;
    let is_close = axis.low > 0.0;
    html! {
        figure {
            figcaption { (section.title) ": throughput relative to the base, " (what) }
            svg viewBox={ "0 0 " (WIDTH) " " (format!("{height:.0}")) } role="img"
                aria-label={ (section.title) " relative to the base, " (what) } {
                @for tick in between(axis.low, axis.high) {
                    @let at = px(axis.x(tick));
                    line.grid x1=(at) x2=(at) y1="0" y2=(px(height - AXIS)) {}
                    text x=(at) y=(px(height - 6.0)) text-anchor="middle" { (compact(tick)) }
                }
                @let one = px(axis.x(1.0));
                line.mark x1=(one) x2=(one) y1="0" y2=(px(height - AXIS)) {}
                @for (r, row) in section.rows.iter().enumerate() {
                    @let top = row_height * r as f64 + 4.0;
                    text x=(LABEL - 8.0) y=(px(top + row_height / 2.0)) text-anchor="end" {
                        (row.step)
                    }
                    @for (i, cell) in row.cells.iter().enumerate().skip(1) {
                        @if let Some(ratio) = value(cell) {
                            @let y = top + ROW * (i as f64 - 0.5);
                            @if let Some((low, high)) = interval(view, i, &row.step)
                                .filter(|_| is_close) {
                                line class={ "interval k" (i % 8) } x1=(px(axis.x(low)))
                                    x2=(px(axis.x(high))) y1=(px(y)) y2=(px(y)) {}
                            }
                            @let about = format!("{} {}: {ratio:.2}", view.cells[i].label, row.step);
                            (dot(i, axis.x(ratio), y, cell.status, &about))
                        }
                    }
                }
            }
        }
    }
}
