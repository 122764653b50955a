//! The throughput of all steps against the base.

use maud::{Markup, html};
use plimsoll_analysis::view::{Status, StepView, View};

use super::axis::ratio_ticks;
use super::{WIDTH, dot, dot_key, px};
use crate::html::numbers::compact;
use crate::html::tables::dagger;

/// Every step's throughput against the base, a mark per cell, on a logarithmic axis. The band is
/// within 5 % of the base.
pub(crate) fn ratios(view: &View) -> Markup {
    const ROW: f64 = 22.0;
    const LABEL: f64 = 70.0;
    const RIGHT: f64 = 24.0;
    const AXIS: f64 = 22.0;
    let ratio = |step: &StepView, cell: usize| Some(step.ratio(cell)?.log2());
    let all = view
        .steps
        .iter()
        .flat_map(|step| (1..view.cells.len()).filter_map(move |cell| ratio(step, cell)));
    let reach = all.fold(0.25, |most: f64, log| most.max(log.abs())) * 1.1;
    let wide = WIDTH * 1.6;
    let x = |log: f64| LABEL + (log + reach) / (2.0 * reach) * (wide - LABEL - RIGHT);
    let height = ROW * view.steps.len() as f64 + AXIS + 6.0;
    let bottom = height - AXIS;
    let status = |step: &StepView, cell: usize| match step.outcomes[0].status {
        Status::SlaMissed => Status::SlaMissed,
        _ => step.outcomes[cell].status,
    };
    html! {
        figure.wide {
            figcaption { "Relative to the base, per step (logarithmic; the band is within 5 %; \
                         hollow: SLA missed or suspect)" }
            svg viewBox={ "0 0 " (wide) " " (height) } role="img" aria-label="throughput relative \
                to the base" {
                @let (from, to) = (x(f64::log2(0.95)), x(f64::log2(1.05)));
                rect.band x=(px(from)) y="2" width=(px(to - from)) height=(bottom - 2.0) {}
                @for tick in ratio_ticks(reach) {
                    @let at = px(x(f64::log2(tick)));
                    line.grid x1=(at) x2=(at) y1="2" y2=(bottom) {}
                    text x=(at) y=(height - 6.0) text-anchor="middle" { (compact(tick)) }
                }
                @let one = px(x(0.0));
                line.mark x1=(one) x2=(one) y1="2" y2=(bottom) {}
                @for (i, step) in view.steps.iter().enumerate() {
                    @let y = ROW * i as f64 + ROW / 2.0 + 3.0;
                    line.grid x1=(LABEL) x2=(wide - RIGHT) y1=(y) y2=(y) {}
                    text x=(LABEL - 10.0) y=(y + 4.0) text-anchor="end" { (step.name) }
                    @for cell in 1..view.cells.len() {
                        @if let Some(log) = ratio(step, cell) {
                            @let label = &view.cells[cell].label;
                            @let about = format!("{label} {}: {:.2}", step.name, log.exp2());
                            (dot(cell, x(log), y, status(step, cell), &about))
                        }
                    }
                }
            }
        }
        p.keys {
            @for (i, cell) in view.cells.iter().enumerate().skip(1) {
                span { (dot_key(i)) " " (cell.label) (dagger(cell)) }
            }
        }
    }
}
