//! A post: the text that the author of a benchmark would write, as a value.
//!
//! ```text
//! View -> releases   cells -> products, versions, series and who speaks for them
//!      -> material   tests in groups, with the rates that may be claimed
//!      -> noise      twins, tests with two states, where a change arrived
//!      -> changes    a group from series to series: stable, all, counted
//!      -> costs      the telling test, and what its costs explain
//!      -> Post       sections of sentences with their cells, tables, figures
//! ```
//! Single runs have words whose thresholds are in `thresholds`, a campaign with verdicts those of
//! its verdicts (`judged`), and never in both. The rules are in `docs/methods/posts.md`.

mod about;
mod changes;
pub mod check;
mod costs;
mod engines;
mod figures;
#[cfg(test)]
mod fixture;
mod flames;
mod imported_ramps;
mod insert_benchmark;
mod judged;
mod latency;
mod limits;
mod material;
mod noise;
mod ramps;
mod releases;
mod rocksdb;
mod single;
mod summary;
mod tables;
mod text;
mod thresholds;
mod together;
mod value;
mod words;

pub(crate) use insert_benchmark::missed_named_rate;
pub(crate) use material::has_writes;
pub use value::{
    Bullet, Chart, Figure, Form, Line, List, OverSeconds, Part, Post, Said, Section, Sentence,
    Standing, Table, TableCell, TableGroup, TableRow,
};
pub use words::{GroupWords, PairWords, in_words};
pub(crate) use words::{OVER_USERS, RowRatio, is_rocksdb, of_pair};

use std::collections::BTreeSet;

use crate::AnalysisError;
use crate::cells::selection::{find_base, of_cells};
use crate::view::View;

/// What somebody asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostOptions {
    /// What ratios divide by: the first in all sentences, the others in tables and figures of their
    /// own. Each is an exact cell, else an exact build, else the text of builds before the first
    /// `_`. [default: the oldest version, then the newest patch of the series from which on most is
    /// stable]
    pub bases: Vec<String>,
    /// Groups with the test that explains them, in place of the one that the rule finds.
    pub telling: Vec<(String, String)>,
}

/// Writes the post of a view.
///
/// # Errors
/// A base that names no cell or several, a group or test that the view does not have.
pub fn post(view: &View, options: &PostOptions) -> Result<Post, AnalysisError> {
    post_beside(view, &[], options)
}

/// [`post`] with verdicts against other bases beside it: `others` are views of the same campaign,
/// each with a base of its own. A post of single runs has no use for them.
///
/// # Errors
/// As [`post`].
pub fn post_beside(
    view: &View,
    others: &[View],
    options: &PostOptions,
) -> Result<Post, AnalysisError> {
    let bases = bases(view, &options.bases)?;
    let subjects = material::subjects(view, &bases);
    check_telling(&subjects, &options.telling)?;
    let mut post = match has_verdicts(view) {
        true => judged::post(view, others, &subjects),
        false => single::post(view, &subjects, &bases, &options.telling),
    };
    name_files_apart(&mut post);
    Ok(post)
}

/// Whether verdicts decide the words.
pub fn has_verdicts(view: &View) -> bool {
    !view.findings.is_empty() && !view.findings.is_screen()
}

/// Names that become one in a file's name, such as `a_1` and `a-1`, get a number: no file is
/// written over another.
fn name_files_apart(post: &mut Post) {
    apart(post.tables.iter_mut().map(|table| &mut table.name));
    let parts = post.sections.iter_mut().flat_map(|of| &mut of.parts);
    apart(parts.filter_map(|part| match part {
        Part::Figure(figure) => Some(&mut figure.name),
        _ => None,
    }));
}

/// File systems that know no case are thought of.
fn apart<'a>(names: impl Iterator<Item = &'a mut String>) {
    let mut known = BTreeSet::new();
    for name in names {
        let own = name.clone();
        let mut number = 2;
        while !known.insert(name.to_lowercase()) {
            *name = format!("{own}-{number}");
            number += 1;
        }
    }
}

/// The cells of the bases that were asked for.
fn bases(view: &View, names: &[String]) -> Result<Vec<usize>, AnalysisError> {
    let candidates = of_cells(&view.cells);
    let one = |name: &String| find_base(name, &candidates);
    names.iter().map(one).collect()
}

fn check_telling(
    subjects: &[material::Subject],
    telling: &[(String, String)],
) -> Result<(), AnalysisError> {
    for (title, test) in telling {
        let groups = || {
            subjects
                .iter()
                .flat_map(|subject| subject.groups.iter().map(move |group| (subject, group)))
        };
        let titles = groups().map(|(_, group)| group.title.as_str());
        if !groups().any(|(_, group)| group.title == *title) {
            return Err(AnalysisError::unknown_step(title, titles));
        }
        let tests = groups()
            .filter(|(_, group)| group.title == *title)
            .flat_map(|(subject, group)| group.tests.iter().map(|at| &subject.tests[*at].name));
        let tests: Vec<&str> = tests.map(String::as_str).collect();
        if !tests.contains(&test.as_str()) {
            return Err(AnalysisError::unknown_step(test, tests.into_iter()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_written_over_another() {
        let names = ["a_1", "a-1", "A-1", "a-1-2"];
        let mut names: Vec<String> = names.map(|name| tables::file_name(&[name])).into();
        apart(names.iter_mut());
        assert_eq!(names, ["a-1", "a-1-2", "A-1-3", "a-1-2-2"]);
    }
}
