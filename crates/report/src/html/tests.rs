//! The microbenchmarks at the top of the page: their tables, a chart per section, and the ramp.

use maud::{Markup, html};

use super::figures::{ramp_figure, section_figure};
use super::numbers::{decimal, time_ns};
use super::step::anchor;
use super::tables::{cell_name, classic_cell, dagger, scrolling};
use crate::view::{Ramp, TestTable, View};

pub(super) fn tests(view: &View) -> Markup {
    let summary = &view.summary;
    let (front, costs) = summary.tests.split_at(summary.tests.len().min(2));
    html! {
        @for table in front { (test_table(view, table, table.is_relative && view.cells.len() > 1)) }
        @for ramp in &summary.ramps { (ramp_table(view, ramp)) }
        @if !costs.is_empty() {
            h3 { "What a statement costs" }
            p.caption { "In brackets the ratio to the base; coloured where it is more than 5 % cheaper (▲) or dearer (▼)." }
            @for table in costs {
                details { summary { (table.title) } (test_table(view, table, false)) }
            }
        }
    }
}

fn test_table(view: &View, table: &TestTable, has_figures: bool) -> Markup {
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) "." }
        p.caption { (legend(table)) }
        @for section in &table.sections {
            h4 { (section.title) }
            (scrolling(html! {
                table.classic {
                    thead { tr { th {} @for (i, cell) in view.cells.iter().enumerate() { th { (cell_name(i, cell)) @if table.is_relative { (dagger(cell)) } } } } }
                    tbody {
                        @for row in &section.rows {
                            tr {
                                th { a href={ "#" (anchor(&row.step)) } { (row.step) } }
                                @for cell in &row.cells { (classic_cell(cell)) }
                            }
                        }
                    }
                }
            }))
            @if has_figures { (section_figure(view, section)) }
        }
    }
}

/// What the colours of a table mean; costs are coloured the other way round, by their inverse.
fn legend(table: &TestTable) -> Markup {
    html! {
        @if table.is_relative {
            span.swatch.above { "▲ above 1.05" } " " span.swatch.below { "▼ below 0.95" }
        } @else if table.title == "Throughput" {
            span.swatch.best { "▲ best quarter of the row" } " " span.swatch.worst { "▼ worst quarter" }
        } @else {
            span.swatch.above { "▲ more than 5 % less than the base" } " " span.swatch.below { "▼ more than 5 % more" }
        }
    }
}

fn ramp_table(view: &View, ramp: &Ramp) -> Markup {
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |us| time_ns(us * 1e3));
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| decimal(value, 0));
    let users = |place: Option<usize>| place.map_or_else(|| "–".to_owned(), |place| ramp.users[place].to_string());
    html! {
        h3 { "Ramp of " (ramp.test) }
        p.caption { (ramp.rate.unit) " over rising numbers of clients. The knee is the first number with at least 90 % of the highest rate." }
        (ramp_figure(view, ramp))
        @for (i, (cell, of_ramp)) in view.cells.iter().zip(&ramp.cells).enumerate() {
            p { (cell_name(i, cell)) (dagger(cell)) " peak at " (users(of_ramp.peak)) " clients, knee at " (users(of_ramp.knee)) }
            (scrolling(html! {
                table {
                    thead { tr { @for name in ["users", ramp.rate.name, "tps", "mean", "p95", "p99", "max"] { th { (name) } } } }
                    tbody {
                        @for (users, level) in ramp.users.iter().zip(&of_ramp.levels) {
                            tr {
                                th { a href={ "#" (anchor(&format!("{}@{users}", ramp.test))) } { (users) } }
                                td { (number(level.rate)) (level.status.mark()) }
                                td { (number(level.tps)) }
                                @for value in level.service_us { td { (time(value)) } }
                            }
                        }
                    }
                }
            }))
        }
    }
}
