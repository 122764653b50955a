//! What sessions waited for as bars: a pair per event, the base above the cell.

use maud::{Markup, html};
use plimsoll_analysis::view::{StepView, View};
use plimsoll_analysis::{WaitChange, Waited};

use super::{WIDTH, px, short};
use crate::answers::waits::{interval, trust};

/// Events that are drawn, the largest differences first.
const SHOWN: usize = 8;
const BAR: f64 = 9.0;
const ROW: f64 = 28.0;
const LABEL: f64 = 190.0;
const VALUE: f64 = 190.0;

/// The waits of a step; nothing where nobody looked.
pub(crate) fn section(view: &View, step: &StepView) -> Markup {
    let waits: Vec<&Waited> = view
        .waits
        .iter()
        .filter(|waited| waited.step == step.name)
        .collect();
    html! {
        @if !waits.is_empty() {
            h3 { "Waits" }
            @for waited in waits {
                @let names = format!("{} against {}", waited.cell_label, waited.base_label);
                @match &waited.reason {
                    Some(reason) => p.caption { (names) ": no waits: " (reason) "." },
                    None => (figure(waited, &names)),
                }
            }
        }
    }
}

fn figure(waited: &Waited, names: &str) -> Markup {
    let shown: Vec<&WaitChange> = waited.events.iter().take(SHOWN).collect();
    let sides = shown
        .iter()
        .flat_map(|change| [change.base_s, change.cell_s]);
    let most = sides.fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let length = |value: f64| (value / most * (WIDTH - LABEL - VALUE)).max(1.0);
    let height = ROW * shown.len() as f64 + 4.0;
    html! {
        figure {
            figcaption {
                (names) ": seconds of sessions per 1,000 operations, the base above; behind them \
                the difference with its 95 % interval – " strong { "shorter is better" }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img"
                aria-label={ (waited.step) " waits of " (names) } {
                @for (i, change) in shown.iter().enumerate() {
                    @let y = ROW * i as f64 + 4.0;
                    text x=(LABEL - 8.0) y=(px(y + 13.0)) text-anchor="end" {
                        title { (change.event) } (short(&change.event, 28))
                    }
                    @for (side, value) in [(0, change.base_s), (waited.cell, change.cell_s)] {
                        @let top = if side == 0 { y } else { y + BAR + 1.0 };
                        rect x=(LABEL) y=(px(top)) width=(px(length(value))) height=(BAR)
                            class={ "fill k" (side % 8) } {
                            title { (format!("{value:.4} s")) }
                        }
                    }
                    @let end = length(change.base_s.max(change.cell_s));
                    text x=(px(LABEL + end + 6.0)) y=(px(y + 13.0)) {
                        (format!("{:+.4} s {}", change.difference_s, interval(change)))
                    }
                }
            }
        }
        p.caption { (trust(waited)) }
    }
}
