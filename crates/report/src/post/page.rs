//! A post as one HTML page that needs no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_analysis::post::{
    Bullet, Part, Post, Section, Sentence, Standing, Table, TableCell, TableGroup,
};

use super::drawn;

const STYLE: &str = include_str!("../../assets/post.css");

/// What the page may do: style itself. Nothing may be fetched or run.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";

/// The whole page.
pub(super) fn to_page(post: &Post) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="generator" content="plimsoll";
                title { (post.title) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (post.title) }
                    p { (post.lead.text) }
                    @if !post.tldr.is_empty() {
                        h2 { "tl;dr" }
                        (bullets(&post.tldr))
                    }
                    @for of in &post.sections { (section(post, of)) }
                }
            }
        }
    };
    page.into_string()
}

fn section(post: &Post, of: &Section) -> Markup {
    html! {
        h2 { (of.title) }
        @for part in &of.parts {
            @match part {
                Part::Text(sentence) => p { (sentence.text) },
                Part::List(list) => {
                    @if !list.heading.is_empty() { p.heading { (list.heading) } }
                    (bullets(&list.bullets))
                }
                Part::Table { table, group } => (table_of(&post.tables[*table], *group)),
                Part::Figure(figure) => {
                    figure {
                        @for drawing in drawn::draw(figure) { (PreEscaped(drawing.svg)) }
                    }
                }
            }
        }
    }
}

/// A sentence with the cells it rests on in its tooltip.
fn sentence(of: &Sentence) -> Markup {
    let cells: Vec<String> = of
        .cells
        .iter()
        .map(|said| {
            format!(
                "{} {} {} / {}: {:.3}",
                said.test, said.metric, said.to, said.from, said.ratio
            )
        })
        .collect();
    html! {
        @if cells.is_empty() { (of.text) }
        @else { span title=(cells.join("\n")) { (of.text) } }
    }
}

fn bullets(of: &[Bullet]) -> Markup {
    html! {
        ul {
            @for bullet in of {
                li {
                    (sentence(&bullet.sentence))
                    @if !bullet.nested.is_empty() {
                        ul { @for nested in &bullet.nested { li { (sentence(nested)) } } }
                    }
                }
            }
        }
    }
}

fn table_of(table: &Table, group: Option<usize>) -> Markup {
    let shown = table.groups.iter().enumerate();
    let shown = shown.filter(|(place, _)| group.is_none_or(|of| of == *place));
    html! {
        p.caption { (table.title) ": " (table.caption) }
        @for (_, of) in shown { (block(table, of)) }
    }
}

fn block(table: &Table, group: &TableGroup) -> Markup {
    let has_notes = group.rows.iter().any(|row| !row.note.is_empty());
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        th { (group.title) }
                        @for (name, label) in &table.columns { th title=(label) { (name) } }
                        @if has_notes { th.note { "note" } }
                    }
                }
                tbody {
                    @for row in &group.rows {
                        tr {
                            th { (row.label) }
                            @for of in &row.cells { (cell(of)) }
                            @if has_notes { td.note { (row.note) } }
                        }
                    }
                }
            }
        }
    }
}

/// A colour never stands alone: a sign is beside it.
fn cell(of: &TableCell) -> Markup {
    let (class, sign) = match of.standing {
        Standing::Plain => ("", ""),
        Standing::Worse => ("worse", "\u{25be} "),
        Standing::Better => ("better", "\u{25b4} "),
    };
    html! { td class=(class) { (sign) (of.text) (of.mark) } }
}
