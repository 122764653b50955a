//! Findings in lines of text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use itertools::Itertools;
use plimsoll_stats::Verdict;

use super::finding::{Basis, Call, Control, Estimate, Finding, Findings};
use super::measured::{Role, headline};
use super::summary;
use crate::groups::group_lines;
use crate::view::View;

/// Said in place of verdicts: there is nothing but the base and its second instance, or no step
/// has been measured on both sides.
pub fn no_verdicts(view: &View) -> String {
    let base = &view.cells[0].label;
    let controls = &view.findings.control_cells;
    match (1..view.cells.len()).all(|cell| controls.contains(&cell)) {
        true => format!(
            "No verdicts: the only candidate apart from the base is its second instance, of {base}"
        ),
        false => format!("No verdicts: no step has numbers of both {base} and a candidate"),
    }
}

/// Unusual steps of a screen that are named.
const UNUSUAL_SHOWN: usize = 5;

/// Changes above this, in percent, are not told apart: the end of an interval that knows nothing.
const MOST_SHOWN: f64 = 99_999.0;

/// A ratio as a change: `-34.1 %`.
pub fn percent(ratio: f64) -> String {
    // A change that rounds to nothing has no sign.
    match signed(ratio) {
        nothing if nothing == "+0.0" || nothing == "-0.0" => "0.0 %".to_owned(),
        change => format!("{change} %"),
    }
}

/// `-34.1`, `>+99999`.
fn signed(ratio: f64) -> String {
    let change = 100.0 * (ratio - 1.0);
    if change > MOST_SHOWN {
        format!(">{MOST_SHOWN:+.0}")
    } else {
        format!("{change:+.1}")
    }
}

/// `-34.1 % [-36.0, -32.2]`.
pub(crate) fn change_with_interval(estimate: &Estimate) -> String {
    let ends = estimate
        .interval
        .map(|(low, high)| format!(" [{}, {}]", signed(low), signed(high)));
    format!("{}{}", percent(estimate.ratio), ends.unwrap_or_default())
}

/// What cells are held against: `8.0.0.lc`, `8.0.0.lc and 8.0.0.uc`.
pub fn bases(view: &View) -> String {
    view.findings
        .bases()
        .into_iter()
        .map(|base| view.cells[base].label.as_str())
        .collect::<Vec<_>>()
        .join(" and ")
}

/// `1 block`, `12 blocks`.
pub(super) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// `12 blocks`, `5 starts, 300 rounds`, `1 run`.
pub fn repeats(basis: Basis, estimate: &Estimate, left_out: usize) -> String {
    let out = match (left_out, basis) {
        (0, _) => String::new(),
        (out, Basis::Slices) => format!(" ({} left out)", count(out, "start")),
        (out, _) => format!(" ({out} left out)"),
    };
    match basis {
        Basis::Slices => format!(
            "{}{out}, {}",
            count(estimate.starts, "start"),
            count(estimate.pairs, "round")
        ),
        Basis::Blocks => format!("{}{out}", count(estimate.pairs, "block")),
        Basis::Screen => count(estimate.pairs, "run"),
    }
}

/// The step, and behind it the metric where it is not the step's throughput.
pub fn subject(finding: &Finding) -> String {
    let metric = if finding.role == Role::Throughput {
        String::new()
    } else {
        format!(" {}", headline(finding.metric.name))
    };
    format!("{}{metric}", finding.step)
}

/// Whether it has a line of its own: throughput; CPU that depends on turns, which may be quoted as
/// a cause; CPU that was called while throughput was not, because CPU that moved with throughput
/// explains it; and tails, stalls and I/O that regressed by more than the margin while throughput
/// did not.
pub fn is_news(findings: &Findings, finding: &Finding) -> bool {
    let is_called = |finding: &Finding| {
        matches!(
            finding.verdict(),
            Some(Verdict::Regression | Verdict::Improvement)
        )
    };
    let is_told_by_throughput = || {
        let throughput = findings.of_throughput(finding.cell, &finding.step);
        throughput.is_some_and(is_called)
    };
    match finding.role {
        Role::Throughput => true,
        Role::Cpu => {
            let is_dependent = finding.call == Call::DependsOnTurns;
            is_dependent || (is_called(finding) && !is_told_by_throughput())
        }
        Role::Companion => {
            finding.verdict() == Some(Verdict::Regression)
                && finding
                    .gain()
                    .is_some_and(|gain| -gain > findings.margin.ln_1p())
                && !is_told_by_throughput()
        }
    }
}

/// What a line ends with: typical turns and stalls; the per-operation numbers behind a difference,
/// else the reason why there is none; and whether errors are widened.
pub fn ending(finding: &Finding) -> String {
    let is_called = matches!(
        finding.call.word(),
        "regression" | "improvement" | "unusual"
    );
    let of_call = match is_called && !finding.why.is_empty() {
        true => &finding.why,
        false => &finding.reason,
    };
    let scale = finding.estimate.map_or(1.0, |estimate| estimate.scale);
    let widened = match scale > 1.0 {
        true => format!("errors x {scale:.1}: the base differs from itself by more than they say"),
        false => String::new(),
    };
    let layout = finding.layout.map(|width| {
        let of_ratio = format!("{:.1}", 100.0 * width.exp_m1());
        match of_ratio.as_str() {
            "0.0" => "links differ by no more than the base from itself".to_owned(),
            some => format!("of its interval +-{some} % is layout"),
        }
    });
    let parts = [
        layout.unwrap_or_default(),
        finding.turns.clone(),
        finding.placements.clone(),
        finding.hosts.clone(),
        of_call.clone(),
        widened,
    ];
    parts.into_iter().filter(|part| !part.is_empty()).join("; ")
}

/// A finding as columns, and what follows them.
struct Row {
    columns: Vec<String>,
    ending: String,
}

fn row(view: &View, finding: &Finding, is_screen_told: bool) -> Row {
    let cells = format!(
        "{} vs {}",
        view.cells[finding.cell].label, view.cells[finding.base].label
    );
    let mut columns = vec![subject(finding), cells, finding.call.word().to_owned()];
    if let Some(estimate) = &finding.estimate {
        let is_equivalent = finding.verdict() == Some(Verdict::Equivalent);
        let within = if is_equivalent {
            format!(" within +-{:.0} %", 100.0 * view.findings.margin)
        } else {
            String::new()
        };
        columns.push(format!("{}{within}", change_with_interval(estimate)));
        columns.push(match finding.call {
            Call::Screen(screen, _) => format!("z {:+.1}", screen.z),
            _ => format!(
                "{}, {:.0} s",
                repeats(finding.basis, estimate, finding.left_out),
                finding.seconds
            ),
        });
    }
    let mut endings = Vec::new();
    if finding.basis == Basis::Screen {
        endings.extend(expectation(finding).filter(|_| !is_screen_told));
    }
    endings.push(ending(finding));
    endings.retain(|ending| !ending.is_empty());
    Row {
        columns,
        ending: endings.join("; "),
    }
}

/// The base against itself, as a row among the others.
fn control_row(control: &Control) -> Row {
    let has_interval = control
        .estimate
        .is_some_and(|estimate| estimate.interval.is_some());
    let word = match (has_interval, control.is_sound) {
        (false, _) => "A/A",
        (true, Some(false)) => "A/A fails",
        (true, _) => "A/A holds",
    };
    let mut columns = vec![
        control.step.clone(),
        format!("{} vs {}", control.cell, control.base),
        word.to_owned(),
    ];
    if let Some(estimate) = &control.estimate {
        columns.push(change_with_interval(estimate));
        columns.push(format!(
            "{}, {:.0} s",
            repeats(control.basis, estimate, control.left_out),
            control.seconds
        ));
    }
    Row {
        columns,
        ending: if control.estimate.is_some() {
            String::new()
        } else {
            "no pairs".to_owned()
        },
    }
}

/// Of a screen: how far two equal builds lie apart, and how that is known.
fn expectation(finding: &Finding) -> Option<String> {
    let Call::Screen(screen, spread) = finding.call else {
        return None;
    };
    let (low, high) = (
        100.0 * (-screen.reach).exp_m1(),
        100.0 * screen.reach.exp_m1(),
    );
    let source = if spread.is_prior() {
        "assumed".to_owned()
    } else {
        format!("from {} starts", spread.starts)
    };
    Some(format!(
        "two equal builds lie within {low:+.1} to {high:+.1} % (spread of starts {:.1} %, \
        {source})",
        100.0 * spread.sd
    ))
}

/// A finding in a line:
/// `qp100  8.0.33 vs 5.6.24  regression  -34.1 % [-36.0, -32.2]  12 blocks  why`.
pub fn finding_line(view: &View, finding: &Finding) -> String {
    let Row {
        mut columns,
        ending,
    } = row(view, finding, false);
    columns.extend(Some(ending).filter(|ending| !ending.is_empty()));
    columns.join("  ")
}

/// Verdicts on throughput and how often each was given, in the order of weight.
pub fn counts(findings: &Findings) -> Vec<(&'static str, usize)> {
    let words = [
        "regression",
        "improvement",
        "equivalent",
        "inconclusive",
        "depends on turns",
        "invalid",
        "unusual",
        "usual",
    ];
    let count = |word: &str| {
        findings
            .all
            .iter()
            .filter(|finding| finding.role == Role::Throughput && finding.call.word() == word)
            .count()
    };
    words
        .into_iter()
        .map(|word| (word, count(word)))
        .filter(|(_, count)| *count > 0)
        .collect()
}

/// The largest differences of throughput that were called, or are unusual, one of each step:
/// regressions before improvements.
pub fn largest(findings: &Findings, most: usize) -> Vec<&Finding> {
    let of_steps = called(findings).into_iter().unique_by(|of| &of.step);
    of_steps.take(most).collect()
}

/// The differences that were called, or are unusual, of throughput: regressions before improvements,
/// then the largest first.
fn called(findings: &Findings) -> Vec<&Finding> {
    let is_called = |finding: &&Finding| {
        matches!(
            finding.call.word(),
            "regression" | "improvement" | "unusual"
        ) && finding.role == Role::Throughput
    };
    let mut called: Vec<&Finding> = findings.all.iter().filter(is_called).collect();
    let size = |finding: &Finding| finding.gain().unwrap_or(0.0).abs();
    let is_better = |finding: &Finding| finding.call.word() == "improvement";
    called.sort_by(|a, b| {
        is_better(a)
            .cmp(&is_better(b))
            .then(size(b).total_cmp(&size(a)))
    });
    called
}

/// What the A/A control says; `None` for a screen.
pub fn control_line(findings: &Findings) -> Option<String> {
    if findings.is_screen() {
        return None;
    }
    if findings.control.is_empty() {
        return Some(
            "A/A control: none in this campaign; `plimsoll confirm` always has one".to_owned(),
        );
    }
    let tested: Vec<_> = findings
        .control
        .iter()
        .filter(|control| control.is_sound.is_some() && control.role != Role::Companion)
        .collect();
    let failed: Vec<String> = tested
        .iter()
        .filter(|control| control.is_sound == Some(false))
        .map(|control| format!("{} {}", control.step, headline(control.metric.name)))
        .collect();
    let widened = widened(findings).unwrap_or_default();
    Some(match (tested.len(), failed.len()) {
        (0, _) => "A/A control: too few pairs for its 99 % interval".to_owned(),
        (all, 0) => format!(
            "A/A control: the base agrees with itself in {all} of {all} comparisons (99 % \
            intervals){widened}"
        ),
        (all, out) => format!(
            "A/A control: the base differs from itself in {out} of {all} comparisons (99 % \
            intervals): {}{widened}",
            failed.join(", ")
        ),
    })
}

/// `; errors of hot-points qps count 4.3 times, of 2 others less`: by how much the control showed
/// errors to be too small, at most.
fn widened(findings: &Findings) -> Option<String> {
    let scale = |finding: &&Finding| finding.estimate.map_or(1.0, |estimate| estimate.scale);
    let widened = findings.all.iter().filter(|finding| scale(finding) > 1.0);
    let name = |of: &Finding| format!("{} {}", of.step, headline(of.metric.name));
    let all: BTreeMap<String, f64> = widened.map(|of| (name(of), scale(&of))).collect();
    let (name, largest) = all.iter().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    let others = match all.len() - 1 {
        0 => String::new(),
        1 => ", of 1 other not more".to_owned(),
        others => format!(", of {others} others not more"),
    };
    Some(format!(
        "; errors of {name} count {largest:.1} times{others}"
    ))
}

/// What precedes verdicts: under what conditions they hold, the A/A control, the noise floor.
pub fn facts(findings: &Findings) -> Vec<String> {
    let conditions = Some(findings.conditions.clone()).filter(|line| !line.is_empty());
    let lines = [conditions, control_line(findings), floor_line(findings)];
    lines.into_iter().flatten().collect()
}

/// The noise floor in words; `None` without intervals.
fn floor_line(findings: &Findings) -> Option<String> {
    let floor = |role: Role| {
        findings
            .noise_floor_percent(role, None)
            .map(|percent| format!("+-{percent:.1} %"))
    };
    let (rate, cpu) = (floor(Role::Throughput), floor(Role::Cpu));
    rate.as_ref().or(cpu.as_ref())?;
    let parts: Vec<String> = [("throughput", rate), ("CPU/op", cpu)]
        .into_iter()
        .filter_map(|(name, floor)| Some(format!("{name} {}", floor?)))
        .collect();
    let whose = if findings.control.iter().any(|control| {
        control
            .estimate
            .is_some_and(|estimate| estimate.interval.is_some())
    }) {
        "half of the median width of the A/A intervals, 95 %"
    } else {
        "half of the intervals' median width, 95 %"
    };
    Some(format!("noise floor: {} ({whose})", parts.join(", ")))
}

/// The verdicts of a campaign with pairs, or what is unusual in a screen: lines for a terminal,
/// columns aligned. Empty where there is nothing to compare.
pub fn verdict_lines(view: &View) -> String {
    lines(view, false)
}

/// The same without the line of each step and cell: what a run ends with.
pub fn brief_lines(view: &View) -> String {
    lines(view, true)
}

fn lines(view: &View, is_brief: bool) -> String {
    let findings = &view.findings;
    if findings.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    let counted: Vec<String> = counts(findings)
        .iter()
        .map(|(word, count)| format!("{count} {word}"))
        .collect();
    let mut add = |line: &str| writeln!(text, "{line}").expect("writing to a string cannot fail");
    if findings.is_screen() {
        screen_lines(view, &counted, &mut add);
        return text;
    }
    add(&match findings.all.is_empty() {
        true => no_verdicts(view),
        false => format!("Verdicts against {}: {}", bases(view), counted.join(", ")),
    });
    if !findings.all.is_empty() {
        summary::sentences(view).iter().for_each(|line| add(line));
    }
    facts(findings).iter().for_each(|line| add(line));
    group_rows(view).iter().for_each(|line| add(line));
    if !findings.all.is_empty() {
        summary::ratio_table(view).iter().for_each(|line| add(line));
    }
    if is_brief {
        let told = summary::explained(view).into_iter();
        let told = told.chain(summary::why_invalid(view));
        told.for_each(|line| add(&line));
        return text;
    }
    add("Test by test:");
    let of_control = findings.control.iter().map(|control| control.step.as_str());
    let mut rows: Vec<Row> = Vec::new();
    for step in findings
        .all
        .iter()
        .map(|finding| finding.step.as_str())
        .chain(of_control)
        .unique()
    {
        let told = findings
            .all
            .iter()
            .filter(|finding| finding.step == step && is_news(findings, finding));
        rows.extend(told.map(|finding| row(view, finding, true)));
        let of_step = findings
            .control
            .iter()
            .filter(|control| control.step == step && control.role == Role::Throughput);
        rows.extend(of_step.map(control_row));
    }
    aligned(&rows).iter().for_each(|line| add(line));
    if findings.all.iter().any(|finding| finding.left_out > 0)
        || findings.control.iter().any(|control| control.left_out > 0)
    {
        add("left out: a witness saw the machine disturbed");
    }
    text
}

/// A line per group of tests and cell, with a heading.
fn group_rows(view: &View) -> Vec<String> {
    let rows: Vec<Row> = group_lines(view)
        .into_iter()
        .map(|columns| Row {
            columns,
            ending: String::new(),
        })
        .collect();
    match rows.is_empty() {
        true => Vec::new(),
        false => {
            let all = aligned(&rows).into_iter().map(|line| format!("  {line}"));
            std::iter::once("Over tests:".to_owned())
                .chain(all)
                .collect()
        }
    }
}

fn screen_lines(view: &View, counted: &[String], add: &mut impl FnMut(&str)) {
    let findings = &view.findings;
    add(&format!(
        "Survey against {}, one run each, no verdict: {}",
        bases(view),
        counted.join(", ")
    ));
    let of_throughput = || {
        findings
            .all
            .iter()
            .filter(|finding| finding.role == Role::Throughput)
    };
    let mut expectations: Vec<String> = of_throughput().filter_map(expectation).collect();
    expectations.sort();
    expectations.dedup();
    let is_told = expectations.len() == 1;
    if is_told {
        let mut line = expectations[0].clone();
        line.replace_range(..1, "T");
        add(&line);
    }
    let unusual = called(findings);
    if unusual.is_empty() {
        let campaign = view.campaigns.first();
        let campaign = campaign.map_or_else(String::new, |of| format!(" {}", of.name));
        add(
            &match of_throughput().any(|finding| finding.call.is_judged()) {
                true => format!(
                    "Nothing is unusual: `plimsoll confirm{campaign} --all{}` would confirm every \
                    step.",
                    view.options
                ),
                false => format!(
                    "Nothing could be judged: the notes say why, and `plimsoll report{campaign} \
                    --format md` says it of each step."
                ),
            },
        );
    }
    let shown = unusual.iter().take(UNUSUAL_SHOWN);
    let rows: Vec<Row> = shown.map(|finding| row(view, finding, is_told)).collect();
    aligned(&rows).iter().for_each(|line| add(line));
    if unusual.len() > UNUSUAL_SHOWN {
        add(&format!(
            "and {} more unusual steps",
            unusual.len() - UNUSUAL_SHOWN
        ));
    }
    let rows: Vec<Row> = unjudged(view)
        .into_iter()
        .map(|ending| Row {
            columns: vec!["not judged".to_owned()],
            ending,
        })
        .collect();
    aligned(&rows).iter().for_each(|line| add(line));
}

/// The steps whose throughput says nothing, and those whose CPU per operation depends on turns, by
/// their reasons: `l.x, l.i1: the cell crashed`. What is invalid is so for both. Cells are named where
/// a reason is not that of all candidates.
pub fn unjudged(view: &View) -> Vec<String> {
    let of_throughput = view.findings.all.iter();
    let of_throughput = of_throughput.filter(|finding| finding.role == Role::Throughput);
    let candidates = of_throughput.clone().map(|finding| finding.cell).unique();
    let candidates = candidates.count();
    // The cells of each reason and step; then steps of the same cells together.
    let of_cpu = view.findings.all.iter();
    let of_cpu = of_cpu.filter(|of| of.role == Role::Cpu && of.call == Call::DependsOnTurns);
    let mut cells: BTreeMap<(&str, String), Vec<usize>> = BTreeMap::new();
    let mut order = Vec::new();
    let unjudged = of_throughput.filter(|finding| !finding.call.is_judged());
    for finding in unjudged.chain(of_cpu) {
        let of = (finding.reason.as_str(), subject(finding));
        order.extend(Some(of.clone()).filter(|of| !cells.contains_key(of)));
        cells.entry(of).or_default().push(finding.cell);
    }
    let mut steps: BTreeMap<(&str, &[usize]), Vec<&str>> = BTreeMap::new();
    for of in &order {
        steps.entry((of.0, &cells[of])).or_default().push(&of.1);
    }
    let line = |((reason, cells), steps): ((&str, &[usize]), Vec<&str>)| {
        let mut labels = cells.iter().map(|cell| view.cells[*cell].label.as_str());
        let whose = match cells.len() < candidates {
            true => format!("{} ", labels.join(", ")),
            false => String::new(),
        };
        format!("{whose}{}: {reason}", steps.join(", "))
    };
    steps.into_iter().map(line).collect()
}

/// A terminal's columns that lines keep to where they can.
pub(super) const COLUMNS: usize = 118;

/// Columns padded to their widest cell. What follows them is in the same line if it
/// fits, else below it, wrapped.
fn aligned(rows: &[Row]) -> Vec<String> {
    let columns = rows.iter().map(|row| row.columns.len()).max().unwrap_or(0);
    let width = |i: usize| {
        rows.iter()
            .filter_map(|row| Some(row.columns.get(i)?.chars().count()))
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut lines = Vec::new();
    for row in rows {
        let cells: Vec<String> = row
            .columns
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        let line = cells.join("  ");
        if row.ending.is_empty() || line.chars().count() + 2 + row.ending.chars().count() <= COLUMNS
        {
            lines.push(format!("{line}  {}", row.ending).trim_end().to_owned());
            continue;
        }
        lines.push(line.trim_end().to_owned());
        let below = wrapped(&row.ending).into_iter();
        lines.extend(below.enumerate().map(|(i, line)| match i {
            0 => format!("    {line}"),
            _ => format!("  {line}"),
        }));
    }
    lines
}

/// Lines that fit into a terminal with four columns to spare; later ones are indented by two.
pub(super) fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS - 4 => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The findings with the largest differences, in their order; more than asked for where some are
/// equally large.
pub fn farthest<'a>(findings: &[&'a Finding], most: usize) -> Vec<&'a Finding> {
    let mut sizes: Vec<f64> = findings.iter().map(|finding| size(finding)).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes.get(most - 1).copied().unwrap_or(0.0);
    findings
        .iter()
        .copied()
        .filter(|finding| size(finding) >= least)
        .collect()
}

fn size(finding: &Finding) -> f64 {
    finding.gain().unwrap_or(0.0).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_signed_and_absurd_ones_are_cut() {
        for (ratio, wanted) in [
            (0.659, "-34.1 %"),
            (1.0, "0.0 %"),
            (0.9996, "0.0 %"),
            (1.001, "+0.1 %"),
            (1000.0, "+99900.0 %"),
            (1e15, ">+99999 %"),
        ] {
            assert_eq!(percent(ratio), wanted, "{ratio}");
        }
    }
}
