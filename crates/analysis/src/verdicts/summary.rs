//! What a campaign with verdicts says first: a sentence for each candidate, the machine, and the
//! ratios with their intervals.

use itertools::Itertools;
use plimsoll_stats::Verdict;

use super::finding::{Basis, Call, Control, Estimate, Finding, Findings};
use super::lines::{COLUMNS, bases, count, ending, largest, percent, unjudged, wrapped};
use super::measured::Role;
use crate::view::View;

/// Differences of each direction that a sentence names.
const NAMED: usize = 3;
/// Differences that are explained.
const EXPLAINED: usize = 3;
/// The machine's disturbance is worth a word from this share on.
const WORTH_A_WORD: f64 = 0.01;

/// A sentence about each candidate against its base, the machine last:
/// `wal_off: 3 of 10 steps are faster (l.i2 +205.0 %, l.i1 +94.0 %, l.i0 +31.0 %); 6 are equivalent,
/// 1 is inconclusive`.
pub fn sentences(view: &View) -> Vec<String> {
    let findings = &view.findings;
    if findings.all.is_empty() {
        return Vec::new();
    }
    let of_cells = candidates(findings).map(|cell| {
        let of = of_throughput(findings, cell);
        let info = &view.cells[cell];
        format!("{}{}: {}", info.label, info.mark(), sentence(&of))
    });
    of_cells.chain(machine_taken(view)).collect()
}

fn candidates(findings: &Findings) -> impl Iterator<Item = usize> {
    let cells = findings.all.iter().map(|finding| finding.cell);
    cells.unique().collect_vec().into_iter()
}

fn of_throughput(findings: &Findings, cell: usize) -> Vec<&Finding> {
    let is_asked = |finding: &&Finding| finding.cell == cell && finding.role == Role::Throughput;
    findings.all.iter().filter(is_asked).collect()
}

fn sentence(of_cell: &[&Finding]) -> String {
    let all = of_cell.len();
    let steps = if all == 1 { "step" } else { "steps" };
    let called = |verdict: Verdict| -> Vec<&&Finding> {
        let is_so = |finding: &&&Finding| finding.verdict() == Some(verdict);
        let by_size = |finding: &&&Finding| {
            let gain = finding.gain().unwrap_or(0.0).abs();
            std::cmp::Reverse(ordered_float(gain))
        };
        of_cell
            .iter()
            .filter(is_so)
            .sorted_by_key(by_size)
            .collect()
    };
    let mut parts = Vec::new();
    for (verdict, word) in [
        (Verdict::Regression, "slower"),
        (Verdict::Improvement, "faster"),
    ] {
        let found = called(verdict);
        if found.is_empty() {
            continue;
        }
        let mut named: Vec<String> = found.iter().take(NAMED).map(|of| change(of)).collect();
        if found.len() > NAMED {
            named.push("...".to_owned());
        }
        let are = if found.len() == 1 { "is" } else { "are" };
        parts.push(format!(
            "{} of {all} {steps} {are} {word} ({})",
            found.len(),
            named.join(", ")
        ));
    }
    let (waiting, over): (Vec<&Finding>, Vec<&Finding>) =
        of_cell.iter().partition(|finding| finding.needed.is_some());
    let judged = over.iter().filter(|finding| finding.call.is_judged());
    let judged = judged.count();
    // The verdicts behind "no difference" are then of the same steps.
    let is_divided = parts.is_empty() && judged > 0 && judged == all;
    if parts.is_empty() {
        parts.extend(match judged {
            0 if waiting.is_empty() => Some("nothing could be judged".to_owned()),
            0 => None,
            judged => Some(format!(
                "no difference is shown in {}",
                count(judged, "step")
            )),
        });
    }
    parts.extend(yet_to_come(&waiting, all));
    let rest: Vec<String> = over
        .iter()
        .map(|finding| finding.call.word())
        .filter(|word| !["regression", "improvement"].contains(word))
        .counts()
        .into_iter()
        .sorted()
        .map(|(word, count)| match count {
            1 => format!("1 is {word}"),
            count => format!("{count} are {word}"),
        })
        .collect();
    parts.extend(Some(rest.join(", ")).filter(|rest| !rest.is_empty()));
    parts.join(if is_divided { ": " } else { "; " })
}

/// `10 of 10 steps cannot be judged yet: 7 blocks so far, and 8 are needed`; of several numbers the
/// least that is there, and the most that is needed.
fn yet_to_come(waiting: &[&Finding], all: usize) -> Option<String> {
    let needed = waiting.iter().filter_map(|finding| finding.needed).max()?;
    let done = waiting.iter().filter_map(|finding| {
        let estimate = finding.estimate?;
        Some(match finding.basis {
            Basis::Slices => (estimate.starts, "start"),
            Basis::Blocks | Basis::Screen => (estimate.pairs, "block"),
        })
    });
    let (done, noun) = done.min()?;
    Some(format!(
        "{} of {} cannot be judged yet: {} so far, and {needed} are needed",
        waiting.len(),
        count(all, "step"),
        count(done, noun)
    ))
}

/// Bits that sort as the number does, which is not negative.
fn ordered_float(number: f64) -> u64 {
    number.to_bits()
}

fn change(finding: &Finding) -> String {
    let ratio = finding.estimate.map_or(1.0, |estimate| estimate.ratio);
    format!("{} {}", finding.step, percent(ratio))
}

/// What others took of the machine, if that is worth a word.
pub fn machine_taken(view: &View) -> Option<String> {
    let taken = view.findings.taken.filter(|taken| *taken >= WORTH_A_WORD)?;
    Some(format!(
        "others took {:.0} % of the machine's CPU meanwhile: that is in the intervals",
        100.0 * taken
    ))
}

/// A row per step, a column per candidate with its ratio, interval and verdict, and one for the
/// base's second instance.
pub fn ratio_table(view: &View) -> Vec<String> {
    // Words where there is room for them, else marks.
    let in_words = rows(view, false);
    let is_wide = in_words.iter().any(|line| line.chars().count() > COLUMNS);
    let mut lines = vec![format!(
        "Throughput relative to {}: ratio, 95 % interval, verdict",
        bases(view)
    )];
    match is_wide {
        false => lines.extend(in_words),
        true => {
            lines.extend(rows(view, true));
            lines.push(format!(
                "+ improvement   - regression   = equivalent (within {:.0} %)   ? inconclusive   \
                ~ depends on turns   x invalid",
                100.0 * view.findings.margin
            ));
        }
    }
    lines.extend(caveats(view));
    lines
}

/// What the marks behind names of cells mean, for each of them once.
fn caveats(view: &View) -> Vec<String> {
    let cells = || candidates(&view.findings).map(|cell| &view.cells[cell]);
    let builds = cells().filter_map(|cell| Some(format!("† {}", cell.caveat.as_ref()?)));
    let machines = cells().filter_map(|cell| {
        let difference = cell.other_machine.as_ref()?;
        Some(format!("‡ on another machine than the base: {difference}"))
    });
    builds.chain(machines).unique().collect()
}

/// The same of a campaign on its way, with marks; empty before there is a ratio.
pub fn running_table(view: &View) -> Vec<String> {
    match view.findings.all.is_empty() {
        true => Vec::new(),
        false => rows(view, true),
    }
}

/// A head, and a row per step.
fn rows(view: &View, is_brief: bool) -> Vec<String> {
    let findings = &view.findings;
    let cells: Vec<usize> = candidates(findings).collect();
    let steps: Vec<&str> = findings
        .all
        .iter()
        .filter(|finding| finding.role == Role::Throughput)
        .map(|finding| finding.step.as_str())
        .unique()
        .collect();
    let controls: Vec<&Control> = findings
        .control
        .iter()
        .filter(|control| control.role == Role::Throughput)
        .collect();
    let mut columns: Vec<Vec<String>> = vec![
        std::iter::once(String::new())
            .chain(steps.iter().map(|step| (*step).to_owned()))
            .collect(),
    ];
    for &cell in &cells {
        let entry = |step: &&str| {
            let finding = findings.of_throughput(cell, step);
            finding.map_or("-".to_owned(), |finding| entry(finding, is_brief))
        };
        let info = &view.cells[cell];
        let head = format!("{}{}", info.label, info.mark());
        columns.push(
            std::iter::once(head)
                .chain(steps.iter().map(entry))
                .collect(),
        );
    }
    if let Some(control) = controls.first() {
        let entry = |step: &&str| {
            let control = controls.iter().find(|control| control.step == **step);
            control.map_or("-".to_owned(), |control| of_control(control, is_brief))
        };
        let head = format!("{} (A/A, 99 %)", control.cell);
        columns.push(
            std::iter::once(head)
                .chain(steps.iter().map(entry))
                .collect(),
        );
    }
    lines_of(&columns)
}

fn entry(finding: &Finding, is_brief: bool) -> String {
    let word = finding.call.word();
    let mark = match (is_brief, finding.call) {
        (false, _) => word,
        (true, Call::Invalid) => "x",
        (true, Call::DependsOnTurns) => "~",
        (true, Call::Verdict(Verdict::Regression)) => "-",
        (true, Call::Verdict(Verdict::Improvement)) => "+",
        (true, Call::Verdict(Verdict::Equivalent)) => "=",
        (true, _) => "?",
    };
    match &finding.estimate {
        Some(estimate) => format!("{} {mark}", ratio(estimate)),
        None => word.to_owned(),
    }
}

fn of_control(control: &Control, is_brief: bool) -> String {
    let word = match control.is_sound {
        None => "",
        Some(true) if is_brief => "",
        Some(true) => " holds",
        Some(false) => " fails",
    };
    match &control.estimate {
        Some(estimate) => format!("{}{word}", ratio(estimate)),
        None => "no pairs".to_owned(),
    }
}

/// `2.05 [1.87, 2.21]`, with three decimals where two would hide the interval.
fn ratio(estimate: &Estimate) -> String {
    let Some((low, high)) = estimate.interval else {
        return format!("{:.2}", estimate.ratio);
    };
    match high - low < 0.02 {
        true => format!("{:.3} [{low:.3}, {high:.3}]", estimate.ratio),
        false => format!("{:.2} [{low:.2}, {high:.2}]", estimate.ratio),
    }
}

/// Columns of equal length side by side, each as wide as its widest entry.
fn lines_of(columns: &[Vec<String>]) -> Vec<String> {
    let widths: Vec<usize> = columns
        .iter()
        .map(|column| {
            column
                .iter()
                .map(|text| text.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .map(|row| {
            let cells = columns.iter().zip(&widths);
            let line = cells
                .map(|(column, width)| format!("{:<width$}", column[row]))
                .join("  ");
            line.trim_end().to_owned()
        })
        .collect()
}

/// The largest differences, each with what the numbers per operation say of it.
pub fn explained(view: &View) -> Vec<String> {
    let findings = &view.findings;
    let told = largest(findings, EXPLAINED)
        .into_iter()
        .filter_map(|finding| {
            let why = ending(finding);
            let cell = match candidates(findings).count() {
                1 => String::new(),
                _ => format!(" {}", view.cells[finding.cell].label),
            };
            (!why.is_empty()).then(|| format!("{}{cell}: {why}", change(finding)))
        });
    headed("The largest:", told)
}

/// Why nothing can be said of steps that are invalid.
pub fn why_invalid(view: &View) -> Vec<String> {
    headed("Not judged:", unjudged(view).into_iter())
}

fn headed(heading: &str, lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<String> = lines.flat_map(|line| wrapped(&line)).collect();
    match lines.is_empty() {
        true => lines,
        false => std::iter::once(heading.to_owned())
            .chain(lines.into_iter().map(|line| format!("  {line}")))
            .collect(),
    }
}
