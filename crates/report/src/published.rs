//! Tables in published form, for terminals, Markdown and pages: a row per test, a numbered column
//! per cell.

use std::fmt::Write as _;

use maud::{Markup, html};

use crate::html::tables::header;
use plimsoll_analysis::view::{ClassicCell, PublishedTable};

/// The base, and which number stands for which cell, one a line, as published tables begin.
pub(crate) fn legend(table: &PublishedTable) -> Vec<String> {
    let base = table.base.iter().map(|base| format!("Relative to: {base}"));
    base.chain(
        table
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| format!("col-{} : {column}", i + 1)),
    )
    .collect()
}

fn headings(table: &PublishedTable) -> Vec<String> {
    (1..=table.columns.len())
        .map(|column| format!("col-{column}"))
        .collect()
}

/// The numbers before the test, aligned; `paint` colours a cell's text that was padded before.
pub(crate) fn to_lines(
    table: &PublishedTable,
    paint: impl Fn(&ClassicCell, &str) -> String,
) -> String {
    let mut text = String::new();
    let headings = headings(table);
    let rows = || table.sections.iter().flat_map(|section| &section.rows);
    let width = |column: usize| {
        rows()
            .map(|row| row.cells[column].text().chars().count())
            .chain([headings[column].len()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    for line in legend(table) {
        writeln!(text, "{line}").expect("writing to a string cannot fail");
    }
    for section in &table.sections {
        text.push('\n');
        if !section.title.is_empty() {
            writeln!(text, "- {}", section.title).expect("writing to a string cannot fail");
        }
        let heading: Vec<String> = headings
            .iter()
            .zip(&widths)
            .map(|(heading, width)| format!("{heading:>width$}"))
            .collect();
        writeln!(text, "{}", heading.join("  ")).expect("writing to a string cannot fail");
        for row in &section.rows {
            let cells: Vec<String> = row
                .cells
                .iter()
                .zip(&widths)
                .map(|(cell, width)| paint(cell, &format!("{:>width$}", cell.text())))
                .collect();
            writeln!(text, "{}  {}", cells.join("  "), row.label)
                .expect("writing to a string cannot fail");
        }
    }
    text
}

/// For pages: the test first, sections as rows of their own.
pub(crate) fn to_html(table: &PublishedTable, cell: impl Fn(&ClassicCell) -> Markup) -> Markup {
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) "." }
        p.caption { @for line in legend(table) { (line) br; } }
        div.scroll tabindex="0" {
            table.classic {
                (header(std::iter::once(String::new()).chain(headings(table))))
                tbody {
                    @for section in &table.sections {
                        @if !section.title.is_empty() {
                            tr { th colspan=(table.columns.len() + 1) { (section.title) } }
                        }
                        @for row in &section.rows {
                            tr { th { (row.label) } @for of in &row.cells { (cell(of)) } }
                        }
                    }
                }
            }
        }
    }
}
