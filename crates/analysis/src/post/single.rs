//! The post of single runs: words by thresholds, from one release to the next.

use itertools::Itertools;

use super::changes::{self, Change, Kind as ChangeKind};
use super::costs::{self, Telling};
use super::material::{Group, Kind, Subject, Test};
use super::text::{capital, list};
use super::value::{Part, Post, Section, Sentence, Table};
use super::{
    about, engines, figures, flames, insert_benchmark, latency, limits, noise, ramps, rocksdb,
    summary, tables,
};
use crate::view::View;

/// What a disturbance of the machine does to single runs.
const DISTURBED: &str = "the machine was disturbed, so these are shown and in no sentence";

/// What is common to all sections of a post.
struct Writer<'a> {
    view: &'a View,
    subjects: &'a [Subject],
    /// Cells that somebody asked for; the first is the base of the subjects already.
    bases: &'a [usize],
    telling: &'a [(String, String)],
    tables: Vec<Table>,
}

pub(super) fn post(
    view: &View,
    subjects: &[Subject],
    bases: &[usize],
    telling: &[(String, String)],
) -> Post {
    let mut writer = Writer {
        view,
        subjects,
        bases,
        telling,
        tables: Vec::new(),
    };
    let mut sections = vec![
        about::builds(view, subjects),
        about::benchmark(view, subjects),
    ];
    sections.extend(preamble(view, subjects));
    for subject in subjects {
        sections.extend(writer.subject(subject));
    }
    sections.extend(engines::section(subjects));
    sections.extend(ramps::sections(view, subjects));
    sections.push(limits_section(view, subjects));
    sections.push(about::repeat(view));
    Post {
        title: title(view, subjects),
        lead: lead(view, subjects),
        tldr: summary::tldr(view, subjects, limits::limit(view, subjects)),
        sections,
        tables: writer.tables,
        files: about::files(view),
    }
}

/// `sysbench: MySQL 5.6.51 to 9.5.0`.
pub(super) fn title(view: &View, subjects: &[Subject]) -> String {
    let workload = view.title.split(": ").next().unwrap_or(&view.title);
    let versions: Vec<String> = subjects.iter().map(range).collect();
    match versions.is_empty() {
        true => workload.to_owned(),
        false => format!("{workload}: {}", list(&versions)),
    }
}

fn range(subject: &Subject) -> String {
    if !subject.is_series {
        let names: Vec<String> = subject.releases.iter().map(|of| of.name.clone()).collect();
        return list(&names);
    }
    let names = [subject.releases.first(), subject.releases.last()];
    let [first, last] = names.map(|of| of.map(|of| of.name.as_str()).unwrap_or_default());
    match first == last {
        true => format!("{} {first}", subject.title()),
        false => format!("{} {first} to {last}", subject.title()),
    }
}

fn lead(view: &View, subjects: &[Subject]) -> Sentence {
    let workload = view.title.split(": ").next().unwrap_or(&view.title);
    // One version may be in several subjects, with another config or number of clients.
    let releases = subjects.iter().flat_map(|subject| {
        let releases = subject.releases.iter();
        releases.map(move |of| (&subject.product, &of.name))
    });
    let releases = releases.unique().count();
    let mut each = subjects.iter().map(|subject| subject.each);
    let each = each.all_equal_value().unwrap_or("build");
    let reason = match each {
        "version" => "to find out what got slower or faster from one to the next",
        _ => "to find out what each of them changes",
    };
    Sentence::plain(match releases {
        0 => format!("This has no results: {workload} has no step that came to a number."),
        1 => format!(
            "This has results for {workload} with one {each}. Without another one nothing is \
             compared."
        ),
        _ if subjects.len() == 1 && !has_ratio(&subjects[0]) => format!(
            "This has results for {workload} with {releases} {each}s, and nothing is compared: no \
             {} has a number in two of them.",
            subjects[0].noun()
        ),
        _ => format!("This has results for {workload} with {releases} {each}s, {reason}."),
    })
}

/// Whether anything is compared: a test, or a ramp, which has peaks of its own.
fn has_ratio(subject: &Subject) -> bool {
    let is_in_two = |test: &Test| test.rates.iter().flatten().count() > 1;
    subject.tests.is_empty() || subject.tests.iter().any(is_in_two)
}

/// How to read the results.
fn preamble(view: &View, subjects: &[Subject]) -> Option<Section> {
    let mut sentences = Vec::new();
    let has_pairs = subjects.iter().any(|subject| subject.releases.len() > 1);
    if has_pairs {
        let mut each = subjects.iter().map(|subject| subject.each);
        let each = each.all_equal_value().unwrap_or("build");
        sentences.push(format!(
            "relative throughput is (throughput for some {each}) / (throughput for the base): \
             above 1 the {each} is faster, below 1 there might be a regression, 1.2 is 20% faster"
        ));
        let words = |subject: &Subject| subject.band.words();
        let same = |subject: &Subject| (words(subject), subject.runs_of_each());
        match subjects.iter().map(same).all_equal() {
            true => sentences.push(format!(
                "words: {}; all of it in {}, so it is not a verdict",
                subjects[0].band.words(),
                subjects[0].runs_of_each()
            )),
            false => sentences.extend(subjects.iter().map(|subject| {
                format!(
                    "words on {}: {}; all of it in {}, so it is not a verdict",
                    subject.title(),
                    words(subject),
                    subject.runs_of_each()
                )
            })),
        }
    }
    for subject in subjects {
        let speakers: Vec<String> = subject
            .speakers
            .iter()
            .filter(|place| subject.name(**place) != subject.releases[**place].name)
            .map(|place| {
                format!(
                    "{} is {}",
                    subject.name(*place),
                    subject.releases[*place].name
                )
            })
            .collect();
        let prefix = match subjects.len() {
            1 => String::new(),
            _ => format!("{}: ", subject.title()),
        };
        // One version alone is in no sentence that has to call it something.
        if !speakers.is_empty() && subject.releases.len() > 1 {
            sentences.push(format!(
                "{prefix}a series speaks through its newest patch: {}",
                list(&speakers)
            ));
        }
    }
    if subjects.iter().any(tables::has_arrivals) {
        sentences.push(
            "notes of tables: \"-> X arrives in R\" says that the median from release R on is X of \
             the median before R"
                .to_owned(),
        );
    }
    let has_costs =
        |subject: &Subject| subject.kind == Kind::Statements && costs::has_costs(view, subject);
    if has_pairs && subjects.iter().any(has_costs) {
        sentences.push(
            "costs per operation explain why something is faster or slower: CPU (cpu/o), context \
             switches (cs/o, often a proxy for mutex contention), storage reads and KB written"
                .to_owned(),
        );
    }
    (!sentences.is_empty()).then(|| Section {
        title: "Results".to_owned(),
        parts: vec![Part::bullets(
            "",
            sentences.into_iter().map(Sentence::plain).collect(),
        )],
    })
}

impl Writer<'_> {
    fn subject(&mut self, subject: &Subject) -> Vec<Section> {
        if subject.tests.is_empty() {
            return Vec::new();
        }
        let prefix = match self.subjects.len() {
            1 => String::new(),
            _ => format!("{}, ", subject.title()),
        };
        let bases = self.bases_of(subject);
        let has_rates = !limits::has_ratios_alone(self.view);
        let absolute = has_rates.then(|| self.add(tables::absolute(self.view, subject)));
        let relative: Vec<usize> = match subject.releases.len() {
            1 => Vec::new(),
            _ => {
                let of = |base: &usize| tables::relative(self.view, subject, *base);
                let tables: Vec<Table> = bases.iter().map(of).collect();
                tables.into_iter().map(|table| self.add(table)).collect()
            }
        };
        let mut sections = Vec::new();
        if let Some(list) = summary::overview(subject) {
            sections.push(Section {
                title: format!("Results: {prefix}all groups"),
                parts: vec![Part::List(list)],
            });
        }
        for (place, group) in subject.groups.iter().enumerate() {
            let mut parts = self.group(subject, group, &bases);
            let shown = relative.iter().map(|table| Part::Table {
                table: *table,
                group: Some(place),
            });
            parts.extend(shown);
            if parts.is_empty() {
                continue;
            }
            sections.push(Section {
                title: format!("Results: {prefix}{}", group.title),
                parts,
            });
        }
        sections.extend(absolute.map(|table| Section {
            title: capital(&format!("{prefix}absolute throughput")),
            parts: vec![Part::Table { table, group: None }],
        }));
        sections
    }

    fn add(&mut self, table: Table) -> usize {
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// The subject's base, then those that were asked for, else the second one that the data
    /// suggests.
    fn bases_of(&self, subject: &Subject) -> Vec<usize> {
        let at = |cell: &usize| subject.releases.iter().position(|of| of.cell == *cell);
        let mut bases = vec![subject.base];
        match self.bases.len() {
            0 => bases.extend(summary::second_base(subject)),
            _ => bases.extend(self.bases.iter().filter_map(at)),
        }
        let mut known = Vec::new();
        bases.retain(|base| {
            let is_new = !known.contains(base);
            known.push(*base);
            is_new
        });
        bases
    }

    fn group(&mut self, subject: &Subject, group: &Group, bases: &[usize]) -> Vec<Part> {
        let mut parts = Vec::new();
        let sentences = summary_of(self.view, subject, group);
        let first = sentences.first().map(|sentence| sentence.text.clone());
        let alt = capital(&first.unwrap_or_else(|| group.title.clone()));
        if !sentences.is_empty() {
            parts.push(Part::bullets("Summary", sentences));
        }
        if subject.kind == Kind::InsertBenchmark {
            parts.extend(insert_benchmark::steps(self.view, subject, group));
        }
        let has_costs = subject.releases.len() > 1 && costs::has_costs(self.view, subject);
        if has_costs && subject.kind == Kind::Statements {
            parts.extend(self.costs(subject, group));
        }
        if subject.kind == Kind::InsertBenchmark && group.title.starts_with("write") {
            let tests = group.tests.iter();
            let seconds = tests.filter_map(|test| figures::of_seconds(self.view, subject, *test));
            parts.extend(seconds.map(Part::Figure));
        }
        for base in bases {
            let to_newest = || {
                let change = Change::of(subject, group, *base, subject.newest())?;
                Some(capital(&change.sentence(subject).text))
            };
            let alt = match *base == subject.base {
                true => alt.clone(),
                false => to_newest().unwrap_or_else(|| alt.clone()),
            };
            let figures = figures::of_group(subject, group, *base, &alt);
            parts.extend(figures.into_iter().map(Part::Figure));
        }
        parts.extend(latency::of_group(self.view, subject, group).map(Part::Figure));
        let is_member = |step: &str| {
            let mut tests = group.tests.iter();
            tests.any(|test| subject.tests[*test].name == step)
        };
        // A step that several subjects share is drawn once.
        if std::ptr::eq(subject, &self.subjects[0]) {
            parts.extend(flames::of_steps(self.view, is_member).map(Part::Figure));
        }
        parts
    }

    /// What the telling test costs, with its table and figure.
    fn costs(&mut self, subject: &Subject, group: &Group) -> Vec<Part> {
        let asked = self.telling.iter().find(|(title, _)| *title == group.title);
        let asked = asked.map(|(_, test)| test.as_str());
        let Some(Telling { test, why }) = costs::telling(self.view, subject, group, asked) else {
            return Vec::new();
        };
        let mut sentences = costs::sentences(self.view, subject, test);
        sentences.extend(hedges(self.view, subject, group, test));
        if sentences.is_empty() {
            return Vec::new();
        }
        let name = &subject.tests[test].name;
        let mut parts = vec![Part::bullets(
            &format!("Using the costs of the {name} test, chosen because {why}"),
            sentences,
        )];
        if let Some(table) = tables::costs(self.view, subject, test) {
            let table = self.add(table);
            parts.push(Part::Table { table, group: None });
        }
        parts.extend(figures::of_costs(self.view, subject, test).map(Part::Figure));
        parts
    }
}

/// The summary bullets of a group: from series to series, then newest against base.
pub(super) fn summary_of(view: &View, subject: &Subject, group: &Group) -> Vec<Sentence> {
    if !group.is_claimed {
        return vec![Sentence::plain(
            "shown and not claimed: the shape of the LSM tree decides these more than the version",
        )];
    }
    let runs = changes::runs(subject, group);
    let mut sentences: Vec<Sentence> = runs.iter().map(|run| run.sentence(subject)).collect();
    if subject.kind == Kind::Rocksdb {
        sentences.extend(rocksdb::at_most(subject, group));
    }
    let dips = noise::dips(subject, &group.tests);
    sentences.extend(dips.iter().map(|dip| rocksdb::dip(subject, dip)));
    // One stable run from the base to the newest has said it.
    let is_said = |change: &Change| {
        let [only] = &runs[..] else { return false };
        only.kind == ChangeKind::Stable && (only.from, only.to) == (change.from, change.to)
    };
    // What one test did from one version to the next has a sentence already.
    let is_said = |change: &Change| {
        let same = (runs.len(), change.members.len()) == (1, 1);
        is_said(change) || (same && (runs[0].from, runs[0].to) == (change.from, change.to))
    };
    let overall = changes::overall(subject, group).filter(|change| !is_said(change));
    sentences.extend(overall.map(|change| change.overall(subject)));
    if subject.kind == Kind::InsertBenchmark {
        sentences.extend(insert_benchmark::tuples(subject, group));
        let has_rates = group.title.starts_with("read");
        sentences.extend(limits::sla(view, subject).filter(|_| has_rates));
    }
    sentences.extend(costs::cause(view, subject, group));
    sentences
}

/// What costs allow to say of each change of the telling test's own throughput.
fn hedges(view: &View, subject: &Subject, group: &Group, test: usize) -> Vec<Sentence> {
    let of_pair = |[from, to]: [usize; 2]| {
        let change = Change::of(subject, group, from, to)?;
        let ratio = subject.tests[test].ratio(from, to)?;
        let why = costs::hedged(view, subject, test, &change)?;
        let name = &subject.tests[test].name;
        Some(Sentence {
            text: format!(
                "{name} {} is at {}: {why}",
                subject.span(from, to),
                super::text::ratio(ratio)
            ),
            cells: change
                .said(subject)
                .into_iter()
                .filter(|of| of.test == *name)
                .collect(),
        })
    };
    subject.pairs().into_iter().filter_map(of_pair).collect()
}

/// `What this does not show`.
fn limits_section(view: &View, subjects: &[Subject]) -> Section {
    let mut sentences: Vec<Sentence> = subjects.iter().flat_map(limits::noise).collect();
    for subject in subjects {
        sentences.extend(limits::silent(subject));
        sentences.extend(limits::marks(view, subject, DISTURBED));
    }
    sentences.extend(limits::of_campaign(view));
    sentences.push(Sentence::plain(
        "context matters: other hardware, concurrency, data sizes and workloads may differ, and \
         were not tested here",
    ));
    let is_one = subjects.iter().all(|subject| subject.runs == 1);
    sentences.push(Sentence::plain(match is_one {
        true => "a word here is about one run: plimsoll confirm gives verdicts",
        false => "a word here is about these runs: plimsoll confirm gives verdicts",
    }));
    Section {
        title: "What this does not show".to_owned(),
        parts: vec![Part::bullets("", sentences)],
    }
}
