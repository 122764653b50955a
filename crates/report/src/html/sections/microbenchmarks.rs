//! The microbenchmarks at the top of the page: their tables, a chart per section, and the ramp.

use maud::{Markup, html};

use crate::html::figures::ramp::ramp_figure;
use crate::html::figures::section::section_figure;
use crate::html::numbers::{decimal, time_ns};
use crate::html::step::anchor;
use crate::html::tables::{
    cell_name, classic_cell, dagger, header, header_of_cells, scrolling, status_word,
};
use plimsoll_analysis::view::{CellInfo, Ramp, Status, TestSubject, TestTable, View};
use plimsoll_analysis::words::waiting::excludes;

pub(crate) fn tests(view: &View) -> Markup {
    let summary = &view.summary;
    let (costs, front): (Vec<&TestTable>, Vec<&TestTable>) = summary
        .tests
        .iter()
        .partition(|table| table.subject == TestSubject::Cost);
    html! {
        @for table in front { (test_table(view, table, table.subject == TestSubject::Relative)) }
        @for ramp in &summary.ramps { (ramp_table(view, ramp)) }
        @if !costs.is_empty() {
            h3 { "What a statement costs" }
            p.caption { "In brackets the ratio to the base; coloured where it is more than 5 % \
                        cheaper (▲) or dearer (▼)." }
            @for table in costs {
                details { summary { (table.title) } (test_table(view, table, false)) }
            }
        }
    }
}

fn test_table(view: &View, table: &TestTable, has_figures: bool) -> Markup {
    let has_daggers = table.subject == TestSubject::Relative;
    let name = |i: usize, cell: &CellInfo| {
        html! { (cell_name(i, cell)) @if has_daggers { (dagger(cell)) } }
    };
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) "." }
        p.caption { (legend(table)) }
        @for section in &table.sections {
            h4 { (section.title) }
            (scrolling(html! {
                table.classic {
                    (header_of_cells(&[""], view, name))
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
        @match table.subject {
            TestSubject::Relative => {
                span.swatch.above { "▲ above 1.05" } " " span.swatch.below { "▼ below 0.95" }
            }
            TestSubject::Throughput => {
                span.swatch.best { "▲ best quarter of the row" } " "
                span.swatch.worst { "▼ worst quarter" }
            }
            TestSubject::Response | TestSubject::Cost => {
                span.swatch.above { "▲ more than 5 % less than the base" }
                " "
                span.swatch.below { "▼ more than 5 % more" }
            }
        }
    }
}

fn ramp_table(view: &View, ramp: &Ramp) -> Markup {
    let time = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |us| time_ns(us * 1e3));
    let number =
        |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| decimal(value, 0));
    let events = ramp.events_heading();
    let columns = ["users", ramp.rate.name, events, "mean", "p95", "p99", "max"];
    let response = ramp.is_open_loop().then_some("response p99");
    let meaning = |status: Status| (status != Status::Ok).then(|| status.meaning());
    let users = |place: Option<usize>| {
        place.map_or_else(|| "–".to_owned(), |place| ramp.users[place].to_string())
    };
    html! {
        h3 { "Ramp of " (ramp.test) }
        p.caption { (ramp.rate.unit) " over rising numbers of clients. The knee is the first \
                                     number with at least 90 % of the highest rate." }
        (ramp_figure(view, ramp))
        @for (i, (cell, of_ramp)) in view.cells.iter().zip(&ramp.cells).enumerate() {
            p { (cell_name(i, cell)) (dagger(cell)) " peak at " (users(of_ramp.peak)) " clients, \
                knee at " (users(of_ramp.knee)) }
            (scrolling(html! {
                table {
                    (header(columns.into_iter().chain(response)))
                    tbody {
                        @for (users, level) in ramp.users.iter().zip(&of_ramp.levels) {
                            tr {
                                th {
                                    a href={ "#" (anchor(&format!("{}@{users}", ramp.test))) } {
                                        (users)
                                    }
                                }
                                td
                                    title=[meaning(level.status)] {
                                    (number(level.rate))
                                    @if let Some(word) = status_word(level.status) {
                                        " " span.mark { (word) }
                                    }
                                }
                                td { (number(level.tps)) }
                                @for value in level.service_us {
                                    td title=[level.excluded_wait_s.map(excludes)] { (time(value)) }
                                }
                                @if response.is_some() {
                                    td {
                                        @if level.is_lower_bound { "≥ " }
                                        (time(level.p99_response_us))
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
