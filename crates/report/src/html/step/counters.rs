//! What the engines counted in a step.

use maud::{Markup, html};

use crate::html::numbers::{decimal, group};
use crate::html::tables::{cell_name, header_of_cells, header_with_ratios, ratio, scrolling};
use plimsoll_analysis::view::{Counter, CounterKind, StepView, View};

pub(crate) fn counters(view: &View, step: &StepView) -> Markup {
    let of = |kind: CounterKind| {
        step.counters
            .iter()
            .filter(move |counter| counter.kind == kind)
            .collect::<Vec<_>>()
    };
    let (front, others, levels) = (
        of(CounterKind::Front),
        of(CounterKind::Other),
        of(CounterKind::Level),
    );
    html! {
        @if !step.counters.is_empty() {
            h3 { "Engine counters" }
            @if front.is_empty() { p.caption { "The engine reports no counter of work done; see \
                                               the levels." } } @else {
                p.caption {
                    "Per " (step.operation) ", everything the engine did during the step counted, \
                                            background work and writers too. The field's own \
                                            counters, then those that differ most "
                    "from the base. Whole numbers of the step on hover."
                }
                (per_operation(view, &front))
            }
            @if !others.is_empty() {
                details {
                    summary { "All other counters that moved (" (others.len()) ")" }
                    (per_operation(view, &others))
                }
            }
            @if !levels.is_empty() {
                details {
                    summary { "Levels (" (levels.len()) ")" }
                    p.caption { "These go up and down. The table shows how much each changed from \
                                the step's start to its end, which is not a cost of an operation." }
                    (level_table(view, &levels))
                }
            }
        }
    }
}

fn per_operation(view: &View, counters: &[&Counter]) -> Markup {
    scrolling(html! {
        table {
            (header_with_ratios(&["counter", "unit"], view, |i, _| i > 0))
            tbody {
                @for counter in counters {
                    tr {
                        th {
                            @if counter.meaning.is_empty() {
                                (counter.name)
                            } @else {
                                abbr title=(counter.meaning) { (counter.name) }
                            }
                        }
                        td.unit { (counter.unit) }
                        @for (i, (value, per_operation)) in
                            counter.values.iter().zip(&counter.per_operation).enumerate() {
                            td title=[value.map(|value| group(&value.to_string()))] {
                                @match per_operation {
                                    Some(number) => (short(*number)), None => span.none
                                        title="not counted" {
                                        "–"
                                    }
                                }
                            }
                            @if i > 0 {
                                @let base = counter.per_operation[0];
                                td.ratio {
                                    @if per_operation.is_some() &&
                                        base.is_some_and(|base| base != 0.0) {
                                        "×"
                                    }
                                    (ratio(*per_operation, base))
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn level_table(view: &View, levels: &[&Counter]) -> Markup {
    scrolling(html! {
        table {
            (header_of_cells(&["level"], view, cell_name))
            tbody {
                @for level in levels {
                    tr {
                        th { (level.name) }
                        @for value in &level.values {
                            td {
                                @match value {
                                    Some(value) => {
                                        @if *value > 0 { "+" } (group(&value.to_string()))
                                    }
                                    None => span.none { "–" }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

/// About three digits that matter.
fn short(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    decimal(value, decimals)
}
