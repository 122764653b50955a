//! How the tests of a plan are divided among hosts: the table `[hosts]` of a plan.
//!
//! A block is cut into parts. Each part loads the tables itself, runs some of the tests for all
//! cells, and never leaves its host. Which host that is changes neither the schedule nor the data.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::document::Document;
use super::sysbench::warms_up;
use super::{Cell, Family, Plan, PlanError, Step, Verdicts};
use crate::schedule::Blocks;
use crate::source::Source;
use crate::suggest::hint;
use crate::units::SECOND_NS;

/// What a step counts for whose time the plan does not fix.
const UNKNOWN_NS: u64 = 60 * SECOND_NS;

/// Which part of a block runs which tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// The tests of each part in their order, by the name that all levels of a ramp share. A step
    /// whose test is in none of them runs in every part: it makes the data, or warms up before all
    /// tests.
    pub parts: Vec<Vec<String>>,
}

/// `[hosts]` as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    split: Spanned<String>,
    parts: Option<Spanned<u32>>,
}

/// A test with what warms up for it alone: they stay together.
#[derive(Default)]
struct Group {
    tests: Vec<String>,
    /// What they take in the slowest cell, the wait behind them included.
    ns: u64,
}

impl Split {
    /// Divides the tests of these cells, which all have the same, into so many parts of tests that
    /// follow each other, so that the longest part is as short as can be. `None` if there are fewer
    /// tests than parts, or no part at all.
    pub fn of(cells: &[Cell], parts: usize) -> Option<Self> {
        let groups = groups(cells);
        if !(1..=groups.len()).contains(&parts) {
            return None;
        }
        let lengths: Vec<u64> = groups.iter().map(|group| group.ns).collect();
        let begins = cut(&lengths, parts);
        let ends = begins[1..].iter().copied().chain([groups.len()]);
        let of_part = |(begin, end): (&usize, usize)| {
            let tests = groups[*begin..end].iter().flat_map(|group| &group.tests);
            tests.cloned().collect()
        };
        Some(Self {
            parts: begins.iter().zip(ends).map(of_part).collect(),
        })
    }

    /// Whether a step runs in a part, which counts from 1.
    pub fn has(&self, part: u32, step: &Step) -> bool {
        let test = test_of(step);
        let mut parts = (1..).zip(&self.parts);
        let own = parts.find(|(_, tests)| tests.iter().any(|of| of == test));
        own.is_none_or(|(number, _)| number == part)
    }
}

impl Plan {
    /// The parts that a block is divided into; none if it is whole.
    pub fn parts(&self) -> Option<u32> {
        self.split.as_ref().map(|split| split.parts.len() as u32)
    }

    /// How often all cells run, and in how many parts.
    pub fn all_blocks(&self) -> Blocks {
        Blocks {
            count: self.blocks,
            parts: self.parts(),
        }
    }

    /// The steps of a trial of a cell, which runs this part of a block; of one that is whole all of
    /// the cell's steps.
    pub fn steps_of(&self, cell: usize, part: Option<u32>) -> Vec<&Step> {
        let split = self.split.as_ref().zip(part);
        let is_of_part = |step: &&Step| split.is_none_or(|(split, part)| split.has(part, step));
        let steps = self.cells[cell].workload.steps().iter();
        steps.filter(is_of_part).collect()
    }
}

/// The name of a step's test, without the clients of a level of a ramp.
fn test_of(step: &Step) -> &str {
    let name = step.name.as_str();
    name.split_once('@').map_or(name, |(test, _)| test)
}

/// The tests that can be divided, in the order they run.
fn groups(cells: &[Cell]) -> Vec<Group> {
    let mut tests: Vec<&str> = Vec::new();
    for step in cells.iter().flat_map(|cell| cell.workload.steps()) {
        if !step.makes_data() && !tests.contains(&test_of(step)) {
            tests.push(test_of(step));
        }
    }
    // What warms up before all others does so in every part, behind its load.
    let tests = tests.into_iter().skip_while(|test| warms_up(test));
    let mut groups: Vec<Group> = Vec::new();
    let mut open = Group::default();
    for test in tests {
        open.tests.push(test.to_owned());
        open.ns += longest(cells, test);
        if !warms_up(test) {
            groups.push(std::mem::take(&mut open));
        }
    }
    if let Some(last) = groups.last_mut() {
        last.tests.append(&mut open.tests);
        last.ns += open.ns;
    }
    groups
}

/// Nanoseconds of a test in the cell that takes longest for it.
fn longest(cells: &[Cell], test: &str) -> u64 {
    let of_cell = |cell: &Cell| -> u64 {
        let steps = cell.workload.steps().iter();
        let of_test = steps.filter(|step| test_of(step) == test);
        of_test
            .map(|step| {
                let wait = step.drain_after.then(|| cell.workload.wait_ns(step));
                let ns = step.duration_ns().unwrap_or(UNKNOWN_NS);
                ns + step.ends.warm_up_ns() + wait.unwrap_or(0)
            })
            .sum()
    };
    cells.iter().map(of_cell).max().unwrap_or(0)
}

/// Cuts a row of lengths into so many runs, none of them empty, so that the longest run is as short
/// as can be: where each begins. There are at least as many lengths as runs.
fn cut(lengths: &[u64], runs: usize) -> Vec<usize> {
    let mut sums = vec![0];
    sums.extend(lengths.iter().scan(0, |sum, length| {
        *sum += length;
        Some(*sum)
    }));
    // By how many lengths there are: the longest run of the best cut so far.
    let mut longest = sums.clone();
    let mut last_begins = vec![vec![0; sums.len()]];
    for run in 1..runs {
        let mut next = vec![u64::MAX; sums.len()];
        let mut begins = vec![0; sums.len()];
        for end in run + 1..sums.len() {
            for begin in run..end {
                let of_cut = longest[begin].max(sums[end] - sums[begin]);
                if of_cut < next[end] {
                    (next[end], begins[end]) = (of_cut, begin);
                }
            }
        }
        longest = next;
        last_begins.push(begins);
    }
    let mut end = lengths.len();
    let mut begins: Vec<usize> = last_begins
        .iter()
        .rev()
        .map(|begins| {
            end = begins[end];
            end
        })
        .collect();
    begins.reverse();
    begins
}

impl Source<'_> {
    /// How the plan's blocks are divided among hosts; none if they are whole.
    pub(super) fn split(
        &self,
        document: &Document,
        cells: &[Cell],
        verdicts: Option<Verdicts>,
    ) -> Result<Option<Split>, PlanError> {
        let Some(Written { split, parts }) = document.hosts.as_ref().map(Spanned::get_ref) else {
            return Ok(None);
        };
        let refuse = |message: &str| Err(self.error(Some(split.span()), message));
        let parts = match (split.get_ref().as_str(), parts) {
            ("none", None) => return Ok(None),
            ("cells", _) => {
                return refuse(
                    "cells are not divided: a ratio is one of two cells on the same host. Write \
                    several plans, each with the base and some of the builds; or run whole blocks \
                    on each host, with blocks = 6",
                );
            }
            ("none", Some(parts)) => {
                return Err(self.error(
                    Some(parts.span()),
                    "parts are for split = \"tests\": with \"none\" a block is whole",
                ));
            }
            ("tests", None) => {
                return refuse(
                    "split = \"tests\" needs parts: how many parts a block has, such as parts = 3 \
                    for 3 hosts",
                );
            }
            ("tests", Some(parts)) => parts,
            (other, _) => {
                let near = hint(other, ["none", "tests"]);
                return refuse(&format!(
                    "unknown value \"{other}\"{near}; known here: none, tests"
                ));
            }
        };
        if let Some(Verdicts::Budget(_)) = verdicts {
            return refuse(
                "by slices all servers run at once on one machine: with split write [verdicts] \
                blocks = 12, or leave [verdicts] out",
            );
        }
        let family = cells[0].workload.family();
        if !matches!(family, Family::Sysbench | Family::File) {
            return refuse(&format!(
                "{} has no tests to divide: each of its steps needs what those before it leave; \
                without split hosts run whole blocks",
                cells[0].workload.title()
            ));
        }
        let tests = groups(cells).len();
        let count = *parts.get_ref() as usize;
        match Split::of(cells, count).filter(|_| count > 1) {
            Some(split) => Ok(Some(split)),
            None if tests < 2 => refuse("one test cannot be divided: leave split out"),
            None => Err(self.error(
                Some(parts.span()),
                format!("parts must be 2 to {tests}, the number of tests, not {count}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(more: &str) -> Result<Plan, PlanError> {
        let text = format!(
            "name = \"t\"\nworkload = \"sysbench-2025\"\nbuilds = [\"sqlite\"]\nconfigs = \
             [\"wal_full\", \"wal_off\"]\nwait = \"0s\"\n{more}"
        );
        Plan::parse("t.toml", &text)
    }

    const SIZES: &str = "[sizes]\nrows = \"50K\"\nduration = \"2s\"\nwarm_up = \"0s\"\n";

    fn names<'s>(steps: &[&'s Step]) -> Vec<&'s str> {
        steps.iter().map(|step| step.name.as_str()).collect()
    }

    #[test]
    fn every_test_runs_in_one_part_and_what_makes_the_data_in_all() {
        let hosts = "[hosts]\nsplit = \"tests\"\nparts = 3\n";
        let plan = plan(&format!("{hosts}{SIZES}")).unwrap();
        assert_eq!(plan.parts(), Some(3));
        let all: Vec<&str> = names(&plan.steps_of(0, None));
        assert_eq!(all.len(), 39);
        let common = ["prepare", "point-query.warm", "scan.warmpre"];
        let mut seen: Vec<&str> = common.to_vec();
        for part in 1..=3 {
            let steps = names(&plan.steps_of(1, Some(part)));
            assert_eq!(steps[..3], common, "part {part}");
            seen.extend(&steps[3..]);
        }
        assert_eq!(seen, all, "in the order of the plan");
        // What warms up for one test runs just before it.
        let of_third = names(&plan.steps_of(0, Some(3)));
        let warm = of_third
            .iter()
            .position(|name| *name == "points-covered-si.warm");
        assert_eq!(of_third[warm.unwrap() + 1], "points-covered-si");
        // 36 tests of 2 s: no part has more than a third and one.
        let most = plan.split.unwrap().parts.iter().map(Vec::len).max();
        assert!(most.unwrap() <= 13, "{most:?}");
    }

    #[test]
    fn levels_of_a_ramp_stay_together() {
        let more = "tests = [\"point-query\", \"scan\", \"insert\"]\n[hosts]\nsplit = \"tests\"\n\
                    parts = 2\n[sizes]\nrows = \"50K\"\nduration = \"2s\"\nramp = [1, 2]\n";
        let plan = plan(more).unwrap();
        let of = |part| names(&plan.steps_of(0, Some(part))).join(" ");
        assert_eq!(of(1), "prepare scan@1 scan@2");
        assert_eq!(
            of(2),
            "prepare point-query@1 point-query@2 insert@1 insert@2"
        );
    }

    #[test]
    fn the_longest_part_is_as_short_as_can_be() {
        for (lengths, runs, begins) in [
            (&[1, 1, 1, 1][..], 2, &[0, 2][..]),
            (&[9, 1, 1, 1, 9], 3, &[0, 1, 4]),
            (&[1, 2, 3, 4, 5, 6], 3, &[0, 3, 5]),
            (&[5, 5], 2, &[0, 1]),
            (&[5, 5], 1, &[0]),
        ] {
            assert_eq!(cut(lengths, runs), begins, "{lengths:?}");
        }
    }

    /// Against every cut there is.
    #[test]
    fn no_other_cut_is_better() {
        let mut draw = crate::seed::Draw::new(7, &["cut"]);
        for _ in 0..200 {
            let lengths: Vec<u64> = (0..7).map(|_| 1 + draw.below(20)).collect();
            let worst = |begins: &[usize]| {
                let ends = begins[1..].iter().copied().chain([lengths.len()]);
                let runs = begins.iter().zip(ends);
                runs.map(|(begin, end)| lengths[*begin..end].iter().sum::<u64>())
                    .max()
            };
            let others = (1..6).flat_map(|a| (a + 1..7).map(move |b| [0, a, b]));
            let best = others.map(|begins| worst(&begins)).min().unwrap();
            assert_eq!(worst(&cut(&lengths, 3)), best, "{lengths:?}");
        }
    }

    #[test]
    fn what_cannot_be_divided_is_refused() {
        let hosts = |table: &str| format!("[hosts]\n{table}\n{SIZES}");
        for (table, wanted) in [
            (
                "split = \"tests\"",
                "t.toml:7:9: split = \"tests\" needs parts",
            ),
            (
                "split = \"none\"\nparts = 2",
                "t.toml:8:9: parts are for split",
            ),
            (
                "split = \"tests\"\nparts = 1",
                "t.toml:8:9: parts must be 2 to 34, the number of tests, not 1",
            ),
            ("split = \"tests\"\nparts = 99", "not 99"),
            (
                "split = \"cells\"\nparts = 2",
                "t.toml:7:9: cells are not divided: a ratio is one of two cells on the same host",
            ),
            (
                "split = \"test\"\nparts = 2",
                "t.toml:7:9: unknown value \"test\" (did you mean \"tests\"?); known here: none",
            ),
            (
                "split = \"tests\"\npats = 2",
                "unknown key \"pats\" (did you mean \"parts\"?",
            ),
        ] {
            let error = plan(&hosts(table)).unwrap_err().to_string();
            assert!(error.contains(wanted), "{table}: {error}");
        }
        assert_eq!(plan(&hosts("split = \"none\"")).unwrap().split, None);
        let both = "[verdicts]\nbudget = \"5m\"\n[hosts]\nsplit = \"tests\"\nparts = 2\n";
        let error = plan(&format!("{both}{SIZES}")).unwrap_err().to_string();
        assert!(
            error.contains("with split write [verdicts] blocks"),
            "{error}"
        );
        let one = format!(
            "tests = [\"scan\"]\n{}",
            hosts("split = \"tests\"\nparts = 2")
        );
        let error = plan(&one).unwrap_err().to_string();
        assert!(error.contains("one test cannot be divided"), "{error}");
        let text = "name = \"t\"\nworkload = \"insert-benchmark\"\nbuilds = [\"sqlite\"]\nconfigs \
                    = [\"wal_full\"]\n[hosts]\nsplit = \"tests\"\nparts = 2\n";
        let error = Plan::parse("t.toml", text).unwrap_err().to_string();
        assert!(
            error.contains("Insert Benchmark has no tests to divide"),
            "{error}"
        );
    }
}
