//! What several tests report together: of sections of the microbenchmarks, and per row.

use itertools::Itertools;
use maud::{Markup, html};
use plimsoll_analysis::groups::{Group, section, starts_in_words, tests_in_words};
use plimsoll_analysis::verdicts::{Role, percent};
use plimsoll_analysis::view::View;

use super::verdicts::{against, sign};
use crate::html::tables::{cell_name, header, scrolling};

/// A row per group of tests and number, a column per cell; nothing where there are none.
pub(crate) fn groups(view: &View) -> Markup {
    let cells = view.groups.iter().map(|group| (group.cell, group.base));
    let cells: Vec<(usize, usize)> = cells.unique().collect();
    let rows = view.groups.iter().map(|group| (section(group), group.role));
    let rows: Vec<(String, Role)> = rows
        .unique_by(|(name, role)| (name.clone(), role.name()))
        .collect();
    let heads = cells.iter().map(|(cell, base)| {
        html! { (cell_name(*cell, &view.cells[*cell])) (against(view, *base)) }
    });
    let group = |row: &(String, Role), at: (usize, usize)| {
        view.groups
            .iter()
            .find(|group| (section(group), group.role) == *row && (group.cell, group.base) == at)
    };
    html! {
        @if !view.groups.is_empty() {
            h3 { "Over tests" }
            (scrolling(html! {
                table.matrix {
                    (header(std::iter::once(html! {}).chain(heads)))
                    tbody {
                        @for row in &rows {
                            tr {
                                th { (row.0) @if row.1 != Role::Throughput { ", CPU/op" } }
                                @for at in &cells { (group_cell(group(row, *at))) }
                            }
                        }
                    }
                }
            }))
        }
    }
}

/// The change with its interval, and below it what its tests say.
fn group_cell(group: Option<&Group>) -> Markup {
    let Some(group) = group else {
        return html! { td { span.none { "–" } } };
    };
    let word = group.verdict.name();
    let rests_on = format!(
        "{word}, {} tests x {}",
        group.tests.len(),
        starts_in_words(group)
    );
    html! {
        td class={ "verdict " (word) } title=(rests_on) {
            span.sign { (sign(word)) }
            @match group.estimate {
                None => "no start in common",
                Some(estimate) => {
                    (percent(estimate.ratio))
                    @if let Some((low, high)) = estimate.interval {
                        " [" (percent(low)) ", " (percent(high)) "]"
                    }
                }
            }
            br;
            small { (tests_in_words(group)) }
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
                                td.name { (cost.sizes_in_words()) }
                                td.name { (view.cells[cost.cell].label) }
                                td.name { (cost.of_what()) }
                                td { (cost.per_statement.in_words()) }
                                td { (cost.per_row.in_words()) }
                                td.name { (cost.doubt().unwrap_or_default()) }
                            }
                        }
                    }
                }
            }))
        }
    }
}
