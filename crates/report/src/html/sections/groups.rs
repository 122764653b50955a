//! What several tests report together: of sections of the microbenchmarks, and per row.

use maud::{Markup, html};
use plimsoll_analysis::groups::{Group, section, tests_in_words};
use plimsoll_analysis::verdicts::{Role, percent};
use plimsoll_analysis::view::View;

use crate::answers::row_costs::{doubt, number, part, sizes};
use crate::html::tables::{header, scrolling};

/// A row per group of tests and cell; nothing where there are none.
pub(crate) fn groups(view: &View) -> Markup {
    let titles = [
        "tests",
        "cell",
        "number",
        "verdict",
        "change",
        "95 % interval",
        "rests on",
        "of its tests",
    ];
    html! {
        @if !view.groups.is_empty() {
            h3 { "Over tests" }
            (scrolling(html! {
                table {
                    (header(titles.iter().map(|title| html! { (title) })))
                    tbody { @for group in &view.groups { (group_row(view, group)) } }
                }
            }))
        }
    }
}

fn group_row(view: &View, group: &Group) -> Markup {
    let word = group.verdict.name();
    let number = match group.role {
        Role::Throughput => "throughput",
        _ => "CPU/op",
    };
    let estimate = group.estimate;
    let interval = estimate.and_then(|estimate| estimate.interval);
    let starts = estimate.map_or(0, |estimate| estimate.starts);
    html! {
        tr {
            td.name { (section(group)) }
            td.name { (view.cells[group.cell].label) }
            td.name { (number) }
            td class={ "verdict " (word) } { (word) }
            td { (estimate.map_or_else(|| "–".to_owned(), |of| percent(of.ratio))) }
            td {
                (interval.map_or_else(|| "–".to_owned(), |(low, high)| {
                    format!("{} to {}", percent(low), percent(high))
                }))
            }
            td { (group.tests.len()) " x " (starts) }
            td.name { (tests_in_words(group)) }
        }
    }
}

/// What statements and rows cost, of tests with several sizes; nothing where there are none.
pub(crate) fn row_costs(view: &View) -> Markup {
    let titles = [
        "test",
        "cell",
        "number",
        "a, per statement",
        "b, per row",
        "",
    ];
    html! {
        @if !view.row_costs.is_empty() {
            h3 { "Per statement and per row" }
            p.caption {
                "Microseconds per statement = a + b x rows, fitted over the sizes of a test: base, \
                cell, and the difference with its 95 % interval over starts"
            }
            (scrolling(html! {
                table {
                    (header(titles.iter().map(|title| html! { (title) })))
                    tbody {
                        @for cost in &view.row_costs {
                            tr {
                                td.name { (sizes(cost)) }
                                td.name { (view.cells[cost.cell].label) }
                                td.name { (number(cost)) }
                                td { (part(&cost.per_statement)) }
                                td { (part(&cost.per_row)) }
                                td.name { (doubt(cost).unwrap_or_default()) }
                            }
                        }
                    }
                }
            }))
        }
    }
}
