//! The tests of a section against the base.

use maud::{Markup, html};
use plimsoll_analysis::view::{ClassicCell, TestSection, View};

use super::{WIDTH, px};
use crate::html::tables::dagger;

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
    let one = px(x(1.0));
    html! {
        figure.wide {
            figcaption { (section.title) ": throughput relative to the base (the line)" }
            svg viewBox={ "0 0 " (wide) " " (format!("{height:.0}")) } role="img"
                aria-label={ (section.title) " relative to the base" } {
                @for (r, row) in section.rows.iter().enumerate() {
                    @let top = row_height * r as f64 + 4.0;
                    text x=(LABEL - 8.0) y=(px(top + row_height / 2.0)) text-anchor="end" {
                        (row.step)
                    }
                    @for (i, cell) in row.cells.iter().enumerate().skip(1) {
                        @if let Some(ratio) = value(cell) {
                            @let y = top + BAR * (i - 1) as f64;
                            rect x=(LABEL) y=(px(y)) width=(px((x(ratio) - LABEL).max(1.0)))
                                height=(BAR - 1.5) class={ "fill k" (i % 8) } {
                                title {
                                    (view.cells[i].label) " " (row.step) ": "
                                    (format!("{ratio:.2}"))
                                }
                            }
                            @if cells <= 6 {
                                text.quiet x=(px(x(ratio) + 4.0)) y=(px(y + BAR - 2.0))
                                    font-size="8" {
                                    (format!("{ratio:.2}"))
                                }
                            }
                        }
                    }
                }
                line.mark x1=(one) x2=(one) y1="0" y2=(px(height - AXIS)) {}
                text x=(one) y=(px(height - 6.0)) text-anchor="middle" { "1.00" }
            }
        }
        p.keys {
            @for (i, cell) in view.cells.iter().enumerate().skip(1) {
                span { span class={ "key k" (i % 8) } {} " " (cell.label) (dagger(cell)) }
            }
        }
    }
}
