//! The post of a campaign with verdicts: they decide the words, and the table names sizes.

use super::material::{Group, Subject};
use super::text::{capital, count, list};
use super::value::{
    Bullet, Chart, Figure, Form, Line, Part, Post, Said, Section, Sentence, Standing, Table,
    TableCell, TableGroup, TableRow,
};
use super::{about, limits, ramps, single, tables};
use crate::verdicts::{Call, Estimate, Finding, Role, Verdict, bases, change_with_interval};
use crate::view::View;

pub(super) fn post(view: &View, subjects: &[Subject]) -> Post {
    let groups = groups(view, subjects);
    let mut sections = vec![
        about::builds(view, subjects),
        about::benchmark(view, subjects),
        preamble(view),
    ];
    let table = table(view, &groups);
    let has_table = !table.columns.is_empty();
    for (place, group) in groups.iter().enumerate() {
        sections.push(section(view, group, has_table.then_some(place)));
    }
    sections.extend(ramps::sections(view));
    sections.push(limits_section(view, subjects));
    sections.push(about::repeat(view));
    Post {
        title: single::title(view, subjects),
        lead: Sentence::plain(format!(
            "This has verdicts on {}, each with its interval: all were measured in turn.",
            view.title.split(": ").next().unwrap_or(&view.title)
        )),
        tldr: tldr(view),
        sections,
        tables: has_table.then_some(table).into_iter().collect(),
    }
}

/// From here on a gain is a factor.
const FACTOR: f64 = 1.8;
/// What a disturbance of the machine does to verdicts.
const DISTURBED: &str = "the machine was disturbed, which widens intervals";

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
fn size(estimate: &Estimate) -> String {
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

fn said(view: &View, finding: &Finding) -> Option<Said> {
    Some(Said {
        test: finding.step.clone(),
        metric: finding.metric.name,
        from: view.cells[finding.base].label.clone(),
        to: view.cells[finding.cell].label.clone(),
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
        ("verdict regression", of(Verdict::Regression)),
        ("verdict improvement", of(Verdict::Improvement)),
    ];
    let differences = differences
        .into_iter()
        .filter(|(_, named)| !named.is_empty())
        .map(|(word, named)| format!("; {word}: {}", list(&named)));
    Sentence {
        text: format!(
            "verdicts on {} vs {}: {}{}",
            view.cells[cell].label,
            view.cells[base].label,
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
    let mut parts = vec![Part::bullets("Summary", sentences)];
    parts.push(Part::Figure(dots(view, title, tests, alt)));
    parts.extend(table.map(|group| Part::Table {
        table: 0,
        group: Some(group),
    }));
    Section {
        title: format!("Results: {title}"),
        parts,
    }
}

fn dots(view: &View, title: &str, tests: &[String], alt: String) -> Figure {
    let estimate = |cell: usize, test: &String| view.findings.of_throughput(cell, test)?.estimate;
    let line = |cell: usize| Line {
        name: view.cells[cell].label.clone(),
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
    Figure {
        name: tables::file_name(&["dots", title]),
        title: format!("{title}: throughput relative to {base}"),
        caption: format!("{title}, base {base}; ratios with 95% intervals."),
        alt,
        form: Form::Dots {
            chart: Chart {
                base,
                unit: "throughput".to_owned(),
                tests: tests.to_vec(),
                series: candidates(view).into_iter().map(line).collect(),
            },
            twins: None,
        },
    }
}

/// Ratios with intervals, and the verdict behind each.
fn table(view: &View, groups: &[(String, Vec<String>)]) -> Table {
    let candidates = candidates(view);
    let cell = |test: &String, cell: &usize| {
        let finding = view.findings.of_throughput(*cell, test);
        let text = finding.and_then(|finding| {
            let change = size(finding.estimate.as_ref()?);
            Some(format!("{change} {}", finding.call.word()))
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
                (info.label.clone(), info.label.clone())
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

fn tldr(view: &View) -> Vec<Bullet> {
    let all = |cell: usize| -> Vec<&Finding> {
        let of = view.findings.all.iter();
        of.filter(|of| of.cell == cell && of.role == Role::Throughput)
            .collect()
    };
    let counts: Vec<Sentence> = candidates(view)
        .into_iter()
        .map(|cell| {
            let findings = all(cell);
            Sentence {
                text: format!(
                    "verdicts on {} vs {}, {}: {}",
                    view.cells[cell].label,
                    view.cells[findings.first().map_or(0, |of| of.base)].label,
                    count(findings.len(), "test"),
                    counted(&findings)
                ),
                cells: findings.iter().filter_map(|of| said(view, of)).collect(),
            }
        })
        .collect();
    let mut bullets: Vec<Bullet> = match counts.len() {
        0 => Vec::new(),
        1 => counts.into_iter().map(Bullet::from).collect(),
        _ => vec![Bullet {
            sentence: Sentence::plain("verdicts against the base:"),
            nested: counts,
        }],
    };
    for (wanted, words) in [
        (Verdict::Regression, "the largest verdict regression"),
        (Verdict::Improvement, "the largest verdict improvement"),
    ] {
        let findings = view.findings.all.iter();
        let largest = findings
            .filter(|of| of.role == Role::Throughput && of.verdict() == Some(wanted))
            .filter_map(|of| Some((of, of.gain()?.abs())))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        bullets.extend(largest.map(|(of, _)| {
            Bullet::from(Sentence {
                text: format!("{words}: {} in {}", named(of), view.cells[of.cell].label),
                cells: said(view, of).into_iter().collect(),
            })
        }));
    }
    let floor = view.findings.noise_floor_percent(Role::Throughput, None);
    let floor = floor.map(|floor| {
        format!("the base measured against itself is known to {floor:.1}% at the median")
    });
    let open = view.campaigns.iter().filter(|of| of.state == "broken");
    let open = open.map(|of| format!("the campaign did not end: {}", of.progress));
    let limits: Vec<String> = open.chain(floor).collect();
    if !limits.is_empty() {
        let text = format!("the limit: {}", limits.join("; "));
        bullets.push(Bullet::from(Sentence::plain(text)));
    }
    bullets
}

fn limits_section(view: &View, subjects: &[Subject]) -> Section {
    let mut sentences: Vec<Sentence> = subjects
        .iter()
        .flat_map(|subject| limits::marks(view, subject, DISTURBED))
        .collect();
    sentences.push(Sentence::plain(
        "all are judged against the base alone: nothing is said about neighbours among them",
    ));
    sentences.push(Sentence::plain(
        "context matters: other hardware, concurrency, data sizes and workloads may differ, and \
         were not tested here",
    ));
    Section {
        title: "What this does not show".to_owned(),
        parts: vec![Part::bullets("", sentences)],
    }
}
