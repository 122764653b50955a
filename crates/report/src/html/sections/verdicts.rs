//! The top of the page: what is concluded about each cell, how sure it is, and on what it rests.

use itertools::Itertools;
use maud::{Markup, html};

use super::groups::{groups, row_costs};
use crate::html::figures::ratio_plot::ratio_plot;
use crate::html::tables::{cell_name, header, scrolling};
use plimsoll_analysis::verdicts::{
    Finding, Role, bases, counts, facts, farthest, headline, largest, no_verdicts, percent,
    sentences, unjudged,
};
use plimsoll_analysis::view::{Status, View};

/// Differences that are reported in words.
const TOLD: usize = 5;
/// Findings that a ratio plot shows at most; of more, the largest.
const PLOTTED: usize = 120;
/// Steps are the matrix' rows where they would be wider as columns than this many characters.
const MOST_CHARACTERS: usize = 120;
/// What a verdict takes, and the space between columns.
const VERDICT_CHARACTERS: usize = 8;
const SPACE_CHARACTERS: usize = 2;
/// With more findings than this the first plot shows the largest, and the plot of all is folded.
const PLOTTED_FIRST: usize = 24;

/// Strip, matrix and ratio plots; nothing where nothing was compared.
pub(crate) fn section(view: &View) -> Markup {
    let findings = &view.findings;
    if findings.is_empty() {
        return html! {};
    }
    let is_screen = findings.is_screen();
    html! {
        section {
            h2 id="verdicts" {
                a.anchor href="#verdicts" { @if is_screen { "Survey" } @else { "Verdicts" } }
            }
            p.strip {
                @for (word, count) in counts(findings) {
                    span class={ "verdict " (word) } { strong { (count) } " " (word) } " "
                }
                span.caption {
                    @if findings.all.is_empty() { (no_verdicts(view)) }
                    @else { "of throughput, against " (bases(view)) }
                }
            }
            @if is_screen { p.caption { "One run of each cell: these words are not verdicts. An \
                                        unusual step differs by more than two starts of one build \
                                        would, 95 times of 100; " code { "plimsoll confirm" } " \
                                            shows whether the difference is real." } }
            @if !is_screen { @for line in sentences(view) { p.lead { (line) } } }
            @for line in facts(findings) {
                p.facts { (line.replace("+-", "±")) }
            }
            (invalid(view))
            (groups(view))
            (told(view))
            @if !findings.all.is_empty() { (matrix(view)) }
            (plots(view))
            (row_costs(view))
            (companions(view))
        }
    }
}

/// Tails, stalls, context switches and I/O that were called, the largest first; folded.
fn companions(view: &View) -> Markup {
    let is_called = |finding: &&Finding| {
        let word = finding.call.word();
        finding.role == Role::Companion && ["regression", "improvement"].contains(&word)
    };
    let mut called: Vec<&Finding> = view.findings.all.iter().filter(is_called).collect();
    called.sort_by(|a, b| {
        let size = |finding: &Finding| finding.gain().unwrap_or(0.0).abs();
        size(b).total_cmp(&size(a))
    });
    let titles = [
        "step",
        "cell",
        "number",
        "verdict",
        "change",
        "95 % interval",
    ];
    html! {
        @if !called.is_empty() {
            details {
                summary { "Tails, stalls, switches and I/O: " (called.len()) " differ" }
                (scrolling(html! {
                    table {
                        (header(titles.iter().map(|title| html! { (title) })))
                        tbody {
                            @for finding in &called {
                                tr {
                                    td.name { (finding.step) }
                                    td.name { (view.cells[finding.cell].label) }
                                    td.name { (headline(finding.metric.name)) }
                                    td class={ "verdict " (finding.call.word()) } {
                                        (finding.call.word())
                                    }
                                    td { (change(finding)) }
                                    td { (interval(finding)) }
                                }
                            }
                        }
                    }
                }))
            }
        }
    }
}

fn interval(finding: &Finding) -> String {
    let interval = finding.estimate.and_then(|estimate| estimate.interval);
    interval.map_or_else(String::new, |(low, high)| {
        format!("{} to {}", percent(low), percent(high))
    })
}

/// Why nothing can be said of steps that are invalid.
fn invalid(view: &View) -> Markup {
    let lines = unjudged(view);
    html! {
        @if !lines.is_empty() {
            p.facts { "Not judged:" }
            ul.notes { @for line in &lines { li { (line) } } }
        }
    }
}

/// The largest differences with what explains them.
fn told(view: &View) -> Markup {
    let largest = largest(&view.findings, TOLD);
    html! {
        @if !largest.is_empty() {
            ol.told {
                @for finding in largest {
                    li {
                        a href={ "#" (crate::html::step::anchor(&finding.step)) } { (finding.step) }
                        " "
                        (view.cells[finding.cell].label) (against(view, finding.base)) ": "
                        span class={ "verdict " (finding.call.word()) } { (finding.call.word()) }
                        " "
                        strong { (change(finding)) }
                        @if let Some((low, high)) =
                            finding.estimate.and_then(|estimate| estimate.interval) {
                            " [" (percent(low)) ", " (percent(high)) "]"
                        }
                        @for part in [&finding.turns, &finding.why] {
                            @if !part.is_empty() { " – " (part) }
                        }
                    }
                }
            }
        }
    }
}

/// The base of a row, where not all have the same.
pub(super) fn against(view: &View, base: usize) -> String {
    if view.findings.bases().len() > 1 {
        format!(" vs {}", view.cells[base].label)
    } else {
        String::new()
    }
}

fn change(finding: &Finding) -> String {
    finding
        .estimate
        .map_or_else(|| "–".to_owned(), |estimate| percent(estimate.ratio))
}

/// A row per cell, a column per step, the other way round where these would not fit beside each
/// other; coloured by verdict. A hatch marks a missed SLA, an outline without a fill what a witness
/// set aside.
fn matrix(view: &View) -> Markup {
    let steps: Vec<&str> = view
        .findings
        .all
        .iter()
        .map(|finding| finding.step.as_str())
        .unique()
        .collect();
    let is_shown = |cell: &usize| {
        view.findings
            .all
            .iter()
            .any(|finding| finding.cell == *cell)
    };
    let are_wide = steps
        .iter()
        .map(|step| step.len().max(VERDICT_CHARACTERS) + SPACE_CHARACTERS)
        .sum::<usize>()
        > MOST_CHARACTERS;
    // Versions of one group stand together.
    let mut cells: Vec<usize> = (0..view.cells.len()).filter(is_shown).collect();
    cells.sort_by_key(|cell| view.cells[*cell].base);
    let name = |at: usize| {
        let cell = &view.cells[at];
        html! { (cell_name(at, cell)) (against(view, cell.base)) }
    };
    let link = |step: &str| html! { a href={ "#" (crate::html::step::anchor(step)) } { (step) } };
    let corner = std::iter::once(html! {});
    html! {
        h3 { "Throughput against the base" }
        p.caption {
            @for (word, _) in counts(&view.findings) {
                span class={ "verdict " (word) } { (sign(word)) " " (word) } " "
            }
            span class="verdict sla_missed" { "SLA missed" }
            " "
            span class="verdict hollow" { "machine disturbed" }
        }
        (scrolling(html! {
            table.matrix {
                @if are_wide {
                    (header(corner.chain(cells.iter().map(|cell| name(*cell)))))
                    tbody {
                        @for step in &steps {
                            tr {
                                th { (link(step)) }
                                @for cell in &cells { (matrix_cell(view, *cell, step)) }
                            }
                        }
                    }
                } @else {
                    (header(corner.chain(steps.iter().map(|step| link(step)))))
                    tbody {
                        @for cell in &cells {
                            tr {
                                th { (name(*cell)) }
                                @for step in &steps { (matrix_cell(view, *cell, step)) }
                            }
                        }
                    }
                }
            }
        }))
    }
}

/// What a colour says, as a sign.
pub(super) fn sign(word: &str) -> &'static str {
    match word {
        "regression" => "▼",
        "improvement" => "▲",
        "equivalent" => "=",
        "inconclusive" => "~",
        "depends on turns" => "?",
        "invalid" => "×",
        "unusual" => "!",
        _ => "·",
    }
}

fn matrix_cell(view: &View, cell: usize, step: &str) -> Markup {
    let Some(finding) = view.findings.of_throughput(cell, step) else {
        return html! { td { span.none { "–" } } };
    };
    let statuses = view
        .steps
        .iter()
        .find(|of| of.name == step)
        .map(|of| [of.outcomes[finding.base].status, of.outcomes[cell].status]);
    let has = |status: Status| statuses.is_some_and(|statuses| statuses.contains(&status));
    let hatch = if has(Status::SlaMissed) {
        " sla_missed"
    } else {
        ""
    };
    let hollow = if has(Status::Suspect) || finding.left_out > 0 {
        " hollow"
    } else {
        ""
    };
    let about = [
        finding.call.word(),
        finding.reason.as_str(),
        finding.turns.as_str(),
        finding.why.as_str(),
    ]
    .into_iter()
    .filter(|part| !part.is_empty());
    html! {
        td class={ "verdict " (finding.call.word()) (hatch) (hollow) }
            title=(about.collect::<Vec<_>>().join("; ")) {
            span.sign { (sign(finding.call.word())) } (change(finding))
            @if finding.left_out > 0 { " " span.mark { (finding.left_out) " out" } }
        }
    }
}

/// Ratios with their intervals; single blocks, rounds or runs as dots. One plot per metric; of many
/// rows the largest first, all of them folded.
fn plots(view: &View) -> Markup {
    const RATE: &str = "Throughput / base, more is better";
    let findings = &view.findings;
    let shown = |role: Role| -> Vec<&Finding> {
        findings
            .all
            .iter()
            .filter(|finding| finding.role == role && finding.estimate.is_some())
            .collect()
    };
    let control = |role: Role| findings.control.iter().find(|control| control.role == role);
    let (rates, costs) = (shown(Role::Throughput), shown(Role::Cpu));
    let cost = costs
        .first()
        .map(|finding| finding.metric)
        .or(control(Role::Cpu).map(|control| control.metric));
    html! {
        @if rates.len() > PLOTTED_FIRST {
            (ratio_plot(view, &farthest(&rates, PLOTTED_FIRST), Role::Throughput, &format!("The \
                {PLOTTED_FIRST} largest differences. {RATE}")))
            details {
                summary {
                    "Throughput, "
                    @if rates.len() > PLOTTED {
                        "the " (PLOTTED) " largest of " (rates.len())
                    } @else {
                        "all " (rates.len())
                    }
                }
                (ratio_plot(view, &farthest(&rates, PLOTTED), Role::Throughput, RATE))
            }
        } @else if !rates.is_empty() || control(Role::Throughput).is_some() {
            (ratio_plot(view, &rates, Role::Throughput, RATE))
        }
        @if let Some(title) = cost.map(|metric| headline(metric.name)) {
            details {
                summary { (title) }
                @let title = format!("{title} / base, less is better");
                (ratio_plot(view, &farthest(&costs, PLOTTED), Role::Cpu, &title))
            }
        }
    }
}
