//! The answer of a gate, drawn.

use plimsoll_analysis::Gate;
use plimsoll_analysis::questions::gate::estimate_text;
use serde_json::{Value, json};

use super::Draw;

impl Draw for Gate {
    fn to_text(&self) -> String {
        let mut lines = vec![format!(
            "gate: {} against {}, at most {:.1} % less throughput; campaign {}",
            self.candidate,
            self.base,
            100.0 * self.max_regression,
            self.campaign
        )];
        lines.extend(self.about.iter().cloned());
        let width = self
            .rows
            .iter()
            .map(|row| row.step.chars().count())
            .max()
            .unwrap_or(0);
        lines.extend(self.rows.iter().map(|row| {
            format!(
                "{:<width$}  {:<12}  {}  {}",
                row.step,
                row.answer.name(),
                estimate_text(row.estimate),
                row.reason
            )
            .trim_end()
            .to_owned()
        }));
        lines.extend(
            self.refusal
                .iter()
                .map(|refusal| format!("refused: {refusal}")),
        );
        lines.push(format!("answer: {}", self.word()));
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        json!({
            "format": 1,
            "campaign": self.campaign,
            "base": self.base,
            "candidate": self.candidate,
            "max_regression": self.max_regression,
            "answer": self.word(),
            "exit_code": self.exit_code(),
            "refusal": self.refusal,
            "about": self.about,
            "steps": self.rows.iter().map(|row| json!({
                "step": row.step,
                "answer": row.answer.name(),
                "ratio": row.estimate.map(|estimate| estimate.ratio),
                "low": row.estimate.and_then(|estimate| estimate.interval).map(|(low, _)| low),
                "high": row.estimate.and_then(|estimate| estimate.interval).map(|(_, high)| high),
                "reason": (!row.reason.is_empty()).then_some(&row.reason),
            })).collect::<Vec<_>>(),
        })
    }
}
