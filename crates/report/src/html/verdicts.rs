//! The top of the page: what is said of each cell, how sure it is, and on what it rests.

use maud::{Markup, html};
use plimsoll_stats::Verdict;

use super::tables::{cell_name, scrolling};
use crate::verdicts::{Basis, Call, Finding, control_line, counts, floor_line, headline, largest, percent};
use crate::view::{Status, View};

/// Differences that are told in words.
const TOLD: usize = 5;
/// Rows that a ratio plot has at the most; of more, the largest.
const PLOTTED: usize = 48;

/// Strip, matrix and ratio plots; nothing where nothing was compared.
pub(super) fn section(view: &View) -> Markup {
    let findings = &view.findings;
    if findings.all.is_empty() {
        return html! {};
    }
    let is_screen = is_screen(view);
    html! {
        section {
            h2 id="verdicts" { a.anchor href="#verdicts" { @if is_screen { "Screen" } @else { "Verdicts" } } }
            p.strip {
                @for (word, count) in counts(findings) { span class={ "verdict " (word) } { strong { (count) } " " (word) } " " }
                span.caption { "of throughput, against " (view.cells[0].label) }
            }
            @if is_screen { p.caption { "One run of each cell: a word here is no verdict. An unusual step differs by more than two starts of one build would, 95 times of 100; " code { "plimsoll confirm" } " tells whether it is there." } }
            @for line in control_line(findings).iter().chain(&floor_line(findings)) { p.facts { (line) } }
            (told(view))
            (matrix(view))
            (plots(view))
        }
    }
}

fn is_screen(view: &View) -> bool {
    view.findings.all.iter().all(|finding| finding.basis == Basis::Screen)
}

/// The largest differences with what explains them.
fn told(view: &View) -> Markup {
    let largest = largest(&view.findings, TOLD);
    html! {
        @if !largest.is_empty() {
            ol.told {
                @for finding in largest {
                    li {
                        a href={ "#" (super::step::anchor(&finding.step)) } { (finding.step) } " "
                        (view.cells[finding.cell].label) ": "
                        span class={ "verdict " (finding.call.word()) } { (finding.call.word()) } " "
                        strong { (change(finding)) }
                        @if let Some((low, high)) = finding.estimate.and_then(|estimate| estimate.interval) { " [" (percent(low)) ", " (percent(high)) "]" }
                        @if !finding.why.is_empty() { " – " (finding.why) }
                    }
                }
            }
        }
    }
}

fn change(finding: &Finding) -> String {
    finding.estimate.map_or_else(|| "–".to_owned(), |estimate| percent(estimate.ratio))
}

/// A row per cell, a column per step, coloured by verdict. A hatch marks a missed SLA, an outline without a fill what a witness set aside.
fn matrix(view: &View) -> Markup {
    let steps: Vec<&str> = {
        let mut steps: Vec<&str> = Vec::new();
        for finding in &view.findings.all {
            if !steps.contains(&finding.step.as_str()) {
                steps.push(&finding.step);
            }
        }
        steps
    };
    let is_shown = |cell: &usize| view.findings.all.iter().any(|finding| finding.cell == *cell);
    html! {
        h3 { "Throughput against the base" }
        p.caption {
            @for (word, _) in counts(&view.findings) { span class={ "verdict " (word) } { (sign(word)) " " (word) } " " }
            span class="verdict sla_missed" { "SLA missed" } " " span class="verdict hollow" { "machine disturbed" }
        }
        (scrolling(html! {
            table.matrix {
                thead { tr { th {} @for step in &steps { th { a href={ "#" (super::step::anchor(step)) } { (step) } } } } }
                tbody {
                    @for cell in (1..view.cells.len()).filter(is_shown) {
                        tr {
                            th { (cell_name(cell, &view.cells[cell])) }
                            @for step in &steps { (matrix_cell(view, cell, step)) }
                        }
                    }
                }
            }
        }))
    }
}

/// What a colour says, as a sign.
fn sign(word: &str) -> &'static str {
    match word {
        "regression" => "▼",
        "improvement" => "▲",
        "equivalent" => "=",
        "inconclusive" => "~",
        "invalid" => "×",
        "unusual" => "!",
        _ => "·",
    }
}

fn matrix_cell(view: &View, cell: usize, step: &str) -> Markup {
    let Some(finding) = view.findings.of_throughput(cell, step) else { return html! { td { span.none { "–" } } } };
    let statuses = view.steps.iter().find(|of| of.name == step).map(|of| [of.outcomes[0].status, of.outcomes[cell].status]);
    let has = |status: Status| statuses.is_some_and(|statuses| statuses.contains(&status));
    let hatch = if has(Status::SlaMissed) { " sla_missed" } else { "" };
    let hollow = if has(Status::Suspect) || finding.left_out > 0 { " hollow" } else { "" };
    let about = [finding.call.word(), finding.reason.as_str(), finding.why.as_str()].into_iter().filter(|part| !part.is_empty());
    html! {
        td class={ "verdict " (finding.call.word()) (hatch) (hollow) } title=(about.collect::<Vec<_>>().join("; ")) {
            span.sign { (sign(finding.call.word())) } (change(finding))
            @if finding.left_out > 0 { " " span.mark { (finding.left_out) " out" } }
        }
    }
}

const WIDTH: f64 = 900.0;
const LABEL: f64 = 300.0;
const VALUE: f64 = 150.0;
const ROW: f64 = 20.0;
const TOP: f64 = 22.0;

/// Ratios with their intervals; single blocks, rounds or runs as dots. One plot per metric.
fn plots(view: &View) -> Markup {
    let of_metric = |is_throughput: bool| -> Vec<&Finding> {
        let is_shown = |finding: &&Finding| finding.is_throughput == is_throughput && finding.estimate.is_some();
        let mut shown: Vec<&Finding> = view.findings.all.iter().filter(is_shown).collect();
        if shown.len() > PLOTTED {
            let mut sizes: Vec<f64> = shown.iter().map(|finding| size(finding)).collect();
            sizes.sort_by(|a, b| b.total_cmp(a));
            shown.retain(|finding| size(finding) >= sizes[PLOTTED - 1]);
        }
        shown
    };
    let (rate, cpu) = (of_metric(true), of_metric(false));
    let title = |findings: &[&Finding]| findings.first().map_or(String::new(), |finding| headline(finding.metric.name));
    html! {
        @if !rate.is_empty() { (plot(view, &rate, "Throughput / base, more is better")) }
        @if !cpu.is_empty() { details { summary { (title(&cpu)) } (plot(view, &cpu, &format!("{} / base, less is better", title(&cpu)))) } }
    }
}

fn size(finding: &Finding) -> f64 {
    finding.gain().unwrap_or(0.0).abs()
}

fn plot(view: &View, findings: &[&Finding], title: &str) -> Markup {
    let margin = view.findings.margin;
    let ends = |finding: &&Finding| -> Vec<f64> {
        let estimate = finding.estimate.expect("findings without a ratio are not plotted");
        let (low, high) = estimate.interval.unwrap_or((estimate.ratio, estimate.ratio));
        // A round that stalled may lie far out: it is cut at the edge and does not set the scale.
        vec![estimate.ratio, low.max(estimate.ratio / 4.0), high.min(estimate.ratio * 4.0)]
    };
    let all: Vec<f64> = findings.iter().flat_map(ends).chain([1.0 - 2.0 * margin, 1.0 + 2.0 * margin]).collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min).ln() - 0.02;
    let high = all.iter().copied().fold(0.0, f64::max).ln() + 0.02;
    let x = |ratio: f64| LABEL + ((ratio.ln() - low) / (high - low)).clamp(0.0, 1.0) * (WIDTH - LABEL - VALUE);
    let at = |ratio: f64| format!("{:.1}", x(ratio));
    let height = TOP + ROW * findings.len() as f64 + 6.0;
    html! {
        figure.wide {
            figcaption { (title) ". " @if is_screen(view) { "The bar is where two equal builds lie." } @else { "The bar is the " (format!("{:.0}", 100.0 * findings[0].estimate.map_or(0.95, |estimate| estimate.level))) " % interval, dots are single " (if findings[0].basis == Basis::Slices { "rounds" } else { "blocks" }) ", the band is ±" (format!("{:.0}", 100.0 * margin)) " %." } }
            svg viewBox={ "0 0 " (WIDTH) " " (height) } role="img" aria-label=(title) {
                rect.band x=(at(1.0 - margin)) y=(TOP - 4.0) width=(format!("{:.1}", x(1.0 + margin) - x(1.0 - margin))) height=(height - TOP) {}
                @for tick in ticks(low.exp(), high.exp()) {
                    line.grid x1=(at(tick)) x2=(at(tick)) y1=(TOP - 4.0) y2=(height - 4.0) {}
                    text x=(at(tick)) y="12" text-anchor="middle" { (tick) }
                }
                line.mark x1=(at(1.0)) x2=(at(1.0)) y1=(TOP - 4.0) y2=(height - 4.0) {}
                @for (i, finding) in findings.iter().enumerate() {
                    @let y = TOP + ROW * i as f64 + ROW / 2.0;
                    @let estimate = finding.estimate.expect("findings without a ratio are not plotted");
                    @let label = format!("{} {}", finding.step, view.cells[finding.cell].label);
                    text x=(LABEL - 8.0) y=(y + 4.0) text-anchor="end" { title { (label) } (super::figures::short(&label, 44)) }
                    g class={ "k" (finding.cell % 8) } {
                        @if finding.dots.len() > 1 { @for (n, dot) in finding.dots.iter().enumerate() {
                            // Three lanes, so that dots that are alike do not hide each other.
                            circle.trial cx=(at(*dot)) cy=(y + (n % 3) as f64 * 3.0 - 3.0) r="1.8" {}
                        } }
                        @match finding.call {
                            Call::Screen(screen, _) => line.interval x1=(at((-screen.reach).exp())) x2=(at(screen.reach.exp())) y1=(y) y2=(y) {},
                            _ => @if let Some((low, high)) = estimate.interval { line.interval x1=(at(low)) x2=(at(high)) y1=(y) y2=(y) {} },
                        }
                        @let is_hollow = matches!(finding.call, Call::Invalid) || finding.verdict() == Some(Verdict::Inconclusive);
                        circle class={ "dot" @if is_hollow { " hollow" } } cx=(at(estimate.ratio)) cy=(y) r="4" { title { (label) ": " (percent(estimate.ratio)) } }
                    }
                    text x=(WIDTH - VALUE + 8.0) y=(y + 4.0) { (percent(estimate.ratio)) " " (finding.call.word()) }
                }
            }
        }
    }
}

/// Round ratios between the ends: at most ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    const STEPS: [f64; 8] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0];
    let step = STEPS.into_iter().find(|step| (high - low) / step <= 9.0).unwrap_or(50.0);
    let first = (low / step).ceil() as u32;
    let last = (high / step).floor() as u32;
    // Rounded: multiples of 0.1 are not exact.
    (first..=last).map(|tick| (f64::from(tick) * step * 100.0).round() / 100.0).filter(|tick| *tick > 0.0).collect()
}
