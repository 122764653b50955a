//! Findings in lines of text.

use std::fmt::Write as _;

use plimsoll_stats::Verdict;

use super::finding::{Basis, Call, Estimate, Finding, Findings};
use super::measured::headline;
use crate::view::View;

/// Unusual steps of a screen that are named.
const UNUSUAL_SHOWN: usize = 12;

/// A ratio as a change: `-34.1 %`.
pub(crate) fn percent(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    // A change that rounds to nothing has no sign.
    if change.abs() < 0.05 { "0.0 %".to_owned() } else { format!("{change:+.1} %") }
}

/// `-34.1 % [-36.0, -32.2]`.
fn change_with_interval(estimate: &Estimate) -> String {
    let ends = estimate.interval.map(|(low, high)| format!(" [{:+.1}, {:+.1}]", 100.0 * (low - 1.0), 100.0 * (high - 1.0)));
    format!("{}{}", percent(estimate.ratio), ends.unwrap_or_default())
}

/// `12 blocks`, `5 starts x 60 rounds`.
fn pairs(finding: &Finding, estimate: &Estimate) -> String {
    let count = |n: usize, noun: &str| format!("{n} {noun}{}", if n == 1 { "" } else { "s" });
    let pairs = match finding.basis {
        Basis::Slices => format!("{}, {}", count(estimate.starts, "start"), count(estimate.pairs, "round")),
        _ => count(estimate.pairs, "block"),
    };
    let what = if finding.basis == Basis::Slices { "start" } else { "block" };
    if finding.left_out == 0 { pairs } else { format!("{pairs} ({} left out: machine disturbed)", count(finding.left_out, what)) }
}

/// What a line ends with: the per-operation numbers behind a difference, else the reason.
fn ending(finding: &Finding) -> &str {
    match finding.call {
        Call::Verdict(Verdict::Regression | Verdict::Improvement) => &finding.why,
        _ => &finding.reason,
    }
}

/// A finding of a campaign with pairs: `qp100  8.0.33 vs 5.6.24  regression  -34.1 % [-36.0, -32.2]  12 blocks  why`.
pub(crate) fn finding_line(view: &View, finding: &Finding) -> String {
    let metric = if finding.is_throughput { String::new() } else { format!(" {}", headline(finding.metric.name)) };
    let mut parts = vec![format!("{}{metric}", finding.step), format!("{} vs {}", view.cells[finding.cell].label, view.cells[0].label), finding.call.word().to_owned()];
    if let Some(estimate) = &finding.estimate {
        let is_equivalent = finding.verdict() == Some(Verdict::Equivalent);
        let within = if is_equivalent { format!(" within +-{:.0} %", 100.0 * view.findings.margin) } else { String::new() };
        parts.push(format!("{}{within}", change_with_interval(estimate)));
        parts.push(pairs(finding, estimate));
    }
    parts.extend(Some(ending(finding).to_owned()).filter(|ending| !ending.is_empty()));
    parts.join("  ")
}

/// A finding of a screen: `qp100  8.0.33 vs 5.6.24  unusual  -34.1 %  z -9.8, two equal builds lie within -11.1 to +12.5 %`.
pub(crate) fn unusual_line(view: &View, finding: &Finding) -> String {
    let metric = if finding.is_throughput { String::new() } else { format!(" {}", headline(finding.metric.name)) };
    let mut parts = vec![format!("{}{metric}", finding.step), format!("{} vs {}", view.cells[finding.cell].label, view.cells[0].label), finding.call.word().to_owned()];
    parts.extend(finding.estimate.map(|estimate| percent(estimate.ratio)));
    match finding.call {
        Call::Screen(screen, spread) => {
            let (low, high) = (100.0 * (-screen.reach).exp_m1(), 100.0 * screen.reach.exp_m1());
            let source = match spread.starts {
                0 => "assumed".to_owned(),
                starts => format!("from {starts} starts"),
            };
            parts.push(format!("z {:+.1}; two equal builds lie within {low:+.1} to {high:+.1} % (spread of starts {:.1} %, {source})", screen.z, 100.0 * spread.sd));
            parts.extend(Some(finding.why.clone()).filter(|why| finding.is_unusual() && !why.is_empty()));
        }
        _ => parts.extend(Some(finding.reason.clone()).filter(|reason| !reason.is_empty())),
    }
    parts.join("  ")
}

/// Verdicts on throughput and how often each was given, in the order of weight.
pub(crate) fn counts(findings: &Findings) -> Vec<(&'static str, usize)> {
    let words = ["regression", "improvement", "equivalent", "inconclusive", "invalid", "unusual", "usual"];
    let count = |word: &str| findings.all.iter().filter(|finding| finding.is_throughput && finding.call.word() == word).count();
    words.into_iter().map(|word| (word, count(word))).filter(|(_, count)| *count > 0).collect()
}

/// The differences that were called, or are unusual, of throughput, largest first.
pub(crate) fn largest(findings: &Findings, most: usize) -> Vec<&Finding> {
    let is_called = |finding: &&Finding| matches!(finding.call.word(), "regression" | "improvement" | "unusual") && finding.is_throughput;
    let mut called: Vec<&Finding> = findings.all.iter().filter(is_called).collect();
    called.sort_by(|a, b| b.gain().unwrap_or(0.0).abs().total_cmp(&a.gain().unwrap_or(0.0).abs()));
    called.truncate(most);
    called
}

/// What the A/A control says; `None` for a screen.
pub(crate) fn control_line(findings: &Findings) -> Option<String> {
    findings.all.iter().find(|finding| finding.basis != Basis::Screen)?;
    if findings.control.is_empty() {
        return Some("A/A control: none in this campaign; `plimsoll confirm` always has one".to_owned());
    }
    let tested: Vec<_> = findings.control.iter().filter(|control| control.estimate.is_some_and(|estimate| estimate.interval.is_some())).collect();
    let failed: Vec<String> = tested.iter().filter(|control| !control.is_sound).map(|control| format!("{} {}", control.step, headline(control.metric.name))).collect();
    Some(match (tested.len(), failed.len()) {
        (0, _) => "A/A control: too few pairs for its 99 % interval".to_owned(),
        (all, 0) => format!("A/A control: the base against itself holds 1 in {all} of {all} (99 % intervals)"),
        (all, out) => format!("A/A control: the base against itself does not hold 1 in {out} of {all}: {}", failed.join(", ")),
    })
}

/// The noise floor in words; `None` without intervals.
pub(crate) fn floor_line(findings: &Findings) -> Option<String> {
    let floor = |is_throughput: bool| findings.noise_floor_percent(is_throughput).map(|percent| format!("+-{percent:.1} %"));
    let (rate, cpu) = (floor(true), floor(false));
    rate.as_ref().or(cpu.as_ref())?;
    let parts: Vec<String> = [("throughput", rate), ("CPU/op", cpu)].into_iter().filter_map(|(name, floor)| Some(format!("{name} {}", floor?))).collect();
    let whose = if findings.control.iter().any(|control| control.estimate.is_some_and(|estimate| estimate.interval.is_some())) {
        "half of the A/A intervals' median width"
    } else {
        "half of the intervals' median width"
    };
    Some(format!("noise floor: {} ({whose})", parts.join(", ")))
}

/// The verdicts of a campaign with pairs, or what is unusual in a screen: lines for a terminal, columns aligned. Empty where there is nothing
/// to compare.
pub fn verdict_lines(view: &View) -> String {
    let findings = &view.findings;
    if findings.all.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let counted: Vec<String> = counts(findings).iter().map(|(word, count)| format!("{count} {word}")).collect();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string cannot fail");
    if findings.all.iter().all(|finding| finding.basis == Basis::Screen) {
        screen_lines(view, &counted, &mut add);
        return text;
    }
    add(&format!("Verdicts against {}: {}", view.cells[0].label, counted.join(", ")));
    control_line(findings).iter().chain(&floor_line(findings)).for_each(|line| add(line));
    // What moved with throughput explains it; alone it is news.
    let is_news = |finding: &&Finding| finding.is_throughput || matches!(finding.verdict(), Some(Verdict::Regression | Verdict::Improvement));
    let rows: Vec<Vec<String>> = findings
        .all
        .iter()
        .filter(is_news)
        .map(|finding| finding_line(view, finding).split("  ").map(str::to_owned).collect())
        .collect();
    aligned(&rows).iter().for_each(|line| add(line));
    text
}

fn screen_lines(view: &View, counted: &[String], add: &mut impl FnMut(&str)) {
    let findings = &view.findings;
    add(&format!("Screen against {}, one run each, no verdict: {}", view.cells[0].label, counted.join(", ")));
    let unusual = largest(findings, usize::MAX);
    if unusual.is_empty() {
        add("Nothing is unusual: `plimsoll confirm --all` would confirm every step.");
    } else {
        let rows: Vec<Vec<String>> = unusual.iter().take(UNUSUAL_SHOWN).map(|finding| unusual_line(view, finding).split("  ").map(str::to_owned).collect()).collect();
        aligned(&rows).iter().for_each(|line| add(line));
        if unusual.len() > UNUSUAL_SHOWN {
            add(&format!("and {} more", unusual.len() - UNUSUAL_SHOWN));
        }
    }
    for finding in findings.all.iter().filter(|finding| finding.is_throughput && finding.call == Call::Invalid) {
        add(&unusual_line(view, finding));
    }
}

/// Columns padded to their widest cell; the last one is left as it is.
fn aligned(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter(|row| i + 1 < row.len()).map(|row| row[i].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
