//! How the engines worked off their debt after a step.

use maud::{Markup, html};

use crate::html::numbers::time_ns;
use crate::html::tables::{cell_name, header, scrolling};
use plimsoll_analysis::view::{StepView, View};

pub(crate) fn drains(view: &View, step: &StepView) -> Markup {
    html! {
        @if step.outcomes.iter().any(|outcome| outcome.drain.is_some()) {
            h3 { "Drain after the step" }
            p.caption { "The engine drains its flush and compaction backlog, then the rest of the \
                        plan's wait passes." }
            (scrolling(html! {
                table.text {
                    (header(["cell", "working", "waiting", "actions"]))
                    tbody {
                        @for (i, (cell, outcome)) in
                            view.cells.iter().zip(&step.outcomes).enumerate() {
                            @if let Some(drain) = &outcome.drain {
                                tr {
                                    th { (cell_name(i, cell)) }
                                    td.number { (time_ns(drain.drained_s * 1e9)) }
                                    td.number { (time_ns(drain.waited_s * 1e9)) }
                                    td.log {
                                        details {
                                            summary { (drain.actions.len()) " actions" }
                                            @for (action, seconds, result) in &drain.actions {
                                                @let is_long = result.contains('\n');
                                                div {
                                                    code { (action) }
                                                    " " (time_ns(seconds * 1e9))
                                                    @if !result.is_empty() && !is_long {
                                                        ": " (result)
                                                    }
                                                }
                                                @if is_long { pre { (result) } }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }))
        }
    }
}
