//! The answer of a gate, drawn.

use itertools::Itertools;
use plimsoll_analysis::questions::gate::estimate_text;
use plimsoll_analysis::{Gate, GateRow};
use serde_json::{Value, json};

use super::Draw;

impl Draw for Gate {
    fn to_text(&self) -> String {
        let mut lines = Vec::new();
        for (candidate, base) in &self.candidates {
            lines.push(format!(
                "gate: {candidate} against {base}, at most {}; campaign {}",
                self.limit(),
                self.campaign
            ));
        }
        lines.extend(self.about.iter().cloned());
        lines.extend(rows(self));
        lines.extend(
            self.refusal
                .iter()
                .map(|refusal| format!("refused: {refusal}")),
        );
        lines.push(format!("answer: {}", self.word()));
        lines.extend(self.next.iter().map(|next| format!("next: {next}")));
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        let one = self.candidates.iter().exactly_one().ok();
        json!({
            "format": 1,
            "campaign": self.campaign,
            "base": self.candidates.first().map(|(_, base)| base),
            "candidate": one.map(|(candidate, _)| candidate),
            "candidates": self.candidates.iter().map(|(candidate, _)| candidate).collect_vec(),
            "metric": self.metric.name(),
            "max_regression": self.max_regression,
            "strict": self.is_strict,
            "answer": self.word(),
            "exit_code": self.exit_code(),
            "refusal": self.refusal,
            "next": self.next,
            "about": self.about,
            "steps": self.rows.iter().map(row_json).collect_vec(),
        })
    }
}

/// A line per candidate and step, columns aligned.
fn rows(gate: &Gate) -> Vec<String> {
    let has_several = gate.candidates.len() > 1;
    let columns = |row: &GateRow| {
        let mut columns = match has_several {
            true => vec![row.candidate.clone()],
            false => Vec::new(),
        };
        let floor = row.floor("+-");
        columns.extend([
            row.step.clone(),
            row.answer.name().to_owned(),
            estimate_text(row.estimate),
            floor.map_or_else(String::new, |floor| format!("floor {floor}")),
        ]);
        columns
    };
    let all: Vec<Vec<String>> = gate.rows.iter().map(columns).collect();
    let width = |column: usize| {
        let widths = all.iter().map(|columns| columns[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let line = |(columns, row): (&Vec<String>, &GateRow)| {
        let padded = columns.iter().enumerate();
        let mut words: Vec<String> = padded
            .map(|(at, text)| format!("{text:<width$}", width = width(at)))
            .collect();
        if row.max_regression != gate.max_regression {
            words.push(format!("at most {}", gate.metric.loss(row.max_regression)));
        }
        words.extend(row.accepted.iter().map(|why| format!("accepted: {why}")));
        words.push(row.reason.clone());
        words.join("  ").trim_end().to_owned()
    };
    all.iter().zip(&gate.rows).map(line).collect()
}

fn row_json(row: &GateRow) -> Value {
    let interval = row.estimate.and_then(|estimate| estimate.interval);
    json!({
        "candidate": row.candidate,
        "base": row.base,
        "step": row.step,
        "max_regression": row.max_regression,
        "answer": row.answer.name(),
        "ratio": row.estimate.map(|estimate| estimate.ratio),
        "low": interval.map(|(low, _)| low),
        "high": interval.map(|(_, high)| high),
        "p": row.p,
        "starts": row.estimate.map(|estimate| estimate.starts),
        "floor_percent": row.floor_percent,
        "seconds": row.seconds,
        "accepted": row.accepted,
        "reason": (!row.reason.is_empty()).then_some(&row.reason),
    })
}
