//! A human's text held against a campaign: which of its numbers are in the data.
//!
//! A line that the campaign's own post has is found. In any other line the releases, the test and
//! the metric that it speaks about are looked for, and each of its numbers is compared with what
//! the campaign says about them. Words that claim a number, `all tests` and `stable`, are numbers
//! here. If the campaign has nothing about a percentage, it is held against values that the text
//! lists itself.

mod claims;
mod context;
mod lists;
mod tokens;

use std::collections::BTreeSet;

use super::material::subjects;
use super::value::{Part, Post};
use super::{PostOptions, bases, post_beside};
use crate::AnalysisError;
use crate::view::View;
use claims::{Claims, Found};
use context::Context;
use lists::Lists;
use tokens::{Token, tokens};

/// A number of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Its line, from 1.
    pub line: usize,
    /// As the text has it: `23%`, `5 tests`, `all tests`, `stable`.
    pub number: String,
    pub standing: Standing,
    /// What there is instead, where it is not the same; else empty.
    pub instead: String,
    /// Why nobody can tell, where the campaign has nothing about it; else empty.
    pub why: String,
    /// Who has it, or has the other number: `the campaign`, or `the text's own list`; empty where
    /// nobody can tell.
    pub holder: &'static str,
}

/// Holds most numbers.
const CAMPAIGN: &str = "the campaign";
/// Holds what the campaign has nothing about, if the text lists values.
const OWN_LIST: &str = "the text's own list";

/// Whether the campaign has a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    Found,
    /// Another patch release of the series, or rounded values, give it.
    OtherRounding,
    NotFound,
    /// Nothing in the campaign is about it: hardware, dates, other results.
    Unknown,
}

impl Standing {
    pub fn words(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::OtherRounding => "other rounding",
            Self::NotFound => "not found",
            Self::Unknown => "not in the campaign",
        }
    }
}

/// Checks each number of a text.
///
/// # Errors
/// Those of [`post_beside`].
pub fn check(
    view: &View,
    options: &PostOptions,
    text: &str,
) -> Result<Vec<Checked>, AnalysisError> {
    check_beside(view, &[], options, text)
}

/// [`check`] of a text that may quote verdicts against other bases; `others` are as in
/// [`post_beside`].
///
/// # Errors
/// Those of [`post_beside`].
pub fn check_beside(
    view: &View,
    others: &[View],
    options: &PostOptions,
    text: &str,
) -> Result<Vec<Checked>, AnalysisError> {
    let own = post_beside(view, others, options)?;
    let known: BTreeSet<String> = own_lines(&own).into_iter().collect();
    let subjects = subjects(view, &bases(view, &options.bases)?);
    let mut context = Context::new(&subjects);
    let lists = Lists::of(text);
    let mut checked = Vec::new();
    for (place, line) in text.lines().enumerate() {
        context.enter(line);
        let line_tokens = tokens(line, &context.names());
        if line_tokens.is_empty() {
            continue;
        }
        let is_own = known.contains(&squeezed(line));
        for clause in context.clauses(line) {
            for token in tokens(&clause.text, &context.names()) {
                let found = match is_own {
                    true => Found::Yes,
                    false => Claims {
                        view,
                        clause: &clause,
                    }
                    .of(&token),
                };
                let (found, holder) = match found {
                    Found::Nothing(why) => match lists.find(place + 1, line, &token) {
                        Some(of_list) => (of_list, OWN_LIST),
                        None => (Found::Nothing(why), ""),
                    },
                    found => (found, CAMPAIGN),
                };
                checked.push(checked_of(place + 1, &token, found, holder));
            }
        }
    }
    Ok(checked)
}

fn checked_of(line: usize, token: &Token, found: Found, holder: &'static str) -> Checked {
    let why = match &found {
        Found::Nothing(why) => why.clone(),
        _ => String::new(),
    };
    let (standing, instead) = match found {
        Found::Yes => (Standing::Found, String::new()),
        Found::Otherwise(instead) => (Standing::OtherRounding, instead),
        Found::No(instead) => (Standing::NotFound, instead),
        Found::Nothing(_) => (Standing::Unknown, String::new()),
    };
    Checked {
        line,
        number: token.text.clone(),
        standing,
        instead,
        why,
        holder,
    }
}

/// Letters, digits and what is in numbers, without markup: bullets, Markdown's marks and blanks
/// fall away, and of a picture its text is left.
fn squeezed(line: &str) -> String {
    let line = line.trim_start_matches(['-', '*', '#', '>', ' ']);
    let picture = line
        .strip_prefix("![")
        .and_then(|rest| rest.split_once("]("));
    let line = picture.map_or(line, |(text, _)| text);
    let is_kept = |c: &char| c.is_alphanumeric() || ".%~+-†‡".contains(*c);
    line.chars().filter(is_kept).collect()
}

/// Everything that the campaign's own post says, a line each.
fn own_lines(post: &Post) -> Vec<String> {
    let sentences = post.sentences().into_iter().map(|of| of.text.clone());
    let mut lines: Vec<String> = sentences.chain([post.title.clone()]).collect();
    for section in &post.sections {
        lines.push(section.title.clone());
        for part in &section.parts {
            match part {
                Part::List(list) if !list.heading.is_empty() => lines.push(list.heading.clone()),
                Part::Figure(figure) => {
                    lines.extend([&figure.title, &figure.caption, &figure.alt].map(Clone::clone));
                }
                _ => {}
            }
        }
    }
    for table in &post.tables {
        let both = format!("{}: {}", table.title, table.caption);
        lines.extend([table.title.clone(), table.caption.clone(), both]);
        lines.extend(table.base.clone());
        for (name, label) in &table.columns {
            lines.extend([name.clone(), format!("{name} {label}")]);
        }
        lines.push(
            table
                .columns
                .iter()
                .map(|(name, _)| name.as_str())
                .collect(),
        );
        for row in table.groups.iter().flat_map(|group| &group.rows) {
            let cells = row
                .cells
                .iter()
                .map(|cell| format!("{}{}", cell.text, cell.mark));
            lines.push(cells.chain([row.label.clone(), row.note.clone()]).collect());
            let cells = row
                .cells
                .iter()
                .map(|cell| format!("{}{}", cell.text, cell.mark));
            let label = std::iter::once(row.label.clone());
            lines.push(label.chain(cells).chain([row.note.clone()]).collect());
        }
    }
    let mut lines: Vec<String> = lines.iter().map(|line| squeezed(line)).collect();
    lines.retain(|line| !line.is_empty());
    lines
}
