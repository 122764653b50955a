//! Why a step differs, drawn.

use plimsoll_analysis::Explanation;
use plimsoll_analysis::verdicts::{as_percent, headline, percent};
use serde_json::{Value, json};

use super::Draw;

/// Rows of the table that text shows.
const SHOWN: usize = 16;
const UNCONFIRMED: &str =
    "One run of each: this is unconfirmed, and `plimsoll confirm` would tell whether it is there.";

impl Draw for Explanation {
    fn to_text(&self) -> String {
        let mut lines = vec![format!(
            "{}: {} against {}, campaign {}",
            self.step, self.cell, self.base, self.campaign
        )];
        lines.extend((!self.line.is_empty()).then(|| self.line.clone()));
        if self.is_screen {
            lines.push(UNCONFIRMED.to_owned());
        }
        lines.extend(self.cost_line());
        lines.push(self.likely());
        lines.extend(self.settings_line());
        if self.changes.is_empty() {
            lines.push("No per-operation number is known on both sides.".to_owned());
        } else {
            lines.push(format!(
                "\n{:<44} {:>9} {:>8} {:>6}",
                "per operation", "change", "in sd", "pairs"
            ));
        }
        lines.extend(self.changes.iter().take(SHOWN).map(|change| {
            let name = if change.is_counter {
                format!("{} (counter)", change.name)
            } else {
                headline(&change.name)
            };
            format!(
                "{name:<44} {:>9} {:>8.1} {:>6}",
                percent(change.ratio),
                change.standardised,
                change.pairs
            )
        }));
        if self.changes.len() > SHOWN {
            lines.push(format!(
                "and {} more: `--json` has them",
                self.changes.len() - SHOWN
            ));
        }
        lines.join("\n") + "\n"
    }

    fn to_json(&self) -> Value {
        json!({
            "format": 1,
            "campaign": self.campaign,
            "step": self.step,
            "base": self.base,
            "cell": self.cell,
            "confirmed": !self.is_screen,
            "verdict": self.finding.as_ref().map(|finding| finding.call.word()),
            "ratio": self.finding.as_ref().and_then(|finding| Some(finding.estimate?.ratio)),
            "cost": self.cost.as_ref().map(|cost| json!({
                "metric": cost.metric.name,
                "verdict": cost.call.word(),
                "ratio": cost.estimate.map(|estimate| estimate.ratio),
            })),
            "sentence": self.sentence,
            "one_build": self.is_one_build,
            "settings": self.settings.iter().map(|setting| json!({
                "name": setting.name,
                "base": setting.base,
                "cell": setting.cell,
            })).collect::<Vec<_>>(),
            "changes": self.changes.iter().map(|change| json!({
                "name": change.name,
                "counter": change.is_counter,
                "ratio": change.ratio,
                "percent": as_percent(change.ratio.ln()),
                "standardised": change.standardised,
                "pairs": change.pairs,
            })).collect::<Vec<_>>(),
        })
    }
}
