//! The end of the page: what differed besides the build, the plan, the method, the glossary,
//! licences.

use maud::{Markup, html};
use plimsoll_analysis::metrics::{CATALOGUE, Direction, MetricSet};

use super::{ran, settings};
use crate::html::page::UPLOT_LICENSE;
use crate::html::tables::{cell_name, header, header_of_cells, scrolling};
use plimsoll_analysis::view::{Books, View};

pub(crate) fn sections(view: &View) -> Markup {
    html! {
        (ran::section(view))
        section {
            h2 id="environment" { a.anchor href="#environment" { "Environment" } }
            (environment(view))
        }
        (settings::section(view))
        section {
            h2 id="plan" { a.anchor href="#plan" { "Plan" } }
            @for campaign in &view.campaigns {
                details {
                    summary { "Plan " (campaign.plan) " of " code { (campaign.id) } }
                    pre { (campaign.plan_text) }
                }
            }
        }
        (methods(view))
    }
}

fn environment(view: &View) -> Markup {
    let differences = &view.environment;
    html! {
        @if differences.differing.is_empty() && differences.equal.is_empty() {
            p { "No environment was recorded." }
        } @else if differences.differing.is_empty() {
            p { "The cells ran in the same environment." }
        } @else {
            (scrolling(html! {
                table.text {
                    (header_of_cells(&["fact"], view, cell_name))
                    tbody {
                        @for (name, values) in &differences.differing {
                            tr {
                                th { (name) }
                                @for value in values {
                                    td {
                                        @match value {
                                            Some(value) => (value), None => span.none { "–" }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }))
        }
        @if !differences.equal.is_empty() {
            details {
                summary { (differences.equal.len()) " that are equal in all cells" }
                (scrolling(html! {
                    table.text {
                        tbody {
                            @for (name, value) in &differences.equal {
                                tr { th { (name) } td { (value) } }
                            }
                        }
                    }
                }))
            }
        }
    }
}

fn better(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
        Direction::Neutral => "",
    }
}

/// What was compared when the page was made.
fn books(view: &View) -> String {
    let Books { compared, unequal } = view.books;
    let are = match unequal {
        0 => "All are equal.".to_owned(),
        unequal => format!("{unequal} are not equal: see the notes."),
    };
    format!(
        "Counts of one thing that were written in two places are compared: tries, operations of \
         clients and of seconds, times in histograms, rows of tables. Here {compared} pairs were. \
         {are}"
    )
}

fn methods(view: &View) -> Markup {
    let mut steps = view.steps.iter();
    let has_tests = steps.any(|step| step.set == MetricSet::Statements);
    let own = has_tests.then(|| MetricSet::Statements.own());
    let own = own.unwrap_or_default();
    html! {
        section {
            h2 id="methods" { a.anchor href="#methods" { "Methods and glossary" } }
            dl {
                dt { "Rates" }
                dd { "The sum over clients of what each did, divided by the time that client was \
                     active. Connecting, and clients that start later, are not in it." }
                dt { "Service, response, lag" }
                dd {
                    "An operation is due by its schedule, sent, and done. Service is done − sent, \
                    lag is sent − due, response is done − due. Background writers never skip a due "
                    "instant: what is late queues, and its response time shows it. A closed loop \
                    sends the next operation when the last one is done, so it has no due instants: "
                    "when the engine stalls, it just sends less, and its percentiles look better \
                    than what independent callers would have seen."
                }
                dt { "SLA" }
                dd { "A read-write step passes when its background writers reach 95 % of their \
                     rate over the step." }
                dt { "Colours of the classic tables" }
                dd {
                    "Per column: the worst quarter of the span between the smallest value and the \
                    largest that met its SLA is red, the best quarter green; no red when the \
                    smallest "
                    "reaches 80 % of the largest. Relative values: above 1.05 blue, below 0.95 \
                    yellow, none where the cell or the base missed its SLA."
                }
                dt { "Verdicts" }
                dd { "One run per cell cannot tell a regression from noise. It says where to look; \
                     interleaved repetitions decide." }
                dt { "Books" }
                dd { (books(view)) }
                dt { "p50_rate, p99_rate" }
                dd { "Percentiles of the rates of whole seconds, sorted from fast to slow. They \
                     are rates, not latencies." }
            }
            details {
                summary { "Every metric" }
                (scrolling(html! {
                    table.text {
                        (header(["metric", "unit", "better", "meaning", "formula", "source"]))
                        tbody {
                            @for metric in CATALOGUE.iter().chain(own) {
                                tr {
                                    th { (metric.name) } td { (metric.unit) }
                                    td { (better(metric.direction)) }
                                    td { (metric.meaning) }
                                    td { (metric.formula) }
                                    td { (metric.source) }
                                }
                            }
                        }
                    }
                }))
            }
            details {
                summary { "Licence of uPlot, which draws the per-second charts" }
                pre { (UPLOT_LICENSE) }
            }
        }
    }
}
