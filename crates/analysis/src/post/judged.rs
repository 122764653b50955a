//! The post of a campaign with verdicts: they decide the words, and the table names sizes.

use super::material::{Group, Subject};
use super::releases::name_of;
use super::summary::nest;
use super::text::{capital, count, list};
use super::together::{self, Rows};
use super::value::{
    Bullet, Chart, Figure, Form, Line, Part, Post, Said, Section, Sentence, Standing, Table,
    TableCell, TableGroup, TableRow,
};
use super::{about, flames, latency, limits, ramps, single, tables};
use crate::verdicts::{Call, Estimate, Finding, Role, Verdict, change_with_interval};
use crate::view::View;

/// `others` have other bases.
pub(super) fn post(view: &View, others: &[View], subjects: &[Subject]) -> Post {
    let groups = groups(view, subjects);
    let others: Vec<Other<'_>> = others
        .iter()
        .filter_map(|other| Other::of(other, subjects))
        .collect();
    let mut sections = vec![
        about::builds(view, subjects),
        about::benchmark(view, subjects),
        preamble(view),
    ];
    let own_table = table(view, &groups, &candidates(view));
    let has_table = !own_table.columns.is_empty();
    let mut tables: Vec<Table> = has_table.then_some(own_table).into_iter().collect();
    let rows = Rows::of(view, tables.len());
    tables.extend(rows.tables());
    let first_other = tables.len();
    tables.extend(others.iter().map(|other| other.table(&groups)));
    for (place, group) in groups.iter().enumerate() {
        let mut own = section(view, group, has_table.then_some(place));
        let (title, tests) = group;
        for (at, other) in others.iter().enumerate() {
            own.parts.push(other.verdicts(tests));
            own.parts.push(Part::Table {
                table: first_other + at,
                group: Some(place),
            });
        }
        for subject in subjects {
            let groups = subject.groups.iter().filter(|of| of.title == *title);
            let figures = groups.filter_map(|of| latency::of_group(view, subject, of));
            own.parts.extend(figures.map(Part::Figure));
        }
        let is_member = |step: &str| tests.iter().any(|test| test == step);
        own.parts.extend(rows.parts(is_member));
        own.parts
            .extend(flames::of_steps(view, is_member).map(Part::Figure));
        sections.push(own);
    }
    sections.extend(ramps::sections(view, subjects));
    let is_told = |step: &str| {
        let mut tests = groups.iter().flat_map(|(_, tests)| tests);
        tests.any(|test| test == step)
    };
    sections.extend(rows.rest(is_told));
    sections.push(limits_section(view, !others.is_empty(), subjects));
    sections.push(about::repeat(view));
    Post {
        title: single::title(view, subjects),
        lead: Sentence::plain(lead(view)),
        tldr: tldr(view, subjects),
        sections,
        tables,
        files: about::files(view),
    }
}

/// The campaign against another base: verdicts on what is newer, or of configs on all others.
struct Other<'a> {
    view: &'a View,
    /// Cells of that view.
    candidates: Vec<usize>,
}

impl<'a> Other<'a> {
    /// `None` if the base has nothing that it could be compared with.
    fn of(view: &'a View, subjects: &[Subject]) -> Option<Self> {
        let base = view.findings.bases().into_iter().next()?;
        let place = |subject: &Subject, cell: usize| {
            let label = &view.cells[cell].label;
            let mut releases = subject.releases.iter();
            releases.position(|release| release.label == *label)
        };
        let is_wanted = |cell: &usize| {
            let both = |subject: &Subject| Some((place(subject, base)?, place(subject, *cell)?));
            let known = subjects
                .iter()
                .find_map(|of| Some((of.is_series, both(of)?)));
            known.is_none_or(|(is_series, (base, cell))| !is_series || cell > base)
        };
        let mut candidates = candidates(view);
        candidates.retain(is_wanted);
        (!candidates.is_empty()).then_some(Self { view, candidates })
    }

    fn verdicts(&self, tests: &[String]) -> Part {
        let sentences = self
            .candidates
            .iter()
            .map(|cell| sentence(self.view, *cell, &of_cell(self.view, *cell, tests)));
        let heading = format!("Against {}", bases(self.view));
        Part::bullets(&heading, sentences.collect())
    }

    fn table(&self, groups: &[(String, Vec<String>)]) -> Table {
        let table = table(self.view, groups, &self.candidates);
        Table {
            name: tables::file_name(&["verdicts", &bases(self.view)]),
            ..table
        }
    }
}

/// `This has verdicts on 16.15 and 18.6 against 12.22 for sysbench: all were measured in turn.`
fn lead(view: &View) -> String {
    let workload = view.title.split(": ").next().unwrap_or(&view.title);
    let names = candidates(view).into_iter().map(|cell| name(view, cell));
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => format!(
            "This has {workload}, and nothing that was compared with {}.",
            bases(view)
        ),
        false => format!(
            "This has verdicts on {} against {} for {workload}: all were measured in turn.",
            list(&names),
            bases(view)
        ),
    }
}

/// From here on a gain is a factor.
const FACTOR: f64 = 1.8;
/// What a disturbance of the machine does to verdicts.
const DISTURBED: &str = "the machine was disturbed, which widens intervals";

pub(super) fn name(view: &View, cell: usize) -> String {
    name_of(&view.cells, cell)
}

/// What the verdicts are against.
fn bases(view: &View) -> String {
    let names = view.findings.bases().into_iter();
    let names: Vec<String> = names.map(|base| name(view, base)).collect();
    list(&names)
}

/// The groups of the subjects with the steps that they hold, each title once.
fn groups(view: &View, subjects: &[Subject]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for subject in subjects {
        for Group { title, tests, .. } in &subject.groups {
            let names = tests.iter().map(|test| subject.tests[*test].name.clone());
            let names = names.filter(|name| {
                let mut all = view.findings.all.iter();
                all.any(|of| of.step == *name && of.role == Role::Throughput)
            });
            let known = groups.iter_mut().find(|(known, _)| known == title);
            match known {
                Some((_, of)) => {
                    let new: Vec<String> = names.filter(|name| !of.contains(name)).collect();
                    of.extend(new);
                }
                None => groups.push((title.clone(), names.collect())),
            }
        }
    }
    groups.retain(|(_, tests)| !tests.is_empty());
    groups
}

/// The candidates of the findings on throughput, in the order of the view.
fn candidates(view: &View) -> Vec<usize> {
    let is_candidate = |cell: &usize| {
        let mut all = view.findings.all.iter();
        !view.findings.control_cells.contains(cell)
            && all.any(|of| of.cell == *cell && of.role == Role::Throughput)
    };
    (0..view.cells.len()).filter(is_candidate).collect()
}

fn preamble(view: &View) -> Section {
    let margin = 100.0 * view.findings.margin;
    let mut sentences = vec![
        format!(
            "verdicts are those of the campaign: regression and improvement are differences that \
             chance does not make, equivalent is within {margin:.0}%, inconclusive is open and \
             not the same"
        ),
        format!("ratios are against {}, with 95% intervals", bases(view)),
        "an interval is of its test alone, and a verdict allows for how many tests there are: an \
         interval without 0 can be inconclusive"
            .to_owned(),
    ];
    if !view.findings.conditions.is_empty() {
        sentences.push(format!(
            "under these conditions: {}",
            view.findings.conditions
        ));
    }
    Section {
        title: "Results".to_owned(),
        parts: vec![Part::bullets(
            "",
            sentences.into_iter().map(Sentence::plain).collect(),
        )],
    }
}

fn of_cell<'a>(view: &'a View, cell: usize, tests: &[String]) -> Vec<&'a Finding> {
    let named = tests
        .iter()
        .filter_map(|test| view.findings.of_throughput(cell, test));
    named.collect()
}

/// The calls in the order of sentences, with their words for one and for several.
fn words(call: &Call) -> (usize, &'static str, &'static str) {
    match call {
        Call::Verdict(Verdict::Regression) => (0, "regression", "regressions"),
        Call::Verdict(Verdict::Improvement) => (1, "improvement", "improvements"),
        Call::Verdict(Verdict::Equivalent) => (2, "equivalent", "equivalent"),
        Call::Verdict(Verdict::Inconclusive) => (3, "inconclusive", "inconclusive"),
        Call::DependsOnTurns => (4, "depends on turns", "depend on turns"),
        Call::Invalid | Call::Screen(..) => (5, "invalid", "invalid"),
    }
}

fn counted(findings: &[&Finding]) -> String {
    let mut all: Vec<((usize, &str, &str), usize)> = Vec::new();
    for finding in findings {
        let words = words(&finding.call);
        match all.iter_mut().find(|(known, _)| *known == words) {
            Some((_, number)) => *number += 1,
            None => all.push((words, 1)),
        }
    }
    all.sort_unstable();
    let parts = all
        .into_iter()
        .map(|((_, one, several), number)| match number {
            1 => format!("1 {one}"),
            _ => format!("{number} {several}"),
        });
    parts.collect::<Vec<_>>().join(", ")
}

/// A change with its interval, from a gain of 1.8 on as a factor: `3.6X [2.5X, 5.2X]`.
pub(super) fn size(estimate: &Estimate) -> String {
    match estimate.interval {
        Some((low, high)) if estimate.ratio >= FACTOR => {
            format!("{:.1}X [{low:.1}X, {high:.1}X]", estimate.ratio)
        }
        _ => change_with_interval(estimate),
    }
}

/// `hot-points -12.3 % [-14.0, -10.5]`, with what explains it.
fn named(finding: &Finding) -> String {
    let change = finding.estimate.as_ref().map(size);
    let why = match finding.why.is_empty() {
        true => String::new(),
        false => format!(" ({})", finding.why),
    };
    format!("{} {}{why}", finding.step, change.unwrap_or_default())
}

pub(super) fn said(view: &View, finding: &Finding) -> Option<Said> {
    Some(Said {
        test: finding.step.clone(),
        metric: finding.metric.name,
        from: name(view, finding.base),
        to: name(view, finding.cell),
        ratio: finding.estimate?.ratio,
    })
}

/// Per candidate: how many tests have which verdict, and the differences by name.
fn sentence(view: &View, cell: usize, findings: &[&Finding]) -> Sentence {
    let base = findings.first().map_or(0, |finding| finding.base);
    let of = |wanted: Verdict| {
        let mut of: Vec<&&Finding> = findings
            .iter()
            .filter(|finding| finding.verdict() == Some(wanted))
            .collect();
        of.sort_by(|a, b| {
            let size = |finding: &Finding| finding.gain().unwrap_or(0.0).abs();
            size(b).total_cmp(&size(a))
        });
        of.into_iter()
            .map(|finding| named(finding))
            .collect::<Vec<String>>()
    };
    let differences = [
        ("regressed", of(Verdict::Regression)),
        ("improved", of(Verdict::Improvement)),
    ];
    let differences = differences
        .into_iter()
        .filter(|(_, named)| !named.is_empty())
        .map(|(word, named)| format!("; {word}: {}", list(&named)));
    Sentence {
        text: format!(
            "verdicts on {} vs {}: {}{}",
            name(view, cell),
            name(view, base),
            counted(findings),
            differences.collect::<String>()
        ),
        cells: findings
            .iter()
            .filter_map(|finding| said(view, finding))
            .collect(),
    }
}

fn section(view: &View, (title, tests): &(String, Vec<String>), table: Option<usize>) -> Section {
    let sentences: Vec<Sentence> = candidates(view)
        .into_iter()
        .map(|cell| sentence(view, cell, &of_cell(view, cell, tests)))
        .collect();
    let alt = sentences
        .first()
        .map(|of| capital(&of.text))
        .unwrap_or_default();
    let sentences = [sentences, together::of_group(view, title)].concat();
    let mut parts = vec![Part::bullets("Summary", sentences)];
    parts.extend(dots(view, title, tests, alt).map(Part::Figure));
    parts.extend(table.map(|group| Part::Table {
        table: 0,
        group: Some(group),
    }));
    Section {
        title: format!("Results: {title}"),
        parts,
    }
}

/// `None` if no test has a ratio.
fn dots(view: &View, title: &str, tests: &[String], alt: String) -> Option<Figure> {
    let estimate = |cell: usize, test: &String| view.findings.of_throughput(cell, test)?.estimate;
    let line = |cell: usize| Line {
        name: name(view, cell),
        values: tests
            .iter()
            .map(|test| Some(estimate(cell, test)?.ratio))
            .collect(),
        intervals: tests
            .iter()
            .map(|test| estimate(cell, test)?.interval)
            .collect(),
    };
    let base = bases(view);
    let series: Vec<Line> = candidates(view).into_iter().map(line).collect();
    let mut values = series.iter().flat_map(|line| &line.values);
    values.any(Option::is_some).then(|| Figure {
        name: tables::file_name(&["dots", title]),
        title: format!("{title}: throughput relative to {base}"),
        caption: format!("{title}, base {base}; ratios with 95% intervals."),
        alt,
        form: Form::Dots {
            chart: Chart {
                base,
                unit: "throughput".to_owned(),
                tests: tests.to_vec(),
                series,
            },
            twins: None,
        },
    })
}

/// Ratios with intervals, and the verdict behind each.
fn table(view: &View, groups: &[(String, Vec<String>)], candidates: &[usize]) -> Table {
    let cell = |test: &String, cell: &usize| {
        let finding = view.findings.of_throughput(*cell, test);
        let text = finding.and_then(|finding| {
            let estimate = finding.estimate.as_ref()?;
            let word = finding.call.word();
            Some(match estimate.interval {
                Some(_) => format!("{} {word}", size(estimate)),
                // A size without its interval is nothing to quote.
                None => word.to_owned(),
            })
        });
        TableCell {
            text: text.unwrap_or_else(|| "-".to_owned()),
            mark: "",
            standing: match finding.and_then(Finding::verdict) {
                Some(Verdict::Regression) => Standing::Worse,
                Some(Verdict::Improvement) => Standing::Better,
                _ => Standing::Plain,
            },
        }
    };
    let row = |test: &String| TableRow {
        label: test.clone(),
        cells: candidates.iter().map(|of| cell(test, of)).collect(),
        note: String::new(),
    };
    Table {
        name: "verdicts".to_owned(),
        title: format!("Throughput against {}", bases(view)),
        caption: "change of throughput with its 95% interval, and the verdict".to_owned(),
        base: Some(bases(view)),
        columns: candidates
            .iter()
            .map(|cell| {
                let info = &view.cells[*cell];
                let marked = format!("{}{}", name(view, *cell), info.mark());
                (marked, info.label.clone())
            })
            .collect(),
        groups: groups
            .iter()
            .map(|(title, tests)| TableGroup {
                title: title.clone(),
                rows: tests.iter().map(row).collect(),
            })
            .collect(),
    }
}

/// Counts, groups as one, peaks, what is farthest from the base, and the limit: at most five.
fn tldr(view: &View, subjects: &[Subject]) -> Vec<Bullet> {
    let floor = view.findings.noise_floor_percent(Role::Throughput, None);
    let floor = floor.map(|floor| {
        format!(
            "the base measured against itself is known to +-{floor:.1}% (median of its tests), so \
             smaller differences do not show"
        )
    });
    let open = view.campaigns.iter().filter(|of| of.state == "broken");
    let open = open.map(|of| format!("the campaign did not end: {}", of.progress));
    let marked = limits::not_alike(view, subjects)
        .map(|which| format!("not strictly comparable with the base: {which}"));
    let limits: Vec<String> = open.chain(floor).chain(marked).collect();
    let limit = (!limits.is_empty())
        .then(|| Sentence::plain(format!("the limit: {}", limits.join("; "))).into());
    let bullets = [
        nest("verdicts against the base", counts(view, subjects)),
        nest("the tests of each group together", together::of_all(view)),
        ramps::headlines(view, subjects),
        nest("the farthest from the base", farthest(view)),
        limit,
    ];
    bullets.into_iter().flatten().collect()
}

/// How many steps of each candidate have which verdict.
fn counts(view: &View, subjects: &[Subject]) -> Vec<Sentence> {
    let noun = subjects.first().map_or("test", Subject::noun);
    let all = |cell: usize| -> Vec<&Finding> {
        let of = view.findings.all.iter();
        of.filter(|of| of.cell == cell && of.role == Role::Throughput)
            .collect()
    };
    let sentence = |cell: usize| {
        let findings = all(cell);
        Sentence {
            text: format!(
                "verdicts on {} vs {}, {}: {}",
                name(view, cell),
                name(view, findings.first().map_or(0, |of| of.base)),
                count(findings.len(), noun),
                counted(&findings)
            ),
            cells: findings.iter().filter_map(|of| said(view, of)).collect(),
        }
    };
    candidates(view).into_iter().map(sentence).collect()
}

/// The largest regression and the largest improvement.
fn farthest(view: &View) -> Vec<Sentence> {
    let words = [
        (Verdict::Regression, "the largest regression"),
        (Verdict::Improvement, "the largest improvement"),
    ];
    let largest = |(wanted, words): (Verdict, &str)| {
        let findings = view.findings.all.iter();
        let (of, _) = findings
            .filter(|of| of.role == Role::Throughput && of.verdict() == Some(wanted))
            .filter_map(|of| Some((of, of.gain()?.abs())))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Sentence {
            text: format!("{words}: {} in {}", named(of), name(view, of.cell)),
            cells: said(view, of).into_iter().collect(),
        })
    };
    words.into_iter().filter_map(largest).collect()
}

fn limits_section(view: &View, has_others: bool, subjects: &[Subject]) -> Section {
    let mut sentences: Vec<Sentence> = subjects
        .iter()
        .flat_map(|subject| limits::marks(view, subject, DISTURBED))
        .collect();
    sentences.extend(limits::of_campaign(view));
    sentences.push(Sentence::plain(match has_others {
        true => {
            "each base is judged on its own: a verdict allows for how many tests there are, and \
             not for how many bases"
        }
        false => {
            "all are judged against the base alone: nothing is said about neighbours among them"
        }
    }));
    sentences.push(Sentence::plain(
        "context matters: other hardware, concurrency, data sizes and workloads may differ, and \
         were not tested here",
    ));
    Section {
        title: "What this does not show".to_owned(),
        parts: vec![Part::bullets("", sentences)],
    }
}
