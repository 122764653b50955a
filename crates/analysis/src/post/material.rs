//! The numbers that a post is made from: releases side by side, tests in groups.

use itertools::Itertools;
use plimsoll_core::plan::{TestGroup, TestName};
use plimsoll_core::rocksdb_report::is_in_tables;

use super::insert_benchmark::missed_named_rate;
use super::noise::Noise;
use super::releases::{Family, Release, families, speakers};
use super::thresholds::Band;
use crate::runs::status::Status;
use crate::steps::outcome::Outcome;
use crate::steps::step_view::StepView;
use crate::view::View;

/// Ratios of measured rates; beyond it one of both was not measured.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// What kind of steps a subject has: it decides groups and sentences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Tests of sysbench, events of a workload file, and whatever else is imported.
    Statements,
    InsertBenchmark,
    Rocksdb,
}

/// Releases of one product and config, with all their tests.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub kind: Kind,
    pub product: String,
    /// Config and shape, where the product has several.
    pub config: String,
    /// Oldest first.
    pub releases: Vec<Release>,
    /// Whether they are versions, one after the other, and not configs of one.
    pub is_series: bool,
    /// What one of them is: `version`, `config` of one build, or `build`.
    pub each: &'static str,
    /// Places of the releases that speak for their series.
    pub speakers: Vec<usize>,
    /// The place of what ratios divide by.
    pub base: usize,
    pub tests: Vec<Test>,
    pub groups: Vec<Group>,
    pub noise: Noise,
    pub band: Band,
    /// The most runs that a number is the median of.
    pub runs: u32,
}

/// Tests under one heading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub title: String,
    /// Indices into the subject's tests.
    pub tests: Vec<usize>,
    /// Whether sentences may speak about it; else its numbers are only shown.
    pub is_claimed: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub name: String,
    /// Index into the view's steps.
    pub step: usize,
    /// The rate by release, in the unit of the step's metric; `None` where nothing may be claimed:
    /// it failed or is 0, the background writers missed their rate, or the machine was disturbed.
    pub rates: Vec<Option<f64>>,
    /// How it ended, by release.
    pub statuses: Vec<Status>,
}

impl Test {
    /// New / old by places of releases.
    pub fn ratio(&self, from: usize, to: usize) -> Option<f64> {
        let (old, new) = (self.rates[from]?, self.rates[to]?);
        let ratio = (old > 0.0 && new > 0.0).then(|| new / old);
        ratio.filter(|ratio| PLAUSIBLE.contains(ratio))
    }

    /// Whether its events are several statements, so that a cost per operation is of none of them.
    /// Of what is not a test of sysbench only its name tells.
    pub fn is_mixed(&self) -> bool {
        let mixed = ["read-only", "read-write", "write-only"];
        match TestName::parse(&self.name) {
            Some(test) => test.kind.statements().all() > 1,
            None => self
                .name
                .split(['.', '_'])
                .next()
                .is_some_and(|base| mixed.contains(&base)),
        }
    }
}

impl Subject {
    /// `MySQL`, or with its config where there are several: `MySQL cx6d`.
    pub fn title(&self) -> String {
        let words = [self.product.as_str(), self.config.as_str()];
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        words.join(" ")
    }

    /// `MySQL, writes`: what a caption begins with; a product that nobody knows has no name.
    pub fn captioned(&self, what: &str) -> String {
        match self.title() {
            title if title.is_empty() => what.to_owned(),
            title => format!("{title}, {what}"),
        }
    }

    /// Whether all that speak are of one series, which tells them apart no more than its name does.
    fn is_one_series(&self) -> bool {
        self.is_series && self.speakers.len() == 1 && self.releases.len() > 1
    }

    /// The pairs that sentences are about: neighbouring series; of configs each against the base,
    /// and so is the newest of one series.
    pub fn pairs(&self) -> Vec<[usize; 2]> {
        match self.is_series {
            true if self.is_one_series() && self.base != self.newest() => {
                vec![[self.base, self.newest()]]
            }
            true => self
                .speakers
                .windows(2)
                .map(|pair| [pair[0], pair[1]])
                .collect(),
            false => {
                let others = self.speakers.iter().filter(|place| **place != self.base);
                others.map(|place| [self.base, *place]).collect()
            }
        }
    }

    /// `from 5.6 to 5.7`, and of configs `with b in place of a`.
    pub fn span(&self, from: usize, to: usize) -> String {
        let (old, new) = (self.name(from), self.name(to));
        match self.is_series {
            true => format!("from {old} to {new}"),
            false => format!("with {new} in place of {old}"),
        }
    }

    /// What its rows are: `test` or `step`.
    pub fn noun(&self) -> &'static str {
        match self.kind {
            Kind::Statements => "test",
            Kind::InsertBenchmark | Kind::Rocksdb => "step",
        }
    }

    pub fn base(&self) -> &Release {
        &self.releases[self.base]
    }

    /// The place of the newest release that speaks.
    pub fn newest(&self) -> usize {
        self.speakers.last().copied().unwrap_or(self.base)
    }

    /// What a sentence calls the release at a place: a speaker by its series, if there are others.
    pub fn name(&self, place: usize) -> String {
        let release = &self.releases[place];
        match self.speakers.contains(&place) && !self.is_one_series() {
            true => release.series_name(),
            false => release.name.clone(),
        }
    }

    /// `one run per version`, or what a number is the median of.
    pub fn runs_of_each(&self) -> String {
        let each = self.each;
        match self.runs {
            1 => format!("one run per {each}"),
            runs => format!("up to {runs} runs per {each}, of which the median counts"),
        }
    }

    pub fn is_two_state(&self, test: usize) -> bool {
        self.noise.two_state.contains(&test)
    }
}

/// The subjects of a view, in the order of its cells. `bases` are cells that somebody
/// asked for: the first that a subject has is its base.
pub(crate) fn subjects(view: &View, bases: &[usize]) -> Vec<Subject> {
    let families = families(&view.cells);
    let has_one = families.len() == 1;
    families
        .into_iter()
        .map(|family| subject(view, family, bases, has_one))
        .filter(|subject| !subject.tests.is_empty() || is_in_ramps(view, subject))
        .collect()
}

/// Whether a release ran a test over several numbers of users: such tests are in no group.
fn is_in_ramps(view: &View, subject: &Subject) -> bool {
    subject.releases.iter().any(|of| has_peak(view, of.cell))
}

fn has_peak(view: &View, cell: usize) -> bool {
    let mut ramps = view.summary.ramps.iter();
    ramps.any(|ramp| ramp.cells.get(cell).is_some_and(|of| of.peak.is_some()))
}

fn subject(view: &View, family: Family, bases: &[usize], is_only: bool) -> Subject {
    let kind = kind(view, &family);
    let steps = steps_in_groups(view, kind);
    let mut tests = Vec::new();
    let mut groups = Vec::new();
    for (title, is_claimed, steps) in steps {
        let first = tests.len();
        tests.extend(
            steps
                .into_iter()
                .filter_map(|step| test(view, step, &family)),
        );
        if tests.len() > first {
            groups.push(Group {
                title,
                tests: (first..tests.len()).collect(),
                is_claimed,
            });
        }
    }
    let at = |cell: &usize| family.releases.iter().position(|of| of.cell == *cell);
    let has_number = |place: usize| {
        let is_in_ramp = has_peak(view, family.releases[place].cell);
        is_in_ramp || tests.iter().any(|test| test.rates[place].is_some())
    };
    let speakers = speakers(&family.releases, has_number);
    // A first version without a number is not a base.
    let oldest = (0..family.releases.len()).find(|place| has_number(*place));
    let oldest = oldest.unwrap_or(0);
    let is_series = family.releases.iter().all(Release::is_version);
    let builds = || family.releases.iter().map(|of| &view.cells[of.cell].build);
    let each = if is_series {
        "version"
    } else if family.releases.len() > 1 && builds().all_equal() {
        "config"
    } else {
        "build"
    };
    let base = bases.iter().find_map(at).unwrap_or(oldest);
    // Of one series the newest stands against the base, which may be its neighbour.
    let newest = speakers.last().copied().unwrap_or(base);
    let compared = (speakers.len() == 1).then(|| [base.min(newest), base.max(newest)]);
    let noise = Noise::of(&family.releases, &tests, &groups, compared);
    let outcomes = tests.iter().flat_map(|test| {
        let cells = family.releases.iter().map(|release| release.cell);
        cells.map(|cell| &view.steps[test.step].outcomes[cell])
    });
    let runs = outcomes.map(|outcome| outcome.blocks_used).max();
    let runs = runs.unwrap_or(1).max(1);
    Subject {
        kind,
        product: family.product,
        config: if is_only {
            String::new()
        } else {
            family.config
        },
        base,
        releases: family.releases,
        is_series,
        each,
        speakers,
        band: Band::new(noise.p95()),
        runs,
        tests,
        groups,
        noise,
    }
}

fn kind(view: &View, family: &Family) -> Kind {
    let has = |is_it: fn(&StepView) -> bool| view.steps.iter().any(is_it);
    if family.product == "RocksDB" {
        Kind::Rocksdb
    } else if has(|step| step.test.is_some()) || !view.published.is_empty() {
        Kind::Statements
    } else if has(|step| step.name.starts_with("l.")) {
        Kind::InsertBenchmark
    } else {
        Kind::Statements
    }
}

/// A test of the releases; `None` if none of them has it.
fn test(view: &View, step: usize, family: &Family) -> Option<Test> {
    let of = &view.steps[step];
    let status = |outcome: &Outcome| match outcome.status {
        Status::Ok if missed_named_rate(of, outcome) => Status::SlaMissed,
        status => status,
    };
    let outcomes: Vec<&Outcome> = family
        .releases
        .iter()
        .map(|release| &of.outcomes[release.cell])
        .collect();
    let rates: Vec<Option<f64>> = outcomes
        .iter()
        .map(|outcome| {
            outcome
                .number(of.rate)
                .filter(|rate| *rate > 0.0 && status(outcome) == Status::Ok)
        })
        .collect();
    let is_there = outcomes
        .iter()
        .any(|outcome| !matches!(outcome.status, Status::Missing));
    is_there.then(|| Test {
        name: of.name.clone(),
        step,
        rates,
        statuses: outcomes.iter().map(|outcome| status(outcome)).collect(),
    })
}

/// Headings, whether they are claimed, and their steps.
type Groups = Vec<(String, bool, Vec<usize>)>;

fn steps_in_groups(view: &View, kind: Kind) -> Groups {
    let all = || 0..view.steps.len();
    let in_tables = || all().filter(|step| is_in_tables(&view.steps[*step].name));
    match kind {
        Kind::InsertBenchmark => split(all(), "write-heavy steps", "read-heavy steps", |step| {
            view.steps[step].name.starts_with("l.")
        }),
        Kind::Rocksdb => {
            let mut groups = split(
                in_tables(),
                "steps with writes",
                "read-only steps",
                |step| has_writes(&view.steps[step].name),
            );
            // The shape of the tree decides them more than the release does.
            if let Some(reads) = groups.iter_mut().find(|group| group.0 == "read-only steps") {
                reads.1 = false;
            }
            groups
        }
        Kind::Statements if view.steps.iter().any(|step| step.test.is_some()) => of_tests(view),
        Kind::Statements => of_published(view),
    }
}

fn split(
    steps: impl Iterator<Item = usize>,
    first: &str,
    second: &str,
    is_first: impl Fn(usize) -> bool,
) -> Groups {
    let (a, b): (Vec<usize>, Vec<usize>) = steps.partition(|step| is_first(*step));
    vec![(first.to_owned(), true, a), (second.to_owned(), true, b)]
}

/// Steps of `db_bench` in which something is written while it is measured.
pub(crate) fn has_writes(step: &str) -> bool {
    let words = ["fillseq", "whilewriting", "whilemerging", "overwrite"];
    words
        .iter()
        .any(|word| step.starts_with(word) || step.contains(word))
}

/// Native tests in the published sections and order; steps of a workload file together.
fn of_tests(view: &View) -> Groups {
    let titles = TestGroup::ALL
        .iter()
        .map(|group| (Some(*group), group.title()))
        .chain([(None, "steps of the workload")]);
    titles
        .map(|(group, title)| {
            let mut steps: Vec<_> = view
                .steps
                .iter()
                .enumerate()
                .filter_map(|(place, step)| Some((step.test?, place)))
                .filter(|(test, _)| test.group == group && test.level.is_none())
                .collect();
            steps.sort_by_key(|(test, _)| test.position);
            let steps = steps.into_iter().map(|(_, place)| place).collect();
            (title.to_owned(), true, steps)
        })
        .collect()
}

/// The sections of published tables; without them all steps together.
fn of_published(view: &View) -> Groups {
    let place = |name: &str| view.steps.iter().position(|step| step.name == name);
    let sections = view.published.first().map(|table| &table.sections);
    let groups = sections.into_iter().flatten().map(|section| {
        let rows = section.rows.iter();
        let title = match section.title.as_str() {
            "" => "all tests",
            title => title,
        };
        (
            title.to_owned(),
            true,
            rows.filter_map(|row| place(&row.label)).collect(),
        )
    });
    groups.collect()
}
