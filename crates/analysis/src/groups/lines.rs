//! Groups in words.

use super::group::Group;
use crate::verdicts::{Basis, Role, change_with_interval};
use crate::view::View;

/// `point queries`, and of a level of a ramp `point queries at 8 clients`.
pub fn section(group: &Group) -> String {
    match group.level {
        None => group.section.title().to_owned(),
        Some(level) => format!("{} at {level} clients", group.section.title()),
    }
}

/// `8 of 9 tests regressed`, `9 tests: 2 regressed, 1 improved`, `5 tests, none is shown to differ; 1
/// left out`.
pub fn tests_in_words(group: &Group) -> String {
    let all = group.tests.len();
    let counted = match (group.regressed, group.improved) {
        (0, 0) => format!("{all} tests, none is shown to differ"),
        (regressed, 0) => format!("{regressed} of {all} tests regressed"),
        (0, improved) => format!("{improved} of {all} tests improved"),
        (regressed, improved) => {
            format!("{all} tests: {regressed} regressed, {improved} improved")
        }
    };
    match group.left_out.len() {
        0 => counted,
        out => format!("{counted}; {out} left out"),
    }
}

/// What its estimate rests on: `8 starts`, or `1 block`; `0 starts` if it has none.
pub fn starts_in_words(group: &Group) -> String {
    let starts = group.estimate.map_or(0, |estimate| estimate.starts);
    let noun = match group.basis {
        Basis::Slices => "start",
        _ => "block",
    };
    let ends = if starts == 1 { "" } else { "s" };
    format!("{starts} {noun}{ends}")
}

/// The columns of each group's line in a terminal: section, cells, verdict, change, what it rests
/// on, and how many of its tests differ.
pub fn group_lines(view: &View) -> Vec<Vec<String>> {
    let of_throughput = |group: &&Group| group.role == Role::Throughput;
    let columns = |group: &Group| {
        let cells = format!(
            "{} vs {}",
            view.cells[group.cell].label, view.cells[group.base].label
        );
        let change = match &group.estimate {
            None => "no start in common".to_owned(),
            Some(estimate) => change_with_interval(estimate),
        };
        vec![
            section(group),
            cells,
            group.verdict.name().to_owned(),
            change,
            starts_in_words(group),
            tests_in_words(group),
        ]
    };
    view.groups
        .iter()
        .filter(of_throughput)
        .map(columns)
        .collect()
}
