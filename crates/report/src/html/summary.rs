//! The top of the page: what ran, what to know, and the three classic tables.

use maud::{Markup, html};

use super::figures::ratios;
use super::tables::{cell_name, classic_cell, scrolling};
use crate::view::{ClassicTable, Status, View};

pub(super) fn head(view: &View) -> Markup {
    html! {
        header {
            h1 { (view.title) }
            @for campaign in &view.campaigns {
                @if !campaign.description.is_empty() { p.lead { (campaign.description) } }
                p.facts {
                    span.chip.(campaign.state) { (campaign.state) }
                    " campaign " code { (campaign.id) }
                    " · seed " (campaign.seed)
                    " · made " (campaign.created)
                    " · plimsoll " (campaign.plimsoll_version)
                    " · methodology " (campaign.methodology_version)
                    " · rows verified: " (campaign.verify)
                }
            }
        }
        // A shortened plan's note comes first, and is the one that must not be overlooked.
        @let banners = usize::from(!view.is_comparable);
        @for note in view.notes.iter().take(banners) { p.banner { (note) } }
        ul.notes { @for note in view.notes.iter().skip(banners) { li { (note) } } }
        (cells(view))
    }
}

fn cells(view: &View) -> Markup {
    html! {
        h2 id="cells" { a.anchor href="#cells" { "Cells" } }
        (scrolling(html! {
            table.text {
                thead { tr { th { "cell" } th { "build" } th { "version" } th { "origin" } th { "config" } th { "workload" } th { "engine" } } }
                tbody {
                    @for (i, cell) in view.cells.iter().enumerate() {
                        tr {
                            th { (cell_name(i, cell)) }
                            td { (cell.build) }
                            td title=(cell.build_options.join("\n")) { (cell.version) }
                            td { (cell.origin) }
                            td title=(settings(&cell.config_settings)) { (cell.config) " (" (cell.config_source) ")" }
                            td { (cell.workload) }
                            td { (match cell.is_embedded { Some(true) => "embedded: shares the client's process", Some(false) => "server", None => "not started" }) }
                        }
                    }
                }
            }
        }))
    }
}

fn settings(settings: &std::collections::BTreeMap<String, String>) -> String {
    settings.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join("\n")
}

pub(super) fn summary(view: &View) -> Markup {
    let summary = &view.summary;
    html! {
        section {
            h2 id="summary" { a.anchor href="#summary" { "Summary" } }
            (classic_table(view, &summary.absolute, html! {
                span.swatch.best { "▲ best quarter of the column" } " " span.swatch.worst { "▼ worst quarter" } " "
                span.swatch.missed.sla_missed { "SLA missed" }
            }))
            (classic_table(view, &summary.relative, html! {
                span.swatch.above { "▲ above 1.05" } " " span.swatch.below { "▼ below 0.95" } " "
                span.swatch.plain.sla_missed { "SLA missed by the cell or the base: the ratio proves nothing" }
            }))
            @if view.cells.len() > 1 { (ratios(view)) }
            @if !summary.insert_rate.columns.is_empty() {
                (classic_table(view, &summary.insert_rate, html! { span.swatch.worst { "▼ missed its SLA" } }))
            }
            (reasons(view))
        }
    }
}

fn classic_table(view: &View, table: &ClassicTable, legend: Markup) -> Markup {
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) ". " span.legend { (legend) } }
        (scrolling(html! {
            table.classic {
                thead { tr { th {} @for column in &table.columns { th { a href={ "#" (super::step::anchor(column)) } { (column) } } } } }
                tbody {
                    @for (i, row) in table.rows.iter().enumerate() {
                        tr {
                            th { @match view.cells.get(i) { Some(cell) => (cell_name(i, cell)), None => (row.label) } }
                            @for cell in &row.cells { (classic_cell(cell)) }
                        }
                    }
                }
            }
        }))
    }
}

/// Why cells are not ok, in words.
fn reasons(view: &View) -> Markup {
    let mut lines: Vec<(usize, Vec<&str>, Status, &str)> = Vec::new();
    for i in 0..view.cells.len() {
        for step in &view.steps {
            let outcome = &step.outcomes[i];
            let Some(reason) = outcome.reason.as_deref().filter(|_| outcome.status != Status::Ok) else { continue };
            match lines.last_mut() {
                Some((cell, steps, status, last)) if (*cell, *status, *last) == (i, outcome.status, reason) => steps.push(&step.name),
                _ => lines.push((i, vec![&step.name], outcome.status, reason)),
            }
        }
    }
    html! {
        @if !lines.is_empty() {
            h3 { "What is not ok" }
            (scrolling(html! {
                table.text {
                    thead { tr { th { "cell" } th { "steps" } th { "status" } th { "reason" } } }
                    tbody {
                        @for (cell, steps, status, reason) in lines {
                            tr {
                                th { (cell_name(cell, &view.cells[cell])) }
                                td { (steps.join(" ")) }
                                td title=(status.meaning()) { (status.name().replace('_', " ")) }
                                td { (reason) }
                            }
                        }
                    }
                }
            }))
        }
    }
}
