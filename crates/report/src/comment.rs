//! The answer of a gate as a comment on a pull request.

use std::fmt::Write as _;

use plimsoll_analysis::questions::gate::estimate_text;
use plimsoll_analysis::{Gate, GateAnswer, GateRow};

use crate::markdown::{escape, header_with_texts, row};

/// By which a later run finds its own comment, to replace it.
const MARK: &str = "<!-- plimsoll gate -->";
const COLUMNS: [&str; 5] = [
    "change, 95 % interval",
    "may lose",
    "answer",
    "floor",
    "note",
];

/// The answer, what is behind it, and the A/A control; every step is folded below.
pub fn to_comment(gate: &Gate) -> String {
    let mut text = format!("{MARK}\n### Plimsoll: {}\n\n", gate.word());
    for (candidate, base) in &gate.candidates {
        let rows: Vec<&GateRow> = rows_of(gate, candidate).collect();
        add(&mut text, &sentence(candidate, base, &rows));
    }
    if let Some(refusal) = &gate.refusal {
        add(&mut text, &escape(refusal));
    }
    if let Some(next) = &gate.next {
        add(&mut text, &escape(&format!("Next: {next}")));
    }
    let telling: Vec<&GateRow> = gate.rows.iter().filter(|row| is_telling(row)).collect();
    table(&mut text, gate, &telling);
    for about in &gate.about {
        add(&mut text, &escape(about));
    }
    if telling.len() < gate.rows.len() {
        let all: Vec<&GateRow> = gate.rows.iter().collect();
        add(
            &mut text,
            &format!("<details><summary>All {} steps</summary>", all.len()),
        );
        table(&mut text, gate, &all);
        add(&mut text, "</details>");
    }
    let seconds: f64 = gate.rows.iter().map(|row| row.seconds).sum();
    let campaign = escape(&gate.campaign);
    add(
        &mut text,
        &format!("<sub>campaign {campaign}, {seconds:.0} s of measuring</sub>"),
    );
    text
}

fn rows_of<'g>(gate: &'g Gate, candidate: &'g str) -> impl Iterator<Item = &'g GateRow> {
    gate.rows
        .iter()
        .filter(move |row| row.candidate == candidate)
}

/// A paragraph.
fn add(text: &mut String, words: &str) {
    writeln!(text, "{words}\n").expect("writing to a string cannot fail");
}

/// `**postgres+new** against postgres+old: 1 of 8 steps loses more than it may; 7 pass.`
fn sentence(candidate: &str, base: &str, rows: &[&GateRow]) -> String {
    let count = |answers: &[GateAnswer]| {
        let is_so = |row: &&&GateRow| answers.contains(&row.answer);
        rows.iter().filter(is_so).count()
    };
    let all = rows.len();
    let lost = count(&[GateAnswer::Regression]);
    let open = count(&[
        GateAnswer::Inconclusive,
        GateAnswer::Refused,
        GateAnswer::Invalid,
    ]);
    let mut parts = vec![match lost {
        0 => format!("none of {all} steps is shown to lose more than it may"),
        1 => format!("1 of {all} steps loses more than it may"),
        lost => format!("{lost} of {all} steps lose more than they may"),
    }];
    let named = [
        (count(&[GateAnswer::Pass]), "pass", "passes"),
        (open, "are not decided", "is not decided"),
        (
            count(&[GateAnswer::Unfit]),
            "are unfit for a threshold this small",
            "is unfit for a threshold this small",
        ),
    ];
    parts.extend(
        named
            .into_iter()
            .filter_map(|(count, many, one)| match count {
                0 => None,
                1 => Some(format!("1 {one}")),
                count => Some(format!("{count} {many}")),
            }),
    );
    format!(
        "**{}** against {}: {}.",
        escape(candidate),
        escape(base),
        parts.join("; ")
    )
}

/// Whether it is shown unfolded.
fn is_telling(row: &GateRow) -> bool {
    row.answer != GateAnswer::Pass || row.accepted.is_some()
}

fn table(text: &mut String, gate: &Gate, rows: &[&GateRow]) {
    if rows.is_empty() {
        return;
    }
    header_with_texts(text, COLUMNS.into_iter(), &["answer", "note"]);
    let has_several = gate.candidates.len() > 1;
    for of in rows {
        let step = match has_several {
            true => format!("{} {}", of.candidate, of.step),
            false => of.step.clone(),
        };
        let floor = of.floor("±");
        let note = match &of.accepted {
            Some(why) => format!("accepted: {why}"),
            None => of.reason.clone(),
        };
        let cells = [
            step,
            estimate_text(of.estimate),
            format!("{:.1} %", 100.0 * of.max_regression),
            of.answer.name().to_owned(),
            floor.unwrap_or_default(),
            note,
        ];
        row(text, cells.iter().map(|cell| escape(cell)));
    }
    text.push('\n');
}
