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
    let names = short_names(&table.columns);
    let columns = names.iter().zip(&table.columns);
    let columns = columns.map(|(name, column)| html! { abbr title=(column) { (name) } });
    html! {
        h3 { (table.title) }
        p.caption { (table.caption) "." }
        @if let Some(base) = &table.base { p.caption { "Relative to: " (base) } }
        div.scroll tabindex="0" {
            table.classic {
                (header(std::iter::once(html! {}).chain(columns)))
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

/// The shortest names that tell columns apart: what all of them begin or end with, part by part, is
/// left out, as in `my5651` of `x.my5651_rel_o2nofp.z12a_c8r32.pk1`.
fn short_names(columns: &[String]) -> Vec<String> {
    let is_between = |c: char| c == '.' || c == '_';
    let parts: Vec<Vec<&str>> = columns
        .iter()
        .map(|column| column.split(is_between).collect())
        .collect();
    let Some((first, others)) = parts.split_first().filter(|(_, others)| !others.is_empty()) else {
        return columns.to_vec();
    };
    let fewest = parts.iter().map(Vec::len).min().unwrap_or(0);
    let is_common = |from_end: bool, at: usize| {
        let part = |of: &[&str]| match from_end {
            true => of[of.len() - 1 - at].to_owned(),
            false => of[at].to_owned(),
        };
        others.iter().all(|other| part(other) == part(first))
    };
    // A version stays whole, and a name is left of each.
    let is_number = |part: &str| part.starts_with(|c: char| c.is_ascii_digit());
    let front = (0..fewest.saturating_sub(1))
        .take_while(|at| is_common(false, *at) && !is_number(first[*at + 1]))
        .count();
    let left = fewest.saturating_sub(front + 1);
    let back = (0..left).take_while(|at| is_common(true, *at)).count();
    columns
        .iter()
        .zip(&parts)
        .map(|(column, parts)| {
            // Cut from the text, so that what is between parts stays.
            let begin: usize = parts[..front].iter().map(|part| part.len() + 1).sum();
            let end: usize = parts[parts.len() - back..]
                .iter()
                .map(|part| part.len() + 1)
                .sum();
            column[begin..column.len() - end].to_owned()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::short_names;

    #[test]
    fn what_columns_have_in_common_is_left_out() {
        for (columns, expected) in [
            (
                &["x.my5651_rel.z12a.pk1", "x.my5744_rel.z12a.pk1"][..],
                &["my5651", "my5744"][..],
            ),
            (&["a.b", "a.c"], &["b", "c"]),
            (&["a.b", "a.b.c"], &["b", "b.c"]),
            (&["8.0.0.lc", "8.0.1.lc"], &["8.0.0", "8.0.1"]),
            (
                &["rocksdb@8.0.0.lc", "rocksdb@8.0.0.uc"],
                &["rocksdb@8.0.0.lc", "rocksdb@8.0.0.uc"],
            ),
            (&["alone.c"], &["alone.c"]),
            (&["same", "same"], &["same", "same"]),
        ] {
            let columns: Vec<String> = columns.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(short_names(&columns), expected, "{columns:?}");
        }
    }
}
