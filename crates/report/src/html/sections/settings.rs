//! The settings that engines run with: what did not become as asked, then what differs, and
//! everything else folded away.

use maud::{Markup, html};

use crate::html::numbers::decimal;
use crate::html::tables::{cell_name, header, header_of_cells, scrolling};
use plimsoll_analysis::view::{NotAsAsked, OnlyIn, Setting, View};
use plimsoll_core::units::{BYTES_PER_GIB, BYTES_PER_MIB};

/// More differences between defaults than this are folded away.
const MOST_OPEN: usize = 20;

/// So are more settings than this that versions lack.
const MOST_LEFT_OUT: usize = 6;

pub(crate) fn section(view: &View) -> Markup {
    let settings = &view.settings;
    let is_empty = settings.differing.is_empty()
        && settings.equal.is_empty()
        && settings.only_in.is_empty()
        && settings.places.is_empty();
    let (asked, own): (Vec<&Setting>, Vec<&Setting>) = settings
        .differing
        .iter()
        .partition(|setting| setting.is_asked);
    let places: Vec<&Setting> = settings.places.iter().collect();
    html! {
        section {
            h2 id="settings" { a.anchor href="#settings" { "Effective settings" } }
            @if is_empty { p { "No settings were recorded." } } @else {
                p.caption { "As the engines state them after their start; values that mean the \
                            same (1G and 1073741824, on and 1) count as equal." }
            }
            (session_clients(view))
            (not_as_asked(view))
            @if !asked.is_empty() {
                h3 { "Different, and asked for by a config" }
                (table(view, &asked))
            }
            @if own.is_empty() {
                @if asked.is_empty() && !is_empty && view.cells.len() > 1 { p { "What several \
                    engines have is the same in all of them." } }
            } @else if own.len() > MOST_OPEN {
                details {
                    summary { (own.len()) " other settings differ: the engines' own defaults" }
                    (table(view, &own))
                }
            } @else {
                h3 { "Different by the engines' own defaults" }
                (table(view, &own))
            }
            @if !settings.only_in.is_empty() {
                @let count: usize = settings.only_in.iter().map(|only| only.settings.len()).sum();
                details {
                    summary { (count) " that only some of the cells have" }
                    @for only in &settings.only_in { (only_in(view, only)) }
                }
            }
            @if !settings.places.is_empty() {
                details {
                    summary {
                        (settings.places.len())
                        " that name places, ports, identities and versions"
                    }
                    (table(view, &places))
                }
            }
            @if !settings.equal.is_empty() {
                details {
                    summary { (settings.equal.len()) " that are equal in all cells" }
                    (pairs(&settings.equal))
                }
            }
            @if !settings.untold.is_empty() {
                p.caption {
                    "Requested, but not reported by any engine: " (settings.untold.join(", ")) "."
                }
            }
        }
    }
}

/// A sentence on the client of all cells that have one; where they differ the table of settings
/// says it.
fn session_clients(view: &View) -> Markup {
    let mut clients: Vec<&str> = view
        .settings
        .session_clients
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    clients.dedup();
    html! {
        @if let [client] = clients[..] { p.caption { "The workers' sessions went through this \
                                                     client: " (client) "." } }
    }
}

fn not_as_asked(view: &View) -> Markup {
    let settings = &view.settings.not_as_asked;
    let (adjusted, left_out): (Vec<&NotAsAsked>, Vec<&NotAsAsked>) =
        settings.iter().partition(|setting| setting.found.is_ok());
    let cells = |setting: &NotAsAsked| {
        html! {
            @if setting.cells.len() == view.cells.len() { "all cells" } @else {
                @for cell in &setting.cells { div { (cell_name(*cell, &view.cells[*cell])) } }
            }
        }
    };
    html! {
        @if !adjusted.is_empty() {
            h3 { "Not as asked" }
            (scrolling(html! {
                table.text {
                    (header(["setting", "asked", "runs with", "cells"]))
                    tbody {
                        @for setting in adjusted {
                            tr {
                                th { (setting.name) }
                                td { (with_size(&setting.name, &setting.asked)) }
                                @let found = setting.found.as_deref().unwrap_or_default();
                                td.below { (with_size(&setting.name, found)) }
                                td { (cells(setting)) }
                            }
                        }
                    }
                }
            }))
        }
        @if !left_out.is_empty() {
            details open[left_out.len() <= MOST_LEFT_OUT] {
                summary { (left_out.len()) " left out: the configs allow for versions that lack \
                                           them" }
                (scrolling(html! {
                    table.text {
                        (header(["setting", "asked", "why", "cells"]))
                        tbody {
                            @for setting in left_out {
                                tr {
                                    th { (setting.name) }
                                    td { (setting.asked) }
                                    td { (setting.found.as_ref().err().map_or("", String::as_str)) }
                                    td { (cells(setting)) }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}

/// A number of bytes with its size for people behind it. Only the name tells that it is one.
fn with_size(name: &str, value: &str) -> String {
    let is_size = ["size", "capacity", "memory", "bytes"]
        .iter()
        .any(|word| name.contains(word));
    match value.trim_end_matches('B').parse::<f64>() {
        Ok(bytes) if is_size && bytes >= BYTES_PER_GIB => {
            format!("{value} ({} GiB)", decimal(bytes / BYTES_PER_GIB, 2))
        }
        Ok(bytes) if is_size && bytes >= BYTES_PER_MIB => {
            format!("{value} ({} MiB)", decimal(bytes / BYTES_PER_MIB, 2))
        }
        _ => value.to_owned(),
    }
}

fn table(view: &View, settings: &[&Setting]) -> Markup {
    scrolling(html! {
        table.text.settings {
            (header_of_cells(&["setting"], view, cell_name))
            tbody {
                @for setting in settings {
                    tr {
                        th { (setting.name) }
                        @for ((value, shown), is_other) in
                            setting.values.iter().zip(&setting.shown).zip(&setting.is_other) {
                            td.other[*is_other] title=[value.as_ref().filter(|_| value != shown)] {
                                @match shown {
                                    Some(shown) => (shown), None => span.none title="not told" {
                                        "–"
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn only_in(view: &View, only: &OnlyIn) -> Markup {
    let labels: Vec<&str> = only
        .cells
        .iter()
        .map(|cell| view.cells[*cell].label.as_str())
        .collect();
    html! {
        details.inner {
            summary { (only.settings.len()) " only in " (labels.join(", ")) }
            (pairs(&only.settings))
        }
    }
}

fn pairs(settings: &[(String, String)]) -> Markup {
    scrolling(html! {
        table.text {
            tbody {
                @for (name, value) in settings { tr { th { (name) } td { (value) } } }
            }
        }
    })
}
