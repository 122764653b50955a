//! The top of the page: what ran, what to know, and the three classic tables.

use maud::{Markup, html};

use crate::html::figures::step_ratios::ratios;
use crate::html::tables::{cell_name, classic_cell, dagger, header, scrolling};
use crate::published;
use plimsoll_analysis::view::{ClassicTable, View};

pub(crate) fn head(view: &View) -> Markup {
    html! {
        header {
            h1 { (view.title) }
            @for campaign in &view.campaigns {
                @if !campaign.description.is_empty() { p.lead { (campaign.description) } }
                p.facts {
                    span.chip.(campaign.state) { (campaign.progress) }
                    " campaign " code { (campaign.id) }
                    // Imported results have no seed.
                    @if campaign.state != "imported" { " · seed " (campaign.seed) }
                    " · made " (campaign.created)
                    " · plimsoll " (campaign.plimsoll_version)
                    " · methodology " (campaign.methodology_version)
                    " · rows verified: " (campaign.verify)
                }
            }
        }
        @for note in view.notes.iter().take(banners(view)) { p.banner { (note) } }
    }
}

/// A shortened plan's note comes first, and is the one that must not be overlooked.
fn banners(view: &View) -> usize {
    usize::from(!view.is_comparable)
}

pub(crate) fn notes(view: &View) -> Markup {
    html! { ul.notes { @for note in view.notes.iter().skip(banners(view)) { li { (note) } } } }
}

pub(crate) fn cells(view: &View) -> Markup {
    html! {
        h2 id="cells" { a.anchor href="#cells" { "Cells" } }
        (scrolling(html! {
            table.text {
                (header(["cell", "version", "config", "shape", "workload", "engine"]))
                tbody {
                    @for (i, cell) in view.cells.iter().enumerate() {
                        tr {
                            th { (cell_name(i, cell)) (dagger(cell)) }
                            td title=(cell.build_options.join("\n")) { (cell.version) }
                            td title=(settings(&cell.config_settings)) {
                                (cell.config) " (" (cell.config_source) ")"
                            }
                            td { (cell.shape) }
                            td { (cell.workload) }
                            td { (engine(cell.is_embedded)) }
                        }
                    }
                }
            }
        }))
    }
}

/// Where the engine ran, if it did.
fn engine(is_embedded: Option<bool>) -> &'static str {
    match is_embedded {
        Some(true) => "embedded: shares the client's process",
        Some(false) => "server",
        None => "not started",
    }
}

fn settings(settings: &std::collections::BTreeMap<String, String>) -> String {
    settings
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect::<Vec<_>>()
        .join("\n")
}

pub(crate) fn summary(view: &View) -> Markup {
    html! {
        section {
            h2 id="summary" { a.anchor href="#summary" { "Summary" } }
            (super::microbenchmarks::tests(view))
            (crate::html::figures::versions::figures(view))
            @for table in &view.published { (published::to_html(table, classic_cell)) }
            @if view.published.iter().any(|table| table.base.is_some()) { (caveats(view)) }
            @if view.published.is_empty() { (classic_tables(view)) }
            (reasons(view))
        }
    }
}

fn classic_tables(view: &View) -> Markup {
    let summary = &view.summary;
    let best = html! {
        span.swatch.best { "▲ best quarter of the column" } " "
        span.swatch.worst { "▼ worst quarter" } " "
        span.swatch.missed.sla_missed { "SLA missed" }
    };
    let above = html! {
        span.swatch.above { "▲ above 1.05" } " " span.swatch.below { "▼ below 0.95" } " "
        span.swatch.plain.sla_missed {
            "SLA missed by the cell or the base: the ratio proves nothing"
        }
    };
    let missed = html! { span.swatch.worst { "▼ missed its SLA" } };
    // Microbenchmarks have figures of their own.
    let has_figure = view.cells.len() > 1 && summary.tests.is_empty() && summary.ramps.is_empty();
    html! {
        (classic_table(view, &summary.absolute, best))
        (classic_table(view, &summary.relative, above))
        (caveats(view))
        (classic_table(view, &summary.index_seconds, html! {}))
        @if has_figure { (ratios(view)) }
        (classic_table(view, &summary.insert_rate, missed))
    }
}

/// What the marks behind names of cells say.
fn caveats(view: &View) -> Markup {
    html! {
        @if view.cells.iter().any(|cell| cell.other_machine.is_some()) { p.caption { "‡ ran on \
            another machine than the base: a ratio compares the machines too." } }
        @if view.cells.iter().any(|cell| cell.caveat.is_some()) {
            p.caption { "† not strictly comparable: compiler, flags or packager differ from the \
                        base's, or are not known; " a href="#ran" { "what ran" } "." }
        }
    }
}

/// Nothing without columns.
fn classic_table(view: &View, table: &ClassicTable, legend: Markup) -> Markup {
    if table.columns.is_empty() {
        return html! {};
    }
    let steps = table.columns.iter().map(|column| heading(view, column));
    let columns = std::iter::once(html! {}).chain(steps);
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) ". " span.legend { (legend) } }
        (scrolling(html! {
            table.classic {
                (header(columns))
                tbody {
                    @for (i, row) in table.rows.iter().enumerate() {
                        tr {
                            th {
                                @match view.cells.get(i) {
                                    Some(cell) => {
                                        (cell_name(i, cell))
                                        @if !row.mark.is_empty() { (dagger(cell)) }
                                    }
                                    None => (row.label)
                                }
                            }
                            @for cell in &row.cells { (classic_cell(cell)) }
                        }
                    }
                }
            }
        }))
    }
}

/// A step leads to its section.
fn heading(view: &View, column: &str) -> Markup {
    html! {
        @if view.steps.iter().any(|step| step.name == column) {
            a href={ "#" (crate::html::step::anchor(column)) } { (column) }
        } @else {
            (column)
        }
    }
}

/// Why cells are not ok, in words.
fn reasons(view: &View) -> Markup {
    html! {
        @if !view.reasons.is_empty() {
            h3 { "What is not ok" }
            (scrolling(html! {
                table.text {
                    (header(["cell", "steps", "status", "reason"]))
                    tbody {
                        @for reason in &view.reasons {
                            tr {
                                th { (cell_name(reason.cell, &view.cells[reason.cell])) }
                                td { (reason.steps.join(" ")) }
                                td title=(reason.status.meaning()) {
                                    (reason.status.name().replace('_', " "))
                                }
                                td.log {
                                    (reason.text)
                                    @if let Some(more) = &reason.more { details { summary { "more: \
                                        the end of its log" } pre { (more) } } }
                                }
                            }
                        }
                    }
                }
            }))
        }
    }
}
