//! A post as Markdown.

use std::fmt::Write as _;

use plimsoll_analysis::post::{Bullet, Figure, Part, Post, Section};

use super::drawn;
use super::tables::add_group;
use crate::markdown::escape;

/// The whole text. Figures are files beside it.
pub fn to_post_markdown(post: &Post) -> String {
    let mut text = format!("# {}\n\n{}\n", escape(&post.title), escape(&post.lead.text));
    if !post.tldr.is_empty() {
        text.push_str("\n## tl;dr\n\n");
        add_bullets(&mut text, &post.tldr);
    }
    for section in &post.sections {
        add_section(&mut text, post, section);
    }
    text
}

fn add_section(text: &mut String, post: &Post, section: &Section) {
    line(text, &format!("\n## {}", escape(&section.title)));
    for part in &section.parts {
        match part {
            Part::Text(sentence) => line(text, &format!("\n{}", escape(&sentence.text))),
            Part::List(list) => {
                if !list.heading.is_empty() {
                    line(text, &format!("\n{}", escape(&list.heading)));
                }
                text.push('\n');
                add_bullets(text, &list.bullets);
            }
            Part::Table { table, group } => {
                let table = &post.tables[*table];
                let caption = format!("{}: {}", table.title, table.caption);
                line(text, &format!("\n{}", escape(&caption)));
                let shown = table.groups.iter().enumerate();
                let shown = shown.filter(|(place, _)| group.is_none_or(|of| of == *place));
                shown.for_each(|(_, group)| add_group(text, table, group));
            }
            Part::Figure(figure) => add_figure(text, figure),
        }
    }
}

/// Pictures beside the text, and below them what they show.
fn add_figure(text: &mut String, figure: &Figure) {
    for drawing in drawn::draw(figure) {
        let alt = escape(&figure.alt);
        line(text, &format!("\n![{alt}](figures/{}.png)", drawing.name));
    }
    line(text, &format!("\n*{}*", escape(&figure.caption)));
}

fn add_bullets(text: &mut String, bullets: &[Bullet]) {
    for bullet in bullets {
        line(text, &format!("- {}", escape(&bullet.sentence.text)));
        for nested in &bullet.nested {
            line(text, &format!("  - {}", escape(&nested.text)));
        }
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}
